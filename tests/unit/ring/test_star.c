/* test_star.c - gathers, scatters and reductions between a root and each other
 * member (rules D23, D25): when each may return, and what a root takes for its
 * result. Three engines, of which the second is the root. */
#include "engines.h"

#include "../../../src/ring/algorithm.h"

#include "../../../include/pccl.h"

enum { FIRST, ROOT, OTHER, TAG = 0, SIZE = 100 };

static uint8_t in[WORLD][WORLD * SIZE], out[WORLD][WORLD * SIZE];
static size_t bytes[WORLD][2][WORLD], displs[WORLD];
static struct op *ops[WORLD];

static int setup_star(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++) members[i].host = 2;
    install_all(2);
    return 0;
}

static int teardown_star(void **state)
{
    for (uint32_t i = 0; i < WORLD; i++) members[i].host = 0;
    return teardown(state);
}

static void launch_all(enum plan_flow flow)
{
    bool gathers = flow == FLOW_TO_ROOT;
    memset(out, 0, sizeof out);
    memset(bytes, 0, sizeof bytes);
    for (uint32_t i = 0; i < WORLD; i++) {
        displs[i] = i * SIZE;
        bytes[i][!gathers][ROOT] = bytes[ROOT][gathers][i] = SIZE;
        memset(in[i], (int)i + 1, sizeof in[i]);
    }
    bytes[ROOT][0][ROOT] = bytes[ROOT][1][ROOT] = SIZE;
    for (uint32_t i = 0; i < WORLD; i++) {
        struct op_request r = {
            .call.tag = TAG, .call.sendbuf = in[i], .call.recvbuf = out[i]};
        r.plan.coll = COLL_ALLTOALLV;
        r.plan.flow = flow;
        r.plan.root = ROOT;
        r.plan.send_bytes = bytes[i][0];
        r.plan.recv_bytes = bytes[i][1];
        r.plan.send_displs = r.plan.recv_displs = displs;
        ops[i] = engine_launch(engines[i], &r, false);
        assert_non_null(ops[i]);
        assert_string_equal(ops[i]->plan.algorithm->name, "star");
    }
}

static void check_phases(enum op_phase first, enum op_phase root,
                         enum op_phase other)
{
    assert_int_equal(ops[FIRST]->phase, first);
    assert_int_equal(ops[ROOT]->phase, root);
    assert_int_equal(ops[OTHER]->phase, other);
}

static void check_gathered(void)
{
    for (uint32_t i = 0; i < WORLD * SIZE; i++)
        assert_int_equal(out[ROOT][i], i / SIZE + 1);
}

/* Nobody waits for DONE, and nobody returns before the root has all blocks. */
static void test_gather(void **state)
{
    (void)state;
    deaf[ROOT][OTHER] = true;
    launch_all(FLOW_TO_ROOT);
    settle();
    check_phases(PHASE_RUNNING, PHASE_RUNNING, PHASE_RUNNING);
    deaf[ROOT][OTHER] = false;
    deaf[OTHER][ROOT] = true;
    settle();
    check_phases(PHASE_DONE, PHASE_DONE, PHASE_RUNNING);
    check_gathered();
    deaf[OTHER][ROOT] = false;
    settle();
    check_phases(PHASE_DONE, PHASE_DONE, PHASE_DONE);
}

/* Nobody returns before all have their blocks. */
static void test_scatter(void **state)
{
    (void)state;
    deaf[OTHER][ROOT] = true;
    launch_all(FLOW_FROM_ROOT);
    settle();
    check_phases(PHASE_COMPLETE, PHASE_COMPLETE, PHASE_RUNNING);
    deaf[OTHER][ROOT] = false;
    settle();
    check_phases(PHASE_DONE, PHASE_DONE, PHASE_DONE);
    for (uint32_t i = 0; i < SIZE; i++) {
        assert_int_equal(out[FIRST][ROOT * SIZE + i], ROOT + 1);
        assert_int_equal(out[OTHER][ROOT * SIZE + i], ROOT + 1);
    }
}

/* The coordinator says that another member has returned: the root, which lacks
 * a block, does not believe it. The others need no bytes. */
static void test_no_donation_for_blocks(void **state)
{
    (void)state;
    deaf[ROOT][OTHER] = true;
    launch_all(FLOW_TO_ROOT);
    settle();
    for (uint32_t i = 0; i < WORLD; i++) {
        engine_freeze(engines[i]);
        engine_accept_donation(engines[i], 0, TAG, ops[i]->seq, NULL, 0);
    }
    check_phases(PHASE_COMPLETE, PHASE_RUNNING, PHASE_COMPLETE);
    deaf[ROOT][OTHER] = false;
}

/* --------------------------------------------------------------- sums (D25) */

enum { SEGMENT = EAGER_MAX / 4, SEGMENTS = 6, MOST = SEGMENT * SEGMENTS };

static float terms[WORLD][MOST], sums[MOST];
static bool stars = true;

/* Of so many elements; at the root in place. The sum depends on the order. */
static void launch_sums(uint32_t count, bool in_place)
{
    static const float values[WORLD] = {1, 0x1p24f, -0x1p24f};
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint32_t k = 0; k < count; k++) terms[i][k] = values[i];
        struct op_request r = {
            .call.tag = TAG, .call.dtype = DTYPE_F32, .call.sendbuf = terms[i]};
        if (i == ROOT) r.call.recvbuf = in_place ? terms[i] : sums;
        r.call.redop = REDOP_SUM;
        r.plan.coll = COLL_ALLREDUCE;
        r.plan.flow = FLOW_TO_ROOT;
        r.plan.root = ROOT;
        r.plan.count = count;
        r.plan.element = 4;
        ops[i] = engine_launch(engines[i], &r, false);
        assert_non_null(ops[i]);
        assert_true(ops[i]->plan.algorithm == &star_sum || !stars);
    }
}

/* Nobody waits for DONE, and nobody returns before the root has all sums. They
 * are added from the root on, whoever comes first. */
static void sums_of(uint32_t count)
{
    deaf[ROOT][OTHER] = true;
    launch_sums(count, false);
    settle();
    check_phases(PHASE_RUNNING, PHASE_RUNNING, PHASE_RUNNING);
    deaf[ROOT][OTHER] = false;
    deaf[OTHER][ROOT] = true;
    settle();
    deaf[OTHER][ROOT] = false;
    settle();
    check_phases(PHASE_DONE, PHASE_DONE, PHASE_DONE);
    for (uint32_t k = 0; k < count; k++) assert_true(sums[k] == 1);
}

static void test_sum(void **state)
{
    (void)state;
    sums_of(SEGMENT);
}

static void test_sum_of_many_segments(void **state)
{
    (void)state;
    sums_of(MOST - 1);
}

static void test_sum_of_nothing(void **state)
{
    (void)state;
    sums_of(0);
}

/* The root has its result. A member that has no word of it does not return. */
static void test_members_wait_for_the_root(void **state)
{
    (void)state;
    deaf[OTHER][ROOT] = true;
    launch_sums(SEGMENT, false);
    settle();
    check_phases(PHASE_DONE, PHASE_DONE, PHASE_RUNNING);
    deaf[OTHER][ROOT] = false;
}

/* No more is under way than the root has places for. */
static void test_segments_wait(void **state)
{
    (void)state;
    deaf[ROOT][OTHER] = true;
    launch_sums(MOST, false);
    settle();
    assert_int_equal(ops[FIRST]->eps[0].sent, SEGMENTS - 2);
    deaf[ROOT][OTHER] = false;
    settle();
    check_phases(PHASE_DONE, PHASE_DONE, PHASE_DONE);
}

/* Without a part the root takes no donation for its sum, and it has its input
 * again (contract C2). */
static void test_the_input_of_a_sum_comes_back(void **state)
{
    (void)state;
    deaf[ROOT][FIRST] = true;
    engines[ROOT]->input_large = 0;
    launch_sums(MOST, true);
    settle();
    assert_true(terms[ROOT][0] == 0); /* it is made in place */
    for (uint32_t i = 0; i < WORLD; i++) {
        engine_freeze(engines[i]);
        engine_accept_donation(engines[i], 0, TAG, ops[i]->seq, NULL, 0);
    }
    check_phases(PHASE_COMPLETE, PHASE_RUNNING, PHASE_COMPLETE);
    engine_finish(engines[ROOT], ops[ROOT], pcclRankConnectionLost);
    for (uint32_t k = 0; k < MOST; k++) assert_true(terms[ROOT][k] == 0x1p24f);
    deaf[ROOT][FIRST] = false;
}

/* Another algorithm gives all the sum, in the order of ranks: the others need a
 * place for it. */
static void test_sums_that_all_have(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(engine_force(engines[i], "flat"));
    stars = false;
    launch_sums(SIZE, false);
    stars = true;
    settle();
    check_phases(PHASE_DONE, PHASE_DONE, PHASE_DONE);
    for (uint32_t k = 0; k < SIZE; k++) assert_true(sums[k] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gather, setup_star, teardown_star),
        cmocka_unit_test_setup_teardown(test_scatter, setup_star,
                                        teardown_star),
        cmocka_unit_test_setup_teardown(test_no_donation_for_blocks, setup_star,
                                        teardown_star),
        cmocka_unit_test_setup_teardown(test_sum, setup_star, teardown_star),
        cmocka_unit_test_setup_teardown(test_sum_of_many_segments, setup_star,
                                        teardown_star),
        cmocka_unit_test_setup_teardown(test_sum_of_nothing, setup_star,
                                        teardown_star),
        cmocka_unit_test_setup_teardown(test_members_wait_for_the_root,
                                        setup_star, teardown_star),
        cmocka_unit_test_setup_teardown(test_segments_wait, setup_star,
                                        teardown_star),
        cmocka_unit_test_setup_teardown(test_the_input_of_a_sum_comes_back,
                                        setup_star, teardown_star),
        cmocka_unit_test_setup_teardown(test_sums_that_all_have, setup_star,
                                        teardown_star),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
