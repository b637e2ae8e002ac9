/* diloco.c - DiLoCo on the native API: train locally, average periodically.
 *
 *     pccl-master -n 3 --elastic diloco FILE
 *     pccl-master --join HOST:PORT -n 2 diloco FILE        (while it runs)
 *
 * Algorithm 2 of the PCCL report, with an update of the topology only when
 * newcomers wait: pccl_loop.h has the loop. It survives every loss and join,
 * because:
 *
 * - A newcomer waits in pcclConnect until the members call
 *   pcclUpdateTopology; both return at the same point, and what comes next is
 *   the same for both: the synchronization. Newcomers are behind in revision,
 *   so their state is never elected, however many they are.
 * - When a member is lost, the all-reduce fails on all the others alike and
 *   their pseudo-gradients are as they were: it starts again.
 * - A lone survivor drops its inner steps, and trains on in company. */
#include "diloco_common.h"

#include <pccl_loop.h>

int main(int argc, char **argv)
{
    struct diloco d;
    diloco_begin(&d, argc, argv);
    pcclLoop_t loop = {.comm = d.comm, .state = &d.state};
    while (d.at.step < (uint64_t)d.args.outer) {
        if (diloco_short(&d)) {
            diloco_gather(&d);
            loop.shares = true; /* newcomers may have come in there */
        }
        diloco_check(&d, pcclLoopBegin(&loop), "pcclLoopBegin");
        diloco_look(&d);
        diloco_received(&d, loop.received);
        diloco_inner(&d);
        diloco_die(&d);
        pcclResult_t result =
            pcclDilocoStep(d.outer, &d.model.weights, &d.loss, 1, d.comm, NULL);
        if (diloco_left_alone(&d, result)) continue;
        diloco_check(&d, result, "pcclDilocoStep");
        d.members = (int)d.at.contributors;
        diloco_report(&d);
    }
    diloco_end(&d);
    return 0;
}
