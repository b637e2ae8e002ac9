/* comm_resume.c - dials a coordinator again that was lost, while another one
 * may come (rule H2), or that is silent (M13a). By the I/O thread at its ticks:
 * it never waits. */
#include "comm.h"

#include "../base/io_addr.h"
#include "../base/log.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void hang_up(struct comm_master *m)
{
    fork_guard_close(m->dial_fd);
    m->dial_fd = -1;
}

/* The next call is to the next coordinator. */
static void give_up(struct comm_master *m)
{
    hang_up(m);
    m->turn++;
}

/* Rule H14. */
static bool has_several(const pcclComm_t *c)
{
    return c->session->master_count > 1;
}

static struct wire_addr address(const pcclComm_t *c)
{
    const struct session *s = c->session;
    if (!has_several(c)) return comm_master_address(c);
    return s->masters[c->master.turn % s->master_count];
}

/* Begins a connect(). */
static void dial(pcclComm_t *c, const struct io_addr *to)
{
    struct comm_master *m = &c->master;
    fork_guard_hold();
    m->dial_fd = fork_guard_keep(socket(
        to->name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (m->dial_fd < 0) return;
    m->dialed_at = comm_now();
    io_addr_tune_early(m->dial_fd, to);
    int rc = connect(m->dial_fd, (const struct sockaddr *)&to->name, to->size);
    if (rc != 0 && errno != EINPROGRESS) hang_up(m);
}

static void dial_next(pcclComm_t *c)
{
    struct wire_addr addr = address(c);
    struct io_addr to;
    if (!io_addr_from_wire(&addr, &to)) return;
    dial(c, &to);
    if (c->master.dial_fd < 0) c->master.turn++;
}

static bool is_answered(const struct comm_master *m)
{
    struct pollfd p = {.fd = m->dial_fd, .events = POLLOUT};
    return poll(&p, 1, 0) > 0;
}

static int dial_error(const struct comm_master *m)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(m->dial_fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return errno;
    return error;
}

/* The connection is up, or gone again. */
static void connected(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    struct epoll_event event = {.events = EPOLLIN};
    char why[256];
    if (dial_error(m) != 0 ||
        !comm_admits(c, m->dial_fd, true, why, sizeof why) ||
        epoll_ctl(m->poll_fd, EPOLL_CTL_ADD, m->dial_fd, &event) != 0) {
        give_up(m);
        return;
    }
    if (!comm_secure_master(c, &m->secure)) {
        give_up(m);
        return;
    }
    m->fd = m->dial_fd;
    m->dial_fd = -1;
    m->watched = event.events;
    m->in_size = m->out_size = m->out_first = 0;
    m->last_recv = m->judged_at = m->dialed_at = comm_now();
    m->missed = false;
    (void)comm_master_start(c);
    session_resume(c->session);
    comm_master_flush(c);
}

/* Rule M13a: a host that sleeps or is stopped acknowledges what it gets, and
 * one that is cut off opens no connection. */
static void look_beside(pcclComm_t *c, pccl_ns deadline)
{
    struct comm_master *m = &c->master;
    pccl_ns now = comm_now();
    bool unheard = m->missed && io_addr_unheard(m->fd) >= deadline;
    if (!unheard) m->reached_at = 0;
    if (unheard && m->reached_at == 0 && m->dial_fd < 0) {
        struct io_addr to = io_addr_peer(m->fd);
        if (to.size > 0) dial(c, &to);
    }
    if (m->dial_fd >= 0) {
        bool answered = is_answered(m);
        if (answered && unheard && dial_error(m) == 0) m->reached_at = now;
        if (answered || !unheard || now - m->dialed_at > deadline) hang_up(m);
    }
    if (m->reached_at != 0 &&
        now - m->reached_at > m->reached_at - m->last_recv)
        comm_master_lose(c, "the master can be reached, but nothing passes on "
                            "this connection any more: a router has forgotten "
                            "it, or an address has changed");
}

void comm_resume_tick(pcclComm_t *c)
{
    struct comm_master *m = &c->master;
    pccl_ns patience = links_deadline(c->session->links);
    bool late = comm_now() - m->dialed_at > patience;
    if (m->fd >= 0) {
        /* Most members may be with another one. */
        if (c->session->resuming && has_several(c) && late)
            comm_master_lose(c, "the coordinator does not take this one over");
        else if (!c->session->resuming)
            look_beside(c, patience);
        return;
    }
    if (!session_may_resume(c->session)) {
        if (m->dial_fd >= 0) give_up(m);
        return;
    }
    if (m->dial_fd < 0) dial_next(c);
    if (m->dial_fd < 0) return;
    if (is_answered(m))
        connected(c);
    else if (comm_now() - m->dialed_at >
             (has_several(c) ? patience / 2 : patience))
        give_up(m);
}
