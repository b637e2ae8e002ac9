/* test_master_crowd.c - tests of strangers, garbage and shortages: each costs
 * the coordinator at most one link and a few KiB, and its members nothing. */
#include "fake_peer.h"

#include "../../patience.h"

#include "../../../src/master/master.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG (2 * PATIENCE_S * PCCL_S)
#define SHORT (200 * PCCL_MS)

/* A member that is served before and after the trouble. */
static void member_check(struct bench *b, struct peer *member)
{
    assert_int_equal(master_server_members(b->server), 1);
    static uint32_t calls; /* a later one has a higher number (V1) */
    struct wire_msg vote = {.type = WIRE_VOTE, .round = ++calls};
    vote.vote.kind = VOTE_PENDING;
    peer_send(member, &vote);
    peer_expect(member, WIRE_ANSWER);
    assert_int_equal(member->msg.vote.flag, 0);
}

static void test_garbage_is_closed_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint8_t bytes[10];
        size_t size;
    } cases[] = {
        {"http", "GET / HTTP", 10},
        {"magic", {0x50, 0x44, 1, 1, 0, 0, 0, 0}, 8},
        {"version", {0x50, 0x43, 2, 1, 0, 0, 0, 0}, 8},
        {"type 0", {0x50, 0x43, 1, 0, 0, 0, 0, 0}, 8},
        {"type", {0x50, 0x43, 1, 200, 0, 0, 0, 0}, 8},
        {"length", {0x50, 0x43, 1, 1, 0xff, 0xff, 0xff, 0xff}, 8},
        {"short body", {0x50, 0x43, 1, 1, 0, 0, 0, 1, 7}, 9},
        {"from master", {0x50, 0x43, 1, 11, 0, 0, 0, 0}, 8},
    };
    struct bench b;
    struct peer member, p;
    bench_open(&b, NULL, 1, LONG);
    peers_found(&member, 1, &b);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        peer_open(&p, &b);
        peer_write(&p, cases[i].bytes, cases[i].size);
        peer_expect_end(&p);
        peer_close(&p);
    }
    member_check(&b, &member);
    peer_close(&member);
    bench_close(&b);
}

/* The header is valid for a member; for a stranger no memory is allocated. */
static void test_a_stranger_gets_no_large_frame(void **state)
{
    (void)state;
    static const uint8_t propose[8192] = {0x50, 0x43, 1, WIRE_PROPOSE,
                                          0,    3,    0, 0};
    struct bench b;
    struct peer p;
    bench_open(&b, NULL, 1, LONG);
    peer_open(&p, &b);
    peer_write(&p, propose, sizeof propose);
    peer_expect_end(&p);
    assert_int_equal(p.in_size, 0);
    peer_close(&p);
    bench_close(&b);
}

static void test_a_member_that_sends_garbage_is_lost(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 2, LONG);
    peers_found(p, 2, &b);
    peer_write(&p[1], "garbage.", 8);
    peer_expect_end(&p[1]);
    peer_expect(&p[0], WIRE_FLUSH);
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

/* Its queue is bounded, and it costs the others nothing but the loss. */
static void test_a_member_that_does_not_read_is_lost(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[3];
    bench_open(&b, NULL, 3, LONG);
    peers_found(p, 3, &b);
    ev_io_stop(b.loop, &p[1].io);
    struct wire_msg request = {.type = WIRE_DIAL_REQUEST};
    request.call.peer = p[1].id;
    while (master_server_members(b.server) == 3) {
        peer_send(&p[0], &request);
        bench_turn(&b);
    }
    peer_expect(&p[2], WIRE_FLUSH);
    peer_expect(&p[0], WIRE_FLUSH);
    for (int i = 0; i < 3; i++) peer_close(&p[i]);
    bench_close(&b);
}

static void test_port_scanners_leave_nothing_behind(void **state)
{
    (void)state;
    struct bench b;
    struct peer member, p;
    bench_open(&b, NULL, 1, LONG);
    peers_found(&member, 1, &b);
    int before = open_descriptors();
    for (int i = 0; i < 200; i++) {
        peer_open(&p, &b);
        if (i % 2) { /* reset instead of an orderly end */
            struct linger now = {1, 0};
            setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        }
        if (i % 3) ev_run(b.loop, EVRUN_NOWAIT);
        peer_close(&p);
    }
    member_check(&b, &member);
    while (open_descriptors() > before) ev_run(b.loop, EVRUN_NOWAIT);
    peer_close(&member);
    bench_close(&b);
}

/* Half a HELLO, then silence. */
static void test_an_unfinished_hello_ends_with_the_deadline(void **state)
{
    (void)state;
    static const uint8_t half[] = {0x50, 0x43, 1, WIRE_HELLO, 0, 0, 0, 64};
    struct bench b;
    struct peer p;
    bench_open(&b, NULL, 1, SHORT);
    peer_open(&p, &b);
    peer_write(&p, half, sizeof half);
    ev_tstamp start = ev_now(b.loop);
    peer_expect_end(&p);
    double took = ev_now(b.loop) - start;
    assert_true(took > .15);
    peer_expect(&p, WIRE_EVICT);
    assert_non_null(strstr(p.msg.abort.text, "HELLO"));
    peer_close(&p);
    bench_close(&b);
}

/* The evicted peer keeps its end open: the master does not wait for ever. */
static void test_lingering_is_bounded(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    bench_open(&b, NULL, 1, SHORT);
    peer_open(&p, &b);
    int before = open_descriptors();
    peer_expect_end(&p);
    while (open_descriptors() > before) bench_turn(&b);
    peer_close(&p);
    bench_close(&b);
}

/* More strangers than links: the first ones make room for the later ones, long
 * before their time is over (M1). */
static void test_strangers_cannot_take_all_links(void **state)
{
    (void)state;
    enum { STRANGERS = MASTER_STRANGERS_MAX + 8 };
    struct bench b;
    static struct peer strangers[STRANGERS];
    struct peer p;
    bench_open(&b, NULL, 1, LONG);
    for (int i = 0; i < STRANGERS; i++) peer_open(&strangers[i], &b);
    peer_open(&p, &b);
    int before = open_descriptors();
    peer_hello(&p, 0, false);
    peer_expect(&p, WIRE_WELCOME);
    assert_true(strangers[0].ended);
    assert_true(open_descriptors() <= before + 2 * MASTER_STRANGERS_MAX);
    for (int i = 0; i < STRANGERS; i++) peer_close(&strangers[i]);
    peer_close(&p);
    bench_close(&b);
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    *(bool *)timer->data = true;
    ev_break(loop, EVBREAK_ONE);
}

/* Without descriptors the master does not spin, and serves again when some are
 * free. */
static void test_a_lack_of_descriptors_passes(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    struct rlimit keep, low;
    bool time_up = false;
    bench_open(&b, NULL, 1, LONG);
    peer_open(&p, &b);
    getrlimit(RLIMIT_NOFILE, &keep);
    low = keep;
    low.rlim_cur = (rlim_t)p.fd + 1;
    setrlimit(RLIMIT_NOFILE, &low);
    peer_hello(&p, 0, false);
    ev_timer timer;
    ev_timer_init(&timer, on_time, .35, 0.);
    timer.data = &time_up;
    ev_timer_start(b.loop, &timer);
    unsigned before = ev_iteration(b.loop);
    while (!time_up) bench_turn(&b);
    assert_true(ev_iteration(b.loop) - before < 30);
    assert_int_equal(p.in_size, 0);
    setrlimit(RLIMIT_NOFILE, &keep);
    peer_expect(&p, WIRE_WELCOME);
    peer_close(&p);
    bench_close(&b);
}

static void serve_one(struct bench *b, const char *host)
{
    struct peer p;
    peer_open_at(&p, b, host);
    peer_hello(&p, 0, false);
    peer_expect(&p, WIRE_WELCOME);
    peer_close(&p);
}

static bool have_ipv6(void)
{
    struct bench b;
    struct master_server_options o = {.host = "::1"};
    char error[64];
    o.loop = b.loop = ev_loop_new(EVFLAG_AUTO);
    struct master_server *server = master_server_open(&o, error, sizeof error);
    if (server) master_server_close(server);
    ev_loop_destroy(b.loop);
    return server != NULL;
}

static void test_both_families_are_served(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, NULL, 2, LONG);
    serve_one(&b, "127.0.0.1");
    if (have_ipv6()) serve_one(&b, "::1");
    bench_close(&b);
    bench_open(&b, "127.0.0.1", 1, LONG);
    serve_one(&b, "127.0.0.1");
    bench_close(&b);
}

static void test_a_port_is_taken_or_free_again(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    char error[128] = "";
    bench_open(&b, "127.0.0.1", 1, LONG);
    peers_found(&p, 1, &b);
    struct master_server_options o = {.loop = b.loop, .host = "127.0.0.1"};
    o.port = master_server_port(b.server);
    assert_int_not_equal(o.port, 0);
    assert_null(master_server_open(&o, error, sizeof error));
    assert_non_null(strstr(error, "in use"));
    master_server_close(
        b.server); /* we close first: TIME_WAIT is on this side */
    b.server = master_server_open(&o, error, sizeof error);
    assert_non_null(b.server);
    assert_int_equal(master_server_port(b.server), o.port);
    o.host = "no.number";
    assert_null(master_server_open(&o, error, sizeof error));
    assert_non_null(strstr(error, "address"));
    peer_close(&p);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_garbage_is_closed_at_once),
        cmocka_unit_test(test_a_stranger_gets_no_large_frame),
        cmocka_unit_test(test_a_member_that_sends_garbage_is_lost),
        cmocka_unit_test(test_a_member_that_does_not_read_is_lost),
        cmocka_unit_test(test_port_scanners_leave_nothing_behind),
        cmocka_unit_test(test_an_unfinished_hello_ends_with_the_deadline),
        cmocka_unit_test(test_lingering_is_bounded),
        cmocka_unit_test(test_strangers_cannot_take_all_links),
        cmocka_unit_test(test_a_lack_of_descriptors_passes),
        cmocka_unit_test(test_both_families_are_served),
        cmocka_unit_test(test_a_port_is_taken_or_free_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
