/* comm_drive.c - calls that wait: whoever waits for an operation, a message or
 * a synchronization moves the data meanwhile (drives), if nobody else does. */
#include "comm.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

void comm_count_crowd(pcclComm_t *c)
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
void comm_make_way(pcclComm_t *c)
{
    if (atomic_load(&c->waiting) == 0) return;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < YIELDS_MAX && atomic_load(&c->waiting) > 0; i++)
        sched_yield();
    pthread_mutex_lock(&c->lock);
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
    comm_count_crowd(c);
    pccl_ns until = comm_now() + SPIN_NS;
    for (uint32_t pass = 1; !is_done(c, goal); pass++) {
        comm_make_way(c);
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
    engine_wait_begins(&c->session->engine);
    if (c->driving || is_over(c, goal)) comm_turn(c);
    while (!is_over(c, goal) && c->driving) {
        if (goal->until == PCCL_NEVER)
            pthread_cond_wait(&c->changed, &c->lock);
        else
            sleep_until(c, goal->until);
    }
    if (is_over(c, goal)) return;
    comm_count_crowd(c);
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
#define FAST_NS ((pccl_ns)20000)
#define FAST_TURN_NS ((pccl_ns)100000)
/* How long for a message: the sender may be computing it, or moving others. */
#define MAIL_NS ((pccl_ns)60000)
enum {
    FAST_LOOKS = 32, /* between two looks at the clock */
    /* A partner that has not answered after so many may wait for this very
     * processor, whatever their numbers: others run here too. */
    FAST_SPINS = 64,
    /* Done so soon after the first time the processor was given away. */
    HANDED_ON = FAST_SPINS + 16,
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

enum comm_fast comm_fast(pcclComm_t *c, const struct op_request *r,
                         uint64_t view_epoch, struct op **rest)
{
    struct engine *e = &c->session->engine;
    if (c->driving || !session_fast(c->session, r, view_epoch))
        return FAST_NOTHING;
    for (uint32_t i = 0; i < e->fast.ep_count; i++)
        comm_share_bell(c, e->fast.eps[i].number, CHANNEL_WANTS_DATA);
    comm_count_crowd(c);
    pccl_ns until = 0;
    for (uint32_t i = 1;; i++) {
        enum fast_status state = fast_poll(e);
        if (state == FAST_DONE) {
            if (!c->starved) part(c, i > FAST_SPINS && i <= HANDED_ON);
            return FAST_TAKEN;
        }
        if (state == FAST_STRANGE || atomic_load(&c->waiting) > 0) break;
        if (i % FAST_LOOKS == 0) {
            pccl_ns now = comm_now();
            if (until == 0) until = now + (c->starved ? FAST_TURN_NS : FAST_NS);
            if (now >= until) break;
        }
        if (c->starved || i > FAST_SPINS)
            sched_yield();
        else
            relax();
    }
    *rest = fast_convert(e);
    return *rest ? FAST_REST : FAST_FAILED;
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
        struct channel *channel = e->links.conns[number]->channel;
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
        if (atomic_load(&c->waiting) > 0) comm_make_way(c);
        if (i % FAST_LOOKS == 0) {
            pccl_ns now = comm_now();
            if (end == 0) end = now + (c->starved ? FAST_TURN_NS : MAIL_NS);
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
    comm_make_way(c);
    comm_count_crowd(c);
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

void comm_flush_messages(pcclComm_t *c)
{
    struct engine *e = &c->session->engine;
    pccl_ns until = comm_now() + e->links.deadline;
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
