/* progress_core.c - the table of progress_core.h. */
#include "progress_core.h"

/* Sets of states. */
enum {
    BACKGROUND = 1 << PROGRESS_BACKGROUND,
    TESTING = 1 << PROGRESS_TESTING,
    POLLING = 1 << PROGRESS_POLLING,
    SLEEPING = 1 << PROGRESS_SLEEPING,
    POLLING_TESTED = 1 << PROGRESS_POLLING_TESTED,
    SLEEPING_TESTED = 1 << PROGRESS_SLEEPING_TESTED,
    UNTESTED = BACKGROUND | POLLING | SLEEPING,
    SAME = PROGRESS_STATE_COUNT, /* as a next state */
};

enum {
    MOVE = PROGRESS_MOVE,
    START = PROGRESS_START_TICK,
    SLOW = PROGRESS_SLOW_TICK,
    STOP = PROGRESS_STOP_TICK,
    WATCH = PROGRESS_WATCH,
    WAKE = PROGRESS_WAKE_OWNER,
};

struct row {
    uint32_t from; /* a set of states */
    enum progress_event event;
    uint32_t next;
    uint32_t effects;
    const char *why;
};

static const struct row rows[] = {
    /* A change has effects that leave at once, by any thread that may move
     * bytes. It ends the phase of the testing calls: the caller may wait for
     * an answer without moving bytes, so the background thread watches. */
    {BACKGROUND, PROGRESS_ON_CHANGE, SAME, MOVE | WATCH,
     "the caller moves what it changed; other connections may matter now"},
    {TESTING, PROGRESS_ON_CHANGE, PROGRESS_BACKGROUND, MOVE | WATCH,
     "nobody may test from here on"},
    {POLLING, PROGRESS_ON_CHANGE, SAME, WATCH,
     "the owner polls: its next pass moves it"},
    {POLLING_TESTED, PROGRESS_ON_CHANGE, PROGRESS_POLLING, WATCH,
     "the same; and nobody may test from here on"},
    {SLEEPING, PROGRESS_ON_CHANGE, SAME, MOVE | WATCH | WAKE,
     "the caller is awake and moves it; the owner may be done, or look anew"},
    {SLEEPING_TESTED, PROGRESS_ON_CHANGE, PROGRESS_SLEEPING,
     MOVE | WATCH | WAKE, "the same; and nobody may test from here on"},

    /* Testing calls move bytes themselves. They wake no thread: a timer has the
     * background thread look whether they go on. */
    {BACKGROUND, PROGRESS_ON_TEST, PROGRESS_TESTING, MOVE | START | WATCH,
     "calls come: each of them moves what it can"},
    {TESTING, PROGRESS_ON_TEST, SAME, MOVE, "the tick runs already"},
    {POLLING, PROGRESS_ON_TEST, PROGRESS_POLLING_TESTED, START,
     "the owner polls; the calls own after it"},
    {POLLING_TESTED, PROGRESS_ON_TEST, SAME, 0, "the owner polls"},
    {SLEEPING, PROGRESS_ON_TEST, PROGRESS_SLEEPING_TESTED, MOVE | START | WAKE,
     "the owner sleeps: it may be done"},
    {SLEEPING_TESTED, PROGRESS_ON_TEST, SAME, MOVE | WAKE, "the same"},

    {BACKGROUND, PROGRESS_ON_ENTER, PROGRESS_POLLING, WATCH,
     "a blocking call needs no other thread: nobody else is to be woken"},
    {TESTING, PROGRESS_ON_ENTER, PROGRESS_POLLING_TESTED, WATCH,
     "the same; the tick goes on meanwhile"},

    {POLLING, PROGRESS_ON_SLEEP, PROGRESS_SLEEPING, 0,
     "the caller arms its doorbells and looks once more (rule L3)"},
    {POLLING_TESTED, PROGRESS_ON_SLEEP, PROGRESS_SLEEPING_TESTED, 0,
     "the same"},
    {SLEEPING, PROGRESS_ON_WAKE, PROGRESS_POLLING, 0,
     "the caller disarms its doorbells"},
    {SLEEPING_TESTED, PROGRESS_ON_WAKE, PROGRESS_POLLING_TESTED, 0, "the same"},

    {POLLING, PROGRESS_ON_LEAVE, PROGRESS_BACKGROUND, PROGRESS_SIGNAL | WATCH,
     "nothing is under way: the background thread minds what is not open yet"},
    {POLLING, PROGRESS_ON_LEAVE_WORK, PROGRESS_TESTING,
     PROGRESS_SIGNAL | START | WATCH,
     "a program that waits for one of several operations soon calls again"},
    {POLLING_TESTED, PROGRESS_ON_LEAVE, PROGRESS_TESTING,
     PROGRESS_SIGNAL | WATCH, "the tick says when the calls end"},
    {POLLING_TESTED, PROGRESS_ON_LEAVE_WORK, PROGRESS_TESTING,
     PROGRESS_SIGNAL | WATCH, "the same"},

    {TESTING, PROGRESS_ON_TICK, SAME, SLOW,
     "while calls come the background thread looks ever more rarely"},
    {TESTING, PROGRESS_ON_SILENT_TICK, PROGRESS_BACKGROUND, MOVE | STOP | WATCH,
     "the program computes: the background thread owns, and goes on from here"},
    {POLLING_TESTED | SLEEPING_TESTED, PROGRESS_ON_TICK, SAME, SLOW,
     "a blocking call is as good as many that test"},
    {POLLING_TESTED | SLEEPING_TESTED, PROGRESS_ON_SILENT_TICK, SAME, SLOW,
     "the same"},
    {UNTESTED, PROGRESS_ON_TICK, SAME, STOP, "a change has ended the testing"},
    {UNTESTED, PROGRESS_ON_SILENT_TICK, SAME, STOP, "the same"},
};

struct progress_step progress_core_step(enum progress_state state,
                                        enum progress_event event)
{
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        if (row->event != event || !(row->from >> state & 1)) continue;
        enum progress_state next =
            row->next == SAME ? state : (enum progress_state)row->next;
        return (struct progress_step){next, row->effects, (uint32_t)i,
                                      row->why};
    }
    PCCL_ASSERT(false); /* an event that this state cannot have */
    return (struct progress_step){.next = state};
}

uint32_t progress_core_rows(void)
{
    return ARRAY_COUNT(rows);
}
