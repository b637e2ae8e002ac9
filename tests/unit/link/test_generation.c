/* test_generation.c - a connection that its dialer has given up carries
 * nothing any more, even if its end has not reached the acceptor. The other
 * end dials as well (rule R3). A link that has lost one of its
 * connections is lost (rule R6). */
#include "two_ends.h"

enum { CALLER, CALLED };
enum { SMALL = 100 }; /* bytes of FILL */

static int setup(void **state)
{
    (void)state;
    if (open_ends(SMALL) != 0) return 1;
    for (uint32_t i = 0; i < ENGINES; i++) {
        install_view(engines[i], 1, members, ENGINES, i);
        engine_freeze(engines[i]); /* between two views */
    }
    return 0;
}

static size_t call(uint32_t who, uint8_t *hello)
{
    uint32_t conn = dials;
    links_want(&engines[who]->links, &members[!who], 1);
    assert_int_equal(dials, conn + 1);
    return greet(who, conn, hello);
}

static bool hear(uint32_t who, uint32_t conn, const uint8_t *bytes, size_t size)
{
    assert_true(engine_accepted(engines[who], conn));
    return heard(who, conn, bytes, size);
}

static void test_a_later_call_ends_the_earlier(void **state)
{
    (void)state;
    uint8_t first[RX_BUFFER_SIZE], second[RX_BUFFER_SIZE];
    size_t size = call(CALLER, first);
    assert_true(hear(CALLED, 0, first, size));
    assert_int_equal(state_at(CALLED, 0), CONN_OPEN);
    engine_closed(engines[CALLER], 0); /* the answer did not come in time */
    assert_true(hear(CALLED, 1, second, call(CALLER, second)));
    assert_int_equal(state_at(CALLED, 1), CONN_OPEN);
    assert_int_equal(state_at(CALLED, 0), CONN_FREE);
    assert_int_equal(closed[CALLED], 1);
}

static void test_a_late_call_is_refused(void **state)
{
    (void)state;
    uint8_t first[RX_BUFFER_SIZE], second[RX_BUFFER_SIZE];
    size_t size = call(CALLER, first);
    engine_closed(engines[CALLER], 0);
    assert_true(hear(CALLED, 0, second, call(CALLER, second)));
    assert_false(hear(CALLED, 1, first, size));
    assert_int_equal(state_at(CALLED, 0), CONN_OPEN);
    assert_int_equal(closed[CALLED], 2);
}

/* Dials pass in the other direction alone: the end with the higher id dials a
 * little later. */
static void test_the_other_end_calls_back(void **state)
{
    (void)state;
    uint8_t hello[RX_BUFFER_SIZE];
    struct links *called = &engines[CALLED]->links;
    links_want(&engines[CALLER]->links, &members[CALLED], 1);
    assert_int_equal(dials, 1); /* whose result never comes */
    links_want(called, &members[CALLER], 1);
    assert_int_equal(dials, 1);
    engine_tick(engines[CALLED], PCCL_TIME_TO_LINK(PCCL_S) / 4 - 1);
    assert_int_equal(dials, 1);
    engine_tick(engines[CALLED], PCCL_TIME_TO_LINK(PCCL_S) / 4 + 1);
    assert_int_equal(dials, 2);
    assert_true(hear(CALLER, 5, hello, greet(CALLED, 1, hello)));
    assert_int_equal(state_at(CALLER, 5), CONN_OPEN);
    assert_int_equal(state_at(CALLER, 0), CONN_FREE); /* not needed */
}

/* Rule R3b: of two dials under way at once that of the lower id stands. */
static void test_crossing_calls(void **state)
{
    (void)state;
    uint8_t first[RX_BUFFER_SIZE], second[RX_BUFFER_SIZE], *to;
    size_t size = call(CALLER, first);
    links_want(&engines[CALLED]->links, &members[CALLER], 1);
    engine_tick(engines[CALLED], PCCL_TIME_TO_LINK(PCCL_S) / 4 + 1);
    assert_true(hear(CALLER, 5, second, greet(CALLED, 1, second)));
    assert_int_equal(state_at(CALLER, 5), CONN_ACCEPTED);
    assert_int_equal(engine_rx_window(engines[CALLER], 5, &to), 0);
    assert_true(hear(CALLED, 6, first, size));
    assert_int_equal(state_at(CALLED, 6), CONN_OPEN);
    assert_int_equal(state_at(CALLED, 1), CONN_FREE); /* its own dial */
}

/* Rule R3d: both ends give up, and say so; the time is not begun again until
 * the next proposal. */
static void test_a_link_that_cannot_be_made(void **state)
{
    (void)state;
    struct links *n = &engines[CALLER]->links;
    links_want(n, &members[CALLED], 1);
    pccl_ns time = PCCL_TIME_TO_LINK(PCCL_S);
    for (pccl_ns t = 0; t < time; t += time / 10) {
        engine_tick(engines[CALLER], t);
        assert_int_equal(links_status(n, 11), LINK_WAITS);
    }
    assert_in_range(dials, 3, 5); /* lost packets delay no dial for long */
    engine_tick(engines[CALLER], time + 1);
    assert_int_equal(links_status(n, 11), LINK_FAILED);
    uint32_t before = dials;
    link_need(n, link_find(n, 11, false));
    assert_int_equal(dials, before);
    links_want(n, &members[CALLED], 1);
    assert_int_equal(dials, before + 1);
    assert_int_equal(links_status(n, 11), LINK_WAITS);
}

/* The master's PROPOSE reaches one of two newcomers before the other one has
 * its name. */
static void test_a_call_ahead_of_the_welcome_waits(void **state)
{
    (void)state;
    uint8_t hello[RX_BUFFER_SIZE];
    struct wire_key key = engines[CALLED]->links.key;
    engines[CALLED]->links.self = 0;
    links_install(&engines[CALLED]->links, view_none());
    engines[CALLED]->links.key.word[0]++;
    assert_true(hear(CALLED, 5, hello, call(CALLER, hello)));
    assert_int_equal(state_at(CALLED, 5), CONN_ACCEPTED);
    engines[CALLED]->links.self = ids[CALLED];
    engines[CALLED]->links.key = key;
    links_want(&engines[CALLED]->links, &members[CALLER], 1);
    links_resume(&engines[CALLED]->links);
    assert_int_equal(state_at(CALLED, 5), CONN_OPEN);
    conn_closed(&engines[CALLED]->links, 5);
    assert_false(links_missed(&engines[CALLED]->links));
}

static void test_who_closes_all_calls_nobody(void **state)
{
    (void)state;
    uint8_t hello[RX_BUFFER_SIZE];
    assert_true(hear(CALLED, 0, hello, call(CALLER, hello)));
    engines[CALLER]->links.conns[0]->state = CONN_OPEN; /* it was answered */
    struct link *l = link_find(&engines[CALLER]->links, ids[CALLED], false);
    l->dialing--;
    l->open++;
    links_close_all(&engines[CALLER]->links);
    assert_int_equal(state_at(CALLER, 0), CONN_FREE);
    assert_int_equal(dials, 1);
}

/* The HELLO of a peer of which no PROPOSE has come. */
static void test_an_unwelcome_call_ends_by_its_silence(void **state)
{
    (void)state;
    uint8_t hello[RX_BUFFER_SIZE];
    size_t size = call(CALLER, hello);
    links_install(&engines[CALLED]->links, view_none());
    assert_true(hear(CALLED, 5, hello, size));
    /* A longer time without a tick counts against nobody (M12). */
    for (pccl_ns now = 0; now < PCCL_S / 2; now += PCCL_TIME_OF_TICK(PCCL_S)) {
        engine_tick(engines[CALLED], now);
        assert_int_equal(state_at(CALLED, 5), CONN_ACCEPTED);
    }
    engine_tick(engines[CALLED], PCCL_S / 2 - 1);
    assert_int_equal(state_at(CALLED, 5), CONN_ACCEPTED);
    engine_tick(engines[CALLED], PCCL_S / 2);
    assert_int_equal(state_at(CALLED, 5), CONN_FREE);
    assert_int_equal(closed[CALLED], 1 << 5);
    assert_true(links_missed(&engines[CALLED]->links)); /* rule R4f */
    assert_false(links_missed(&engines[CALLED]->links));
}

/* Rule R3i: of many that say nothing the oldest goes. Who has said its HELLO
 * stays, and so does the one that came last. */
static void test_a_crowd_of_strangers(void **state)
{
    (void)state;
    enum { MORE = 1000 };
    uint8_t hello[RX_BUFFER_SIZE];
    size_t size = call(CALLER, hello);
    links_install(&engines[CALLED]->links,
                  view_none()); /* its PROPOSE has not come: parked */
    assert_true(hear(CALLED, 0, hello, size));
    for (uint32_t i = 1; i <= LINK_STRANGERS_MAX + MORE; i++) {
        engines[CALLED]->links.now = i;
        /* The driver takes the lowest number that is free. */
        uint32_t conn = 1;
        while (!conn_is_free(&engines[CALLED]->links, conn)) conn++;
        assert_true(hear(CALLED, conn, hello, i % FRAME_SIZE));
        assert_true(conn <= LINK_STRANGERS_MAX + 1);
        assert_int_equal(state_at(CALLED, conn), CONN_ACCEPTED);
        assert_int_equal(closes,
                         i > LINK_STRANGERS_MAX ? i - LINK_STRANGERS_MAX : 0);
        for (uint32_t k = 1; k <= LINK_STRANGERS_MAX + 1; k++) {
            const struct conn *c = engines[CALLED]->links.conns[k];
            if (c && c->state == CONN_ACCEPTED)
                assert_true(c->last_recv + LINK_STRANGERS_MAX > i);
        }
    }
    assert_int_equal(state_at(CALLED, 0), CONN_ACCEPTED);
}

/* Rule R3d: a HELLO counts with a full packet behind it. */
static void test_small_packets_make_no_link(void **state)
{
    (void)state;
    uint8_t hello[RX_BUFFER_SIZE];
    size_t size = call(CALLER, hello);
    assert_true(hear(CALLED, 5, hello, FRAME_SIZE + FRAME_HELLO_SIZE));
    assert_int_equal(state_at(CALLED, 5), CONN_ACCEPTED);
    engines[CALLED]->links.fill_size = SMALL + 1;
    assert_false(hear(CALLED, 6, hello, size)); /* not a full one */
}

/* Rule N11c: whom this end reaches over a relay it does not reach directly. */
static void test_a_relayed_one_calls_directly(void **state)
{
    (void)state;
    uint8_t hello[RX_BUFFER_SIZE];
    const struct relay_way way = {
        .a = ids[CALLER], .b = ids[CALLED], .relay = 77};
    size_t size = call(CALLER, hello);
    links_set_ways(&engines[CALLED]->links, &way, 1);
    (void)hear(CALLED, 5, hello, size);
    assert_int_equal(state_at(CALLED, 5), CONN_ACCEPTED);
}

/* They are lost if the connection has no other end. */
static size_t reach(void *to, uint32_t conn, const uint8_t *bytes, size_t size)
{
    size_t read = line_give(to, conn, bytes, size);
    assert_true(read == size || conn_is_free(to, conn));
    return size;
}

/* Moves the bytes that one end has to send on a connection. */
static void carry(int from, uint32_t conn)
{
    struct links *to = &engines[from == CALLER ? CALLED : CALLER]->links;
    while (line_send(&engines[from]->links, conn, reach, to) > 0) continue;
}

/* A link of two connections, in a view in force. */
static void connect_two(void)
{
    links_want(&engines[CALLER]->links, &members[CALLED], 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(dials, i + 1);
        engine_dialed(engines[CALLER], i, true);
        assert_true(engine_accepted(engines[CALLED], i));
        carry(CALLER, i);
        carry(CALLED, i);
        assert_int_equal(engines[CALLER]->links.conns[i]->state, CONN_OPEN);
        assert_int_equal(state_at(CALLED, i), CONN_OPEN);
    }
    for (uint32_t i = 0; i < ENGINES; i++)
        install_view(engines[i], 2, members, ENGINES, i);
}

static void test_a_link_is_lost_as_a_whole(void **state)
{
    (void)state;
    connect_two();
    engine_closed(engines[CALLER], 1);
    assert_int_equal(closed[CALLER], 1);
    engine_closed(engines[CALLED], 0);
    assert_int_equal(closed[CALLED], 2);
    assert_int_equal(faults, 0); /* nothing was under way */
}

static void test_no_call_mends_a_lost_link(void **state)
{
    (void)state;
    uint8_t late[RX_BUFFER_SIZE];
    connect_two();
    links_want(&engines[CALLER]->links, &members[CALLED], 3);
    size_t size = greet(CALLER, 2, late); /* under way when... */
    engine_closed(engines[CALLED], 1);    /* ...the acceptor loses one */
    assert_false(hear(CALLED, 2, late, size));
    assert_int_equal(state_at(CALLED, 2), CONN_FREE);
    engine_closed(engines[CALLER], 1);
    links_want(&engines[CALLER]->links, &members[CALLED], 3);
    size = greet(CALLER, 3, late);
    assert_true(hear(CALLED, 3, late, size));
    assert_int_equal(state_at(CALLED, 3), CONN_OPEN);
}

/* Bytes that one end sends on a connection that the other has lost are lost;
 * no member may wait for them forever. */
static void test_what_a_lost_connection_took_is_missed(void **state)
{
    (void)state;
    float in[ENGINES] = {1, 2}, out[ENGINES];
    struct op *op[ENGINES];
    connect_two();
    engine_closed(engines[CALLED], 1); /* its other end does not know yet */
    for (int i = 0; i < ENGINES; i++) {
        struct op_request r = {.call.sendbuf = &in[i],
                               .call.recvbuf = &out[i],
                               .call.dtype = DTYPE_F32,
                               .plan = {.coll = COLL_ALLREDUCE,
                                        .count = 1,
                                        .element = sizeof in[0]}};
        op[i] = engine_launch(engines[i], &r, false);
        assert_non_null(op[i]);
        if (i == CALLER) carry(CALLER, 1);
    }
    carry(CALLED, 0);
    if (op[CALLER]->phase == PHASE_DONE) engine_release(engines[CALLER], op[0]);
    for (uint32_t i = 0; i < 2; i++) engine_closed(engines[CALLER], i);
    assert_true(op[CALLED]->phase == PHASE_DONE || faults > 0);
}

/* One connection is enough for a low-RTT member, but not when a ring leads
 * over it from a high-RTT member, whichever of them dialed. */
static void test_a_near_link_of_a_far_ring_is_wide(void **state)
{
    (void)state;
    struct engine *e = engines[CALLER];
    struct link *near = link_find(&e->links, ids[CALLED], true);
    e->links.pool_auto = true;
    near->rtt = PCCL_MS;
    link_widen(&e->links, near);
    assert_int_equal(near->want, 1);
    assert_true(engine_accepted(e, 5));
    engine_measured(e, 5, RTT_HIGH);
    link_widen(&e->links, near);
    assert_int_equal(near->want, POOL_HIGH_RTT);
    e->links.conns[5]->link = near;
    near->known = true;
    assert_false(engine_is_long(e, 5)); /* of this host */
    near->host = e->links.host + 2;
    assert_true(engine_is_long(e, 5));
    e->links.conns[5]->link = NULL;
    near->rtt = RTT_VERY_HIGH;
    link_widen(&e->links, near);
    assert_int_equal(near->want, POOL_VERY_HIGH_RTT);
}

/* What the other end answers to `hello` on a dial. */
static bool answered(uint32_t conn, const uint8_t *hello, size_t size)
{
    uint8_t answer[RX_BUFFER_SIZE];
    if (!hear(CALLED, conn, hello, size)) return false;
    size_t back =
        line_take(&engines[CALLED]->links, conn, answer, RX_BUFFER_SIZE);
    return heard(CALLER, conn, answer, back);
}

/* Rule R3c: one dial opens a link, those after it show no path. */
static void test_one_dial_opens_a_wide_link(void **state)
{
    (void)state;
    enum { WIDE = 3 };
    uint8_t hello[RX_BUFFER_SIZE];
    struct links *n = &engines[CALLER]->links;
    links_want(n, &members[CALLED], WIDE);
    assert_int_equal(dials, 1);
    size_t size = greet(CALLER, 0, hello);
    assert_true(answered(0, hello, size));
    assert_int_equal(dials, WIDE);
    for (uint32_t i = 1; i < WIDE; i++) {
        assert_int_equal(greet(CALLER, i, hello), size - SMALL);
        assert_true(answered(i, hello, size - SMALL));
        assert_int_equal(state_at(CALLER, i), CONN_OPEN);
    }
    assert_int_equal(faults, 0);
    engine_closed(engines[CALLED], 0); /* and with it all of the link */
    assert_false(hear(CALLED, 5, hello, size - SMALL));
}

/* Rule R3c: who is next to it in the ring no more has less to say. */
static void test_a_narrowed_link_has_spare_connections(void **state)
{
    (void)state;
    enum { WIDE = 3 };
    uint8_t hello[RX_BUFFER_SIZE];
    struct links *n = &engines[CALLER]->links;
    links_want(n, &members[CALLED], WIDE);
    for (uint32_t i = 0; i < WIDE; i++)
        assert_true(answered(i, hello, greet(CALLER, i, hello)));
    const struct link *l = link_find(n, ids[CALLED], false);
    assert_int_equal(l->open, WIDE);
    for (uint32_t i = 0; i < WIDE; i++)
        assert_false(link_is_spare(l, n->conns[i]));
    links_unwant(n);
    links_want(n, &members[CALLED], 1);
    for (uint32_t i = 0; i < WIDE; i++)
        assert_int_equal(link_is_spare(l, n->conns[i]), i > 0);
    links_want(n, &members[CALLED], 2);
    assert_false(link_is_spare(l, n->conns[1]));
    assert_true(link_is_spare(l, n->conns[2]));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, close_ends)
    const struct CMUnitTest tests[] = {
        TEST(test_a_later_call_ends_the_earlier),
        TEST(test_a_late_call_is_refused),
        TEST(test_the_other_end_calls_back),
        TEST(test_crossing_calls),
        TEST(test_a_link_that_cannot_be_made),
        TEST(test_small_packets_make_no_link),
        TEST(test_a_relayed_one_calls_directly),
        TEST(test_a_call_ahead_of_the_welcome_waits),
        TEST(test_who_closes_all_calls_nobody),
        TEST(test_an_unwelcome_call_ends_by_its_silence),
        TEST(test_a_crowd_of_strangers),
        TEST(test_a_link_is_lost_as_a_whole),
        TEST(test_no_call_mends_a_lost_link),
        TEST(test_what_a_lost_connection_took_is_missed),
        TEST(test_a_near_link_of_a_far_ring_is_wide),
        TEST(test_one_dial_opens_a_wide_link),
        TEST(test_a_narrowed_link_has_spare_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
