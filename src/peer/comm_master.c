/* comm_master.c - the connection of a communicator to the master. See
 * comm.h. */
#include "comm.h"

#include "../base/io_addr.h"
#include "../base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

bool comm_master_reserve(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    size_t in = WIRE_FRAME_MAX, out = 2 * (size_t)WIRE_FRAME_MAX;
    if (m->in_capacity < in) {
        uint8_t *more = realloc(m->in, in);
        if (!more) return false;
        m->in = more;
        m->in_capacity = in;
    }
    if (m->out_capacity < out) {
        uint8_t *more = realloc(m->out, out);
        if (!more) return false;
        m->out = more;
        m->out_capacity = out;
    }
    return true;
}

void comm_master_send(void *comm, const struct wire_msg *msg)
{
    pcclComm_t *c = comm;
    struct comm_master *m = &c->master;
    if (m->fd < 0) return;
    if (m->out_first + m->out_size + WIRE_FRAME_MAX > m->out_capacity) {
        if (m->out_size > 0)
            memmove(m->out, m->out + m->out_first, m->out_size);
        m->out_first = 0;
        size_t need = m->out_size + WIRE_FRAME_MAX;
        if (need > m->out_capacity) {
            uint8_t *more = realloc(m->out, 2 * need);
            if (!more) return; /* heartbeats stop, and it notices */
            m->out = more;
            m->out_capacity = 2 * need;
        }
    }
    m->out_size += wire_encode(msg, m->out + m->out_first + m->out_size);
}

void comm_master_lose(pcclComm_t *c, const char *reason)
{
    struct comm_master *m = &c->master;
    if (m->fd < 0) return;
    (void)io_loop_watch(&c->background.loop, &m->watch, 0);
    fork_guard_close(m->fd);
    m->fd = -1;
    secure_close(m->secure);
    m->secure = NULL;
    m->out_size = 0;
    if (c->session->resuming) m->turn++; /* rule H14: the next one's */
    session_master_gone(c->session, reason);
}

void comm_master_flush(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    while (m->fd >= 0 && m->out_size > 0) {
        struct iovec out = {m->out + m->out_first, m->out_size};
        ssize_t n = comm_socket_send(m->fd, m->secure, &out, 1);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) {
            /* What it said before it closed tells more. */
            (void)comm_master_read(c);
            comm_master_lose(c, "the connection to the master broke");
            return;
        }
        m->out_first += (size_t)n;
        m->out_size -= (size_t)n;
    }
    m->out_first = 0;
}

/* Rule M13. */
static pccl_ns patience_with_master(const pcclComm_t *c)
{
    pccl_ns deadline = links_deadline(c->session->links);
    if (c->session->id == 0) return deadline;
    return c->patience > deadline ? c->patience : deadline;
}

/* Rules M12, M13: time in which this thread did not run does not count, and
 * bytes that arrived meanwhile do. */
void comm_master_judge(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    pccl_ns now = comm_now();
    pccl_ns deadline = links_deadline(c->session->links);
    pccl_ns slept = now - m->judged_at - deadline / 5;
    m->judged_at = now;
    if (m->fd < 0) return;
    if (slept > deadline / 5) m->last_recv += slept;
    if (m->last_recv > now) m->last_recv = now;
    pccl_ns silent = now - m->last_recv;
    pccl_ns patience = patience_with_master(c);
    struct pollfd p = {.fd = m->fd, .events = POLLIN};
    if (silent < deadline || poll(&p, 1, 0) != 0) return;
    if (silent >= patience) {
        comm_master_lose(c, "the master was silent for too long");
    } else if (!m->missed) {
        m->missed = true;
        LOG(LOG_WARN,
            "the master has been silent for %.1f s; waiting for it for up to "
            "%.0f s (PCCL_MASTER_PATIENCE)",
            (double)silent / PCCL_S, (double)patience / PCCL_S);
    }
}

static void read_frames(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    size_t done = 0;
    while (m->fd >= 0) {
        struct wire_msg msg;
        size_t used = 0;
        enum wire_status status =
            wire_decode(m->in + done, m->in_size - done, m->store, &msg, &used);
        if (status == WIRE_MORE) break;
        if (status == WIRE_BAD) {
            comm_master_lose(c, "the master does not speak this protocol");
            return;
        }
        done += used;
        if (msg.type == WIRE_WELCOME) comm_secure_prove(c, &msg.welcome.key);
        struct view_before before = count_before(c->session);
        session_on_message(c->session, &msg);
        struct view_change change =
            count_view(&c->counters, c->session, &before);
        if (change.closed || change.installed) comm_tell_view(c, &change);
    }
    memmove(m->in, m->in + done, m->in_size - done);
    m->in_size -= done;
}

static bool read_some(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    if (m->fd < 0) return false;
    if (!comm_master_reserve(c)) return false;
    bool greeting = !comm_secure_is_open(m->secure);
    ssize_t n = comm_socket_recv(m->fd, m->secure, m->in + m->in_size,
                                 m->in_capacity - m->in_size);
    bool none = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (greeting && comm_secure_is_open(m->secure)) comm_master_flush(c);
    if (none) return false;
    c->session->now = comm_now();
    links_set_now(c->session->links, c->session->now);
    if (n > 0) {
        m->in_size += (size_t)n;
        if (m->missed)
            LOG(LOG_WARN, "the master is heard again after %.1f s",
                (double)(c->session->now - m->last_recv) / PCCL_S);
        m->missed = false;
        m->last_recv = c->session->now;
        read_frames(c);
    } else {
        bool secure = m->secure && secure_state(m->secure) == SECURE_BROKEN;
        m->foreign = secure && secure_fault(m->secure) != SECURE_CUT;
        comm_master_lose(c, secure ? secure_fault_text(secure_fault(m->secure))
                                   : "the master closed the connection");
    }
    (void)comm_samples_exchange(c);
    return true;
}

bool comm_master_read(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    bool some = read_some(c);
    while (m->fd >= 0 && comm_secure_has_input(m->secure)) some |= read_some(c);
    return some;
}

static void on_master_event(void *comm, struct io_watch *w)
{
    (void)w;
    pcclComm_t *c = comm;
    c->session->now = comm_now();
    links_set_now(c->session->links, c->session->now);
    /* Bytes that peers sent before this message are handled first: the last
     * bytes of a member that died complete operations that a flush would
     * otherwise abort. */
    (void)comm_io_move(c);
    (void)comm_master_read(c);
    comm_pace(c); /* WELCOME has the run's deadline */
    progress_changed(c);
}

int comm_await(pcclComm_t *c, int fd, short events, pccl_ns until)
{
    enum { AT_ONCE_MAX = 3600 * 1000 }; /* ms */
    struct pollfd p[] = {{.fd = fd, .events = events},
                         {.fd = c->calls.bell_fd, .events = POLLIN}};
    for (;;) {
        if (comm_is_cancelled(c)) return ECANCELED;
        if (p[1].revents != 0) comm_calls_drain(c);
        pccl_ns left = (until - comm_now()) / PCCL_MS + 1;
        if (left > AT_ONCE_MAX) left = AT_ONCE_MAX;
        int rc = poll(p, ARRAY_COUNT(p), left > 0 ? (int)left : 0);
        if (rc < 0 && errno != EINTR) return errno;
        if (rc < 0)
            p[0].revents = p[1].revents = 0; /* a signal is no failure */
        if (p[0].revents != 0) return 0;
        if (rc == 0 && comm_now() >= until) return ETIMEDOUT;
    }
}

/* Waits for a connect() that was begun, and returns its error or 0. */
static int await_connect(pcclComm_t *c, int fd, pccl_ns until)
{
    int error = comm_await(c, fd, POLLOUT, until);
    socklen_t size = sizeof error;
    if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return errno;
    return error;
}

bool comm_pause(pcclComm_t *c, pccl_ns time)
{
    return comm_await(c, -1, 0, comm_now() + time) == ETIMEDOUT;
}

int comm_dial(pcclComm_t *c, const struct wire_addr *addr, pccl_ns end,
              char why[COMM_WHY_SIZE], bool *refused)
{
    struct io_addr to;
    int fd = -1, error = 0;
    if (io_addr_from_wire(addr, &to)) {
        fork_guard_hold();
        fd = fork_guard_keep(socket(
            to.name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    }
    if (fd >= 0) io_addr_tune_early(fd, &to);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to.name, to.size) != 0)
        error = errno;
    if (error == EINPROGRESS) error = await_connect(c, fd, end);
    why[0] = '\0';
    if (error == 0 && !comm_admits(c, fd, true, why, COMM_WHY_SIZE))
        error = ECONNREFUSED;
    if (refused) *refused = why[0] != '\0';
    if (error != 0) {
        if (why[0] != '\0')
            LOG(LOG_WARN, "refused what answers: %s", why);
        else
            (void)snprintf(why, COMM_WHY_SIZE, "%s", strerror(error));
        if (fd >= 0) fork_guard_close(fd);
        return -1;
    }
    io_addr_tune(fd, &to);
    return fd;
}

bool comm_master_connect(pcclComm_t *c, pccl_ns deadline, pccl_ns until)
{
    pccl_ns end = comm_now() + deadline;
    struct comm_master *m = &c->master;
    struct wire_addr addr = comm_master_address(c);
    char text[IO_ADDR_TEXT_SIZE], why[COMM_WHY_SIZE];
    bool refused;
    int fd = comm_dial(c, &addr, end < until ? end : until, why, &refused);
    c->absent = fd < 0 && !refused;
    if (fd < 0) {
        comm_set_error(c, "cannot reach the master at %s: %s",
                       io_addr_print(&addr, text), why);
        return false;
    }
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(m->poll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        comm_set_error(c, "cannot watch the master: %s", strerror(errno));
        fork_guard_close(fd);
        return false;
    }
    if (!comm_secure_master(c, &m->secure)) {
        comm_set_error(c, "out of memory for TLS");
        fork_guard_close(fd);
        return false;
    }
    m->fd = fd;
    m->dial_fd = -1;
    m->watched = event.events;
    m->last_recv = m->judged_at = comm_now();
    m->missed = m->foreign = false;
    return true;
}

bool comm_master_start(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    m->watch = (struct io_watch){.fd = m->poll_fd, .ready = on_master_event};
    return io_loop_watch(&c->background.loop, &m->watch, IO_READ);
}

void comm_master_close(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    if (m->fd >= 0) fork_guard_close(m->fd);
    if (m->dial_fd >= 0) fork_guard_close(m->dial_fd);
    m->fd = m->dial_fd = -1;
    secure_close(m->secure);
    m->secure = NULL;
    m->in_size = m->out_size = m->out_first = 0;
}
