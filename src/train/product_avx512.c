/* product_avx512.c - the inner loops for AVX512. */
#define KERNELS product_avx512
#define KERNELS_NAME "avx512"
#define LANES 16
#define ROWS 12
#include "product_impl.h"
