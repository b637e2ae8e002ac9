/* blocked.c - what other members run and this one cannot launch (rule V4a). */
#include "op.h"

/* In a tree a member is silent until it is asked (rule D17c). */
static void announce_late(struct engine *e, struct op *op)
{
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        bool told = ep->announced || ep->ready || !op_exchanges(ep);
        if (told || op->phase != PHASE_RUNNING) continue;
        ep->announced = true;
        op_control_send(e, op, ep, FRAME_READY, 0, 0);
    }
}

/* How long an operation of the frame's tag has been under way here in another
 * scope, since the first look that found such a frame. */
static pccl_ns blocked_for(struct engine *e, const struct frame *f, pccl_ns now)
{
    struct op *op = engine_find(e, f->tag);
    if (!op || !op_is_active(op) || op->scope_number == f->scope) return 0;
    if (op->blocks_since == 0) op->blocks_since = now;
    return now - op->blocks_since;
}

bool engine_blocked(struct engine *e, pccl_ns now, pccl_ns *age)
{
    bool early = false;
    *age = 0;
    for (uint32_t i = 0; i < e->op_end && !e->links.frozen; i++)
        announce_late(e, &e->ops[i]);
    if (e->links.frozen || e->links.unexpected_links == 0) return false;
    for (size_t i = 0; i < ARRAY_COUNT(e->links.table); i++) {
        for (const struct link *l = e->links.table[i]; l; l = l->next) {
            for (const struct unexpected *k = l->unexpected; k; k = k->next) {
                pccl_ns since = blocked_for(e, &k->frame, now);
                if (since > *age) *age = since;
                early = true;
            }
        }
    }
    return early;
}
