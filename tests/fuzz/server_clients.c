/* server_clients.c - see server_clients.h. */
#include "server_clients.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PASSES = 24 }; /* of the loop after each record */

static struct wire_store store;

/* ------------------------------------------------------------ each of them */

void client_close(struct client *c)
{
    if (c->fd <= 0) return;
    close(c->fd);
    secure_close(c->secure);
    c->fd = 0;
    c->lively = false;
    c->call = c->epoch = 0;
    c->secure = NULL;
    c->size = 0;
}

void client_open(struct universe *u, struct client *c, uint8_t how)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(master_server_port(u->server))};
    int on = 1;
    if (c->fd > 0) return;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&at, sizeof at) != 0)
        abort();
    (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!u->options.key || how % 8 == 7) return;
    memset(&c->keys, 0, sizeof c->keys);
    if (!u->options.issuer || how % 8 == 6)
        secure_psk_of_key(&c->keys.own, server_key);
    else
        c->keys.own = server_tokens[how % 2];
    c->secure = secure_open(&c->keys, SECURE_DIALER);
    assert(c->secure);
    (void)secure_flush(c->fd, c->secure);
}

void client_write(struct client *c, const uint8_t *bytes, size_t size)
{
    if (c->fd <= 0 || size == 0) return;
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    bool greets = c->secure && secure_state(c->secure) != SECURE_OPEN;
    if (greets) return;
    if (c->secure)
        (void)secure_send(c->fd, c->secure, &part, 1);
    else
        (void)send(c->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void client_say(struct client *c, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    client_write(c, frame, wire_encode(msg, frame));
}

/* What a member does that has no operations. */
static void client_react(struct universe *u, struct client *c,
                         const struct wire_msg *msg)
{
    struct wire_edge edge = {.peer =
                                 msg->type == WIRE_PROBE ? msg->probe.peer : 0};
    uint64_t lacks[3];
    struct wire_msg answer = {.round = msg->round, .epoch = msg->epoch};
    u->random = u->random * 1664525u + 1013904223u;
    if (msg->type == WIRE_INSTALL) c->epoch = msg->round;
    if (msg->type == WIRE_PROPOSE) {
        answer.type = WIRE_READY;
        answer.ids = lacks;
        if (u->random >> 24 < u->walls && msg->member_count > 3)
            answer.id_count = 1 + (u->random >> 20) % 3;
        for (uint32_t i = 0; i < answer.id_count; i++)
            lacks[i] =
                msg->members[((u->random >> 8) + i) % msg->member_count].id;
    } else if (msg->type == WIRE_FLUSH) {
        answer.type = WIRE_FLUSHED;
    } else if (msg->type == WIRE_PROBE) {
        answer.type = WIRE_MEASURED;
        answer.edges = &edge;
        answer.edge_count = 1;
        edge.rate = u->random >> 4;
        edge.rtt = u->random >> 12;
        edge.kind = u->random >> 28 == 0 ? EDGE_FAILED : EDGE_SATURATED;
    } else {
        return;
    }
    client_say(c, &answer);
}

/* What has come in clear is a row of messages, unless a run with a key ends a
 * connection in clear. */
static void client_decode(struct universe *u, struct client *c)
{
    struct wire_msg msg;
    size_t used, at = 0;
    enum wire_status result = WIRE_OK;
    if (u->options.key && !c->secure) {
        c->size = 0;
        return;
    }
    while (at < c->size &&
           (result = wire_decode(c->in + at, c->size - at, &store, &msg,
                                 &used)) == WIRE_OK) {
        at += used;
        if (c->lively) client_react(u, c, &msg);
    }
    /* A dialer with a key meets a run without one: its words are TLS's. */
    assert(result == WIRE_OK || result == WIRE_MORE || c->in[0] == 0x15);
    memmove(c->in, c->in + at, c->size - at);
    c->size -= at;
}

static void client_read(struct universe *u, struct client *c)
{
    size_t room = sizeof c->in - c->size;
    ssize_t got = c->secure
                      ? secure_recv(c->fd, c->secure, c->in + c->size, room)
                      : recv(c->fd, c->in + c->size, room, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        client_close(c);
        return;
    }
    c->size += (size_t)got;
    client_decode(u, c);
}

static bool read_all(struct universe *u)
{
    struct pollfd polled[CLIENTS];
    nfds_t count = 0;
    struct client *of[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        if (u->clients[i].fd <= 0) continue;
        of[count] = &u->clients[i];
        polled[count++] = (struct pollfd){u->clients[i].fd, POLLIN, 0};
    }
    if (poll(polled, count, 0) <= 0) return false;
    for (nfds_t i = 0; i < count; i++)
        if (polled[i].revents) client_read(u, of[i]);
    return true;
}

void clients_settle(struct universe *u)
{
    for (int i = 0, quiet = 0; u->server && i < PASSES && quiet < 2; i++) {
        ev_run(u->loop, EVRUN_NOWAIT);
        quiet = read_all(u) ? 0 : quiet + 1;
    }
}

/* ------------------------------------------------------------ the crowd */

void crowd_join(struct universe *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint32_t count = 1 + r->arg % CLIENTS, hosts = 1 + fuzz_below(&in, CLIENTS);
    master_server_set_quorum(u->server, count);
    u->random = fuzz_u32(&in);
    u->walls = fuzz_u8(&in);
    for (uint32_t i = 0; i < count; i++) {
        struct client *c = &u->clients[i];
        struct wire_msg hello = {.type = WIRE_HELLO};
        client_open(u, c, i % 4 == 3);
        clients_settle(u);
        if (c->fd <= 0 || c->lively) continue;
        hello.hello.self.hint = (int32_t)i;
        hello.hello.self.host = 2 + 2 * (uint64_t)(i % hosts);
        hello.hello.group = i % 8 == 5;
        hello.hello.join = master_server_members(u->server) > 0;
        c->lively = true;
        client_say(c, &hello);
    }
}

void crowd_vote(struct universe *u, uint8_t kind)
{
    struct wire_msg msg = {.type = WIRE_VOTE};
    msg.vote.kind = kind % VOTE_KIND_COUNT;
    for (int i = 0; i < CLIENTS; i++) {
        if (!u->clients[i].lively) continue;
        msg.round = ++u->clients[i].call;
        client_say(&u->clients[i], &msg);
    }
}

void crowd_lacks_links(struct universe *u)
{
    struct wire_msg msg = {.type = WIRE_REFRESH};
    msg.fault.cause = REFRESH_UNREACHABLE;
    for (int i = 0; i < CLIENTS; i++) {
        u->random = u->random * 1664525u + 1013904223u;
        msg.epoch = u->clients[i].epoch;
        msg.fault.peer = 1 + (u->random >> 8) % CLIENTS;
        if (u->clients[i].lively) client_say(&u->clients[i], &msg);
    }
}

void crowd_waits(struct universe *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct wire_wait wait = {.kind = r->arg % WAIT_KIND_COUNT,
                             .blocks = true,
                             .tag = 7,
                             .peer = 1 + fuzz_below(&in, CLIENTS),
                             .age_ms = fuzz_u16(&in)};
    struct wire_msg msg = {
        .type = WIRE_WAITING, .epoch = 1, .waits = &wait, .wait_count = 1};
    for (int i = 1; i < CLIENTS; i++)
        if (u->clients[i].lively) client_say(&u->clients[i], &msg);
}
