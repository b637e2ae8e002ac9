/* comm_watch.c - the events that the background thread watches, and those that
 * a blocking owner sleeps for: sockets, the master, and the doorbells of
 * channels. See comm.h. */
#include "comm.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* ------------------------------------------------- the background thread */

/* The loop watches the connection to the master through an epoll set of its
 * own: any thread can change that without waking the background thread. While
 * an owner reads the master's messages the background thread does not. */
static void watch_master(pcclComm_t *c)
{
    uint32_t want = c->progress.reads_master ? 0 : EPOLLIN;
    const struct secure *s = c->master.secure;
    bool may_send = comm_secure_is_open(s) || secure_wants_room(s);
    if (c->master.out_size > 0 && may_send && !c->progress.reads_master)
        want |= EPOLLOUT;
    if (c->master.fd < 0 || want == c->master.watched) return;
    struct epoll_event event = {.events = want};
    if (epoll_ctl(c->master.poll_fd, EPOLL_CTL_MOD, c->master.fd, &event) == 0)
        c->master.watched = want;
}

static bool has_work(const struct session *s)
{
    return s->state == SESSION_JOINING || s->next || s->leaving ||
           s->sync == SYNC_ASKED || s->votes[VOTE_OPTIMIZE] == VOTE_WAITING ||
           engine_has_work(s->engine) || partial_has_work(&s->partial);
}

/* Events of a connection that the background thread waits for. It always
 * watches connections that are not open yet. It reads open ones while there is
 * work: the frames for an idle member wait in the kernel until the program
 * calls. */
static uint32_t events_for(const pcclComm_t *c, uint32_t number, bool work)
{
    const struct session *s = c->session;
    const struct comm_socket *k = &c->io.sockets[number];
    const struct links *n = s->links;
    bool owns = c->progress.state == PROGRESS_BACKGROUND;
    bool open = conn_is_open(n, number);
    bool sends_shared = comm_shm_sends(c, number);
    bool reads = work;
    uint32_t events = 0;
    uint8_t *to;
    if (comm_shm_receives(c, number) && k->ended) return 0;
    if (open && !owns) return 0;
    if (conn_is_p2p(n, number)) reads = s->leaving && !conn_is_full(n, number);
    if (!open || conn_is_of_guest(n, number)) reads = true;
    /* What others relay over this member needs no call of its program. */
    if (conn_is_relay(n, number))
        reads = engine_rx_window(s->engine, number, &to) > 0;
    if (conn_is_parked(n, number)) reads = false;
    if (k->connecting || (k->blocked && !sends_shared)) events |= IO_WRITE;
    if (!k->connecting && reads) events |= IO_READ;
    /* With a channel a byte on the socket means that there is room. */
    if (sends_shared && k->blocked && owns) events |= IO_READ;
    return events;
}

/* What the last connections of a pass received may have to leave on the first
 * ones, and no event of those will come. */
static bool was_left(const pcclComm_t *c, uint32_t number)
{
    const struct comm_socket *k = &c->io.sockets[number];
    return c->progress.state == PROGRESS_BACKGROUND && !k->connecting &&
           !k->blocked && engine_may_send(c->session->engine, number);
}

static void watch_one(pcclComm_t *c, uint32_t number, bool work)
{
    struct comm_socket *k = &c->io.sockets[number];
    uint32_t want = events_for(c, number, work);
    /* A sleeping owner has armed its doorbells for itself. */
    if (comm_shm_receives(c, number) && !progress_sleeps(c)) {
        if (want == 0)
            comm_shm_disarm(c, number);
        else if (comm_shm_arm(c, number))
            c->progress.wake_pending = true;
    }
    if (was_left(c, number)) c->progress.wake_pending = true;
    if ((want & IO_READ) && comm_secure_has_input(k->secure))
        c->progress.wake_pending = true;
    /* If that fails, the next pass or tick tries again. */
    (void)io_loop_watch(&c->background.loop, &k->watch, want);
    uint64_t bit = (uint64_t)1 << (number % 64);
    if (want != 0) c->io.watched[number / 64] |= bit;
}

/* Of 64 sockets those for which events_for() can have another answer than 0, or
 * had one: where this thread does not read for operations, open connections of
 * links have nothing that it waits for. */
static uint64_t to_watch(const pcclComm_t *c, uint32_t word, bool work)
{
    if (c->progress.state == PROGRESS_BACKGROUND && work) return UINT64_MAX;
    return comm_io_busy(c, word) | c->io.watched[word];
}

void comm_watch(pcclComm_t *c)
{
    bool work = has_work(c->session);
    for (uint32_t word = 0; word * 64 < c->io.end; word++) {
        uint64_t left = to_watch(c, word, work);
        c->io.watched[word] = 0;
        for (; left != 0; left &= left - 1) {
            uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(left);
            if (number >= c->io.end) break;
            if (c->io.sockets[number].fd >= 0) watch_one(c, number, work);
        }
    }
    watch_master(c);
    if (c->progress.wake_pending) io_loop_wake(&c->background.loop);
}

/* ----------------------------------------------------- a sleeping owner */

/* True: an event is there already. */
static bool arm_all(pcclComm_t *c)
{
    bool there = false;
    uint8_t *to;
    for (uint32_t i = 0; i < c->io.end; i++) {
        const struct comm_socket *k = &c->io.sockets[i];
        if (k->fd < 0) continue;
        if (comm_shm_receives(c, i))
            there |= comm_shm_arm(c, i);
        else if (comm_secure_has_input(k->secure))
            there |= engine_rx_window(c->session->engine, i, &to) > 0;
    }
    return there;
}

static void disarm_all(pcclComm_t *c, const struct pollfd *fds, uint32_t count)
{
    for (uint32_t i = 0; i < c->io.end; i++) {
        struct comm_socket *k = &c->io.sockets[i];
        if (k->fd < 0 || !comm_shm_receives(c, i)) continue;
        comm_shm_disarm(c, i);
        for (uint32_t f = 0; f < count; f++) {
            if (fds[f].fd == k->fd && fds[f].revents) k->event_pending = true;
        }
    }
}

static short events_for_owner(pcclComm_t *c, uint32_t number)
{
    const struct comm_socket *k = &c->io.sockets[number];
    bool sends_shared = comm_shm_sends(c, number);
    uint8_t *to;
    short events = 0;
    if (comm_shm_receives(c, number) && k->ended) return 0;
    if (k->connecting || (k->blocked && !sends_shared)) events |= POLLOUT;
    if (!k->connecting && engine_rx_window(c->session->engine, number, &to) > 0)
        events |= POLLIN;
    if (sends_shared && k->blocked) events |= POLLIN;
    return events;
}

static uint32_t fill(pcclComm_t *c, struct pollfd *fds, size_t room)
{
    const struct progress *p = &c->progress;
    uint32_t count = 0;
    fds[count++] = (struct pollfd){.fd = p->owner_fd, .events = POLLIN};
    if (p->reads_master && c->master.fd >= 0)
        fds[count++] = (struct pollfd){.fd = c->master.fd, .events = POLLIN};
    for (uint32_t i = 0; i < c->io.end && count < room; i++) {
        if (c->io.sockets[i].fd < 0) continue;
        short events = events_for_owner(c, i);
        if (events == 0) continue;
        fds[count++] =
            (struct pollfd){.fd = c->io.sockets[i].fd, .events = events};
    }
    return count;
}

void comm_watch_sleep(pcclComm_t *c, pccl_ns most)
{
    struct pollfd few[64];
    struct pollfd *fds = few;
    size_t room = ARRAY_COUNT(few);
    if (c->io.end + 2 > room) {
        struct pollfd *many = malloc((c->io.end + 2) * sizeof *many);
        if (many) { /* otherwise it watches some; the timeout covers the rest */
            fds = many;
            room = c->io.end + 2;
        }
    }
    uint32_t count = fill(c, fds, room);
    if (arm_all(c)) most = 0;
    pthread_mutex_unlock(&c->lock);
    /* Rounded up: a shorter sleep would spin. */
    (void)poll(fds, count, (int)((most + PCCL_MS - 1) / PCCL_MS));
    pthread_mutex_lock(&c->lock);
    disarm_all(c, fds, count);
    if (fds != few) free(fds);
}
