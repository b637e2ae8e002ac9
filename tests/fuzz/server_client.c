/* server_client.c - see server_client.h. */
#include "server_client.h"

#include "../../src/base/io_addr.h"
#include "../../src/base/same_user.h"
#include "../../src/base/secure_socket.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOUR = 3600 };

const uint8_t client_seed[TOKEN_SEED_SIZE] = {2};
static uint8_t frame[WIRE_FRAME_MAX];

/* ------------------------------------------------------------------ sockets */

/* "a", "b" or "c"; rights, and for how long it holds. 0: all of them, long. */
static bool make_token(const struct universe *u, uint8_t bits,
                       struct secure_psk *psk)
{
    struct token token = {
        .grant = {.rights = GRANT_JOIN | GRANT_OBSERVE, .any_group = true},
        .issued = SERVER_BEGAN - HOUR,
        .expires = SERVER_BEGAN + 1000 * HOUR};
    token.grant.name[0] = bits == 0 ? 'g' : (char)('a' + bits % 3);
    if (bits >= 64) token.grant.rights = 1 + bits / 3 % 7;
    token.grant.any_group = bits < 128;
    token.grant.group = bits & 1;
    if (bits >= 192) token.expires = SERVER_BEGAN + bits % 16;
    if (bits == 255) token.issued = SERVER_BEGAN + HOUR;
    return token_issue(&token, client_seed, u->run_key, psk);
}

static bool choose_key(const struct universe *u, enum client_way way,
                       uint8_t grant, struct secure_psk *psk)
{
    uint8_t other[SECURE_KEY_SIZE] = {9};
    switch (way) {
    case WAY_TOKEN:
        return make_token(u, grant, psk);
    case WAY_PLAIN:
    case WAY_COUNT:
        return false;
    case WAY_OTHER_KEY:
        secure_psk_of_key(psk, other);
        return true;
    case WAY_LINK_KEY:
        token_link_key(psk, u->server->key.word);
        return true;
    case WAY_KEY:
        break;
    }
    secure_psk_of_key(psk, u->run_key);
    return true;
}

/* In a run without a key some have one all the same. */
static bool has_key(const struct universe *u, enum client_way way,
                    uint8_t grant)
{
    if (u->bits & 1) return way != WAY_PLAIN;
    return way == WAY_OTHER_KEY && grant == 255 &&
           secure_is_available(&(const char *){NULL});
}

void client_open(struct universe *u, struct client *c, enum client_way way,
                 uint8_t grant, bool v6)
{
    struct io_addr at;
    char why[256];
    uint16_t port = master_server_port(u->server);
    if (c->fd >= 0) client_close(c, false);
    *c = (struct client){.fd = -1};
    if (!io_addr_numeric(v6 ? "::1" : "127.0.0.1", port, false, &at)) return;
    int fd = socket(at.name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (connect(fd, (const struct sockaddr *)&at.name, at.size) != 0) {
        (void)close(fd);
        return;
    }
    struct io_addr own = io_addr_local(fd);
    c->fd = fd;
    c->port = io_addr_port(&own);
    u->opened++;
    io_addr_tune(fd, &at); /* what is sent is there at once */
    (void)same_user_admits(fd, true, why, sizeof why);
    if (!has_key(u, way, grant) || !choose_key(u, way, grant, &c->keys.own))
        return;
    c->secure = secure_open(&c->keys, SECURE_DIALER);
    assert(c->secure);
    (void)secure_flush(fd, c->secure);
}

void client_close(struct client *c, bool at_once)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (c->fd < 0) return;
    if (at_once)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    secure_close(c->secure);
    c->secure = NULL;
    (void)close(c->fd);
    c->fd = -1;
}

uint32_t client_link(const struct universe *u, const struct client *c)
{
    const struct master *m = &u->server->machine;
    for (uint32_t i = 0; i < m->link_end && c->fd >= 0; i++) {
        const struct master_conn *conn = u->server->board.links[i];
        if (conn && conn->addr.port == c->port) return i;
    }
    return MASTER_NO_LINK;
}

/* ------------------------------------------------------------------- input */

/* Bytes that are no frame come from the other end of a relayed pair. */
static void take(struct client *c)
{
    static struct wire_store store;
    struct wire_msg msg;
    size_t used = 0, at = 0;
    enum wire_status status;
    while ((status = wire_decode(c->in + at, c->size - at, &store, &msg,
                                 &used)) == WIRE_OK) {
        at += used;
        if (msg.type == WIRE_EVICT) {
            (void)snprintf(c->why, sizeof c->why, "%s", msg.abort.text);
            c->ended = true;
        }
        if (msg.type != WIRE_WELCOME) continue;
        c->id = msg.welcome.id;
        c->secret = msg.welcome.secret;
    }
    if (status == WIRE_BAD || at == c->size) {
        c->size = 0;
        return;
    }
    memmove(c->in, c->in + at, c->size - at);
    c->size -= at;
}

void client_read(struct client *c)
{
    while (c->fd >= 0 && !c->ended) {
        if (c->size == CLIENT_IN) c->size = 0;
        size_t room = CLIENT_IN - c->size;
        if (c->secure && secure_state(c->secure) == SECURE_GREETING) {
            int greeted = secure_greet(c->fd, c->secure);
            if (greeted < 0) c->ended = true;
            if (greeted != 1) return;
        }
        ssize_t got = c->secure
                          ? secure_recv(c->fd, c->secure, c->in + c->size, room)
                          : recv(c->fd, c->in + c->size, room, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            c->ended = true;
            return;
        }
        c->size += (size_t)got;
        take(c);
    }
}

/* ------------------------------------------------------------------ output */

void client_bytes(struct client *c, const uint8_t *bytes, size_t size,
                  bool past)
{
    const struct iovec part = {(void *)(uintptr_t)bytes, size};
    if (c->fd < 0 || size == 0) return;
    if (!c->secure || past)
        (void)send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (secure_state(c->secure) == SECURE_OPEN)
        (void)secure_send(c->fd, c->secure, &part, 1);
}

void client_send(struct client *c, const struct wire_msg *msg)
{
    client_bytes(c, frame, wire_encode(msg, frame), false);
}

void client_say(const struct universe *u, struct client *c,
                struct fuzz_input *in, bool changed)
{
    struct say_room room;
    struct wire_msg msg;
    uint32_t link = client_link(u, c);
    if (link == MASTER_NO_LINK) return;
    master_say_make(&u->server->machine, link, in, &room, &msg);
    /* A process of this host may be looked at. */
    if (msg.type == WIRE_HELLO && msg.hello.self.host == 2)
        msg.hello.self.host = u->server->looks.host;
    if (msg.type == WIRE_HELLO) msg.hello.self.pid = (uint32_t)getpid();
    size_t size = wire_encode(&msg, frame);
    while (changed && in->left > 2) {
        size_t at = fuzz_u16(in) % size;
        frame[at] = fuzz_u8(in);
    }
    client_bytes(c, frame, size, false);
}

void client_say_due(const struct universe *u, struct client *c,
                    const struct crowd_mood *mood)
{
    static struct crowd_room room;
    struct wire_msg msg;
    uint32_t link = client_link(u, c);
    bool open = !c->secure || secure_state(c->secure) == SECURE_OPEN;
    if (link == MASTER_NO_LINK || !open) return;
    if (!master_say_due(&u->server->machine, link, mood, &room, &msg)) return;
    /* It may be under way. */
    if (msg.type == c->said && msg.round == c->said_round) return;
    c->said = msg.type;
    c->said_round = msg.round;
    client_send(c, &msg);
}

void client_say_partial(const struct universe *u, struct client *c,
                        struct fuzz_input *in)
{
    uint64_t ids[PARTIAL_IDS] = {0};
    uint8_t set = 0;
    struct wire_msg msg = {.ids = ids};
    const struct master *m = &u->server->machine;
    uint32_t link = client_link(u, c);
    if (link == MASTER_NO_LINK) return;
    master_partial_fill(m, link, in, &msg, ids, &set);
    msg.epoch = m->groups[m->peers[link].group].epoch;
    client_send(c, &msg);
}

void client_say_relay(const struct universe *u, struct client *c,
                      struct fuzz_input *in)
{
    struct wire_msg msg = {.ids = NULL};
    master_relay_fill(&u->server->machine, in, &msg);
    client_send(c, &msg);
}

void client_resume(const struct universe *u, struct client *c,
                   struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    const struct client *as = bits & 1 ? c : &u->clients[bits / 2 % CLIENTS];
    struct wire_msg msg = {
        .type = WIRE_RESUME, .round = fuzz_u8(in), .epoch = fuzz_u8(in)};
    msg.resume.id = as->id;
    msg.resume.secret = as->secret;
    if (bits == 255) msg.resume.secret.word[0]++;
    msg.resume.term = fuzz_below(in, 3);
    client_send(c, &msg);
}
