/* fast_sums.h - a flat all-reduce on the fast path whose members share the work
 * (rule D9f), for fast_path.c. */
#ifndef PCCL_FAST_SUMS_H
#define PCCL_FAST_SUMS_H

#include "fast_path.h"
#include "ring.h"

/* The sum of the bytes of a vector from `at` on, in the order of D3, from the
 * bodies that are heard and the vector of this member. */
void fast_sum(const struct engine *e, const struct fast_path *q, uint8_t *to,
              size_t at, size_t size);
/* The sum is in the copy for the others: the caller gets it as well. False: the
 * posts did not hold, and his buffer, which may be the input, is as it was. */
bool fast_take_sum(const struct fast_path *q);

/* All frames of a flat all-reduce are heard: its members may share the work. */
bool fast_sums_begin(const struct engine *e, struct fast_path *q);
/* Adds up and posts the part of this member, and looks for the other parts.
 * LOOK_DONE: the result is in the receive buffer. */
enum look fast_sums_poll(struct engine *e, struct fast_path *q);

#endif
