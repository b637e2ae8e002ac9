/* pieces.h - what the all-reduces share in which each member owns a chunk and
 * adds what the others send of it, one partner after the other (rule D3).
 *
 * A piece is a segment of the vector by its number, of which there are world *
 * segments, those of chunk 0 first. Chunk i is owned by rank i. Pure. */
#ifndef PCCL_PIECES_H
#define PCCL_PIECES_H

#include "backup.h"

static inline uint32_t pieces_count(const struct plan *p)
{
    return p->r.world * p->segments;
}

void pieces_place(const struct plan *p, uint32_t piece, struct plan_xfer *x);

/* Whose turn: the order of partners in which their parts are added. */
enum pieces_turn {
    TURN_FIRST = 1, /* to the input */
    TURN_LAST = 2,  /* of all members: an average is divided */
};

/* Adds bytes, from `at` on, of one partner's part of a piece. */
void pieces_add(struct op *op, struct backup *b, uint32_t piece, unsigned turns,
                size_t at, const uint8_t *bytes, size_t size);
/* Before every write to a piece; to all that have not been written. */
void pieces_save(const struct op *op, struct backup *b, uint32_t piece);
void pieces_save_all(const struct op *op, struct backup *b);
void pieces_restore(const struct op *op, const struct backup *b);

/* Of the direct all-reduce (allreduce_direct.c): the piece that the k-th
 * transfer from a partner brings, and whether it is a part to be added, or the
 * sum; partners whose parts of a piece this member adds to its own, and the
 * turn of one of them, from 1 on; bytes of the largest chunk. */
uint32_t direct_piece(const struct plan *p, uint32_t from, uint32_t k);
bool direct_is_part(const struct plan *p, uint32_t from, uint32_t k);
uint32_t direct_turns(const struct plan *p, uint32_t piece);
uint32_t direct_turn(const struct plan *p, uint32_t piece, uint32_t from);

#endif
