/* reduce_kernels.h - table of reduction kernels, for reduce.c and its test. */
#ifndef PCCL_REDUCE_KERNELS_H
#define PCCL_REDUCE_KERNELS_H

#include "../base/dtype.h"

typedef void reduce_apply_fn(void *dst, const void *a, const void *b,
                             size_t count);
typedef void reduce_divide_fn(void *dst, size_t count, uint32_t world);

struct reduce_kernels {
    const char *name;
    reduce_apply_fn *apply[DTYPE_COUNT][REDOP_COUNT];
    reduce_divide_fn *divide[DTYPE_COUNT];
};

extern const struct reduce_kernels reduce_kernels_base;
#ifdef KERNELS_X86
extern const struct reduce_kernels reduce_kernels_avx2;
extern const struct reduce_kernels reduce_kernels_avx512;
#endif

/* The kernels that this CPU supports, best first; NULL past the last. */
const struct reduce_kernels *reduce_kernels_usable(size_t index);

#endif
