/* test_order.c - rings round bad pairs, and the set that goes on where there is
 * none (rule R4). */
#include "../unit.h"

#include "../../../src/master/master.h"

static struct master *master;
static uint16_t *order;
static bool kept[600];

static int make(void **state)
{
    (void)state;
    master = calloc(1, sizeof *master);
    if (master) order = master->order;
    return master ? 0 : 1;
}

static int destroy(void **state)
{
    (void)state;
    free(master);
    return 0;
}

static void setup(uint32_t count)
{
    memset(&master->groups[0], 0, sizeof master->groups[0]);
    for (uint32_t i = 0; i < count; i++) {
        master->members[i].id = 100 + i;
        master->sorted[i] = i;
        order[i] = (uint16_t)i;
    }
}

static void cut(uint32_t a, uint32_t b, bool bad)
{
    struct master_group *g = &master->groups[0];
    g->edges[g->edge_count++] =
        (struct master_edge){.a = 100 + a, .b = 100 + b, .bad = bad};
}

static void assert_ring(uint32_t count)
{
    bool seen[600] = {false};
    for (uint32_t i = 0; i < count; i++) {
        assert_true(order[i] < count && !seen[order[i]]);
        seen[order[i]] = true;
        uint64_t a = 100 + order[i];
        uint64_t b = 100 + order[(i + 1) % count];
        assert_false(count > 1 && order_is_bad(&master->groups[0], a, b));
    }
}

static void test_identity_when_all_is_well(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 20; count++) {
        setup(count);
        if (count > 1) cut(0, 1, false); /* not yet bad */
        assert_true(order_ring(master, 0, count));
        for (uint32_t i = 0; i < count; i++) assert_int_equal(order[i], i);
    }
}

static void test_small_worlds(void **state)
{
    (void)state;
    setup(4);
    cut(0, 1, true);
    assert_true(order_ring(master, 0, 4));
    assert_ring(4);
    cut(2, 3, true);
    assert_true(order_ring(master, 0, 4));
    assert_ring(4);
    cut(2, 1, true); /* 1 reaches only 3, which relays */
    assert_true(order_ring(master, 0, 4));
    assert_false(order_is_missing(&master->groups[0], 100, 101));
    cut(3, 1, true);
    assert_false(order_ring(master, 0, 4));
    assert_true(order_is_missing(&master->groups[0], 100, 101));
}

static void test_no_ring_of_two_or_three(void **state)
{
    (void)state;
    setup(2);
    cut(1, 0, true);
    assert_false(order_ring(master, 0, 2));
    setup(3);
    cut(1, 0, true);
    assert_true(order_ring(master, 0, 3)); /* over the third one */
    cut(1, 2, true);
    assert_false(order_ring(master, 0, 3));
}

/* Rule N10b: the pairs are spread, and who failed for a pair is passed by. */
static void test_relays_take_turns(void **state)
{
    (void)state;
    struct master_group *g = &master->groups[0];
    setup(6); /* 0 and 1 reach all */
    for (uint32_t i = 2; i < 6; i++)
        for (uint32_t k = i + 1; k < 6; k++) cut(i, k, true);
    assert_true(order_ring(master, 0, 6));
    for (uint32_t i = 0; i < g->edge_count; i++) {
        assert_true(g->edges[i].relayed);
        assert_int_equal(g->edges[i].relay, 100 + i % 2);
    }
    relays_failed(master, &g->edges[0]);
    relays_choose(master, 0, 6);
    assert_int_equal(g->edges[0].relay, 101);
    relays_failed(master, &g->edges[0]);
    relays_choose(master, 0, 6);
    assert_false(g->edges[0].relayed);
}

/* Rule N10b: the coordinator is the last choice, and only if it offers that. */
static void test_the_coordinator_relays(void **state)
{
    (void)state;
    const struct master_edge *e = master->groups[0].edges;
    setup(3);
    for (uint32_t i = 0; i < 3; i++) cut(i, (i + 1) % 3, true);
    assert_false(order_ring(master, 0, 3));
    master->may_relay = true;
    assert_true(order_ring(master, 0, 3));
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(e[i].relay, 0);
    relays_failed(master, &master->groups[0].edges[0]);
    assert_false(order_ring(master, 0, 3));
    master->may_relay = false;
}

/* Rule N10c: a relay is named, and the ring does without it. */
static void test_links_come_before_relays(void **state)
{
    (void)state;
    setup(5);
    cut(0, 1, true);
    cut(1, 2, true);
    assert_true(order_ring(master, 0, 5));
    assert_ring(5);
    relays_choose(master, 0, 5);
    assert_false(order_is_missing(&master->groups[0], 100, 101));
}

static void test_large_world(void **state)
{
    (void)state;
    setup(600);
    for (uint32_t i = 0; i < 60; i++) cut(i * 2, i * 2 + 1, true);
    assert_true(order_ring(master, 0, 600));
    assert_ring(600);
}

static void test_member_cut_off_from_all(void **state)
{
    (void)state;
    setup(40);
    for (uint32_t i = 0; i < 39; i++) cut(39, i, true);
    assert_false(order_ring(master, 0, 40));
}

/* ---------------------------------------------------------------- partitions
 */

static void assert_kept(uint32_t count, const char *expected)
{
    uint32_t size = order_split(master, 0, count, kept);
    assert_int_equal(size, strlen(expected));
    for (uint32_t i = 0; i < count; i++)
        assert_true(kept[i] == (strchr(expected, (int)('a' + i)) != NULL));
}

static void test_halves(void **state)
{
    (void)state;
    setup(4);
    for (uint32_t i = 0; i < 4; i++) cut(i % 2 ? 1 : 0, i < 2 ? 2 : 3, true);
    assert_kept(4, "ab"); /* the half with the lowest rank */
    setup(4);
    cut(0, 1, true);
    cut(0, 3, true);
    cut(2, 1, true);
    cut(2, 3, true);
    assert_kept(4, "ac");
}

static void test_the_larger_set_goes_on(void **state)
{
    (void)state;
    setup(5);
    for (uint32_t i = 2; i < 5; i++)
        for (uint32_t k = 0; k < 2; k++) cut(i, k, true);
    assert_kept(5, "cde");
}

static void test_one_without_any_link(void **state)
{
    (void)state;
    setup(6);
    for (uint32_t i = 1; i < 6; i++) cut(0, i, true);
    assert_kept(6, "bcdef");
}

/* Of three with one bad pair, one of the pair has to go. */
static void test_three_with_a_bad_pair(void **state)
{
    (void)state;
    setup(3);
    cut(1, 2, true);
    assert_kept(3, "ab");
    setup(2);
    cut(0, 1, true);
    assert_kept(2, "a");
}

/* A path has no ring; the largest set with one is a triangle in it. */
static void test_a_set_needs_a_ring(void **state)
{
    (void)state;
    setup(5);
    static const uint8_t links[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {2, 4}};
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t k = i + 1; k < 5; k++) {
            bool linked = false;
            for (uint32_t x = 0; x < ARRAY_COUNT(links); x++)
                linked |= links[x][0] == i && links[x][1] == k;
            if (!linked) cut(i, k, true);
        }
    }
    assert_kept(5, "cde");
}

static void survey(uint32_t count)
{
    struct master_group *g = &master->groups[0];
    g->surveyed = true;
    g->survey_size = count;
    for (uint32_t i = 0; i < count; i++) {
        master->peers[i].proposed_place = i;
        master->peers[i].lacks = 0;
    }
}

/* A large world knows of a split by the links that a survey tried. */
/* A member that said so in HELLO: there is no ring, and nobody goes. */
static void test_who_stays_keeps_all(void **state) /* R4b */
{
    (void)state;
    setup(3);
    for (uint32_t i = 0; i < 3; i++) master->peers[i].state = PEER_MEMBER;
    cut(0, 1, true);
    master->peers[2].stays = true;
    assert_false(partition_resolve(master, 0, 3));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(master->peers[i].state, PEER_MEMBER);
}

static void test_a_large_world_splits(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 2; turn++) {
        setup(300);
        survey(300);
        for (uint32_t i = 0; i < 300; i++) {
            for (uint32_t k = 0; BIT(k) <= 150; k++) {
                uint32_t other = (i + BIT(k)) % 300;
                bool apart = turn ? (i % 3 == 0) != (other % 3 == 0)
                                  : (i < 150) != (other < 150);
                if (apart) master->peers[i].lacks |= BIT(k);
            }
        }
        uint32_t size = order_split(master, 0, 300, kept);
        for (uint32_t i = 0; i < 300; i++)
            assert_true(kept[i] == (turn ? i % 3 != 0 : i < 150));
        assert_int_equal(size, turn ? 200 : 150);
    }
}

static void test_a_large_world_loses_the_worst(void **state)
{
    (void)state;
    setup(40);
    for (uint32_t i = 0; i < 39; i++) cut(39, i, true);
    assert_int_equal(order_split(master, 0, 40, kept), 39);
    assert_false(kept[39]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_when_all_is_well),
        cmocka_unit_test(test_small_worlds),
        cmocka_unit_test(test_no_ring_of_two_or_three),
        cmocka_unit_test(test_relays_take_turns),
        cmocka_unit_test(test_links_come_before_relays),
        cmocka_unit_test(test_the_coordinator_relays),
        cmocka_unit_test(test_large_world),
        cmocka_unit_test(test_member_cut_off_from_all),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_the_larger_set_goes_on),
        cmocka_unit_test(test_one_without_any_link),
        cmocka_unit_test(test_three_with_a_bad_pair),
        cmocka_unit_test(test_a_set_needs_a_ring),
        cmocka_unit_test(test_who_stays_keeps_all),
        cmocka_unit_test(test_a_large_world_splits),
        cmocka_unit_test(test_a_large_world_loses_the_worst),
    };
    return cmocka_run_group_tests(tests, make, destroy);
}
