/* quant_avx2.c - quantization kernels for AVX2; see quant_impl.h. */
#define KERNELS quant_kernels_avx2
#define KERNELS_NAME "avx2"
#include "quant_impl.h"
