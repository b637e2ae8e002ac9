/* comm_io.c - the sockets of a communicator. See comm.h. */
#include "comm.h"

#include "../base/io_addr.h"
#include "../base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* ------------------------------------------------------------ connections */

static uint32_t free_number(const pcclComm_t *c)
{
    for (uint32_t i = 0; i < CONNS_MAX; i++) {
        bool used = i < c->io.end && c->io.sockets[i].fd >= 0;
        if (!used && conn_is_free(c->session->links, i)) return i;
    }
    return NO_CONN;
}

static void on_conn_event(void *comm, struct io_watch *w);

static uint32_t take_number(pcclComm_t *c, int fd)
{
    uint32_t number = free_number(c);
    if (number == NO_CONN) return number;
    struct comm_socket *s = &c->io.sockets[number];
    memset(s, 0, sizeof *s);
    s->fd = fd;
    s->share.fd = -1;
    s->watch = (struct io_watch){.fd = fd, .ready = on_conn_event};
    if (number >= c->io.end) c->io.end = number + 1;
    c->io.visited[number / 64] |= (uint64_t)1 << (number % 64);
    return number;
}

void comm_io_note(pcclComm_t *c, uint32_t number)
{
    const struct comm_socket *s = &c->io.sockets[number];
    const struct links *n = c->session->links;
    bool waits = s->connecting || s->blocked;
    uint64_t bit = (uint64_t)1 << (number % 64);
    uint64_t *word = &c->io.visited[number / 64];
    if (waits)
        *word |= bit;
    else if ((*word & bit) && conn_is_of_link(n, number))
        *word &= ~bit;
}

uint64_t comm_io_busy(const pcclComm_t *c, uint32_t word)
{
    return c->io.visited[word] | engine_may_send_word(c->session->engine, word);
}

uint32_t comm_io_dial(void *comm, const struct wire_addr *addr)
{
    pcclComm_t *c = comm;
    struct io_addr to;
    if (!io_addr_from_wire(addr, &to)) return NO_CONN;
    fork_guard_hold();
    int fd = fork_guard_keep(socket(
        to.name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) return NO_CONN;
    io_addr_tune_early(fd, &to);
    int rc = connect(fd, (struct sockaddr *)&to.name, to.size);
    uint32_t number = NO_CONN;
    if (rc == 0 || errno == EINPROGRESS) number = take_number(c, fd);
    if (number == NO_CONN) {
        fork_guard_close(fd);
        return NO_CONN;
    }
    c->io.sockets[number].connecting = true;
    return number;
}

uint32_t comm_io_dial_master(void *comm)
{
    struct wire_addr addr = comm_master_address(comm);
    return comm_io_dial(comm, &addr);
}

void comm_io_close(void *comm, uint32_t number)
{
    pcclComm_t *c = comm;
    struct comm_socket *s = &c->io.sockets[number];
    if (s->fd < 0) return;
    (void)io_loop_watch(&c->background.loop, &s->watch, 0);
    fork_guard_close(s->fd);
    s->fd = -1;
    secure_close(s->secure);
    s->secure = NULL;
    shared_memory_free(&s->share);
}

static void tune_high_rtt(struct comm_socket *s, int fd)
{
    s->high_rtt = true;
    io_addr_tune_high_rtt(fd);
    send_window_open(&s->window, fd);
}

/* Returns the round-trip time of the connection. */
static pccl_ns tune(struct comm_socket *s, int fd)
{
    struct io_addr peer = io_addr_peer(fd);
    pccl_ns rtt = io_addr_rtt(fd);
    io_addr_tune(fd, &peer);
    if (rtt >= RTT_HIGH) tune_high_rtt(s, fd);
    return rtt;
}

static bool admits(pcclComm_t *c, int fd, bool called)
{
    char why[256];
    if (comm_admits(c, fd, called, why, sizeof why)) return true;
    if (why[0] == '\0') return false;
    uint64_t before = c->io.refused++;
    if ((before & c->io.refused) == 0)
        LOG(LOG_WARN, "refused a connection: %s (%" PRIu64 " so far)", why,
            c->io.refused);
    return false;
}

/* True once the outcome is known; reports it to the engine. */
static bool finish_connecting(pcclComm_t *c, uint32_t number)
{
    struct comm_socket *s = &c->io.sockets[number];
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) <= 0) return false;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    s->connecting = false;
    if (error == 0 && !admits(c, s->fd, true)) error = EACCES;
    if (error == 0 && !comm_secure_link(c, SECURE_DIALER, &s->secure))
        error = ENOMEM;
    if (error == 0) engine_measured(c->session->engine, number, tune(s, s->fd));
    engine_dialed(c->session->engine, number, error == 0);
    return true;
}

void comm_io_lost(pcclComm_t *c, uint32_t number)
{
    comm_io_close(c, number);
    engine_closed(c->session->engine, number);
}

uint64_t comm_io_round_trip(void *comm, uint64_t peer)
{
    const pcclComm_t *c = comm;
    pccl_ns least = 0;
    for (uint32_t i = 0; i < c->io.end; i++) {
        uint64_t member = conn_member(c->session->links, i);
        if (member == 0 || member != peer || c->io.sockets[i].fd < 0) continue;
        pccl_ns rtt = send_window_path_rtt(c->io.sockets[i].fd);
        if (rtt > 0 && (least == 0 || rtt < least)) least = rtt;
    }
    return (uint64_t)least;
}

/* Limits of one connection in one pass. They bound the time that the others
 * wait, and the other end reads the bytes while they are in the cache. */
enum { WINDOWS_MAX = 4, TURN_SIZE = 512 * 1024 };

static size_t turn_size(const pcclComm_t *c)
{
    return c->io.brief ? LAUNCH_MAX : TURN_SIZE;
}

/* Received bytes, as recv(). What waited for the other end's proof leaves with
 * the next pass. */
static ssize_t receive_into(struct comm_socket *s, uint8_t *to, size_t size)
{
    bool greeting = !comm_secure_is_open(s->secure);
    ssize_t n = comm_socket_recv(s->fd, s->secure, to, size);
    int error = errno;
    if (greeting && comm_secure_is_open(s->secure)) s->blocked = true;
    if (n < 0 && error == EPROTO && s->secure) comm_secure_tell(s->secure);
    errno = error;
    return n;
}

static bool receive(pcclComm_t *c, uint32_t number)
{
    struct engine *e = c->session->engine;
    struct comm_socket *s = &c->io.sockets[number];
    bool moved = false;
    size_t done = 0, turn = turn_size(c);
    for (int i = 0; i < WINDOWS_MAX && done < turn && s->fd >= 0; i++) {
        if (comm_shm_receives(c, number)) {
            if (s->secure && comm_shm_sends(c, number)) comm_secure_end(s);
            return comm_shm_receive(c, number) || moved;
        }
        uint8_t *to;
        size_t size = engine_rx_window(e, number, &to);
        if (size == 0) break;
        if (size > turn - done) size = turn - done;
        ssize_t n = receive_into(s, to, size);
        if (s->secure) moved |= secure_moved(s->secure);
        if (n < 0 && errno == EAGAIN) engine_rx_dry(e, number);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (n <= 0) {
            comm_io_lost(c, number);
            return true;
        }
        moved = true;
        c->counters.tcp_received += (uint64_t)n;
        if (!engine_rx(e, number, (size_t)n)) {
            LOG(LOG_INFO, "closed a connection that broke the protocol");
            return true;
        }
        if ((size_t)n < size) break;
        done += size;
        c->io.cut |= done >= turn;
    }
    return moved;
}

static bool transmit_now(pcclComm_t *c, uint32_t number)
{
    struct engine *e = c->session->engine;
    struct comm_socket *s = &c->io.sockets[number];
    bool moved = false;
    s->blocked = false;
    engine_clear_dirty(e, number);
    size_t done = 0, most = turn_size(c);
    if (!s->high_rtt && engine_is_long(e, number)) tune_high_rtt(s, s->fd);
    if (s->high_rtt && !s->connecting)
        send_window_look(&s->window, s->fd,
                         conn_sisters(c->session->links, number),
                         links_now(c->session->links));
    for (int turn = 0; s->fd >= 0; turn++) {
        if (comm_shm_sends(c, number))
            return comm_shm_transmit(c, number) || moved;
        /* On a high-RTT link every connection is to have work; a guest has but
         * one. */
        bool shares =
            s->high_rtt && !conn_is_of_guest(c->session->links, number);
        if (turn == (shares ? 1 : WINDOWS_MAX) || done >= most) {
            s->blocked = true; /* the next pass goes on */
            c->io.cut = true;
            break;
        }
        struct conn_part parts[2];
        uint32_t count = engine_tx_window(e, number, parts);
        if (count == 0) break;
        struct iovec iov[2];
        size_t total = 0;
        for (uint32_t i = 0; i < count; i++) {
            iov[i].iov_base = (void *)(uintptr_t)parts[i].from;
            iov[i].iov_len = parts[i].size;
            total += parts[i].size;
        }
        if (c->io.brief && total > most - done) {
            s->blocked = c->io.cut = true;
            break;
        }
        ssize_t n = comm_socket_send(s->fd, s->secure, iov, count);
        if (s->secure) moved |= secure_moved(s->secure);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            /* A greeting waits for input, not for room. */
            s->blocked =
                comm_secure_is_open(s->secure) || secure_wants_room(s->secure);
            break;
        }
        if (n < 0) {
            comm_io_lost(c, number);
            return true;
        }
        moved = true;
        c->counters.tcp_sent += (uint64_t)n;
        engine_tx(e, number, (size_t)n);
        if ((size_t)n < total && !s->secure) {
            s->blocked = true;
            break;
        }
        done += (size_t)n;
    }
    return moved;
}

static bool transmit(pcclComm_t *c, uint32_t number)
{
    bool moved = transmit_now(c, number);
    comm_io_note(c, number);
    return moved;
}

static bool move_one(pcclComm_t *c, uint32_t number, bool reads)
{
    struct engine *e = c->session->engine;
    struct comm_socket *s = &c->io.sockets[number];
    bool moved = false;
    if (s->connecting) {
        moved = finish_connecting(c, number);
        if (s->fd < 0 || s->connecting) return moved;
    }
    /* A pass sends first, because others wait for it. Received bytes make new
     * work. */
    if (s->blocked || engine_may_send(e, number)) moved |= transmit(c, number);
    if (s->fd >= 0 && reads) moved |= receive(c, number);
    bool opened = s->secure && s->blocked;
    if (s->fd >= 0 && (opened || engine_may_send(e, number)))
        moved |= transmit(c, number);
    return moved;
}

/* In the order of their numbers. What one receives may be to leave on those
 * that come after it. */
static bool move_word(pcclComm_t *c, uint32_t word, bool all)
{
    uint64_t expected = all ? UINT64_MAX : c->io.expected[word];
    uint64_t ahead = UINT64_MAX;
    bool moved = false;
    for (;;) {
        uint32_t bit = next_bit(expected | comm_io_busy(c, word), &ahead);
        uint32_t number = word * 64 + bit;
        if (bit == 64 || number >= c->io.end) return moved;
        if (c->io.sockets[number].fd < 0) continue;
        bool reads = ((expected >> bit) & 1) ||
                     !conn_is_of_link(c->session->links, number);
        moved |= move_one(c, number, reads);
        comm_io_note(c, number);
    }
}

static bool move(pcclComm_t *c, bool all)
{
    bool moved = false;
    links_set_now(c->session->links, comm_now());
    message_progress(&c->session->messages);
    for (uint32_t word = 0; word * 64 < c->io.end; word++)
        moved |= move_word(c, word, all);
    session_settle(c->session);
    return moved;
}

bool comm_io_move(pcclComm_t *c)
{
    return move(c, true);
}

bool comm_io_move_expected(pcclComm_t *c)
{
    return move(c, false);
}

bool comm_io_move_briefly(pcclComm_t *c)
{
    c->io.brief = true;
    c->io.cut = false;
    (void)move(c, true);
    c->io.brief = false;
    return c->io.cut;
}

void comm_io_expect(pcclComm_t *c, const struct op *op)
{
    size_t size = (c->io.end + 63) / 64 * sizeof c->io.expected[0];
    memset(c->io.expected, op ? 0 : 0xff, size);
    if (op) engine_expect(c->session->engine, op, c->io.expected);
}

static bool push_word(pcclComm_t *c, uint32_t word)
{
    uint64_t ahead = UINT64_MAX;
    bool waits = false;
    for (;;) {
        uint32_t bit = next_bit(comm_io_busy(c, word), &ahead);
        uint32_t number = word * 64 + bit;
        if (bit == 64 || number >= c->io.end) return waits;
        const struct comm_socket *s = &c->io.sockets[number];
        if (s->fd < 0) continue;
        bool sends = engine_may_send(c->session->engine, number);
        if (sends && !s->connecting && !s->blocked) (void)transmit(c, number);
        waits |= s->fd >= 0 && (s->connecting || s->blocked);
    }
}

bool comm_io_push(pcclComm_t *c)
{
    bool waits = false;
    links_set_now(c->session->links, comm_now());
    for (uint32_t word = 0; word * 64 < c->io.end; word++)
        waits |= push_word(c, word);
    return waits || message_pending(&c->session->messages);
}

void comm_io_push_to(pcclComm_t *c, uint64_t member)
{
    uint32_t number = message_conn(&c->session->messages, member);
    if (number != NO_CONN && conn_is_open(c->session->links, number) &&
        comm_shm_sends(c, number) && !c->io.sockets[number].blocked) {
        if (!engine_may_send(c->session->engine, number)) {
            comm_shm_ring(c, number, CHANNEL_WANTS_DATA);
            return;
        }
        (void)comm_shm_transmit(c, number);
        if (!c->io.sockets[number].blocked) return;
    }
    if (comm_io_push(c)) progress_changed(c);
}

static void on_conn_event(void *comm, struct io_watch *w)
{
    pcclComm_t *c = comm;
    struct comm_socket *s =
        (struct comm_socket *)(void *)((char *)w -
                                       offsetof(struct comm_socket, watch));
    s->event_pending = true;
    c->progress.event_pending = true;
}

/* -------------------------------------------------------------- listening */

static void on_listener_event(void *comm, struct io_watch *w)
{
    pcclComm_t *c = comm;
    links_set_now(c->session->links, comm_now());
    for (;;) {
        fork_guard_hold();
        int fd = fork_guard_keep(
            accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0) {
            bool lack = errno == EMFILE || errno == ENFILE ||
                        errno == ENOBUFS || errno == ENOMEM;
            if (lack) comm_pause_accepting(c);
            break;
        }
        if (!admits(c, fd, false)) {
            fork_guard_close(fd);
            continue;
        }
        uint32_t number = take_number(c, fd);
        if (number != NO_CONN &&
            comm_secure_link(c, SECURE_ACCEPTOR,
                             &c->io.sockets[number].secure) &&
            engine_accepted(c->session->engine, number)) {
            engine_measured(c->session->engine, number,
                            tune(&c->io.sockets[number], fd));
        } else {
            LOG(LOG_WARN, "too many connections: one refused");
            if (number != NO_CONN) {
                secure_close(c->io.sockets[number].secure);
                c->io.sockets[number].secure = NULL;
                c->io.sockets[number].fd = -1;
            }
            fork_guard_close(fd);
        }
    }
    c->progress.event_pending = true;
}

bool comm_io_start_watchers(pcclComm_t *c)
{
    bool ok = comm_master_start(c);
    for (int i = 0; i < COMM_LISTENERS_MAX; i++) {
        struct io_watch *w = &c->io.listener_watches[i];
        *w = (struct io_watch){.fd = c->io.listeners[i],
                               .ready = on_listener_event};
        if (w->fd >= 0)
            ok = io_loop_watch(&c->background.loop, w, IO_READ) && ok;
    }
    return ok;
}

void comm_io_close_all(pcclComm_t *c)
{
    for (uint32_t i = 0; i < c->io.end; i++) {
        if (c->io.sockets[i].fd < 0) continue;
        fork_guard_close(c->io.sockets[i].fd);
        c->io.sockets[i].fd = -1;
        secure_close(c->io.sockets[i].secure);
        c->io.sockets[i].secure = NULL;
        shared_memory_free(&c->io.sockets[i].share);
    }
    c->io.end = 0;
    for (int i = 0; i < COMM_LISTENERS_MAX; i++) {
        if (c->io.listeners[i] >= 0) fork_guard_close(c->io.listeners[i]);
        c->io.listeners[i] = -1;
    }
    comm_master_close(c);
}
