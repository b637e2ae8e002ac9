/* test_result_cache.c - how long a returned result is cached for others
 * (D5..D7).
 *
 * Three engines; the test decides which of them receives from which. Engine 0
 * has returned operation X, engine 1 still lacks engine 2's part of it. In
 * every continuation 0 must be able to donate X until 1 has it. */
#include "engines.h"

#include "../../../src/ring/algorithm.h"

static uint64_t in[WORLD], out[WORLD], text[WORLD];

static struct op *launch(uint32_t i, uint64_t tag, bool broadcast,
                         const uint64_t *scope, uint32_t scope_size)
{
    struct op_request r = {.call.tag = tag,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.members = scope,
                           .call.member_count = scope_size};
    r.plan.coll = broadcast ? COLL_BROADCAST : COLL_ALLREDUCE;
    r.plan.count = broadcast ? 8 : 1;
    r.plan.element = broadcast ? 1 : 8;
    r.call.sendbuf = &in[i];
    r.call.recvbuf = broadcast ? &text[i] : &out[i];
    return engine_launch(engines[i], &r, false);
}

/* Tag 1, sequence 0: true if engine 0 can donate it. */
static bool donor(void)
{
    struct wire_op op = {.tag = 1};
    engine_query(engines[0], &op);
    assert_int_equal(op.state, OP_RETURNED);
    return op.donor;
}

static struct op *x[WORLD];

static void x_in_doubt(void)
{
    deaf[1][2] = true;
    for (uint32_t i = 0; i < WORLD; i++) {
        in[i] = 1u << i;
        x[i] = launch(i, 1, false, NULL, 0);
        assert_non_null(x[i]);
    }
    settle();
    assert_int_equal(x[0]->phase, PHASE_DONE);
    assert_int_equal(x[1]->phase, PHASE_RUNNING);
    assert_int_equal(x[2]->phase, PHASE_DONE);
    assert_int_equal(out[0], 7);
    engine_release(engines[0], x[0]);
    engine_release(engines[2], x[2]);
    assert_true(donor());
}

static void broadcast_from_0(uint64_t tag, const uint64_t *scope, uint32_t size)
{
    struct op *y[WORLD] = {0};
    for (uint32_t i = 0; i < WORLD; i++) {
        if (!scope || i != 1) y[i] = launch(i, tag, true, scope, size);
    }
    settle();
    assert_int_equal(y[0]->phase, PHASE_DONE); /* confirmed by all */
    for (uint32_t i = 0; i < WORLD; i++) {
        if (y[i] && y[i]->phase == PHASE_DONE) engine_release(engines[i], y[i]);
    }
}

/* Rule D6: the next one of its tag is launched, and not yet held. */
static void test_kept_while_the_next_one_runs(void **state)
{
    (void)state;
    x_in_doubt();
    assert_non_null(launch(0, 1, false, NULL, 0));
    assert_non_null(launch(2, 1, false, NULL, 0));
    settle();
    assert_true(donor());
}

static void test_kept_while_another_operation_ends(void **state)
{
    (void)state;
    x_in_doubt();
    broadcast_from_0(2, NULL, 0);
    assert_true(donor()); /* engine 1 sent DONE, but not clean */
}

static void test_kept_though_a_scope_is_clean(void **state)
{
    (void)state;
    x_in_doubt();
    static const uint64_t scope[] = {10, 12};
    broadcast_from_0(3, scope, 2);
    assert_true(donor()); /* engine 2 was clean, but 1 was not asked */
}

/* Engine 1 was clean when it sent DONE, and began X only then. */
static void test_kept_if_it_ended_after_the_launch(void **state)
{
    (void)state;
    struct op *y[WORLD];
    for (uint32_t i = 0; i < 2; i++) y[i] = launch(i, 2, true, NULL, 0);
    settle();
    x_in_doubt();
    y[2] = launch(2, 2, true, NULL, 0);
    settle();
    assert_int_equal(y[0]->phase, PHASE_DONE);
    assert_true(donor());
}

/* A ring, whose result no member has before all have launched. Its DONEs are
 * passed on along it, or go from everyone to everyone (rule D4). */
static bool direct;

static struct op *launch_ring(uint32_t i, uint64_t tag, const uint64_t *scope,
                              uint32_t scope_size)
{
    enum { COUNT = 160 * 1024 };
    static uint64_t much[2][WORLD][COUNT];
    struct op_request r = {.call.tag = tag,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = much[0][i],
                           .call.recvbuf = much[1][i],
                           .call.members = scope,
                           .call.member_count = scope_size};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = COUNT;
    r.plan.element = 8;
    view_in(engines[i])->mesh = direct;
    struct op *op = engine_launch(engines[i], &r, false);
    view_in(engines[i])->mesh = true;
    assert_non_null(op);
    assert_ptr_equal(op->plan.algorithm, &allreduce_ring);
    assert_int_equal(op->plan.done, direct ? DONE_PAIRS : DONE_RING);
    return op;
}

static void reduce_much(uint64_t tag, const uint64_t *scope, uint32_t size)
{
    struct op *y[WORLD] = {0};
    for (uint32_t i = 0; i < WORLD; i++) {
        if (!scope || i != 1) y[i] = launch_ring(i, tag, scope, size);
    }
    settle();
    for (uint32_t i = 0; i < WORLD; i++) {
        if (!y[i]) continue;
        assert_int_equal(y[i]->phase, PHASE_DONE);
        engine_release(engines[i], y[i]);
    }
}

/* As in the scope above, but its DONEs are later than x. */
static void test_kept_though_a_ring_of_a_scope_is_clean(void **state)
{
    (void)state;
    x_in_doubt();
    static const uint64_t scope[] = {10, 12};
    reduce_much(3, scope, 2);
    assert_true(donor());
}

/* Y is a ring. Engine 2 sends the last of it to engine 0 only behind its part
 * of X, when it has X. It is clean then, and engine 1 was before X. */
static void test_kept_if_it_was_begun_in_a_ring(void **state)
{
    (void)state;
    struct op *before[WORLD];
    struct op *y[WORLD];
    for (uint32_t i = 0; i < WORLD; i++)
        before[i] = launch(i, 9, false, NULL, 0);
    settle();
    for (uint32_t i = 0; i < WORLD; i++) {
        y[i] = launch_ring(i, 2, NULL, 0);
        engine_release(engines[i], before[i]); /* its place will be x's */
    }
    const struct endpoint *last = &y[2]->eps[y[2]->ep_count - 1];
    assert_int_equal(last->link->id, ids[0]);
    while (last->sent + 1 < last->sends) settle_for(1);
    mute[2][0] = true;
    settle();
    assert_int_equal(y[0]->phase, PHASE_RUNNING);
    assert_int_equal(y[1]->phase, PHASE_COMPLETE);
    assert_int_equal(y[2]->phase, PHASE_RUNNING);
    mute[2][0] = false;
    x_in_doubt();
    assert_int_equal(y[0]->phase, PHASE_DONE);
    assert_true(y[0]->cleared); /* all were clean */
}

/* Engine 2's part of X stays under way, as over a slow connection of several;
 * what it sent later arrives. */
static void x_is_overtaken(void)
{
    enum { FRAME = FRAME_SIZE + sizeof out[0] };
    size_t size = flying[1][2].size;
    assert_true(size >= FRAME);
    flying[1][2].size = size - FRAME;
    memmove(flying[1][2].bytes, flying[1][2].bytes + FRAME, size - FRAME);
    deaf[1][2] = false;
}

/* Engine 1 runs X all through a ring of all members, and reports it. */
static void test_kept_if_a_member_is_not_clean(void **state)
{
    (void)state;
    x_in_doubt();
    x_is_overtaken();
    reduce_much(3, NULL, 0);
    assert_int_equal(x[1]->phase, PHASE_RUNNING);
    assert_true(donor());
}

static void dropped_when_all_are_clean(void)
{
    x_in_doubt();
    deaf[1][2] = false;
    settle();
    assert_int_equal(x[1]->phase, PHASE_DONE);
    assert_int_equal(out[1], 7);
    broadcast_from_0(2, NULL, 0);
    assert_true(donor()); /* its DONEs may be older than x */
    reduce_much(3, NULL, 0);
    assert_false(donor());
}

static void test_dropped_when_all_are_clean(void **state)
{
    (void)state;
    dropped_when_all_are_clean();
}

static void test_dropped_when_all_have_said_so(void **state)
{
    (void)state;
    direct = true;
    dropped_when_all_are_clean();
    direct = false;
}

static void test_dropped_by_the_next_of_its_tag(void **state)
{
    (void)state;
    x_in_doubt();
    deaf[1][2] = false;
    settle();
    engine_release(engines[1], x[1]);
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 5, false, NULL, 0);
    settle();
    assert_true(donor()); /* another tag confirms nothing */
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 1, false, NULL, 0);
    settle();
    assert_false(donor());
}

/* There are RESULTS_MAX slots. A dropped result returns its slot, so another
 * batch of operations returns at once as well (D5). */
static void test_slots_are_given_back(void **state)
{
    (void)state;
    enum { LOT = RESULTS_MAX * 3 / 4 };
    for (uint64_t first = 1; first <= 2 * LOT + 1; first += LOT) {
        for (uint64_t tag = first; tag < first + LOT; tag++) {
            struct op *y[WORLD];
            for (uint32_t i = 0; i < WORLD; i++)
                y[i] = launch(i, tag, false, NULL, 0);
            for (uint32_t i = 0; i < WORLD; i++) assert_false(y[i]->confirm);
            settle();
            for (uint32_t i = 0; i < WORLD; i++)
                engine_release(engines[i], y[i]);
        }
        reduce_much(1000 + first, NULL, 0);
        for (uint32_t i = 0; i < WORLD; i++)
            assert_true(engines[i]->results_used == 0);
    }
}

static void test_a_donation_is_the_result(void **state)
{
    (void)state;
    x_in_doubt();
    uint32_t size = 0;
    const uint8_t *bytes = engine_donation(engines[0], 0, 1, 0, &size);
    assert_non_null(bytes);
    assert_int_equal(size, 8);
    engine_freeze(engines[1]);
    engine_accept_donation(engines[1], 0, 1, 0, bytes, size);
    assert_int_equal(x[1]->phase, PHASE_COMPLETE);
    assert_int_equal(out[1], 7);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_kept_while_the_next_one_runs),
        TEST(test_kept_while_another_operation_ends),
        TEST(test_kept_though_a_scope_is_clean),
        TEST(test_kept_if_it_ended_after_the_launch),
        TEST(test_kept_though_a_ring_of_a_scope_is_clean),
        TEST(test_kept_if_it_was_begun_in_a_ring),
        TEST(test_kept_if_a_member_is_not_clean),
        TEST(test_dropped_when_all_are_clean),
        TEST(test_dropped_when_all_have_said_so),
        TEST(test_dropped_by_the_next_of_its_tag),
        TEST(test_slots_are_given_back),
        TEST(test_a_donation_is_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
