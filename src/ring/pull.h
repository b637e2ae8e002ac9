/* pull.h - large blocks that their receivers copy out of the memory of the
 * sender: rule D27 of ALGORITHMS.md. Pure. */
#ifndef PCCL_PULL_H
#define PCCL_PULL_H

#include "single_copy.h"

struct endpoint;
struct plan_xfer;

/* Hooks of an algorithm whose members send each other blocks, and confirm. */
bool pull_begin(struct engine *e, struct op *op);
void pull_put(struct engine *e, struct op *op, const struct endpoint *ep,
              uint32_t k, const struct plan_xfer *x);
bool pull_take(struct engine *e, struct op *op, struct endpoint *ep, uint32_t k,
               const struct plan_xfer *x, uint32_t slot);

#endif
