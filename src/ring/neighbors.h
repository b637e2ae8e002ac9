/* neighbors.h - functions shared by algorithms whose transfers come from the
 * previous member and go to the next one: the ring all-reduce, the ring
 * all-gather, and the chain broadcast. Pure. */
#ifndef PCCL_NEIGHBORS_H
#define PCCL_NEIGHBORS_H

#include "algorithm.h"
#include "geometry.h"
#include "op.h"

/* The first part of the state of each such algorithm. */
struct ring_state {
    uint8_t *received; /* bit set over the transfers from `prev` */
};

/* Sets the position, the neighbours, and the path of DONE. */
void ring_shape(struct plan *p);
/* The neighbours; where pairs send DONE, all others after them. */
uint32_t ring_partners(const struct plan *p);
uint32_t ring_partner(const struct plan *p, uint32_t i);
/* Allocates op->state of that size, zeroed, and the bit set in it. */
bool ring_take(struct engine *e, struct op *op, size_t size);
void ring_give(struct engine *e, struct op *op);
/* begin() and end() of an algorithm that needs no more. */
bool ring_begin(struct engine *e, struct op *op);
bool ring_has(const struct op *op, uint32_t after);
void ring_arrived(struct engine *e, struct op *op, struct endpoint *ep,
                  uint32_t k, const struct plan_xfer *x, const uint8_t *body);

/* For the ring all-reduce (allreduce_ring.c): nobody reads the bytes of
 * transfer k before the result is returned, and no cache holds them all. */
bool ring_streams(const struct plan *p, uint32_t k);

#endif
