/* master_server.c - the master's event loop: bytes or time -> events ->
 * effects.
 *
 * Every libev callback is one turn and ends with finish_turn(). Effects are
 * queued during the turn and flushed there. A connection that turns out to be
 * lost becomes an event there, never inside a step. */
#include "master_server.h"

#include "../base/fork_guard.h"
#include "../base/host.h"
#include "../base/io_addr.h"
#include "../base/log.h"
#include "master.h"
#include "master_conn.h"
#include "master_listen.h"
#include "master_report.h"
#include "master_search.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    /* connections of the master, and as many that are closing */
    SERVER_CONNS_MAX = 2 * MASTER_LINKS_MAX,
    ACCEPTS_MAX = 64, /* per turn, so that other connections are served */
    READS_MAX = 16,   /* per turn, likewise */
};

#define ACCEPT_PAUSE                                                           \
    .1 /* seconds to wait when the process has no free descriptors */

struct master_server {
    struct master_server_options options;
    struct master_report report;
    int fd; /* the listener */
    uint16_t port;
    ev_io listener;
    ev_timer pause; /* no free descriptors: accept again later */
    bool full;      /* no free links: accept again when one is free */
    ev_timer tick;
    bool stepping;
    bool abort_due;
    int abort_code, abort_rank;

    struct master_conn *conns; /* all of them */
    uint32_t conn_count;
    struct master_conn *links[MASTER_LINKS_MAX];
    struct master_conn *dirty[SERVER_CONNS_MAX];
    struct master_conn *lost[SERVER_CONNS_MAX];
    uint32_t dirty_count, lost_count;

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
    struct wire_store store;
    uint8_t frame[WIRE_FRAME_MAX];
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

static void conn_lose(struct master_conn *c, const char *reason)
{
    struct master_server *s = c->owner;
    if (c->lost) return;
    c->lost = reason;
    s->lost[s->lost_count++] = c;
}

static void conn_touch(struct master_conn *c)
{
    struct master_server *s = c->owner;
    if (c->dirty) return;
    c->dirty = true;
    s->dirty[s->dirty_count++] = c;
}

static void send_effect(void *user, const uint32_t *links, uint32_t count,
                        const struct wire_msg *msg)
{
    struct master_server *s = user;
    size_t size = wire_encode(msg, s->frame);
    struct master_frame *frame = master_frame_new(s->frame, size);
    LOG(LOG_TRACE, "master: %s to %" PRIu32 " peers", wire_type_name(msg->type),
        count);
    for (uint32_t i = 0; i < count; i++) {
        struct master_conn *c = s->links[links[i]];
        if (!c || c->lost) continue;
        if (frame && master_conn_queue(c, frame))
            conn_touch(c);
        else
            conn_lose(c, "reads too slowly");
    }
    if (frame) master_frame_release(frame);
}

static void log_close(const struct master_conn *c, const char *reason)
{
    char text[IO_ADDR_TEXT_SIZE];
    LOG(LOG_INFO, "master: closing the connection of %s: %s",
        io_addr_print(&c->addr, text), reason);
}

/* The link is free at once. The socket lingers until the peer has received the
 * queued data, for at most one deadline. */
static void close_effect(void *user, uint32_t link, const char *reason)
{
    struct master_server *s = user;
    struct master_conn *c = s->links[link];
    log_close(c, reason);
    s->links[link] = NULL;
    c->link = MASTER_NO_LINK;
    ev_timer_start(s->options.loop, &c->linger);
    if (!c->lost) conn_touch(c);
}

static void note_effect(void *user, const struct master_note *note)
{
    struct master_server *s = user;
    char line[REPORT_SIZE];
    if (note->kind == NOTE_ABORTED && !s->abort_due) {
        bool member = note->peer->state == PEER_MEMBER;
        s->abort_due = true;
        s->abort_code = note->code;
        s->abort_rank = member ? (int)note->peer->rank : note->peer->info.hint;
    }
    if (!master_report_note(&s->report, note, line)) return;
    LOG(LOG_INFO, "master: %s", line);
    if (s->options.report) s->options.report(s->options.user, line);
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

static void feed(struct master_server *s, struct master_event event)
{
    PCCL_ASSERT(!s->stepping); /* a callback of the options called back */
    s->stepping = true;
    event.now = now_ns();
    master_step(&s->machine, &event);
    s->stepping = false;
}

/* --------------------------------------------------------------- the turn */

static void conn_destroy(struct master_conn *c)
{
    struct master_server *s = c->owner;
    ev_io_stop(s->options.loop, &c->io);
    ev_timer_stop(s->options.loop, &c->linger);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    s->conn_count--;
    master_conn_free(c);
}

static void conn_watch(struct master_conn *c, int events)
{
    struct master_server *s = c->owner;
    if (ev_is_active(&c->io) && (c->io.events & (EV_READ | EV_WRITE)) == events)
        return;
    ev_io_stop(s->options.loop, &c->io);
    ev_io_set(&c->io, c->fd, events);
    ev_io_start(s->options.loop, &c->io);
}

static void conn_flush(struct master_conn *c)
{
    c->dirty = false;
    if (c->lost) return;
    switch (master_conn_flush(c)) {
    case CONN_WAIT:
        conn_watch(c, EV_READ | EV_WRITE);
        return;
    case CONN_END:
        conn_lose(c, "broken while sending");
        return;
    case CONN_DONE:
        break;
    }
    conn_watch(c, EV_READ);
    /* Closing with unread input would reset the connection and discard sent
     * data: shut down the output and wait for the peer's end. */
    if (c->link == MASTER_NO_LINK) (void)shutdown(c->fd, SHUT_WR);
}

static void conn_end(struct master_conn *c)
{
    struct master_server *s = c->owner;
    uint32_t link = c->link;
    if (link != MASTER_NO_LINK) {
        log_close(c, c->lost);
        s->links[link] = NULL;
    }
    conn_destroy(c);
    if (link == MASTER_NO_LINK) return;
    feed(s, (struct master_event){.type = MASTER_CLOSED, .link = link});
}

static void tick_arm(struct master_server *s)
{
    pccl_ns at = master_next_tick(&s->machine);
    if (at == PCCL_NEVER) {
        ev_timer_stop(s->options.loop, &s->tick);
        return;
    }
    /* Arm only once: restarting it at every event would postpone the tick for
     * ever under steady traffic. */
    if (ev_is_active(&s->tick)) return;
    pccl_ns now = now_ns();
    ev_timer_set(&s->tick, at > now ? (double)(at - now) / PCCL_S : 0., 0.);
    ev_timer_start(s->options.loop, &s->tick);
}

static void accept_resume(struct master_server *s)
{
    if (!s->full || s->conn_count == SERVER_CONNS_MAX) return;
    if (master_free_link(&s->machine) == MASTER_NO_LINK) return;
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
    while (s->dirty_count > 0 || s->lost_count > 0) {
        for (uint32_t i = 0; i < s->dirty_count; i++) conn_flush(s->dirty[i]);
        s->dirty_count = 0;
        if (s->lost_count > 0) conn_end(s->lost[--s->lost_count]);
    }
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

static void deliver_frames(struct master_conn *c)
{
    struct master_server *s = c->owner;
    struct wire_msg msg;
    while (c->link != MASTER_NO_LINK && !c->lost) {
        uint32_t link = c->link;
        switch (master_conn_next(c, &s->store, &msg)) {
        case WIRE_OK:
            feed(s, (struct master_event){
                        .type = MASTER_RECEIVED, .link = link, .msg = &msg});
            continue;
        case WIRE_MORE:
            break;
        case WIRE_BAD:
            conn_lose(c, "sent bytes that are no frame of this protocol");
            return;
        }
        bool stranger = s->machine.peers[link].state == PEER_CONNECTED;
        size_t limit = stranger ? CONN_IN_START : WIRE_FRAME_MAX;
        if (!master_conn_make_room(c, limit))
            conn_lose(c, "sent a frame that is too large");
        return;
    }
}

static void conn_read(struct master_conn *c)
{
    for (uint32_t i = 0; i < READS_MAX && !c->lost; i++) {
        bool closing = c->link == MASTER_NO_LINK;
        enum conn_result got =
            closing ? master_conn_discard(c) : master_conn_receive(c);
        if (got == CONN_WAIT) return;
        if (got == CONN_END) {
            conn_lose(c, "closed by the peer");
            return;
        }
        bool all = c->in_size < c->in_capacity;
        if (!closing) deliver_frames(c);
        if (all) return;
    }
}

static void on_conn(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    struct master_conn *c = io->data;
    struct master_server *s = c->owner;
    if (events & EV_WRITE) conn_touch(c);
    if (events & EV_READ) conn_read(c);
    finish_turn(s);
}

static void on_linger(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct master_conn *c = timer->data;
    conn_lose(c, "lingered for too long");
    finish_turn(c->owner);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct master_server *s = timer->data;
    feed(s, (struct master_event){.type = MASTER_TICK});
    finish_turn(s);
}

/* -------------------------------------------------------------- accepting */

static bool conn_add(struct master_server *s, int fd, uint32_t link,
                     const struct io_addr *from)
{
    struct master_conn *c = master_conn_new(fd);
    if (!c) return false;
    io_addr_tune(fd, from);
    c->owner = s;
    c->link = link;
    c->addr = io_addr_to_wire(from);
    c->next = s->conns;
    if (c->next) c->next->prev = c;
    s->conns = c;
    s->conn_count++;
    s->links[link] = c;
    ev_io_init(&c->io, on_conn, fd, EV_READ);
    ev_timer_init(&c->linger, on_linger, (double)s->options.deadline / PCCL_S,
                  0.);
    c->io.data = c->linger.data = c;
    ev_io_start(s->options.loop, &c->io);
    feed(s, (struct master_event){
                .type = MASTER_CONNECTED, .link = link, .addr = c->addr});
    return true;
}

/* False: no further connection can be accepted now. */
static bool accept_one(struct master_server *s)
{
    uint32_t link = master_free_link(&s->machine);
    if (link == MASTER_NO_LINK || s->conn_count == SERVER_CONNS_MAX) {
        LOG(LOG_DEBUG, "master: no free link, newcomers wait");
        s->full = true;
        ev_io_stop(s->options.loop, &s->listener);
        return false;
    }
    struct io_addr from = {.size = sizeof from.name};
    fork_guard_hold();
    int fd = fork_guard_keep(accept4(s->fd, (struct sockaddr *)&from.name,
                                     &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0 && conn_add(s, fd, link, &from)) return true;
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
                look_effect},
        .deadline = s->options.deadline,
        .quorum = s->options.quorum,
        .job = s->options.job,
        .key = *key,
        .edges = bandwidth_init(s->edges, bandwidth_size(PEERS_MAX), PEERS_MAX),
    };
    master_init(&s->machine, &config);
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
    machine_init(s, &key);
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
    while (server->conns) conn_destroy(server->conns);
    searcher_close(server->searcher);
    master_free(&server->machine);
    free(server->edges);
    fork_guard_close(server->fd);
    free(server);
}
