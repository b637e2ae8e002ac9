/* reduce_avx512.c - reduction kernels for AVX-512 F, BW, DQ, VL. */
#define KERNELS reduce_kernels_avx512
#define KERNELS_NAME "avx512"
#include "reduce_impl.h"
