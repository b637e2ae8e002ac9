/* geometry.h - arithmetic that several algorithms share: chunks and segments of
 * a vector, partners, positions in a ring. Pure. */
#ifndef PCCL_GEOMETRY_H
#define PCCL_GEOMETRY_H

#include "plan.h"

/* `from` - `back` modulo the world; back <= world. */
uint32_t plan_wrap(const struct plan *p, uint32_t from, uint32_t back);
/* The rank at a position of the ring. */
uint32_t plan_at(const struct plan *p, uint32_t position);
/* The position of a rank. */
uint32_t plan_position(const struct plan *p, uint32_t rank);

/* No chunk of the vector is larger than chunk 0. Chunk i belongs to rank i, but
 * for those of a grid (rule D22). */
uint64_t plan_chunk_size(const struct plan *p, uint32_t chunk); /* bytes */
/* Byte of the vector that is the first of the result here. */
uint64_t plan_result_first(const struct plan *p);
/* Segment g of a span of `size` bytes that starts at `first`; of a chunk;
 * segment k of the block of a pair. */
void plan_cut(const struct plan *p, uint64_t first, uint64_t size, uint32_t g,
              struct plan_xfer *x);
void plan_chunk_cut(const struct plan *p, uint32_t chunk, uint32_t g,
                    struct plan_xfer *x);
/* Number of segments of that many bytes for spans of `size`, in whole
 * elements. */
void plan_choose_segment(struct plan *p, uint64_t segment, uint64_t size);
/* Segments of most algorithms. */
uint64_t plan_segment_of(const struct plan *p, uint64_t size);
/* All other members are partners. */
uint32_t plan_all_partners(const struct plan *p);
uint32_t plan_all_partner(const struct plan *p, uint32_t i);
/* All other members are partners of the root, and the root is their only
 * one: a tree of depth 1. */
void plan_shape_root(struct plan *p);
uint32_t plan_root_partners(const struct plan *p);
uint32_t plan_root_partner(const struct plan *p, uint32_t i);
uint32_t plan_one_transfer(const struct plan *p, uint32_t rank);

#endif
