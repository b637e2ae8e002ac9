/* op.c - finds, launches and starts collective operations. Pure.
 *
 * Rule numbers: see src/README.md. */
#include "op.h"

#include "algorithm.h"
#include "algorithm_table.h"
#include "geometry.h"

#include "../base/buggify.h"
#include "../base/host_id.h"
#include "../base/scope.h"

#include <string.h>

/* ----------------------------------------------------------------- search */

struct op *op_find(struct engine *e, uint64_t scope, uint64_t tag, uint32_t seq)
{
    struct op *op = engine_find(e, tag);
    if (!op || op->phase == PHASE_QUEUED || op->seq != seq) return NULL;
    bool same = op->epoch == e->links.view->epoch && op->scope_number == scope;
    return same ? op : NULL;
}

struct endpoint *op_endpoint(struct op *op, const struct link *l)
{
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (op->eps[i].link == l) return &op->eps[i];
    }
    return NULL;
}

bool op_has_member(const struct op *op, uint64_t id)
{
    if (op->whole) return true; /* links lead to members of the view */
    for (uint32_t i = 0; i < op->r.member_count; i++) {
        if (op->scope[i] == id) return true;
    }
    return false;
}

void op_disagrees(struct engine *e, struct op *op, uint64_t peer)
{
    if (!op->mismatch) e->out.fault(e->out.user, FAULT_MISMATCH, op, peer);
    op->mismatch = true;
}

/* A frame of a member for an operation under way here: true if both ends agree
 * on its arguments (contract C4). ep NULL: here it is no partner. */
bool op_agrees(struct engine *e, struct op *op, const struct endpoint *ep,
               const struct frame *f, uint64_t peer)
{
    if (f->digest == (ep ? ep->rx_digest : op->r.digest)) return true;
    op_disagrees(e, op, peer);
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

void *op_take_state(struct engine *e, struct op *op, size_t zeroed, size_t more)
{
    op->state = pool_take(&e->links.pool, zeroed + more);
    if (op->state) memset(op->state, 0, zeroed);
    return op->state;
}

void op_free_run(struct engine *e, struct op *op)
{
    const struct algorithm *a = op->plan.algorithm;
    if (op->state && a->end) a->end(e, op);
    single_copy_give_slot(e, op);
    input_end(e, op);
    pool_give(&e->links.pool, op->state);
    pool_give(&e->links.pool, op->eps);
    pool_give(&e->links.pool, op->came);
    op->state = NULL;
    op->eps = NULL;
    op->came = NULL;
    op->ep_count = 0;
}

void op_forget(struct engine *e, const struct op *op)
{
    if (op->ep_count > 0) conn_forget(&e->links, op);
}

void engine_release(struct engine *e, struct op *op)
{
    if (op->phase == PHASE_FREE) return;
    op_forget(e, op);
    op_end_activity(e, op);
    op_leave(e, op);
    op_free_run(e, op);
    e->scoped -= op->r.members != NULL;
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
    const struct op_call *call = &r->call;
    op->r = *call;
    op->plan.r = r->plan;
    op->whole = call->members == NULL;
    if (!op->whole && e->scoped++ == SCOPED_MAX) return false;
    op->scope_number = scope_number(call->members, call->member_count);
    if (!op->whole) {
        size_t size = call->member_count * sizeof *op->scope;
        op->scope = pool_take(&e->links.pool, size);
        if (!op->scope) return false;
        memcpy(op->scope, call->members, size);
        op->r.members = op->scope;
    }
    if (op->plan.r.coll != COLL_ALLTOALLV) return true;
    uint32_t world = op->whole ? e->links.view->size : call->member_count;
    size_t one = world * sizeof(size_t);
    op->arrays = pool_take(&e->links.pool, 4 * one);
    if (!op->arrays) return false;
    struct plan_request *p = &op->plan.r;
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
    op->r.tag = r->call.tag;
    op_enter(e, op);
    if ((uint32_t)(op - e->ops) >= e->op_end)
        e->op_end = (uint32_t)(op - e->ops) + 1;
    if (!copy_request(e, op, r) || (!queue && !engine_start(e, op))) {
        engine_release(e, op);
        return NULL;
    }
    return op;
}

/* The host of all members; 0: there are several hosts. */
static uint64_t common_host(const struct engine *e, const struct op_call *call)
{
    if (!call || !call->members) return e->links.view->one_host;
    uint64_t host = 0;
    for (uint32_t i = 0; i < call->member_count; i++) {
        const struct wire_member *m = links_member(&e->links, call->members[i]);
        if (!m || (i > 0 && m->host != host)) return 0;
        host = m->host;
    }
    return host;
}

void op_plan_request(const struct engine *e, const struct op_call *call,
                     struct plan_request *p)
{
    const uint64_t *scope = call ? call->members : NULL;
    uint64_t host = common_host(e, call);
    p->one_host = host != 0;
    p->shared_memory = host_shares_memory(host);
    p->codes = call && call->quant.algorithm != QUANT_NONE;
    p->cached = e->cached;
    p->single_copy_world = e->single_copy_on ? e->single_copy_world : 0;
    p->boards = e->boards_on && !scope;
    p->roomy = e->roomy;
    p->piece = e->piece;
    p->mesh = e->links.view->mesh;
    p->tree = e->links.view->tree;
    p->grid = e->links.view->grid && !scope;
    p->tree_width = e->tree_width;
    p->forced = e->forced[p->coll];
    p->hierarchy = NULL;
    if (!scope) {
        p->world = e->links.view->size;
        p->rank = e->links.view->rank;
        p->order = e->links.view->order;
        if (e->has_hierarchy && p->coll != COLL_REDUCE_SCATTER)
            p->hierarchy = &e->hierarchy;
    } else {
        p->world = call->member_count;
        p->order = NULL;
        for (uint32_t i = 0; i < p->world; i++) {
            if (scope[i] == e->links.self) p->rank = i;
        }
    }
}

bool engine_force(struct engine *e, const char *text)
{
    return algorithm_parse(text, e->forced);
}

const char *engine_forced(const struct engine *e, enum plan_coll coll)
{
    return e->forced[coll];
}

const char *engine_algorithm_name(uint32_t i)
{
    return algorithm_name(i);
}

const char *engine_algorithm_gone(const char *text)
{
    return algorithm_gone(text);
}

const char *engine_unfit(const struct engine *e, const struct op_request *r,
                         const char **name)
{
    struct plan_request p = r->plan;
    *name = e->forced[p.coll];
    if (!*name) return NULL;
    op_plan_request(e, &r->call, &p);
    return algorithm_unfit(&p);
}

uint64_t op_result_size(const struct op *op)
{
    const struct algorithm *a = op->plan.algorithm;
    enum plan_coll coll = op->plan.r.coll;
    if (!a) return 0; /* it has never started */
    /* Nobody else has it. */
    if (coll == COLL_ALLTOALLV || a->at_root) return 0;
    if (coll == COLL_REDUCE_SCATTER)
        return plan_chunk_size(&op->plan, op->plan.r.rank);
    uint64_t size = op_vector_size(op);
    return coll == COLL_ALLGATHER ? size * op->plan.r.world : size;
}

uint64_t op_pair_digest(uint64_t digest, size_t there, size_t back)
{
    uint64_t hash = (digest ^ there) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ back) * 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

void op_wake(struct engine *e, const struct op *op)
{
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

static void set_digests(const struct op *op, struct endpoint *ep)
{
    const struct plan_request *p = &op->plan.r;
    ep->tx_digest = ep->rx_digest = op->r.digest;
    if (p->coll != COLL_ALLTOALLV) return;
    size_t sends = p->send_bytes[ep->rank];
    size_t recvs = p->recv_bytes[ep->rank];
    ep->tx_digest = op_pair_digest(op->r.digest, sends, recvs);
    ep->rx_digest = op_pair_digest(op->r.digest, recvs, sends);
}

static bool open_endpoint(struct engine *e, struct op *op, uint32_t i)
{
    const struct plan *p = &op->plan;
    struct endpoint *ep = &op->eps[i];
    ep->rank = plan_partner(p, i);
    ep->sends = plan_sends(p, ep->rank);
    ep->recvs = plan_recvs(p, ep->rank);
    set_digests(op, ep);
    const struct wire_member *m =
        op->whole ? &e->links.view->members[ep->rank]
                  : links_member(&e->links, op->scope[ep->rank]);
    ep->link = m ? link_find(&e->links, m->id, true) : NULL;
    if (!ep->link) return false;
    link_know(ep->link, m);
    bool used = op_exchanges(ep);
    if (p->algorithm->widens && (used || p->done == DONE_RING))
        link_widen(&e->links, ep->link);
    if (used) op->eps_left++;
    return true;
}

void op_control_send(struct engine *e, const struct op *op, struct endpoint *ep,
                     enum frame_type type, uint32_t index, uint8_t flags)
{
    struct frame f = {.type = (uint8_t)type,
                      .flags = flags,
                      .epoch = e->links.view->epoch,
                      .scope = op->scope_number,
                      .tag = op->r.tag,
                      .seq = op->seq,
                      .index = index,
                      .digest = ep->tx_digest};
    if (!link_control(&e->links, ep->link, &f))
        e->out.fault(e->out.user, FAULT_BROKEN, op, ep->link->id);
}

/* Rule D17c: in a tree a member has nothing to send before it has the data of
 * those below. It announces its launch to one of them that asks; and to its
 * parent when it has the data. Rule D20c: so it does in a grid, to the members
 * of other rows when it has the data of its own. */
static bool waits_to_be_asked(const struct op *op, const struct endpoint *ep)
{
    struct plan_xfer x;
    if (op->plan.algorithm->tells_launch) return false;
    if (op->plan.done == DONE_GRID)
        return ep->sends > 0 && !op_may_send(op, ep, 0, &x);
    if (op->plan.done != DONE_TREE || ep->recvs == 0) return false;
    if (plan_is_root(&op->plan) && ep->rank == plan_at(&op->plan, 0))
        return false; /* rule D23c */
    if (plan_is_parent(&op->plan, ep->rank))
        return ep->sends > 0 && !op_may_send(op, ep, 0, &x);
    return !ep->ready || ep->received > 0;
}

void op_announce(struct engine *e, struct op *op, struct endpoint *ep)
{
    struct plan_xfer x;
    if (ep->announced || !op_exchanges(ep) || waits_to_be_asked(op, ep)) return;
    ep->announced = true;
    if (ep->sends > 0 && op_may_send(op, ep, 0, &x))
        ep->reserved = ep->ready || op_eager_fits(ep, x.size);
    if (!ep->reserved) {
        op_control_send(e, op, ep, FRAME_READY, 0, 0);
    } else if (!ep->ready) {
        ep->eager = x.size;
        ep->link->eager_bytes += x.size;
    }
}

/* Members whose plan of this operation is another one may have sent frames
 * here, although they are no partners by this member's plan (rule D2c). */
static void check_others(struct engine *e, struct op *op)
{
    uint32_t partners = 0;
    for (uint32_t i = 0; i < op->ep_count; i++)
        partners += op->eps[i].link->unexpected_count > 0;
    if (e->links.unexpected_links == partners) return;
    for (uint32_t i = 0; i < e->links.view->size; i++) {
        struct link *l = link_find(&e->links, e->links.view->ids[i], false);
        if (l && !op_endpoint(op, l)) engine_apply_unexpected(e, op, l);
    }
}

/* The own part of the result needs no transfer. Rule D2f: a member that sends
 * itself something else than it expects of itself waits for itself. */
static void place_own(struct engine *e, struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    uint8_t *to = op->r.recvbuf;
    const uint8_t *from = op->r.sendbuf;
    size_t size = op_vector_size(op);
    if (p->coll == COLL_ALLTOALLV) {
        size = p->send_bytes[p->rank];
        if (p->recv_bytes[p->rank] != size) {
            op->eps_left++;
            op_disagrees(e, op, e->links.self);
            return;
        }
        to += p->recv_displs[p->rank];
        from += p->send_displs[p->rank];
    } else if (p->coll == COLL_ALLGATHER) {
        to += p->rank * size;
    } else if (!plan_coll_reduces(p->coll) || p->world > 1) {
        return;
    }
    if (op->r.sendbuf && size > 0 && to != from) memmove(to, from, size);
}

static size_t bit_set_size(const struct endpoint *ep)
{
    size_t size = ep->recvs / 8 + 1;
    return size > sizeof ep->came_few ? size : 0;
}

static bool make_bit_sets(struct engine *e, struct op *op)
{
    size_t size = 0;
    for (uint32_t i = 0; i < op->ep_count; i++)
        size += bit_set_size(&op->eps[i]);
    if (size > 0) op->came = pool_take(&e->links.pool, size);
    if (size > 0 && !op->came) return false;
    if (size > 0) memset(op->came, 0, size);
    uint8_t *at = op->came;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        struct endpoint *ep = &op->eps[i];
        size = bit_set_size(ep);
        ep->came = size > 0 ? at : ep->came_few;
        if (size > 0) at += size;
    }
    return true;
}

static bool open_endpoints(struct engine *e, struct op *op)
{
    uint32_t count = plan_partners(&op->plan);
    size_t size = (count + 1) * sizeof *op->eps;
    op->eps = pool_take(&e->links.pool, size);
    if (!op->eps) return false;
    memset(op->eps, 0, size);
    op->ep_count = count;
    op->eps_left = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!open_endpoint(e, op, i)) return false;
    }
    return make_bit_sets(e, op);
}

/* Rules D4, D5. With many large operations each DONE hides behind the data of
 * the next one, and is cheaper than a copy. */
static bool must_confirm(struct engine *e, struct op *op)
{
    bool many = (e->active > e->many || e->in_a_row > e->many) &&
                op_result_size(op) >= MANY_SIZE;
    return op_all_confirm(op) || many || PCCL_BUGGIFY(must_confirm) ||
           !op_reserve_result(e, op);
}

/* False: no memory; nothing has happened (rule D1). */
static bool make_plan(struct engine *e, struct op *op)
{
    struct plan_request p = op->plan.r;
    op_plan_request(e, &op->r, &p);
    plan_init(&op->plan, &p);
    op->contributors = p.world;
    op->seq = op_next_sequence(e, op);
    if (!open_endpoints(e, op)) return false;
    const struct algorithm *a = op->plan.algorithm;
    if (!input_begin(e, op)) return false;
    if (a->begin && !a->begin(e, op)) return false;
    if (!op_take_sequence(e, op)) return false;
    op->confirm = must_confirm(e, op);
    op_begin_sweep(e, op);
    place_own(e, op);
    return true;
}

bool engine_start(struct engine *e, struct op *op)
{
    op_forget(e, op);
    op_unqueue(e, op);
    op_release_result(e, op);
    input_restore(op);
    op_free_run(e, op);
    if (e->sweeper == op) e->sweeper = NULL;
    op->phase = PHASE_RUNNING;
    op->mismatch = op->tells_all = false;
    op->cleared = true;
    op->done_prev = op->done_sent = 0;
    op->tx_bytes = op->rx_bytes = op->mapped_bytes = 0;
    op->epoch = e->links.view->epoch;
    op->verdict = VERDICT_ABORT;
    if (!make_plan(e, op)) return false;
    op_begin_sending(e, op);
    if (op->eps_left == 0) {
        op_hold(e, op);
        if (op->phase != PHASE_COMPLETE) return true;
    }
    for (uint32_t i = 0; i < op->ep_count; i++) {
        link_need(&e->links, op->eps[i].link);
        link_dirty(&e->links, op->eps[i].link);
    }
    for (uint32_t i = 0; i < op->ep_count && op->phase != PHASE_DONE; i++)
        engine_apply_unexpected(e, op, op->eps[i].link);
    if (op->phase == PHASE_DONE) return true;
    for (uint32_t i = 0; i < op->ep_count; i++) op_announce(e, op, &op->eps[i]);
    check_others(e, op);
    return true;
}

bool engine_start_failing(struct engine *e, struct op *op)
{
    op_free_run(e, op);
    if (!op_take_sequence(e, op)) return false;
    op_begin_sending(e, op);
    engine_fail(e, op, true);
    return true;
}
