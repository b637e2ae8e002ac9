/* pieces.h - sums that a member makes of the parts of its partners, one partner
 * after the other (rule D3).
 *
 * A piece is a numbered segment of the vector. There are chunks * segments of
 * them, those of chunk 0 first. A part of a piece that arrives in its turn is
 * reduced from where it lies. One that arrives earlier waits in its place: its
 * bytes are in a slot there, or in its sender's region (rule D16). Pure. */
#ifndef PCCL_PIECES_H
#define PCCL_PIECES_H

#include "op.h"

/* A transfer from a partner, as the algorithm's function `part` says. */
struct pieces_part {
    uint32_t piece;
    uint32_t turn;  /* from 1 on: when the part is added */
    uint32_t turns; /* partners whose parts are added here */
    uint32_t place; /* of the part whose turn is 1 */
    bool all;       /* their sum is that of all members */
};

/* The state of the algorithm begins with this. */
struct pieces {
    /* Bit set over the pieces: first those that are added up here, then those
     * whose sum is here, as the algorithm says. */
    uint8_t *ready;
    uint16_t *added; /* by piece: partners whose parts are added */
    uint8_t *came;   /* by place: whether and where a part waits */
    uint8_t *slots;  /* by place: parts that came through a queue */
    uint32_t places; /* between that of one turn and that of the next */
    size_t room;     /* bytes of a place */
};

static inline uint32_t pieces_count(const struct plan *p)
{
    return p->chunks * p->segments;
}

void pieces_cut(const struct plan *p, uint32_t piece, struct plan_xfer *x);

/* Turn: the order in which the parts of the partners are added. */
enum pieces_turn {
    TURN_FIRST = 1, /* added to the input */
    TURN_LAST = 2,  /* the last of all members: divides an average */
};

/* Adds bytes, from `at` on, of one partner's part of a piece. */
void pieces_add(struct op *op, uint32_t piece, unsigned turns, size_t at,
                const uint8_t *bytes, size_t size);

/* Makes the state of an algorithm, `own` bytes of zeros: parts of `partners`
 * members wait here, so many places apart. NULL: no memory. */
void *pieces_begin(struct engine *e, struct op *op, size_t own,
                   uint32_t partners, uint32_t places);
/* Partners that wait for this may be sent to now. */
void pieces_mark(struct engine *e, struct op *op, uint32_t bit);
/* A part has come: a body, or (pieces_lent) in that slot of the region of its
 * sender. Adds all parts whose turn it is, and marks a piece that is whole. */
void pieces_arrived(struct engine *e, struct op *op,
                    const struct pieces_part *part, const uint8_t *body,
                    uint32_t size);
void pieces_lent(struct engine *e, struct op *op,
                 const struct pieces_part *part, uint32_t slot, uint32_t size);

/* Hooks of an algorithm that has `part`. */
bool pieces_has(const struct op *op, uint32_t after);
uint8_t *pieces_place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x);
void pieces_reduce(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size);

#endif
