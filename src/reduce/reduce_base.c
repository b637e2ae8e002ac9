/* reduce_base.c - reduction kernels for the base instruction set. */
#define KERNELS reduce_kernels_base
#define KERNELS_NAME "base"
#include "reduce_impl.h"
