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
/* Segment g of a span of `size` bytes that starts at `first`; of a chunk. */
void plan_cut(const struct plan *p, uint64_t first, uint64_t size, uint32_t g,
              struct plan_xfer *x);
void plan_chunk_cut(const struct plan *p, uint32_t chunk, uint32_t g,
                    struct plan_xfer *x);
/* Transfers of the block of a pair of an all-to-all, at least one, so that
 * every pair agrees before any is complete (rule D2e); and the k-th of them. */
uint32_t plan_block_transfers(uint64_t size);
void plan_block_cut(const size_t *bytes, const size_t *displs, uint32_t rank,
                    uint32_t k, struct plan_xfer *x);
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
/* A member exchanges data with those beside it in the tree of positions (rule
 * D17): the children, then the parent. The part of the tree that belongs to a
 * child goes to *part. Returns the child's number; `tree.children`: it is not
 * one. */
void plan_shape_tree(struct plan *p);
uint32_t plan_tree_partners(const struct plan *p);
uint32_t plan_tree_partner(const struct plan *p, uint32_t i);
uint32_t plan_tree_child(const struct plan *p, uint32_t rank,
                         struct tree_node *part);
/* One, whatever the pair. */
uint32_t plan_one_transfer(const struct plan *p, uint32_t rank);
/* The grid of positions (rule D20): a rank's place in it, the length of the
 * shortest row, and the partners of this rank. */
void plan_grid_find(const struct plan *p, uint32_t rank,
                    struct grid_node *node);
uint32_t plan_grid_columns(const struct plan *p);
uint32_t plan_grid_partners(const struct plan *p);
uint32_t plan_grid_partner(const struct plan *p, uint32_t i);

#endif
