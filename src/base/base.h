/* base.h - common to all layers: time, limits, bits. */
#ifndef PCCL_BASE_H
#define PCCL_BASE_H

#undef NDEBUG
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit.h"

/* An invariant of this process, in every build: when it does not hold, the
 * process ends with file, line and condition. Input from the network or from
 * another process is checked and refused, never asserted (CONTRIBUTING.md). */
#define PCCL_ASSERT(condition) assert(condition)

#define BIT(n) (1u << (n))
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Monotonic nanoseconds; cores get the time in events and never read a
 * clock. */
typedef int64_t pccl_ns;

#define PCCL_NEVER INT64_MAX
#define PCCL_MS ((pccl_ns)1000000)
#define PCCL_S ((pccl_ns)1000000000)

/* The budget of one deadline (rule R7). Of a link: it is silent, and is made
 * anew or cannot be made. Of a peer: the master misses it, and gives it up.
 * The rest is for the messages of the rounds. An end with nothing to send sends
 * PING. */
#define PCCL_TIME_TO_DETECT(deadline) ((deadline) / 2)
#define PCCL_TIME_TO_LINK(deadline) ((deadline) / 3)
#define PCCL_TIME_TO_MISS(deadline) ((deadline) / 10 * 3)
#define PCCL_TIME_TO_LOSE(deadline) ((deadline) / 4 * 3)
#define PCCL_TIME_TO_PING(deadline)                                            \
    ((deadline) / 10 < PCCL_PING_MAX ? (deadline) / 10 : PCCL_PING_MAX)
#define PCCL_TIME_OF_TICK(deadline) (PCCL_TIME_TO_PING(deadline) / 2)

/* Between two signs of life, however long the deadline is: a middlebox may
 * forget a connection that is idle for a minute. */
#define PCCL_PING_MAX (20 * PCCL_S)

enum {
    PEERS_MAX = 4096,    /* members of a run, over all groups */
    GROUPS_MAX = 256,    /* distinct peer groups of one run */
    OPS_MAX = 4096,      /* operations in flight on one communicator, */
    SCOPED_MAX = 256,    /* of which so many may be of some members only */
    POOL_MAX = 64,       /* connections between two peers */
    MASTER_PORT = 48148, /* default port of the master, as in PCCL 1.0 */
    DEADLINE_DEFAULT_MS = 3000,
};

#endif
