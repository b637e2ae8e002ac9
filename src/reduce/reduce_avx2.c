/* reduce_avx2.c - reduction kernels for AVX2 and F16C. */
#define KERNELS reduce_kernels_avx2
#define KERNELS_NAME "avx2"
#include "reduce_impl.h"
