/* test_eager.c - what is sent before the other end is known to have launched
 * (D2). Three engines, whose links the test moves. */
#include "engines.h"

enum {
    COUNT = EAGER_MAX / 8,
    FILLING = EAGER_LINK_MAX / EAGER_MAX, /* operations that use up a link */
    COMMON = 100,                         /* the tag that both launch */
};

static uint64_t in[COUNT], out[2 * FILLING + 2][COUNT];

static struct op *launch(uint32_t i, uint64_t tag, uint64_t *result)
{
    static const uint64_t scope[] = {10, 11};
    struct op_request r = {.tag = tag,
                           .dtype = DTYPE_U64,
                           .redop = REDOP_SUM,
                           .send = in,
                           .recv = result,
                           .members = scope,
                           .member_count = 2};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = COUNT;
    r.plan.element = 8;
    struct op *op = engine_launch(engines[i], &r, false);
    assert_non_null(op);
    assert_int_equal(op->plan.kind, PLAN_EXCHANGE);
    return op;
}

/* Both begin as much as may be sent ahead, of which the other will launch
 * nothing before what they have in common is done; and that as the last. */
static void test_what_is_common_passes_what_is_not(void **state)
{
    (void)state;
    struct op *common[2];
    for (uint32_t i = 0; i < COUNT; i++) in[i] = i;
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < FILLING; k++)
            (void)launch(i, i * FILLING + k, out[i * FILLING + k]);
        common[i] = launch(i, COMMON, out[2 * FILLING + i]);
    }
    settle();
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(common[i]->phase, PHASE_DONE);
        for (uint32_t k = 0; k < COUNT; k++)
            assert_int_equal(out[2 * FILLING + i][k], 2 * k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_common_passes_what_is_not,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
