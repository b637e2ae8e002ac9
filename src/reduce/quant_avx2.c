/* quant_avx2.c - see quant_impl.h. */
#define KERNELS quant_kernels_avx2
#define KERNELS_NAME "avx2"
#include "quant_impl.h"
