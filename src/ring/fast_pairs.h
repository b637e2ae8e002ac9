/* fast_pairs.h - the fast path of operations in which each member gets other
 * bytes (rule D9d), for fast_path.c. */
#ifndef PCCL_FAST_PAIRS_H
#define PCCL_FAST_PAIRS_H

#include "fast_path.h"
#include "ring.h"

/* Sets the bytes to and from each partner. False: they do not fit into the
 * queues, or the arguments of the two sides differ. */
bool fast_pairs_fits(struct engine *e, struct fast_path *q,
                     const struct op_request *r);
/* Writes the data to all partners. */
void fast_pairs_send(struct engine *e, struct fast_path *q);
/* Looks for the data of all, takes them and sends DONE, and looks for the DONE
 * of all. */
enum look fast_pairs_poll(struct engine *e, struct fast_path *q);
/* The operation that the call turns into has what was taken. */
void fast_pairs_hold(struct engine *e, const struct fast_path *q,
                     struct op *op);

#endif
