/* test_expf.cu - tests that expf() on this GPU is bit-identical to other GPUs:
 * sum and xor of its results over all 2^32 floats equal the values in the
 * technical report (appendix A.2). Skipped (77) without a GPU. */
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

static const unsigned long long SUM_EXPECTED = 4602279786742895247ull;
static const unsigned XOR_EXPECTED = 0x45abda35u;

struct digest {
    unsigned long long sum;
    unsigned xored;
};

__global__ void expf_all(digest *out)
{
    const unsigned step = gridDim.x * blockDim.x; /* a power of two */
    const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long sum = 0;
    unsigned xored = 0;
    unsigned i = first;
    do {
        const unsigned bits = __float_as_uint(expf(__uint_as_float(i)));
        sum += bits;
        xored ^= bits;
        i += step;
    } while (i != first); /* once around */
    atomicAdd(&out->sum, sum);
    atomicXor(&out->xored, xored);
}

int main()
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
        return 77;
    }
    digest *device = nullptr, host = {0, 0};
    bool ok = cudaMalloc(&device, sizeof(host)) == cudaSuccess &&
              cudaMemset(device, 0, sizeof(host)) == cudaSuccess;
    if (ok) {
        expf_all<<<1024, 256>>>(device);
        ok = cudaGetLastError() == cudaSuccess &&
             cudaMemcpy(&host, device, sizeof(host), cudaMemcpyDeviceToHost) ==
                 cudaSuccess;
    }
    if (!ok) {
        printf("the GPU failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    cudaFree(device);
    printf("sum %llu, xor 0x%08x\n", host.sum, host.xored);
    return host.sum != SUM_EXPECTED || host.xored != XOR_EXPECTED;
}
