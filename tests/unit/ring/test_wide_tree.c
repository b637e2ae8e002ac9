/* test_wide_tree.c - members of one host reduce in a tree in which one of them
 * is the parent of all others (rule D17): when each member knows that
 * all have the result, when each may send, and the contents of the buffers
 * where the operation stops. Three engines, of which the first is the root. */
#include "engines.h"

#include "../../../src/ring/algorithm.h"

#include "../../../include/pccl.h"

enum { CENTER, LEAF, OTHER, TAG = 0, COUNT = EAGER_MAX / 8 };

static uint64_t in[WORLD][COUNT], out[WORLD][COUNT];
static struct op *ops[WORLD];

static int setup_star(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++) members[i].host = 1;
    install_all(2);
    return 0;
}

static int teardown_star(void **state)
{
    for (uint32_t i = 0; i < WORLD; i++) members[i].host = 0;
    return teardown(state);
}

static void launch(uint32_t i, uint64_t count, bool in_place)
{
    for (uint64_t k = 0; k < count; k++) in[i][k] = (i + 1) * (k + 1);
    struct op_request r = {.call.tag = TAG,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = in[i],
                           .call.recvbuf = in_place ? in[i] : out[i]};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = count;
    r.plan.element = 8;
    ops[i] = engine_launch(engines[i], &r, false);
    assert_non_null(ops[i]);
    assert_ptr_equal(ops[i]->plan.algorithm, &small_tree);
    assert_int_equal(ops[i]->plan.root, CENTER);
}

static void launch_all(uint64_t count, bool in_place)
{
    for (uint32_t i = 0; i < WORLD; i++) launch(i, count, in_place);
}

static void check_sums(uint64_t count)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[i]->result, pcclSuccess);
        const uint64_t *sum = ops[i]->r.recvbuf;
        for (uint64_t k = 0; k < count; k++)
            assert_int_equal(sum[k], 6 * (k + 1));
    }
}

/* No member waits for the DONE of all: a member that has the result returns. */
static void test_returns_at_once(void **state)
{
    (void)state;
    deaf[OTHER][CENTER] = true;
    launch_all(1, false);
    settle();
    assert_int_equal(ops[CENTER]->phase, PHASE_DONE);
    assert_int_equal(ops[LEAF]->phase, PHASE_DONE);
    assert_int_equal(ops[OTHER]->phase, PHASE_RUNNING);
    deaf[OTHER][CENTER] = false;
    settle();
    check_sums(1);
}

/* `who` has no room in its result cache, so it waits for all. The root waits
 * too, because it alone can send the DONE of all, and the others because they
 * were asked. */
static void one_wants_done(uint32_t who)
{
    uint32_t promised = engines[who]->reserved;
    engines[who]->reserved = RESULTS_MAX;
    deaf[OTHER][CENTER] = true;
    launch_all(1, false);
    engines[who]->reserved = promised;
    for (uint32_t i = 0; i < WORLD; i++)
        assert_int_equal(ops[i]->confirm, i == who);
    settle();
    assert_int_equal(ops[CENTER]->phase, PHASE_COMPLETE);
    assert_int_equal(ops[LEAF]->phase, PHASE_COMPLETE);
    assert_int_equal(ops[OTHER]->phase, PHASE_RUNNING);
    deaf[OTHER][CENTER] = false;
    settle();
    check_sums(1);
}

static void test_one_wants_to_know(void **state)
{
    (void)state;
    one_wants_done(LEAF);
}

static void test_the_center_wants_to_know(void **state)
{
    (void)state;
    one_wants_done(CENTER);
}

/* Rule D7: a DONE of the root is clean only if all were. */
static void clean_through_the_center(uint32_t busy)
{
    struct op_request r = {.call.tag = 99,
                           .call.members = (uint64_t[]){10, 11, 12},
                           .call.member_count = 3};
    r.plan.coll = COLL_BARRIER;
    struct op *open = NULL;
    if (busy < WORLD) open = engine_launch(engines[busy], &r, false);
    engines[LEAF]->reserved += RESULTS_MAX;
    launch_all(1, false);
    engines[LEAF]->reserved -= RESULTS_MAX;
    settle();
    check_sums(1);
    assert_int_equal(ops[LEAF]->cleared, busy == WORLD);
    if (open) assert_int_equal(open->phase, PHASE_RUNNING);
}

static void test_clean_if_all_are(void **state)
{
    for (uint32_t busy = 0; busy <= WORLD; busy++) {
        clean_through_the_center(busy);
        (void)teardown_star(state);
        assert_int_equal(setup_star(state), 0);
    }
}

/* A member without eager credit announces its launch by READY, and the root
 * answers when it has launched (D17); it sends nothing to the others. */
static void test_launches_are_announced(void **state)
{
    (void)state;
    struct link *l = link_find(&engines[LEAF]->links, ids[CENTER], false);
    l->eager_bytes = EAGER_LINK_MAX;
    launch(LEAF, COUNT, false);
    launch(OTHER, COUNT, false);
    settle();
    assert_false(ops[LEAF]->eps[0].ready);
    assert_int_equal(ops[LEAF]->eps[0].sent, 0);
    assert_int_equal(ops[OTHER]->eps[0].sent, 1);
    mute[LEAF][CENTER] = true;
    launch(CENTER, COUNT, false);
    settle();
    assert_true(ops[LEAF]->eps[0].ready);
    assert_false(ops[OTHER]->eps[0].ready);
    mute[LEAF][CENTER] = false;
    settle();
    check_sums(COUNT);
    assert_int_equal(l->eager_bytes, EAGER_LINK_MAX);
    l->eager_bytes = 0;
}

/* The same of a root that has launched before. */
static void test_a_root_that_has_launched_is_asked(void **state)
{
    (void)state;
    struct link *l = link_find(&engines[LEAF]->links, ids[CENTER], false);
    launch(CENTER, COUNT, false);
    settle();
    l->eager_bytes = EAGER_LINK_MAX;
    launch(LEAF, COUNT, false);
    launch(OTHER, COUNT, false);
    settle();
    check_sums(COUNT);
    l->eager_bytes = 0;
}

/* In place the result replaces the input. The input is restored if the result
 * does not stand (contract C2), wherever the operation was stopped. */
static void test_the_input_comes_back(void **state)
{
    bool held[WORLD] = {false};
    for (uint32_t rounds = 0; rounds < 40; rounds++) {
        for (uint32_t i = 0; i < WORLD; i++) engines[i]->reserved = RESULTS_MAX;
        launch_all(100, true);
        settle_for(rounds);
        for (uint32_t i = 0; i < WORLD; i++) {
            engine_freeze(engines[i]);
            if (ops[i]->phase == PHASE_DONE) continue;
            held[i] |= ops[i]->phase == PHASE_COMPLETE;
            engine_finish(engines[i], ops[i], pcclRankConnectionLost);
            for (uint64_t k = 0; k < 100; k++)
                assert_int_equal(in[i][k], (i + 1) * (k + 1));
        }
        (void)teardown_star(state);
        assert_int_equal(setup_star(state), 0);
    }
    for (uint32_t i = 0; i < WORLD; i++) assert_true(held[i]);
}

/* Of a sum for a root the others have no buffer, also when the operation has
 * started again and its memory has gone from hand to hand. */
static void test_no_place_for_the_sum(void **state)
{
    enum { FEW = 3 };
    for (uint32_t rounds = 0; rounds < 12; rounds++) {
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_true(engine_force(engines[i], "direct"));
            struct op_request r = {.call.tag = TAG,
                                   .call.dtype = DTYPE_U64,
                                   .call.redop = REDOP_SUM,
                                   .call.sendbuf = in[i],
                                   .call.recvbuf = i == CENTER ? out[i] : NULL};
            r.plan.coll = COLL_ALLREDUCE;
            r.plan.flow = FLOW_TO_ROOT;
            r.plan.root = CENTER;
            r.plan.count = FEW;
            r.plan.element = 8;
            for (uint64_t k = 0; k < FEW; k++) in[i][k] = (i + 1) * (k + 1);
            engines[i]->reserved = RESULTS_MAX;
            ops[i] = engine_launch(engines[i], &r, false);
            assert_non_null(ops[i]);
            assert_false(ops[i]->plan.algorithm->at_root);
        }
        for (uint32_t i = 0; i < WORLD; i++) deaf[i][(i + 1) % WORLD] = true;
        settle_for(rounds);
        for (uint32_t i = 0; i < WORLD; i++) engine_freeze(engines[i]);
        memset(deaf, 0, sizeof deaf);
        settle();
        install_all(3);
        for (uint32_t i = 0; i < WORLD; i++)
            assert_true(engine_start(engines[i], ops[i]));
        settle();
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_int_equal(ops[i]->phase, PHASE_DONE);
            assert_int_equal(ops[i]->result, pcclSuccess);
            assert_ptr_equal(ops[i]->r.recvbuf, i == CENTER ? out[i] : NULL);
        }
        for (uint64_t k = 0; k < FEW; k++)
            assert_int_equal(out[CENTER][k], 6 * (k + 1));
        (void)teardown_star(state);
        assert_int_equal(setup_star(state), 0);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_star, teardown_star)
    const struct CMUnitTest tests[] = {
        TEST(test_returns_at_once),
        TEST(test_one_wants_to_know),
        TEST(test_the_center_wants_to_know),
        TEST(test_clean_if_all_are),
        TEST(test_launches_are_announced),
        TEST(test_a_root_that_has_launched_is_asked),
        TEST(test_the_input_comes_back),
        TEST(test_no_place_for_the_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
