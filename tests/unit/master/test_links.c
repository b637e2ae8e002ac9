/* test_links.c - pairs without a link, and the order and sites of the views
 * that the master proposes: rules D15, R4, O6 and O8. */
#include "proposals.h"

#include "../../../src/base/grid_shape.h"
#include "../../../src/base/tree.h"

static void flush(uint32_t count)
{
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    for (uint32_t i = 0; i < count; i++)
        if (master->peers[i].state == PEER_MEMBER)
            step(MASTER_RECEIVED, i, &flushed);
}

static void suspect(uint32_t link, uint64_t with, bool carried)
{
    struct wire_msg m = {.type = WIRE_SUSPECT, .epoch = installed.round};
    m.fault.peer = with;
    m.fault.cause = carried;
    step(MASTER_RECEIVED, link, &m);
}

/* ------------------------------------------------------------ bad pairs (R4)
 */

/* The next proposal waits for the word of all: there may be more pairs. */
static void test_all_report_their_pairs(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++) hello(i, 0, 0);
    assert_order("0123");
    ready(0, 2);
    ready(1, 1);
    ready(2, 0);
    assert_int_equal(proposals, 1);
    ready(3, 0);
    assert_int_equal(proposals, 2);
    assert_int_equal(cuts, 1);
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(installed.view.ring);
    assert_false(installed.view.mesh);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(order[i] + order[(i + 1) % 4] != 1); /* not 0 beside 1 */
    assert_int_equal(notes, 0);
}

/* Rule R4d: where not all pairs are linked, one round that follows a broken
 * link tries all of them; a world that is linked in all pairs needs none. */
static void test_a_small_world_is_surveyed(void **state)
{
    (void)state;
    view_of(4);
    suspect(0, 3, true);
    flush(4);
    assert_true(proposed.view.mesh);
    assert_false(proposed.view.survey);
    for (uint32_t i = 0; i < 4; i++) ready(i, i < 2 ? 2 - i : 0);
    flush(4);
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_false(installed.view.mesh);
    suspect(2, 4, true);
    flush(4);
    assert_true(proposed.view.survey);
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
}

/* ... and so does a world in which a pair could not be linked: other links may
 * have answered before a fault. */
static void test_a_bad_pair_is_followed_by_a_survey(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++) hello(i, 0, 0);
    assert_true(proposed.view.mesh);
    for (uint32_t i = 0; i < 4; i++) ready(i, i < 2 ? 2 - i : 0);
    assert_int_equal(proposals, 2);
    assert_true(proposed.view.survey && proposed.view.ring);
    assert_int_equal(proposed.relay_count, 1);
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
}

/* ... and so does one that an operation found unreachable, where few pairs are
 * linked: it may be the first that is seen of a split. A pair that is known to
 * be bad says nothing new. */
static void test_an_unreachable_pair_is_followed_by_a_survey(void **state)
{
    (void)state;
    struct wire_msg m = {.type = WIRE_REFRESH};
    m.fault.cause = REFRESH_UNREACHABLE;
    m.fault.peer = 5;
    master->mesh_max = 8;
    view_of(9);
    assert_false(installed.view.mesh);
    for (int known = 0; known < 2; known++) {
        m.epoch = installed.round;
        step(MASTER_RECEIVED, 0, &m);
        flush(9);
        assert_int_equal(proposed.view.survey, !known);
        for (uint32_t i = 0; i < 9; i++) ready(i, 0);
        assert_int_equal(installed.round, proposed.round);
    }
}

/* Rule D17a: in a large world not all pairs are linked. A pair that cannot be
 * linked ends the tree if it is beside each other there, and the ring goes
 * round it. */
static void test_many_members_have_a_tree(void **state)
{
    (void)state;
    master->mesh_max = 8;
    quorum(9);
    for (uint32_t i = 0; i < 9; i++) hello(i, 0, 0);
    assert_true(proposed.view.tree && !proposed.view.mesh);
    for (uint32_t i = 0; i < 9; i++) ready(i, i == 0 ? 6 : i == 5 ? 1 : 0);
    assert_int_equal(proposals, 2);
    assert_false(proposed.view.tree || proposed.view.mesh);
    for (uint32_t i = 0; i < 9; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_false(installed.view.tree || installed.view.mesh);
    assert_true(installed.view.ring);
}

static uint32_t position_of(uint32_t link)
{
    uint32_t i = 0;
    while (order[i] != link) i++;
    return i;
}

static bool beside_in_grid(uint32_t a, uint32_t b)
{
    struct grid_node one, other;
    grid_find(9, position_of(a), &one);
    grid_find(9, position_of(b), &other);
    return grid_sends(&one, position_of(b)) ||
           grid_sends(&other, position_of(a));
}

static bool beside_in_tree(uint32_t a, uint32_t b)
{
    struct tree_node one, other;
    tree_find(9, 0, position_of(a), &one);
    tree_find(9, 0, position_of(b), &other);
    return one.parent == position_of(b) || other.parent == position_of(a);
}

/* Rule D20a: members on hosts of their own have a grid; the next best is a
 * tree. Neither has a bad pair. */
static void test_many_hosts_have_a_grid(void **state)
{
    uint32_t grids = 0, trees = 0;
    for (uint32_t pair = 0; pair < 81; pair++) {
        uint32_t a = pair / 9, b = pair % 9;
        master->mesh_max = 4;
        quorum(9);
        for (uint32_t i = 0; i < 9; i++) hello(i, 2 + 2 * i, (uint8_t)i);
        assert_true(proposed.view.grid && proposed.view.tree);
        if (a < b && beside_in_grid(a, b)) {
            for (uint32_t i = 0; i < 9; i++)
                ready(i, i == a ? b + 1 : i == b ? a + 1 : 0);
            assert_int_equal(proposals, 2);
            assert_false(proposed.view.mesh);
            bool tree = !beside_in_tree(a, b);
            assert_int_equal(proposed.view.tree, tree);
            assert_int_equal(proposed.view.grid, tree && !beside_in_grid(a, b));
            grids += proposed.view.grid;
            trees += tree && !proposed.view.grid;
        }
        (void)end(state);
        assert_int_equal(setup(state), 0);
    }
    assert_true(trees > 0 && grids > 0);
}

/* Two members of a host are as well off in a grid, three are not. */
static void test_hosts_of_many_have_a_tree(void **state)
{
    for (uint32_t each = 1; each <= 3; each++) {
        master->mesh_max = 4;
        quorum(12);
        for (uint32_t i = 0; i < 12; i++)
            hello(i, 2 + 2 * (i / each), (uint8_t)(i / each));
        assert_int_equal(proposed.view.grid, each < 3);
        assert_true(proposed.view.tree);
        (void)end(state);
        assert_int_equal(setup(state), 0);
    }
}

/* A peer that lists itself, or nobody, among those that it cannot reach. */
static void test_false_reports_are_ignored(void **state)
{
    (void)state;
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    ready(0, 1);
    ready(1, 77);
    ready(2, 0);
    assert_int_equal(master->groups[0].edge_count, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(installed.view.mesh);
}

static void test_a_newcomer_is_told_of_the_pair(void **state)
{
    (void)state;
    quorum(2);
    for (uint32_t i = 0; i < 2; i++) hello(i, 0, 0);
    ready(0, 2);
    ready(1, 1);
    assert_non_null(strstr(evicted, "rank 0 (pid 1000)"));
    ready(0, 0);
    assert_int_equal(installed.view.world, 1);
    assert_true(installed.view.ring);
}

/* Rule N10: a third member relays. If that does not link the pair, and nobody
 * else is left, the newcomer is refused. */
static void test_a_third_one_relays(void **state)
{
    (void)state;
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    ready(0, 3);
    ready(1, 0);
    ready(2, 1);
    assert_int_equal(proposed.relay_count, 1);
    assert_int_equal(master->relays[0].a, 0);
    assert_int_equal(master->relays[0].b, 2);
    assert_int_equal(master->relays[0].relay, 1);
    assert_true(proposed.view.ring);
    ready(0, 3);
    ready(1, 0);
    ready(2, 1);
    assert_non_null(strstr(evicted, "rank 0 (pid 1000)"));
    for (uint32_t i = 0; i < 2; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 2);
}

/* Of many pairs the member that all have in common is removed, at once. */
static void test_the_unreachable_newcomer_is_refused(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++) hello(i, 0, 0);
    const uint64_t others[] = {2, 3, 4};
    struct wire_msg m = {.type = WIRE_READY,
                         .round = proposed.round,
                         .ids = others,
                         .id_count = 3};
    for (uint32_t i = 1; i < 4; i++) ready(i, 1);
    step(MASTER_RECEIVED, 0, &m);
    assert_int_equal(cuts, 3);
    assert_int_equal(master->peers[0].state, PEER_FREE);
    for (uint32_t i = 1; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 3);
}

/* Rule R4f: the link has broken after the READY of the other end. */
static void test_one_end_alone_makes_no_bad_pair(void **state)
{
    (void)state;
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    ready(0, 0);
    ready(1, 3);
    ready(2, 0);
    assert_int_equal(proposals, 2);
    assert_int_equal(cuts, 0);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 3);
}

/* Rule R4f: a member that could not run reports pairs that work. */
static void test_a_late_member_has_no_bad_pair(void **state)
{
    (void)state;
    view_of(2);
    suspect(0, 2, true);
    flush(2);
    for (uint32_t k = 0; k <= MASTER_SPARED_MAX; k++) {
        assert_int_equal(master->peers[0].state, PEER_MEMBER);
        assert_int_equal(master->peers[1].state, PEER_MEMBER);
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t failed = 2 - i;
            struct wire_msg m = {.type = WIRE_READY,
                                 .round = proposed.round,
                                 .ready.late = i == 1,
                                 .ids = &failed,
                                 .id_count = 1};
            step(MASTER_RECEIVED, i, &m);
        }
        flush(2);
    }
    /* Whoever says so for ever is judged in the end. */
    assert_int_not_equal(master->peers[1].state, PEER_MEMBER);
}

/* A split of four members: nobody of one half reaches the other. */
static void split_in_halves(void)
{
    suspect(0, 3, true);
    flush(4);
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t failed[2] = {i < 2 ? 3 : 1, i < 2 ? 4 : 2};
        struct wire_msg m = {.type = WIRE_READY,
                             .round = proposed.round,
                             .ids = failed,
                             .id_count = 2};
        step(MASTER_RECEIVED, i, &m);
    }
    flush(4);
}

static void test_the_half_with_the_lowest_rank_goes_on(void **state)
{
    (void)state;
    view_of(4);
    split_in_halves();
    assert_int_equal(evictions, 2);
    assert_non_null(strstr(evicted, "rank 0 (pid 1000), rank 1 (pid 1001)"));
    flush(4);
    for (uint32_t i = 0; i < 2; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 2);
    assert_true(installed.view.ring);
    assert_int_equal(master->peers[0].state, PEER_MEMBER);
    assert_int_equal(master->peers[1].state, PEER_MEMBER);
}

/* A member may have asked that nobody be evicted: an error, and all stay. */
static void test_a_group_that_stays(void **state)
{
    (void)state;
    view_of(4);
    master->peers[3].stays = true;
    split_in_halves();
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_int_equal(evictions, 0);
    assert_int_equal(installed.view.world, 4);
    assert_false(installed.view.ring);
    assert_int_equal(installed.id_count, 8);
    assert_int_equal(notes, 4);
    /* The next update tries again, and all is well. */
    for (uint32_t i = 0; i < 4; i++) vote(i, VOTE_UPDATE);
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_true(installed.view.ring);
}

/* Rule R4e: links are made, and lost again before data pass. */
static void test_a_link_without_data_is_bad_in_the_end(void **state)
{
    (void)state;
    view_of(4);
    for (uint32_t k = 0; k < 8; k++) { /* data pass: any number of times */
        suspect(0, 2, true);
        flush(4);
        for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    }
    assert_int_equal(cuts, 0);
    for (uint32_t k = 0; k <= MASTER_BREAKS_MAX; k++) {
        assert_int_equal(cuts, 0);
        suspect(1, 1, false);
        flush(4);
        for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    }
    assert_int_equal(cuts, 1);
    assert_true(installed.view.ring);
    assert_false(installed.view.mesh);
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
        TEST(test_all_report_their_pairs),
        TEST(test_a_small_world_is_surveyed),
        TEST(test_a_bad_pair_is_followed_by_a_survey),
        TEST(test_an_unreachable_pair_is_followed_by_a_survey),
        TEST(test_many_members_have_a_tree),
        TEST(test_many_hosts_have_a_grid),
        TEST(test_hosts_of_many_have_a_tree),
        TEST(test_false_reports_are_ignored),
        TEST(test_a_newcomer_is_told_of_the_pair),
        TEST(test_a_third_one_relays),
        TEST(test_the_unreachable_newcomer_is_refused),
        TEST(test_one_end_alone_makes_no_bad_pair),
        TEST(test_a_late_member_has_no_bad_pair),
        TEST(test_the_half_with_the_lowest_rank_goes_on),
        TEST(test_a_group_that_stays),
        TEST(test_a_link_without_data_is_bad_in_the_end),
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
