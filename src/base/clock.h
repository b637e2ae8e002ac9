/* clock.h - the time of a clock of the system, for drivers: cores get it. */
#ifndef PCCL_CLOCK_H
#define PCCL_CLOCK_H

#include "base.h"

#include <time.h>

static inline pccl_ns clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t);
    return (pccl_ns)t.tv_sec * PCCL_S + t.tv_nsec;
}

#endif
