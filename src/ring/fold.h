/* fold.h - the sum of all vectors at once, as small all-reduces make it. Pure.
 */
#ifndef PCCL_FOLD_H
#define PCCL_FOLD_H

#include "op.h"

/* Bytes of a vector. */
static inline size_t fold_size(const struct op *op)
{
    return (size_t)plan_vector_size(&op->plan);
}

/* Rule D3: in the order of ranks, so that everyone does the same sums. One
 * vector after the other lies in `slots`, but that of this member, which is
 * copied there first if the result replaces it. */
void fold_slots(struct op *op, uint8_t *slots);

#endif
