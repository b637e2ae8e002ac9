/* test_master_server.c - tests of the coordinator's driver on loopback sockets,
 * from HELLO to the view and the loss of members. */
#include "fake_peer.h"

#include "../../patience.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONG (2 * PATIENCE_S * PCCL_S)
#define SHORT (200 * PCCL_MS)

static pccl_ns now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * PCCL_S + t.tv_nsec;
}

static void found(uint32_t count)
{
    struct bench b;
    struct peer p[3];
    char line[64];
    bench_open(&b, NULL, count, LONG);
    for (uint32_t i = 0; i < count; i++) { /* rank hints in reverse order */
        peer_open(&p[i], &b);
        peer_hello(&p[i], (int32_t)(count - 1 - i), false);
        const struct wire_msg *m = peer_expect(&p[i], WIRE_WELCOME);
        assert_int_equal(m->welcome.deadline_ms, LONG / PCCL_MS);
        assert_true(m->welcome.key.word[0] != 0 || m->welcome.key.word[1] != 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_msg *m = peer_expect(&p[i], WIRE_PROPOSE);
        assert_int_equal(m->member_count, count);
        for (uint32_t r = 0; r < count; r++) {
            assert_int_equal(m->members[r].id, p[count - 1 - r].id);
            assert_int_equal(m->members[r].hint, r);
            assert_int_equal(m->members[r].addr.family, 4);
            assert_int_equal(m->members[r].addr.ip[0], 127);
            assert_int_equal(m->members[r].addr.port, 9);
        }
        assert_int_equal(master_server_pending(b.server), count);
        peer_say(&p[i], WIRE_READY);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_msg *m = peer_expect(&p[i], WIRE_INSTALL);
        assert_int_equal(m->round, 1);
        assert_int_equal(m->view.world, count);
        assert_true(m->view.ring);
    }
    assert_int_equal(master_server_members(b.server), count);
    assert_int_equal(master_server_pending(b.server), 0);
    snprintf(line, sizeof line, "first view: epoch 1, %u ranks", count);
    assert_int_equal(b.line_count, 1);
    assert_string_equal(b.lines[0], line);
    for (uint32_t i = 0; i < count; i++) peer_close(&p[i]);
    bench_close(&b);
}

static void test_two_peers_found_a_view(void **state)
{
    (void)state;
    found(2);
}

static void test_three_peers_found_a_view(void **state)
{
    (void)state;
    found(3);
}

static void test_the_quorum_can_be_lowered(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    bench_open(&b, NULL, 2, LONG);
    peer_open(&p, &b);
    peer_hello(&p, 0, false);
    peer_expect(&p, WIRE_WELCOME);
    assert_int_equal(master_server_pending(b.server), 1);
    master_server_set_quorum(b.server, 1);
    peers_install(&p, 1);
    bench_expect_line(&b, "first view: epoch 1, 1 rank");
    peer_close(&p);
    bench_close(&b);
}

static void test_a_newcomer_joins_by_vote(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 1, LONG);
    peers_found(p, 1, &b);
    peer_open(&p[1], &b);
    peer_hello(&p[1], 1, true);
    peer_expect(&p[1], WIRE_WELCOME);
    struct wire_msg vote = {.type = WIRE_VOTE, .round = 1};
    vote.vote.kind = VOTE_UPDATE;
    peer_send(&p[0], &vote);
    peers_install(p, 2);
    bench_expect_line(&b, "1 rank joined, epoch 2, 2 ranks");
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

static void test_bytes_may_come_one_by_one(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    static uint8_t frame[WIRE_FRAME_MAX];
    bench_open(&b, NULL, 1, LONG);
    peer_open(&p, &b);
    struct wire_msg hello = {.type = WIRE_HELLO};
    size_t size = wire_encode(&hello, frame);
    for (size_t i = 0; i < size; i++) {
        peer_write(&p, frame + i, 1);
        ev_run(b.loop, EVRUN_NOWAIT); /* loopback delivers at once */
    }
    peer_expect(&p, WIRE_WELCOME);
    peer_expect(&p, WIRE_PROPOSE);
    struct wire_msg ready = {.type = WIRE_READY, .round = p.round};
    size = wire_encode(&ready, frame);
    for (size_t i = 0; i < size; i++) {
        peer_write(&p, frame + i, 1);
        ev_run(b.loop, EVRUN_NOWAIT);
    }
    peer_expect(&p, WIRE_INSTALL);
    peer_close(&p);
    bench_close(&b);
}

/* Larger than the first buffer; its ids are unreachable pairs, so the round
 * restarts. */
static void test_a_large_frame_fits(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    static uint64_t ids[PEERS_MAX];
    bench_open(&b, NULL, 1, LONG);
    peer_open(&p, &b);
    peer_hello(&p, 0, false);
    peer_expect(&p, WIRE_WELCOME);
    peer_expect(&p, WIRE_PROPOSE);
    struct wire_msg ready = {.type = WIRE_READY, .round = p.round, .ids = ids};
    ready.id_count = PEERS_MAX;
    peer_send(&p, &ready);
    peer_expect(&p, WIRE_INSTALL); /* it names nobody that there is */
    peer_close(&p);
    bench_close(&b);
}

static void test_a_lost_member_is_reported(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[3];
    bench_open(&b, NULL, 3, LONG);
    peers_found(p, 3, &b);
    peer_close(&p[1]);
    for (int i = 0; i < 3; i += 2) {
        peer_expect(&p[i], WIRE_FLUSH);
        assert_int_equal(p[i].msg.id_count, 1);
        assert_int_equal(p[i].msg.ids[0], p[1].id);
        peer_say(&p[i], WIRE_FLUSHED);
    }
    for (int i = 0; i < 3; i += 2) {
        peer_expect(&p[i], WIRE_PROPOSE);
        peer_say(&p[i], WIRE_READY);
    }
    peer_expect(&p[2], WIRE_INSTALL);
    bench_expect_line(
        &b, "rank 1 (pid 101) lost, epoch 1 -> 2, 3 -> 2 ranks, recovered in ");
    peer_close(&p[0]);
    peer_close(&p[2]);
    bench_close(&b);
}

/* A peer that has shut down its output is lost, although it could still
 * read. */
static void test_a_half_open_member_is_lost(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 2, LONG);
    peers_found(p, 2, &b);
    shutdown(p[0].fd, SHUT_WR);
    peer_expect_end(&p[0]);
    peer_expect(&p[1], WIRE_FLUSH);
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

static void test_a_leaver_is_told_goodbye(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 2, LONG);
    peers_found(p, 2, &b);
    peer_say(&p[1], WIRE_LEAVE);
    for (int i = 0; i < 2; i++) {
        peer_expect(&p[i], WIRE_FLUSH);
        peer_say(&p[i], WIRE_FLUSHED);
    }
    peers_install(p, 1);
    peer_expect(&p[1], WIRE_EVICT);
    assert_string_equal(p[1].msg.abort.text, "");
    peer_expect_end(&p[1]);
    bench_expect_line(&b, "rank 1 (pid 101) left, epoch 1 -> 2, 2 -> 1 rank");
    assert_null(strstr(b.lines[b.line_count - 1], "recovered"));
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

static void test_an_abort_ends_the_run(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 2, LONG);
    peers_found(p, 2, &b);
    struct wire_msg abort_msg = {.type = WIRE_ABORT};
    abort_msg.abort.code = 42;
    peer_send(&p[1], &abort_msg);
    for (int i = 0; i < 2; i++) {
        peer_expect(&p[i], WIRE_EVICT);
        assert_non_null(strstr(p[i].msg.abort.text, "aborted"));
        peer_expect_end(&p[i]);
    }
    assert_int_equal(b.aborts, 1);
    assert_int_equal(b.abort_code, 42);
    assert_int_equal(b.abort_rank, 1);
    bench_expect_line(&b, "rank 1 (pid 101) aborted the run with code 42");
    assert_int_equal(b.line_count,
                     2); /* evictions after an abort are not reported */
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

/* Data sent before the close still arrive. */
static void test_aborted_may_close_the_server(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    int before = open_descriptors();
    bench_open(&b, NULL, 1, LONG);
    peers_found(&p, 1, &b);
    b.close_on_abort = true;
    peer_say(&p, WIRE_ABORT);
    peer_expect(&p, WIRE_EVICT);
    peer_expect_end(&p);
    assert_null(b.server);
    peer_close(&p);
    bench_close(&b);
    assert_int_equal(open_descriptors(), before);
}

/* One member sends all the time, which must not postpone the tick. */
static void test_a_silent_member_is_evicted(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    bench_open(&b, NULL, 2, SHORT);
    peers_found(p, 2, &b);
    pccl_ns start = now();
    while (!p[1].ended) {
        peer_say(&p[0], WIRE_HEARTBEAT);
        bench_turn(&b);
    }
    assert_true(now() - start >= SHORT * 6 / 10);
    peer_expect(&p[1], WIRE_EVICT);
    assert_non_null(strstr(p[1].msg.abort.text, "silent"));
    /* On a busy machine the coordinator also says that it did not run. */
    bench_expect_line(&b, "rank 1 (pid 101) evicted: was silent for ");
    assert_int_equal(b.evicted_pid, 101);
    peer_expect(&p[0], WIRE_FLUSH);
    for (int i = 0; i < 2; i++) peer_close(&p[i]);
    bench_close(&b);
}

static void test_the_master_beats(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    bench_open(&b, NULL, 1, SHORT);
    peers_found(&p, 1, &b);
    for (int i = 0; i < 3; i++) {
        peer_expect(&p, WIRE_HEARTBEAT);
        peer_say(&p, WIRE_HEARTBEAT);
    }
    peer_close(&p);
    bench_close(&b);
}

/* What members say arrives whenever the tick is due. The sleep lets it be due;
 * its length decides nothing. */
static void test_a_busy_master_beats(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    bench_open(&b, NULL, 1, SHORT);
    peers_found(&p, 1, &b);
    for (int i = 0; i < 5; i++) {
        size_t before = p.in_size;
        usleep((useconds_t)(SHORT / 5000)); /* a fifth of the deadline */
        peer_say(&p, WIRE_HEARTBEAT);
        for (int k = 0; k < 2; k++) ev_run(b.loop, EVRUN_NOWAIT);
        assert_true(p.in_size > before);
    }
    peer_close(&p);
    bench_close(&b);
}

/* The master was stopped for longer than the deadline: heartbeats that arrived
 * meanwhile count, and it says so (M15). The sleep simulates the stop. */
static void test_a_stopped_master_reads_before_it_judges(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    bench_open(&b, NULL, 1, SHORT);
    peers_found(&p, 1, &b);
    usleep((useconds_t)(SHORT / 500)); /* twice the deadline */
    peer_say(&p, WIRE_HEARTBEAT);
    peer_expect(&p, WIRE_HEARTBEAT);
    assert_true(b.line_count > 1);
    for (uint32_t i = 1; i < b.line_count; i++)
        assert_non_null(strstr(b.lines[i], "the coordinator did not run for"));
    peer_close(&p);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_peers_found_a_view),
        cmocka_unit_test(test_three_peers_found_a_view),
        cmocka_unit_test(test_the_quorum_can_be_lowered),
        cmocka_unit_test(test_a_newcomer_joins_by_vote),
        cmocka_unit_test(test_bytes_may_come_one_by_one),
        cmocka_unit_test(test_a_large_frame_fits),
        cmocka_unit_test(test_a_lost_member_is_reported),
        cmocka_unit_test(test_a_half_open_member_is_lost),
        cmocka_unit_test(test_a_leaver_is_told_goodbye),
        cmocka_unit_test(test_an_abort_ends_the_run),
        cmocka_unit_test(test_aborted_may_close_the_server),
        cmocka_unit_test(test_a_silent_member_is_evicted),
        cmocka_unit_test(test_the_master_beats),
        cmocka_unit_test(test_a_busy_master_beats),
        cmocka_unit_test(test_a_stopped_master_reads_before_it_judges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
