/* fast_tree.h - the fast path over a tree (rule D9c), for fast_path.c. */
#ifndef PCCL_FAST_TREE_H
#define PCCL_FAST_TREE_H

#include "fast_path.h"
#include "ring.h"

/* The place of this member in the tree of the view. False: there is none. */
bool fast_tree_shape(const struct engine *e, struct plan *p);
/* The frames of an operation of q->size bytes fit into the queues. */
bool fast_tree_fits(struct fast_path *q, const struct op_request *r);
/* Bytes of `own` that it needs. */
size_t fast_tree_scratch(const struct fast_path *q);
/* Looks for the frames of the children, sends to the parent, looks for its
 * frames, and sends to the children. `own`: the vector of this member. */
enum look fast_tree_poll(struct fast_path *q, const uint8_t *own);

#endif
