/* allreduce_single_copy.h - the state of a single-copy all-reduce, and of its
 * slots in regions, for its file and its tests. */
#ifndef PCCL_ALLREDUCE_SINGLE_COPY_H
#define PCCL_ALLREDUCE_SINGLE_COPY_H

#include "pieces.h"

struct allreduce_single_copy_state {
    uint8_t *received;    /* bit set over the segments of the own chunk that are
                             sums of all, and then those of which all other sums
                             are here */
    uint8_t *came;        /* by turn and buffer, where it is */
    uint8_t *slots;       /* what came through a queue before its turn */
    uint16_t *turns;      /* by segment: partners that are added; and then
                             partners whose sums are here */
    uint32_t slot;        /* of the own region, plus 1; 0: none */
    uint32_t sums_put;    /* segments of the own chunk whose sums are there */
    struct backup backup; /* over the pieces */
};

/* The segment that the k-th transfer to or from a partner is of; true if it is
 * the sum. */
bool single_copy_is_sum(const struct plan *p, uint32_t k, uint32_t *segment);
/* The slot of an operation in another member's region; SINGLE_COPY_SLOTS: it
 * has none there any more. */
uint32_t single_copy_find_slot(const struct op *op, const uint8_t *region);
/* After reading: it was the operation's all the time (rule L8). */
bool single_copy_is_valid(const struct op *op, const uint8_t *region,
                          uint32_t slot);

#endif
