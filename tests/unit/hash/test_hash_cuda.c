/* test_hash_cuda.c - tests that GPU and CPU compute the same hash: sizes,
 * starts, block lists, streams. Skipped (77) without a GPU. */
#include "hash_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifdef PCCL_HAVE_CUDA
#include <cuda_runtime_api.h>

enum { SIZE = 9 << 20, SHIFTS = 17 };

static struct hash_cuda *ctx;
static uint8_t *host, *device;

static int open_all(void **state)
{
    (void)state;
    host = malloc(SIZE + SHIFTS);
    if (!host || cudaMalloc((void **)&device, SIZE + SHIFTS) != cudaSuccess)
        return -1;
    uint64_t x = 1;
    for (size_t i = 0; i < SIZE + SHIFTS; ++i) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
        host[i] = (uint8_t)(x >> 56);
    }
    if (cudaMemcpy(device, host, SIZE + SHIFTS, cudaMemcpyHostToDevice) !=
        cudaSuccess)
        return -1;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    free(host);
    (void)cudaFree(device);
    hash_cuda_close(ctx);
    return 0;
}

static void assert_same(size_t start, uint64_t size)
{
    static uint64_t list[SIZE / HASH_BLOCK_SIZE + 1];
    assert_true(hash_cuda_blocks(ctx, device + start, size, 0,
                                 hash_block_count(size), NULL, list));
    assert_true(hash_combine(list, size) == hash_bytes(host + start, size, 1));
}

static void test_sizes(void **state)
{
    (void)state;
    for (size_t start = 0; start < SHIFTS; ++start) {
        for (uint64_t size = 0; size < 1100; size += 1 + start % 7)
            assert_same(start, size);
        for (uint64_t blocks = 1; blocks <= 5; ++blocks)
            for (uint64_t d = 0; d <= 80; ++d)
                assert_same(start, blocks * HASH_BLOCK_SIZE - 40 + d);
        assert_same(start, SIZE);
    }
}

static void test_blocks(void **state)
{
    enum { COUNT = SIZE / HASH_BLOCK_SIZE };
    static uint64_t want[COUNT], have[COUNT];
    cudaStream_t stream;
    (void)state;
    assert_int_equal(cudaStreamCreate(&stream), cudaSuccess);
    for (size_t start = 0; start < SHIFTS; start += 4) {
        const uint64_t first = start, count = COUNT - 3 - 2 * start;
        hash_blocks(host + start, SIZE, first, count, want, 1);
        assert_true(hash_cuda_blocks(ctx, device + start, SIZE, first, count,
                                     stream, have));
        assert_memory_equal(want, have, count * sizeof(want[0]));
    }
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_blocks),
    };
    ctx = hash_cuda_open(0);
    if (!ctx) {
        printf("no GPU: skipped\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, open_all, close_all);
}
#else
int main(void)
{
    if (hash_cuda_open(0)) return 1;
    hash_cuda_close(NULL);
    printf("built without CUDA: skipped\n");
    return 77;
}
#endif
