/* test_star.c - gathers and scatters between a root and each other member (rule
 * D23): when each may return, and what a root takes for its result. Three
 * engines, of which the second is the root. */
#include "engines.h"

#include "../../src/ring/algorithm.h"

#include "../../include/pccl.h"

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
        struct op_request r = {.tag = TAG, .sendbuf = in[i], .recvbuf = out[i]};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gather, setup_star, teardown_star),
        cmocka_unit_test_setup_teardown(test_scatter, setup_star,
                                        teardown_star),
        cmocka_unit_test_setup_teardown(test_no_donation_for_blocks, setup_star,
                                        teardown_star),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
