/* progress_policy.h - how a call waits: it polls, then yields the processor
 * between two looks, then sleeps in the kernel. How long it does each follows
 * from the number of this host's members for each of its processors.
 *
 * All time constants of progress stand here and in progress_policy.c, with what
 * they rest on; figures are from tests/bench/NOTES.md. Pure. */
#ifndef PCCL_PROGRESS_POLICY_H
#define PCCL_PROGRESS_POLICY_H

#include "../base/base.h"

/* One kind of polling. A look is one call of what the loop looks with. */
struct poll_policy {
    pccl_ns patience;         /* without anything found, until it gives up */
    uint32_t looks_per_clock; /* idle looks for each reading of the clock; a
                                 power of two */
    uint32_t spins;           /* idle looks before it yields between two */
};

struct wait_policy {
    struct poll_policy operation; /* an operation, or a synchronization */
    struct poll_policy fast;      /* an operation on the fast path */
    struct poll_policy message;   /* messages through shared memory */
    bool polls_sockets; /* sockets are polled for messages before a sleep */
    bool naps;          /* see NAP_NS */
};

/* Of a view with so many members on a host with so many processors. */
const struct wait_policy *wait_policy(uint32_t members, uint32_t processors);

/* The longest sleep of a blocking caller. Doorbells end it earlier; this bounds
 * what a lost one would cost, and was never seen to matter (rule L3). */
#define SLEEP_MAX (200 * PCCL_MS)
/* The same while a connection for messages waits to be dialed again: the first
 * pause between two attempts is as long. */
#define RETRY_SLEEP_MAX (10 * PCCL_MS)

/* Between two poll ticks, at first and at most. Each tick doubles it. A tick
 * replaces one wake-up of the background thread for each arrival: 45 % of the
 * time of 256 small operations was in the kernel ("Many at once"). */
#define TICK_FIRST ((pccl_ns)100000)
#define TICK_RAREST ((pccl_ns)1600000)

/* Two ranks that take turns on one processor, while another one is free, stay
 * together: to the scheduler neither ever waits. It finds a free processor for
 * a rank that wakes up, so one naps. Without it 9 of 28 medians of 8 bytes were
 * above 2 us, with it 3 of 28. */
#define NAP_NS ((pccl_ns)10000)

enum {
    /* An operation that is done at most so many looks after the first yield
     * was handed on by that yield. */
    HANDED_ON_LOOKS = 16,
    /* So many of them in a row make a caller nap. Where that does not help it
     * is tried ever more rarely. */
    NAP_AFTER_MIN = 16,
    NAP_AFTER_MAX = 1 << 20,

    /* Every so many passes of a caller that waits for an operation read all
     * connections; the others only those where something for it may come. What
     * else comes is mostly the next operation of a member that is done with
     * this one, and would have to be copied until it is launched here. */
    PASSES_PER_FULL_PASS = 64,
    /* The same for a caller that takes messages, in calls. */
    TAKES_PER_FULL_PASS = 64,

    /* Yields until a thread that waits for the lock has it. */
    LOCK_YIELDS_MAX = 100,
};

#endif
