/* test_master_open.c - an open run on loopback sockets: a token that expires
 * while its holder is there (K15), the key of links at the coordinator (K14),
 * and who waits for a hook (K16). The clock of tokens is the test's. */
#include "../../../src/master/server/master_server.h"

#include "../../patience.h"

#include "../../../src/base/secure_socket.h"
#include "../../../src/base/secure_token.h"
#include "../../../src/base/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NOW = 1800000000, HOUR = 3600 };

static uint8_t key[SECURE_KEY_SIZE] = {1}, seed[TOKEN_SEED_SIZE] = {2};
static uint8_t issuer[TOKEN_PUBLIC_SIZE];
static time_t clock_s;

time_t __wrap_time(time_t *at);
time_t __wrap_time(time_t *at)
{
    if (at) *at = clock_s;
    return clock_s;
}

/* ------------------------------------------------------------------- bench */

struct asked {
    uint64_t ticket;
    char name[64], wants[16];
    uint32_t group, count;
    bool refuses; /* at once */
};

struct bench {
    struct ev_loop *loop;
    struct master_server *server;
    ev_timer watchdog;
    struct asked asked;
    char told[256];
};

static void on_watchdog(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events;
    fail_msg("nothing of what the test waits for has happened");
}

static bool ask(void *hook, const struct master_guest *guest, char *why,
                size_t size)
{
    struct asked *a = hook;
    a->ticket = guest->ticket;
    a->group = guest->group;
    a->count++;
    snprintf(a->name, sizeof a->name, "%s", guest->name);
    snprintf(a->wants, sizeof a->wants, "%s", guest->wants);
    if (a->refuses) snprintf(why, size, "not today");
    return !a->refuses;
}

static void told(void *hook, const struct master_guest *guest,
                 const char *event)
{
    struct bench *b =
        (struct bench *)((char *)hook - offsetof(struct bench, asked));
    size_t used = strlen(b->told);
    snprintf(b->told + used, sizeof b->told - used, "%s %s\n", guest->name,
             event);
}

static void bench_open(struct bench *b, bool hooks)
{
    char error[256] = "";
    memset(b, 0, sizeof *b);
    clock_s = NOW;
    b->loop = ev_loop_new(EVFLAG_AUTO);
    assert_non_null(b->loop);
    struct master_server_options o = {.loop = b->loop,
                                      .host = "127.0.0.1",
                                      .deadline = 2 * PATIENCE_S * PCCL_S,
                                      .quorum = 1,
                                      .key = key,
                                      .issuer = issuer,
                                      .hook = &b->asked,
                                      .ask = hooks ? ask : NULL,
                                      .told = told};
    b->server = master_server_open(&o, error, sizeof error);
    if (!b->server) fail_msg("%s", error);
    ev_timer_init(&b->watchdog, on_watchdog, PATIENCE_S, 0.);
    ev_timer_start(b->loop, &b->watchdog);
}

static void bench_close(struct bench *b)
{
    master_server_close(b->server);
    ev_timer_stop(b->loop, &b->watchdog);
    ev_loop_destroy(b->loop);
}

/* ------------------------------------------------------------------ clients */

struct client {
    struct bench *bench;
    int fd;
    ev_io io;
    struct secure_keys keys;
    struct secure *secure;
    uint8_t in[WIRE_FRAME_MAX];
    size_t size, used;
    struct wire_store store;
    struct wire_msg msg;
    uint32_t heartbeats;
};

static void on_bytes(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop, (void)io, (void)events; /* ends the turn */
}

/* With bytes to send, or until some have come; false: the end. */
static bool turn(struct client *c)
{
    ssize_t n =
        secure_recv(c->fd, c->secure, c->in + c->size, sizeof c->in - c->size);
    if (n > 0) c->size += (size_t)n;
    if (n > 0) return true;
    if (n == 0 || errno != EAGAIN) return false;
    ev_run(c->bench->loop, EVRUN_ONCE);
    return true;
}

static struct client *client_open(struct bench *b, const struct secure_psk *psk)
{
    struct client *c = calloc(1, sizeof *c);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(master_server_port(b->server))};
    assert_non_null(c);
    c->bench = b;
    c->keys.own = *psk;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(c->fd >= 0);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&at, sizeof at), 0);
    c->secure = secure_open(&c->keys, SECURE_DIALER);
    assert_non_null(c->secure);
    ev_io_init(&c->io, on_bytes, c->fd, EV_READ);
    ev_io_start(b->loop, &c->io);
    while (secure_greet(c->fd, c->secure) == 0) ev_run(b->loop, EVRUN_ONCE);
    assert_int_equal(secure_state(c->secure), SECURE_OPEN);
    return c;
}

static void client_close(struct client *c)
{
    ev_io_stop(c->bench->loop, &c->io);
    secure_close(c->secure);
    close(c->fd);
    free(c);
}

static void give(struct client *c, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size = wire_encode(msg, frame);
    struct iovec part = {frame, size};
    assert_int_equal(secure_send(c->fd, c->secure, &part, 1), size);
}

static const struct wire_msg *get(struct client *c, enum wire_type type)
{
    for (;;) {
        memmove(c->in, c->in + c->used, c->size - c->used);
        c->size -= c->used;
        c->used = 0;
        enum wire_status s =
            wire_decode(c->in, c->size, &c->store, &c->msg, &c->used);
        assert_true(s != WIRE_BAD);
        if (s == WIRE_MORE) {
            c->used = 0;
            if (!turn(c)) fail_msg("the connection ended");
            continue;
        }
        c->heartbeats += c->msg.type == WIRE_HEARTBEAT;
        if (c->msg.type == type) return &c->msg;
        if (c->msg.type == WIRE_HEARTBEAT) continue;
        fail_msg("%s came", wire_type_name(c->msg.type));
    }
}

static void expect_evict(struct client *c, const char *why)
{
    assert_string_equal(get(c, WIRE_EVICT)->abort.text, why);
    client_close(c);
}

static struct client *enter(struct bench *b, const char *name)
{
    struct secure_psk psk = {0};
    struct token token = {.grant = {.rights = GRANT_JOIN, .any_group = true},
                          .issued = NOW,
                          .expires = NOW + HOUR};
    snprintf(token.grant.name, sizeof token.grant.name, "%s", name);
    assert_true(token_issue(&token, seed, key, &psk));
    return client_open(b, &psk);
}

static const struct wire_msg hello = {.type = WIRE_HELLO,
                                      .hello = {.self.hint = -1}};

/* -------------------------------------------------------------------- tests */

/* As a newcomer that still waits, and before HELLO. */
static void test_expires(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, false);
    struct client *in = enter(&b, "ann"), *mute = enter(&b, "bob");
    give(in, &hello);
    (void)get(in, WIRE_WELCOME);
    (void)get(in, WIRE_PROPOSE);
    give(in, &(struct wire_msg){.type = WIRE_READY, .round = 1});
    (void)get(in, WIRE_INSTALL);
    assert_string_equal(b.told, "ann joined\n");
    clock_s = NOW + HOUR + TOKEN_CLOCK_SKEW;
    expect_evict(in, "the token of ann expired at 2027-01-15 09:00:00 UTC: ask "
                     "for a new one");
    assert_string_equal(b.told, "ann joined\nann lost\n");
    give(mute, &hello);
    expect_evict(mute, "the token of bob expired at 2027-01-15 09:00:00 UTC: "
                       "ask for a new one");
    bench_close(&b);
}

static void test_link_key(void **state)
{
    (void)state;
    struct bench b;
    struct secure_psk links;
    bench_open(&b, false);
    struct client *in = enter(&b, "ann");
    give(in, &hello);
    token_link_key(&links, get(in, WIRE_WELCOME)->welcome.key.word);
    struct client *other = client_open(&b, &links);
    give(other, &hello);
    expect_evict(other, "the token of nobody gives no right to join: --issue "
                        "--rights join");
    client_close(in);
    bench_close(&b);
}

static void test_hook_admits(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, true);
    struct client *in = enter(&b, "ann");
    give(in,
         &(struct wire_msg){.type = WIRE_OFFERS_GET, .offer = {.group = 5}});
    while (b.asked.count == 0) ev_run(b.loop, EVRUN_ONCE);
    assert_string_equal(b.asked.wants, "download");
    assert_int_equal(b.asked.group, 5);
    master_server_answer(b.server, b.asked.ticket, true, "");
    (void)get(in, WIRE_OFFERS);
    give(in, &hello);
    give(in, &(struct wire_msg){.type = WIRE_HEARTBEAT}); /* does not count */
    while (b.asked.count == 1) ev_run(b.loop, EVRUN_ONCE);
    assert_string_equal(b.asked.wants, "join");
    assert_string_equal(b.asked.name, "ann");
    assert_int_equal(master_server_pending(b.server), 0);
    for (uint32_t before = in->heartbeats; in->heartbeats < before + 3;)
        (void)get(in, WIRE_HEARTBEAT);
    master_server_answer(b.server, b.asked.ticket + 1, true, ""); /* nobody's */
    assert_int_equal(master_server_pending(b.server), 0);
    master_server_answer(b.server, b.asked.ticket, true, "");
    (void)get(in, WIRE_WELCOME);
    assert_int_equal(b.asked.count, 2);
    client_close(in);
    bench_close(&b);
}

static void test_hook_refuses(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, true);
    struct client *in = enter(&b, "ann"), *gone = enter(&b, "bob");
    give(in, &hello);
    while (b.asked.count == 0) ev_run(b.loop, EVRUN_ONCE);
    master_server_answer(b.server, b.asked.ticket, false, "no such person");
    expect_evict(in, "no such person");
    give(gone, &hello);
    while (b.asked.count == 1) ev_run(b.loop, EVRUN_ONCE);
    client_close(gone); /* the answer finds nobody */
    b.asked.refuses = true;
    in = enter(&b, "eve");
    master_server_answer(b.server, b.asked.ticket, true, "");
    give(in, &hello);
    expect_evict(in, "not today");
    assert_string_equal(b.told, "");
    bench_close(&b);
}

static int setup(void **state)
{
    (void)state;
    return token_public(seed, issuer) ? 0 : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expires),
        cmocka_unit_test(test_link_key),
        cmocka_unit_test(test_hook_admits),
        cmocka_unit_test(test_hook_refuses),
    };
    const char *why;
    if (!secure_is_available(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, NULL);
}
