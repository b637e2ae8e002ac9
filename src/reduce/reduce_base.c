/* reduce_base.c - the kernels for the instruction set that every target has. */
#define KERNELS reduce_kernels_base
#define KERNELS_NAME "base"
#include "reduce_impl.h"
