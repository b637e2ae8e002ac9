/* neighbors.h - what algorithms share whose transfers come from the member
 * before and go to the one after: the all-reduce and the all-gather of rings,
 * and the broadcast along a chain. Pure. */
#ifndef PCCL_NEIGHBORS_H
#define PCCL_NEIGHBORS_H

#include "algorithm.h"
#include "geometry.h"
#include "op.h"

/* First in the state of each. */
struct ring_state {
    uint8_t *received; /* bit set over the transfers from `prev` */
};

/* Position, neighbours, and how DONE goes round. */
void ring_shape(struct plan *p);
/* The neighbours, and, where DONE is sent by pairs, all others after them. */
uint32_t ring_partners(const struct plan *p);
uint32_t ring_partner(const struct plan *p, uint32_t i);
/* op->state of that size, zeroed, and what a ring needs in it. */
bool ring_take(struct engine *e, struct op *op, size_t size);
void ring_give(struct engine *e, struct op *op);
/* begin() and end() where that is all. */
bool ring_begin(struct engine *e, struct op *op);
bool ring_has(const struct op *op, uint32_t after);
void ring_arrived(struct engine *e, struct op *op, struct endpoint *ep,
                  uint32_t k, const struct plan_xfer *x, const uint8_t *body);

/* Of the ring all-reduce (allreduce_ring.c): the k-th transfer from `prev` is
 * the first that writes its part of the vector; the reduce-scatter has written
 * what later steps of the all-gather write. */
bool ring_is_first_write(const struct plan *p, uint32_t k);
/* Nobody reads what it brings before the result is returned, and no cache holds
 * all of that. */
bool ring_streams(const struct plan *p, uint32_t k);

#endif
