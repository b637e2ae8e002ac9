/* reduce.h - element-wise reduction of CPU buffers, by (type, operator).
 *
 * Pure functions: no state but a one-time choice of the best kernels for this
 * CPU. The result bits depend on the operands alone, never on the CPU, the
 * alignment or the place of an element in the buffer:
 *
 * - Integers wrap.
 * - f16 and bf16 are computed in f32 and rounded to nearest even, once per
 *   operation.
 * - A float result that is not a number is always the positive quiet NaN
 *   without payload (f16 7e00, bf16 7fc0, f32 7fc00000, f64 7ff8 and zeros).
 *   Hardware does not agree on payloads and signs; one NaN needs no agreement.
 * - MAX and MIN of floats give NaN if either operand is NaN; -0 is less than
 *   +0. They are commutative, as are SUM and PROD.
 * - AVG reduces as SUM; reduce_divide() ends it.
 *
 * The floating-point environment of the caller's thread does not matter: the
 * functions enter the default one and restore the caller's. */
#ifndef PCCL_REDUCE_H
#define PCCL_REDUCE_H

#include "../base/dtype.h"

/* dst[i] = op(a[i], b[i]), 0 <= i < count. dst may equal a or b; no other
 * overlap is allowed. Pointers need no alignment. */
void reduce_apply(enum dtype type, enum redop op, void *dst, const void *a,
                  const void *b, size_t count);

/* dst[i] = dst[i] / world: completes AVG. Floats divide (halves in f32),
 * integers truncate towards zero; the divisor is never narrowed to the element
 * type. world >= 1. */
void reduce_divide(enum dtype type, void *dst, size_t count, uint32_t world);

#endif
