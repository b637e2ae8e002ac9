/* async_diloco.c - DiLoCo that overlaps communication with training.
 *
 *     pccl-master -n 3 --elastic async_diloco FILE
 *     pccl-master --join HOST:PORT -n 5 async_diloco FILE  (while it runs)
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
 * back and repeat it. A lone survivor drops its own, and waits for company.
 * If all members are lost before the second share, state k+1 is lost with them:
 * the newcomers end with an error. */
#include "diloco_common.h"

/* Waits until the mean over all members is here. False: this member is alone,
 * and there is none. */
static bool land(struct diloco *d)
{
    pcclReduceInfo_t info;
    if (!d->at.in_flight) return !d->alone;
    pcclResult_t result = pcclDilocoLand(d->outer, &info);
    if (diloco_left_alone(d, result)) return false;
    diloco_check(d, result, "pcclDilocoLand");
    d->members = (int)info.local_world_size;
    return true;
}

/* Admits newcomers. True if the membership may have changed. */
static bool admit(struct diloco *d)
{
    bool pending; /* the same on all members */
    diloco_check(d, pcclArePeersPending(d->comm, &pending),
                 "pcclArePeersPending");
    if (!pending && !diloco_short(d)) return false;
    (void)land(d); /* what it drops is not owed */
    diloco_gather(d);
    return true;
}

int main(int argc, char **argv)
{
    struct diloco d;
    diloco_begin(&d, argc, argv);
    float *weights = d.model.weights;
    const uint64_t last = (uint64_t)d.args.outer;
    const pcclSharedStateSyncStrategy_t
        take = PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY,
        give = PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY;
    bool newcomer = true; /* at the beginning of a run all members are */
    if (diloco_short(&d)) diloco_gather(&d);
    while (d.at.step < last) {
        bool changed = newcomer || admit(&d);
        if (changed)
            diloco_share(&d, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR);

        bool owed = d.at.begun > d.at.step;
        bool more = d.at.begun < last;
        if (more) {
            diloco_inner(&d);
            diloco_check(&d,
                         pcclDilocoTake(d.outer,
                                        (const float *const[]){weights},
                                        &d.loss, 1),
                         "pcclDilocoTake");
        }
        if (owed && !newcomer) owed = land(&d);
        if (owed && !newcomer)
            diloco_check(&d, pcclDilocoApply(d.outer), "pcclDilocoApply");
        if (owed && changed) diloco_share(&d, newcomer ? take : give);
        diloco_look(&d);
        if (owed) diloco_report(&d);
        if (more) {
            diloco_check(&d, pcclDilocoLaunch(d.outer, d.comm),
                         "pcclDilocoLaunch");
            diloco_die(&d);
        }
        diloco_look(&d);
        newcomer = false;
    }
    diloco_end(&d);
    return 0;
}
