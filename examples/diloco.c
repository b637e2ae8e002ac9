/* diloco.c - DiLoCo on the native API: train locally, average periodically.
 *
 *     pccl-master -n 3 --elastic diloco FILE
 *     pccl-master --join HOST:PORT -n 2 diloco FILE        (any time later)
 *
 * Algorithm 2 of the PCCL report, with an update of the topology only when
 * newcomers wait. It survives every loss and join, because:
 *
 * - A newcomer waits in pcclConnect until the members call
 *   pcclUpdateTopology; both return at the same point, and what comes next is
 *   the same for both: the synchronization. Newcomers are behind in revision,
 *   so their state is never elected, however many they are.
 * - When a member is lost, the all-reduce fails on all the others alike and
 *   their pseudo-gradients are as they were: they call it again.
 * - A single remaining member goes on: the mean over one member is its own. */
#include "diloco_common.h"

#include <stdlib.h>

/* Replaces delta by the mean over all members. */
static void average(struct diloco *d, float *delta)
{
    pcclReduceDescriptor_t mean = diloco_mean(d);
    pcclReduceInfo_t info = {.local_world_size = 1};
    pcclResult_t result;
    do {
        result = pcclAllReduce(delta, delta, &mean, d->comm, &info);
    } while (result == pcclRankConnectionLost);
    if (result != pcclTooFewPeers) diloco_check(d, result, "pcclAllReduce");
    d->members = result == pcclSuccess ? (int)info.local_world_size : 1;
}

int main(int argc, char **argv)
{
    struct diloco d;
    diloco_begin(&d, argc, argv);
    float *delta = diloco_vector(&d);
    bool changed = true; /* membership; the start counts as a change */
    if (diloco_short(&d)) diloco_gather(&d);
    while (d.step < d.args.outer) {
        if (!changed) {
            diloco_check(&d, pcclArePeersPending(d.comm, &changed),
                         "pcclArePeersPending");
            if (diloco_short(&d)) changed = true;
            if (changed) diloco_gather(&d);
        }
        if (changed) {
            diloco_share(&d, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR);
            changed = false;
        }
        diloco_inner(&d, delta);
        diloco_die(&d);
        average(&d, delta);
        diloco_outer(&d, delta, d.members);
        diloco_report(&d);
    }
    free(delta);
    diloco_end(&d);
    return 0;
}
