/* orders.c - see orders.h. Every run is a list of choices; the next run
 * takes the last choice that has an alternative another way. */
#include "orders.h"

#include "../sched/atomic_hooks.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    PLACES_MAX = 24, /* atomic locations */
    MESSAGES_MAX = 24,
    CHOICES_MAX = 512,
    STACK_SIZE = 64 * 1024,
    PLAIN_MAX = 32, /* plain words */
    GAP = 1 << 16,
};

/* What a thread has to see of each history, and what happened before. */
struct view {
    int64_t seen[PLACES_MAX];
    uint32_t clock[LITMUS_THREADS_MAX + 1];
};

struct message {
    int64_t at; /* place in the history */
    uint64_t value;
    bool follows; /* a change: nothing comes between it and the one before */
    struct view view;
};

struct place {
    const volatile void *address;
    size_t size;
    uint32_t count;
    struct message history[MESSAGES_MAX];
};

/* A plain word: who has written and read it last. */
struct plain_word {
    const volatile void *address;
    uint32_t writer, written;
    uint32_t read[LITMUS_THREADS_MAX + 1];
};

struct runner {
    ucontext_t context; /* where it begins, and where it goes on: */
    jmp_buf at;
    bool begun;
    void (*body)(void);
    bool over, blocked;
    int bell;
    struct view view;
    struct view pending;  /* of relaxed loads, for an acquire fence */
    struct view released; /* at the last release fence */
    char stack[STACK_SIZE];
};

static struct {
    const struct litmus *test;
    bool on;
    uint32_t current;
    jmp_buf at; /* where the explorer goes on */
    struct runner runners[LITMUS_THREADS_MAX + 1]; /* the last: alone */
    struct place places[PLACES_MAX];
    uint32_t place_count;
    struct plain_word words[PLAIN_MAX];
    uint32_t word_count;
    struct view consistent; /* of sequentially consistent accesses */
    struct {
        uint32_t rung;
        struct view view;
    } bells[LITMUS_BELLS];
    struct {
        uint32_t taken, count;
    } choices[CHOICES_MAX];
    uint32_t choice_count, choice_next;
    const char *failure;
} state;

enum { ALONE = LITMUS_THREADS_MAX };

static struct runner *self(void)
{
    return &state.runners[state.current];
}

static void fail(const char *text)
{
    if (!state.failure) state.failure = text;
}

static void limit(bool within, const char *what)
{
    if (within) return;
    fprintf(stderr, "litmus: %s: more %s than there is room for\n",
            state.test->name, what);
    abort();
}

static uint32_t choose(uint32_t count)
{
    if (count < 2) return 0;
    limit(state.choice_next < CHOICES_MAX, "choices");
    uint32_t i = state.choice_next++;
    if (i == state.choice_count) {
        state.choices[i].taken = 0;
        state.choices[i].count = count;
        state.choice_count++;
    }
    return state.choices[i].taken;
}

/* False: there is no other way. */
static bool next_choices(void)
{
    while (state.choice_count > 0) {
        uint32_t last = state.choice_count - 1;
        if (++state.choices[last].taken < state.choices[last].count)
            return true;
        state.choice_count--;
    }
    return false;
}

/* ------------------------------------------------------------------- views */

static void join(struct view *to, const struct view *from)
{
    for (uint32_t i = 0; i < PLACES_MAX; i++)
        if (from->seen[i] > to->seen[i]) to->seen[i] = from->seen[i];
    for (uint32_t i = 0; i <= LITMUS_THREADS_MAX; i++)
        if (from->clock[i] > to->clock[i]) to->clock[i] = from->clock[i];
}

/* Histories only: to be before in the order of all sequentially consistent
 * accesses is not to happen before. */
static void join_seen(struct view *to, const struct view *from)
{
    for (uint32_t i = 0; i < PLACES_MAX; i++)
        if (from->seen[i] > to->seen[i]) to->seen[i] = from->seen[i];
}

static struct place *place_of(const volatile void *address, size_t size)
{
    for (uint32_t i = 0; i < state.place_count; i++)
        if (state.places[i].address == address) return &state.places[i];
    limit(state.place_count < PLACES_MAX, "locations");
    struct place *p = &state.places[state.place_count++];
    *p = (struct place){.address = address, .size = size, .count = 1};
    p->history[0] = (struct message){.value = hook_peek(address, size)};
    return p;
}

static uint32_t index_of(const struct place *p)
{
    return (uint32_t)(p - state.places);
}

static void to_explorer(void)
{
    struct runner *r = self();
    if (state.current == ALONE) return;
    if (_setjmp(r->at) == 0) _longjmp(state.at, 1);
}

static bool acquires(int order)
{
    return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static bool releases(int order)
{
    return order != __ATOMIC_RELAXED && order != __ATOMIC_ACQUIRE &&
           order != __ATOMIC_CONSUME;
}

static int64_t least(const struct place *p, int order)
{
    int64_t at = self()->view.seen[index_of(p)];
    int64_t in_order = state.consistent.seen[index_of(p)];
    return order == __ATOMIC_SEQ_CST && in_order > at ? in_order : at;
}

static void see(const struct place *p, const struct message *m, int order)
{
    struct runner *r = self();
    uint32_t i = index_of(p);
    if (m->at > r->view.seen[i]) r->view.seen[i] = m->at;
    join(acquires(order) ? &r->view : &r->pending, &m->view);
    if (order == __ATOMIC_SEQ_CST && m->at > state.consistent.seen[i])
        state.consistent.seen[i] = m->at;
}

/* Memory holds the end of each history. */
static void put(struct place *p, uint32_t where, int64_t at, uint64_t value,
                int order, const struct view *before)
{
    struct runner *r = self();
    uint32_t i = index_of(p);
    limit(p->count < MESSAGES_MAX, "stores");
    for (uint32_t k = p->count++; k > where; k--)
        p->history[k] = p->history[k - 1];
    r->view.seen[i] = at;
    r->view.clock[state.current]++;
    struct message *m = &p->history[where];
    *m = (struct message){.at = at, .value = value, .follows = before != NULL};
    m->view = releases(order) ? r->view : r->released;
    m->view.seen[i] = at;
    if (before) join(&m->view, before);
    if (order == __ATOMIC_SEQ_CST) state.consistent.seen[i] = at;
    hook_poke((volatile void *)(uintptr_t)p->address, p->size,
              p->history[p->count - 1].value);
}

/* ------------------------------------------------------------------- hooks */

uint64_t hook_load(const volatile void *at, size_t size, int order)
{
    if (!state.on) return hook_peek(at, size);
    to_explorer();
    struct place *p = place_of(at, size);
    uint32_t first = p->count - 1;
    while (first > 0 && p->history[first - 1].at >= least(p, order)) first--;
    /* The newest first. */
    const struct message *m =
        &p->history[p->count - 1 - choose(p->count - first)];
    see(p, m, order);
    return m->value;
}

void hook_store(volatile void *at, size_t size, uint64_t value, int order)
{
    if (!state.on) {
        hook_poke(at, size, value);
        return;
    }
    to_explorer();
    struct place *p = place_of(at, size);
    uint32_t ways[MESSAGES_MAX] = {0}; /* the first store is always one */
    uint32_t count = 0;
    for (uint32_t k = p->count; k > 0; k--) {
        if (p->history[k - 1].at < least(p, order)) break;
        if (k == p->count || !p->history[k].follows) ways[count++] = k;
    }
    uint32_t where = ways[choose(count)];
    int64_t before = p->history[where - 1].at;
    int64_t place = before + GAP;
    if (where < p->count) place = before + (p->history[where].at - before) / 2;
    limit(place > before, "stores between two");
    put(p, where, place, value, order, NULL);
}

static uint64_t change(volatile void *at, size_t size, uint64_t value,
                       const struct message *last, int order)
{
    struct place *p = place_of(at, size);
    struct view before = last->view;
    uint64_t old = last->value;
    see(p, last, order);
    put(p, p->count, last->at + GAP, value, order, &before);
    return old;
}

uint64_t hook_change(volatile void *at, size_t size, enum hook_change kind,
                     uint64_t operand, int order)
{
    if (!state.on) {
        uint64_t old = hook_peek(at, size);
        hook_poke(at, size, hook_apply(kind, old, operand));
        return old;
    }
    to_explorer();
    const struct place *p = place_of(at, size);
    const struct message *last = &p->history[p->count - 1];
    return change(at, size, hook_apply(kind, last->value, operand), last,
                  order);
}

uint64_t hook_compare(volatile void *at, size_t size, uint64_t expected,
                      uint64_t desired, int order)
{
    if (!state.on) {
        uint64_t old = hook_peek(at, size);
        if (old == expected) hook_poke(at, size, desired);
        return old;
    }
    to_explorer();
    const struct place *p = place_of(at, size);
    const struct message *last = &p->history[p->count - 1];
    if (last->value == expected) return change(at, size, desired, last, order);
    see(p, last, order);
    return last->value;
}

void hook_fence(int order)
{
    if (!state.on) return;
    to_explorer();
    struct runner *r = self();
    if (acquires(order)) join(&r->view, &r->pending);
    if (order == __ATOMIC_SEQ_CST) {
        join_seen(&r->view, &state.consistent);
        join_seen(&state.consistent, &r->view);
    }
    if (releases(order)) {
        r->view.clock[state.current]++;
        r->released = r->view;
    }
}

static struct plain_word *word_of(const volatile void *at)
{
    for (uint32_t i = 0; i < state.word_count; i++)
        if (state.words[i].address == at) return &state.words[i];
    limit(state.word_count < PLAIN_MAX, "plain words");
    struct plain_word *w = &state.words[state.word_count++];
    *w = (struct plain_word){.address = at, .writer = ALONE};
    return w;
}

/* An access is to happen after all that conflict with it. */
void hook_plain(const volatile void *at, size_t size, bool writes)
{
    const char *from = state.test ? state.test->shared : NULL;
    const volatile char *byte = at;
    (void)size;
    if (!state.on || !from || byte < from ||
        byte >= from + state.test->shared_size)
        return;
    struct plain_word *w = word_of(at);
    struct view *view = &self()->view;
    uint32_t now = ++view->clock[state.current];
    bool ordered =
        w->writer == state.current || w->written <= view->clock[w->writer];
    for (uint32_t i = 0; writes && i <= LITMUS_THREADS_MAX; i++)
        ordered &= w->read[i] <= view->clock[i];
    if (!ordered) fail("two plain accesses race");
    if (writes) {
        w->writer = state.current;
        w->written = now;
    } else {
        w->read[state.current] = now;
    }
}

/* ------------------------------------------------------------------- bells */

void litmus_check(bool condition, const char *text)
{
    if (!condition) fail(text);
}

void litmus_signal(int bell)
{
    to_explorer();
    self()->view.clock[state.current]++;
    state.bells[bell].rung++;
    join(&state.bells[bell].view, &self()->view);
}

void litmus_wait(int bell)
{
    struct runner *r = self();
    r->blocked = true;
    r->bell = bell;
    to_explorer();
    r->blocked = false;
    join(&r->view, &state.bells[bell].view);
}

void litmus_take(int bell)
{
    to_explorer();
    state.bells[bell].rung = 0;
    join(&self()->view, &state.bells[bell].view);
}

/* -------------------------------------------------------------------- runs */

static void run_body(void)
{
    self()->body();
    self()->over = true;
    to_explorer();
}

static bool can_run(const struct runner *r)
{
    if (!r->body || r->over) return false;
    return !r->blocked || state.bells[r->bell].rung > 0;
}

static void begin_run(const struct litmus *test)
{
    state.place_count = state.word_count = 0;
    state.choice_next = 0;
    state.current = ALONE;
    memset(&state.consistent, 0, sizeof state.consistent);
    memset(state.bells, 0, sizeof state.bells);
    state.on = false;
    test->prepare();
    state.on = true;
    for (uint32_t i = 0; i <= LITMUS_THREADS_MAX; i++) {
        struct runner *r = &state.runners[i];
        r->body = i < LITMUS_THREADS_MAX ? test->threads[i] : NULL;
        r->over = r->blocked = r->begun = false;
        memset(&r->view, 0, sizeof r->view);
        memset(&r->pending, 0, sizeof r->pending);
        memset(&r->released, 0, sizeof r->released);
        if (!r->body) continue;
        (void)getcontext(&r->context);
        r->context.uc_stack.ss_sp = r->stack;
        r->context.uc_stack.ss_size = sizeof r->stack;
        r->context.uc_link = NULL;
        makecontext(&r->context, run_body, 0);
    }
}

/* Without system calls but for the first time. */
static void to_runner(struct runner *r)
{
    if (_setjmp(state.at) != 0) return;
    if (r->begun) _longjmp(r->at, 1);
    r->begun = true;
    (void)setcontext(&r->context);
}

static void run(const struct litmus *test)
{
    uint32_t last = ALONE;
    uint32_t left = test->preemptions;
    begin_run(test);
    while (!state.failure) {
        uint32_t ready[LITMUS_THREADS_MAX];
        uint32_t count = 0;
        for (uint32_t i = 0; i < LITMUS_THREADS_MAX; i++)
            if (can_run(&state.runners[i])) ready[count++] = i;
        if (count == 0) break;
        bool goes_on = last != ALONE && can_run(&state.runners[last]);
        bool stays = goes_on && test->preemptions > 0 && left == 0;
        state.current = stays ? last : ready[choose(count)];
        if (goes_on && state.current != last && left > 0) left--;
        last = state.current;
        to_runner(self());
    }
    for (uint32_t i = 0; i < LITMUS_THREADS_MAX; i++) {
        const struct runner *r = &state.runners[i];
        if (r->body && !r->over) fail("a thread waits for ever");
    }
    state.current = ALONE;
    state.on = false;
    if (!state.failure && test->finish) test->finish();
}

struct litmus_result litmus_explore(const struct litmus *test, uint64_t most)
{
    struct litmus_result result = {0};
    state.test = test;
    state.choice_count = 0;
    state.failure = NULL;
    do {
        run(test);
        result.runs++;
        result.failure = state.failure;
        if (state.failure) return result;
        if (result.runs == most) return result;
    } while (next_choices());
    result.complete = true;
    return result;
}
