/* master_proof.c - tokens and hooks in the coordinator's loop (rules K12 to
 * K16). See master_server_inside.h. */
#include "master_server_inside.h"

#include "../../base/log.h"
#include "../grants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECHECK 1.   /* s between looks at the clock */
#define PATIENCE 0.2 /* s between words to those who wait for the hook */

static uint64_t now_s(void)
{
    time_t now = time(NULL);
    return now > 0 ? (uint64_t)now : 0;
}

static struct server_socket *socket_at(const struct master_server *s,
                                       uint32_t link)
{
    const struct master_conn *c = s->board.links[link];
    return c ? c->user : NULL;
}

static void expel(struct master_server *s, uint32_t link, const char *why)
{
    server_feed(s, (struct master_event){
                       .type = MASTER_EXPELLED, .link = link, .reason = why});
}

/* ------------------------------------------------------------------ tokens */

bool proof_open(struct master_server *s, char *error, size_t error_size)
{
    const struct master_server_options *o = &s->options;
    char why[200];
    master_gate_open(&s->gate, o->key, o->issuer, &s->key);
    s->options.key = s->options.issuer = NULL; /* for this call only */
    if (!o->revoked ||
        open_read_revoked(&s->gate.open, o->revoked, why, sizeof why))
        return true;
    snprintf(error, error_size, "--revoked %s", why);
    return false;
}

void proof_take(struct server_socket *k)
{
    struct master_server *s = k->server;
    char text[WIRE_TEXT_MAX];
    if (!s->gate.open.on || k->judged) return;
    k->judged = true;
    if (k->conn->link == MASTER_NO_LINK) return; /* it is over */
    if (open_judge(&s->gate.open, secure_identity(k->secure), now_s(),
                   &k->token, text, sizeof text)) {
        server_feed(s, (struct master_event){.type = MASTER_GRANTED,
                                             .link = k->conn->link,
                                             .grant = &k->token.grant});
        return;
    }
    master_gate_tell(&s->gate, &k->conn->addr, text);
    expel(s, k->conn->link, text);
}

/* Rule K15, of all that were admitted. */
static void look_again(struct master_server *s)
{
    char text[WIRE_TEXT_MAX];
    uint64_t now = now_s();
    for (uint32_t i = 0; i < MASTER_LINKS_MAX; i++) {
        const struct server_socket *k = socket_at(s, i);
        if (!k || !k->judged || k->token.grant.name[0] == '\0') continue;
        if (!open_holds(&s->gate.open, &k->token, now, text, sizeof text))
            expel(s, i, text);
    }
}

static void on_recheck(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    struct master_server *s = timer->data;
    look_again(s);
    server_finish_turn(s);
}

bool master_server_revoke(struct master_server *server, const char *path,
                          char *error, size_t error_size)
{
    if (!open_read_revoked(&server->gate.open, path, error, error_size))
        return false;
    look_again(server);
    server_finish_turn(server);
    return true;
}

/* ------------------------------------------------------------------- hooks */

static void describe(const struct master_peer *peer, uint32_t group,
                     struct master_guest *guest)
{
    *guest = (struct master_guest){.name = peer->grant.name,
                                   .id = peer->info.id,
                                   .group = group,
                                   .pid = peer->info.pid};
    (void)io_addr_print(&peer->info.addr, guest->address);
}

/* Neither end takes the other one for silent while the hook decides. */
static void reassure(struct master_server *s, uint32_t link)
{
    static const struct wire_msg heartbeat = {.type = WIRE_HEARTBEAT};
    struct grant grant = s->machine.peers[link].grant;
    server_feed(s, (struct master_event){
                       .type = MASTER_GRANTED, .link = link, .grant = &grant});
    switchboard_send(&s->board, &link, 1, &heartbeat);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    struct master_server *s = timer->data;
    for (uint32_t i = 0; i < MASTER_LINKS_MAX; i++) {
        const struct server_socket *k = socket_at(s, i);
        if (k && k->waits) reassure(s, i);
    }
    server_finish_turn(s);
}

static void ask(struct master_server *s, struct server_socket *k,
                const struct master_event *event)
{
    char why[WIRE_TEXT_MAX] = "";
    const struct wire_msg *msg = event->msg;
    const struct master_peer *p = &s->machine.peers[event->link];
    struct master_guest guest;
    bool joins = msg->type == WIRE_HELLO;
    k->waits = malloc(sizeof *k->waits);
    if (!k->waits) {
        expel(s, event->link, "out of memory");
        return;
    }
    *k->waits = *msg;
    k->ticket = ++s->tickets;
    describe(p, joins ? msg->hello.group : msg->offer.group, &guest);
    guest.wants = joins ? "join" : "download";
    if (joins) guest.pid = msg->hello.self.pid;
    guest.ticket = k->ticket;
    reassure(s, event->link);
    k->conn->held = true;
    if (!s->options.ask(s->options.hook, &guest, why, sizeof why))
        expel(s, event->link, why);
}

bool proof_holds(struct master_server *s, const struct master_event *event)
{
    char text[WIRE_TEXT_MAX];
    if (!s->options.ask || event->type != MASTER_RECEIVED) return false;
    struct server_socket *k = socket_at(s, event->link);
    if (!k) return false;
    if (k->waits) return true; /* what it says before WELCOME */
    bool asks =
        event->msg->type == WIRE_HELLO || event->msg->type == WIRE_OFFERS_GET;
    if (!asks || s->machine.peers[event->link].state != PEER_CONNECTED ||
        !grants_allow(&s->machine, event->link, event->msg, text, sizeof text))
        return false; /* the machine's to judge */
    ask(s, k, event);
    return true;
}

void master_server_answer(struct master_server *server, uint64_t ticket,
                          bool admits, const char *why)
{
    for (uint32_t i = 0; i < MASTER_LINKS_MAX; i++) {
        struct server_socket *k = socket_at(server, i);
        if (!k || !k->waits || k->ticket != ticket) continue;
        struct wire_msg *msg = k->waits;
        k->waits = NULL;
        k->conn->held = false;
        if (admits)
            server_feed(server, (struct master_event){.type = MASTER_RECEIVED,
                                                      .link = i,
                                                      .msg = msg});
        else
            expel(server, i, why);
        free(msg);
        break;
    }
    server_finish_turn(server);
}

/* The process of that peer takes part by another one, too. */
static bool takes_part(const struct master *m, const struct master_peer *one)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p != one &&
            (p->state == PEER_MEMBER || p->state == PEER_REGISTERED) &&
            p->info.pid == one->info.pid && p->info.host == one->info.host)
            return true;
    }
    return false;
}

static void tell_process(struct master_server *s, const struct master_peer *p,
                         enum process_news news)
{
    if (!s->options.process) return;
    if (s->abort_due) return; /* all are dropped, and end with the job */
    s->options.process(s->options.user, p->info.host & ~(uint64_t)1,
                       p->info.pid, news);
}

/* Rule M10g. */
static void tell_news(struct master_server *s, const struct master_note *note)
{
    if (note->kind == NOTE_REGISTERED)
        tell_process(s, note->peer, PROCESS_CAME);
    if (note->kind == NOTE_EVICTED && note->code == WIRE_EVICT_FINAL &&
        !takes_part(&s->machine, note->peer))
        tell_process(s, note->peer, PROCESS_EVICTED);
}

static bool owes_leave(const struct master_peer *p)
{
    return p->state == PEER_MEMBER && p->must_leave && !p->leaving;
}

void proof_closed(struct master_server *s, uint32_t link)
{
    if (owes_leave(&s->machine.peers[link]))
        tell_process(s, &s->machine.peers[link], PROCESS_CUT);
}

bool master_server_awaits_leave(const struct master_server *server,
                                uint64_t host, uint32_t pid)
{
    const struct master *m = &server->machine;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (owes_leave(p) && p->info.pid == pid &&
            (p->info.host & ~(uint64_t)1) == host)
            return true;
    }
    return false;
}

uint32_t master_server_traits_left(const struct master_server *server)
{
    return server->machine.traits_left;
}

void proof_note(struct master_server *s, const struct master_note *note)
{
    struct master_guest guest;
    bool joined = note->kind == NOTE_JOINED;
    bool left = note->kind == NOTE_LEFT || note->kind == NOTE_LOST;
    tell_news(s, note);
    if (!s->options.told || (!joined && !left)) return;
    describe(note->peer, s->machine.groups[note->peer->group].number, &guest);
    s->options.told(s->options.hook, &guest,
                    joined                    ? "joined"
                    : note->kind == NOTE_LEFT ? "left"
                                              : "lost");
}

void proof_watch(struct master_server *s)
{
    ev_timer_init(&s->recheck, on_recheck, RECHECK, RECHECK);
    ev_timer_init(&s->patience, on_patience, PATIENCE, PATIENCE);
    s->recheck.data = s->patience.data = s;
    if (s->gate.open.on) ev_timer_start(s->options.loop, &s->recheck);
    if (s->options.ask) ev_timer_start(s->options.loop, &s->patience);
}
