/* single_copy.c - see single_copy.h. */
#include "op.h"

#include <string.h>

static_assert(SINGLE_COPY_SLOTS * sizeof(struct single_copy_head) <=
                  SINGLE_COPY_HEAD / 2,
              "the heads lie before the places");

/* Where a host has two members a queue of their own does as well. */
static bool is_worth_it(const struct engine *e)
{
    const struct links *n = &e->links;
    uint32_t here = 0;
    for (uint32_t i = 0; i < n->world; i++)
        here += n->members[i].host == n->host;
    return e->mesh && n->host % 2 == 0 && here > 2 &&
           here <= e->single_copy_world;
}

void single_copy_install(struct engine *e)
{
    e->single_copy_on = is_worth_it(e);
    for (uint32_t i = 0; i < SINGLE_COPY_SLOTS; i++)
        e->single_copy.users[i] = NULL;
    if (e->single_copy_on) region_offer(&e->links);
}

/* ---------------------------------------------------------- an operation */

static size_t place_size(const struct plan *p)
{
    enum { PAGE = 4096 };
    return SINGLE_COPY_BUFFER / p->r.world / PAGE * PAGE;
}

/* The input for a member lies in its place, the sum in that of who made it. */
static size_t place(const struct plan *p, uint32_t slot, uint32_t g,
                    uint32_t rank)
{
    size_t set = (size_t)slot * SINGLE_COPY_BUFFERS + g % SINGLE_COPY_BUFFERS;
    return SINGLE_COPY_HEAD + set * SINGLE_COPY_BUFFER + rank * place_size(p);
}

static uint64_t name_of(const struct op *op)
{
    return (uint64_t)op->epoch << 32 | op->seq;
}

/* Before anything else is written there: who still reads what was lent before,
 * and was left out of the view meanwhile, must not take this for it. */
static void sign(struct engine *e, const struct op *op, uint32_t slot)
{
    struct single_copy_head *head =
        (struct single_copy_head *)(void *)e->links.region + slot;
    atomic_store_explicit(&head->tag, op->r.tag, memory_order_relaxed);
    atomic_store_explicit(&head->number, name_of(op), memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

void single_copy_begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    op->slot = op->sums_shared = 0;
    op->single_copied = false;
    if (p->kind != PLAN_SINGLE_COPY || !op->confirm || !e->links.region) return;
    assert(p->segment <= place_size(p));
    /* The first one rather, which is in the caches. */
    for (uint32_t slot = 0; slot < SINGLE_COPY_SLOTS; slot++) {
        if (e->single_copy.users[slot]) continue;
        e->single_copy.users[slot] = op;
        op->slot = slot + 1;
        sign(e, op, slot);
        return;
    }
}

void single_copy_end(struct engine *e, struct op *op)
{
    if (op->slot > 0 && e->single_copy.users[op->slot - 1] == op)
        e->single_copy.users[op->slot - 1] = NULL;
    op->slot = 0;
}

bool single_copy_fits(const struct conn *c, const struct op *op,
                      const struct plan_xfer *x)
{
    return op->slot > 0 && c->region.taken && x->size > 0;
}

void single_copy_put(struct engine *e, struct op *op, const struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x, struct frame *f)
{
    uint32_t g;
    bool sum = plan_is_sum(&op->plan, k, &g);
    uint32_t rank = sum ? op->plan.r.rank : ep->rank;
    const void *from = sum ? op->r.recv : op->r.send;
    f->flags |= FLAG_SINGLE_COPY;
    f->size = 0;
    if (sum && g < op->sums_shared) return; /* is there already */
    /* The sum will come here: what it replaces is read once, not twice. */
    if (!sum) op_save_piece(op, rank * op->plan.segments + g);
    if (sum) op->sums_shared = g + 1;
    memcpy(e->links.region + place(&op->plan, op->slot - 1, g, rank),
           (const uint8_t *)from + x->offset, x->size);
}

static bool is_named(const struct op *op, const uint8_t *region, uint32_t slot)
{
    const struct single_copy_head *head =
        (const struct single_copy_head *)(const void *)region + slot;
    return atomic_load_explicit(&head->tag, memory_order_relaxed) ==
               op->r.tag &&
           atomic_load_explicit(&head->number, memory_order_relaxed) ==
               name_of(op);
}

uint32_t single_copy_slot(const struct op *op, const uint8_t *region)
{
    uint32_t slot = 0;
    while (slot < SINGLE_COPY_SLOTS && !is_named(op, region, slot)) slot++;
    return slot;
}

const uint8_t *single_copy_at(const struct op *op, const uint8_t *region,
                              uint32_t slot, uint32_t g, uint32_t rank)
{
    return region + place(&op->plan, slot, g, rank);
}

bool single_copy_valid(const struct op *op, const uint8_t *region,
                       uint32_t slot)
{
    atomic_thread_fence(memory_order_acquire);
    return is_named(op, region, slot);
}
