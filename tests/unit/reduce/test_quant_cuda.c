/* test_quant_cuda.c - a GPU makes the bytes that the CPU makes: every way to
 * quantize, every operation, usual and special elements. Skipped (77) without
 * a GPU. */
#include "../../../src/reduce/quant_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef PCCL_HAVE_CUDA
#include <cuda_runtime_api.h>

enum { COUNT_MAX = 3000, SIZE = 8 * COUNT_MAX };

static uint8_t own[SIZE], other[SIZE], want[SIZE], got[SIZE], codes[SIZE];
static uint8_t *device_own, *device_codes, *device_out;

static uint64_t next_random(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 20 ^ state >> 44;
}

static int open_all(void **state)
{
    (void)state;
    return cudaMalloc((void **)&device_own, SIZE) != cudaSuccess ||
           cudaMalloc((void **)&device_codes, SIZE) != cudaSuccess ||
           cudaMalloc((void **)&device_out, SIZE) != cudaSuccess;
}

static int close_all(void **state)
{
    (void)state;
    (void)cudaFree(device_own);
    (void)cudaFree(device_codes);
    (void)cudaFree(device_out);
    return 0;
}

/* Any patterns, so NaN, infinities, subnormals and overflow; or with one
 * exponent, so ordinary blocks. */
static void elements_fill(enum dtype type, uint8_t *to, size_t count, bool any)
{
    static const uint64_t exponent[DTYPE_COUNT] = {[DTYPE_F16] = 0x3c00,
                                                   [DTYPE_BF16] = 0x3f80,
                                                   [DTYPE_F32] = 0x3f800000,
                                                   [DTYPE_F64] =
                                                       0x3ff0000000000000};
    static const uint64_t mantissa[DTYPE_COUNT] = {[DTYPE_F16] = 0x83ff,
                                                   [DTYPE_BF16] = 0x807f,
                                                   [DTYPE_F32] = 0x807fffff,
                                                   [DTYPE_F64] =
                                                       0x800fffffffffffff};
    size_t size = dtype_size(type);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = next_random() << 32 ^ next_random();
        if (!any) bits = (bits & mantissa[type]) | exponent[type];
        memcpy(to + i * size, &bits, size); /* little-endian */
    }
}

static void to_device(void *to, const void *from)
{
    assert_int_equal(cudaMemcpy(to, from, SIZE, cudaMemcpyHostToDevice),
                     cudaSuccess);
}

/* What the GPU wrote is what the CPU wrote, and nothing beyond. */
static void compare(size_t size)
{
    assert_int_equal(cudaMemcpy(got, device_out, SIZE, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    assert_memory_equal(got, want, size);
    for (size_t i = size; i < SIZE; i++) assert_int_equal(got[i], 0xa5);
}

static void clear(void)
{
    assert_int_equal(cudaMemset(device_out, 0xa5, SIZE), cudaSuccess);
}

static void same(const struct quant *q, size_t count, bool any)
{
    size_t coded = (size_t)quant_size(q, count);
    elements_fill(q->source, own, count, any);
    elements_fill(q->source, other, count, any);
    to_device(device_own, own);
    clear();
    quant_encode(q, want, own, count);
    assert_int_equal(quant_cuda_encode(q, device_out, device_own, count, NULL),
                     cudaSuccess);
    compare(coded);

    quant_encode(q, codes, other, count);
    to_device(device_codes, codes);
    clear();
    quant_decode(q, want, codes, count);
    assert_int_equal(
        quant_cuda_decode(q, device_out, device_codes, count, NULL),
        cudaSuccess);
    compare(count * dtype_size(q->source));

    static const enum redop ops[] = {REDOP_SUM, REDOP_AVG, REDOP_MAX,
                                     REDOP_MIN};
    for (uint32_t i = 0; i < 12; i++) {
        clear();
        quant_combine(q, ops[i % 4], want, codes, own, count, i / 4 * 7);
        assert_int_equal(quant_cuda_combine(q, ops[i % 4], device_out,
                                            device_codes, device_own, count,
                                            i / 4 * 7, NULL),
                         cudaSuccess);
        compare(coded);
    }
}

static void the_gpu_makes_the_same_bytes(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 127, 511, 512, 513, COUNT_MAX};
    for (int a = QUANT_MINMAX; a < QUANT_ALGORITHM_COUNT; a++) {
        for (int way = 0; way < DTYPE_COUNT * DTYPE_COUNT; way++) {
            const struct quant q = {(enum quant_algorithm)a,
                                    (enum dtype)(way / DTYPE_COUNT),
                                    (enum dtype)(way % DTYPE_COUNT)};
            if (quant_check(&q, REDOP_SUM)) continue;
            for (size_t c = 0; c < 2 * ARRAY_COUNT(counts); c++)
                same(&q, counts[c / 2], c % 2);
        }
    }
}

static void what_the_cpu_refuses_is_refused(void **state)
{
    (void)state;
    const struct quant q = {QUANT_MINMAX, DTYPE_F32, DTYPE_U32};
    assert_int_equal(quant_cuda_encode(&q, device_out, device_own, 1, NULL),
                     cudaErrorInvalidValue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gpu_makes_the_same_bytes),
        cmocka_unit_test(what_the_cpu_refuses_is_refused),
    };
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("no GPU: skipped");
        return 77;
    }
    return cmocka_run_group_tests_name("ring/quant_cuda", tests, open_all,
                                       close_all);
}

#else

int main(void)
{
    puts("built without CUDA: skipped");
    return 77;
}
#endif
