/* test_no_memory.c - a launch that has no memory leaves nothing behind: the
 * next launch of the tag is the operation that the others have launched (D1).
 * Three engines. One of them is refused memory, once at each place that asks
 * for it. */
#include "engines.h"

#include "../../../include/pccl.h"

enum { MOST = 1 << 20, NEVER = 1000 };

static uint8_t in[WORLD][MOST], out[WORLD][3 * MOST];
static size_t sizes[WORLD], places[WORLD];
static uint32_t allowed = NEVER; /* blocks until one is refused */

void *__real_pool_take(struct pool *p, size_t size);
void *__wrap_pool_take(struct pool *p, size_t size);

void *__wrap_pool_take(struct pool *p, size_t size)
{
    if (allowed == 0) return NULL;
    if (allowed != NEVER) allowed--;
    return __real_pool_take(p, size);
}

static struct op *launch(uint32_t i, enum plan_coll coll, uint64_t count)
{
    static const uint64_t scope[] = {10, 11, 12};
    struct op_request r = {.call.tag = 7,
                           .call.dtype = DTYPE_U8,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = in[i],
                           .call.recvbuf = out[i],
                           .call.members = scope,
                           .call.member_count = WORLD};
    r.plan.coll = coll;
    r.plan.count = count;
    r.plan.element = 1;
    r.plan.send_bytes = r.plan.recv_bytes = sizes;
    r.plan.send_displs = r.plan.recv_displs = places;
    return engine_launch(engines[i], &r, false);
}

static void end_of_all(void)
{
    settle();
    for (uint32_t i = 0; i < WORLD; i++) {
        struct op *op = engine_find(engines[i], 7);
        assert_non_null(op);
        assert_int_equal(op->phase, PHASE_DONE);
        assert_int_equal(op->result, pcclSuccess);
        engine_release(engines[i], op);
    }
}

static void run(enum plan_coll coll, uint64_t count)
{
    for (uint32_t i = 0; i < WORLD; i++)
        assert_non_null(launch(i, coll, count));
    end_of_all();
}

/* The launch fails at each block in turn, and then succeeds. */
static void fails_and_goes_on(enum plan_coll coll, uint64_t count)
{
    run(coll, count); /* links have their buffers */
    bool refused = true;
    for (uint32_t k = 0; refused; k++) {
        uint32_t reserved = engines[0]->reserved;
        allowed = k;
        bool launched = launch(0, coll, count) != NULL;
        refused = allowed == 0;
        allowed = NEVER;
        if (!launched) {
            assert_null(engine_find(engines[0], 7));
            assert_int_equal(engines[0]->reserved, reserved);
            assert_int_equal(engines[0]->active, 0);
            assert_non_null(launch(0, coll, count));
        }
        assert_non_null(launch(1, coll, count));
        assert_non_null(launch(2, coll, count));
        end_of_all();
    }
}

static void test_every_block_of_a_launch(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 8, 100000, MOST};
    for (uint32_t i = 0; i < WORLD; i++) {
        sizes[i] = 1000;
        places[i] = i * 1000;
    }
    for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
        for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
            fails_and_goes_on((enum plan_coll)coll, counts[i]);
    }
}

static uint32_t failures;

static void count_failure(void *user, enum engine_fault fault,
                          const struct op *op, uint64_t peer)
{
    (void)user;
    (void)op;
    (void)peer;
    assert_int_equal(fault, FAULT_FAIL);
    failures++;
}

/* It cannot start again in the next epoch: it asks that the operation fail for
 * all, is listed as running, and closes no connection of those that go on. */
static void test_no_memory_to_start_again(void **state)
{
    (void)state;
    static const uint64_t counts[] = {8, MOST};
    engines[0]->out.fault = count_failure;
    for (uint32_t k = 0; k < ARRAY_COUNT(counts); k++) {
        struct wire_op listed[OPS_MAX];
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_non_null(launch(i, COLL_ALLREDUCE, counts[k]));
            engine_freeze(engines[i]);
        }
        install_all(2 + k);
        struct op *op = engine_find(engines[0], 7);
        allowed = 0;
        assert_false(engine_start(engines[0], op));
        assert_true(engine_start_failing(engines[0], op));
        allowed = NEVER;
        assert_int_equal(failures, k + 1);
        for (uint32_t i = 1; i < WORLD; i++)
            assert_true(engine_start(engines[i], engine_find(engines[i], 7)));
        settle();
        for (uint32_t i = 0; i < WORLD; i++) {
            engine_freeze(engines[i]);
            struct wire_msg list = {.type = WIRE_FLUSHED};
            assert_true(engine_list(engines[i], &list, listed));
            assert_int_equal(list.op_count, 1);
            assert_int_equal(listed[0].state, OP_RUNNING);
            engine_listed(engines[i], &list);
            engine_finish(engines[i], engine_find(engines[i], 7),
                          pcclOperationFailed);
            engine_release(engines[i], engine_find(engines[i], 7));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_block_of_a_launch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_memory_to_start_again, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
