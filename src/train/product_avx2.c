/* product_avx2.c - the inner loops for AVX2. */
#define KERNELS product_avx2
#define KERNELS_NAME "avx2"
#define LANES 8
#define ROWS 6
#include "product_impl.h"
