/* async_diloco.c - DiLoCo that overlaps communication with training.
 *
 *     pccl-master -n 3 --elastic async_diloco FILE
 *     pccl-master --join HOST:PORT -n 5 async_diloco FILE  (any time later)
 *
 * Algorithm 4 of the PCCL report. The all-reduce of pseudo-gradient k is in
 * flight while inner phase k+1 is computed, so each outer step is applied one
 * phase late. In pass k+1 of the loop:
 *
 *                     member                     newcomer
 *     admission       [await k,] update          connect
 *     first share     gives outer state k        takes it
 *     inner phase     from outer state k         from outer state k
 *     landing         await k, outer step        -
 *     second share    SEND_ONLY: state k+1       RECEIVE_ONLY: takes it
 *     launch          all-reduce k+1             all-reduce k+1
 *
 * Why two shares: the newcomer needs state k to contribute to all-reduce k+1,
 * and could not take part in all-reduce k, which began before it came; it takes
 * the outcome from the members. At the second share newcomers have the revision
 * of the members, and may outnumber them: that they RECEIVE_ONLY keeps state k
 * from being elected. The report launches before it shares; we launch last, as
 * a synchronization excludes operations in flight. It changes no number:
 * pseudo-gradient k+1 is taken before the outer step moves the weights.
 *
 * Whether a step is owed is part of the state (begun > step), so a newcomer
 * knows if there will be a second share: not at the beginning of a run.
 *
 * If a member is lost during all-reduce k the others get their pseudo-gradients
 * back and repeat it. If all members are lost before the second share, state
 * k+1 is lost with them: the newcomers end with an error. */
#include "diloco_common.h"

#include <stdlib.h>

struct flight {
    float *delta;               /* owned by the library while in flight */
    pcclAsyncReduceOp_t handle; /* valid while in flight */
    bool in_air;                /* not awaited yet */
    int contributors;           /* known when it is complete */
};

static void launch(struct diloco *d, struct flight *f)
{
    pcclReduceDescriptor_t mean = diloco_mean(d);
    pcclResult_t result;
    do {
        result =
            pcclAllReduceAsync(f->delta, f->delta, &mean, d->comm, &f->handle);
    } while (result == pcclRankConnectionLost);
    f->in_air = result == pcclSuccess;
    f->contributors = 1;
    diloco_check(d, result, "pcclAllReduceAsync");
}

/* Waits until delta is the mean over all members. */
static void land(struct diloco *d, struct flight *f)
{
    while (f->in_air) {
        pcclReduceInfo_t info = {.local_world_size = 1};
        pcclResult_t result = pcclAwaitAsyncReduce(&f->handle, &info);
        f->in_air = false;
        f->contributors = (int)info.local_world_size;
        if (result == pcclRankConnectionLost)
            launch(d, f);
        else
            diloco_check(d, result, "pcclAwaitAsyncReduce");
        d->members = f->contributors;
    }
}

/* Admits newcomers. True if the membership may have changed. */
static bool admit(struct diloco *d, struct flight *f)
{
    bool pending; /* the same on all members */
    diloco_check(d, pcclArePeersPending(d->comm, &pending),
                 "pcclArePeersPending");
    if (!pending && !diloco_short(d)) return false;
    land(d, f);
    diloco_gather(d);
    return true;
}

int main(int argc, char **argv)
{
    struct diloco d;
    diloco_begin(&d, argc, argv);
    struct flight flight = {.delta = diloco_vector(&d)};
    float *next = diloco_vector(&d);
    const pcclSharedStateSyncStrategy_t
        take = PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY,
        give = PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY;
    bool newcomer = true; /* at the beginning of a run all members are */
    if (diloco_short(&d)) diloco_gather(&d);
    while (d.step < d.args.outer) {
        bool changed = newcomer || admit(&d, &flight);
        if (changed)
            diloco_share(&d, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR);

        bool owed = d.begun > d.step;
        bool more = d.begun < d.args.outer;
        if (more) diloco_inner(&d, next);

        if (owed && !newcomer) {
            land(&d, &flight);
            diloco_outer(&d, flight.delta, flight.contributors);
        }
        if (owed && changed) diloco_share(&d, newcomer ? take : give);
        if (owed) diloco_report(&d);

        if (more) {
            float *landed = flight.delta;
            flight.delta = next;
            next = landed;
            launch(&d, &flight);
            diloco_die(&d);
        }
        newcomer = false;
    }
    free(flight.delta);
    free(next);
    diloco_end(&d);
    return 0;
}
