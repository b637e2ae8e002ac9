/* hash.cu - the hash on a GPU: one warp per block of 64 KiB.
 *
 * A thread owns two of the 64 lanes, so a warp reads a row of 512 bytes with
 * one 16-byte load per thread and keeps sixteen rows in flight: four warps per
 * multiprocessor cover the latency of memory. The hardware assigns blocks to
 * idle thread groups, so there is no grid-stride loop with an uneven last
 * iteration. The sums make the order of warps irrelevant. */
#include "../src/hash/hash_core.h"

extern "C" {
#include "../src/hash/hash_cuda.h"
}

namespace
{

constexpr unsigned GROUP_WARPS = 4;

template <bool aligned>
__global__ void __launch_bounds__(GROUP_WARPS *HASH_WARP)
    hash_kernel(const uint8_t *__restrict__ data, uint64_t size, uint64_t first,
                uint64_t count, uint64_t *out, unsigned long long *sum)
{
    const uint64_t i =
        (uint64_t)blockIdx.x * GROUP_WARPS + threadIdx.x / HASH_WARP;
    if (i >= count) return; /* the whole warp */
    const uint64_t index = first + i;
    const unsigned thread = threadIdx.x % HASH_WARP;
    const unsigned shift = aligned ? 0 : (unsigned)((uintptr_t)data % 16);

    unsigned long long lanes =
        hash_thread_block(data, size, index, thread, shift);
    for (int width = HASH_WARP / 2; width > 0; width /= 2)
        lanes += __shfl_down_sync(0xffffffffu, lanes, width);
    if (thread != 0) return;
    const uint64_t hash =
        hash_block_finish(lanes, hash_block_size(size, index));
    if (out) out[i] = hash;
    if (sum) atomicAdd(sum, hash_block_sum(hash, index));
}

} // namespace

int hash_kernel_launch(const void *data, uint64_t size, uint64_t first,
                       uint64_t count, uint64_t *out, uint64_t *sum,
                       void *stream)
{
    const unsigned groups = (unsigned)((count + GROUP_WARPS - 1) / GROUP_WARPS);
    const uint8_t *bytes = static_cast<const uint8_t *>(data);
    auto *total = reinterpret_cast<unsigned long long *>(sum);
    auto *queue = static_cast<cudaStream_t>(stream);

    if ((uintptr_t)data % 16 == 0)
        hash_kernel<true><<<groups, GROUP_WARPS * HASH_WARP, 0, queue>>>(
            bytes, size, first, count, out, total);
    else
        hash_kernel<false><<<groups, GROUP_WARPS * HASH_WARP, 0, queue>>>(
            bytes, size, first, count, out, total);
    return (int)cudaGetLastError();
}
