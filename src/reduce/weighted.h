/* weighted.h - reduction of several buffers with weights, in one pass. */
#ifndef PCCL_WEIGHTED_H
#define PCCL_WEIGHTED_H

#include "../base/dtype.h"

/* dst[i] of n inputs, n >= 1, in their order, 0 <= i < count:
 *   SUM  the sum of inputs[k][i], as reduce_apply() adds
 *   AVG  the sum of weights[k] * inputs[k][i], divided by the sum of the
 *        weights; in double, and rounded once at the end
 * AVG is for floats. Pointers need no alignment; dst overlaps no input. */
void reduce_weighted(enum dtype type, enum redop op, void *dst,
                     const void *const *inputs, const double *weights,
                     uint32_t n, size_t count);

/* Whether there is such a reduction. */
bool reduce_has_weighted(enum dtype type, enum redop op);

#endif
