/* op_receive.c - receives transfers, control frames, and the frames that came
 * before the launch. Pure.
 *
 * Rule numbers: see src/README.md. */
#include "op.h"

#include "algorithm.h"

#include <string.h>

void op_endpoint_ready(struct engine *e, struct op *op, struct endpoint *ep)
{
    if (ep->ready) return;
    ep->ready = true;
    ep->link->eager_bytes -= ep->eager;
    ep->eager = 0;
    link_dirty(&e->links, ep->link);
    if (op_exchanges(ep)) op_check_endpoint(e, op, ep);
}

/* Rule D2c. The index is one of the plan. */
static bool comes_first(struct endpoint *ep, const struct frame *f)
{
    if (op_bit_get(ep->came, f->index)) return false;
    op_bit_set(ep->came, f->index);
    return true;
}

static void take_confirm(struct op *op, struct endpoint *ep)
{
    ep->wants_done = true;
    op->tells_all = op->plan.r.hierarchy != NULL; /* rule D15 */
    /* Rule D4a. */
    op->confirm |= op->plan.done == DONE_TREE || op->plan.done == DONE_GRID;
}

bool op_takes_parts(const struct op *op)
{
    return !op->plan.algorithm->whole_bodies;
}

enum op_accept op_accept(struct engine *e, struct op *op, struct endpoint *ep,
                         const struct frame *f, uint8_t *scratch, uint8_t **to)
{
    const struct algorithm *a = op->plan.algorithm;
    if (op->phase != PHASE_RUNNING) return ACCEPT_DISCARD;
    struct plan_xfer x = {.size = UINT32_MAX};
    if (f->index < ep->recvs) plan_recv(&op->plan, ep->rank, f->index, &x);
    if (f->size != x.size) {
        /* Whatever the digest says, the two ends have different plans. */
        op_disagrees(e, op, ep->link->id);
        return ACCEPT_DISCARD;
    }
    if (!comes_first(ep, f)) return ACCEPT_DISCARD;
    op_endpoint_ready(e, op, ep);
    if (f->flags & FLAG_CONFIRM) take_confirm(op, ep);
    *to = scratch;
    if (x.size == 0 && x.action == ACTION_STORE) return ACCEPT_BODY;
    uint8_t *place = a->place ? a->place(op, ep, f->index, &x)
                              : (uint8_t *)op->r.recvbuf + x.offset;
    if (place) {
        input_overwrite(op, place, x.size);
        *to = place;
    }
    return a->streams && a->streams(&op->plan, f->index) ? ACCEPT_STREAM
                                                         : ACCEPT_BODY;
}

void op_reduce(struct op *op, const struct endpoint *ep, const struct frame *f,
               size_t at, const uint8_t *bytes, size_t size)
{
    op->plan.algorithm->reduce(op, ep, f->index, at, bytes, size);
}

void op_received(struct engine *e, struct op *op, struct endpoint *ep,
                 const struct frame *f, const uint8_t *body)
{
    const struct algorithm *a = op->plan.algorithm;
    struct plan_xfer x;
    plan_recv(&op->plan, ep->rank, f->index, &x);
    op->rx_bytes += x.size;
    ep->received++;
    if (a->arrived) a->arrived(e, op, ep, f->index, &x, body);
    if (x.size >= PLAN_SEGMENT_MIN)
        measure_transfer(&ep->speed, e->links.now, f);
    op_check_endpoint(e, op, ep);
}

void op_single_copy(struct engine *e, struct op *op, struct endpoint *ep,
                    const struct frame *f)
{
    const struct algorithm *a = op->plan.algorithm;
    const uint8_t *region = region_of(ep->link);
    struct plan_xfer x;
    if (op->phase != PHASE_RUNNING || !a->take_put || f->index >= ep->recvs ||
        !region || !comes_first(ep, f))
        return;
    op_endpoint_ready(e, op, ep);
    if (f->flags & FLAG_CONFIRM) take_confirm(op, ep);
    plan_recv(&op->plan, ep->rank, f->index, &x);
    /* A sender without a slot has left the operation. */
    uint32_t slot = single_copy_find_slot(op, region);
    if (slot == SINGLE_COPY_SLOTS ||
        !a->take_put(e, op, ep, f->index, &x, slot))
        return;
    op->rx_bytes += x.size;
    if (!a->pulls) op->mapped_bytes += x.size;
    ep->received++;
    op_check_endpoint(e, op, ep);
}

void op_control(struct engine *e, struct op *op, struct endpoint *ep,
                const struct frame *f)
{
    if (f->type == FRAME_DONE) op_take_done(e, op, ep, f);
    if (op->phase != PHASE_DONE) op_endpoint_ready(e, op, ep);
    if (op->phase == PHASE_RUNNING) op_announce(e, op, ep);
}

static void apply(struct engine *e, struct op *op, struct endpoint *ep,
                  struct unexpected *k)
{
    const struct frame *f = &k->frame;
    uint8_t *to = NULL;
    if (f->type != FRAME_DATA) {
        op_control(e, op, ep, f);
    } else if (frame_is_single_copy(f)) {
        op_single_copy(e, op, ep, f);
    } else if (op_accept(e, op, ep, f, k->body, &to) != ACCEPT_DISCARD) {
        if (to != k->body) memcpy(to, k->body, f->size);
        op_received(e, op, ep, f, to);
    }
}

static bool is_of(const struct unexpected *k, const struct op *op)
{
    return k->complete && k->frame.scope == op->scope_number &&
           k->frame.tag == op->r.tag && k->frame.seq == op->seq;
}

/* In the order of arrival. */
void engine_apply_unexpected(struct engine *e, struct op *op, struct link *l)
{
    struct unexpected **slot = &l->unexpected;
    while (*slot && op->phase != PHASE_DONE) {
        struct unexpected *k = *slot;
        if (!is_of(k, op)) {
            slot = &k->next;
            continue;
        }
        link_remove_unexpected(&e->links, l, slot);
        struct endpoint *ep = op_endpoint(op, l);
        bool active = op->phase == PHASE_RUNNING || op->phase == PHASE_COMPLETE;
        active &= op_has_member(op, l->id);
        if (active && op_agrees(e, op, ep, &k->frame, l->id) && ep)
            apply(e, op, ep, k);
        pool_give(&e->links.pool, k);
    }
}
