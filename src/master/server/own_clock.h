/* own_clock.h - the time in which the coordinator ran (rule M15).
 *
 * A process that was stopped, a paused virtual machine and a suspended host
 * have in common that an event which was due came late. That time is left out,
 * so that whatever had time left before still has it. */
#ifndef PCCL_OWN_CLOCK_H
#define PCCL_OWN_CLOCK_H

#include "../../base/base.h"

struct own_clock {
    pccl_ns slept; /* in all, so far */
    pccl_ns due;   /* when it runs again, by this clock; or PCCL_NEVER */
    pccl_ns gap;   /* slept, and the machine does not know yet */
    pccl_ns last;  /* what it showed last: it never shows less later */
};

/* The time by this clock, at that of the host. It slept if it runs more than
 * `late` after it was due. */
pccl_ns own_clock_at(struct own_clock *c, pccl_ns host, pccl_ns late);

/* The gap of the next MASTER_SLEPT, once; or 0. */
pccl_ns own_clock_take(struct own_clock *c);

#endif
