/* test_grid.c - small collectives over a grid (rule D20): its shape, and when
 * each member may send. Two rows: 0 to 3 and 4 to 6; 4 sends the sum of its row
 * to 0 and to 3. */
enum { BEFORE_OTHER = 2, OWN_COMES_BACK = 0 };
#define TESTED small_grid
#include "small_collectives.h"

#include "../../../src/base/grid_shape.h"

static int shape_setup(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(engine_force(engines[i], "grid"));
    return 0;
}

/* --------------------------------------------------------------- the shape */

static bool is_partner(const struct grid_node *node, uint32_t position)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < grid_partners(node); i++)
        times += grid_partner(node, i) == position;
    assert_true(times < 2);
    return times == 1;
}

/* Each position gets the data of its row, and the sum of each other row once;
 * its partners are those that it exchanges anything with, its row first. */
static void check_position(uint32_t world_size, uint32_t at)
{
    struct grid_node node, other;
    uint32_t from_rows = 0;
    bool heard[GRID_WORLD_MAX] = {false};
    grid_find(world_size, at, &node);
    assert_true(at - node.first < node.size);
    assert_int_equal(node.first + node.column, at);
    for (uint32_t i = 0; i < world_size; i++) {
        grid_find(world_size, i, &other);
        assert_true(other.size + 1 >= node.size);
        bool sends = grid_sends(&node, i), recvs = grid_sends(&other, at);
        assert_int_equal(is_partner(&node, i), sends || recvs);
        if (i - node.first < node.size)
            assert_true(sends == (i != at) && recvs == sends);
        else if (recvs) {
            assert_false(heard[other.row]);
            heard[other.row] = true;
        }
        from_rows += other.row != node.row && recvs;
    }
    assert_int_equal(from_rows, node.rows - 1);
    for (uint32_t i = 0; i + 1 < node.size; i++)
        assert_true(grid_partner(&node, i) - node.first < node.size);
}

static void test_shape(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 60; size++)
        for (uint32_t at = 0; at < size; at++) check_position(size, at);
    check_position(1000, 999);
    check_position(GRID_WORLD_MAX, 500);
}

/* Links, and messages sent, grow with the square root of the world. */
static void test_few_partners(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= GRID_WORLD_MAX; size++) {
        uint32_t root = 1;
        while (root * root < size) root++;
        for (uint32_t at = 0; at < size; at += 1 + size / 50) {
            struct grid_node node;
            grid_find(size, at, &node);
            assert_true(grid_partners(&node) <= 2 * root + 1);
        }
    }
    struct grid_node node;
    grid_find(GRID_WORLD_MAX, 7, &node);
    assert_int_equal(grid_partners(&node), 62);
}

/* -------------------------------------------------------------- the launch */

/* Rule D20c: a member without credit announces its launch to another row when
 * it has the data of its own, and is answered when that member has, too. */
static void test_launches_are_announced(void **state)
{
    (void)state;
    struct link *across = link_find(&engines[4]->links, ids[0], false);
    across->eager_bytes = EAGER_LINK_MAX;
    for (uint32_t i = 4; i < WORLD; i++)
        launch(i, COLL_ALLREDUCE, COUNT, false);
    settle();
    const struct endpoint *to_0 = op_endpoint(ops[4], across);
    assert_true(to_0->announced && !to_0->reserved);
    assert_int_equal(to_0->sent, 0);
    for (uint32_t i = 1; i < 4; i++) launch(i, COLL_ALLREDUCE, COUNT, false);
    settle();
    assert_int_equal(to_0->sent, 0);
    launch(0, COLL_ALLREDUCE, COUNT, false);
    settle();
    check_results(COUNT);
    assert_int_equal(across->eager_bytes, EAGER_LINK_MAX);
    across->eager_bytes = 0;
}

/* Nothing goes to another row before all of the own one have launched. */
static void test_the_row_comes_first(void **state)
{
    (void)state;
    launch(5, COLL_ALLREDUCE, 1, false);
    launch(6, COLL_ALLREDUCE, 1, false);
    settle();
    for (uint32_t i = 2; i < ops[5]->ep_count; i++) {
        assert_false(ops[5]->eps[i].announced);
        assert_int_equal(ops[5]->eps[i].sent, 0);
    }
    launch(4, COLL_ALLREDUCE, 1, false);
    settle();
    for (uint32_t i = 2; i < ops[5]->ep_count; i++)
        assert_int_equal(ops[5]->eps[i].sent, 1);
    for (uint32_t i = 0; i < 4; i++) launch(i, COLL_ALLREDUCE, 1, false);
    settle();
    check_results(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_few_partners),
        SMALL_TEST(test_launches_are_announced),
        SMALL_TEST(test_the_row_comes_first),
        SMALL_TESTS,
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
