/* pieces.c - see pieces.h. */
#include "pieces.h"

#include "geometry.h"

#include "../reduce/reduce.h"

void pieces_place(const struct plan *p, uint32_t piece, struct plan_xfer *x)
{
    plan_chunk_cut(p, piece / p->segments, piece % p->segments, x);
}

void pieces_add(struct op *op, struct backup *b, uint32_t piece, unsigned turns,
                size_t at, const uint8_t *bytes, size_t size)
{
    const struct plan *p = &op->plan;
    struct plan_xfer x;
    pieces_place(p, piece, &x);
    pieces_save(op, b, piece);
    size_t count = size / p->r.element;
    uint8_t *to =
        (uint8_t *)op->r.recvbuf + (x.offset - plan_result_first(p)) + at;
    const uint8_t *own = (const uint8_t *)op->r.sendbuf + x.offset + at;
    reduce_apply(op->r.dtype, op->r.redop, to, bytes,
                 turns & TURN_FIRST ? own : to, count);
    if ((turns & TURN_LAST) && op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, to, count, p->r.world);
}

void pieces_save(const struct op *op, struct backup *b, uint32_t piece)
{
    struct plan_xfer x;
    if (!b->bytes || backup_has(b, piece)) return;
    pieces_place(&op->plan, piece, &x);
    backup_save(op, b, piece, &x);
}

void pieces_save_all(const struct op *op, struct backup *b)
{
    for (uint32_t i = 0; i < pieces_count(&op->plan); i++)
        pieces_save(op, b, i);
}

void pieces_restore(const struct op *op, const struct backup *b)
{
    for (uint32_t i = 0; i < pieces_count(&op->plan); i++) {
        struct plan_xfer x;
        if (!backup_has(b, i)) continue;
        pieces_place(&op->plan, i, &x);
        backup_restore(op, b, &x);
    }
}
