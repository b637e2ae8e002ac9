/* op_single_copy.c - a large all-reduce of members that share memory: each owns
 * a chunk and adds what the others have of it, segment by segment, in the order
 * of turns (rules D3, D16). What is lent is read from where it lies when its
 * turn has come; what could not be lent comes through a queue and is treated as
 * in pairwise.c. Pure. */
#include "op.h"

#include "../reduce/stream.h"

#include <string.h>

/* In op->came, by turn and set: an input that waits for its turn. */
enum {
    CAME_NOT,
    CAME_SLOT, /* is in the slots */
    CAME_LENT, /* is in this room of lent memory, and so on */
};

bool op_single_copy_take(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    uint32_t world = p->r.world;
    size_t saved = world * p->segments / 8 + 1;
    size_t came = (size_t)world * SINGLE_COPY_BUFFERS;
    size_t turns = 2 * p->segments * sizeof *op->turns;
    op->received = pool_take(&e->links.pool, 2 * p->segments / 8 + 1);
    op->saved = pool_take(&e->links.pool, saved);
    op->came = pool_take(&e->links.pool, came);
    op->turns = pool_take(&e->links.pool, turns);
    op->slots = pool_take(&e->links.pool,
                          (world - 1) * SINGLE_COPY_BUFFERS * p->segment + 1);
    if (op_in_place(op) && !op->backup)
        op->backup = pool_take(&e->links.pool, op_vector_size(op) + 1);
    if (!op->received || !op->saved || !op->came || !op->turns || !op->slots ||
        (op_in_place(op) && !op->backup))
        return false;
    memset(op->received, 0, 2 * p->segments / 8 + 1);
    memset(op->saved, 0, saved);
    memset(op->came, CAME_NOT, came);
    memset(op->turns, 0, turns);
    return true;
}

/* Of two segments: the next but one comes when all have this one (D16). */
static uint8_t *slot(const struct op *op, uint32_t turn, uint32_t g)
{
    size_t set =
        (size_t)(turn - 1) * SINGLE_COPY_BUFFERS + g % SINGLE_COPY_BUFFERS;
    return op->slots + set * op->plan.segment;
}

static uint8_t *came(const struct op *op, uint32_t turn, uint32_t g)
{
    return op->came + (size_t)turn * SINGLE_COPY_BUFFERS +
           g % SINGLE_COPY_BUFFERS;
}

static uint32_t own_piece(const struct plan *p, uint32_t g)
{
    return p->r.rank * p->segments + g;
}

static uint32_t turn_of(const struct op *op, const struct endpoint *ep)
{
    return plan_turn(&op->plan, own_piece(&op->plan, 0), ep->rank);
}

uint8_t *op_single_copy_slot(const struct op *op, const struct endpoint *ep,
                             uint32_t k)
{
    uint32_t g;
    uint32_t turn = turn_of(op, ep);
    (void)plan_is_sum(&op->plan, k, &g);
    return op->turns[g] + 1u == turn ? NULL : slot(op, turn, g);
}

static void add(struct op *op, uint32_t turn, uint32_t g, uint32_t size,
                const uint8_t *bytes)
{
    if (size > 0)
        op_pairwise_add(op, own_piece(&op->plan, g), turn, 0, bytes, size);
}

/* False: it cannot be read any more, for its lender has left the operation, and
 * this end is about to hear why. It never counts (rule L8). */
static bool add_lent(const struct engine *e, struct op *op,
                     const struct endpoint *ep, uint32_t g, uint32_t size,
                     uint32_t slot)
{
    const uint8_t *region = region_of(&e->links, ep->link);
    if (!region) return false;
    uint32_t rank = op->plan.r.rank;
    add(op, turn_of(op, ep), g, size,
        single_copy_at(op, region, slot, g, rank));
    return single_copy_valid(op, region, slot);
}

/* What came before its turn, as far as it goes; true: the sum is complete. */
static bool take_waiting(const struct engine *e, struct op *op, uint32_t g,
                         uint32_t size)
{
    const struct plan *p = &op->plan;
    uint32_t turn;
    while ((turn = op->turns[g] + 1u) < p->r.world) {
        uint8_t *where = came(op, turn, g);
        uint32_t rank = (p->r.rank + turn) % p->r.world;
        const struct endpoint *from =
            &op->eps[rank < p->r.rank ? rank : rank - 1];
        if (*where == CAME_NOT) return false;
        if (*where == CAME_SLOT)
            add(op, turn, g, size, slot(op, turn, g));
        else if (!add_lent(e, op, from, g, size, *where - (uint32_t)CAME_LENT))
            return false;
        *where = CAME_NOT;
        op->turns[g]++;
    }
    return true;
}

/* Whoever waits for these sums may send now. */
static void complete(struct engine *e, struct op *op, uint32_t bit)
{
    op_bit_set(op->received, bit);
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

static void take_input(struct engine *e, struct op *op,
                       const struct endpoint *ep, uint32_t g, uint32_t size,
                       const uint8_t *body)
{
    uint32_t turn = turn_of(op, ep);
    if (body && body == slot(op, turn, g)) {
        *came(op, turn, g) = CAME_SLOT;
    } else {
        if (body) add(op, turn, g, size, body);
        op->turns[g]++;
    }
    if (take_waiting(e, op, g, size)) complete(e, op, g);
}

static void take_lent_input(struct engine *e, struct op *op,
                            const struct endpoint *ep, uint32_t g,
                            uint32_t size, uint32_t slot)
{
    *came(op, turn_of(op, ep), g) = (uint8_t)(CAME_LENT + slot);
    if (take_waiting(e, op, g, size)) complete(e, op, g);
}

static bool take_lent_sum(struct op *op, const struct endpoint *ep, uint32_t k,
                          uint32_t g, const uint8_t *region, uint32_t slot)
{
    struct plan_xfer x;
    plan_recv(&op->plan, ep->rank, k, &x);
    op_save_piece(op, plan_piece(&op->plan, ep->rank, k));
    uint8_t *to = (uint8_t *)op->r.recv + x.offset;
    const uint8_t *from = single_copy_at(op, region, slot, g, ep->rank);
    if (op->plan.streamed)
        stream_copy(to, from, x.size);
    else
        memcpy(to, from, x.size);
    return single_copy_valid(op, region, slot);
}

void op_single_copy_received(struct engine *e, struct op *op,
                             const struct endpoint *ep, const struct frame *f,
                             const uint8_t *body)
{
    uint32_t g;
    if (!plan_is_sum(&op->plan, f->index, &g)) {
        if (!frame_is_single_copy(f)) take_input(e, op, ep, g, f->size, body);
        return;
    }
    uint16_t *sums = op->turns + op->plan.segments;
    if (++sums[g] + 1u == op->plan.r.world)
        complete(e, op, op->plan.segments + g);
}

void op_single_copy(struct engine *e, struct op *op, struct endpoint *ep,
                    const struct frame *f)
{
    const struct plan *p = &op->plan;
    const uint8_t *region = region_of(&e->links, ep->link);
    if (op->phase != PHASE_RUNNING || p->kind != PLAN_SINGLE_COPY || !region ||
        f->index >= ep->recvs)
        return;
    op_endpoint_ready(e, ep);
    if (f->flags & FLAG_CONFIRM) ep->wants_done = true;
    uint32_t g;
    uint32_t slot = single_copy_slot(op, region);
    bool sum = plan_is_sum(p, f->index, &g);
    struct plan_xfer x;
    plan_recv(p, ep->rank, f->index, &x);
    if (slot == SINGLE_COPY_SLOTS) return; /* as in add_lent() */
    if (sum && !take_lent_sum(op, ep, f->index, g, region, slot)) return;
    op->single_copied = true;
    struct frame full = *f;
    full.size = x.size;
    if (!sum) take_lent_input(e, op, ep, g, x.size, slot);
    op_received(e, op, ep, &full, NULL);
}
