/* test_keyed_crowd.c - strangers of a run with a key, thousands at once, with
 * no bytes, a part of a greeting, a whole one of another key, one that was
 * recorded, and garbage: each costs one accept and less than 4 KiB while it
 * waits, the member is served all the time, and a newcomer with the key comes
 * in (K4). */
#include "fake_peer.h"

#include "../../patience.h"

#include "../../../src/master/master.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CROWD = 10000, WORDS_MAX = SECURE_GREETING_MAX };

#define LONG (2 * PATIENCE_S * PCCL_S)

static struct secure_keys own, other;

/* What a stranger says. */
struct words {
    const char *name;
    size_t size;
    bool waits; /* for more of it; else it is closed at once */
    uint8_t bytes[WORDS_MAX];
};

static void greeting(struct words *w, struct secure_keys *keys)
{
    const uint8_t *from;
    struct secure *s = secure_open(keys, SECURE_DIALER);
    assert_non_null(s);
    w->size = secure_out(s, &from);
    assert_in_range(w->size, 100, WORDS_MAX);
    memcpy(w->bytes, from, w->size);
    secure_close(s);
}

static int call(uint16_t port, const struct words *w)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    if (w->size > 0)
        assert_int_equal(send(fd, w->bytes, w->size, MSG_NOSIGNAL), w->size);
    return fd;
}

/* As many as there may be descriptors for both ends. */
static int crowd_size(void)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    return r.rlim_cur > CROWD + 1000 ? CROWD : (int)(r.rlim_cur / 2);
}

static void member_check(struct bench *b, struct peer *member)
{
    static uint32_t calls; /* a later one has a higher number (V1) */
    struct wire_msg vote = {.type = WIRE_VOTE, .round = ++calls};
    assert_int_equal(master_server_members(b->server), 1);
    vote.vote.kind = VOTE_PENDING;
    peer_send(member, &vote);
    peer_expect(member, WIRE_ANSWER);
}

/* Connections are accepted in their order, so all others are by then. */
static void newcomer_check(struct bench *b)
{
    struct peer newcomer;
    peer_open(&newcomer, b);
    peer_hello(&newcomer, 0, false);
    peer_expect(&newcomer, WIRE_WELCOME);
    peer_close(&newcomer);
}

static bool is_closed(int fd)
{
    uint8_t byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, 0) > 0)
        if (recv(fd, &byte, 1, 0) <= 0) return true;
    return false;
}

static void on_nothing(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)io;
    (void)events;
}

/* libev has an entry for each number of a descriptor; those of the strangers'
 * own ends are not the coordinator's cost. */
static void grow_tables(struct bench *b, int from, int top)
{
    ev_io io;
    int fd = fcntl(from, F_DUPFD_CLOEXEC, top);
    assert_true(fd >= top);
    ev_io_init(&io, on_nothing, fd, EV_READ);
    ev_io_start(b->loop, &io);
    ev_run(b->loop, EVRUN_NOWAIT);
    ev_io_stop(b->loop, &io);
    close(fd);
}

/* Returns the bytes that all of them cost. */
static size_t crowd(const struct words *w)
{
    struct bench b;
    struct peer member;
    bench_open_key(&b, &own, 1, LONG);
    peers_found(&member, 1, &b);
    int count = crowd_size();
    int *fds = calloc((size_t)count, sizeof *fds);
    assert_non_null(fds);
    close(call(master_server_port(b.server), w)); /* fills OpenSSL's caches */
    newcomer_check(&b);
    grow_tables(&b, member.fd, count + 500);
    int before = open_descriptors();
    size_t used = mallinfo2().uordblks;
    for (int i = 0; i < count; i++) {
        fds[i] = call(master_server_port(b.server), w);
        if (i % 16 == 0) ev_run(b.loop, EVRUN_NOWAIT);
    }
    member_check(&b, &member);
    newcomer_check(&b);
    for (int i = 0; !w->waits && i < count; i++)
        while (!is_closed(fds[i])) ev_run(b.loop, EVRUN_NOWAIT);
    size_t now = mallinfo2().uordblks;
    int held = open_descriptors() - before - count;
    size_t cost = now > used ? now - used : 0;
    print_message("%s: %d strangers, %d of them held, %zu bytes for all\n",
                  w->name, count, held, cost);
    assert_in_range(held, w->waits, w->waits ? MASTER_STRANGERS_MAX : 4);
    member_check(&b, &member);
    newcomer_check(&b);
    for (int i = 0; i < count; i++) close(fds[i]);
    free(fds);
    peer_close(&member);
    bench_close(&b);
    return cost;
}

static void test_no_bytes(void **state)
{
    (void)state;
    const struct words w = {.name = "no bytes", .waits = true};
    assert_true(crowd(&w) < 4096 * (size_t)MASTER_STRANGERS_MAX);
}

static void test_part_of_a_greeting(void **state)
{
    (void)state;
    struct words w = {.name = "part of a greeting", .waits = true};
    greeting(&w, &own);
    w.size -= 10;
    assert_true(crowd(&w) < 4096 * (size_t)MASTER_STRANGERS_MAX);
}

static void test_another_key(void **state)
{
    (void)state;
    struct words w = {.name = "another key"};
    greeting(&w, &other);
    assert_true(crowd(&w) < 4096 * (size_t)MASTER_STRANGERS_MAX);
}

static void test_garbage(void **state)
{
    (void)state;
    struct words w = {.name = "garbage", .size = 300};
    memset(w.bytes, 0xa5, w.size);
    assert_true(crowd(&w) < 4096 * (size_t)MASTER_STRANGERS_MAX);
}

/* OpenSSL answers those that it holds: more for each, and for all of them less
 * than 4 KiB each. */
static void test_a_recorded_greeting(void **state)
{
    (void)state;
    struct words w = {.name = "a recorded greeting", .waits = true};
    greeting(&w, &own);
    assert_true(crowd(&w) < 4096 * (size_t)crowd_size());
}

static int make_keys(void **state)
{
    (void)state;
    const uint8_t one[SECURE_KEY_SIZE] = {1}, two[SECURE_KEY_SIZE] = {2};
    secure_psk_of_key(&own.own, one);
    secure_psk_of_key(&other.own, two);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_bytes),
        cmocka_unit_test(test_part_of_a_greeting),
        cmocka_unit_test(test_another_key),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_a_recorded_greeting),
    };
    const char *why;
    if (!secure_is_available(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, make_keys, NULL);
}
