/* comm_count.h - what a communicator counts, for pcclGetStatistics. All of it
 * is guarded by the lock of the communicator, which every call holds anyway:
 * to count is to add to memory. */
#ifndef PCCL_COMM_COUNT_H
#define PCCL_COMM_COUNT_H

#include "../../include/pccl.h"
#include "../base/base.h"

#include <stdbool.h>

enum { KIND_COUNT = pcclKindReduceScatter + 1 };

struct op_counts {
    uint64_t started, succeeded, lost, failed;
};

struct counters {
    struct op_counts operations[KIND_COUNT];
    uint64_t tcp_sent, tcp_received;
    uint64_t shared_sent, shared_received; /* without the fast path */
    uint64_t cma_received, mapped_received;
    uint64_t epochs, losses, joins, updates;
    uint64_t recoveries, restarts, retries;
    pccl_ns recovery, recovery_longest;
    uint64_t waits;
    pccl_ns wait;
    uint64_t synced_sent, synced_received;
};

struct session;

static inline void count_started(struct counters *n, pcclCollectiveKind_t kind)
{
    if ((unsigned)kind < KIND_COUNT) n->operations[kind].started++;
}

static inline void count_ended(struct counters *n, pcclCollectiveKind_t kind,
                               int result)
{
    if ((unsigned)kind >= KIND_COUNT) return;
    struct op_counts *of = &n->operations[kind];
    if (result == pcclSuccess)
        of->succeeded++;
    else if (result == pcclRankConnectionLost)
        of->lost++;
    else
        of->failed++;
}

/* What a message of the master may change. */
struct view_before {
    uint32_t epoch, size;
    bool frozen, member, updates, optimizes; /* has voted for these */
};

struct view_change {
    uint32_t lost, joined; /* members */
    bool closed;           /* this message closed the epoch */
    bool installed;        /* it brought the next view into force */
    bool voted;            /* the members had voted for that view */
};

/* The session is about to handle a message of the master; and has. */
struct view_before count_before(const struct session *s);
/* Adds the bytes of the fast path, which the session counts as long as it
 * lives. */
void count_fast(struct counters *n, const struct session *s);
struct view_change count_view(struct counters *n, const struct session *s,
                              const struct view_before *before);

#endif
