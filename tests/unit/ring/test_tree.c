/* test_tree.c - small collectives over a tree (rule D17): its shape, and when
 * each member may send. Two children each: 0 above 1 and 4, 1 above 2 and 3, 4
 * above 5 and 6. */
enum { BEFORE_OTHER = 4, OWN_COMES_BACK = 1 };
#define TESTED small_tree
#include "small_collectives.h"

#include "../../../src/base/tree.h"

static int shape_setup(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++) {
        engines[i]->tree_width = 2;
        assert_true(engine_force(engines[i], "tree"));
    }
    return 0;
}

/* ---------------------------------------------------------------- the shape */

static uint32_t deepest(uint32_t width, uint32_t levels)
{
    uint32_t members_of = 1;
    for (uint32_t i = 0; i < levels; i++) members_of = 1 + width * members_of;
    return members_of;
}

static void check_shape(uint32_t size, uint32_t width)
{
    uint32_t levels = 0;
    while (deepest(width, levels) < size) levels++;
    for (uint32_t at = 0; at < size; at++) {
        struct tree_node node, above;
        tree_find(size, width, at, &node);
        assert_int_equal(node.position, at);
        assert_true(node.children <= width);
        uint32_t next = at + 1, part, depth = 0;
        for (uint32_t i = 0; i < node.children; i++) {
            struct tree_node child;
            assert_int_equal(tree_child(&node, i, &part), next);
            tree_find(size, width, next, &child);
            assert_int_equal(child.parent, at);
            assert_int_equal(child.size, part);
            next += part;
        }
        assert_int_equal(next, at + node.size);
        for (above = node; above.position != 0; depth++)
            tree_find(size, width, above.parent, &above);
        assert_true(depth <= levels);
    }
}

static void test_shape(void **state)
{
    (void)state;
    for (uint32_t width = 2; width <= 9; width++)
        for (uint32_t size = 1; size <= 300; size++) check_shape(size, width);
}

/* Four distances in any world: two up and two down. */
static void test_two_levels(void **state)
{
    static const uint32_t sizes[] = {2, 9, 73, 74, 100, 1000, PEERS_MAX};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        uint32_t size = sizes[i], width = tree_width(size);
        struct tree_node node, same;
        assert_true(width >= TREE_WIDTH && deepest(width, 2) >= size);
        assert_true(width == TREE_WIDTH || deepest(width - 1, 2) < size);
        for (uint32_t at = 0; at < size; at++) {
            tree_find(size, width, at, &node);
            tree_find(size, 0, at, &same);
            assert_int_equal(node.parent, same.parent);
            assert_int_equal(node.children, same.children);
            assert_true(node.children <= width);
            tree_find(size, 0, node.parent, &same);
            assert_int_equal(same.parent, 0);
        }
    }
}

/* -------------------------------------------------------------- the launch */

/* Members without credit announce their launch by READY, on each level, and are
 * answered by a parent that has launched. */
static void test_launches_are_announced(void **state)
{
    (void)state;
    struct link *low = link_find(&engines[LEAF]->links, ids[MIDDLE], false);
    struct link *high = link_find(&engines[MIDDLE]->links, ids[ROOT], false);
    low->eager_bytes = high->eager_bytes = EAGER_LINK_MAX;
    for (uint32_t i = LEAF; i < WORLD; i++)
        launch(i, COLL_ALLREDUCE, COUNT, false);
    settle();
    assert_int_equal(ops[LEAF]->eps[0].sent, 0);
    assert_int_equal(ops[3]->eps[0].sent, 1);
    launch(MIDDLE, COLL_ALLREDUCE, COUNT, false);
    settle();
    assert_int_equal(ops[LEAF]->eps[0].sent, 1);
    assert_false(ops[3]->eps[0].ready);
    assert_int_equal(ops[MIDDLE]->eps[2].sent, 0);
    launch(ROOT, COLL_ALLREDUCE, COUNT, false);
    settle();
    check_results(COUNT);
    assert_int_equal(low->eager_bytes, EAGER_LINK_MAX);
    assert_int_equal(high->eager_bytes, EAGER_LINK_MAX);
    low->eager_bytes = high->eager_bytes = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_two_levels),
        SMALL_TEST(test_launches_are_announced),
        SMALL_TESTS,
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
