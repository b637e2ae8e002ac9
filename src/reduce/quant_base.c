/* quant_base.c - quantization kernels for the base instruction set; see
 * quant_impl.h. */
#define KERNELS quant_kernels_base
#define KERNELS_NAME "base"
#include "quant_impl.h"
