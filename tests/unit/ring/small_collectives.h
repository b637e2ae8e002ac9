/* small_collectives.h - what holds for small collectives of many members,
 * whatever shape their messages take (rules D17, D20): the results of every
 * collective, when a member knows that all have the result, and the buffers
 * where an operation stops. Seven engines.
 *
 * Included by a test that defines `shape_setup`, which forces the algorithm;
 * TESTED, that algorithm; BEFORE_OTHER, an engine whose word OTHER alone lacks
 * if it does not receive it; and OWN_COMES_BACK, whether the last DONE of a
 * member tells it of itself, too. */
#ifndef CORE_SMALL_COLLECTIVES_H
#define CORE_SMALL_COLLECTIVES_H

#define ENGINES 7
#include "engines.h"

#include "../../../src/ring/algorithm.h"

#include "../../../include/pccl.h"

enum { ROOT, MIDDLE, LEAF, OTHER = 6, TAG = 0, COUNT = EAGER_MAX / 8 };

static uint64_t in[WORLD][COUNT], out[WORLD][WORLD * COUNT];
static struct op *ops[WORLD];

static int shape_setup(void **state);

static void again(void **state)
{
    (void)teardown(state);
    assert_int_equal(shape_setup(state), 0);
}

/* -------------------------------------------------------------- the results */

static void launch(uint32_t i, enum plan_coll coll, uint64_t count,
                   bool in_place)
{
    for (uint64_t k = 0; k < count; k++) in[i][k] = (i + 1) * (k + 1);
    struct op_request r = {.call.tag = TAG,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = in[i],
                           .call.recvbuf = in_place ? in[i] : out[i]};
    r.plan.coll = coll;
    r.plan.count = coll == COLL_ALLREDUCE ? count : 8 * count;
    r.plan.element = 8;
    r.plan.root = LEAF;
    if (coll == COLL_BROADCAST && i == LEAF) memcpy(out[i], in[i], 8 * count);
    ops[i] = engine_launch(engines[i], &r, false);
    assert_non_null(ops[i]);
    assert_ptr_equal(ops[i]->plan.algorithm, &TESTED);
}

static void launch_all(uint64_t count, bool in_place)
{
    for (uint32_t i = 0; i < WORLD; i++)
        launch(i, COLL_ALLREDUCE, count, in_place);
}

static void check_results(uint64_t count)
{
    enum plan_coll coll = ops[0]->plan.r.coll;
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
    static uint16_t orders[2][WORLD] = {{0, 1, 2, 3, 4, 5, 6},
                                        {3, 6, 0, 5, 1, 2, 4}};
    for (uint32_t at = 0; at < 16; at++) {
        uint64_t count = at % 4 == 0 ? 0 : 1u << (3 * (at % 4));
        for (uint32_t i = 0; i < WORLD; i++)
            view_in(engines[i])->order = orders[at / 4 % 2];
        static const enum plan_coll colls[] = {COLL_ALLREDUCE, COLL_BARRIER,
                                               COLL_BROADCAST, COLL_ALLGATHER};
        for (size_t c = 0; c < ARRAY_COUNT(colls); c++) {
            bool in_place = colls[c] == COLL_ALLREDUCE && at / 8 == 1;
            for (uint32_t i = 0; i < WORLD; i++)
                launch(i, colls[c], colls[c] == COLL_BARRIER ? 0 : count,
                       in_place);
            settle();
            check_results(colls[c] == COLL_BARRIER ? 0 : count);
            again(state);
            for (uint32_t i = 0; i < WORLD; i++)
                view_in(engines[i])->order = orders[at / 4 % 2];
        }
    }
}

/* An average is divided once. */
static void test_average(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        in[i][0] = 7 * (i + 1);
        struct op_request r = {.call.tag = TAG,
                               .call.dtype = DTYPE_U64,
                               .call.redop = REDOP_AVG,
                               .call.sendbuf = in[i],
                               .call.recvbuf = out[i]};
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
        again(state);
    }
}

/* No member waits for the DONE of all: a member that has the result returns. */
static void test_returns_at_once(void **state)
{
    (void)state;
    deaf[OTHER][BEFORE_OTHER] = true;
    launch_all(1, false);
    settle();
    for (uint32_t i = 0; i < OTHER - 2; i++)
        assert_int_equal(ops[i]->phase, PHASE_DONE);
    assert_int_equal(ops[OTHER]->phase, PHASE_RUNNING);
    deaf[OTHER][BEFORE_OTHER] = false;
    settle();
    check_results(1);
}

/* One has no room in its result cache: nobody returns before all hold the
 * result. */
static void test_one_wants_to_know(void **state)
{
    for (uint32_t who = 0; who < WORLD; who++) {
        engines[who]->reserved = RESULTS_MAX;
        deaf[OTHER][BEFORE_OTHER] = true;
        launch_all(1, false);
        engines[who]->reserved = 0;
        for (uint32_t i = 0; i < WORLD; i++)
            assert_int_equal(ops[i]->confirm, i == who);
        settle();
        for (uint32_t i = 0; i < WORLD; i++)
            assert_int_not_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[LEAF]->phase, PHASE_COMPLETE);
        deaf[OTHER][BEFORE_OTHER] = false;
        settle();
        check_results(1);
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_int_equal(engines[i]->reserved, 0);
            assert_int_equal(engines[i]->results_used, 0);
        }
        again(state);
    }
}

/* Rule D7: the last DONE is clean only if all were idle. */
static void test_clean_if_all_are(void **state)
{
    for (uint32_t busy = 0; busy <= WORLD; busy++) {
        struct op_request r = {.call.tag = 99};
        r.plan.coll = COLL_BARRIER;
        if (busy < WORLD) (void)engine_launch(engines[busy], &r, false);
        engines[LEAF]->reserved += RESULTS_MAX;
        launch_all(1, false);
        engines[LEAF]->reserved -= RESULTS_MAX;
        settle();
        check_results(1);
        bool idle = busy == WORLD || (busy == LEAF && !OWN_COMES_BACK);
        assert_int_equal(ops[LEAF]->cleared, idle);
        again(state);
    }
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
            engine_finish(engines[i], ops[i], pcclRankConnectionLost);
            for (uint64_t k = 0; k < 100; k++)
                assert_true(in[i][k] == (i + 1) * (k + 1));
        }
        again(state);
    }
    for (uint32_t i = 0; i < WORLD; i++) assert_true(held[i]);
}

#define SMALL_TEST(f) cmocka_unit_test_setup_teardown(f, shape_setup, teardown)
#define SMALL_TESTS                                                            \
    SMALL_TEST(test_every_collective), SMALL_TEST(test_average),               \
        SMALL_TEST(test_waits_for_all), SMALL_TEST(test_returns_at_once),      \
        SMALL_TEST(test_one_wants_to_know), SMALL_TEST(test_clean_if_all_are), \
        SMALL_TEST(test_the_input_comes_back)

#endif
