/* quant_cuda.h - quant.h on a GPU: kernels/quant.cu, for builds with CUDA.
 *
 * Results are bit-identical to the CPU's. Elements are aligned to their size
 * and codes to 8 bytes; all pointers are device pointers. The calls queue work
 * on `stream` (a cudaStream_t) and return a cudaError_t. */
#ifndef PCCL_QUANT_CUDA_H
#define PCCL_QUANT_CUDA_H

#include "quant.h"

int quant_cuda_encode(const struct quant *q, void *codes, const void *from,
                      uint64_t count, void *stream);
int quant_cuda_decode(const struct quant *q, void *to, const void *codes,
                      uint64_t count, void *stream);
/* op is not REDOP_PROD. */
int quant_cuda_combine(const struct quant *q, enum redop op, void *out,
                       const void *codes, const void *own, uint64_t count,
                       uint32_t divisor, void *stream);

#endif
