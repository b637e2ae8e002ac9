/* op.c - one collective operation: launch, transfers, completion. Pure.
 *
 * Rule numbers refer to master/PROTOCOL.md. */
#include "op.h"

#include "../reduce/reduce.h"

#include "../../include/pccl.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- search */

struct op *op_find(struct engine *e, uint64_t tag, uint32_t seq)
{
    struct op *op = engine_find(e, tag);
    if (!op || op->phase == PHASE_QUEUED || op->seq != seq) return NULL;
    return op->epoch == e->links.epoch ? op : NULL;
}

struct endpoint *op_endpoint(struct op *op, const struct link *l)
{
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (op->eps[i].link == l) return &op->eps[i];
    }
    return NULL;
}

/* A frame for an operation under way here, from whoever: do both ends agree
 * on its arguments (contract C4)? */
bool op_agrees(struct engine *e, struct op *op, const struct frame *f,
               uint64_t peer)
{
    if (f->digest == op->r.digest) return true;
    if (!op->mismatch) e->out.fault(e->out.user, FAULT_MISMATCH, op, peer);
    op->mismatch = true;
    return false;
}

bool op_uses_link(const struct engine *e, const struct link *l,
                  const struct op **which)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        for (uint32_t k = 0; k < op->ep_count; k++) {
            if (op->eps[k].link != l) continue;
            if (which) *which = op;
            return true;
        }
    }
    return false;
}

bool engine_lacks_link(const struct engine *e)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op->phase != PHASE_RUNNING && op->phase != PHASE_COMPLETE) continue;
        for (uint32_t k = 0; k < op->ep_count; k++) {
            if (op->eps[k].link->open == 0) return true;
        }
    }
    return false;
}

/* ----------------------------------------------------------------- launch */

static void free_run(struct engine *e, struct op *op)
{
    pool_give(&e->links.pool, op->eps);
    pool_give(&e->links.pool, op->received);
    pool_give(&e->links.pool, op->begun);
    pool_give(&e->links.pool, op->saved);
    pool_give(&e->links.pool, op->backup);
    pool_give(&e->links.pool, op->slots);
    pool_give(&e->links.pool, op->codes);
    pool_give(&e->links.pool, op->came);
    pool_give(&e->links.pool, op->turns);
    single_copy_end(e, op);
    op->eps = NULL;
    op->received = op->saved = op->backup = op->slots = op->codes = NULL;
    op->came = op->begun = NULL;
    op->turns = NULL;
    op->ep_count = 0;
}

void engine_release(struct engine *e, struct op *op)
{
    if (op->phase == PHASE_FREE) return;
    conn_forget(&e->links, op);
    op_end_activity(e, op);
    op_leave(e, op);
    free_run(e, op);
    pool_give(&e->links.pool, op->scope);
    pool_give(&e->links.pool, op->arrays);
    memset(op, 0, sizeof *op);
    uint32_t number = (uint32_t)(op - e->ops);
    if (number < e->op_free) e->op_free = number;
    while (e->op_end > 0 && e->ops[e->op_end - 1].phase == PHASE_FREE)
        e->op_end--;
}

static bool copy_request(struct engine *e, struct op *op,
                         const struct op_request *r)
{
    op->r = *r;
    op->whole = r->members == NULL;
    if (!op->whole) {
        size_t size = r->member_count * sizeof *op->scope;
        op->scope = pool_take(&e->links.pool, size);
        if (!op->scope) return false;
        memcpy(op->scope, r->members, size);
        op->r.members = op->scope;
    }
    if (r->plan.coll != COLL_ALLTOALLV) return true;
    uint32_t world = op->whole ? e->links.world : r->member_count;
    size_t one = world * sizeof(size_t);
    op->arrays = pool_take(&e->links.pool, 4 * one);
    if (!op->arrays) return false;
    struct plan_request *p = &op->r.plan;
    const size_t **arrays[] = {&p->send_bytes, &p->send_displs, &p->recv_bytes,
                               &p->recv_displs};
    for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) {
        memcpy(op->arrays + i * world, *arrays[i], one);
        *arrays[i] = op->arrays + i * world;
    }
    return true;
}

struct op *engine_launch(struct engine *e, const struct op_request *r,
                         bool queue)
{
    struct op *op = e->ops + e->op_free;
    while (op < e->ops + OPS_MAX && op->phase != PHASE_FREE) op++;
    e->op_free = (uint32_t)(op - e->ops);
    if (op == e->ops + OPS_MAX) return NULL;
    op->phase = PHASE_QUEUED;
    e->in_a_row++;
    op->r.tag = r->tag;
    op_enter(e, op);
    if ((uint32_t)(op - e->ops) >= e->op_end)
        e->op_end = (uint32_t)(op - e->ops) + 1;
    if (!copy_request(e, op, r) || (!queue && !engine_start(e, op))) {
        engine_release(e, op);
        return NULL;
    }
    return op;
}

/* Bytes of the result in r.recv, for plans that may be retained. */
uint64_t op_result_size(const struct op *op)
{
    uint64_t size = op_vector_size(op);
    if (op->plan.kind == PLAN_GATHER_FLAT) size *= op->plan.r.world;
    return size;
}

/* Whether by the plan alone, equal on all members, everyone confirms. */
static bool all_confirm(const struct op *op)
{
    return !plan_implies_all(&op->plan) || op_result_size(op) > WIRE_RESULT_MAX;
}

/* The host that all members are on; 0: there are several. */
static uint64_t common_host(const struct engine *e, const struct op *op)
{
    if (op->whole) return e->one_host;
    uint64_t host = 0;
    for (uint32_t i = 0; i < op->r.member_count; i++) {
        const struct wire_member *m = links_member(&e->links, op->scope[i]);
        if (!m || (i > 0 && m->host != host)) return 0;
        host = m->host;
    }
    return host;
}

static void make_plan(struct engine *e, struct op *op)
{
    struct plan_request *p = &op->r.plan;
    uint64_t host = common_host(e, op);
    p->one_host = host != 0;
    /* Rule D8: each member takes its own vector from its codes. */
    bool plain = op->r.quant.algorithm == QUANT_NONE;
    p->sockets = host % 2 == 1 && plain;
    p->pairwise = host != 0 && host % 2 == 0 && plain;
    p->plain = plain;
    /* Operations side by side have centers that differ. */
    p->center = (uint32_t)(op->r.tag ^ op->r.tag >> 32);
    p->cached = e->cached;
    p->single_copy_world = e->single_copy_on ? e->single_copy_world : 0;
    p->piece = e->piece;
    p->hierarchy = NULL;
    if (op->whole) {
        p->world = e->links.world;
        p->rank = e->rank;
        p->order = e->order;
        p->mesh = e->mesh;
        if (e->has_hierarchy) p->hierarchy = &e->hierarchy;
    } else {
        p->world = op->r.member_count;
        p->order = NULL;
        p->mesh = e->mesh;
        for (uint32_t i = 0; i < p->world; i++) {
            if (op->scope[i] == e->links.self) p->rank = i;
        }
    }
    plan_init(&op->plan, p);
    op->contributors = p->world;
}

/* What one partner sends can be added to the own vector at once. */
static bool may_be_direct(const struct op *op)
{
    return op->plan.kind == PLAN_EXCHANGE && op->plan.r.world == 2 &&
           !op_is_quantized(op);
}

static bool take_buffers(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    uint32_t eps = plan_partners(p);
    op->eps = pool_take(&e->links.pool, (eps + 1) * sizeof *op->eps);
    if (!op->eps) return false;
    memset(op->eps, 0, (eps + 1) * sizeof *op->eps);
    op->ep_count = eps;
    if (op_is_quantized(op) && !op_quant_take(e, op)) return false;
    if (p->kind == PLAN_STAR && !plan_is_center(&op->plan) && !op_in_place(op))
        return true;
    if (may_be_direct(op) && !op_in_place(op)) return true;
    if (p->kind == PLAN_EXCHANGE || p->kind == PLAN_STAR) {
        op->slots =
            pool_take(&e->links.pool, p->r.world * plan_vector_size(p) + 1);
        return op->slots != NULL;
    }
    if (p->kind == PLAN_PAIRWISE) return op_pairwise_take(e, op);
    if (p->kind == PLAN_SINGLE_COPY) return op_single_copy_take(e, op);
    if (!plan_is_ring(p)) return true;
    size_t bits = plan_recvs(p, p->prev) / 8 + 1;
    op->received = pool_take(&e->links.pool, bits);
    op->saved = pool_take(&e->links.pool, bits);
    if (op_in_place(op) && !op->backup)
        op->backup = pool_take(&e->links.pool, op_vector_size(op) + 1);
    size_t sends = plan_sends(p, p->next) / 8 + 1;
    op->begun = pool_take(&e->links.pool, sends);
    if (!op->received || !op->saved || !op->begun ||
        (op_in_place(op) && !op->backup))
        return false;
    memset(op->begun, 0, sends);
    memset(op->received, 0, bits);
    memset(op->saved, 0, bits);
    return true;
}

static bool open_endpoint(struct engine *e, struct op *op, uint32_t i)
{
    const struct plan *p = &op->plan;
    struct endpoint *ep = &op->eps[i];
    ep->rank = plan_partner(p, i);
    ep->sends = plan_sends(p, ep->rank);
    ep->recvs = plan_recvs(p, ep->rank);
    const struct wire_member *m =
        op->whole ? &e->links.members[ep->rank]
                  : links_member(&e->links, op->scope[ep->rank]);
    ep->link = m ? link_find(&e->links, m->id, true) : NULL;
    if (!ep->link) return false;
    ep->link->addr = m->addr;
    ep->link->host = m->host;
    ep->link->known = true;
    bool used = ep->sends > 0 || ep->recvs > 0;
    if (plan_is_ring(p) && (used || !p->direct))
        link_widen(&e->links, ep->link);
    if (used) op->eps_left++;
    return true;
}

void op_control_send(struct engine *e, const struct op *op, struct endpoint *ep,
                     enum frame_type type, uint32_t index, uint8_t flags)
{
    struct frame f = {.type = (uint8_t)type,
                      .flags = flags,
                      .epoch = e->links.epoch,
                      .tag = op->r.tag,
                      .seq = op->seq,
                      .index = index,
                      .digest = op->r.digest};
    if (!link_control(&e->links, ep->link, &f))
        e->out.fault(e->out.user, FAULT_BROKEN, op, ep->link->id);
}

/* Rule D2: who sends much waits until the receiver says that it has launched;
 * DATA says so as well. */
static void announce(struct engine *e, struct op *op, struct endpoint *ep)
{
    bool every = op->plan.kind == PLAN_ALLTOALL;
    if (ep->recvs == 0 && !every) return;
    if (op->plan.kind == PLAN_STAR && plan_is_center(&op->plan))
        return; /* when asked */
    struct plan_xfer x = {.size = UINT32_MAX, .after = 0};
    if (ep->sends > 0) plan_send(&op->plan, ep->rank, 0, &x);
    bool speaks = x.after == PLAN_NOTHING && op_eager_fits(ep, x.size);
    if (speaks && !every) return;
    ep->asked = true;
    op_control_send(e, op, ep, FRAME_READY, ep->recvs, 0);
}

static void hold(struct engine *e, struct op *op);

/* What one's own part of the result is needs no transfer. */
static void place_own(struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    uint8_t *to = op->r.recv;
    const uint8_t *from = op->r.send;
    size_t size = op_vector_size(op);
    if (p->coll == COLL_ALLTOALLV) {
        size = p->send_bytes[p->rank];
        to += p->recv_displs[p->rank];
        from += p->send_displs[p->rank];
    } else if (p->coll == COLL_ALLGATHER) {
        to += p->rank * size;
    } else if (p->coll != COLL_ALLREDUCE || p->world > 1) {
        return;
    }
    if (op->r.send && size > 0 && to != from) memmove(to, from, size);
}

bool engine_start(struct engine *e, struct op *op)
{
    conn_forget(&e->links, op);
    op_unqueue(e, op);
    op_release_result(e, op);
    free_run(e, op);
    op->phase = PHASE_RUNNING;
    op->mismatch = op->folded = op->direct = op->tells_all = false;
    op->cleared = true;
    op->done_prev = op->done_sent = 0;
    op->eps_left = 0;
    op->tx_bytes = op->rx_bytes = 0;
    op->launched = ++e->clock;
    op->epoch = e->links.epoch;
    make_plan(e, op);
    if (!op_take_sequence(e, op->r.tag, &op->seq)) return false;
    if (!take_buffers(e, op)) return false;
    place_own(op);
    if (op_is_quantized(op)) op_quant_begin(op);
    op->confirm = true;
    /* Of many large ones each DONE hides behind the next one's data, and is
     * cheaper than a copy. */
    bool many = (e->active > e->many || e->in_a_row > e->many) &&
                op_result_size(op) >= MANY_SIZE;
    if (!all_confirm(op) && !many && op_reserve_result(e, op))
        op->confirm = false;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (!open_endpoint(e, op, i)) return false;
    }
    single_copy_begin(e, op);
    op_begin_sending(e, op);
    if (op->eps_left == 0) {
        hold(e, op);
        if (op->phase != PHASE_COMPLETE) return true;
    }
    for (uint32_t i = 0; i < op->ep_count; i++) {
        announce(e, op, &op->eps[i]);
        link_dial(&e->links, op->eps[i].link);
        link_dirty(&e->links, op->eps[i].link);
    }
    for (uint32_t i = 0; i < op->ep_count && op->phase != PHASE_DONE; i++)
        engine_apply_unexpected(e, op, &op->eps[i]);
    return true;
}

static void check_endpoint(struct engine *e, struct op *op,
                           const struct endpoint *ep)
{
    if (ep->sent < ep->sends || ep->received < ep->recvs) return;
    assert(op->eps_left > 0);
    if (--op->eps_left == 0) hold(e, op);
}

void op_sent(struct engine *e, struct op *op, struct endpoint *ep)
{
    if (e->links.frozen) return; /* what FLUSHED said stands */
    ep->sent++;
    check_endpoint(e, op, ep);
}

/* -------------------------------------------------------------- receiving */

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

enum op_accept op_accept(struct engine *e, struct op *op, struct endpoint *ep,
                         const struct frame *f, uint8_t *scratch, uint8_t **to)
{
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
    /* In place not before the own vector is sent. */
    if (may_be_direct(op) && (!op_in_place(op) || ep->sent == ep->sends)) {
        op->direct = true;
        op_fold_begin(op);
        *to = scratch;
        return ACCEPT_BODY;
    }
    bool pairwise = plan_has_pieces(&op->plan);
    if (x.action != ACTION_STORE) {
        *to = pairwise ? op_pairwise_slot(op, ep, f->index) : NULL;
        if (*to) return ACCEPT_BODY;
        if (!scratch && !pairwise) op_save(op, f->index, &x);
        *to = scratch;
        return ACCEPT_BODY;
    }
    if (pairwise) op_save_piece(op, plan_piece(&op->plan, ep->rank, f->index));
    uint8_t *base = x.space == SPACE_SLOT ? op->slots : op->r.recv;
    if (op->plan.kind == PLAN_STAR && !plan_is_center(&op->plan) &&
        op_in_place(op))
        base = op->slots + op->plan.center * plan_vector_size(&op->plan);
    else if (x.space == SPACE_RECV && op->codes)
        base = op->codes;
    else if (x.space == SPACE_RECV && op->received && !pairwise &&
             plan_is_first_write(&op->plan, f->index))
        op_save(op, f->index, &x);
    *to = x.size > 0 ? base + x.offset : scratch;
    return ACCEPT_BODY;
}

void op_reduce(struct op *op, const struct endpoint *ep, const struct frame *f,
               size_t at, const uint8_t *bytes, size_t size)
{
    struct plan_xfer x;
    if (op->direct) {
        op_reduce_two(op, at, bytes, size);
        return;
    }
    if (plan_has_pieces(&op->plan)) {
        uint32_t piece = plan_piece(&op->plan, ep->rank, f->index);
        uint32_t turn = plan_turn(&op->plan, piece, ep->rank);
        op_pairwise_add(op, piece, turn, at, bytes, size);
        return;
    }
    plan_recv(&op->plan, ep->rank, f->index, &x);
    size_t count = size / op->plan.r.element;
    uint8_t *to = (uint8_t *)op->r.recv + x.offset + at;
    const uint8_t *own = (const uint8_t *)op->r.send + x.offset + at;
    reduce_apply(op->r.dtype, op->r.redop, to, bytes, own, count);
    if (x.action == ACTION_DIVIDE && op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, to, count, op->plan.r.world);
}

/* Of a ring. */
static struct endpoint *next_endpoint(const struct op *op)
{
    return &op->eps[op->plan.prev == op->plan.next ? 0 : 1];
}

void op_received(struct engine *e, struct op *op, struct endpoint *ep,
                 const struct frame *f, const uint8_t *body)
{
    struct plan_xfer x;
    plan_recv(&op->plan, ep->rank, f->index, &x);
    if (op->codes) {
        op_quant_received(op, f->index, &x, body);
    } else if (op->plan.kind == PLAN_SINGLE_COPY) {
        op_single_copy_received(e, op, ep, f, body);
    } else if (op->turns) {
        op_pairwise_received(e, op, ep, f, body);
    } else if (op->direct) {
        if (body) op_reduce_two(op, 0, body, x.size);
    } else if (x.action != ACTION_STORE && x.size > 0 && body) {
        op_save(op, f->index, &x);
        op_reduce(op, ep, f, 0, body, x.size);
    }
    op->rx_bytes += x.size;
    ep->received++;
    if (x.size >= PLAN_SEGMENT_MIN && !frame_is_single_copy(f))
        measure_transfer(&ep->speed, e->links.now, f);
    if (op->received && !op->turns) {
        op_bit_set(op->received, f->index);
        link_dirty(&e->links, next_endpoint(op)->link);
    }
    if (op->plan.kind == PLAN_STAR && plan_is_center(&op->plan))
        op_fold_star(e, op);
    check_endpoint(e, op, ep);
}

/* ------------------------------------------------------------- completion */

static bool idle_but(const struct engine *e, const struct op *self)
{
    for (uint32_t i = 0; i < e->op_end; i++) {
        const struct op *op = &e->ops[i];
        if (op != self && op->phase == PHASE_RUNNING) return false;
    }
    return true;
}

/* Rule D4: DONE is counted along the ring. */
static bool is_passed_on(const struct op *op)
{
    return plan_is_ring(&op->plan) && !op->plan.direct;
}

static bool all_done(const struct op *op)
{
    if (is_passed_on(op)) return op->done_prev + 1 >= op->plan.r.world;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (!op->eps[i].done) return false;
    }
    return true;
}

/* Rule D4. Flat plans tell everyone, and so do rings of which all pairs are
 * linked; others pass a count along: "I and the index-1 before me hold the
 * result"; the center of a star tells
 * when it has heard of all (rule D11). */
static void tell_done(struct engine *e, struct op *op)
{
    uint8_t clean = op->cleared && idle_but(e, op) ? FLAG_CLEAN : 0;
    if (is_passed_on(op)) {
        uint32_t known = op->done_prev + 1;
        if (known >= op->plan.r.world) known = op->plan.r.world - 1;
        if (known <= op->done_sent) return;
        op->done_sent = known;
        op_control_send(e, op, next_endpoint(op), FRAME_DONE, known, clean);
        return;
    }
    if (plan_is_center(&op->plan) && !all_done(op)) return;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        bool tells = op->tells_all || ep->wants_done || all_confirm(op);
        if (ep->done_sent || !tells) continue;
        ep->done_sent = true;
        op_control_send(e, op, ep, FRAME_DONE, 1, clean);
    }
}

void engine_finish(struct engine *e, struct op *op, int result)
{
    conn_forget(&e->links, op);
    op_end_activity(e, op);
    for (uint32_t i = 0; i < op->ep_count; i++)
        op->eps[i].link->eager_bytes -= op->eps[i].eager;
    for (uint32_t i = 0; op->rx_bytes >= MEASURE_MIN && i < op->ep_count; i++)
        measure_link(op->eps[i].link, &op->eps[i].speed);
    free_run(e, op);
    op->result = result;
    op->phase = PHASE_DONE;
    e->out.finished(e->out.user, op);
}

/* Nobody can hold the result, and say so, before all have launched (D7). */
static bool awaits_all(const struct op *op)
{
    enum plan_kind kind = op->plan.kind;
    return plan_implies_all(&op->plan) || kind == PLAN_RING ||
           kind == PLAN_GATHER_RING;
}

static void check_done(struct engine *e, struct op *op)
{
    if (op->phase != PHASE_COMPLETE || !all_done(op)) return;
    if (op->cleared && op->whole && awaits_all(op))
        op_drop_finished_before(e, op->launched);
    op_drop_older(e, op->r.tag, op->seq);
    engine_finish(e, op, pcclSuccess);
}

/* The result is complete here and this peer's part for the others is sent. */
static void hold(struct engine *e, struct op *op)
{
    if (op->plan.kind == PLAN_EXCHANGE && !op->direct) op_fold(op);
    if (op->plan.kind == PLAN_STAR && !plan_is_center(&op->plan))
        op_take_result(op);
    op->phase = PHASE_COMPLETE;
    e->clock++;
    if (op->plan.kind == PLAN_LOCAL) {
        engine_finish(e, op, pcclSuccess);
        return;
    }
    tell_done(e, op);
    if (op->confirm) {
        check_done(e, op);
        return;
    }
    op_drop_older(e, op->r.tag, op->seq);
    if (!op_cache_result(e, op, (uint32_t)op_result_size(op))) {
        /* No memory for the copy: wait for the others instead; they were not
         * asked to confirm, so only a flush can tell. */
        e->out.fault(e->out.user, FAULT_TAGS, op, 0);
        return;
    }
    engine_finish(e, op, pcclSuccess);
}

void op_control(struct engine *e, struct op *op, struct endpoint *ep,
                const struct frame *f)
{
    if (!op_agrees(e, op, f, ep->link->id)) return;
    op_endpoint_ready(e, ep);
    if (f->type == FRAME_READY) {
        bool counted = op->plan.kind == PLAN_ALLTOALL;
        if (counted && f->index != ep->sends)
            report_mismatch(e, op, ep->link->id);
        bool asks = op->plan.kind == PLAN_STAR && plan_is_center(&op->plan) &&
                    op->phase == PHASE_RUNNING && ep->received == 0;
        if (asks) op_control_send(e, op, ep, FRAME_READY, ep->recvs, 0);
        return;
    }
    if (!(f->flags & FLAG_CLEAN)) op->cleared = false;
    ep->done = true;
    if (is_passed_on(op) && ep == &op->eps[0] && f->index > op->done_prev)
        op->done_prev = f->index;
    if (op->phase != PHASE_COMPLETE) return;
    if (is_passed_on(op) || op->plan.star) tell_done(e, op);
    check_done(e, op);
}

/* Frames that came before the launch, in the order they came. */
void engine_apply_unexpected(struct engine *e, struct op *op,
                             struct endpoint *ep)
{
    if (!ep) return;
    struct link *l = ep->link;
    struct unexpected **slot = &l->unexpected;
    while (*slot) {
        struct unexpected *k = *slot;
        bool mine = k->frame.tag == op->r.tag && k->frame.seq == op->seq;
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
            } else if (op_accept(e, op, ep, &k->frame, k->body, &to) ==
                       ACCEPT_BODY) {
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
