/* op_done.c - the end of an operation: the result is complete here, the others
 * are known to hold it, the operation is finished. Pure.
 *
 * Rule numbers: see src/README.md. */
#include "op.h"

#include "algorithm.h"

#include "../../include/pccl.h"
#include "../base/buggify.h"

#include <string.h>

bool op_all_confirm(const struct op *op)
{
    const struct algorithm *a = op->plan.algorithm;
    return !a->defers || a->confirms || op_result_size(op) > WIRE_RESULT_MAX;
}

void op_check_endpoint(struct engine *e, struct op *op,
                       const struct endpoint *ep)
{
    if (ep->sent < ep->sends || ep->received < ep->recvs || !ep->ready) return;
    PCCL_ASSERT(op->eps_left > 0);
    if (--op->eps_left == 0) op_hold(e, op);
}

void op_sent(struct engine *e, struct op *op, struct endpoint *ep)
{
    if (e->links.frozen) return; /* the report in FLUSHED stands */
    ep->sent++;
    op_check_endpoint(e, op, ep);
}

static bool idle_but(const struct engine *e, const struct op *self)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op != self && op->phase == PHASE_RUNNING) return false;
    }
    return true;
}

static bool all_done(const struct op *op)
{
    if (op->plan.done == DONE_RING)
        return op->done_prev + 1 >= op->plan.r.world;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        const struct endpoint *ep = &op->eps[i];
        bool comes = op->plan.done != DONE_GRID || ep->recvs > 0;
        if (comes && !ep->done) return false;
    }
    return true;
}

/* The row of a grid is the first of its partners. */
static bool row_done(const struct op *op)
{
    for (uint32_t i = 0; i + 1 < op->plan.grid.size; i++) {
        if (!op->eps[i].done) return false;
    }
    return true;
}

static bool all_below_done(const struct op *op)
{
    for (uint32_t i = 0; i < op->ep_count; i++) {
        const struct endpoint *ep = &op->eps[i];
        if (!ep->done && !plan_is_parent(&op->plan, ep->rank)) return false;
    }
    return true;
}

/* In a tree DONE goes up when all below hold the result, and then down. In a
 * grid it goes to the row, and to other rows when all of the row hold it. */
static bool tells(const struct op *op, const struct endpoint *ep)
{
    const struct plan *p = &op->plan;
    if (p->done != DONE_TREE && p->done != DONE_GRID)
        return op->tells_all || ep->wants_done || op_all_confirm(op);
    if (!op->confirm) return false;
    if (p->done == DONE_GRID)
        return ep < op->eps + p->grid.size - 1 ||
               (ep->sends > 0 && row_done(op));
    return plan_is_parent(p, ep->rank) ? all_below_done(op) : all_done(op);
}

/* Rule D4. A ring passes a count along: this member and the index-1 before it
 * hold the result. Otherwise this member sends DONE to its partners. */
static void send_done(struct engine *e, struct op *op)
{
    bool is_clean =
        op->cleared && idle_but(e, op) && !PCCL_BUGGIFY(done_unclean);
    uint8_t clean = is_clean ? FLAG_CLEAN : 0;
    if (op->plan.done == DONE_RING) {
        uint32_t known = op->done_prev + 1;
        if (known >= op->plan.r.world) known = op->plan.r.world - 1;
        if (known <= op->done_sent) return;
        op->done_sent = known;
        op_control_send(e, op, &op->eps[op->ep_count - 1], FRAME_DONE, known,
                        clean);
        return;
    }
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        if (ep->done_sent || !tells(op, ep)) continue;
        ep->done_sent = true;
        op_control_send(e, op, ep, FRAME_DONE, 1, clean);
    }
}

void engine_finish(struct engine *e, struct op *op, int result)
{
    op_forget(e, op);
    op_end_activity(e, op);
    for (uint32_t i = 0; i < op->ep_count; i++)
        op->eps[i].link->eager_bytes -= op->eps[i].eager;
    for (uint32_t i = 0; op->rx_bytes >= MEASURE_MIN && i < op->ep_count; i++)
        measure_link(op->eps[i].link, &op->eps[i].speed);
    if (result == pcclSuccess)
        input_commit(e, op);
    else
        input_restore(op);
    op_free_run(e, op);
    op->result = result;
    op->phase = PHASE_DONE;
    e->out.finished(e->out.user, op);
}

/* Rule D7. */
static void check_done(struct engine *e, struct op *op)
{
    if (op->phase != PHASE_COMPLETE || !all_done(op)) return;
    op_sweep(e, op);
    op_drop_older(e, op);
    engine_finish(e, op, pcclSuccess);
}

void op_hold(struct engine *e, struct op *op)
{
    const struct algorithm *a = op->plan.algorithm;
    if (a->complete) a->complete(op);
    op->phase = PHASE_COMPLETE;
    if (op->ep_count == 0) {
        engine_finish(e, op, pcclSuccess);
        return;
    }
    send_done(e, op);
    if (op->confirm) {
        check_done(e, op);
        return;
    }
    op_drop_older(e, op);
    if (!op_cache_result(e, op, (uint32_t)op_result_size(op))) {
        /* No memory for the copy. Waits for the others instead; they were not
         * asked for DONE, so only a flush can resolve it. */
        e->out.fault(e->out.user, FAULT_TAGS, op, 0);
        return;
    }
    engine_finish(e, op, pcclSuccess);
}

void op_take_done(struct engine *e, struct op *op, struct endpoint *ep,
                  const struct frame *f)
{
    if (!(f->flags & FLAG_CLEAN)) op->cleared = false;
    ep->done = true;
    bool ring = op->plan.done == DONE_RING;
    if (ring && ep == &op->eps[0] && f->index > op->done_prev)
        op->done_prev = f->index;
    if (op->phase != PHASE_COMPLETE) return;
    if (op->plan.done != DONE_PAIRS) send_done(e, op);
    check_done(e, op);
}

/* ----------------------------------------------------------- a result given */

void engine_accept_donation(struct engine *e, uint64_t scope, uint64_t tag,
                            uint32_t seq, const uint8_t *bytes, uint32_t size)
{
    struct op *op = op_find(e, scope, tag, seq);
    if (!op || op->phase != PHASE_RUNNING || !e->links.frozen) return;
    if (size != op_result_size(op)) return;
    const struct algorithm *a = op->plan.algorithm;
    bool alone = a->at_root && plan_is_root(&op->plan);
    if (alone && !a->has(op, op->plan.segments)) return; /* rule D23d */
    conn_cut_sending(&e->links, op);
    input_overwrite(op, op->r.recvbuf, size);
    if (size > 0) memcpy(op->r.recvbuf, bytes, size);
    op->phase = PHASE_COMPLETE;
}
