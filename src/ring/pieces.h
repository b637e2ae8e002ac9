/* pieces.h - functions shared by the all-reduces in which each member owns a
 * chunk and adds the parts of the other members, one partner after the other
 * (rule D3).
 *
 * A piece is a numbered segment of the vector. There are chunks * segments of
 * them, those of chunk 0 first. Pure. */
#ifndef PCCL_PIECES_H
#define PCCL_PIECES_H

#include "op.h"

static inline uint32_t pieces_count(const struct plan *p)
{
    return p->chunks * p->segments;
}

void pieces_place(const struct plan *p, uint32_t piece, struct plan_xfer *x);

/* Turn: the order in which the parts of the partners are added. */
enum pieces_turn {
    TURN_FIRST = 1, /* added to the input */
    TURN_LAST = 2,  /* the last of all members: divides an average */
};

/* Adds bytes, from `at` on, of one partner's part of a piece. */
void pieces_add(struct op *op, uint32_t piece, unsigned turns, size_t at,
                const uint8_t *bytes, size_t size);

/* For the direct all-reduce (allreduce_direct.c): the piece of the k-th
 * transfer from a partner, and whether the transfer is a part to add or the
 * sum; number of partners whose parts of a piece this member adds to its own;
 * the turn of one of them, from 1 on; bytes of the largest chunk. */
uint32_t direct_piece(const struct plan *p, uint32_t from, uint32_t k);
bool direct_is_part(const struct plan *p, uint32_t from, uint32_t k);
uint32_t direct_turns(const struct plan *p, uint32_t piece);
uint32_t direct_turn(const struct plan *p, uint32_t piece, uint32_t from);

#endif
