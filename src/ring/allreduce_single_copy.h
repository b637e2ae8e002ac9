/* allreduce_single_copy.h - the state of a single-copy all-reduce, for its file
 * and its tests. */
#ifndef PCCL_ALLREDUCE_SINGLE_COPY_H
#define PCCL_ALLREDUCE_SINGLE_COPY_H

#include "pieces.h"

struct allreduce_single_copy_state {
    /* Bit set over the segments of the own chunk: first those with the sum of
     * all members, then those of which all other sums are here. */
    uint8_t *received;
    uint8_t *came;  /* by turn and buffer: place of the input */
    uint8_t *slots; /* inputs that came through a queue before their turn */
    /* By segment: partners added; then partners whose sums are here. */
    uint16_t *turns;
    uint32_t slot; /* of the own region, plus 1; 0: none */
    /* By buffer of the region: the segment whose sum is in it, plus 1. A member
     * that maps the region late has got some of them through its queue. */
    uint32_t sums_put[SINGLE_COPY_BUFFERS];
};

/* Sets the segment of the k-th transfer to or from a partner. True: the
 * transfer is the sum. */
bool single_copy_is_sum(const struct plan *p, uint32_t k, uint32_t *segment);
#endif
