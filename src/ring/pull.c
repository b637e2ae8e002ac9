/* pull.c - see pull.h. */
#include "pull.h"
#include "algorithm.h"
#include "op.h"

/* In a slot: where the block for each rank begins. */
struct places {
    _Atomic uint64_t of[HOST_MESH_MAX];
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
    if (e->roomy && e->single_copy_on && can_lend(e, op))
        single_copy_take_slot(e, op);
    return true;
}

void pull_put(struct engine *e, struct op *op, const struct endpoint *ep,
              uint32_t k, const struct plan_xfer *x)
{
    struct places *p =
        (struct places *)(void *)(e->links.region +
                                  single_copy_slot_offset(op->slot - 1));
    (void)k, (void)x;
    /* The frame publishes it. */
    atomic_store_explicit(&p->of[ep->rank],
                          (uint64_t)(uintptr_t)block_for(op, ep->rank),
                          memory_order_relaxed);
}

/* False: the sender has left the operation, and this end will soon learn why;
 * or its memory cannot be read. */
bool pull_take(struct engine *e, struct op *op, struct endpoint *ep, uint32_t k,
               const struct plan_xfer *x, uint32_t slot)
{
    const struct plan_request *p = &op->plan.r;
    struct conn *c = region_conn(ep->link);
    (void)k;
    if (!c || p->world > HOST_MESH_MAX) return false;
    const uint8_t *region = c->region.memory;
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
