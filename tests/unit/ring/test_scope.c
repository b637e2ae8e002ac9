/* test_scope.c - operations of several scopes with one tag: rules F3, D1. */
#include "engines.h"

#include "../../../src/base/scope.h"

static uint64_t in[WORLD], out[WORLD];

static struct op *launch(uint32_t i, uint64_t tag, const uint64_t *scope,
                         uint32_t scope_size)
{
    in[i] = 1u << i;
    struct op_request r = {.call.tag = tag,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = &in[i],
                           .call.recvbuf = &out[i],
                           .call.members = scope,
                           .call.member_count = scope_size};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = 1;
    r.plan.element = 8;
    struct op *op = engine_launch(engines[i], &r, false);
    assert_non_null(op);
    return op;
}

static const uint64_t pair[] = {10, 11};
static const uint64_t other[] = {10, 12};

static void take(uint32_t i, struct op *op, uint64_t sum)
{
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(out[i], sum);
    engine_release(engines[i], op);
}

/* Engine 2 never heard of the operations of the pair. */
static void test_a_tag_goes_from_one_scope_to_another(void **state)
{
    (void)state;
    for (uint32_t times = 0; times < 3; times++) {
        struct op *a = launch(0, 7, pair, 2);
        struct op *b = launch(1, 7, pair, 2);
        settle();
        take(0, a, 3);
        take(1, b, 3);
        struct op *all[WORLD];
        for (uint32_t i = 0; i < WORLD; i++) all[i] = launch(i, 7, NULL, 0);
        settle();
        for (uint32_t i = 0; i < WORLD; i++) take(i, all[i], 7);
    }
}

/* Engine 2 and, in another scope, engine 1 are ahead of engine 0. */
static void test_each_scope_keeps_its_own_frames(void **state)
{
    (void)state;
    struct op *b = launch(1, 7, pair, 2);
    struct op *c = launch(2, 7, other, 2);
    settle();
    struct op *a = launch(0, 7, other, 2);
    settle();
    take(0, a, 5);
    take(2, c, 5);
    a = launch(0, 7, pair, 2);
    settle();
    take(0, a, 3);
    take(1, b, 3);
}

/* Engine 2 is ahead of engine 0, which runs another scope's operation. */
static void test_a_frame_of_another_scope_waits(void **state)
{
    (void)state;
    struct op *a = launch(0, 7, pair, 2);
    struct op *c = launch(2, 7, other, 2);
    settle();
    struct op *b = launch(1, 7, pair, 2);
    settle();
    take(0, a, 3);
    take(1, b, 3);
    a = launch(0, 7, other, 2);
    settle();
    take(0, a, 5);
    take(2, c, 5);
}

/* Results are asked for and donated by the whole name. */
static void test_a_result_belongs_to_its_scope(void **state)
{
    (void)state;
    struct op *a = launch(0, 7, pair, 2);
    struct op *b = launch(1, 7, pair, 2);
    settle();
    take(0, a, 3);
    take(1, b, 3);
    struct wire_op op = {.scope = scope_number(pair, 2), .tag = 7};
    engine_query(engines[0], &op);
    assert_int_equal(op.state, OP_RETURNED);
    assert_true(op.donor);
    uint32_t size;
    assert_non_null(engine_donation(engines[0], op.scope, 7, 0, &size));
    op.scope = 0;
    engine_query(engines[0], &op);
    assert_int_equal(op.state, OP_NOT_LAUNCHED);
    assert_false(op.donor);
    assert_null(engine_donation(engines[0], 0, 7, 0, &size));
}

static void test_the_number_is_that_of_a_set(void **state)
{
    (void)state;
    static const uint64_t turned[] = {11, 10};
    assert_true(scope_number(NULL, 0) == 0);
    assert_true(scope_number(pair, 2) == scope_number(turned, 2));
    assert_true(scope_number(pair, 2) != scope_number(other, 2));
    assert_true(scope_number(pair, 2) != scope_number(pair, 1));
    assert_true(scope_number(pair, 1) != 0);
}

static bool tags_are_short;

static void on_tags(void *user, enum engine_fault fault, const struct op *op,
                    uint64_t peer)
{
    (void)user;
    (void)op;
    (void)peer;
    assert_int_equal(fault, FAULT_TAGS);
    tags_are_short = true;
}

/* Each name is used once. The next epoch comes some launches later than the
 * request for it. */
static void test_a_million_names(void **state)
{
    (void)state;
    enum { NAMES = 1000 * 1000, LATER = 1000 };
    static const uint64_t self[] = {10};
    uint32_t epoch = 1;
    uint32_t due = 0;
    size_t used = 0;
    engines[0]->out.fault = on_tags;
    for (uint32_t i = 0; i < NAMES; i++) {
        take(0, launch(0, i, self, 1), 1);
        if (i == 0) used = engines[0]->links.pool.in_use;
        due += tags_are_short;
        if (due < LATER) continue;
        due = 0;
        tags_are_short = false;
        install_all(++epoch);
    }
    assert_in_range(epoch, NAMES / TAGS_MAX, 2 * NAMES / TAGS_MAX);
    assert_int_equal(engines[0]->links.pool.in_use, used);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_tag_goes_from_one_scope_to_another),
        TEST(test_each_scope_keeps_its_own_frames),
        TEST(test_a_frame_of_another_scope_waits),
        TEST(test_a_result_belongs_to_its_scope),
        TEST(test_the_number_is_that_of_a_set),
        TEST(test_a_million_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
