/* fold.h - the sum of all vectors at once, for small all-reduces. Pure. */
#ifndef PCCL_FOLD_H
#define PCCL_FOLD_H

#include "op.h"

/* Bytes of a vector. */
static inline size_t fold_size(const struct op *op)
{
    return (size_t)plan_vector_size(&op->plan);
}

/* Rule D3: adds in the order of ranks, so that all members compute the same
 * sums. `slots` holds one vector after the other. The vector of this member is
 * copied there first if the result replaces it. */
void fold_slots(struct op *op, uint8_t *slots);

#endif
