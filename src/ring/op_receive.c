/* op_receive.c - receives transfers, control frames, and the frames that came
 * before the launch. Pure.
 *
 * Rule numbers refer to master/PROTOCOL.md. */
#include "op.h"

#include "algorithm.h"

#include <string.h>

void op_endpoint_ready(struct engine *e, struct endpoint *ep)
{
    if (ep->ready) return;
    ep->ready = true;
    ep->link->eager_bytes -= ep->eager;
    ep->eager = 0;
    link_dirty(&e->links, ep->link);
}

static void report_mismatch(struct engine *e, struct op *op, uint64_t peer)
{
    const struct frame other = {.digest = ~op->r.digest};
    (void)op_agrees(e, op, &other, peer);
}

/* Rule D2d. The index is one of the plan. */
static bool comes_first(struct endpoint *ep, const struct frame *f)
{
    if (op_bit_get(ep->came, f->index)) return false;
    op_bit_set(ep->came, f->index);
    return true;
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
    op_endpoint_ready(e, ep);
    if (f->flags & FLAG_CONFIRM) {
        ep->wants_done = true;
        op->tells_all = op->plan.r.hierarchy != NULL; /* rule D15 */
    }
    struct plan_xfer x = {.size = UINT32_MAX};
    if (f->index < ep->recvs) plan_recv(&op->plan, ep->rank, f->index, &x);
    if (!op_agrees(e, op, f, ep->link->id)) return ACCEPT_DISCARD;
    if (f->size != x.size) {
        report_mismatch(e, op, ep->link->id);
        return ACCEPT_DISCARD;
    }
    if (!comes_first(ep, f)) return ACCEPT_DISCARD;
    *to = scratch;
    if (x.size == 0 && x.action == ACTION_STORE) return ACCEPT_BODY;
    uint8_t *place = a->place ? a->place(op, ep, f->index, &x)
                              : (uint8_t *)op->r.recvbuf + x.offset;
    if (place) *to = place;
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
    struct plan_xfer x;
    if (op->phase != PHASE_RUNNING || !a->take_put || f->index >= ep->recvs ||
        !region_of(&e->links, ep->link) || !comes_first(ep, f))
        return;
    op_endpoint_ready(e, ep);
    if (f->flags & FLAG_CONFIRM) ep->wants_done = true;
    plan_recv(&op->plan, ep->rank, f->index, &x);
    if (!a->take_put(e, op, ep, f->index, &x)) return;
    op->rx_bytes += x.size;
    op->mapped_bytes += x.size;
    ep->received++;
    op_check_endpoint(e, op, ep);
}

void op_control(struct engine *e, struct op *op, struct endpoint *ep,
                const struct frame *f)
{
    if (!op_agrees(e, op, f, ep->link->id)) return;
    op_endpoint_ready(e, ep);
    if (f->type != FRAME_READY) {
        op_take_done(e, op, ep, f);
        return;
    }
    if (op->plan.algorithm->counts && f->index != ep->sends)
        report_mismatch(e, op, ep->link->id);
    /* Rule D11: the root only answers. */
    bool asks = plan_is_root(&op->plan) && op->phase == PHASE_RUNNING &&
                ep->received < ep->recvs;
    if (asks) op_control_send(e, op, ep, FRAME_READY, ep->recvs, 0);
}

/* Applies the frames that came before the launch, in their order of arrival. */
void engine_apply_unexpected(struct engine *e, struct op *op,
                             struct endpoint *ep)
{
    if (!ep) return;
    struct link *l = ep->link;
    struct unexpected **slot = &l->unexpected;
    while (*slot) {
        struct unexpected *k = *slot;
        bool mine = k->frame.scope == op->scope_number &&
                    k->frame.tag == op->r.tag && k->frame.seq == op->seq;
        if (!mine || !k->complete) {
            slot = &k->next;
            continue;
        }
        *slot = k->next;
        l->unexpected_count--;
        l->unexpected_bytes -= k->frame.size;
        if (op->phase == PHASE_RUNNING || op->phase == PHASE_COMPLETE) {
            uint8_t *to = NULL;
            if (k->frame.type != FRAME_DATA) {
                op_control(e, op, ep, &k->frame);
            } else if (frame_is_single_copy(&k->frame)) {
                if (op_agrees(e, op, &k->frame, l->id))
                    op_single_copy(e, op, ep, &k->frame);
            } else if (op_accept(e, op, ep, &k->frame, k->body, &to) !=
                       ACCEPT_DISCARD) {
                if (to != k->body) memcpy(to, k->body, k->frame.size);
                op_received(e, op, ep, &k->frame, to);
            }
        }
        pool_give(&e->links.pool, k);
        if (op->phase == PHASE_DONE) break;
    }
    l->unexpected_end = &l->unexpected;
    while (*l->unexpected_end) l->unexpected_end = &(*l->unexpected_end)->next;
}
