/* test_quant_op.c - quantized all-reduces in three engines: the same bits
 * everywhere, few bytes, and the input back wherever they are stopped. */
#include "engines.h"

#include "../../../src/ring/algorithm.h"

#include "../../../include/pccl.h"

enum { COUNT_MAX = 300000 };

static float send[WORLD][COUNT_MAX], recv[WORLD][COUNT_MAX];
static float before[COUNT_MAX];
static struct op *ops[WORLD];

static float element(uint32_t rank, size_t i)
{
    return (float)((i * 2654435761u >> 7) % 1000) / 999 - (float)rank;
}

static void launch(size_t count, bool in_place, enum quant_algorithm algorithm,
                   uint64_t tag)
{
    for (uint32_t r = 0; r < WORLD; r++) {
        for (size_t i = 0; i < count; i++) send[r][i] = element(r, i);
        memset(recv[r], 0xff, count * sizeof recv[r][0]);
        struct op_request q = {.call.tag = tag,
                               .call.dtype = DTYPE_F32,
                               .call.redop = REDOP_SUM,
                               .call.sendbuf = send[r],
                               .call.recvbuf = in_place ? send[r] : recv[r]};
        q.plan.coll = COLL_ALLREDUCE;
        q.plan.count = count;
        q.plan.element = sizeof(float);
        if (algorithm != QUANT_NONE) engine_quantize(&q, algorithm, DTYPE_U8);
        ops[r] = engine_launch(engines[r], &q, false);
        assert_non_null(ops[r]);
    }
}

static void check(size_t count, bool in_place)
{
    const float *first = in_place ? send[0] : recv[0];
    for (uint32_t r = 0; r < WORLD; r++) {
        assert_int_equal(ops[r]->phase, PHASE_DONE);
        assert_int_equal(ops[r]->result, pcclSuccess);
        assert_memory_equal(in_place ? send[r] : recv[r], first,
                            count * sizeof *first);
        engine_release(engines[r], ops[r]);
    }
    /* Blocks span at most 1, 2 and 3 in transit, in 255 steps each. */
    for (size_t i = 0; i < count; i++) {
        float want = element(0, i) + element(1, i) + element(2, i);
        float off = first[i] - want;
        assert_true(off < 0.52f * 9 / 255 && off > -0.52f * 9 / 255);
    }
}

/* Flat all-reduces and rings; the last block full and not. */
static const size_t counts[] = {1, 511, 513, 1024, 20000, COUNT_MAX};

static void test_same_bits_everywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4 * ARRAY_COUNT(counts); i++) {
        size_t count = counts[i / 4];
        launch(count, i % 2, i & 2 ? QUANT_ZERO_POINT_SCALE : QUANT_MINMAX, i);
        assert_ptr_equal(ops[0]->plan.algorithm, count > 100000
                                                     ? &allreduce_ring_codes
                                                     : &allreduce_flat_codes);
        settle();
        check(count, i % 2);
    }
}

/* Sent by all, headers and control frames included. */
static void test_few_bytes(void **state)
{
    (void)state;
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        uint64_t start = carried;
        launch(COUNT_MAX, false, i ? QUANT_MINMAX : QUANT_NONE, (uint64_t)i);
        settle();
        bytes[i] = (double)(carried - start);
        uint64_t codes = quant_size(&ops[1]->r.quant, COUNT_MAX);
        uint64_t vector = i ? codes : 4 * COUNT_MAX;
        assert_in_range(ops[0]->tx_bytes, vector * 4 / 3 - 3000,
                        vector * 4 / 3 + 3000);
        for (uint32_t r = 0; r < WORLD; r++) engine_release(engines[r], ops[r]);
    }
    assert_true(bytes[0] / bytes[1] >= 3.9);
}

/* Returns whether all were done; adds up whether one held the result. */
static bool stop_after(size_t count, uint32_t rounds, bool *held)
{
    bool over = true;
    for (uint32_t r = 0; r < WORLD && rounds % 2; r++) {
        engines[r]->input_large = 0;
        engines[r]->input_block = 1000;
    }
    launch(count, true, QUANT_MINMAX, 1);
    settle_for(rounds);
    for (uint32_t r = 0; r < WORLD; r++) {
        struct op *op = ops[r];
        engine_freeze(engines[r]);
        if (op->phase == PHASE_DONE) continue;
        over = false;
        *held |= op->phase == PHASE_COMPLETE;
        engine_finish(engines[r], op, pcclRankConnectionLost);
        for (size_t i = 0; i < count; i++) before[i] = element(r, i);
        assert_memory_equal(send[r], before, count * sizeof before[0]);
    }
    return over;
}

/* At any moment, with complete or partial results: contract C2. */
static void test_restored_wherever_stopped(void **state)
{
    static const size_t sizes[] = {20000, COUNT_MAX};
    bool held = false, over = false;
    for (size_t s = 0; s < ARRAY_COUNT(sizes); s++) {
        over = false;
        for (uint32_t rounds = 0; !over; rounds++) {
            over = stop_after(sizes[s], rounds, &held);
            (void)teardown(state);
            assert_int_equal(setup(state), 0);
        }
    }
    assert_true(held);
}

/* A member that lacks a committed result is given the elements, not the
 * codes. */
static void test_a_donation_is_elements(void **state)
{
    (void)state;
    deaf[1][2] = true;
    launch(1000, true, QUANT_MINMAX, 1);
    settle();
    assert_int_equal(ops[0]->phase, PHASE_DONE);
    assert_int_equal(ops[1]->phase, PHASE_RUNNING);
    uint32_t size = 0;
    const uint8_t *bytes = engine_donation(engines[0], 0, 1, 0, &size);
    assert_non_null(bytes);
    assert_int_equal(size, 1000 * sizeof(float));
    engine_freeze(engines[1]);
    memcpy(before, send[1], size);
    engine_accept_donation(engines[1], 0, 1, 0, bytes, size);
    assert_int_equal(ops[1]->phase, PHASE_COMPLETE);
    assert_memory_equal(ops[1]->r.recvbuf, send[0], size);
    engine_finish(engines[1], ops[1], pcclRankConnectionLost);
    assert_memory_equal(send[1], before, size);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_same_bits_everywhere),
        TEST(test_few_bytes),
        TEST(test_restored_wherever_stopped),
        TEST(test_a_donation_is_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
