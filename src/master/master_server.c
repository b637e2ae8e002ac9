/* master_server.c - the master's event loop: sockets and time for the
 * switchboard, which makes events of them.
 *
 * Every libev callback is one turn and ends with finish_turn(). */
#include "master_server.h"

#include "../base/fork_guard.h"
#include "../base/host.h"
#include "../base/io_addr.h"
#include "../base/log.h"
#include "master_listen.h"
#include "master_report.h"
#include "master_search.h"
#include "master_socket.h"
#include "master_status.h"
#include "switchboard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    ACCEPTS_MAX = 64, /* per turn, so that other connections are served */
    READS_MAX = 16,   /* per turn, likewise */
};

#define ACCEPT_PAUSE                                                           \
    .1 /* seconds to wait when the process has no free descriptors */

/* One connection of the switchboard. */
struct server_socket {
    struct master_server *server;
    struct master_conn *conn;
    ev_io io;
    int fd;
};

struct master_server {
    struct master_server_options options;
    struct master_report report;
    struct status_desk desk;
    int fd; /* the listener */
    uint16_t port;
    ev_io listener;
    ev_timer pause; /* no free descriptors: accept again later */
    bool full;      /* no free links: accept again when one is free */
    ev_timer tick;
    pccl_ns tick_at; /* while the timer runs */
    bool stepping;
    bool abort_due;
    int abort_code, abort_rank;

    /* Silent peers that the machine asks about. */
    struct master_look {
        uint64_t id, host;
        uint32_t pid;
    } looks[PEERS_MAX];
    uint32_t look_count;
    uint64_t host; /* this one */
    struct host_watch watch;

    struct searcher *searcher;
    void *edges; /* the store of edges */
    struct master machine;
    struct switchboard board;
};

static pccl_ns now_ns(void)
{
    struct timespec t;
    int bad = clock_gettime(CLOCK_MONOTONIC, &t);
    PCCL_ASSERT(bad == 0);
    (void)bad;
    return t.tv_sec * PCCL_S + t.tv_nsec;
}

/* -------------------------------------------------- effects of the machine */

static void send_effect(void *user, const uint32_t *links, uint32_t count,
                        const struct wire_msg *msg)
{
    struct master_server *s = user;
    LOG(LOG_TRACE, "master: %s to %" PRIu32 " peers", wire_type_name(msg->type),
        count);
    switchboard_send(&s->board, links, count, msg);
}

static void log_close(const struct master_conn *c, const char *reason)
{
    char text[IO_ADDR_TEXT_SIZE];
    LOG(LOG_INFO, "master: closing the connection of %s: %s",
        io_addr_print(&c->addr, text), reason);
}

static void close_effect(void *user, uint32_t link, const char *reason)
{
    struct master_server *s = user;
    log_close(s->board.links[link], reason);
    status_desk_closed(&s->desk, link);
    switchboard_close(&s->board, link);
}

static void note_effect(void *user, const struct master_note *note)
{
    struct master_server *s = user;
    char line[REPORT_SIZE];
    if (note->kind == NOTE_ABORTED && !s->abort_due) {
        bool member = note->peer->state == PEER_MEMBER;
        s->abort_due = true;
        s->abort_code = note->code;
        /* The launcher knows its ranks as it launched them. */
        bool launched = s->options.job && note->peer->info.hint >= 0;
        s->abort_rank =
            member && !launched ? (int)note->peer->rank : note->peer->info.hint;
    }
    status_desk_depart(&s->desk, &s->machine, note);
    if (!master_report_note(&s->report, note, line)) return;
    LOG(LOG_INFO, "master: %s", line);
    status_desk_note(&s->desk, &s->machine, note, line);
    bool urgent = note->kind == NOTE_EVICTED || note->kind == NOTE_STALLED;
    if (urgent && s->options.warn)
        s->options.warn(s->options.user, line);
    else if (s->options.report)
        s->options.report(s->options.user, line);
}

static bool search_effect(void *user, const struct master_search *search)
{
    struct master_server *s = user;
    LOG(LOG_DEBUG, "master: searches a ring of %" PRIu32 " peers%s", search->n,
        search->background ? " in the background" : "");
    return searcher_begin(s->searcher, search);
}

static void look_effect(void *user, const struct wire_member *peer)
{
    struct master_server *s = user;
    if (s->look_count == ARRAY_COUNT(s->looks)) return;
    s->looks[s->look_count++] =
        (struct master_look){peer->id, peer->host & ~(uint64_t)1, peer->pid};
}

static void status_effect(void *user, uint32_t link, bool json)
{
    struct master_server *s = user;
    status_desk_ask(&s->desk, &s->machine, link, json, now_ns());
}

static void feed(struct master_server *s, struct master_event event)
{
    PCCL_ASSERT(!s->stepping); /* a callback of the options called back */
    s->stepping = true;
    event.now = now_ns();
    master_step(&s->machine, &event);
    s->stepping = false;
}

/* ---------------------------------------------- effects of the switchboard */

static void step_effect(void *user, struct master_event *event)
{
    struct master_server *s = user;
    if (event->type == MASTER_CLOSED) status_desk_closed(&s->desk, event->link);
    feed(user, *event);
}

static void socket_watch(struct server_socket *k, int events)
{
    struct ev_loop *loop = k->server->options.loop;
    if (ev_is_active(&k->io) && (k->io.events & (EV_READ | EV_WRITE)) == events)
        return;
    ev_io_stop(loop, &k->io);
    ev_io_set(&k->io, k->fd, events);
    ev_io_start(loop, &k->io);
}

static enum conn_result flush_effect(void *user, struct master_conn *c)
{
    (void)user;
    struct server_socket *k = c->user;
    enum conn_result result = master_socket_flush(k->fd, c);
    if (result != CONN_END)
        socket_watch(k, result == CONN_WAIT ? EV_READ | EV_WRITE : EV_READ);
    return result;
}

static void finish_effect(void *user, struct master_conn *c)
{
    (void)user;
    const struct server_socket *k = c->user;
    (void)shutdown(k->fd, SHUT_WR);
}

static void socket_free(struct server_socket *k)
{
    ev_io_stop(k->server->options.loop, &k->io);
    fork_guard_close(k->fd);
    free(k);
}

static void end_effect(void *user, struct master_conn *c)
{
    (void)user;
    if (c->link != MASTER_NO_LINK && c->lost) log_close(c, c->lost);
    socket_free(c->user);
}

/* --------------------------------------------------------------- the turn */

static void tick_arm(struct master_server *s)
{
    pccl_ns at = master_next_tick(&s->machine);
    pccl_ns linger = switchboard_next_linger(&s->board);
    pccl_ns desk = status_desk_next(&s->desk, now_ns());
    if (linger < at) at = linger;
    if (desk < at) at = desk;
    if (at == PCCL_NEVER) {
        ev_timer_stop(s->options.loop, &s->tick);
        return;
    }
    /* Never later than it was: restarting it at every event would postpone the
     * tick for ever under steady traffic. */
    if (ev_is_active(&s->tick) && s->tick_at <= at) return;
    pccl_ns now = now_ns();
    s->tick_at = at;
    ev_timer_stop(s->options.loop, &s->tick);
    ev_timer_set(&s->tick, at > now ? (double)(at - now) / PCCL_S : 0., 0.);
    ev_timer_start(s->options.loop, &s->tick);
}

static void accept_resume(struct master_server *s)
{
    if (!s->full || switchboard_is_full(&s->board)) return;
    s->full = false;
    ev_io_start(s->options.loop, &s->listener);
}

/* Rule M10. Without an answer the peer is judged by its silence. */
static void take_looks(struct master_server *s)
{
    for (uint32_t i = 0; i < s->look_count; i++) {
        const struct master_look *l = &s->looks[i];
        if (l->host != s->host) {
            if (s->options.look)
                s->options.look(s->options.user, l->id, l->host, l->pid);
            continue;
        }
        feed(s, (struct master_event){
                    .type = MASTER_EVIDENCE,
                    .id = l->id,
                    .evidence = host_look(&s->watch, l->pid, now_ns())});
    }
    s->look_count = 0;
}

/* The last action of every callback: `aborted` may close the server, so the
 * server may not exist afterwards. */
static void finish_turn(struct master_server *s)
{
    status_desk_settle(&s->desk, &s->machine, now_ns());
    switchboard_turn(&s->board);
    take_looks(s);
    tick_arm(s);
    accept_resume(s);
    if (!s->abort_due) return;
    s->abort_due = false;
    if (s->options.aborted)
        s->options.aborted(s->options.user, s->abort_code, s->abort_rank);
}

static void on_found(void *user, const struct search_answer *a)
{
    struct master_server *s = user;
    feed(s, (struct master_event){.type = MASTER_SEARCHED,
                                  .group = a->group,
                                  .ticket = a->ticket,
                                  .order = a->order});
    finish_turn(s);
}

/* ------------------------------------------------------------------ input */

static void socket_read(struct server_socket *k)
{
    struct switchboard *b = &k->server->board;
    struct master_conn *c = k->conn;
    for (uint32_t i = 0; i < READS_MAX && !c->lost; i++) {
        size_t room, got;
        (void)master_conn_room(c, &room);
        enum conn_result result = master_socket_receive(k->fd, c, &got);
        if (result == CONN_WAIT) return;
        if (result == CONN_END) {
            switchboard_lose(b, c, "closed by the peer");
            return;
        }
        switchboard_received(b, c, got);
        if (got < room) return;
    }
}

static void on_socket(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    struct server_socket *k = io->data;
    struct master_server *s = k->server;
    if (events & EV_WRITE) switchboard_touch(&s->board, k->conn);
    if (events & EV_READ) socket_read(k);
    finish_turn(s);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct master_server *s = timer->data;
    switchboard_linger(&s->board, now_ns());
    feed(s, (struct master_event){.type = MASTER_TICK});
    finish_turn(s);
}

/* -------------------------------------------------------------- accepting */

/* Takes over fd. */
static bool socket_add(struct master_server *s, int fd,
                       const struct io_addr *from)
{
    struct server_socket *k = calloc(1, sizeof *k);
    if (!k) {
        fork_guard_close(fd);
        return false;
    }
    struct wire_addr addr = io_addr_to_wire(from);
    io_addr_tune(fd, from);
    k->server = s;
    k->fd = fd;
    ev_io_init(&k->io, on_socket, fd, EV_READ);
    k->io.data = k;
    ev_io_start(s->options.loop, &k->io);
    k->conn = switchboard_accept(&s->board, &addr, k);
    if (k->conn) return true;
    socket_free(k);
    return false;
}

/* False: no further connection can be accepted now. */
static bool accept_one(struct master_server *s)
{
    if (switchboard_is_full(&s->board)) {
        LOG(LOG_DEBUG, "master: no free link, newcomers wait");
        s->full = true;
        ev_io_stop(s->options.loop, &s->listener);
        return false;
    }
    struct io_addr from = {.size = sizeof from.name};
    fork_guard_hold();
    int fd = fork_guard_keep(accept4(s->fd, (struct sockaddr *)&from.name,
                                     &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0 && socket_add(s, fd, &from)) return true;
    if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                   errno == ENOMEM)) {
        /* The connection stays in the backlog and the listener readable. */
        LOG(LOG_WARN, "master: cannot accept: %s", strerror(errno));
        ev_io_stop(s->options.loop, &s->listener);
        ev_timer_set(&s->pause, ACCEPT_PAUSE, 0.);
        ev_timer_start(s->options.loop, &s->pause);
        return false;
    }
    return true; /* the connection is already gone */
}

static void on_listener(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct master_server *s = io->data;
    for (uint32_t i = 0; i < ACCEPTS_MAX && accept_one(s); i++) continue;
    finish_turn(s);
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct master_server *s = timer->data;
    ev_io_start(loop, &s->listener);
}

/* ------------------------------------------------------- opening, closing */

static void machine_init(struct master_server *s, const struct wire_key *key)
{
    struct master_config config = {
        .out = {s, send_effect, close_effect, note_effect, search_effect,
                look_effect, status_effect},
        .deadline = s->options.deadline,
        .quorum = s->options.quorum,
        .minimum = s->options.minimum,
        .job = s->options.job,
        .alone = !s->options.job,
        .warn_after = s->options.warn_after,
        .key = *key,
        .edges = bandwidth_init(s->edges, bandwidth_size(PEERS_MAX), PEERS_MAX),
    };
    struct switchboard_output out = {s, step_effect, flush_effect,
                                     finish_effect, end_effect};
    master_init(&s->machine, &config);
    switchboard_init(&s->board, &s->machine, &out,
                     &(struct switchboard_limits){0});
}

static void watchers_init(struct master_server *s)
{
    ev_io_init(&s->listener, on_listener, s->fd, EV_READ);
    ev_timer_init(&s->pause, on_pause, ACCEPT_PAUSE, 0.);
    ev_timer_init(&s->tick, on_tick, 0., 0.);
    s->listener.data = s->pause.data = s->tick.data = s;
    /* After a stop (SIGSTOP, a busy host) queued heartbeats must be read before
     * silence is judged. */
    ev_set_priority(&s->tick, EV_MINPRI);
    ev_io_start(s->options.loop, &s->listener);
}

struct master_server *master_server_open(const struct master_server_options *o,
                                         char *error, size_t error_size)
{
    struct wire_key key;
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key) {
        snprintf(error, error_size, "getrandom: %s", strerror(errno));
        return NULL;
    }
    struct master_server *s = calloc(1, sizeof *s);
    if (!s) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    s->fd = master_listen(o->host, o->port, error, error_size);
    if (s->fd < 0) {
        free(s);
        return NULL;
    }
    s->options = *o;
    s->host = host_id();
    s->options.host = NULL; /* borrowed for this call only */
    if (s->options.deadline <= 0)
        s->options.deadline = DEADLINE_DEFAULT_MS * PCCL_MS;
    s->edges = calloc(1, bandwidth_size(PEERS_MAX));
    s->searcher = searcher_open(o->loop, s, on_found);
    if (!s->edges || !s->searcher) {
        snprintf(error, error_size, "out of memory or descriptors");
        fork_guard_close(s->fd);
        free(s->edges);
        if (s->searcher) searcher_close(s->searcher);
        free(s);
        return NULL;
    }
    struct io_addr local = io_addr_local(s->fd);
    s->port = io_addr_port(&local);
    s->desk.begun = time(NULL);
    s->desk.host = s->host;
    snprintf(s->desk.address, sizeof s->desk.address, "%s:%u",
             o->host ? o->host : "*", (unsigned)s->port);
    machine_init(s, &key);
    s->report.machine = &s->machine;
    watchers_init(s);
    return s;
}

uint16_t master_server_port(const struct master_server *server)
{
    return server->port;
}

void master_server_set_quorum(struct master_server *server, uint32_t quorum)
{
    feed(server,
         (struct master_event){.type = MASTER_QUORUM, .quorum = quorum});
    finish_turn(server);
}

void master_server_evidence(struct master_server *server, uint64_t id,
                            enum evidence evidence)
{
    feed(server, (struct master_event){
                     .type = MASTER_EVIDENCE, .id = id, .evidence = evidence});
    finish_turn(server);
}

uint32_t master_server_members(const struct master_server *server)
{
    return master_count(&server->machine, PEER_MEMBER);
}

uint32_t master_server_pending(const struct master_server *server)
{
    return master_count(&server->machine, PEER_REGISTERED);
}

void master_server_write(struct master_server *server, enum status_form form,
                         struct status_writing *writing)
{
    pccl_ns begun = now_ns();
    status_desk_write(&server->desk, &server->machine, form, writing);
    writing->took = now_ns() - begun;
    server->desk.took = (double)writing->took / PCCL_S;
}

const char *master_server_loss(const struct master_server *server)
{
    return server->desk.loss;
}

char *master_server_status(struct master_server *server)
{
    struct status_writing status;
    master_server_write(server, STATUS_TEXT, &status);
    return status.text;
}

bool master_server_has_ended(const struct master_server *server)
{
    return server->machine.founded && master_server_members(server) == 0;
}

void master_server_close(struct master_server *server)
{
    PCCL_ASSERT(!server->stepping);
    struct ev_loop *loop = server->options.loop;
    ev_io_stop(loop, &server->listener);
    ev_timer_stop(loop, &server->pause);
    ev_timer_stop(loop, &server->tick);
    switchboard_free(&server->board);
    searcher_close(server->searcher);
    master_free(&server->machine);
    free(server->edges);
    fork_guard_close(server->fd);
    free(server);
}
