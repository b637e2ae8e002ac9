/* progress.c - carries out the table of progress_core.h. See progress.h. */
#include "comm.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* -------------------------------------------------------------- poll tick */

static void set_tick(struct progress *p, pccl_ns period)
{
    struct itimerspec t = {.it_value.tv_nsec = period,
                           .it_interval.tv_nsec = period};
    p->tick_period = period;
    (void)timerfd_settime(p->tick_fd, 0, &t, NULL);
}

/* Arms the timer for the background thread without waking it: a call has just
 * come, and a wake-up would cost the caller more than all the rest of a launch.
 * The rest of a launch has the background thread own at the first tick, if no
 * other call comes before. */
static void start_tick(struct progress *p)
{
    p->calls_seen = p->rest ? p->calls : p->calls - 1;
    pccl_ns start = comm_now();
    set_tick(p, p->tick_first);
    /* Anywhere a few take long: the thread had no processor. */
    if (comm_now() - start > ARMING_DEAR)
        p->dear++;
    else if (p->dear > 0)
        p->dear--;
    if (p->dear >= DEAR_MANY) p->tick_first = TICK_FIRST_DEAR;
}

/* A blocking call moves the rest, and a tick in the midst of that would make it
 * wait for the background thread. */
static void put_off_tick(struct progress *p)
{
    if (p->rest && p->tick_period < TICK_RAREST) set_tick(p, TICK_RAREST);
    p->rest = false;
}

/* ---------------------------------------------------------------- effects */

static void wake_owner(struct progress *p)
{
    if (p->owner_rung) return;
    uint64_t one = 1;
    ssize_t ignored = write(p->owner_fd, &one, sizeof one);
    (void)ignored;
    p->owner_rung = true;
}

/* Bytes that arrive on one connection may have to leave on another one that
 * this pass has already visited. A testing call leaves that to the next
 * call. */
static void move(pcclComm_t *c, enum progress_event event)
{
    struct progress *p = &c->progress;
    if (p->launching)
        p->rest = comm_io_move_briefly(c);
    else if (comm_io_move(c) && event != PROGRESS_ON_TEST)
        (void)comm_io_move(c);
    comm_master_flush(c);
}

static void apply(pcclComm_t *c, enum progress_event event)
{
    struct progress *p = &c->progress;
    struct progress_step step = progress_core_step(p->state, event);
    p->state = step.next;
    if (step.effects & PROGRESS_SIGNAL) pthread_cond_broadcast(&c->changed);
    comm_master_flush(c);
    if (step.effects & PROGRESS_MOVE) move(c, event);
    if (step.effects & PROGRESS_START_TICK || (p->launching && p->rest))
        start_tick(p);
    if (step.effects & PROGRESS_SLOW_TICK && p->tick_period < TICK_RAREST)
        set_tick(p, 2 * p->tick_period);
    if (step.effects & PROGRESS_STOP_TICK) {
        set_tick(p, 0);
        p->rest = false;
    }
    if (step.effects & PROGRESS_WATCH) comm_watch(c);
    if (step.effects & PROGRESS_WAKE_OWNER) wake_owner(p);
}

/* ------------------------------------------------------- background thread */

static void on_poll_tick(void *comm, struct io_watch *w)
{
    (void)w;
    pcclComm_t *c = comm;
    struct progress *p = &c->progress;
    uint64_t count;
    ssize_t ignored = read(p->tick_fd, &count, sizeof count);
    (void)ignored;
    bool silent = p->calls == p->calls_seen;
    p->calls_seen = p->calls;
    apply(c, silent ? PROGRESS_ON_SILENT_TICK : PROGRESS_ON_TICK);
}

void progress_init(pcclComm_t *c)
{
    c->progress =
        (struct progress){.owner_fd = -1, .tick_fd = -1, .home.processor = -1};
}

bool progress_open(pcclComm_t *c)
{
    struct progress *p = &c->progress;
    progress_init(c);
    p->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    p->owner_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->tick_fd < 0 || p->owner_fd < 0) return false;
    p->tick_first = TICK_FIRST;
    return true;
}

void progress_close(pcclComm_t *c)
{
    struct progress *p = &c->progress;
    if (p->tick_fd >= 0) close(p->tick_fd);
    if (p->owner_fd >= 0) close(p->owner_fd);
    progress_init(c);
}

bool progress_start(pcclComm_t *c)
{
    struct progress *p = &c->progress;
    p->tick_watch = (struct io_watch){.fd = p->tick_fd, .ready = on_poll_tick};
    return io_loop_watch(&c->background.loop, &p->tick_watch, IO_READ);
}

void progress_woken(pcclComm_t *c)
{
    struct progress *p = &c->progress;
    if (!p->wake_pending || c->background.stopping) return;
    p->wake_pending = false;
    apply(c, PROGRESS_ON_CHANGE);
}

void progress_handled(pcclComm_t *c)
{
    struct progress *p = &c->progress;
    if (!p->event_pending || c->background.stopping) return;
    p->event_pending = false;
    apply(c, PROGRESS_ON_CHANGE);
}

/* ------------------------------------------------- calls that do not wait */

void progress_changed(pcclComm_t *c)
{
    apply(c, PROGRESS_ON_CHANGE);
}

void progress_tested(pcclComm_t *c)
{
    c->progress.calls++;
    apply(c, PROGRESS_ON_TEST);
}

void progress_launched(pcclComm_t *c)
{
    struct engine *e = c->session->engine;
    struct progress *p = &c->progress;
    engine_set_defers(e, !progress_has_owner(c));
    p->launching = true;
    progress_tested(c);
    p->launching = false;
    engine_set_defers(e, false);
    /* Such calls follow each other so closely that no other thread would get
     * the lock, and each call would wake it. */
    comm_yield_lock(c);
}

/* ------------------------------------------------------ the blocking owner */

bool progress_has_owner(const pcclComm_t *c)
{
    return progress_core_blocks(c->progress.state);
}

bool progress_sleeps(const pcclComm_t *c)
{
    return progress_core_sleeps(c->progress.state);
}

void progress_enter(pcclComm_t *c, bool reads_master)
{
    c->progress.reads_master = reads_master;
    put_off_tick(&c->progress);
    apply(c, PROGRESS_ON_ENTER);
}

void progress_leave(pcclComm_t *c)
{
    struct engine *e = c->session->engine;
    c->progress.reads_master = false;
    if (comm_io_push(c)) {
        message_progress(&c->session->messages);
        apply(c, PROGRESS_ON_CHANGE);
    }
    bool work = engine_has_work(e) || partial_has_work(&c->session->partial);
    apply(c, work ? PROGRESS_ON_LEAVE_WORK : PROGRESS_ON_LEAVE);
}

void progress_sleep(pcclComm_t *c, pccl_ns most)
{
    struct progress *p = &c->progress;
    apply(c, PROGRESS_ON_SLEEP);
    pccl_ns slept = comm_now();
    comm_watch_sleep(c, most);
    c->counters.waits++;
    c->counters.wait += comm_now() - slept;
    apply(c, PROGRESS_ON_WAKE);
    if (!p->owner_rung) return;
    uint64_t count;
    ssize_t ignored = read(p->owner_fd, &count, sizeof count);
    (void)ignored;
    p->owner_rung = false;
}

const struct wait_policy *progress_policy(pcclComm_t *c)
{
    struct progress *p = &c->progress;
    uint32_t epoch = c->session->view->epoch;
    if (!p->policy || p->policy_epoch != epoch) {
        uint32_t before = 0, members = comm_members_here(c, &before);
        p->policy =
            wait_policy(comm_members_on_own_processors(c), p->processors);
        home_begin(&p->home, before, members);
    }
    p->policy_epoch = epoch;
    return p->policy;
}

/* ---------------------------------------------------------------- polling */

static void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

enum look progress_poll(pcclComm_t *c, struct poll_loop *loop)
{
    const struct poll_policy *policy = loop->policy;
    pccl_ns end = 0;
    uint32_t idle = 0;
    for (loop->looks = 1;; loop->looks++) {
        enum look found = loop->look(c, loop);
        if (found == LOOK_DONE || found == LOOK_ELSE) return found;
        if (!loop->keeps_lock) comm_yield_lock(c);
        if (found == LOOK_MOVED) {
            end = 0;
            idle = 0;
            continue;
        }
        if ((++idle & (policy->looks_per_clock - 1)) == 0) {
            pccl_ns now = comm_now();
            home_keep(&c->progress.home, now);
            if (end == 0) end = now + policy->patience;
            if (now >= end || now >= loop->until) return LOOK_IDLE;
        }
        if (idle > policy->spins)
            sched_yield();
        else
            relax();
    }
}
