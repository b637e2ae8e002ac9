/* test_links.c - the dial directions, and the order and sites of the views
 * that the master proposes: rules D15, R3, R4, O6 and O8. */
#include "proposals.h"

/* ---------------------------------------------------- dial direction (R3) */

static void test_the_other_end_is_told_to_call(void **state)
{
    (void)state;
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    assert_int_equal(proposed.pair_count, 0);
    ready(0, 2);
    assert_int_equal(proposals, 1); /* 3 may report more, 2 cannot */
    ready(2, 0);
    assert_int_equal(proposals, 2);
    assert_int_equal(proposed.pair_count, 1);
    assert_int_equal(pairs[0].dialer, 2);
    assert_int_equal(pairs[0].acceptor, 1);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(installed.view.mesh);
    /* The master remembers it. */
    step(MASTER_CLOSED, 2, NULL);
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    step(MASTER_RECEIVED, 0, &flushed);
    step(MASTER_RECEIVED, 1, &flushed);
    assert_int_equal(proposed.pair_count, 1);
}

/* Both ends report one attempt. */
static void test_an_attempt_counts_once(void **state)
{
    (void)state;
    quorum(2);
    for (uint32_t i = 0; i < 2; i++) hello(i, 0, 0);
    assert_true(edges_failed(master, 0, 1, 2, 77));
    assert_true(edges_failed(master, 0, 2, 1, 77));
    assert_false(edges_dials(master, 0, 1));
    assert_true(edges_dials(master, 1, 0));
    assert_true(edges_failed(master, 0, 1, 2, 78));
    assert_true(edges_dials(master, 0, 1));
    assert_true(edges_failed(master, 0, 1, 2, 79));
    assert_false(edges_failed(master, 0, 1, 2, 80));
}

static void flush_three(void)
{
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &flushed);
}

/* A peer that lists itself among those that it cannot reach. */
static void test_nobody_has_a_link_to_itself(void **state)
{
    (void)state;
    view_of(3);
    struct wire_msg refresh = {.type = WIRE_REFRESH, .epoch = installed.round};
    refresh.fault.cause = REFRESH_UNREACHABLE;
    refresh.fault.peer = 1;
    step(MASTER_RECEIVED, 0, &refresh);
    for (uint32_t k = 0; k < 2 * MASTER_EDGE_TRIES; k++) {
        flush_three();
        ready(0, 1);
        for (uint32_t i = 1; i < 3; i++) ready(i, 0);
    }
    assert_int_equal(master->groups[0].edge_count, 0);
    flush_three();
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(installed.view.mesh);
}

static void reverse_first_two(void)
{
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    ready(0, 2);
    ready(2, 0);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(edges_dials(master, 1, 0));
}

/* A member may name any number of peers that never were. */
static void test_unknown_peers_make_no_pair(void **state)
{
    (void)state;
    reverse_first_two();
    for (uint64_t i = 0; i < 2 * MASTER_EDGES_MAX; i++)
        assert_true(edges_failed(master, 0, 3, 1000 + i, i));
    assert_int_equal(master->groups[0].edge_count, 1);
    assert_true(edges_dials(master, 1, 0));
}

/* Newcomers that cannot reach each other, more pairs than the master keeps, and
 * newcomers that have gone. */
static void test_a_full_table_keeps_the_links_of_the_view(void **state)
{
    (void)state;
    enum { NEWCOMERS = 40 };
    uint32_t pairs_met = 0;
    reverse_first_two();
    for (uint32_t i = 3; i < 3 + NEWCOMERS; i++) hello(i, 0, 0);
    for (uint32_t i = 3; i < 3 + NEWCOMERS; i++) {
        for (uint32_t j = 3; j < i; j++) {
            (void)edges_failed(master, 0, i + 1, j + 1, 5000 + i);
            assert_false(edges_dials(master, j, i));
            assert_true(edges_dials(master, 1, 0));
            pairs_met++;
        }
    }
    assert_true(pairs_met > MASTER_EDGES_MAX);
    assert_int_equal(master->groups[0].edge_count, MASTER_EDGES_MAX);
    /* Pairs of peers that have gone are the first that make room. */
    for (uint32_t i = 4; i < 3 + NEWCOMERS; i++) step(MASTER_CLOSED, i, NULL);
    (void)edges_failed(master, 0, 3, 4, 6000);
    assert_int_equal(master->groups[0].edge_count, 2);
    assert_true(edges_dials(master, 1, 0));
    assert_true(edges_dials(master, 3, 2));
}

/* ------------------------------------------------------ no such pair (R4) */

/* The search that is requested where an order cannot be repaired. */
static void no_ring_is_found(void)
{
    if (master->groups[0].phase != GROUP_SOLVING) return;
    struct master_event none = {.type = MASTER_SEARCHED,
                                .now = now,
                                .group = search.group,
                                .ticket = search.ticket};
    master_step(master, &none);
}

static void never_links(uint32_t count, uint32_t link, uint64_t with)
{
    for (uint32_t i = 0; i < MASTER_EDGE_TRIES; i++) {
        uint32_t before = proposals;
        ready(link, with);
        for (uint32_t k = 0; k < count && proposals == before; k++) ready(k, 0);
    }
    no_ring_is_found();
}

static void test_a_ring_round_a_pair(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++) hello(i, 0, 0);
    assert_order("0123");
    never_links(4, 0, 2);
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(installed.view.ring);
    assert_false(installed.view.mesh);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(order[i] + order[(i + 1) % 4] != 1); /* not 0 beside 1 */
    assert_int_equal(notes, 0);
}

static void test_a_newcomer_is_told_of_the_pair(void **state)
{
    (void)state;
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    never_links(3, 0, 3);
    assert_non_null(strstr(evicted, "rank 0 (pid 1000)"));
    for (uint32_t i = 0; i < 2; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 2);
    assert_true(installed.view.ring);
}

/* Of many pairs the member that all have in common is removed. */
static void test_the_unreachable_newcomer_is_refused(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++) hello(i, 0, 0);
    for (uint64_t id = 2; id <= 4; id++)
        for (uint32_t k = 0; k < MASTER_EDGE_TRIES; k++)
            (void)edges_failed(master, 0, 1, id, 100 * id + k);
    ready(0, 2);
    for (uint32_t i = 1; i < 4; i++) ready(i, 0);
    no_ring_is_found();
    assert_int_equal(master->peers[0].state, PEER_FREE);
    for (uint32_t i = 1; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 3);
}

static void test_members_are_never_thrown_out(void **state)
{
    (void)state;
    view_of(3);
    struct wire_msg suspect = {.type = WIRE_SUSPECT, .epoch = 1};
    step(MASTER_RECEIVED, 0, &suspect);
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_msg flushed = {.type = WIRE_FLUSHED, .round = 2};
        step(MASTER_RECEIVED, i, &flushed);
    }
    for (uint32_t k = 0; k < 200 && installed.round == 1; k++) {
        /* Every member flushes, and 1 and 2 do not reach each other. */
        struct wire_msg flushed = {.type = WIRE_FLUSHED,
                                   .round = master->groups[0].round};
        for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &flushed);
        no_ring_is_found();
        for (uint32_t i = 0; i < 3; i++)
            ready(i, proposed.view.ring && i == 0 ? 2 : 0);
    }
    assert_int_equal(installed.view.world, 3);
    assert_false(installed.view.ring);
    assert_int_equal(installed.id_count, 2);
    assert_int_equal(blockers[0] + blockers[1], 3);
    assert_int_equal(notes, 1);
    assert_string_equal(evicted, "");
    /* The next update tries again, and all is well. */
    for (uint32_t i = 0; i < 3; i++) vote(i, VOTE_UPDATE);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_true(installed.view.ring);
}

/* ----------------------------------------------------- neighbours (O6, O8) */

static void test_hosts_become_neighbours(void **state)
{
    (void)state;
    quorum(6);
    for (uint32_t i = 0; i < 6; i++) hello(i, 100 + 2 * (i % 3), 0);
    assert_order("031425");
}

static void test_then_networks(void **state)
{
    (void)state;
    quorum(6);
    /* Hosts: a b a c b d; networks: 1 1 1 2 1 2. */
    static const uint64_t hosts[] = {2, 4, 2, 6, 4, 8};
    static const uint8_t sites[] = {1, 1, 1, 2, 1, 2};
    for (uint32_t i = 0; i < 6; i++) hello(i, hosts[i], sites[i]);
    assert_order("021435");
}

/* No two are on one host, so only the networks decide. */
static void test_networks_become_neighbours(void **state)
{
    (void)state;
    quorum(6);
    for (uint32_t i = 0; i < 6; i++) hello(i, 2 + 2 * i, (uint8_t)(1 + i % 2));
    assert_order("024135");
}

static void test_newcomers_stand_beside_theirs(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++)
        hello(i, 2 + 2 * (i / 2), (uint8_t)(i / 2));
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    hello(4, 2, 0); /* of the first host */
    hello(5, 8, 1); /* of the second network */
    for (uint32_t i = 0; i < 4; i++) vote(i, VOTE_UPDATE);
    assert_order("014235");
}

/* ------------------------------------------------------------ sites (D15) */

static void assert_sites(const char *expected)
{
    assert_int_equal(proposed.site_count, strlen(expected));
    for (uint32_t i = 0; expected[i]; i++)
        assert_int_equal(places[i], expected[i] - '0');
}

static void test_hosts_are_sites(void **state)
{
    (void)state;
    quorum(6);
    /* The last bit of a host has no information about its place; 0: unknown. */
    static const uint64_t hosts[] = {2, 4, 3, 0, 5, 2};
    for (uint32_t i = 0; i < 6; i++) hello(i, hosts[i], 0);
    assert_sites("010310");
}

static void test_few_at_each_site_are_none(void **state)
{
    (void)state;
    quorum(5);
    static const uint64_t hosts[] = {2, 4, 2, 4, 6};
    for (uint32_t i = 0; i < 5; i++) hello(i, hosts[i], 0);
    assert_int_equal(proposed.site_count, 0);
}

static void round_trip(uint32_t a, uint32_t b, pccl_ns rtt)
{
    struct wire_edge edge = {
        .peer = a + 1, .rate = 1000000, .rtt = (uint64_t)rtt};
    struct wire_msg m = {
        .type = WIRE_MEASURED, .edges = &edge, .edge_count = 1};
    step(MASTER_RECEIVED, b, &m);
}

/* A newcomer without measurements is admitted. */
static void admit(uint32_t count)
{
    hello(count, 0, 0);
    for (uint32_t i = 0; i < count; i++) vote(i, VOTE_UPDATE);
    for (uint32_t i = 0; i <= count; i++) ready(i, 0);
}

static void test_short_ways_are_within_a_site(void **state)
{
    (void)state;
    quorum(5);
    for (uint32_t i = 0; i < 5; i++) hello(i, 2 + 2 * i, 0);
    assert_int_equal(proposed.site_count, 0);
    for (uint32_t i = 0; i < 5; i++) ready(i, 0);
    round_trip(0, 2, 1 * PCCL_MS);
    round_trip(4, 2, 2 * PCCL_MS); /* near through 2 */
    round_trip(0, 4, 5 * PCCL_MS);
    round_trip(1, 0, 40 * PCCL_MS);
    round_trip(3, 1, 1 * PCCL_MS);
    admit(5);
    assert_sites("010105");
}

static void test_all_at_one_site_are_none(void **state)
{
    (void)state;
    quorum(6);
    for (uint32_t i = 0; i < 6; i++) hello(i, i < 3 ? 2 : 4, 0);
    assert_sites("000333");
    for (uint32_t i = 0; i < 6; i++) ready(i, 0);
    for (uint32_t i = 1; i < 6; i++) round_trip(0, i, PCCL_MS / 10);
    admit(6);
    assert_sites("0000006");
    round_trip(6, 0, PCCL_MS / 10);
    struct wire_msg m = {.type = WIRE_LEAVE};
    step(MASTER_RECEIVED, 3, &m);
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    for (uint32_t i = 0; i < 7; i++) step(MASTER_RECEIVED, i, &flushed);
    assert_sites("000335"); /* but hosts */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_other_end_is_told_to_call),
        TEST(test_an_attempt_counts_once),
        TEST(test_nobody_has_a_link_to_itself),
        TEST(test_unknown_peers_make_no_pair),
        TEST(test_a_full_table_keeps_the_links_of_the_view),
        TEST(test_a_ring_round_a_pair),
        TEST(test_a_newcomer_is_told_of_the_pair),
        TEST(test_the_unreachable_newcomer_is_refused),
        TEST(test_members_are_never_thrown_out),
        TEST(test_hosts_become_neighbours),
        TEST(test_then_networks),
        TEST(test_networks_become_neighbours),
        TEST(test_newcomers_stand_beside_theirs),
        TEST(test_hosts_are_sites),
        TEST(test_few_at_each_site_are_none),
        TEST(test_short_ways_are_within_a_site),
        TEST(test_all_at_one_site_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
