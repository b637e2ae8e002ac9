/* comm.c - threads and life of a communicator. See comm.h. */
#include "comm.h"

#include "comm_save.h"
#include "../base/clock.h"
#include "../base/descriptors.h"
#include "../base/lacking.h"
#include "../base/env.h"
#include "../base/float_env.h"
#include "../base/host.h"
#include "../base/log.h"
#include "../base/memory_supply.h"
#include "../base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

pccl_ns comm_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

void comm_set_error(pcclComm_t *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
    c->explained = true;
    LOG(LOG_INFO, "%s", c->error);
}

void comm_lock(pcclComm_t *c)
{
    if (pthread_mutex_trylock(&c->lock) == 0) return;
    atomic_fetch_add(&c->waiting, 1);
    pthread_mutex_lock(&c->lock);
    atomic_fetch_sub(&c->waiting, 1);
}

void comm_yield_lock(pcclComm_t *c)
{
    if (atomic_load(&c->waiting) == 0) return;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < LOCK_YIELDS_MAX && atomic_load(&c->waiting) > 0; i++)
        sched_yield();
    pthread_mutex_lock(&c->lock);
}

static void on_changed(void *comm)
{
    pcclComm_t *c = comm;
    pthread_cond_broadcast(&c->changed);
}

uint32_t comm_members_here(const pcclComm_t *c, uint32_t *before)
{
    const struct view *v = c->session->view;
    uint32_t here = 0;
    uint64_t host = links_host(c->session->links);
    for (uint32_t i = 0; i < v->size; i++) {
        if (before && i == v->rank) *before = here;
        here += host_is_same(v->members[i].host, host);
    }
    return here;
}

/* Each of the ranks that are bound to a core of its own has one. */
uint32_t comm_members_on_own_processors(const pcclComm_t *c)
{
    const struct view *v = c->session->view;
    uint64_t host = links_host(c->session->links);
    uint32_t thousandths = 1000; /* this one */
    cpu_set_t own, others;
    bool known = sched_getaffinity(0, sizeof own, &own) == 0;
    for (uint32_t i = 0; i < v->size; i++) {
        const struct wire_member *m = &v->members[i];
        if (i == v->rank || !host_is_same(m->host, host)) continue;
        bool seen =
            known && m->pid > 0 &&
            sched_getaffinity((pid_t)m->pid, sizeof others, &others) == 0;
        thousandths += seen ? home_share(&own, &others) : 1000;
    }
    return (thousandths + 999) / 1000;
}

/* ----------------------------------------------------- background thread */

/* The peers that dial stay queued, so the listener stays readable. To watch it
 * further would be an endless loop. */
void comm_pause_accepting(pcclComm_t *c)
{
    if (!c->io.accept_paused)
        LOG(LOG_WARN, "cannot accept a connection: %s", strerror(errno));
    c->io.accept_paused = true;
    for (int i = 0; i < COMM_LISTENERS_MAX; i++) {
        if (c->io.listeners[i] >= 0)
            (void)io_loop_watch(&c->background.loop, &c->io.listener_watches[i],
                                0);
    }
}

static void resume_accepting(pcclComm_t *c)
{
    bool ok = true;
    for (int i = 0; c->io.accept_paused && i < COMM_LISTENERS_MAX; i++) {
        if (c->io.listeners[i] >= 0)
            ok = io_loop_watch(&c->background.loop, &c->io.listener_watches[i],
                               IO_READ) &&
                 ok;
    }
    if (ok) c->io.accept_paused = false;
}

/* Nobody waits for the disk: the loop expects that others have had the lock. */
static void write_trace(pcclComm_t *c)
{
    if (!comm_tells()) return;
    pthread_mutex_unlock(&c->lock);
    comm_tell_flush();
    comm_lock(c);
}

static void on_tick(void *comm)
{
    pcclComm_t *c = comm;
    comm_master_judge(c);
    comm_resume_tick(c);
    resume_accepting(c);
    comm_self_look(c);
    (void)comm_samples_exchange(c);
    session_tick(c->session, comm_now());
    (void)comm_samples_exchange(c);
    progress_changed(c);
    comm_pace(c);
    write_trace(c);
}

static void on_wake(void *comm)
{
    pcclComm_t *c = comm;
    if (c->background.stopping) io_loop_stop(&c->background.loop);
    if (comm_samples_exchange(c)) progress_changed(c);
    progress_woken(c);
    write_trace(c);
}

static void on_handled(void *comm)
{
    progress_handled(comm);
}

static void loop_release(void *comm)
{
    pcclComm_t *c = comm;
    pthread_mutex_unlock(&c->lock);
}

static void loop_acquire(void *comm)
{
    comm_lock(comm);
}

static void *background_thread(void *comm)
{
    pcclComm_t *c = comm;
    (void)float_env_enter(); /* not the one of the thread that connected */
    pthread_mutex_lock(&c->lock);
    if (!io_loop_run(&c->background.loop)) {
        session_gone(c->session, "the program has closed all descriptors");
        progress_changed(c);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---------------------------------------------------------- open and close */

static void warn_deadline(const char *text)
{
    LOG(LOG_WARN, "PCCL_DEADLINE=%s is not a number of seconds; ignored", text);
}

pccl_ns comm_own_deadline(const pcclComm_t *c)
{
    if (c->deadline_ms > 0) return c->deadline_ms * PCCL_MS;
    pccl_ns set = env_seconds_ns("PCCL_DEADLINE", warn_deadline);
    return set > 0 ? set : DEADLINE_DEFAULT_MS * PCCL_MS;
}

static uint32_t own_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

static enum comm_transport own_transport(void)
{
    static const char *const names[] = {"auto", "tcp", "shm"};
    const char *text = getenv("PCCL_TRANSPORT");
    if (!text || *text == '\0') return TRANSPORT_AUTO;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) return (enum comm_transport)i;
    }
    LOG(LOG_WARN, "PCCL_TRANSPORT=%s is not auto, tcp or shm; ignored", text);
    return TRANSPORT_AUTO;
}

/* A spare process of pccl-master joins when a line, or the end, of its standard
 * input arrives. */
void comm_spare_wait(pcclComm_t *c, pccl_ns until)
{
    static atomic_bool waited;
    const char *spare = getenv("PCCL_SPARE");
    char byte;
    if (!spare || strcmp(spare, "1") != 0 || atomic_exchange(&waited, true))
        return;
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = c->calls.bell_fd, .events = POLLIN}};
    while (comm_interrupted(c, until) == 0) {
        pccl_ns left = until - comm_now();
        int most = left < PCCL_S ? (int)(left / PCCL_MS) + 1 : 1000;
        if (poll(fds, ARRAY_COUNT(fds), most) > 0 && fds[0].revents != 0 &&
            read(STDIN_FILENO, &byte, 1) >= 0)
            return;
        if (fds[1].revents != 0) comm_calls_drain(c);
    }
    atomic_store(&waited, false); /* the next connect waits again */
}

static void send_hello(pcclComm_t *c)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.group = c->params.peer_group;
    hello.hello.pool = (uint16_t)links_pool_size(c->session->links);
    const char *join = getenv("PCCL_JOIN");
    hello.hello.join = join && strcmp(join, "1") == 0;
    hello.hello.stays = c->evicts_nobody;
    hello.hello.must_leave = c->must_leave;
    c->session->goes_on = c->goes_on;
    hello.hello.self.host = host_id();
    if (c->io.transport == TRANSPORT_TCP)
        hello.hello.self.host = host_without_memory(hello.hello.self.host);
    hello.hello.self.hint = c->rank_hint;
    hello.hello.self.pid = (uint32_t)getpid();
    hello.hello.self.addr.port = c->io.port;
    hello.hello.self.announced = c->ways.announced;
    hello.hello.fetched = c->offers.fetched;
    hello.hello.revision = c->offers.revision;
    hello.hello.max_stale = c->offers.max_stale;
    c->offers.fetched = false;
    session_hello(c->session, &hello);
}

/* Connections of members that have dialed already are among those needed. */
static uint64_t on_afford(void *comm, uint64_t descriptors)
{
    const pcclComm_t *c = comm;
    uint64_t open = 0;
    for (uint32_t i = 0; i < c->io.end; i++) open += c->io.sockets[i].fd >= 0;
    if (open > descriptors) open = descriptors;
    return descriptors_afford(descriptors - open) + open;
}

static uint64_t on_afford_memory(void *comm)
{
    (void)comm;
    return memory_supply_here();
}

static bool allocate(pcclComm_t *c, pccl_ns deadline)
{
    c->session = calloc(1, sizeof *c->session);
    c->master.store = calloc(1, sizeof *c->master.store);
    c->io.sockets = calloc(CONNS_MAX, sizeof *c->io.sockets);
    c->master.poll_fd = epoll_create1(EPOLL_CLOEXEC);
    bool wakes = io_loop_open(&c->background.loop) && progress_open(c);
    if (!c->session || !c->master.store || !c->io.sockets || !wakes ||
        c->master.poll_fd < 0)
        return false;
    struct session_config config = {
        .driver = {.user = c,
                   .dial = comm_io_dial,
                   .close = comm_io_close,
                   .dial_master = comm_io_dial_master,
                   .may_exchange = comm_exchange_may,
                   .exchange = comm_exchange_pages,
                   .round_trip = comm_io_round_trip},
        .events = {.user = c,
                   .to_master = comm_master_send,
                   .changed = on_changed,
                   .afford = on_afford,
                   .memory = on_afford_memory},
        .pool_size = c->params.p2p_connection_pool_size,
        .deadline = deadline,
        .now = comm_now(),
    };
    if (c->io.transport != TRANSPORT_TCP) {
        config.driver.share = comm_shm_make;
        config.driver.join = comm_shm_join;
        config.driver.shared = comm_shm_settled;
        config.driver.region_export = comm_shm_region_export;
        config.driver.region_attach = comm_shm_region_attach;
        config.driver.fill = comm_shm_fill;
        config.driver.cma_read = comm_shm_cma_read;
        config.driver.cma_works = comm_shm_cma_works;
        config.driver.cma_lends = comm_shm_cma_lends;
        config.driver.cma_prefers = comm_shm_cma_prefers;
        config.driver.cma_compared = comm_shm_cma_compared;
    }
    return session_init(c->session, &config);
}

static void release(pcclComm_t *c)
{
    comm_io_close_all(c);
    if (c->session) count_fast(&c->counters, c->session);
    if (c->session) session_free(c->session);
    if (c->offers.offered) state_list_free(c->offers.offered);
    free(c->offers.offered);
    c->offers.offered = NULL;
    if (c->left.sync) state_list_free(c->left.sync);
    free(c->left.sync);
    c->left = (struct comm_left){.sync = NULL};
    c->request.epoch = 0; /* another run may count to the same */
    shared_region_free(&c->io.region);
    comm_exchange_close(&c->exchange);
    progress_close(c);
    io_loop_close(&c->background.loop);
    if (c->master.poll_fd >= 0) close(c->master.poll_fd);
    free(c->session);
    free(c->master.store);
    free(c->io.sockets);
    free(c->master.in);
    free(c->master.out);
    c->session = NULL;
    c->master.store = NULL;
    c->io.sockets = NULL;
    c->master.poll_fd = -1;
    c->master.in = c->master.out = NULL;
    c->master.in_capacity = c->master.out_capacity = 0;
}

/* The time between two ticks. */
static pccl_ns pace(const pcclComm_t *c)
{
    pccl_ns tick = PCCL_TIME_OF_TICK(links_deadline(c->session->links));
    if (trace_is_on() && tick > TRACE_PERIOD) tick = TRACE_PERIOD;
    bool guests = offer_serves(&c->session->offer);
    return guests && tick > OFFER_TICK ? OFFER_TICK : tick;
}

void comm_pace(pcclComm_t *c)
{
    if (c->background.loop.period != pace(c))
        io_loop_pace(&c->background.loop, pace(c));
}

static bool start_loop(pcclComm_t *c)
{
    struct io_loop *l = &c->background.loop;
    l->user = c;
    l->tick = on_tick;
    l->woken = on_wake;
    l->handled = on_handled;
    l->release = loop_release;
    l->acquire = loop_acquire;
    io_loop_pace(l, pace(c));
    return progress_start(c) && comm_calls_start(c) &&
           comm_io_start_watchers(c);
}

/* PCCL_ALGORITHM. False: it names an algorithm that does not exist. */
static bool force_algorithms(pcclComm_t *c)
{
    const char *text = getenv("PCCL_ALGORITHM");
    char names[256] = "";
    size_t size = 0;
    if (!text || *text == '\0') return true;
    if (engine_force(c->session->engine, text)) return true;
    const char *name, *gone = engine_algorithm_gone(text);
    if (gone) {
        comm_set_error(c, "PCCL_ALGORITHM=%s: %s", text, gone);
        return false;
    }
    for (uint32_t i = 0; (name = engine_algorithm_name(i)) != NULL; i++) {
        int more = snprintf(names + size, sizeof names - size, " %s", name);
        if (more > 0 && (size_t)more < sizeof names - size)
            size += (size_t)more;
    }
    comm_set_error(c,
                   "PCCL_ALGORITHM=%s: NAME or COLLECTIVE:NAME[,...] is "
                   "wanted, with a NAME that the collective has, of%s",
                   text, names);
    return false;
}

int comm_stop_waiting(pcclComm_t *c, int why, const char *next)
{
    comm_set_error(c, "%s; %s",
                   why == pcclTimedOut
                       ? "the call waited as long as pcclSetTimeLimit says"
                       : "pcclCancel ended the call",
                   next);
    return why;
}

static const char connect_anew[] =
    "the run does not know this peer: call pcclConnect again to join it";

/* A member of any world opens so many, some only for a moment. One that found
 * out later would say that the others cannot be reached. */
static bool affords_joining(pcclComm_t *c)
{
    enum { NEED = 10 };
    uint64_t left = descriptors_afford(NEED);
    if (left >= NEED) return true;
    comm_set_error(c,
                   "joining a run takes %d descriptors more in this process, "
                   "and there may be %u (ulimit -n)",
                   NEED, (unsigned)left);
    return false;
}

static void lacks(pcclComm_t *c, const char *what, enum lacking lacking)
{
    char text[256];
    lacking_text(text, sizeof text, what, lacking);
    comm_set_error(c, "%s", text);
}

int comm_join(pcclComm_t *c)
{
    pccl_ns deadline = comm_own_deadline(c);
    pccl_ns until = comm_limit(c);
    c->absent = c->deserted = false;
    c->background.stopping = c->io.accept_paused = false;
    c->io.transport = own_transport();
    if (!affords_joining(c)) return pcclInternalError;
    if (memory_is_counted("")) shared_memory_reserve(true);
    if (!allocate(c, deadline)) {
        release(c);
        lacks(c, "a member of a run", LACKING_MEMORY);
        return pcclInternalError;
    }
    if (!force_algorithms(c) || !comm_read_ways(c, until) ||
        !comm_key_take(c)) {
        release(c);
        int why = comm_interrupted(c, until);
        return why ? comm_stop_waiting(c, why, connect_anew)
                   : pcclInvalidArgument;
    }
    if (!comm_master_connect(c, deadline, until) || !comm_listen(c)) {
        release(c);
        int why = comm_interrupted(c, until);
        return why ? comm_stop_waiting(c, why, connect_anew)
                   : pcclMasterConnectionFailed;
    }
    c->progress.processors = own_processors();
    struct session *s = c->session;
    s->now = comm_now();
    links_set_now(s->links, s->now);
    if (!comm_master_reserve(c) || !start_loop(c) ||
        !thread_start(&c->background.thread, HOST_IO_THREAD, background_thread,
                      c)) {
        release(c);
        lacks(c, "what hears the others", LACKING_THREAD);
        return pcclInternalError;
    }
    comm_self_open(c);
    send_hello(c);
    progress_changed(c);
    while (s->state == SESSION_JOINING &&
           (!s->master_lost || session_waits_for_master(s)) &&
           comm_interrupted(c, until) == 0)
        comm_wait(c, until);
    if (s->state == SESSION_MEMBER) {
        comm_samples_open(c);
        return pcclSuccess;
    }
    c->deserted = s->master_lost && !c->master.foreign;
    c->absent = c->deserted || s->elsewhere;
    int why = s->state == SESSION_JOINING && !s->master_lost
                  ? comm_interrupted(c, until)
                  : 0;
    if (why)
        why = comm_stop_waiting(c, why, connect_anew);
    else
        comm_set_error(c, "not admitted to the run: %s", s->reason);
    comm_close(c);
    return why ? why : pcclMasterConnectionFailed;
}

static void leave(pcclComm_t *c)
{
    struct session *s = c->session;
    session_leave(s);
    progress_changed(c);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pccl_ns wait = links_deadline(s->links) + PCCL_S;
    until.tv_sec += wait / PCCL_S;
    while (s->state != SESSION_GONE) {
        if (pthread_cond_timedwait(&c->changed, &c->lock, &until) != 0) break;
    }
}

void comm_close(pcclComm_t *c)
{
    if (!c->session) return;
    comm_samples_close(c);
    if (c->session->state == SESSION_MEMBER) progress_flush_messages(c);
    if (c->session->state == SESSION_MEMBER) leave(c);
    c->background.stopping = true;
    io_loop_wake(&c->background.loop);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->background.thread, NULL);
    comm_tell_flush();
    pthread_mutex_lock(&c->lock);
    release(c);
}

/* The sockets were closed when the child began (fork_guard.h), and their
 * numbers may be the child's own by now. Shared memory is not mapped in a
 * child; what operations hold stays until the child ends or calls exec. */
void comm_abandon(pcclComm_t *c)
{
    /* A thread of the parent was changing it: nothing in it can be trusted. */
    if (pthread_mutex_trylock(&c->lock) != 0) return;
    if (c->session) {
        for (uint32_t i = 0; i < c->io.end; i++) {
            struct comm_socket *s = &c->io.sockets[i];
            if (s->fd >= 0) shared_memory_settle(&s->share);
            secure_close(s->secure);
        }
        secure_close(c->master.secure);
        if (c->io.region.memory && c->io.region.fd >= 0) close(c->io.region.fd);
        comm_exchange_close(&c->exchange);
        progress_close(c);
        io_loop_close(&c->background.loop);
        close(c->master.poll_fd);
        free(c->master.store);
        free(c->master.in);
        free(c->master.out);
        free(c->io.sockets);
    }
    comm_save_abandon(c);
    comm_calls_close(c);
    pthread_mutex_unlock(&c->lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
