/* test_probes.c - the links that the master has probed, and the rings that it
 * has searched: rules O4 to O6. */
#include "proposals.h"

/* ------------------------------------------------------------ probes (O4) */

static void measured(uint32_t link, enum edge_kind kind)
{
    struct wire_edge edge = {.peer = probes[link].with,
                             .kind = (uint8_t)kind,
                             .rate = 1000000,
                             .rtt = 1000};
    struct wire_msg m = {.type = WIRE_MEASURED,
                         .round = probes[link].step,
                         .edges = &edge,
                         .edge_count = 1};
    step(MASTER_RECEIVED, link, &m);
}

static void probe_two(void)
{
    view_of(2);
    for (uint32_t i = 0; i < 2; i++) vote(i, VOTE_OPTIMIZE);
    assert_int_equal(master->groups[0].phase, GROUP_PROBING);
    assert_true(probes[0].due && probes[1].due);
}

/* A pair that cannot be linked is not probed again, though the other end
 * reports nothing. */
static void test_a_failed_probe_ends(void **state)
{
    (void)state;
    probe_two();
    measured(0, EDGE_FAILED);
    assert_int_not_equal(master->groups[0].phase, GROUP_PROBING);
    assert_int_equal(cuts, 1);
    assert_int_equal(evictions, 1); /* the other one goes on */
}

static void test_a_silent_probe_ends_by_time(void **state)
{
    (void)state;
    static const struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    probe_two();
    measured(0, EDGE_SATURATED);
    for (int last = 0; last < 2; last++) {
        now = master->groups[0].step_until - !last;
        for (uint32_t i = 0; i < 2; i++) step(MASTER_RECEIVED, i, &beat);
        step(MASTER_TICK, 0, NULL);
        assert_int_equal(master->groups[0].phase == GROUP_PROBING, !last);
    }
}

/* A world whose measurement takes longer than a measurement stays valid. */
static void test_a_sweep_measures_nothing_twice(void **state)
{
    (void)state;
    uint32_t count = 0;
    view_of(6);
    for (uint32_t i = 0; i < 6; i++) vote(i, VOTE_OPTIMIZE);
    while (master->groups[0].phase == GROUP_PROBING && count < 100) {
        now += 11 * 100;
        for (uint32_t i = 0; i < 6; i++) {
            if (!probes[i].due) continue;
            probes[i].due = false;
            measured(i, EDGE_SATURATED);
            count++;
        }
    }
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    assert_in_range(count, 6, 6 * 5);
}

static void ring_found(const uint16_t *ring)
{
    struct master_event e = {.type = MASTER_SEARCHED,
                             .now = now,
                             .group = search.group,
                             .ticket = search.ticket,
                             .order = ring};
    master_step(master, &e);
}

/* All distances are known: the best guess at a ring is measured, and no pair
 * beside it. */
static void test_a_guess_says_what_to_probe(void **state)
{
    (void)state;
    static const uint16_t ring[] = {0, 2, 4, 1, 3, 5};
    uint32_t count = 0;
    view_of(6);
    for (uint32_t i = 0; i < 6; i++) {
        struct wire_edge edges[6];
        struct wire_msg m = {.type = WIRE_MEASURED, .edges = edges};
        for (uint32_t j = 0; j < 6; j++) {
            if (j == i) continue;
            edges[m.edge_count++] = (struct wire_edge){
                .peer = j + 1, .rtt = 9000000, .kind = EDGE_RTT};
        }
        step(MASTER_RECEIVED, i, &m);
        vote(i, VOTE_OPTIMIZE);
    }
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    assert_int_equal(search.view.caution, 0);
    assert_false(probes[0].due);
    ring_found(ring);
    for (uint32_t k = 0; k < 10; k++) {
        if (master->groups[0].phase != GROUP_PROBING) break;
        for (uint32_t i = 0; i < 6; i++) {
            if (!probes[i].due) continue;
            probes[i].due = false;
            measured(i, EDGE_SATURATED);
            count++;
        }
    }
    assert_int_equal(count, 6 * 2); /* every edge, and its reverse */
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    ring_found(ring);
    assert_order("024135");
}

/* ------------------------------------------------------- searches (O5, O6) */

/* Votes, measures and searches until a ring is proposed. */
static void optimize(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) vote(i, VOTE_OPTIMIZE);
    for (uint32_t k = 0; k < 100 && master->groups[0].phase == GROUP_PROBING;
         k++) {
        for (uint32_t i = 0; i < count; i++) {
            if (!probes[i].due) continue;
            probes[i].due = false;
            measured(i, EDGE_SATURATED);
        }
    }
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
}

static void in_the_background(void)
{
    static const uint16_t ring[] = {0, 2, 1, 3};
    static const uint16_t better[] = {0, 1, 3, 2};
    view_of(4);
    optimize(4);
    assert_false(search.background);
    /* The search of a promising ring may be asked for once more. */
    for (uint32_t k = 0; k < 8 && master->groups[0].phase == GROUP_SOLVING; k++)
        ring_found(ring);
    assert_order("0213");
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_true(search.background);
    ring_found(better); /* of indexes into its world, in the order of ranks */
    assert_true(optimize_has_better(master, 0));
}

static void test_a_better_ring_waits_for_the_update(void **state)
{
    (void)state;
    in_the_background();
    uint32_t before = proposals;
    for (uint32_t i = 0; i < 4; i++) vote(i, VOTE_UPDATE);
    assert_true(proposals > before);
    assert_order("0132");
}

static void test_a_better_ring_of_other_members_is_dropped(void **state)
{
    (void)state;
    in_the_background();
    hello(4, 0, 0);
    for (uint32_t i = 0; i < 4; i++) vote(i, VOTE_UPDATE);
    assert_order("02134"); /* as it was, with the newcomer */
    for (uint32_t i = 0; i < 5; i++) ready(i, 0);
    assert_false(optimize_has_better(master, 0));
}

/* Its indexes belong to a world that no longer exists. */
static void test_a_ring_with_one_lost_since_is_dropped(void **state)
{
    (void)state;
    static const uint16_t late[] = {3, 0, 2, 1};
    in_the_background();
    step(MASTER_CLOSED, 3, NULL);
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &flushed);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 3);
    ring_found(late);
    assert_false(optimize_has_better(master, 0));
    for (uint32_t i = 0; i < 3; i++) vote(i, VOTE_UPDATE);
    assert_order("021");
}

enum { LARGE = MASTER_EXACT_MAX + 2 };

/* Founders that a search has to fit into a ring: one reaches one other only. */
static void founders_without_a_ring(uint16_t *late)
{
    quorum(LARGE);
    for (uint32_t i = 0; i < LARGE; i++) hello(i, 0, 0);
    for (uint64_t id = 2; id < LARGE; id++)
        (void)edges_failed(master, 0, 1, id);
    ready(0, 2);
    for (uint32_t i = 1; i < LARGE; i++) ready(i, 0);
    for (uint32_t i = 0; i < LARGE; i++) late[i] = (uint16_t)(LARGE - 1 - i);
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    assert_int_equal(search.n, LARGE);
}

/* As many as were asked for, but not the same. */
static void test_a_ring_without_a_newcomer_is_dropped(void **state)
{
    (void)state;
    uint16_t late[LARGE];
    founders_without_a_ring(late);
    step(MASTER_CLOSED, 3, NULL);
    hello(3, 0, 0);
    ring_found(late);
    assert_int_equal(master->groups[0].wish, 0);
}

static void test_a_ring_with_one_gone_since_is_dropped(void **state)
{
    (void)state;
    uint16_t late[LARGE];
    founders_without_a_ring(late);
    step(MASTER_CLOSED, 3, NULL);
    ring_found(late);
    assert_int_equal(master->groups[0].wish, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_failed_probe_ends),
        TEST(test_a_silent_probe_ends_by_time),
        TEST(test_a_sweep_measures_nothing_twice),
        TEST(test_a_guess_says_what_to_probe),
        TEST(test_a_better_ring_waits_for_the_update),
        TEST(test_a_better_ring_of_other_members_is_dropped),
        TEST(test_a_ring_with_one_lost_since_is_dropped),
        TEST(test_a_ring_without_a_newcomer_is_dropped),
        TEST(test_a_ring_with_one_gone_since_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
