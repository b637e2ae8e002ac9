/* test_float_env.c - reductions and quantization give the same bits in every
 * floating-point environment that the caller's thread may have, and leave it
 * as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../src/reduce/quant.h"
#include "../../../src/reduce/reduce.h"
#include "float_env_test.h"

enum { COUNT = 3000, BYTES = 8 * COUNT, CODES = 2 * BYTES, WORLD = 3 };

static uint8_t input[WORLD][BYTES];

/* Numbers whose sums and quotients are not exact, and subnormal ones. */
static void fill(enum dtype type)
{
    size_t size = dtype_size(type);
    uint64_t x = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < (size_t)WORLD * COUNT; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t bits = x;
        /* The exponent: between -1 and 1, or 0, or anything of a half. */
        if (type == DTYPE_F32)
            bits = (x & 0x807fffff) | (i % 3 == 0 ? 0 : (x >> 40 & 3) + 125)
                                          << 23;
        if (type == DTYPE_F64)
            bits = (x & 0x800fffffffffffff) |
                   (i % 3 == 0 ? 0 : (x >> 9 & 3) + 1021) << 52;
        memcpy(input[i / COUNT] + i % COUNT * size, &bits, size);
    }
}

static void assert_same(const void *a, const void *b, size_t size,
                        enum dtype type, int op, int env)
{
    if (memcmp(a, b, size) != 0)
        fail_msg("%s, operation %d, environment %d", dtype_name(type), op, env);
}

static void test_reductions(void **state)
{
    (void)state;
    static uint8_t want[BYTES], got[BYTES];
    for (enum dtype type = 0; type < DTYPE_COUNT; type++) {
        size_t size = COUNT * dtype_size(type);
        fill(type);
        for (enum redop op = 0; op < REDOP_COUNT; op++) {
            for (int env = 0; env < ENVS; env++) {
                env_set(env);
                uint64_t before = env_bits();
                reduce_apply(type, op, got, input[0], input[1], COUNT);
                reduce_divide(type, got, COUNT, 3);
                uint64_t after = env_bits();
                env_set(0);
                assert_true(before == after);
                if (env == 0) memcpy(want, got, size);
                assert_same(want, got, size, type, (int)op, env);
            }
        }
    }
}

static void quantize(const struct quant *q, uint8_t *out)
{
    static uint8_t codes[WORLD * CODES];
    size_t size = COUNT * dtype_size(q->source);
    memset(codes, 0, sizeof codes);
    for (int r = 0; r < WORLD; r++)
        quant_encode(q, codes + r * CODES, input[r], COUNT);
    quant_fold(q, REDOP_SUM, out, codes, CODES, WORLD, COUNT, WORLD);
    quant_combine(q, REDOP_SUM, codes, codes, input[1], COUNT, 0);
    quant_combine(q, REDOP_SUM, codes, codes, input[2], COUNT, WORLD);
    quant_decode(q, out + size, codes, COUNT);
    memcpy(out + 2 * size, codes, quant_size(q, COUNT));
}

static void test_quantization(void **state)
{
    (void)state;
    static uint8_t want[2 * BYTES + CODES], got[2 * BYTES + CODES];
    for (enum dtype type = DTYPE_F16; type <= DTYPE_F64; type++) {
        fill(type);
        for (int k = QUANT_MINMAX; k < QUANT_ALGORITHM_COUNT; k++) {
            struct quant q = {(enum quant_algorithm)k, type, DTYPE_U8};
            for (int env = 0; env < ENVS; env++) {
                memset(got, 0, sizeof got);
                env_set(env);
                uint64_t before = env_bits();
                quantize(&q, got);
                uint64_t after = env_bits();
                env_set(0);
                assert_true(before == after);
                if (env == 0) memcpy(want, got, sizeof got);
                assert_same(want, got, sizeof got, type, k, env);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_quantization),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
