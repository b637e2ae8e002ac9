/* comm.c - threads and life of a communicator. See comm.h. */
#include "comm.h"

#include "env.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Members of this host, from which it follows whether spinning hurts. */
static void count_crowd(pcclComm_t *c)
{
    const struct session *s = c->session;
    if (c->crowd_epoch == s->view->epoch) return;
    c->crowd_epoch = s->view->epoch;
    uint32_t here = 0;
    uint64_t host = s->view->members[s->view->rank].host;
    for (uint32_t i = 0; i < s->view->size; i++)
        here += s->view->members[i].host >> 1 == host >> 1;
    c->crowded = here >= c->processors;
    c->starved = here > c->processors;
}

/* How long a caller polls before it sleeps in the kernel. A wake-up across
 * cores costs about a tenth of it; but who sleeps is no load, and the kernel
 * leaves two members, of which one or the other sleeps, on the same processor.
 * Members that share processors take turns, and each of them needs its own. */
#define SPIN_NS ((pccl_ns)200000)
/* How long it sleeps there at most, lest anything is missed. */
#define WAIT_MAX (200 * PCCL_MS)
/* ... while connections for messages wait to be tried again. */
#define RETRY_WAIT (10 * PCCL_MS)

pccl_ns comm_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (pccl_ns)t.tv_sec * PCCL_S + t.tv_nsec;
}

void comm_set_error(pcclComm_t *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
    LOG(LOG_INFO, "%s", c->error);
}

void comm_lock(pcclComm_t *c)
{
    if (pthread_mutex_trylock(&c->lock) == 0) return;
    atomic_fetch_add(&c->waiting, 1);
    pthread_mutex_lock(&c->lock);
    atomic_fetch_sub(&c->waiting, 1);
}

/* ----------------------------------------------------------------- driving */

enum {
    YIELDS_MAX = 100,
    /* Every so many passes look at all connections. Mostly there is nothing
     * but the next operation of who is done with this one, which would have to
     * be kept until it is launched here. */
    PASSES_ALL = 64,
};

/* A driver with a long operation never sleeps; heartbeats and the master's
 * messages must get through all the same. */
static void make_way(pcclComm_t *c)
{
    if (atomic_load(&c->waiting) == 0) return;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < YIELDS_MAX && atomic_load(&c->waiting) > 0; i++)
        sched_yield();
    pthread_mutex_lock(&c->lock);
}

static void on_changed(void *comm)
{
    pcclComm_t *c = comm;
    pthread_cond_broadcast(&c->changed);
}

void comm_turn(pcclComm_t *c)
{
    comm_io_flush_master(c);
    /* Effects of what just happened (READY, DONE, the next segment) leave at
     * once, whoever's turn it is. */
    if (!c->driving || c->driver_blocked) (void)comm_io_move(c);
    comm_io_flush_master(c);
    c->attended = false;
    comm_io_watch(c);
    comm_wake_driver(c);
}

/* What a driver drives for: until op is done, or, without one, until the
 * synchronization is over (when this call hears the master) or a message event
 * is there; or the time is over. */
struct goal {
    const struct op *op;
    bool events; /* they end it although there is an operation */
    pccl_ns until;
};

static bool has_event(const pcclComm_t *c)
{
    return c->session->engine.messages.first != NULL ||
           c->session->state == SESSION_GONE;
}

static bool is_done(const pcclComm_t *c, const struct goal *goal)
{
    if (goal->op)
        return goal->op->phase == PHASE_DONE || (goal->events && has_event(c));
    if (c->listening) return c->session->sync != SYNC_ASKED;
    return has_event(c);
}

static void spin(pcclComm_t *c, const struct goal *goal)
{
    const struct op *op = goal->op;
    count_crowd(c);
    pccl_ns until = comm_now() + SPIN_NS;
    for (uint32_t pass = 1; !is_done(c, goal); pass++) {
        make_way(c);
        bool moved = c->listening && comm_io_read_master(c);
        comm_io_expect(c, op);
        moved |= pass % PASSES_ALL ? comm_io_move_expected(c) : comm_io_move(c);
        if (moved) {
            comm_io_flush_master(c);
            until = comm_now() + SPIN_NS;
        } else if (comm_now() >= (until < goal->until ? until : goal->until)) {
            if (!comm_io_move(c) || comm_now() >= goal->until) return;
            until = comm_now() + SPIN_NS;
        } else if (c->crowded) {
            sched_yield();
        }
    }
}

static bool is_over(const pcclComm_t *c, const struct goal *goal)
{
    if (!goal->op) return c->session->sync != SYNC_ASKED;
    return is_done(c, goal) || comm_now() >= goal->until;
}

static void sleep_until(pcclComm_t *c, pccl_ns until)
{
    struct timespec t = {.tv_sec = until / PCCL_S, .tv_nsec = until % PCCL_S};
    (void)pthread_cond_timedwait(&c->changed, &c->lock, &t);
}

static void drive(pcclComm_t *c, const struct goal *goal)
{
    if (goal->op && goal->op->phase == PHASE_DONE) return;
    c->session->engine.in_a_row = 0;
    if (c->driving || is_over(c, goal)) comm_turn(c);
    while (!is_over(c, goal) && c->driving) {
        if (goal->until == PCCL_NEVER)
            pthread_cond_wait(&c->changed, &c->lock);
        else
            sleep_until(c, goal->until);
    }
    if (is_over(c, goal)) return;
    count_crowd(c);
    c->driving = true;
    c->listening = goal->op == NULL;
    comm_io_flush_master(c);
    comm_io_watch(c);
    while (!is_done(c, goal)) {
        spin(c, goal);
        comm_io_flush_master(c);
        if (is_done(c, goal)) break;
        pccl_ns left = WAIT_MAX;
        if (goal->until != PCCL_NEVER) left = goal->until - comm_now();
        if (left <= 0) break;
        comm_io_wait(c, left < WAIT_MAX ? left : WAIT_MAX);
    }
    c->driving = c->listening = false;
    /* Others may wait for their operations: one of them drives on. */
    pthread_cond_broadcast(&c->changed);
    comm_io_flush_master(c);
    comm_io_push(c);
    comm_attend_rest(c);
}

void comm_drive(pcclComm_t *c, const struct op *op)
{
    drive(c, &(struct goal){.op = op, .until = PCCL_NEVER});
}

void comm_drive_until(pcclComm_t *c, const struct op *op, pccl_ns until)
{
    drive(c, &(struct goal){.op = op, .events = true, .until = until});
}

/* How long a quick operation is polled for: with fewer processors than members
 * until each of them has had its turn. */
#define QUICK_NS ((pccl_ns)20000)
#define QUICK_TURN_NS ((pccl_ns)100000)
/* How long for a message: the sender may be computing it, or moving others. */
#define MAIL_NS ((pccl_ns)60000)
enum {
    QUICK_LOOKS = 32, /* between two looks at the clock */
    /* A partner that has not answered after so many may wait for this very
     * processor, whatever their numbers: others run here too. */
    QUICK_SPINS = 64,
    /* Done so soon after the first time the processor was given away. */
    HANDED_ON = QUICK_SPINS + 16,
    HANDED_ON_MIN = 16,
    HANDED_ON_MAX = 1 << 20,
    LOOKS_ALL = 64, /* for messages, between two at all connections */
};

static void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

/* Two ranks that share a processor, while another is free, and take turns
 * there stay together: to the scheduler neither ever waits. It does find a
 * free processor for one that wakes up, so one naps. Where that does not help
 * it is tried ever more rarely. */
static void part(pcclComm_t *c, bool handed_on)
{
    if (!handed_on) {
        c->handed_on = 0;
        return;
    }
    if (c->handed_on_max == 0) c->handed_on_max = HANDED_ON_MIN;
    if (++c->handed_on < c->handed_on_max) return;
    c->handed_on = 0;
    if (c->handed_on_max < HANDED_ON_MAX) c->handed_on_max *= 2;
    (void)nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
}

enum comm_quick comm_quick(pcclComm_t *c, const struct op_request *r,
                           uint64_t view_epoch, struct op **rest)
{
    struct engine *e = &c->session->engine;
    if (c->driving || !session_quick(c->session, r, view_epoch))
        return QUICK_NOTHING;
    for (uint32_t i = 0; i < e->quick.lane_count; i++)
        comm_share_bell(c, e->quick.lanes[i].number, CHANNEL_WANTS_DATA);
    count_crowd(c);
    pccl_ns until = 0;
    for (uint32_t i = 1;; i++) {
        enum quick_state state = quick_poll(e);
        if (state == QUICK_DONE) {
            if (!c->starved) part(c, i > QUICK_SPINS && i <= HANDED_ON);
            return QUICK_TAKEN;
        }
        if (state == QUICK_STRANGE || atomic_load(&c->waiting) > 0) break;
        if (i % QUICK_LOOKS == 0) {
            pccl_ns now = comm_now();
            if (until == 0)
                until = now + (c->starved ? QUICK_TURN_NS : QUICK_NS);
            if (now >= until) break;
        }
        if (c->starved || i > QUICK_SPINS)
            sched_yield();
        else
            relax();
    }
    *rest = quick_convert(e);
    return *rest ? QUICK_REST : QUICK_FAILED;
}

/* One turn as the driver; sleeps no longer than until then. */
static void drive_events(pcclComm_t *c, pccl_ns until)
{
    c->driving = true;
    comm_io_watch(c);
    /* Where all memory is shared it has been polled already. */
    const struct goal event = {.until = PCCL_NEVER};
    if (message_mail(&c->session->engine)->others && !c->starved)
        spin(c, &event);
    comm_io_flush_master(c);
    pccl_ns left = until - comm_now();
    pccl_ns most = message_pending(&c->session->engine) ? RETRY_WAIT : WAIT_MAX;
    if (!is_done(c, &event) && left > 0) {
        comm_io_wait(c, left < most ? left : most);
        (void)comm_io_move(c);
    }
    c->driving = false;
    pthread_cond_broadcast(&c->changed);
    comm_io_flush_master(c);
    comm_io_watch(c);
}

/* What one look at shared memory finds goes to the engine. False: there is
 * more to do than that. */
static bool look(pcclComm_t *c, const struct mail *mail)
{
    struct engine *e = &c->session->engine;
    for (uint32_t i = 0; i < mail->count; i++) {
        uint32_t number = mail->conns[i];
        struct channel *channel = e->conns[number]->channel;
        const uint8_t *from;
        if (!comm_share_sends(c, number)) return false; /* a HELLO first */
        if (c->sockets[number].blocked || engine_may_send(e, number))
            (void)comm_share_transmit(c, number);
        if (!mail->known) return false; /* that closed it */
        if (channel_ready(channel, &from) > 0 || channel->broken)
            (void)comm_share_receive(c, number);
        if (!mail->known) return false;
    }
    return true;
}

/* Whatever comes, comes through memory. */
static bool is_all_shared(struct engine *e)
{
    const struct mail *mail = message_mail(e);
    return mail->count > 0 && !mail->others && !message_pending(e);
}

/* Messages through shared memory: polls it as a quick operation does. NULL: it
 * is time for all there is to do, or to sleep. */
static struct message_event *poll_mail(pcclComm_t *c, pccl_ns until)
{
    struct engine *e = &c->session->engine;
    pccl_ns end = 0;
    for (uint32_t i = 1;; i++) {
        if (c->driving || !is_all_shared(e)) return NULL;
        bool all = look(c, message_mail(e));
        struct message_event *event = message_take(e);
        if (event || until == 0 || !all) return event;
        if (atomic_load(&c->waiting) > 0) make_way(c);
        if (i % QUICK_LOOKS == 0) {
            pccl_ns now = comm_now();
            if (end == 0) end = now + (c->starved ? QUICK_TURN_NS : MAIL_NS);
            if (now >= end || now >= until) return NULL;
        }
        if (c->starved)
            sched_yield();
        else
            relax();
    }
}

struct message_event *comm_take_event(pcclComm_t *c, pccl_ns until)
{
    struct engine *e = &c->session->engine;
    message_use(e);
    make_way(c);
    count_crowd(c);
    struct message_event *event = message_take(e);
    /* Now and then all connections have their turn, whatever comes. */
    if (++c->looks % LOOKS_ALL == 0 && !c->driving && comm_io_move(c))
        comm_io_flush_master(c);
    if (!event) event = poll_mail(c, until);
    bool all = until != 0 || !is_all_shared(e);
    if (!event && all && !c->driving && comm_io_move(c))
        comm_io_flush_master(c);
    while (!event && !(event = message_take(e))) {
        pccl_ns now = comm_now();
        if (now >= until || c->session->state == SESSION_GONE) break;
        if (until - now > PCCL_S)
            now += PCCL_S;
        else
            now = until;
        if (c->driving)
            sleep_until(c, now);
        else
            drive_events(c, now);
    }
    return event;
}

/* Rule P2P-8: what was posted reaches those who live, within a deadline. */
static void flush_messages(pcclComm_t *c)
{
    struct engine *e = &c->session->engine;
    pccl_ns until = comm_now() + e->deadline;
    c->driving = true;
    while (c->session->state == SESSION_MEMBER && comm_now() < until) {
        bool waits = message_flush(e);
        (void)comm_io_move(c);
        comm_io_flush_master(c);
        if (!waits) break;
        comm_io_watch(c);
        comm_io_wait(c, RETRY_WAIT);
    }
    c->driving = false;
}

/* ------------------------------------------------------------- I/O thread */

/* The callers stay where they are, and the listener readable: listening on
 * would be a loop without end. */
void comm_turn_deaf(pcclComm_t *c)
{
    if (!c->deaf) LOG(LOG_WARN, "cannot take a call: %s", strerror(errno));
    c->deaf = true;
    for (int i = 0; i < COMM_LISTENERS_MAX; i++) {
        if (c->listeners[i] >= 0) ev_io_stop(c->loop, &c->listener_watchers[i]);
    }
}

static void hear_again(pcclComm_t *c)
{
    for (int i = 0; c->deaf && i < COMM_LISTENERS_MAX; i++) {
        if (c->listeners[i] >= 0)
            ev_io_start(c->loop, &c->listener_watchers[i]);
    }
    c->deaf = false;
}

static void on_tick(struct ev_loop *loop, struct ev_timer *w, int events)
{
    (void)loop, (void)events;
    pcclComm_t *c = w->data;
    comm_io_judge_master(c);
    hear_again(c);
    session_tick(c->session, comm_now());
    (void)comm_io_move(c);
    comm_turn(c);
}

static void on_wake(void *comm)
{
    pcclComm_t *c = comm;
    if (c->stopping) ev_break(c->loop, EVBREAK_ALL);
    comm_attend_woken(c);
    if (!c->restless || c->stopping) return;
    c->restless = false;
    if (!c->driving) (void)comm_io_move(c);
    comm_turn(c);
}

static void loop_release(struct ev_loop *loop)
{
    pcclComm_t *c = ev_userdata(loop);
    pthread_mutex_unlock(&c->lock);
}

static void loop_acquire(struct ev_loop *loop)
{
    pcclComm_t *c = ev_userdata(loop);
    comm_lock(c);
}

static void *io_thread(void *comm)
{
    pcclComm_t *c = comm;
    pthread_mutex_lock(&c->lock);
    ev_run(c->loop, 0);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static bool start_thread(pcclComm_t *c)
{
    /* Signals are the program's business, not this thread's. */
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&c->thread, NULL, io_thread, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc == 0;
}

/* ---------------------------------------------------------- open and close */

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *b = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

/* Equal for processes that could share memory: same boot, same namespaces. */
static uint64_t host_id(void)
{
    char text[128];
    uint64_t hash = 0xcbf29ce484222325u;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0) close(fd);
    hash = mix(hash, text, n > 0 ? (size_t)n : 0);
    static const char *const spaces[] = {
        "/proc/self/ns/pid", "/proc/self/ns/net", "/proc/self/ns/user"};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        struct stat st;
        if (stat(spaces[i], &st) == 0)
            hash = mix(hash, &st.st_ino, sizeof st.st_ino);
    }
    return hash;
}

static void warn_deadline(const char *text)
{
    LOG(LOG_WARN, "PCCL_DEADLINE=%s is not a number of seconds; ignored", text);
}

static pccl_ns own_deadline(const pcclComm_t *c)
{
    if (c->deadline_ms > 0) return c->deadline_ms * PCCL_MS;
    pccl_ns set = env_deadline_ns(warn_deadline);
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

/* A spare of pccl-master is complete but for this: it waits for a line, or the
 * end, of its standard input, and joins then. */
static void spare_wait(void)
{
    static atomic_bool waited;
    const char *spare = getenv("PCCL_SPARE");
    char byte;
    if (!spare || strcmp(spare, "1") != 0 || atomic_exchange(&waited, true))
        return;
    while (read(STDIN_FILENO, &byte, 1) == -1 && errno == EINTR) continue;
}

static void say_hello(pcclComm_t *c)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    hello.hello.group = c->params.peer_group;
    hello.hello.pool = (uint16_t)c->session->engine.pool_size;
    const char *join = getenv("PCCL_JOIN");
    hello.hello.join = join && strcmp(join, "1") == 0;
    hello.hello.self.host = host_id() & ~(uint64_t)1;
    hello.hello.self.host |= c->transport == TRANSPORT_TCP;
    hello.hello.self.hint = c->rank_hint;
    hello.hello.self.pid = (uint32_t)getpid();
    hello.hello.self.addr.port = c->port;
    session_hello(c->session, &hello);
}

static bool allocate(pcclComm_t *c, pccl_ns deadline)
{
    c->session = calloc(1, sizeof *c->session);
    c->store = calloc(1, sizeof *c->store);
    c->sockets = calloc(CONNS_MAX, sizeof *c->sockets);
    c->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    c->driver_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->master_poll = epoll_create1(EPOLL_CLOEXEC);
    bool wakes = wake_open(&c->wake) && comm_attend_open(c);
    if (!c->session || !c->store || !c->sockets || !c->loop || !wakes ||
        c->driver_fd < 0 || c->master_poll < 0)
        return false;
    for (uint32_t i = 0; i < CONNS_MAX; i++) c->sockets[i].fd = -1;
    struct session_config config = {
        .out = {.user = c,
                .to_master = comm_io_to_master,
                .dial = comm_io_dial,
                .close = comm_io_close,
                .changed = on_changed,
                .round_trip = comm_io_round_trip},
        .pool_size = c->params.p2p_connection_pool_size,
        .deadline = deadline,
    };
    if (c->transport != TRANSPORT_TCP) {
        config.out.share = comm_share_make;
        config.out.join = comm_share_join;
        config.out.shared = comm_share_settled;
        config.out.fetch = comm_share_fetch;
    }
    return session_init(c->session, &config);
}

static void release(pcclComm_t *c)
{
    comm_io_close_all(c);
    if (c->session) session_free(c->session);
    wake_close(&c->wake);
    comm_attend_close(c);
    if (c->loop) ev_loop_destroy(c->loop);
    if (c->driver_fd >= 0) close(c->driver_fd);
    if (c->master_poll >= 0) close(c->master_poll);
    free(c->session);
    free(c->store);
    free(c->sockets);
    free(c->in);
    free(c->out);
    c->session = NULL;
    c->store = NULL;
    c->sockets = NULL;
    c->loop = NULL;
    c->driver_fd = c->master_poll = -1;
    c->in = c->out = NULL;
    c->in_capacity = c->out_capacity = 0;
}

static void start_loop(pcclComm_t *c, pccl_ns deadline)
{
    double interval = (double)deadline / 5e9;
    ev_set_userdata(c->loop, c);
    ev_set_loop_release_cb(c->loop, loop_release, loop_acquire);
    wake_start(&c->wake, c->loop, on_wake, c);
    comm_attend_start(c);
    ev_timer_init(&c->tick, on_tick, interval, interval);
    c->tick.data = c;
    ev_timer_start(c->loop, &c->tick);
    comm_io_start_watchers(c);
}

int comm_open(pcclComm_t *c)
{
    pccl_ns deadline = own_deadline(c);
    c->stopping = c->deaf = false;
    c->transport = own_transport();
    c->crowd_epoch = 0;
    c->processors = own_processors();
    spare_wait();
    if (!allocate(c, deadline)) {
        release(c);
        comm_set_error(c, "out of memory or descriptors");
        return pcclInternalError;
    }
    if (!comm_io_connect_master(c, deadline) || !comm_io_listen(c)) {
        release(c);
        return pcclMasterConnectionFailed;
    }
    struct session *s = c->session;
    s->now = s->engine.now = comm_now();
    start_loop(c, deadline);
    if (!start_thread(c)) {
        release(c);
        comm_set_error(c, "cannot start a thread");
        return pcclInternalError;
    }
    say_hello(c);
    comm_turn(c);
    while (s->state == SESSION_JOINING && !s->master_lost)
        pthread_cond_wait(&c->changed, &c->lock);
    if (s->state == SESSION_MEMBER) {
        count_crowd(c);
        return pcclSuccess;
    }
    comm_set_error(c, "not admitted to the run: %s", s->reason);
    comm_close(c);
    return pcclMasterConnectionFailed;
}

static void leave(pcclComm_t *c)
{
    struct session *s = c->session;
    session_leave(s);
    comm_turn(c);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pccl_ns wait = s->engine.deadline + PCCL_S;
    until.tv_sec += wait / PCCL_S;
    while (s->state != SESSION_GONE) {
        if (pthread_cond_timedwait(&c->changed, &c->lock, &until) != 0) break;
    }
}

void comm_close(pcclComm_t *c)
{
    if (!c->session) return;
    if (c->session->state == SESSION_MEMBER) flush_messages(c);
    if (c->session->state == SESSION_MEMBER) leave(c);
    c->stopping = true;
    wake_send(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    pthread_mutex_lock(&c->lock);
    release(c);
}
