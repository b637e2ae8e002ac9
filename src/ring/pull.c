/* pull.c - see pull.h. */
#include "pull.h"
#include "algorithm.h"
#include "op.h"

struct pull_state {
    uint32_t slot; /* of the own region, plus 1; 0: none */
    size_t least;  /* bytes of a transfer that is pulled */
};

/* In a slot: where the block for each rank begins. */
struct places {
    _Atomic uint64_t of[PLAN_SINGLE_COPY_WORLD_MAX];
};
static_assert(sizeof(struct places) <= SINGLE_COPY_BUFFER, "it fits");

static const uint8_t *block_for(const struct op *op, uint32_t rank)
{
    return (const uint8_t *)op->r.sendbuf + op->plan.r.send_displs[rank];
}

/* All large blocks are where the system would read them for others. */
static bool can_lend(const struct engine *e, const struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    const struct driver *d = &e->links.driver;
    bool any = false;
    for (uint32_t i = 0; i < p->world && d->cma_lends; i++) {
        if (i == p->rank || p->send_bytes[i] < e->pull_least) continue;
        if (!d->cma_lends(d->user, block_for(op, i), p->send_bytes[i]))
            return false;
        any = true;
    }
    return any;
}

bool pull_begin(struct engine *e, struct op *op)
{
    struct pull_state *s = op_take_state(e, op, sizeof *s, 0);
    if (!s) return false;
    s->least = e->pull_least;
    if (e->roomy && e->single_copy_on && can_lend(e, op))
        s->slot = single_copy_take_slot(e, op);
    return true;
}

void pull_end(struct engine *e, struct op *op)
{
    const struct pull_state *s = op->state;
    single_copy_give_slot(e, op, s->slot);
}

bool pull_may_put(const struct op *op, const struct conn *c,
                  const struct plan_xfer *x)
{
    const struct pull_state *s = op->state;
    return s->slot > 0 && c->region.pulls && x->size >= s->least;
}

void pull_put(struct engine *e, struct op *op, const struct endpoint *ep,
              uint32_t k, const struct plan_xfer *x, struct frame *f)
{
    const struct pull_state *s = op->state;
    struct places *p =
        (struct places *)(void *)(e->links.region +
                                  single_copy_slot_offset(s->slot - 1));
    (void)k, (void)x;
    f->flags |= FLAG_SINGLE_COPY;
    f->size = 0;
    /* The frame publishes it. */
    atomic_store_explicit(&p->of[ep->rank],
                          (uint64_t)(uintptr_t)block_for(op, ep->rank),
                          memory_order_relaxed);
}

/* False: the sender has left the operation, and this end will soon learn why;
 * or its memory cannot be read. */
bool pull_take(struct engine *e, struct op *op, struct endpoint *ep, uint32_t k,
               const struct plan_xfer *x)
{
    const struct plan_request *p = &op->plan.r;
    struct conn *c = region_conn(ep->link);
    (void)k;
    if (!c || p->world > PLAN_SINGLE_COPY_WORLD_MAX) return false;
    const uint8_t *region = c->region.memory;
    uint32_t slot = single_copy_find_slot(op, region);
    if (slot == SINGLE_COPY_SLOTS) return false;
    const struct places *there =
        (const struct places *)(const void *)(region +
                                              single_copy_slot_offset(slot));
    uint64_t block =
        atomic_load_explicit(&there->of[p->rank], memory_order_relaxed);
    uint64_t from = block + x->offset - p->recv_displs[ep->rank];
    bool copied = region_pull(&e->links, c, from,
                              (uint8_t *)op->r.recvbuf + x->offset, x->size);
    if (!single_copy_is_valid(op, region, slot)) return false;
    if (!copied)
        e->out.fault(e->out.user, FAULT_BROKEN, op, ep->link->id); /* D27d */
    return copied;
}
