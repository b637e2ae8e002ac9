/* test_sync_cuda.c - tests of shared state between host memory and a real GPU.
 * Skipped without a GPU. */
#include "cast.h"

#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 40 * 1000 * 1000 + 3 };

static struct cast cast;
static uint8_t *host, *copy, *device;

static void stage(uint64_t revision)
{
    cast_clear(&cast);
    cast_tensor(&cast, 0, "weights", host + 1, SIZE, pcclUint8);
    cast_tensor(&cast, 1, "weights", device + 5, SIZE, pcclUint8);
    cast.actors[1].infos[0].device_type = pcclDeviceCuda;
    for (int i = 0; i < 2; i++) cast.actors[i].state.revision = revision;
}

static void assert_equal(size_t received)
{
    cast_run(&cast);
    for (int i = 0; i < 2; i++) {
        if (cast.actors[i].result != pcclSuccess)
            fail_msg("%s", cast.actors[i].error);
    }
    size_t rx = cast.actors[0].info.rx_bytes + cast.actors[1].info.rx_bytes;
    assert_int_equal(rx, received);
    assert_int_equal(cudaMemcpy(copy, device + 5, SIZE, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    assert_memory_equal(copy, host + 1, SIZE);
}

static void test_host_to_gpu_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE; i++) host[i + 1] = (uint8_t)(i * 31 + i / 999);
    stage(0); /* the lowest rank wins a tie */
    assert_equal(SIZE);
    stage(1);
    assert_equal(0);
    /* Only the peer with the GPU has the right revision. */
    host[SIZE / 2] ^= 1;
    stage(2);
    cast.actors[0].state.revision = 1;
    assert_equal(65536);
}

int main(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("no CUDA device");
        return 77;
    }
    host = malloc(SIZE + 8);
    copy = malloc(SIZE);
    if (!host || !copy || cudaMalloc((void **)&device, SIZE + 8) != cudaSuccess)
        return 1;
    cast_open(&cast, 5000);
    cast_join(&cast, 0, 0);
    cast_join(&cast, 1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_to_gpu_and_back),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cast_close(&cast);
    return failed;
}
