/* fast_star.h - the fast path of a gather or a scatter of small blocks, which
 * go between the root and each other member (rule D9e). */
#ifndef PCCL_FAST_STAR_H
#define PCCL_FAST_STAR_H

#include "fast_path.h"
#include "ring.h"

/* As fast_start(), fast_poll(). */
bool fast_star_start(struct engine *e, const struct op_request *r);
enum look fast_star_poll(struct engine *e);
/* The operation that the call has turned into has sent and received what the
 * call has. */
void fast_star_hold(struct engine *e, struct op *op);

#endif
