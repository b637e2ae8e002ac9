/* quant_core.h - arithmetic of quant.h, shared by C and CUDA.
 *
 * Compile without contraction (-ffp-contract=off, --fmad=false), and without
 * flushing subnormals. */
#ifndef PCCL_QUANT_CORE_H
#define PCCL_QUANT_CORE_H

#include "quant.h"

#include <float.h>
#include <math.h>
#include <string.h>

#ifdef __CUDACC__
#define QUANT_FN static __host__ __device__ __forceinline__
#else
#define QUANT_FN static inline
#endif

enum { QUANT_SPECIALS = 3 }; /* codes for NaN, -Inf, +Inf */

#define QN(name) name##_f32
#define QREAL float
#define QBITS uint32_t
#define QKEY int32_t
#define QMAX FLT_MAX
#define QROUND 12582912.0f /* 1.5 * 2^23 */
#define QUNIT 8388608.0f
#define QNAN_BITS 0x7fc00000u
#include "quant_real.h"
#undef QN
#undef QREAL
#undef QBITS
#undef QKEY
#undef QMAX
#undef QROUND
#undef QUNIT
#undef QNAN_BITS

#define QN(name) name##_f64
#define QREAL double
#define QBITS uint64_t
#define QKEY int64_t
#define QMAX DBL_MAX
#define QROUND 6755399441055744.0 /* 1.5 * 2^52 */
#define QUNIT 4503599627370496.0
#define QNAN_BITS 0x7ff8000000000000u
#include "quant_real.h"
#undef QN
#undef QREAL
#undef QBITS
#undef QKEY
#undef QMAX
#undef QROUND
#undef QUNIT
#undef QNAN_BITS

#endif
