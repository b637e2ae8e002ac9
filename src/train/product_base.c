/* product_base.c - the inner loops for any processor. */
#define KERNELS product_base
#define KERNELS_NAME "base"
#define LANES 4
#define ROWS 6
#include "product_impl.h"
