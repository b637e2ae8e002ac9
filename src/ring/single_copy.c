/* single_copy.c - see single_copy.h. */
#include "op.h"

#include "../base/buggify.h"
#include "../base/host_id.h"
#include "../reduce/stream.h"

#include <string.h>

static_assert(SINGLE_COPY_SLOTS * sizeof(struct single_copy_head) <=
                  SINGLE_COPY_HEAD / 2,
              "the heads lie before the slots");

static void sign(struct engine *e, uint32_t slot, struct single_copy_name name)
{
    struct single_copy_head *heads =
        (struct single_copy_head *)(void *)e->links.region;
    single_copy_sign(heads + slot, name);
}

/* Nobody finds the slot from here on. */
static void release(struct engine *e, uint32_t slot)
{
    static const struct single_copy_name nobody = {.number = UINT64_MAX};
    if (e->single_copy.users[slot]) sign(e, slot, nobody);
    e->single_copy.users[slot] = NULL;
}

void single_copy_install(struct engine *e)
{
    struct links *n = &e->links;
    uint32_t here = 0;
    for (uint32_t i = 0; i < n->view->size; i++)
        here += n->view->members[i].host == n->host;
    bool region = e->links.view->mesh && host_shares_memory(n->host) &&
                  here <= e->single_copy_world;
    /* With two members on a host, their own queue is as fast for what is
     * large; a board is faster for what is small. */
    e->single_copy_on = region && here >= SINGLE_COPY_LEAST;
    e->boards_on = region && here > 1;
    e->roomy = here <= host_processors(n->host);
    for (uint32_t i = 0; i < SINGLE_COPY_SLOTS; i++) release(e, i);
    if (e->boards_on) region_offer(n);
}

static_assert(SINGLE_COPY_LEAST == 3 && HOST_MESH_MAX == 64, "as a text says");

const char *single_copy_unfit(const struct plan_request *r)
{
    if (!r->one_host || !r->shared_memory || r->world < SINGLE_COPY_LEAST ||
        r->world > r->single_copy_world)
        return "needs 3 to 64 members of one host that share its memory";
    return r->mesh ? NULL : "needs links between all pairs of members";
}

/* ------------------------------------------------------ slots of a region */

static struct single_copy_name name_of(const struct op *op)
{
    return (struct single_copy_name){.scope = op->scope_number,
                                     .tag = op->r.tag,
                                     .number =
                                         (uint64_t)op->epoch << 32 | op->seq};
}

/* The heads of all slots are at the beginning of a region. */
static const struct single_copy_head *head_of(const uint8_t *region,
                                              uint32_t slot)
{
    return (const struct single_copy_head *)(const void *)region + slot;
}

void single_copy_take_slot(struct engine *e, struct op *op)
{
    if (!e->links.region || PCCL_BUGGIFY(slot_taken)) return;
    /* Prefers the first free slot, which is in the caches. */
    for (uint32_t slot = 0; slot < SINGLE_COPY_SLOTS; slot++) {
        if (e->single_copy.users[slot]) continue;
        e->single_copy.users[slot] = op;
        sign(e, slot, name_of(op));
        op->slot = slot + 1;
        return;
    }
}

void single_copy_give_slot(struct engine *e, struct op *op)
{
    uint32_t slot = op->slot;
    op->slot = 0;
    if (slot > 0 && e->single_copy.users[slot - 1] == op) release(e, slot - 1);
}

uint32_t single_copy_find_slot(const struct op *op, const uint8_t *region)
{
    struct single_copy_name name = name_of(op);
    uint32_t slot = 0;
    while (slot < SINGLE_COPY_SLOTS &&
           !single_copy_is_named(head_of(region, slot), name))
        slot++;
    return slot;
}

bool single_copy_is_valid(const struct op *op, const uint8_t *region,
                          uint32_t slot)
{
    return single_copy_is_still_named(head_of(region, slot), name_of(op));
}

bool single_copy_take(struct op *op, const struct endpoint *ep,
                      const struct plan_xfer *x, uint32_t slot, size_t at)
{
    const uint8_t *region = region_of(ep->link);
    uint8_t *to = (uint8_t *)op->r.recvbuf + x->offset;
    input_overwrite(op, to, x->size);
    if (op->plan.bypasses)
        stream_copy(to, region + at, x->size);
    else if (x->size > 0)
        memcpy(to, region + at, x->size);
    return single_copy_is_valid(op, region, slot);
}
