/* master_server.c - the master's event loop: sockets and time for the
 * switchboard, which makes events of them.
 *
 * Every libev callback is one turn and ends with server_finish_turn(). */
#include "master_server_inside.h"

#include "../../base/lacking.h"
#include "../../base/fork_guard.h"
#include "../../base/host.h"
#include "../../base/log.h"
#include "master_listen.h"
#include "master_room.h"
#include "../search/master_search.h"
#include "master_socket.h"
#include "master_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

enum {
    ACCEPTS_MAX = 64, /* per turn, so that other connections are served */
    READS_MAX = 16,   /* per turn, likewise */
};

#define ACCEPT_PAUSE .1 /* s, when the process has no free descriptors */

static pccl_ns now_ns(struct master_server *s)
{
    return own_clock_at(&s->clock, host_time(),
                        PCCL_TIME_TO_PING(s->options.deadline));
}

static void board_turn(struct master_server *s)
{
    switchboard_turn(&s->board);
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

static void close_effect(void *user, uint32_t link, const char *reason)
{
    struct master_server *s = user;
    master_gate_log_end(s->board.links[link], reason);
    status_desk_closed(&s->desk, link);
    switchboard_close(&s->board, link);
}

static void tell(struct master_server *s, enum log_level level, bool urgent,
                 const char *line)
{
    LOG(level, "master: %s", line);
    if (urgent && s->options.warn)
        s->options.warn(s->options.user, line);
    else if (s->options.report)
        s->options.report(s->options.user, line);
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
    proof_note(s, note);
    status_desk_depart(&s->desk, &s->machine, note);
    if (!master_report_note(&s->report, note, line)) return;
    status_desk_note(&s->desk, &s->machine, note, line);
    tell(s, LOG_INFO, note->kind == NOTE_EVICTED || note->kind == NOTE_STALLED,
         line);
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
    looks_add(&s->looks, peer);
}

static void status_effect(void *user, uint32_t link, bool json)
{
    struct master_server *s = user;
    status_desk_ask(&s->desk, &s->machine, link, json, now_ns(s));
}

static bool remember_effect(void *user, const struct master_memory *memory)
{
    struct master_server *s = user;
    char line[REPORT_SIZE];
    bool kept =
        keep_memory(&s->keep, memory, now_ns(s),
                    PCCL_TIME_TO_PING(s->options.deadline), line, sizeof line);
    if (*line == '\0') return kept;
    tell(s, LOG_WARN, true, line);
    return kept;
}

static void step(struct master_server *s, struct master_event *event)
{
    PCCL_ASSERT(!s->stepping); /* a callback of the options called back */
    s->stepping = true;
    event->now = now_ns(s);
    master_step(&s->machine, event);
    s->stepping = false;
}

static void tell_sleep(struct master_server *s, pccl_ns gap)
{
    char line[REPORT_SIZE];
    struct master_event slept = {.type = MASTER_SLEPT, .gap = gap};
    step(s, &slept);
    if (gap < s->options.deadline) return;
    snprintf(line, sizeof line,
             "the coordinator did not run for %.1f s; that counts against "
             "nobody",
             (double)gap / PCCL_S);
    tell(s, LOG_WARN, false, line);
}

static void relay_effect(void *user, uint32_t link, const struct wire_msg *msg)
{
    struct master_server *s = user;
    status_desk_closed(&s->desk, link);
    switchboard_relay(&s->board, link, msg);
}

void server_feed(struct master_server *s, struct master_event event)
{
    (void)now_ns(s);
    pccl_ns gap = own_clock_take(&s->clock);
    if (gap > 0) tell_sleep(s, gap);
    step(s, &event);
}

/* ---------------------------------------------- effects of the switchboard */

static void step_effect(void *user, struct master_event *event)
{
    struct master_server *s = user;
    if (event->type == MASTER_CLOSED) {
        status_desk_closed(&s->desk, event->link);
        proof_closed(s, event->link);
    }
    if (!proof_holds(s, event)) server_feed(user, *event);
}

static void input_watch(struct server_socket *k)
{
    master_watch_input(k->server->options.loop, &k->io, k->conn, k->secure);
}

static enum conn_result flush_effect(void *user, struct master_conn *c)
{
    (void)user;
    struct server_socket *k = c->user;
    enum conn_result result = master_socket_flush(k->fd, k->secure, c);
    master_watch_flushed(k->server->options.loop, &k->io, c, result);
    if (c->partner) input_watch(c->partner->user);
    return result;
}

static void finish_effect(void *user, struct master_conn *c)
{
    (void)user;
    (void)shutdown(((const struct server_socket *)c->user)->fd, SHUT_WR);
}

static void socket_free(struct server_socket *k)
{
    ev_io_stop(k->server->options.loop, &k->io);
    fork_guard_close(k->fd);
    secure_close(k->secure);
    free(k->waits);
    free(k);
}

static void end_effect(void *user, struct master_conn *c)
{
    (void)user;
    if (c->link != MASTER_NO_LINK && c->lost) master_gate_log_end(c, c->lost);
    socket_free(c->user);
}

/* --------------------------------------------------------------- the turn */

static void tick_arm(struct master_server *s)
{
    pccl_ns at = master_next_tick(&s->machine);
    pccl_ns linger = switchboard_next_linger(&s->board);
    pccl_ns desk = status_desk_next(&s->desk, now_ns(s));
    at = linger < at ? linger : at;
    at = desk < at ? desk : at;
    if (at == PCCL_NEVER) {
        ev_timer_stop(s->options.loop, &s->tick);
        s->clock.due = PCCL_NEVER;
        return;
    }
    /* Never later than it was: restarting it at every event would postpone the
     * tick for ever under steady traffic. One that is due and has not been
     * called yet, because input is read first, is not active any more. */
    bool waits = ev_is_active(&s->tick) || ev_is_pending(&s->tick);
    if (waits && s->clock.due <= at) return;
    pccl_ns now = now_ns(s);
    s->clock.due = at > now ? at : now;
    ev_timer_stop(s->options.loop, &s->tick);
    ev_timer_set(&s->tick, at > now ? (double)(at - now) / PCCL_S : 0., 0.);
    ev_timer_start(s->options.loop, &s->tick);
}

static void rest_arm(struct master_server *s)
{
    if (switchboard_is_behind(&s->board) && !ev_is_active(&s->rest))
        ev_timer_start(s->options.loop, &s->rest);
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
    const struct master_look *l;
    enum evidence seen;
    while ((l = looks_take(&s->looks, now_ns(s), &seen)) != NULL) {
        if (l->host == s->looks.host)
            server_feed(s, (struct master_event){.type = MASTER_EVIDENCE,
                                                 .id = l->id,
                                                 .evidence = seen});
        else if (s->options.look)
            s->options.look(s->options.user, l->id, l->host, l->pid);
    }
}

/* The last action of every callback: `aborted` may close the server, so the
 * server may not exist afterwards. */
void server_finish_turn(struct master_server *s)
{
    status_desk_settle(&s->desk, &s->machine, now_ns(s));
    board_turn(s);
    take_looks(s);
    tick_arm(s);
    rest_arm(s);
    accept_resume(s);
    if (s->machine.replicas.over) s->options.over(s->options.user);
    if (!s->abort_due) return;
    s->abort_due = false;
    if (s->options.aborted)
        s->options.aborted(s->options.user, s->abort_code, s->abort_rank);
}

static void on_found(void *user, const struct search_answer *a)
{
    struct master_server *s = user;
    server_feed(s, (struct master_event){.type = MASTER_SEARCHED,
                                         .group = a->group,
                                         .ticket = a->ticket,
                                         .order = a->order});
    server_finish_turn(s);
}

/* ------------------------------------------------------------------ input */

static void socket_read(struct server_socket *k)
{
    struct switchboard *b = &k->server->board;
    struct master_conn *c = k->conn;
    for (uint32_t i = 0; i < READS_MAX && !c->lost && master_conn_reads(c);
         i++) {
        size_t room = c->in_capacity - c->in_size, got;
        const char *why;
        enum conn_result result = master_gate_receive(&k->server->gate, k->fd,
                                                      k->secure, c, &got, &why);
        if (result == CONN_END) switchboard_lose(b, c, why);
        if (result != CONN_DONE) return;
        proof_take(k);
        switchboard_received(b, c, got);
        if (got < room) return;
    }
    if (!c->lost) input_watch(k);
}

static void on_socket(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    struct server_socket *k = io->data;
    struct master_server *s = k->server;
    if (events & EV_WRITE) switchboard_touch(&s->board, k->conn);
    if (events & EV_READ) socket_read(k);
    server_finish_turn(s);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    struct master_server *s = timer->data;
    switchboard_linger(&s->board, now_ns(s));
    server_feed(s, (struct master_event){.type = MASTER_TICK});
    server_finish_turn(s);
}

static void on_rest(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    server_finish_turn(timer->data);
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
    if (s->gate.keyed) k->secure = secure_open(&s->gate.keys, SECURE_ACCEPTOR);
    ev_io_init(&k->io, on_socket, fd, EV_READ);
    k->io.data = k;
    ev_io_start(s->options.loop, &k->io);
    if (!s->gate.keyed || k->secure)
        k->conn = switchboard_accept(&s->board, &addr, k);
    if (k->conn) return true;
    socket_free(k);
    return false;
}

/* Rule M1. The bytes that came meanwhile may be the stranger's HELLO. */
static void make_room(struct master_server *s)
{
    struct master_conn *c;
    while (switchboard_is_full(&s->board) &&
           (c = switchboard_stranger(&s->board))) {
        socket_read(c->user);
        if (!c->lost && switchboard_stranger(&s->board) == c)
            switchboard_lose(&s->board, c, "made room for a newer connection");
        board_turn(s);
    }
}

/* False: no further connection can be accepted now. */
static bool accept_one(struct master_server *s)
{
    make_room(s);
    if (switchboard_is_full(&s->board)) {
        LOG(LOG_DEBUG, "master: no free link, newcomers wait");
        s->full = true;
        ev_io_stop(s->options.loop, &s->listener);
        return false;
    }
    struct io_addr from;
    bool lacking;
    int fd = master_accept(s->fd, &from, &lacking);
    if (fd >= 0 && !master_gate_admits(&s->gate, fd, &from)) return true;
    if (fd >= 0 && socket_add(s, fd, &from)) return true;
    if (fd < 0 && lacking) {
        LOG(LOG_WARN, "master: cannot accept: %s", strerror(errno));
        ev_io_stop(s->options.loop, &s->listener);
        ev_timer_set(&s->pause, ACCEPT_PAUSE, 0.);
        ev_timer_start(s->options.loop, &s->pause);
        return false;
    }
    return fd >= 0 || errno != EAGAIN; /* or the connection is gone */
}

static void on_listener(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop, (void)events;
    struct master_server *s = io->data;
    for (uint32_t i = 0; i < ACCEPTS_MAX && accept_one(s); i++) continue;
    server_finish_turn(s);
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct master_server *s = timer->data;
    ev_io_start(loop, &s->listener);
}

/* ------------------------------------------------------- opening, closing */

static bool machine_init(struct master_server *s, const struct wire_key *secret,
                         struct master_memory *memory)
{
    struct master_config config = {
        .out = {s, send_effect, close_effect, note_effect, search_effect,
                look_effect, status_effect, remember_effect, relay_effect},
        .memory = memory,
        .deadline = s->options.deadline,
        .quorum = s->options.quorum,
        .minimum = s->options.minimum,
        .peers_max = s->peers_max,
        .job = s->options.job,
        .alone = !s->options.job,
        .relays = s->options.relays,
        .tokens = s->gate.open.on,
        .grace = s->options.grace,
        .replicas = !s->options.journal,
        .fenced = s->options.master_count > 1,
        .standby = s->options.standby,
        .masters = s->options.masters,
        .master_count = s->options.master_count,
        .secret = *secret,
        .warn_after = s->options.warn_after,
        .key = s->key,
        .edges = bandwidth_init(s->edges, bandwidth_size(PEERS_MAX), PEERS_MAX),
    };
    struct switchboard_output out = {s, step_effect, flush_effect,
                                     finish_effect, end_effect};
    switchboard_init(&s->board, &s->machine, &out,
                     &(struct switchboard_limits){0});
    return master_init(&s->machine, &config);
}

static void watchers_init(struct master_server *s)
{
    ev_io_init(&s->listener, on_listener, s->fd, EV_READ);
    ev_timer_init(&s->pause, on_pause, ACCEPT_PAUSE, 0.);
    ev_timer_init(&s->tick, on_tick, 0., 0.);
    ev_timer_init(&s->rest, on_rest, 0., 0.);
    s->listener.data = s->pause.data = s->tick.data = s->rest.data = s;
    /* After a stop (SIGSTOP, a busy host) queued heartbeats must be read before
     * silence is judged. */
    ev_set_priority(&s->tick, EV_MINPRI);
    ev_io_start(s->options.loop, &s->listener);
    proof_watch(s);
}

/* What has to be there before a machine can be. */
static bool open_parts(struct master_server *s,
                       const struct master_server_options *o, char *error,
                       size_t error_size)
{
    s->fd = master_listen(o->host, o->port, error, error_size);
    if (s->fd < 0) return false;
    if (!proof_open(s, error, error_size)) return false;
    s->edges = calloc(1, bandwidth_size(PEERS_MAX));
    s->searcher = searcher_open(o->loop, s, on_found);
    if (s->edges && s->searcher) return true;
    lacking_text(error, error_size, "the coordinator", LACKING_THREAD);
    return false;
}

static void free_parts(struct master_server *s)
{
    if (s->searcher) searcher_close(s->searcher);
    if (s->fd >= 0) fork_guard_close(s->fd);
    keep_close(&s->keep);
    master_gate_close(&s->gate);
    free(s->edges);
    free(s);
}

static struct master_server *server_new(const struct master_server_options *o)
{
    struct master_server *s = calloc(1, sizeof *s);
    if (!s || getrandom(&s->key, sizeof s->key, 0) != (ssize_t)sizeof s->key ||
        getrandom(&s->secret, sizeof s->secret, 0) !=
            (ssize_t)sizeof s->secret) {
        free(s);
        return NULL;
    }
    s->fd = -1;
    s->clock.due = PCCL_NEVER;
    s->options = *o;
    s->looks.host = host_id();
    s->options.host = NULL; /* borrowed for this call only */
    if (s->options.deadline <= 0)
        s->options.deadline = DEADLINE_DEFAULT_MS * PCCL_MS;
    return s;
}

struct master_server *master_server_open(const struct master_server_options *o,
                                         char *error, size_t error_size)
{
    struct master_memory memory;
    bool any = false;
    struct master_server *s = server_new(o);
    if (!s) {
        lacking_text(error, error_size, "the coordinator", LACKING_MEMORY);
        return NULL;
    }
    if (!open_parts(s, o, error, error_size) ||
        !master_room(&s->options, &s->peers_max, error, error_size) ||
        (o->journal &&
         !keep_open(&s->keep, o->journal, &memory, &any, error, error_size))) {
        free_parts(s);
        return NULL;
    }
    struct io_addr local = io_addr_local(s->fd);
    s->port = io_addr_port(&local);
    s->desk.begun = time(NULL);
    s->desk.host = s->looks.host;
    snprintf(s->desk.address, sizeof s->desk.address, "%s:%u",
             o->host ? o->host : "*", (unsigned)s->port);
    s->report.machine = &s->machine;
    bool whole = machine_init(s, &s->secret, any ? &memory : NULL);
    /* Rule H1. Without a grace it says so if it cannot. */
    bool kept =
        whole && (memory_keep(&s->machine) || s->machine.succession.grace == 0);
    if (!kept) {
        snprintf(error, error_size, "journal %s %s",
                 o->journal ? o->journal : "",
                 whole ? "cannot be written" : "has views that cannot be");
        master_free(&s->machine);
        free_parts(s);
        return NULL;
    }
    watchers_init(s);
    return s;
}

uint16_t master_server_port(const struct master_server *server)
{
    return server->port;
}

void master_server_set_quorum(struct master_server *server, uint32_t quorum)
{
    server_feed(server,
                (struct master_event){.type = MASTER_QUORUM, .quorum = quorum});
    server_finish_turn(server);
}

void master_server_evidence(struct master_server *server, uint64_t id,
                            enum evidence evidence)
{
    server_feed(server, (struct master_event){.type = MASTER_EVIDENCE,
                                              .id = id,
                                              .evidence = evidence});
    server_finish_turn(server);
}

void master_server_write(struct master_server *server, enum status_form form,
                         struct status_writing *writing)
{
    pccl_ns begun = now_ns(server);
    status_desk_write(&server->desk, &server->machine, form, writing);
    writing->took = now_ns(server) - begun;
    server->desk.took = (double)writing->took / PCCL_S;
}

void master_server_close(struct master_server *server)
{
    PCCL_ASSERT(!server->stepping);
    struct ev_loop *loop = server->options.loop;
    ev_io_stop(loop, &server->listener);
    ev_timer_stop(loop, &server->pause);
    ev_timer_stop(loop, &server->tick);
    ev_timer_stop(loop, &server->rest);
    ev_timer_stop(loop, &server->recheck);
    ev_timer_stop(loop, &server->patience);
    switchboard_free(&server->board);
    master_free(&server->machine);
    free_parts(server);
}
