/* op_direct.c - a pairwise all-reduce: the owner of a chunk adds what the
 * others send of it to its own, in the order of turns (rule D3), and so does
 * the one that passes the sum of its site on (rule D15). What comes in its turn
 * is reduced from where it lies, what comes earlier waits in a slot. Pure. */
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

bool op_pairwise_take(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    uint32_t pieces = p->r.world * p->segments;
    uint32_t parts = plan_parts(p) * p->segments;
    size_t turns = pieces * sizeof *op->turns;
    op->received = pool_take(&e->links.pool, 2 * pieces / 8 + 1);
    op->saved = pool_take(&e->links.pool, pieces / 8 + 1);
    op->came = pool_take(&e->links.pool, parts / 8 + 1);
    op->turns = pool_take(&e->links.pool, turns);
    op->slots = pool_take(&e->links.pool,
                          (size_t)plan_parts(p) * plan_chunk_max(p) + 1);
    if (op_in_place(op) && !op->backup)
        op->backup = pool_take(&e->links.pool, op_vector_size(op) + 1);
    if (!op->received || !op->saved || !op->came || !op->turns || !op->slots ||
        (op_in_place(op) && !op->backup))
        return false;
    memset(op->received, 0, 2 * pieces / 8 + 1);
    memset(op->saved, 0, pieces / 8 + 1);
    memset(op->came, 0, parts / 8 + 1);
    memset(op->turns, 0, turns);
    return true;
}

/* The number of a part among all that come here, by segments. */
static uint32_t part_of(const struct plan *p, uint32_t piece, uint32_t turn)
{
    uint32_t before = plan_parts_before(p, piece / p->segments);
    return (before + turn - 1) * p->segments + piece % p->segments;
}

static uint8_t *slot(const struct op *op, uint32_t piece, uint32_t turn)
{
    const struct plan *p = &op->plan;
    uint32_t part = part_of(p, piece, turn);
    return op->slots + part / p->segments * plan_chunk_max(p) +
           part % p->segments * p->segment;
}

uint8_t *op_pairwise_slot(const struct op *op, const struct endpoint *ep,
                          uint32_t k)
{
    if (op->plan.kind == PLAN_SINGLE_COPY)
        return op_single_copy_slot(op, ep, k);
    const struct plan *p = &op->plan;
    uint32_t piece = plan_piece(p, ep->rank, k);
    uint32_t turn = plan_turn(p, piece, ep->rank);
    return op->turns[piece] + 1u == turn ? NULL : slot(op, piece, turn);
}

void op_pairwise_add(struct op *op, uint32_t piece, uint32_t turn, size_t at,
                     const uint8_t *bytes, size_t size)
{
    const struct plan *p = &op->plan;
    struct plan_xfer x;
    plan_piece_place(p, piece, &x);
    op_save_piece(op, piece);
    size_t count = size / p->r.element;
    uint8_t *to = (uint8_t *)op->r.recv + x.offset + at;
    const uint8_t *own = (const uint8_t *)op->r.send + x.offset + at;
    reduce_apply(op->r.dtype, op->r.redop, to, bytes, turn > 1 ? to : own,
                 count);
    bool all = piece / p->segments == p->r.rank && turn == plan_turns(p, piece);
    if (all && op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, to, count, p->r.world);
}

/* Whoever waits for a piece may send it now. */
static void complete(struct engine *e, struct op *op, uint32_t bit)
{
    op_bit_set(op->received, bit);
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

void op_pairwise_received(struct engine *e, struct op *op,
                          const struct endpoint *ep, const struct frame *f,
                          const uint8_t *body)
{
    const struct plan *p = &op->plan;
    uint32_t piece = plan_piece(p, ep->rank, f->index);
    if (!plan_is_part(p, ep->rank, f->index)) {
        if (plan_turns(p, piece) > 0)
            complete(e, op, p->r.world * p->segments + piece);
        return;
    }
    uint32_t turn = plan_turn(p, piece, ep->rank);
    if (body && body == slot(op, piece, turn)) {
        op_bit_set(op->came, part_of(p, piece, turn));
    } else {
        if (body && f->size > 0)
            op_pairwise_add(op, piece, turn, 0, body, f->size);
        op->turns[piece]++;
    }
    while ((turn = op->turns[piece] + 1u) <= plan_turns(p, piece) &&
           op_bit_get(op->came, part_of(p, piece, turn))) {
        if (f->size > 0)
            op_pairwise_add(op, piece, turn, 0, slot(op, piece, turn), f->size);
        op->turns[piece]++;
    }
    if (turn > plan_turns(p, piece)) complete(e, op, piece);
}
