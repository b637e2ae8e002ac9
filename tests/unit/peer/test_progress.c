/* test_progress.c - which thread moves the bytes: all sequences of events,
 * with calls, a background thread and partners as a model around the table.
 * After each step some thread handles pending work, a sleeping owner is woken,
 * and a waiting caller is signalled. Every effect of the table is needed:
 * without it some sequence breaks one of these rules. */
#include "../unit.h"

#include "../../../src/peer/progress_core.h"

enum tick { TICK_OFF, TICK_DUE, TICK_ON };

/* The complete state, as small numbers. */
struct world {
    enum progress_state state;
    enum tick tick;   /* DUE: the background thread is to start it */
    bool watched;     /* the background thread watches open connections */
    bool owner;       /* a blocking call is inside */
    bool waiter;      /* another one waits for it */
    bool signalled;   /* ... and has been signalled */
    bool armed, rung; /* the sleeper's doorbells; one of them, or its eventfd */
    bool pending;     /* bytes have arrived that no thread has seen */
    bool unsent;      /* a call has made bytes to send */
    bool left;        /* new work came up in a testing call's pass */
    bool stale;       /* the watched set is not that of the session */
};

enum action {
    CALL_CHANGES,
    CALL_TESTS,
    CALL_BLOCKS,
    WAITER_GOES_ON,
    OWNER_MOVES,
    OWNER_SLEEPS,
    OWNER_WAKES,
    OWNER_LEAVES,
    OWNER_LEAVES_WORK,
    BYTES_ARRIVE,
    THREAD_SEES_BYTES,
    THREAD_STARTS_TICK,
    TICK_AFTER_CALLS,
    TICK_IN_SILENCE,
    ACTION_COUNT,
};

enum { WORLDS = 6 * 3 << 10, NO_ROW = 1000 };

/* The omitted effect, and the effect in the table. */
static struct {
    uint32_t row, effect;
} left_out;
static bool used[NO_ROW];
static uint32_t effects_of[NO_ROW];

static bool explain; /* prints the broken rule */

static bool check(bool holds, const char *what, const struct world *w)
{
    if (!holds && explain)
        print_error("%s; state %d, tick %d\n", what, (int)w->state,
                    (int)w->tick);
    return holds;
}

static bool is_tested(enum progress_state state)
{
    return state == PROGRESS_TESTING || state == PROGRESS_POLLING_TESTED ||
           state == PROGRESS_SLEEPING_TESTED;
}

/* The reaction of progress.c to an event. A testing call makes one pass, which
 * may leave bytes to send; others go on while bytes move. */
static bool step(struct world *w, enum progress_event event)
{
    struct progress_step s = progress_core_step(w->state, event);
    used[s.row] = true;
    effects_of[s.row] = s.effects;
    if (s.row == left_out.row) s.effects &= ~left_out.effect;
    bool slept = progress_core_sleeps(w->state);
    w->state = s.next;
    if (s.effects & PROGRESS_MOVE) {
        w->pending = w->unsent = false;
        w->left = event == PROGRESS_ON_TEST;
    }
    if (s.effects & PROGRESS_START_TICK) w->tick = TICK_DUE;
    if (s.effects & PROGRESS_STOP_TICK && w->tick == TICK_ON)
        w->tick = TICK_OFF;
    if (s.effects & PROGRESS_WATCH) {
        w->watched = w->state == PROGRESS_BACKGROUND;
        w->stale = false;
    }
    if (s.effects & PROGRESS_WAKE_OWNER) w->rung = true;
    if (s.effects & PROGRESS_SIGNAL) w->signalled = w->waiter;
    bool call = event == PROGRESS_ON_CHANGE || event == PROGRESS_ON_TEST;
    return check(!call || !slept || w->rung, "the sleeper is not woken", w);
}

static bool invariants(const struct world *w)
{
    bool blocks = progress_core_blocks(w->state);
    bool sleeps = progress_core_sleeps(w->state);
    bool polls = blocks && !sleeps;
    bool ticks = w->state == PROGRESS_TESTING && w->tick != TICK_OFF;
    return check(blocks == w->owner, "not exactly one owner", w) &&
           check(w->armed == sleeps, "armed without a sleeper", w) &&
           check(w->watched == (w->state == PROGRESS_BACKGROUND),
                 "not exactly one that watches", w) &&
           check(!is_tested(w->state) || w->tick != TICK_OFF,
                 "nobody checks that testing calls still come", w) &&
           check(!w->pending || w->watched || ticks || polls || w->rung,
                 "nobody looks for what has come", w) &&
           check(!w->unsent || polls, "nobody sends", w) &&
           check(!w->left || !sleeps || w->rung, "nobody sends the rest", w) &&
           check(!w->left || w->state != PROGRESS_BACKGROUND,
                 "the last call that tests leaves something to send", w) &&
           check(!w->stale, "connections that nobody watches", w) &&
           check(!w->waiter || w->owner || w->signalled,
                 "a caller waits for nobody", w);
}

/* A call that reports a change. */
static bool call(struct world *w, enum progress_event event)
{
    w->unsent = true;
    w->stale = event == PROGRESS_ON_CHANGE;
    return step(w, event);
}

static bool enter(struct world *w)
{
    w->owner = w->stale = true; /* it may read the master's messages */
    return step(w, PROGRESS_ON_ENTER);
}

static bool blocks(struct world *w)
{
    if (w->owner) { /* it waits, and has changed something */
        w->waiter = true;
        w->signalled = false;
        return call(w, PROGRESS_ON_CHANGE);
    }
    return enter(w);
}

static bool leave(struct world *w, enum progress_event event)
{
    w->owner = false;
    w->unsent = w->left = false; /* pushed before */
    w->stale = true;
    return step(w, event);
}

static bool sleeps(struct world *w)
{
    w->armed = true;
    w->rung = w->pending; /* it polls once more */
    return step(w, PROGRESS_ON_SLEEP);
}

static bool wakes(struct world *w)
{
    w->armed = w->rung = false;
    return step(w, PROGRESS_ON_WAKE);
}

static bool ticks(struct world *w, enum progress_event event)
{
    return step(w, event) && check(is_tested(w->state) || w->tick != TICK_ON,
                                   "a tick goes on for nobody", w);
}

/* Whether the action can happen now. */
static bool possible(const struct world *w, enum action action)
{
    bool asleep = progress_core_sleeps(w->state);
    switch (action) {
    case WAITER_GOES_ON:
        return w->waiter && w->signalled;
    case CALL_BLOCKS:
        return !w->waiter;
    case OWNER_MOVES:
    case OWNER_LEAVES:
    case OWNER_LEAVES_WORK:
        return w->owner && !asleep;
    case OWNER_SLEEPS:
        return w->owner && !asleep && !w->unsent && !w->left;
    case OWNER_WAKES: /* rung, or after a time */
        return w->owner && asleep;
    case THREAD_SEES_BYTES:
        return w->watched && w->pending;
    case THREAD_STARTS_TICK:
        return w->tick == TICK_DUE;
    case TICK_AFTER_CALLS:
    case TICK_IN_SILENCE:
        return w->tick == TICK_ON;
    default:
        return true;
    }
}

/* False: a rule is broken. */
static bool act(struct world *w, enum action action)
{
    switch (action) {
    case CALL_CHANGES:
        return call(w, PROGRESS_ON_CHANGE);
    case CALL_TESTS:
        return call(w, PROGRESS_ON_TEST);
    case CALL_BLOCKS:
        return blocks(w);
    case WAITER_GOES_ON:
        w->signalled = false;
        if (w->owner) return true; /* another one was faster: waits again */
        w->waiter = false;
        return enter(w);
    case OWNER_MOVES:
        w->pending = w->unsent = w->left = false;
        return true;
    case OWNER_SLEEPS:
        return sleeps(w);
    case OWNER_WAKES:
        return wakes(w);
    case OWNER_LEAVES:
        return leave(w, PROGRESS_ON_LEAVE);
    case OWNER_LEAVES_WORK:
        return leave(w, PROGRESS_ON_LEAVE_WORK);
    case BYTES_ARRIVE:
        w->pending = true;
        w->rung |= w->armed;
        return true;
    case THREAD_SEES_BYTES:
        return call(w, PROGRESS_ON_CHANGE);
    case THREAD_STARTS_TICK:
        w->tick = TICK_ON;
        return true;
    case TICK_AFTER_CALLS:
        return ticks(w, PROGRESS_ON_TICK);
    case TICK_IN_SILENCE:
        return ticks(w, PROGRESS_ON_SILENT_TICK);
    case ACTION_COUNT:
        break;
    }
    return false;
}

static uint32_t number_of(const struct world *w)
{
    uint32_t bits = 0;
    const bool all[] = {w->watched, w->owner, w->waiter,  w->signalled,
                        w->armed,   w->rung,  w->pending, w->unsent,
                        w->stale,   w->left};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) bits |= (uint32_t)all[i] << i;
    return ((uint32_t)w->state * 3 + (uint32_t)w->tick) << 10 | bits;
}

/* Visits every world that any sequence of actions leads to. False: a rule is
 * broken in one of them. */
static bool explore(uint32_t *count)
{
    static struct world queue[WORLDS];
    static bool seen[WORLDS];
    uint32_t end = 0;
    memset(seen, 0, sizeof seen);
    queue[end++] = (struct world){.watched = true};
    seen[number_of(&queue[0])] = true;
    for (uint32_t next = 0; next < end; next++) {
        for (int a = 0; a < ACTION_COUNT; a++) {
            struct world w = queue[next];
            if (!possible(&w, (enum action)a)) continue;
            if (!act(&w, (enum action)a) || !invariants(&w)) {
                if (explain) print_error("... after action %d\n", a);
                return false;
            }
            if (seen[number_of(&w)]) continue;
            seen[number_of(&w)] = true;
            queue[end++] = w;
        }
    }
    *count = end;
    return true;
}

static void test_every_sequence(void **state)
{
    (void)state;
    uint32_t count = 0;
    left_out.row = NO_ROW;
    explain = true;
    assert_true(explore(&count));
    print_message("%u worlds\n", count);
    for (uint32_t i = 0; i < progress_core_rows(); i++) assert_true(used[i]);
}

/* The tick's pace affects speed alone. */
static void test_every_effect_is_needed(void **state)
{
    (void)state;
    uint32_t count = 0;
    int idle = 0;
    left_out.row = NO_ROW;
    explain = false;
    assert_true(explore(&count));
    for (uint32_t row = 0; row < progress_core_rows(); row++) {
        uint32_t all = effects_of[row];
        for (uint32_t effect = 1; effect <= all; effect *= 2) {
            if (!(all & effect) || effect == PROGRESS_SLOW_TICK) continue;
            left_out.row = row;
            left_out.effect = effect;
            if (!explore(&count)) continue;
            print_error("row %u does not need effect %u\n", row, effect);
            idle++;
        }
    }
    assert_int_equal(idle, 0);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(test_every_sequence),
        cmocka_unit_test(test_every_effect_is_needed)};
    return cmocka_run_group_tests(cases, NULL, NULL);
}
