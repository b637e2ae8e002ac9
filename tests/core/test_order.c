/* test_order.c - rings round unreachable pairs (rule R4). */
#include "unit.h"

#include "../../src/master/master.h"

static struct master_group group;
static struct wire_member members[600];
static uint16_t order[600];

static void setup(uint32_t count)
{
    memset(&group, 0, sizeof group);
    for (uint32_t i = 0; i < count; i++) {
        members[i].id = 100 + i;
        order[i] = (uint16_t)i;
    }
}

static void cut(uint32_t a, uint32_t b, uint32_t tries)
{
    group.edges[group.edge_count++] = (struct master_edge){
        .a = members[a].id, .b = members[b].id, .tries = tries};
}

static void assert_ring(uint32_t count)
{
    bool seen[600] = {false};
    for (uint32_t i = 0; i < count; i++) {
        assert_true(order[i] < count && !seen[order[i]]);
        seen[order[i]] = true;
        uint64_t a = members[order[i]].id;
        uint64_t b = members[order[(i + 1) % count]].id;
        assert_false(count > 1 && order_is_bad(&group, a, b));
    }
}

static void test_identity_when_all_is_well(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 20; count++) {
        setup(count);
        if (count > 1) cut(0, 1, MASTER_EDGE_TRIES - 1); /* not yet bad */
        assert_true(order_ring(&group, members, count, order));
        for (uint32_t i = 0; i < count; i++) assert_int_equal(order[i], i);
    }
}

static void test_small_worlds(void **state)
{
    (void)state;
    setup(4);
    cut(0, 1, MASTER_EDGE_TRIES);
    assert_true(order_ring(&group, members, 4, order));
    assert_ring(4);
    cut(2, 3, MASTER_EDGE_TRIES);
    assert_true(order_ring(&group, members, 4, order));
    assert_ring(4);
    cut(2, 1, MASTER_EDGE_TRIES); /* 1 reaches only 3 */
    assert_false(order_ring(&group, members, 4, order));
}

static void test_no_ring_of_two_or_three(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= 3; count++) {
        setup(count);
        cut(1, 0, MASTER_EDGE_TRIES);
        assert_false(order_ring(&group, members, count, order));
    }
}

static void test_large_world(void **state)
{
    (void)state;
    setup(600);
    for (uint32_t i = 0; i < 60; i++) cut(i * 2, i * 2 + 1, MASTER_EDGE_TRIES);
    assert_true(order_ring(&group, members, 600, order));
    assert_ring(600);
}

static void test_member_cut_off_from_all(void **state)
{
    (void)state;
    setup(40);
    for (uint32_t i = 0; i < 39; i++) cut(39, i, MASTER_EDGE_TRIES);
    assert_false(order_ring(&group, members, 40, order));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_when_all_is_well),
        cmocka_unit_test(test_small_worlds),
        cmocka_unit_test(test_no_ring_of_two_or_three),
        cmocka_unit_test(test_large_world),
        cmocka_unit_test(test_member_cut_off_from_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
