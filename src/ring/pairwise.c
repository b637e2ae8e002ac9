/* pairwise.c - a pairwise all-reduce: the owner of a chunk adds what the others
 * send of it to its own, in the order of turns (rule D3). What comes in its
 * turn is reduced from where it lies, what comes earlier waits in a slot.
 * Pure. */
#include "engine.h"

#include <string.h>

bool op_pairwise_take(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    uint32_t world = p->r.world;
    size_t bits = (size_t)world * p->segments / 8 + 1;
    size_t turns = p->segments * sizeof *op->turns;
    op->received = pool_take(&e->pool, bits);
    op->saved = pool_take(&e->pool, bits);
    op->came = pool_take(&e->pool, bits);
    op->turns = pool_take(&e->pool, turns);
    op->slots = pool_take(&e->pool, (world - 1) * plan_chunk_max(p) + 1);
    if (op_in_place(op) && !op->backup)
        op->backup = pool_take(&e->pool, op_vector_size(op) + 1);
    if (!op->received || !op->saved || !op->came || !op->turns || !op->slots ||
        (op_in_place(op) && !op->backup))
        return false;
    memset(op->received, 0, bits);
    memset(op->saved, 0, bits);
    memset(op->came, 0, bits);
    memset(op->turns, 0, turns);
    return true;
}

static uint8_t *slot(const struct op *op, uint32_t turn, uint32_t segment)
{
    const struct plan *p = &op->plan;
    return op->slots + (turn - 1) * plan_chunk_max(p) + segment * p->segment;
}

uint8_t *op_pairwise_slot(const struct op *op, const struct lane *lane,
                          uint32_t k)
{
    uint32_t turn = plan_turn(&op->plan, lane->rank);
    return op->turns[k] + 1u == turn ? NULL : slot(op, turn, k);
}

static void add(struct op *op, const struct lane *lane, const struct frame *f,
                const uint8_t *body)
{
    if (f->size > 0) op_reduce(op, lane, f, 0, body, f->size);
}

void op_pairwise_received(struct engine *e, struct op *op,
                          const struct lane *lane, const struct frame *f,
                          const uint8_t *body)
{
    const struct plan *p = &op->plan;
    uint32_t k = f->index;
    if (k >= p->segments) return;
    uint32_t turn = plan_turn(p, lane->rank);
    if (body && body == slot(op, turn, k)) {
        op_bit_set(op->came, turn * p->segments + k);
    } else {
        if (body) add(op, lane, f, body);
        op->turns[k]++;
    }
    while ((turn = op->turns[k] + 1u) < p->r.world &&
           op_bit_get(op->came, turn * p->segments + k)) {
        uint32_t rank = (p->r.rank + turn) % p->r.world;
        const struct lane *from =
            &op->lanes[rank < p->r.rank ? rank : rank - 1];
        add(op, from, f, slot(op, turn, k));
        op->turns[k]++;
    }
    if (turn < p->r.world) return;
    op_bit_set(op->received, k);
    for (uint32_t i = 0; i < op->lane_count; i++)
        link_dirty(e, op->lanes[i].link);
}
