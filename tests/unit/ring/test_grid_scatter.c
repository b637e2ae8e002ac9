/* test_grid_scatter.c - medium and large broadcasts over a grid (rule D24).
 * Seven engines in two rows: 0 to 3 and 4 to 6. */
#define ENGINES 7
#include "engines.h"

#include "../../../src/ring/algorithm.h"

#include "../../../include/pccl.h"

enum { SIZE = 400000, TAG = 3 };

static uint8_t data[WORLD][SIZE];
static struct op *ops[WORLD];

static int grid_setup(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(engine_force(engines[i], "grid_scatter"));
    return 0;
}

static void again(void **state)
{
    (void)teardown(state);
    assert_int_equal(grid_setup(state), 0);
}

static uint8_t value(uint32_t root, uint32_t k)
{
    return (uint8_t)((root * 31 + k) * 2654435761u >> 24);
}

static void launch(uint32_t i, uint32_t root, uint32_t size)
{
    for (uint32_t k = 0; k < SIZE; k++)
        data[i][k] = i == root ? value(root, k) : 0xee;
    struct op_request r = {.call.tag = TAG, .call.recvbuf = data[i]};
    r.plan.coll = COLL_BROADCAST;
    r.plan.root = root;
    r.plan.count = size;
    r.plan.element = 1;
    ops[i] = engine_launch(engines[i], &r, false);
    assert_non_null(ops[i]);
    assert_ptr_equal(ops[i]->plan.algorithm, &broadcast_grid);
}

static void check_results(uint32_t root, uint32_t size)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[i]->result, pcclSuccess);
        for (uint32_t k = 0; k < SIZE; k++) {
            uint8_t expected = k < size || i == root ? value(root, k) : 0xee;
            if (data[i][k] != expected)
                fail_msg("byte %u of engine %u, root %u", k, i, root);
        }
    }
}

/* From each root, which may own a column or be the last of a longer row. */
static void test_every_root(void **state)
{
    static const uint32_t sizes[] = {0, 1, 2, 3, 100, 70000, SIZE};
    for (uint32_t root = 0; root < WORLD; root++) {
        for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
            for (uint32_t k = 0; k < WORLD; k++) launch(k, root, sizes[i]);
            settle();
            check_results(root, sizes[i]);
            again(state);
        }
    }
}

/* Nobody returns before all have launched and hold the data (rule D4). */
static void test_waits_for_all(void **state)
{
    for (uint32_t late = 0; late < WORLD; late++) {
        uint32_t root = (late + 3) % WORLD;
        for (uint32_t i = 0; i < WORLD; i++)
            if (i != late) launch(i, root, SIZE);
        for (uint32_t i = 0; i < WORLD; i++) deaf[late][i] = true;
        settle();
        for (uint32_t i = 0; i < WORLD; i++)
            if (i != late) assert_int_not_equal(ops[i]->phase, PHASE_DONE);
        launch(late, root, SIZE);
        settle();
        for (uint32_t i = 0; i < WORLD; i++)
            assert_int_not_equal(ops[i]->phase, PHASE_DONE);
        memset(deaf, 0, sizeof deaf);
        settle();
        check_results(root, SIZE);
        again(state);
    }
}

/* Without credit a member waits for the word of its partners, and they do not
 * wait for its data to give it. */
static void test_without_credit(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint32_t k = 0; k < WORLD; k++) {
            struct link *l = link_find(&engines[i]->links, ids[k], false);
            if (l) l->eager_bytes = EAGER_LINK_MAX;
        }
    }
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 5, SIZE);
    settle();
    check_results(5, SIZE);
}

/* A member passes each segment on as soon as it has it. */
static void test_segments_pass_on(void **state)
{
    struct plan_xfer x;
    uint32_t waits = 0;
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 0, SIZE);
    for (uint32_t i = 1; i < WORLD; i++) {
        const struct plan *p = &ops[i]->plan;
        assert_true(p->segments > 2);
        for (uint32_t to = 0; to < WORLD; to++) {
            uint32_t sends = plan_sends(p, to);
            for (uint32_t k = 0; sends > 1 && k < sends; k++, waits++) {
                plan_send(p, to, k, &x);
                assert_true(x.after < 2 * p->chunks * p->segments);
                assert_int_equal(x.after % p->segments, k);
            }
        }
    }
    assert_true(waits > 0);
    settle();
    check_results(0, SIZE);
}

/* The driver is told that there is something to pass on. */
static void test_the_driver_is_told(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 0, SIZE);
    deaf[1][0] = true;
    settle();
    deaf[1][0] = false;
    for (uint32_t i = 0; i < WORLD; i++)
        if (i != 1) conn_clear_dirty(&engines[1]->links, i);
    while (carry(0, 1)) continue;
    assert_true(conn_may_send(&engines[1]->links, 5)); /* down its column */
    assert_true(conn_may_send(&engines[1]->links, 2)); /* in its row */
    settle();
    check_results(0, SIZE);
}

/* The root sends one vector, nobody more than two and a little, and everybody
 * gets one. */
static void test_bytes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 1, SIZE);
    uint64_t before = carried;
    settle();
    uint64_t vectors = (WORLD - 1) * (uint64_t)SIZE;
    assert_true(carried - before >= vectors);
    assert_true(carried - before < vectors + SIZE / 10);
}

#define GRID_TEST(f) cmocka_unit_test_setup_teardown(f, grid_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GRID_TEST(test_every_root),         GRID_TEST(test_waits_for_all),
        GRID_TEST(test_without_credit),     GRID_TEST(test_segments_pass_on),
        GRID_TEST(test_the_driver_is_told), GRID_TEST(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
