/* hash_cuda.c - host side of kernels/hash.cu, or stubs without CUDA. */
#include "hash_cuda.h"

#include <assert.h>
#include <stddef.h>

#ifdef PCCL_HAVE_CUDA
#include <cuda_runtime_api.h>
#include <stdlib.h>

/* Block hashes copied at a time: 4 GiB of data, 512 KiB of scratch. */
enum { LIST_COUNT = 65536 };

struct hash_cuda {
    int device;
    cudaError_t error;
    uint64_t *list; /* device: LIST_COUNT block hashes */
};

struct hash_cuda *hash_cuda_open(int device)
{
    struct hash_cuda *ctx = calloc(1, sizeof(*ctx));
    int before = 0;
    if (!ctx) return NULL;
    ctx->device = device;
    bool ok = cudaGetDevice(&before) == cudaSuccess &&
              cudaSetDevice(device) == cudaSuccess;
    if (ok) {
        ok = cudaMalloc((void **)&ctx->list, LIST_COUNT * 8) == cudaSuccess;
        (void)cudaSetDevice(before);
    }
    if (ok) return ctx;
    (void)cudaGetLastError(); /* otherwise the caller's next check would return
                                 it */
    hash_cuda_close(ctx);
    return NULL;
}

/* Freeing fails only when the process or the device is unusable. */
void hash_cuda_close(struct hash_cuda *ctx)
{
    if (!ctx) return;
    if (ctx->list) (void)cudaFree(ctx->list);
    free(ctx);
}

/* Keeps the first error; true if there is none so far. */
static bool check(struct hash_cuda *ctx, cudaError_t error)
{
    if (ctx->error == cudaSuccess) ctx->error = error;
    return ctx->error == cudaSuccess;
}

static bool device_enter(struct hash_cuda *ctx, int *before)
{
    ctx->error = cudaSuccess;
    return check(ctx, cudaGetDevice(before)) &&
           check(ctx, cudaSetDevice(ctx->device));
}

bool hash_cuda_blocks(struct hash_cuda *ctx, const void *data, uint64_t size,
                      uint64_t first, uint64_t count, void *stream,
                      uint64_t *out)
{
    int before = 0;
    assert(first <= hash_block_count(size));
    assert(count <= hash_block_count(size) - first);
    if (!device_enter(ctx, &before)) return false;
    while (count > 0 && ctx->error == cudaSuccess) {
        const uint64_t part = count < LIST_COUNT ? count : LIST_COUNT;
        if (!check(ctx, (cudaError_t)hash_kernel_launch(
                            data, size, first, part, ctx->list, NULL, stream)))
            break;
        if (!check(ctx, cudaMemcpyAsync(out, ctx->list, part * 8,
                                        cudaMemcpyDeviceToHost, stream)))
            break;
        check(ctx, cudaStreamSynchronize(stream));
        first += part;
        count -= part;
        out += part;
    }
    check(ctx, cudaSetDevice(before));
    return ctx->error == cudaSuccess;
}

#else /* not built: there is never a context to call the rest with */

struct hash_cuda *hash_cuda_open(int device)
{
    (void)device;
    return NULL;
}

void hash_cuda_close(struct hash_cuda *ctx)
{
    assert(!ctx);
}

bool hash_cuda_blocks(struct hash_cuda *ctx, const void *data, uint64_t size,
                      uint64_t first, uint64_t count, void *stream,
                      uint64_t *out)
{
    (void)ctx, (void)data, (void)size, (void)first;
    (void)count, (void)stream, (void)out;
    return false;
}
#endif
