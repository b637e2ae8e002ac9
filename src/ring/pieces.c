/* pieces.c - see pieces.h. */
#include "pieces.h"

#include "geometry.h"

#include "../reduce/reduce.h"

void pieces_place(const struct plan *p, uint32_t piece, struct plan_xfer *x)
{
    plan_chunk_cut(p, piece / p->segments, piece % p->segments, x);
}

void pieces_add(struct op *op, uint32_t piece, unsigned turns, size_t at,
                const uint8_t *bytes, size_t size)
{
    const struct plan *p = &op->plan;
    struct plan_xfer x;
    pieces_place(p, piece, &x);
    size_t count = size / p->r.element;
    uint8_t *to =
        (uint8_t *)op->r.recvbuf + (x.offset - plan_result_first(p)) + at;
    const uint8_t *own = (const uint8_t *)op->r.sendbuf + x.offset + at;
    input_overwrite(op, to, size);
    reduce_apply(op->r.dtype, op->r.redop, to, bytes,
                 turns & TURN_FIRST ? own : to, count);
    if ((turns & TURN_LAST) && op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, to, count, p->r.world);
}
