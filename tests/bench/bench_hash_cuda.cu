/* bench_hash_cuda.cu - GB/s of the hash kernel on a GPU beside CUB's sum of
 * 32-bit words and a device-to-device copy (which counts twice), 2^4 to 2^11 MB
 * as in figure 5 of the technical report.
 *
 *   bench_hash_cuda [largest MiB, 2048] */
extern "C" {
#include "hash_cuda.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cub/device/device_reduce.cuh>
#include <cuda_runtime.h>
#include <vector>

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
}
#define CHECK(call) check(call, #call)

/* Median milliseconds of fn(), which queues work on the default stream. */
template <typename F> static double median_ms(F fn)
{
    cudaEvent_t start, stop;
    std::vector<float> times(21);
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    fn();
    for (float &ms : times) {
        CHECK(cudaEventRecord(start));
        fn();
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaEventElapsedTime(&ms, start, stop));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

int main(int argc, char **argv)
{
    const size_t most = (size_t)(argc > 1 ? atol(argv[1]) : 2048) << 20;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU\n");
        return 77;
    }
    uint8_t *data = nullptr, *copy = nullptr;
    uint64_t *sum = nullptr;
    int *total = nullptr;
    void *scratch = nullptr;
    size_t scratch_size = 0;
    CHECK(cudaMalloc(&data, most));
    CHECK(cudaMalloc(&copy, most));
    CHECK(cudaMalloc(&sum, 8));
    CHECK(cudaMalloc(&total, 4));
    CHECK(cudaMemset(data, 0x5a, most));
    CHECK(cub::DeviceReduce::Sum(scratch, scratch_size, (const int *)data,
                                 total, most / 4));
    CHECK(cudaMalloc(&scratch, scratch_size));

    printf("%8s%10s%12s%10s%10s   GB/s\n", "MiB", "hash", "unaligned", "cub",
           "copy x2");
    for (size_t size = 16 << 20; size <= most; size *= 2) {
        const uint64_t blocks = hash_block_count(size);
        const double gb = (double)size * 1e-6;
        const double hash = median_ms([&] {
            CHECK((cudaError_t)hash_kernel_launch(data, size, 0, blocks,
                                                  nullptr, sum, nullptr));
        });
        const double odd = median_ms([&] {
            CHECK((cudaError_t)hash_kernel_launch(data + 4, size - 4, 0, blocks,
                                                  nullptr, sum, nullptr));
        });
        const double cub = median_ms([&] {
            CHECK(cub::DeviceReduce::Sum(scratch, scratch_size,
                                         (const int *)data, total, size / 4));
        });
        const double move = median_ms([&] {
            CHECK(cudaMemcpyAsync(copy, data, size, cudaMemcpyDeviceToDevice));
        });
        printf("%8zu%10.0f%12.0f%10.0f%10.0f\n", size >> 20, gb / hash,
               gb / odd, gb / cub, 2 * gb / move);
    }
    return 0;
}
