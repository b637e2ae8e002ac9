/* quant_kernels.h - table of quantization kernels, for quant.c and its test. */
#ifndef PCCL_QUANT_KERNELS_H
#define PCCL_QUANT_KERNELS_H

#include "quant.h"

/* One block of 1 to QUANT_BLOCK elements of a wide type. */
typedef void quant_block_fn(int algorithm, void *to, const void *from,
                            size_t count);
typedef void quant_half_fn(void *to, const void *from, size_t count);
typedef void quant_limit_fn(float *x, size_t count);

enum quant_wide { QUANT_F32, QUANT_F64, QUANT_WIDE_COUNT };
enum { QUANT_WIDTHS = 3 }; /* codes of 1, 2, 4 bytes */

struct quant_kernels {
    const char *name;
    quant_block_fn *encode[QUANT_WIDE_COUNT][QUANT_WIDTHS];
    quant_block_fn *decode[QUANT_WIDE_COUNT][QUANT_WIDTHS];
    /* halves only: to and from f32, and f32 rounded to the type's values */
    quant_half_fn *widen[DTYPE_COUNT], *narrow[DTYPE_COUNT];
    quant_limit_fn *saturate[DTYPE_COUNT];
};

extern const struct quant_kernels quant_kernels_base;
#ifdef KERNELS_X86
extern const struct quant_kernels quant_kernels_avx2;
extern const struct quant_kernels quant_kernels_avx512;
#endif

/* The kernels that this CPU supports, best first; NULL past the last. */
const struct quant_kernels *quant_kernels_usable(size_t index);

#endif
