/* test_grid_direct.c - medium all-reduces over a grid (rule D22). Seven engines
 * in two rows: 0 to 3 and 4 to 6, so 3 owns nothing. */
#define ENGINES 7
#include "engines.h"

#include "../../../src/ring/algorithm.h"

#include "../../../include/pccl.h"

enum { ROWS = 2, COLUMNS = 3, COUNT = 6000, LONG_COUNT = 120000, TAG = 3 };

static float in[WORLD][LONG_COUNT], out[WORLD][LONG_COUNT];
static struct op *ops[WORLD];

static int grid_setup(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(engine_force(engines[i], "grid_direct"));
    return 0;
}

static void again(void **state)
{
    (void)teardown(state);
    assert_int_equal(grid_setup(state), 0);
}

/* Sums of these depend on the order. */
static float number(uint32_t i, uint32_t k)
{
    uint32_t h = (i * 977 + k + 1) * 2654435761u;
    float size = i % 2 ? 1e-6f : 10.0f;
    return 1.0f + (float)(int32_t)h * 1e-9f * size;
}

static void launch(uint32_t i, uint32_t count, enum redop redop, bool in_place)
{
    for (uint32_t k = 0; k < count; k++) in[i][k] = number(i, k);
    struct op_request r = {.call.tag = TAG,
                           .call.dtype = DTYPE_F32,
                           .call.redop = redop,
                           .call.sendbuf = in[i],
                           .call.recvbuf = in_place ? in[i] : out[i]};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = count;
    r.plan.element = sizeof(float);
    ops[i] = engine_launch(engines[i], &r, false);
    assert_non_null(ops[i]);
    assert_ptr_equal(ops[i]->plan.algorithm, &allreduce_grid);
}

/* The parts of a row from one column on. */
static float sum_of_row(uint32_t row, uint32_t column, uint32_t k)
{
    uint32_t size = row == 0 ? 4 : 3, first = row == 0 ? 0 : 4;
    float sum = number(first + column, k);
    for (uint32_t i = 1; i < size; i++)
        sum += number(first + (column + i) % size, k);
    return sum;
}

/* Rule D22a. The chunks are those of column 0 first, of each one a row. */
static float expected(uint32_t count, uint32_t k, enum redop redop)
{
    uint32_t each = count / (ROWS * COLUMNS), rest = count % (ROWS * COLUMNS);
    uint32_t longer = rest * (each + 1);
    uint32_t chunk = k < longer ? k / (each + 1) : rest + (k - longer) / each;
    uint32_t column = chunk / ROWS, row = chunk % ROWS;
    float sum = sum_of_row(row, column, k) + sum_of_row(1 - row, column, k);
    return redop == REDOP_AVG ? sum / WORLD : sum;
}

static void check_results(uint32_t count, enum redop redop)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[i]->result, pcclSuccess);
        const float *to = ops[i]->r.recvbuf;
        for (uint32_t k = 0; k < count; k++)
            if (to[k] != expected(count, k, redop))
                fail_msg("element %u of engine %u", k, i);
    }
}

static void test_order(void **state)
{
    static const uint32_t counts[] = {1, 5, 6, 100, COUNT + 1, LONG_COUNT};
    for (size_t i = 0; i < 4 * ARRAY_COUNT(counts); i++) {
        enum redop redop = i % 2 ? REDOP_AVG : REDOP_SUM;
        for (uint32_t k = 0; k < WORLD; k++)
            launch(k, counts[i / 4], redop, i / 2 % 2);
        settle();
        check_results(counts[i / 4], redop);
        again(state);
    }
}

/* Whatever comes first: the order is the same (rule D3). */
static void test_order_of_arrival(void **state)
{
    for (uint32_t late = 0; late < WORLD; late++) {
        for (uint32_t i = 0; i < WORLD; i++) deaf[i][late] = i != late;
        for (uint32_t i = 0; i < WORLD; i++)
            launch((i + late) % WORLD, COUNT, REDOP_SUM, false);
        settle();
        memset(deaf, 0, sizeof deaf);
        settle();
        check_results(COUNT, REDOP_SUM);
        again(state);
    }
}

/* Nobody has a result before all have launched; and nobody returns before all
 * hold it (rules D7, D22c). */
static void test_waits_for_all(void **state)
{
    for (uint32_t late = 0; late < WORLD; late++) {
        for (uint32_t i = 0; i < WORLD; i++)
            if (i != late) launch(i, 1, REDOP_SUM, false);
        settle();
        for (uint32_t i = 0; i < WORLD; i++)
            if (i != late) assert_int_equal(ops[i]->phase, PHASE_RUNNING);
        for (uint32_t i = 0; i < WORLD; i++) deaf[late][i] = true;
        launch(late, 1, REDOP_SUM, false);
        settle();
        for (uint32_t i = 0; i < WORLD; i++)
            assert_int_not_equal(ops[i]->phase, PHASE_DONE);
        memset(deaf, 0, sizeof deaf);
        settle();
        check_results(1, REDOP_SUM);
        again(state);
    }
}

/* Rule D22b: without credit a member waits for the word of its partners, and
 * they do not wait for its data to give it. */
static void test_without_credit(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint32_t k = 0; k < WORLD; k++) {
            struct link *l = link_find(&engines[i]->links, ids[k], false);
            if (l) l->eager_bytes = EAGER_LINK_MAX;
        }
    }
    for (uint32_t i = 0; i < WORLD; i++) launch(i, COUNT, REDOP_SUM, false);
    settle();
    check_results(COUNT, REDOP_SUM);
}

/* Little more than two vectors a member, whatever the world. */
static void test_bytes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++)
        launch(i, LONG_COUNT, REDOP_SUM, false);
    uint64_t before = carried;
    settle();
    uint64_t vectors = WORLD * sizeof(float) * LONG_COUNT;
    assert_true(carried - before < vectors * (2 * COLUMNS + 1) / COLUMNS);
}

/* Contract C2, wherever the operation was stopped. */
static void test_the_input_comes_back(void **state)
{
    bool held[WORLD] = {false};
    for (uint32_t rounds = 0; rounds < 80; rounds++) {
        for (uint32_t i = 0; i < WORLD && rounds / 2 % 2; i++) {
            engines[i]->input_large = 0;
            engines[i]->input_block = 100;
        }
        for (uint32_t i = 0; i < WORLD; i++) launch(i, COUNT, REDOP_SUM, true);
        settle_for(rounds);
        for (uint32_t i = 0; i < WORLD; i++) {
            engine_freeze(engines[i]);
            if (ops[i]->phase == PHASE_DONE) continue;
            held[i] |= ops[i]->phase == PHASE_COMPLETE;
            engine_finish(engines[i], ops[i], pcclRankConnectionLost);
            for (uint32_t k = 0; k < COUNT; k++)
                assert_true(in[i][k] == number(i, k));
        }
        again(state);
    }
    for (uint32_t i = 0; i < WORLD; i++) assert_true(held[i]);
}

#define GRID_TEST(f) cmocka_unit_test_setup_teardown(f, grid_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GRID_TEST(test_order),         GRID_TEST(test_order_of_arrival),
        GRID_TEST(test_waits_for_all), GRID_TEST(test_without_credit),
        GRID_TEST(test_bytes),         GRID_TEST(test_the_input_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
