/* sched.c - the scheduler: who runs, when time moves, and what is a failure.
 * See sched.h. */
#include "sched.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHANGES_MAX = 8,
    TRACE_SIZE = 1 << 16,
    STREAK_MAX = 20000, /* points; then a priority gives way */
};

#define IDLE_MAX (100 * SCHED_MS) /* half of the library's SLEEP_MAX */
#define TIME_MAX (600 * SCHED_S)
#define START (1000 * SCHED_S)

struct sched_options sched_options;

static struct {
    bool on;
    struct sched_thread threads[SCHED_THREADS_MAX];
    int count;
    struct sched_thread *current;
    uint64_t random, hash, steps, generation;
    int64_t now, idle, next_due;
    bool prompt, dirty;
    uint64_t changes[CHANGES_MAX];
    uint32_t lowest;
    uint64_t dead; /* set of members */
    int doomed;
    uint64_t doomed_at;
    int frozen;
    int64_t frozen_until;
    struct {
        int thread;
        enum sched_what what;
        uint64_t detail;
        int64_t at;
    } trace[TRACE_SIZE];
} world = {.doomed = SCHED_ALL, .frozen = SCHED_ALL};

static const char *const names[SCHED_WHAT_COUNT] = {
    "load",   "store",  "change", "fence", "lock",  "unlock",
    "signal", "create", "join",   "yield", "sleep", "poll",
    "read",   "write",  "socket", "timer", "time",  "run"};
static const char *const waits[] = {"lock",        "condition", "thread",
                                    "descriptors", "time",      "program"};

bool sched_is_on(void)
{
    return world.on;
}

struct sched_thread *sched_self(void)
{
    return world.current;
}

uint64_t sched_hash(void)
{
    return world.hash;
}

uint64_t sched_steps(void)
{
    return world.steps;
}

int64_t sched_now(void)
{
    return world.now;
}

/* splitmix64 */
uint64_t sched_random(void)
{
    uint64_t z = world.random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t sched_below(uint32_t limit)
{
    return (uint32_t)(sched_random() % limit);
}

/* ----------------------------------------------------------------- reports */

static void report(void)
{
    uint64_t lines =
        sched_options.trace < TRACE_SIZE ? sched_options.trace : TRACE_SIZE;
    if (lines > world.steps) lines = world.steps;
    for (uint64_t i = world.steps - lines; i < world.steps; i++)
        fprintf(stderr, "  %12lld ns thread %d %s %llx\n",
                (long long)(world.trace[i % TRACE_SIZE].at - START),
                world.trace[i % TRACE_SIZE].thread,
                names[world.trace[i % TRACE_SIZE].what],
                (unsigned long long)world.trace[i % TRACE_SIZE].detail);
    for (int i = 0; i < world.count; i++) {
        const struct sched_thread *t = &world.threads[i];
        if (t->state == SCHED_OVER) continue;
        fprintf(stderr, "  thread %d of member %d: ", i, t->member);
        if (t->state == SCHED_READY) {
            fprintf(stderr, "ready\n");
            continue;
        }
        fprintf(stderr, "waits for %s", waits[t->kind]);
        if (t->until != SCHED_NEVER)
            fprintf(stderr, ", until %lld ms",
                    (long long)((t->until - START) / SCHED_MS));
        for (nfds_t f = 0; t->kind == SCHED_ON_FDS && f < t->fd_count; f++)
            fprintf(stderr, " %d:%x", t->fds[f].fd, t->fds[f].events);
        fprintf(stderr, "\n");
    }
}

void sched_fail(const char *format, ...)
{
    va_list args;
    fprintf(stderr,
            "after %llu points, %.6f s: ", (unsigned long long)world.steps,
            (double)(world.now - START) / (double)SCHED_S);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    if (sched_options.trace) report();
    _exit(1);
}

void sched_note(enum sched_what what, uint64_t detail)
{
    const struct sched_thread *t = world.current;
    uint64_t more = (uint64_t)t->number << 8 | what;
    world.hash = (world.hash ^ more) * UINT64_C(0x100000001b3);
    world.hash = (world.hash ^ detail) * UINT64_C(0x100000001b3);
    uint64_t at = world.steps++ % TRACE_SIZE;
    world.trace[at].thread = t->number;
    world.trace[at].what = what;
    world.trace[at].detail = detail;
    world.trace[at].at = world.now;
    if (world.steps > sched_options.points) sched_fail("it does not end");
}

/* ------------------------------------------------------------------- turns */

static void take_turn(struct sched_thread *t)
{
    while (__atomic_exchange_n(&t->turn, 0, __ATOMIC_ACQUIRE) == 0)
        (void)syscall(SYS_futex, &t->turn, FUTEX_WAIT_PRIVATE, 0, NULL);
}

static void give_turn(struct sched_thread *t)
{
    world.current = t;
    t->streak = 0;
    __atomic_store_n(&t->turn, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &t->turn, FUTEX_WAKE_PRIVATE, 1);
}

static bool may_run(const struct sched_thread *t)
{
    if (t->member == SCHED_ALL) return true;
    if (world.dead >> t->member & 1) return false;
    return t->member != world.frozen || world.now >= world.frozen_until;
}

static void set_ready(struct sched_thread *t, bool timed_out)
{
    t->state = SCHED_READY;
    t->timed_out = timed_out;
    world.dirty = true;
}

/* Whoever has what it waits for, or waits for too long, becomes ready. */
static void look_for_ready(void)
{
    int64_t next = sched_next_timer();
    if (next <= world.now) {
        sched_fire_timers(world.now);
        next = sched_next_timer();
    }
    if (world.frozen != SCHED_ALL && world.now < world.frozen_until &&
        world.frozen_until < next)
        next = world.frozen_until;
    for (int i = 0; i < world.count; i++) {
        struct sched_thread *t = &world.threads[i];
        if (t->state != SCHED_BLOCKED || !may_run(t)) continue;
        if (t->kind == SCHED_ON_FDS && t->looked != world.generation) {
            t->looked = world.generation;
            if (sched_look(t->fds, t->fd_count) > 0) set_ready(t, false);
        } else if (t->kind == SCHED_ON_PROGRAM &&
                   t->condition((void *)(uintptr_t)t->object)) {
            set_ready(t, false);
        } else if (t->kind == SCHED_ON_COND && sched_options.spurious &&
                   sched_below(256) == 0) {
            set_ready(t, false);
        }
        if (t->state == SCHED_BLOCKED && t->until <= world.now)
            set_ready(t, true);
        if (t->state == SCHED_BLOCKED && t->until < next) next = t->until;
    }
    world.next_due = next;
}

/* Nobody can run: time passes until somebody can. */
static void pass_time(void)
{
    int64_t next = world.next_due;
    if (next == SCHED_NEVER) sched_fail("nobody can run any more: deadlock");
    int64_t step = next - world.now;
    world.idle += step;
    world.now = next;
    sched_note(SCHED_TIME, (uint64_t)step);
    if (world.prompt && world.idle > IDLE_MAX)
        sched_fail("a lost wake-up: only a timer goes on (%.3f s)",
                   (double)step / (double)SCHED_S);
    if (world.now - START > TIME_MAX) sched_fail("nothing ends: livelock");
}

static struct sched_thread *pick(struct sched_thread **ready, int count)
{
    struct sched_thread *best = ready[0];
    if (sched_options.switch_one_in > 0)
        return ready[sched_below((uint32_t)count)];
    for (int i = 1; i < count; i++)
        if (ready[i]->priority > best->priority) best = ready[i];
    return best;
}

static struct sched_thread *choose(void)
{
    for (;;) {
        struct sched_thread *ready[SCHED_THREADS_MAX];
        int count = 0;
        look_for_ready();
        world.dirty = false;
        for (int i = 0; i < world.count; i++) {
            struct sched_thread *t = &world.threads[i];
            if (t->state == SCHED_READY && may_run(t)) ready[count++] = t;
        }
        if (count > 0) return pick(ready, count);
        pass_time();
    }
}

static void go_on(void)
{
    struct sched_thread *self = world.current;
    struct sched_thread *next = choose();
    if (next == self) return;
    give_turn(next);
    take_turn(self);
}

/* ------------------------------------------------------------------ points */

static bool is_change(void)
{
    for (uint32_t i = 0; i < sched_options.changes; i++)
        if (world.changes[i] == world.steps) return true;
    return false;
}

static void maybe_kill(void)
{
    if (world.doomed == SCHED_ALL || world.steps < world.doomed_at) return;
    int member = world.doomed;
    world.doomed = SCHED_ALL;
    sched_kill(member);
}

void sched_point(enum sched_what what, uint64_t detail)
{
    if (!world.on) return;
    struct sched_thread *self = world.current;
    if (self->store_count > 0 && sched_below(4) == 0) {
        /* Others run while its stores are on their way. */
        self->priority = world.lowest--;
        go_on();
    }
    if (what > SCHED_STORE) sched_drain(self, SCHED_STORES_MAX);
    sched_note(what, detail);
    maybe_kill();
    bool due = world.now >= world.next_due;
    bool turn;
    if (sched_options.switch_one_in > 0) {
        turn = sched_below(sched_options.switch_one_in) == 0;
    } else {
        bool change = is_change() || ++self->streak > STREAK_MAX;
        if (change) self->priority = world.lowest--;
        turn = change || world.dirty || due;
    }
    if (turn || !may_run(self)) go_on();
}

void sched_point_yield(void)
{
    if (!world.on) return;
    sched_drain(world.current, SCHED_STORES_MAX);
    sched_note(SCHED_YIELD, 0);
    maybe_kill();
    world.current->priority = world.lowest--;
    go_on();
}

bool sched_block(enum sched_wait_kind kind, const void *object, int64_t until)
{
    struct sched_thread *self = world.current;
    if (!world.on) sched_fail("a thread blocks outside of the schedule");
    sched_drain(self, SCHED_STORES_MAX);
    self->state = SCHED_BLOCKED;
    self->kind = kind;
    self->object = object;
    self->until = until;
    self->looked = 0;
    go_on();
    return !self->timed_out;
}

void sched_wake(enum sched_wait_kind kind, const void *object, bool all)
{
    struct sched_thread *found[SCHED_THREADS_MAX];
    uint32_t count = 0;
    for (int i = 0; i < world.count; i++) {
        struct sched_thread *t = &world.threads[i];
        if (t->state == SCHED_BLOCKED && t->kind == kind && t->object == object)
            found[count++] = t;
    }
    if (count == 0) return;
    if (!all) set_ready(found[sched_below(count)], false);
    for (uint32_t i = 0; all && i < count; i++) set_ready(found[i], false);
}

void sched_fds_changed(void)
{
    world.generation++;
    world.dirty = true;
}

int64_t sched_read_clock(void)
{
    if (!world.on) return world.now;
    world.now += 500 + sched_below(8000); /* few looks fill a patience */
    if (sched_options.slow > 0 && sched_below(sched_options.slow) == 0)
        world.now += sched_below(3 * SCHED_MS);
    return world.now;
}

/* ----------------------------------------------------------------- threads */

struct sched_thread *sched_new_thread(void *(*body)(void *), void *argument)
{
    if (world.count == SCHED_THREADS_MAX) sched_fail("too many threads");
    struct sched_thread *t = &world.threads[world.count];
    *t = (struct sched_thread){.number = world.count++,
                               .member = world.current->member,
                               .until = SCHED_NEVER,
                               .priority = 1000000 + sched_below(1000000),
                               .body = body,
                               .argument = argument};
    set_ready(t, false);
    return t;
}

struct sched_thread *sched_find(pthread_t id)
{
    for (int i = world.count - 1; i > 0; i--)
        if (pthread_equal(world.threads[i].id, id)) return &world.threads[i];
    return NULL;
}

void sched_thread_begins(struct sched_thread *t)
{
    take_turn(t);
}

void sched_thread_ends(struct sched_thread *t)
{
    sched_drain(t, SCHED_STORES_MAX);
    t->state = SCHED_OVER;
    sched_wake(SCHED_ON_THREAD, t, true);
    give_turn(choose());
}

/* ---------------------------------------------------------------- programs */

void sched_begin(const struct sched_options *options)
{
    sched_options = *options;
    world.random = options->seed * UINT64_C(0xda942042e4dd58b5) + 1;
    world.hash = UINT64_C(0xcbf29ce484222325);
    world.now = START;
    world.generation = 1;
    world.lowest = 999999;
    world.threads[0] = (struct sched_thread){.member = SCHED_ALL,
                                             .state = SCHED_READY,
                                             .until = SCHED_NEVER,
                                             .priority = 2000000};
    world.current = &world.threads[0];
    world.count = 1;
    for (uint32_t i = 0; i < options->changes; i++)
        world.changes[i] = sched_random() % options->horizon;
    world.on = true;
}

void sched_end(void)
{
    world.on = false;
}

void sched_set_member(int member)
{
    world.current->member = member;
}

void sched_kill(int member)
{
    world.dead |= UINT64_C(1) << member;
    sched_close_all(member);
    sched_fds_changed();
    if (!may_run(world.current)) go_on();
}

void sched_kill_later(int member, uint64_t points)
{
    world.doomed = member;
    world.doomed_at = world.steps + points;
}

bool sched_is_dead(int member)
{
    return world.dead >> member & 1;
}

void sched_freeze(int member, int64_t time)
{
    world.frozen = member;
    world.frozen_until = world.now + time;
    if (!may_run(world.current)) go_on();
}

void sched_set_prompt(bool prompt)
{
    world.prompt = prompt;
    world.idle = 0;
}

void sched_progress(void)
{
    world.idle = 0;
}

void sched_wait(bool (*condition)(void *user), void *user)
{
    struct sched_thread *self = world.current;
    self->condition = condition;
    if (!condition(user))
        (void)sched_block(SCHED_ON_PROGRAM, user, SCHED_NEVER);
}
