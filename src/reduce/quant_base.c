/* quant_base.c - see quant_impl.h. */
#define KERNELS quant_kernels_base
#define KERNELS_NAME "base"
#include "quant_impl.h"
