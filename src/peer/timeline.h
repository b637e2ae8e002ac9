/* timeline.h - the trace of this process: PCCL_TRACE names a file for events of
 * the Chrome trace format, which Perfetto reads and pccl-trace merges.
 *
 * A thread puts an event into a ring of its own, without a lock. The I/O thread
 * of a communicator writes the rings to the file TRACE_PERIOD after each other;
 * a thread whose ring is full asks for that at once. Where the disk is slower
 * than SLOW_CALL_MOMENT events are lost, and counted, and nobody waits; where
 * it fails the trace ends. A process that is killed loses the events of its
 * last TRACE_PERIOD.
 *
 * The file is an array of objects, one a line. Each line begins with ts and
 * pid: pccl-trace changes these, and copies the rest. Times are microseconds of
 * CLOCK_MONOTONIC. */
#ifndef PCCL_TIMELINE_H
#define PCCL_TIMELINE_H

#include "../base/base.h"

#include <stdatomic.h>
#include <stdbool.h>

#define TRACE_PERIOD (100 * PCCL_MS)

enum { TRACE_NAME_SIZE = 32 };

enum trace_category {
    TRACE_OPERATION, /* a collective */
    TRACE_WAIT,      /* for `partner`, and `count` others */
    TRACE_CALL,      /* a function, with `partner` and `bytes` */
    TRACE_CHANGE,    /* from the end of an epoch to the next view; `id` */
    TRACE_VIEW,      /* `count` members; `lost` and `joined` since the last */
};

struct trace_event {
    pccl_ns at;
    pccl_ns took;   /* of 'X', and of an operation that ends; 0: not known */
    uint64_t id;    /* of 'b' and 'e' */
    uint64_t bytes; /* UINT64_MAX: not known */
    uint64_t scope, tag;
    uint32_t group, epoch, seq;
    int32_t partner; /* rank as launched, or below 0; of a short operation the
                        one whose data came last */
    uint32_t count, joined, lost;
    int16_t result;   /* pcclResult_t */
    char phase;       /* B E: a span of the thread; X: a whole one; b e: a span
                         of its own; i: a moment */
    uint8_t category; /* trace_category */
    char name[TRACE_NAME_SIZE];
    /* Of an operation, constant: its kind; the algorithm and why; the one that
     * came first and does not fit, and why. NULL: none. */
    const char *kind, *algorithm, *why, *instead_of, *unfit;
};

extern atomic_bool trace_state;

static inline bool trace_is_on(void)
{
    return __builtin_expect(
        atomic_load_explicit(&trace_state, memory_order_relaxed), false);
}

/* If PCCL_TRACE is set, opens the file of this process; once. `rank` as
 * launched, -1: none. NULL, or why it cannot be opened; any thread. */
const char *trace_open(int32_t rank);

/* True: the ring is half full, and somebody should write it. Any thread. */
bool trace_put(const struct trace_event *event);

/* Writes what all threads have put, as far as the disk is not slow; any
 * thread. */
void trace_flush(void);

/* True: `line` says that events are lost, or that the trace has ended; each is
 * said once. Any thread. */
bool trace_trouble(char *line, size_t size);

void trace_set_name(struct trace_event *event, const char *name);

#endif
