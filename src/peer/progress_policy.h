/* progress_policy.h - how a call waits: it polls, then yields the processor
 * between two polls, then sleeps in the kernel. The time for each depends on
 * the number of this host's members for each of its processors.
 *
 * All time constants of progress are here and in progress_policy.c, with their
 * reasons; figures are from tests/bench/NOTES.md. Pure. */
#ifndef PCCL_PROGRESS_POLICY_H
#define PCCL_PROGRESS_POLICY_H

#include "../base/base.h"

/* One kind of polling. A look is one call of the loop's poll function. */
struct poll_policy {
    pccl_ns patience;         /* idle time until the polling gives up */
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

/* The longest sleep of a blocking caller. Doorbells end it earlier. It bounds
 * the cost of a lost doorbell, which no measurement has shown (rule L3). */
#define SLEEP_MAX (200 * PCCL_MS)
/* Its longest sleep while a connection for messages is to be dialed: the first
 * pause between two attempts is as long. */
#define RETRY_SLEEP_MAX (10 * PCCL_MS)

/* The time between two poll ticks, at first and at most. Each tick doubles it.
 * A tick replaces one wake-up of the background thread for each arrival: 45 %
 * of the time of 256 small operations was in the kernel ("Many at once"). */
#define TICK_FIRST ((pccl_ns)100000)
#define TICK_RAREST ((pccl_ns)1600000)
/* Under a hypervisor a timer that is due before the kernel's next one takes a
 * launch 9 to 20 us to arm, and a later one 1 us ("Launches"). Where arming
 * mostly takes longer than ARMING_DEAR, the first tick comes after so long. */
#define TICK_FIRST_DEAR ((pccl_ns)4000000)
#define ARMING_DEAR ((pccl_ns)2000)
#define DEAR_MANY 4 /* more such armings than others */

/* Two ranks that alternate on one processor, while another one is free, stay
 * together: to the scheduler neither ever waits. The scheduler finds a free
 * processor for a rank that wakes up, so one rank naps. Without the nap 9 of
 * 28 medians of 8 bytes were above 2 us, with it 3 of 28. */
#define NAP_NS ((pccl_ns)10000)

enum {
    /* A yield has completed an operation that is done at most so many polls
     * after its first yield. */
    HANDED_ON_LOOKS = 16,
    /* So many of them in a row make a caller nap. Where the nap does not help,
     * it is tried ever more rarely. */
    NAP_AFTER_MIN = 16,
    NAP_AFTER_MAX = 1 << 20,

    /* One pass of so many, of a caller that waits for an operation, reads all
     * connections. The other passes read only the connections that the
     * operation receives from. Other bytes mostly belong to the next operation
     * of a member that has completed this one; they would have to be copied
     * until that operation is launched here. */
    PASSES_PER_FULL_PASS = 64,
    /* Calls of one that takes messages between two full passes. */
    TAKES_PER_FULL_PASS = 64,

    /* Yields until a thread that waits for the lock has it. */
    LOCK_YIELDS_MAX = 100,
};

#endif
