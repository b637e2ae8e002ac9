/* progress_core.h - which thread moves the bytes of a communicator: the
 * states, and one table of transitions. Pure: no locks, no system calls, no
 * clock.
 *
 * There is one owner at a time. The table gives for each state and event the
 * next state and the effects; progress.c carries them out. Three rules hold
 * after each step (tests/unit/peer/test_progress.c explores all of them):
 *
 *  - Where work may be pending, some thread looks for it: the background
 *    thread watches all connections, or a poll tick checks that testing calls
 *    still come, or a blocking caller polls, or it sleeps with its doorbells
 *    armed.
 *  - A caller that waits to own is signalled when a blocking owner leaves.
 *  - Every call that gives a sleeping owner work wakes it. */
#ifndef PCCL_PROGRESS_CORE_H
#define PCCL_PROGRESS_CORE_H

#include "../base/base.h"

enum progress_state {
    /* The background thread watches all connections. */
    PROGRESS_BACKGROUND,
    /* Calls that start and test operations move the bytes. The background
     * thread watches no open connection: each partner would wake it for bytes
     * that the next call sees anyway. It has a poll tick instead. */
    PROGRESS_TESTING,
    /* A blocking caller polls all connections. */
    PROGRESS_POLLING,
    /* A blocking caller sleeps in the kernel. Its doorbells are armed. */
    PROGRESS_SLEEPING,
    /* These two while testing calls come as well: the poll tick goes on, and
     * these calls own when the blocking caller leaves. */
    PROGRESS_POLLING_TESTED,
    PROGRESS_SLEEPING_TESTED,
    PROGRESS_STATE_COUNT,
};

enum progress_event {
    PROGRESS_ON_CHANGE,      /* the session or a connection has work */
    PROGRESS_ON_TEST,        /* a call has started or tested an operation */
    PROGRESS_ON_ENTER,       /* a blocking call owns from here on */
    PROGRESS_ON_SLEEP,       /* the blocking owner was idle for long */
    PROGRESS_ON_WAKE,        /* the sleep of that owner is over */
    PROGRESS_ON_LEAVE,       /* the blocking owner returns to the program */
    PROGRESS_ON_LEAVE_WORK,  /* it returns while operations are under way */
    PROGRESS_ON_TICK,        /* the poll tick: testing calls have come */
    PROGRESS_ON_SILENT_TICK, /* the tick: none has come since the last one */
    PROGRESS_EVENT_COUNT,
};

/* The effects, in this order. */
enum progress_effect {
    PROGRESS_SIGNAL = 1,     /* a caller that waits may own, or be done */
    PROGRESS_MOVE = 2,       /* send and receive all that can move */
    PROGRESS_START_TICK = 4, /* from now on the poll tick checks */
    PROGRESS_SLOW_TICK = 8,  /* the next tick comes later */
    PROGRESS_STOP_TICK = 16,
    PROGRESS_WATCH = 32,      /* notify the background thread of its events */
    PROGRESS_WAKE_OWNER = 64, /* end the sleep of the blocking owner */
};

struct progress_step {
    enum progress_state next;
    uint32_t effects; /* enum progress_effect */
    uint32_t row;     /* of the table, */
    const char *why;  /* and its reason */
};

/* A blocking call enters only where there is no owner, and only the owner
 * sleeps, wakes and leaves. All other events may come in every state. */
struct progress_step progress_core_step(enum progress_state state,
                                        enum progress_event event);
uint32_t progress_core_rows(void);

/* A blocking call owns: no other thread moves bytes unless it sleeps. */
static inline bool progress_core_blocks(enum progress_state state)
{
    return state >= PROGRESS_POLLING;
}

static inline bool progress_core_sleeps(enum progress_state state)
{
    return state == PROGRESS_SLEEPING || state == PROGRESS_SLEEPING_TESTED;
}

#endif
