/* test_tree.c - small collectives over a tree (rule D17): its shape, the
 * results of every collective, when a member knows that all have the result,
 * when each may send, and the buffers where an operation stops. Seven engines,
 * two children each: 0 above 1 and 4, 1 above 2 and 3, 4 above 5 and 6. */
#define ENGINES 7
#include "engines.h"

#include "../../src/ring/algorithm.h"
#include "../../src/ring/tree.h"

#include "../../include/pccl.h"

enum { ROOT, MIDDLE, LEAF, OTHER = 6, TAG = 0, COUNT = EAGER_MAX / 8 };

static uint64_t in[WORLD][COUNT], out[WORLD][WORLD * COUNT];
static struct op *ops[WORLD];

static int setup_tree(void **state)
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

/* -------------------------------------------------------------- the results */

static void launch(uint32_t i, enum plan_coll coll, uint64_t count,
                   bool in_place)
{
    for (uint64_t k = 0; k < count; k++) in[i][k] = (i + 1) * (k + 1);
    struct op_request r = {.tag = TAG,
                           .dtype = DTYPE_U64,
                           .redop = REDOP_SUM,
                           .sendbuf = in[i],
                           .recvbuf = in_place ? in[i] : out[i]};
    r.plan.coll = coll;
    r.plan.count = coll == COLL_ALLREDUCE ? count : 8 * count;
    r.plan.element = 8;
    r.plan.root = LEAF;
    if (coll == COLL_BROADCAST && i == LEAF) memcpy(out[i], in[i], 8 * count);
    ops[i] = engine_launch(engines[i], &r, false);
    assert_non_null(ops[i]);
    assert_ptr_equal(ops[i]->plan.algorithm, &small_tree);
}

static void launch_all(uint64_t count, bool in_place)
{
    for (uint32_t i = 0; i < WORLD; i++)
        launch(i, COLL_ALLREDUCE, count, in_place);
}

static void check_results(uint64_t count)
{
    enum plan_coll coll = ops[0]->r.plan.coll;
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[i]->result, pcclSuccess);
        const uint64_t *to = ops[i]->r.recvbuf;
        uint64_t all = coll == COLL_ALLGATHER ? WORLD * count : count;
        for (uint64_t k = 0; k < all; k++) {
            uint64_t is = 28 * (k + 1);
            if (coll == COLL_BROADCAST) is = (LEAF + 1) * (k + 1);
            if (coll == COLL_ALLGATHER) is = (k / count + 1) * (k % count + 1);
            assert_true(to[k] == is);
        }
    }
}

/* Also where the ring has another order than the ranks. */
static void test_every_collective(void **state)
{
    static const uint16_t orders[2][WORLD] = {{0, 1, 2, 3, 4, 5, 6},
                                              {3, 6, 0, 5, 1, 2, 4}};
    for (uint32_t at = 0; at < 16; at++) {
        uint64_t count = at % 4 == 0 ? 0 : 1u << (3 * (at % 4));
        for (uint32_t i = 0; i < WORLD; i++)
            engines[i]->order = orders[at / 4 % 2];
        static const enum plan_coll colls[] = {COLL_ALLREDUCE, COLL_BARRIER,
                                               COLL_BROADCAST, COLL_ALLGATHER};
        for (size_t c = 0; c < ARRAY_COUNT(colls); c++) {
            bool in_place = colls[c] == COLL_ALLREDUCE && at / 8 == 1;
            for (uint32_t i = 0; i < WORLD; i++)
                launch(i, colls[c], colls[c] == COLL_BARRIER ? 0 : count,
                       in_place);
            settle();
            check_results(colls[c] == COLL_BARRIER ? 0 : count);
            (void)teardown(state);
            assert_int_equal(setup_tree(state), 0);
            for (uint32_t i = 0; i < WORLD; i++)
                engines[i]->order = orders[at / 4 % 2];
        }
    }
}

/* An average is divided once. */
static void test_average(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        in[i][0] = 7 * (i + 1);
        struct op_request r = {.tag = TAG,
                               .dtype = DTYPE_U64,
                               .redop = REDOP_AVG,
                               .sendbuf = in[i],
                               .recvbuf = out[i]};
        r.plan.coll = COLL_ALLREDUCE;
        r.plan.count = 1;
        r.plan.element = 8;
        ops[i] = engine_launch(engines[i], &r, false);
    }
    settle();
    for (uint32_t i = 0; i < WORLD; i++) assert_int_equal(out[i][0], 28);
}

/* --------------------------------------------------------------- completion */

/* Nobody has a result before all have launched. */
static void test_waits_for_all(void **state)
{
    (void)state;
    for (uint32_t late = 0; late < WORLD; late++) {
        for (uint32_t i = 0; i < WORLD; i++)
            if (i != late) launch(i, COLL_BROADCAST, 4, false);
        settle();
        for (uint32_t i = 0; i < WORLD; i++)
            if (i != late) assert_int_equal(ops[i]->phase, PHASE_RUNNING);
        launch(late, COLL_BROADCAST, 4, false);
        settle();
        check_results(4);
        (void)teardown(state);
        assert_int_equal(setup_tree(state), 0);
    }
}

/* No member waits for the DONE of all: a member that has the result returns. */
static void test_returns_at_once(void **state)
{
    (void)state;
    deaf[OTHER][4] = true;
    launch_all(1, false);
    settle();
    for (uint32_t i = 0; i < OTHER - 2; i++)
        assert_int_equal(ops[i]->phase, PHASE_DONE);
    assert_int_equal(ops[OTHER]->phase, PHASE_RUNNING);
    deaf[OTHER][4] = false;
    settle();
    check_results(1);
}

/* One has no room in its result cache: nobody returns before all hold the
 * result. */
static void test_one_wants_to_know(void **state)
{
    for (uint32_t who = 0; who < WORLD; who++) {
        engines[who]->reserved = RESULTS_MAX;
        deaf[OTHER][4] = true;
        launch_all(1, false);
        engines[who]->reserved = 0;
        for (uint32_t i = 0; i < WORLD; i++)
            assert_int_equal(ops[i]->confirm, i == who);
        settle();
        for (uint32_t i = 0; i < WORLD; i++)
            assert_int_not_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[LEAF]->phase, PHASE_COMPLETE);
        deaf[OTHER][4] = false;
        settle();
        check_results(1);
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_int_equal(engines[i]->reserved, 0);
            assert_int_equal(engines[i]->results_used, 0);
        }
        (void)teardown(state);
        assert_int_equal(setup_tree(state), 0);
    }
}

/* Rule D7: what comes back from the root is clean only if all were idle. */
static void test_clean_if_all_are(void **state)
{
    for (uint32_t busy = 0; busy <= WORLD; busy++) {
        struct op_request r = {.tag = 99};
        r.plan.coll = COLL_BARRIER;
        if (busy < WORLD) (void)engine_launch(engines[busy], &r, false);
        engines[LEAF]->reserved += RESULTS_MAX;
        launch_all(1, false);
        engines[LEAF]->reserved -= RESULTS_MAX;
        settle();
        check_results(1);
        assert_int_equal(ops[LEAF]->cleared, busy == WORLD);
        (void)teardown(state);
        assert_int_equal(setup_tree(state), 0);
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

/* In place the result replaces the input. The input is restored if the result
 * does not stand (contract C2), wherever the operation was stopped. */
static void test_the_input_comes_back(void **state)
{
    bool held[WORLD] = {false};
    for (uint32_t rounds = 0; rounds < 60; rounds++) {
        for (uint32_t i = 0; i < WORLD; i++) engines[i]->reserved = RESULTS_MAX;
        launch_all(100, true);
        settle_for(rounds);
        for (uint32_t i = 0; i < WORLD; i++) {
            engine_freeze(engines[i]);
            if (ops[i]->phase == PHASE_DONE) continue;
            held[i] |= ops[i]->phase == PHASE_COMPLETE;
            engine_restore(engines[i], ops[i]);
            for (uint64_t k = 0; k < 100; k++)
                assert_true(in[i][k] == (i + 1) * (k + 1));
        }
        (void)teardown(state);
        assert_int_equal(setup_tree(state), 0);
    }
    for (uint32_t i = 0; i < WORLD; i++) assert_true(held[i]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_tree, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),      cmocka_unit_test(test_two_levels),
        TEST(test_every_collective),       TEST(test_average),
        TEST(test_waits_for_all),          TEST(test_returns_at_once),
        TEST(test_one_wants_to_know),      TEST(test_clean_if_all_are),
        TEST(test_launches_are_announced), TEST(test_the_input_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
