/* hash_cuda.h - the hash of data in GPU memory. */
#ifndef PCCL_HASH_CUDA_H
#define PCCL_HASH_CUDA_H

#include "hash.h"

#include <stdbool.h>

/* Scratch memory on a device, for one caller at a time. */
struct hash_cuda;

/* NULL: not built with CUDA, no such device, or no memory there. All memory
 * is allocated here, none later. */
struct hash_cuda *hash_cuda_open(int device);
void hash_cuda_close(struct hash_cuda *ctx);

/* Like hash_blocks(), of memory that the device can read, after all work queued
 * on `stream` (a cudaStream_t, NULL = the default stream). It waits for the
 * result; `out` is in host memory. The calling thread's current device is
 * restored. False: the device failed, and the results are unspecified. */
bool hash_cuda_blocks(struct hash_cuda *ctx, const void *data, uint64_t size,
                      uint64_t first, uint64_t count, void *stream,
                      uint64_t *out);

/* kernels/hash.cu: hashes blocks [first, first + count), 1 <= count <= 2^32,
 * into out[0..count) unless that is NULL and adds their hash_sum() to *sum
 * unless that is NULL; both in device memory. Queues one kernel on `stream` and
 * returns its cudaError_t. */
int hash_kernel_launch(const void *data, uint64_t size, uint64_t first,
                       uint64_t count, uint64_t *out, uint64_t *sum,
                       void *stream);

#endif
