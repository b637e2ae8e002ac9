/* comm_io_master.c - the connection of a communicator to the master. See
 * comm.h. */
#include "comm.h"

#include "../base/io_addr.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void comm_io_to_master(void *comm, const struct wire_msg *msg)
{
    pcclComm_t *c = comm;
    if (c->master_fd < 0) return;
    if (c->out_first + c->out_size + WIRE_FRAME_MAX > c->out_capacity) {
        if (c->out_size > 0)
            memmove(c->out, c->out + c->out_first, c->out_size);
        c->out_first = 0;
        size_t need = c->out_size + WIRE_FRAME_MAX;
        if (need > c->out_capacity) {
            uint8_t *more = realloc(c->out, 2 * need);
            if (!more) return; /* the heartbeats will tell */
            c->out = more;
            c->out_capacity = 2 * need;
        }
    }
    c->out_size += wire_encode(msg, c->out + c->out_first + c->out_size);
}

static void master_lost(pcclComm_t *c, const char *reason)
{
    if (c->master_fd < 0) return;
    ev_io_stop(c->loop, &c->master_watcher);
    close(c->master_fd);
    c->master_fd = -1;
    c->out_size = 0;
    session_master_gone(c->session, reason);
}

void comm_io_flush_master(pcclComm_t *c)
{
    while (c->master_fd >= 0 && c->out_size > 0) {
        ssize_t n = send(c->master_fd, c->out + c->out_first, c->out_size,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) {
            master_lost(c, "the connection to the master broke");
            return;
        }
        c->out_first += (size_t)n;
        c->out_size -= (size_t)n;
    }
    c->out_first = 0;
}

/* Rule M8. What came while this thread was held up counts. */
void comm_io_judge_master(pcclComm_t *c)
{
    if (c->master_fd < 0) return;
    if (comm_now() - c->last_recv < c->session->engine.links.deadline) return;
    struct pollfd p = {.fd = c->master_fd, .events = POLLIN};
    if (poll(&p, 1, 0) == 0)
        master_lost(c, "the master was silent for longer than the deadline");
}

static void read_frames(pcclComm_t *c)
{
    size_t done = 0;
    while (c->master_fd >= 0) {
        struct wire_msg msg;
        size_t used = 0;
        enum wire_status status =
            wire_decode(c->in + done, c->in_size - done, c->store, &msg, &used);
        if (status == WIRE_MORE) break;
        if (status == WIRE_BAD) {
            master_lost(c, "the master does not speak this protocol");
            return;
        }
        done += used;
        session_on_message(c->session, &msg);
    }
    memmove(c->in, c->in + done, c->in_size - done);
    c->in_size -= done;
}

bool comm_io_read_master(pcclComm_t *c)
{
    if (c->master_fd < 0) return false;
    if (c->in_capacity < WIRE_FRAME_MAX) {
        uint8_t *more = realloc(c->in, WIRE_FRAME_MAX);
        if (!more) return false;
        c->in = more;
        c->in_capacity = WIRE_FRAME_MAX;
    }
    ssize_t n = recv(c->master_fd, c->in + c->in_size,
                     c->in_capacity - c->in_size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    c->session->engine.links.now = c->session->now = comm_now();
    if (n > 0) {
        c->in_size += (size_t)n;
        c->last_recv = c->session->now;
        read_frames(c);
    } else {
        master_lost(c, "the master closed the connection");
    }
    return true;
}

static void on_master_event(struct ev_loop *loop, struct ev_io *w, int events)
{
    (void)loop, (void)events;
    pcclComm_t *c = w->data;
    c->session->engine.links.now = c->session->now = comm_now();
    /* What peers sent before this message counts before it does: the last
     * bytes of one that died complete operations that a flush would otherwise
     * have to abort. */
    (void)comm_io_move(c);
    (void)comm_io_read_master(c);
    comm_pace(c); /* WELCOME has the run's deadline */
    progress_changed(c);
}

/* The error of a connect() that was begun, or 0; waits for it. */
static int await_connect(int fd, pccl_ns deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    pccl_ns until = comm_now() + deadline;
    int rc;
    do { /* signals of the program do not count */
        pccl_ns left = until - comm_now();
        rc = poll(&p, 1, left > 0 ? (int)(left / PCCL_MS) : 0);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    if (rc < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return errno;
    return error;
}

static struct wire_addr master_address(const pcclComm_t *c)
{
    const ccoip_socket_address_t *m = &c->params.master_address;
    struct wire_addr addr = {.family = 4, .port = m->port};
    memcpy(addr.ip, m->inet.ipv4.data, sizeof m->inet.ipv4.data);
    if (m->inet.protocol == inetIPv6) {
        addr.family = 6;
        memcpy(addr.ip, m->inet.ipv6.data, sizeof m->inet.ipv6.data);
    }
    return addr;
}

bool comm_io_connect_master(pcclComm_t *c, pccl_ns deadline)
{
    struct wire_addr addr = master_address(c);
    struct io_addr to;
    char text[IO_ADDR_TEXT_SIZE];
    int error = 0;
    int fd = -1;
    if (io_addr_from_wire(&addr, &to))
        fd = socket(to.name.ss_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) io_addr_tune_early(fd, &to);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to.name, to.size) != 0)
        error = errno;
    if (error == EINPROGRESS) error = await_connect(fd, deadline);
    if (error != 0) {
        comm_set_error(c, "cannot reach the master at %s: %s",
                       io_addr_print(&addr, text), strerror(error));
        if (fd >= 0) close(fd);
        return false;
    }
    io_addr_tune(fd, &to);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(c->master_poll, EPOLL_CTL_ADD, fd, &event) != 0) {
        comm_set_error(c, "cannot watch the master: %s", strerror(errno));
        close(fd);
        return false;
    }
    c->master_fd = fd;
    c->master_watched = event.events;
    c->last_recv = comm_now();
    return true;
}

void comm_io_start_master(pcclComm_t *c)
{
    ev_io_init(&c->master_watcher, on_master_event, c->master_poll, EV_READ);
    c->master_watcher.data = c;
    ev_io_start(c->loop, &c->master_watcher);
}

void comm_io_close_master(pcclComm_t *c)
{
    if (c->master_fd >= 0) close(c->master_fd);
    c->master_fd = -1;
    c->in_size = c->out_size = c->out_first = 0;
}
