/* comm_prefetch.c - pcclPrefetch: the driver of elastic/prefetch.h. The call's
 * own thread does all of it, with sockets of its own and without the lock; the
 * communicator is not connected meanwhile. */
#include "comm.h"

#include "../base/log.h"
#include "../elastic/prefetch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fetch {
    pcclComm_t *c;
    pccl_ns until; /* the call stops waiting */
    struct prefetch core;
    int fd;                /* to the member of `attempt`; -1: none */
    struct secure *secure; /* its channel; NULL: in clear */
    uint32_t attempt;
    bool blocked;      /* more could be sent */
    bool told;         /* that nobody offers */
    uint8_t *in, *out; /* a frame of the master, and to it */
    struct wire_store *store;
};

static pccl_ns earlier(pccl_ns a, pccl_ns b)
{
    return a < b ? a : b;
}

static bool interrupted(const struct fetch *f)
{
    return comm_interrupted(f->c, f->until) != 0;
}

/* Until the socket is ready, the call is interrupted, or the time has come. */
static bool wait_for(const struct fetch *f, int fd, short events, pccl_ns until)
{
    struct pollfd p[] = {{.fd = f->c->calls.bell_fd, .events = POLLIN},
                         {.fd = fd, .events = events}};
    pccl_ns left = earlier(until, f->until) - comm_now();
    int ms = 0;
    if (left > 0) ms = left < PCCL_S ? (int)(left / PCCL_MS) + 1 : 1000;
    int rc = poll(p, fd < 0 ? 1 : 2, ms);
    if (rc > 0 && p[0].revents != 0) comm_calls_drain(f->c);
    return rc > 0 && fd >= 0 && p[1].revents != 0;
}

static void hang_up(struct fetch *f)
{
    if (f->fd >= 0) fork_guard_close(f->fd);
    f->fd = -1;
    secure_close(f->secure);
    f->secure = NULL;
}

/* ------------------------------------------------------------- the master */

static bool greet(const struct fetch *f, int fd, struct secure *s, pccl_ns end)
{
    for (int rc = s ? 0 : 1; rc <= 0;) {
        rc = secure_greet(fd, s);
        if (rc < 0) comm_secure_tell(s);
        if (rc < 0 || interrupted(f) || comm_now() >= end) return false;
        if (rc == 0) (void)wait_for(f, fd, POLLIN, end);
    }
    return true;
}

static bool send_all(const struct fetch *f, int fd, struct secure *s,
                     size_t size, pccl_ns end)
{
    size_t done = 0;
    while (done < size) {
        struct iovec part = {f->out + done, size - done};
        ssize_t n = comm_socket_send(fd, s, &part, 1);
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        (void)wait_for(f, fd, POLLOUT, end);
        if (interrupted(f) || comm_now() >= end) return false;
    }
    return true;
}

static bool receive_offers(struct fetch *f, int fd, struct secure *s,
                           struct wire_msg *msg, pccl_ns end)
{
    size_t size = 0;
    size_t used;
    for (;;) {
        enum wire_status status =
            wire_decode(f->in, size, f->store, msg, &used);
        if (status == WIRE_OK && msg->type == WIRE_HEARTBEAT) { /* K16 */
            memmove(f->in, f->in + used, size - used);
            size -= used;
            continue;
        }
        if (status == WIRE_OK && msg->type == WIRE_EVICT &&
            msg->abort.code != WIRE_EVICT_ELSEWHERE)
            LOG(LOG_WARN, "the master refuses the download: %s",
                msg->abort.text);
        if (status == WIRE_OK) return msg->type == WIRE_OFFERS;
        if (status == WIRE_BAD) return false;
        ssize_t n =
            comm_socket_recv(fd, s, f->in + size, WIRE_FRAME_MAX - size);
        if (n > 0) {
            size += (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;
        (void)wait_for(f, fd, POLLIN, end);
        if (interrupted(f) || comm_now() >= end) return false;
    }
}

static bool ask_one(struct fetch *f, const struct wire_addr *addr)
{
    pccl_ns end = earlier(comm_now() + f->core.deadline, f->until);
    struct wire_msg ask = {.type = WIRE_OFFERS_GET};
    struct wire_msg msg;
    char why[COMM_WHY_SIZE];
    ask.offer.group = f->c->params.peer_group;
    int fd = comm_dial(f->c, addr, end, why, NULL);
    if (fd < 0) return false;
    struct secure *s = NULL;
    bool ok = comm_secure_master(f->c, &s) && greet(f, fd, s, end) &&
              send_all(f, fd, s, wire_encode(&ask, f->out), end) &&
              receive_offers(f, fd, s, &msg, end);
    secure_close(s);
    fork_guard_close(fd);
    f->core.now = comm_now();
    if (!ok) return false;
    comm_secure_prove(f->c, &msg.offer.key);
    prefetch_servers(&f->core, &msg);
    if (msg.member_count == 0 && f->core.state == PREFETCH_WAITS && !f->told) {
        f->told = true;
        LOG(LOG_INFO, "no member of the group offers its state yet; waiting");
    }
    return true;
}

/* Rule S10b. False: no master can be reached, or none answers. */
static bool ask_master(struct fetch *f)
{
    struct comm_masters masters;
    comm_lock(f->c);
    int found = comm_masters_find(f->c, &masters, f->until);
    pthread_mutex_unlock(&f->c->lock);
    if (found != pcclSuccess) return false;
    for (uint32_t i = 0; i < masters.count && !interrupted(f); i++)
        if (ask_one(f, &masters.at[i])) return true;
    return false;
}

/* --------------------------------------------------------------- a member */

/* Rule N2. */
static int dial_server(struct fetch *f, pccl_ns end)
{
    const struct wire_member *server = &f->core.server;
    const struct wire_addr *first = wire_dial_addr(server, 0);
    const struct wire_addr *other = wire_dial_addr(server, 1);
    pccl_ns now = comm_now();
    char why[COMM_WHY_SIZE];
    if (first == other) return comm_dial(f->c, first, end, why, NULL);
    int fd = comm_dial(f->c, first, now + (end - now) / 2, why, NULL);
    return fd >= 0 ? fd : comm_dial(f->c, other, end, why, NULL);
}

static void dial(struct fetch *f)
{
    struct prefetch *p = &f->core;
    pccl_ns end = p->since + PCCL_TIME_TO_DETECT(p->deadline);
    hang_up(f);
    f->attempt = p->attempt;
    f->blocked = false;
    f->fd = dial_server(f, earlier(end, f->until));
    if (f->fd >= 0 && !comm_secure_link(f->c, SECURE_DIALER, &f->secure))
        hang_up(f);
    p->now = comm_now();
    prefetch_dialed(p, f->fd >= 0);
}

/* The connection that this was is over, for the core or for the other end. */
static bool is_over(struct fetch *f)
{
    return f->core.state != PREFETCH_RUNS || f->core.attempt != f->attempt;
}

static void send_some(struct fetch *f)
{
    const uint8_t *from;
    size_t size;
    f->blocked = false;
    while (!is_over(f) && (size = prefetch_tx_window(&f->core, &from)) > 0) {
        struct iovec part = {(void *)(uintptr_t)from, size};
        ssize_t n = comm_socket_send(f->fd, f->secure, &part, 1);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            f->blocked =
                comm_secure_is_open(f->secure) || secure_wants_room(f->secure);
            return;
        }
        if (n < 0) {
            prefetch_closed(&f->core);
            return;
        }
        prefetch_tx(&f->core, (size_t)n);
    }
}

static void receive_some(struct fetch *f)
{
    enum { TURNS_MAX = 64 };
    uint8_t *to;
    size_t size;
    for (int i = 0; i < TURNS_MAX && !is_over(f); i++) {
        if ((size = prefetch_rx_window(&f->core, &to)) == 0) return;
        ssize_t n = comm_socket_recv(f->fd, f->secure, to, size);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) {
            prefetch_closed(&f->core);
            return;
        }
        prefetch_rx(&f->core, (size_t)n);
    }
}

static void run(struct fetch *f)
{
    pccl_ns tick = PCCL_TIME_OF_TICK(f->core.deadline);
    send_some(f);
    if (is_over(f)) return;
    short events = POLLIN;
    if (f->blocked) events |= POLLOUT;
    bool there = comm_secure_has_input(f->secure);
    if (!there && !wait_for(f, f->fd, events, comm_now() + tick)) return;
    f->core.now = comm_now();
    receive_some(f);
}

/* ------------------------------------------------------------------- the call
 */

static void fetch_all(struct fetch *f)
{
    struct prefetch *p = &f->core;
    while (!interrupted(f)) {
        prefetch_tick(p, comm_now());
        switch (p->state) {
        case PREFETCH_ASKS:
            if (!ask_master(f)) prefetch_unanswered(p);
            break;
        case PREFETCH_WAITS:
            (void)wait_for(f, -1, 0, p->ask_at);
            break;
        case PREFETCH_DIALS:
            dial(f);
            break;
        case PREFETCH_RUNS:
            run(f);
            break;
        case PREFETCH_DONE:
        case PREFETCH_NOBODY:
        case PREFETCH_UNLIKE:
        case PREFETCH_FAILED:
            return;
        }
    }
}

static int result_of(struct fetch *f)
{
    pcclComm_t *c = f->c;
    const struct prefetch *p = &f->core;
    switch (p->state) {
    case PREFETCH_DONE:
        return pcclSuccess;
    case PREFETCH_NOBODY:
        comm_set_error(c, "nobody is in the group: there is no state to "
                          "download; pcclConnect founds the group");
        return pcclNoSharedStateAvailable;
    case PREFETCH_UNLIKE:
        comm_set_error(c, "names, types or counts of the tensors are not those "
                          "that the group offers");
        return pcclInvalidArgument;
    case PREFETCH_FAILED:
        comm_set_error(c, "a tensor on a device could not be read or written");
        return pcclInternalError;
    default:
        return comm_stop_waiting(c, comm_interrupted(c, f->until),
                                 "call again: what is there already is not "
                                 "downloaded twice");
    }
}

static bool allocate(struct fetch *f)
{
    f->in = malloc(WIRE_FRAME_MAX);
    f->out = malloc(WIRE_FRAME_MAX);
    f->store = calloc(1, sizeof *f->store);
    return f->in && f->out && f->store;
}

static int fetch(pcclComm_t *c, struct fetch *f, const struct state_list *list,
                 uint64_t max_stale)
{
    struct comm_masters masters;
    int result = comm_masters_find(c, &masters, f->until);
    if (result != pcclSuccess) return result;
    if (!comm_key_take(c)) return pcclInvalidArgument;
    pccl_ns deadline = comm_own_deadline(c);
    bool ok = prefetch_init(&f->core, list, max_stale, deadline, comm_now());
    if (!ok || !allocate(f)) {
        comm_set_error(c, "out of memory for the download");
        return pcclInternalError;
    }
    comm_spare_wait(c, f->until);
    c->offers.fetching = true;
    pthread_mutex_unlock(&c->lock);
    fetch_all(f);
    hang_up(f);
    comm_lock(c);
    c->offers.fetching = false;
    return result_of(f);
}

int comm_prefetch(pcclComm_t *c, const pcclSharedState_t *state,
                  uint64_t max_stale, pcclPrefetchInfo_t *info)
{
    struct fetch *f = calloc(1, sizeof *f);
    struct state_list list;
    if (!f) {
        comm_set_error(c, "out of memory for the download");
        return pcclInternalError;
    }
    *f = (struct fetch){.c = c, .until = comm_limit(c), .fd = -1};
    int result = (int)comm_read_state(c, state, false, &list);
    if (result == pcclSuccess) {
        result = fetch(c, f, &list, max_stale);
        const struct prefetch *p = &f->core;
        uint64_t oldest = p->got ? prefetch_oldest(p) : 0;
        if (result == pcclSuccess) {
            c->offers.fetched = true;
            c->offers.revision = oldest;
            c->offers.max_stale = max_stale;
        }
        if (info)
            *info = (pcclPrefetchInfo_t){.rx_bytes = (size_t)p->rx_bytes,
                                         .revision = oldest,
                                         .offered = p->revision};
        if (p->got) prefetch_free(&f->core);
        state_list_free(&list);
    }
    free(f->in);
    free(f->out);
    free(f->store);
    free(f);
    return result;
}
