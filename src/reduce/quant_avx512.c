/* quant_avx512.c - quantization kernels for AVX-512; see quant_impl.h. */
#define KERNELS quant_kernels_avx512
#define KERNELS_NAME "avx512"
#include "quant_impl.h"
