/* small_tree.c - "tree": every member waits for the members below it in a tree
 * and tells the one above; the root answers, and the answer goes down (rule
 * D17). 2(n-1) messages, of any width: four of them deep, or two where the root
 * is the parent of all. Pure.
 *
 * An all-reduce adds up on the way to the root, in the order of positions. The
 * data of a broadcast go to the root first, if its sender is another member;
 * all others send an empty word. The blocks of an all-gather are collected on
 * the way to the root. So all results imply that all have launched (rule D5),
 * and all collectives use the same links. In an all-to-all whose blocks are all
 * equally large (rule D26) what a part of the tree sends goes up as it is, the
 * root turns the table of all blocks, and what a part receives goes down. */
#include "algorithm.h"
#include "geometry.h"
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

/* What a transfer waits for. */
enum { AFTER_CHILDREN, AFTER_RESULT };

struct small_tree_state {
    uint32_t missing; /* transfers of the children that have not come */
    bool has_result;
    /* The sum of this part of the tree, then the result; of an all-gather the
     * blocks in the order of positions. Of an all-to-all, of each member of
     * this part, in that order, its blocks for all, then in a second table
     * those of all for it. */
    uint8_t *value;
    _Alignas(64) uint8_t slots[]; /* a vector of each child, or `value` */
};

/* --------------------------------------------------------------- the plan */

static bool holds_root(const struct plan *p, const struct tree_node *part)
{
    uint32_t root = plan_position(p, p->r.root);
    return root >= part->position && root < part->position + part->size;
}

static bool is_all_to_all(const struct plan *p)
{
    return p->r.coll == COLL_ALLTOALLV;
}

/* Of an all-to-all: bytes of one member in either table. */
static uint64_t line_size(const struct plan *p)
{
    return p->r.world * plan_vector_size(p);
}

/* The part of the tree on the other side of a link that is below it. */
static void part_of(const struct plan *p, uint32_t rank, struct tree_node *part)
{
    *part = p->tree;
    if (!plan_is_parent(p, rank)) (void)plan_tree_child(p, rank, part);
}

/* What goes up from a part of the tree, or down to it: what did not come from
 * it. An all-gather has two pieces that go down. Sets the offset; returns the
 * bytes. */
static uint64_t piece_of(const struct plan *p, const struct tree_node *part,
                         bool down, uint32_t i, uint64_t *offset)
{
    uint64_t size = plan_vector_size(p);
    uint32_t end = part->position + part->size;
    uint64_t line = line_size(p);
    *offset = 0;
    switch (p->r.coll) {
    case COLL_BROADCAST:
        return holds_root(p, part) == down ? 0 : size;
    case COLL_ALLGATHER:
        if (down && i == 0) return part->position * size;
        *offset = (down ? end : part->position) * size;
        return (down ? p->r.world - end : part->size) * size;
    case COLL_ALLTOALLV:
        *offset = (part->position - p->tree.position) * line;
        if (down) *offset += p->tree.size * line; /* in the second table */
        return part->size * line;
    default:
        return size;
    }
}

static uint32_t transfers(const struct plan *p, uint32_t rank, bool down)
{
    struct tree_node part;
    if (!is_all_to_all(p)) return down && p->r.coll == COLL_ALLGATHER ? 2 : 1;
    part_of(p, rank, &part);
    return plan_block_transfers(part.size * line_size(p));
}

static void cut(const struct plan *p, uint32_t rank, bool down, uint32_t k,
                struct plan_xfer *x)
{
    struct tree_node part;
    part_of(p, rank, &part);
    uint64_t size = piece_of(p, &part, down, k, &x->offset);
    if (is_all_to_all(p)) {
        uint64_t first = (uint64_t)k * PLAN_SEGMENT_MAX;
        x->offset += first;
        size -= first;
        if (size > PLAN_SEGMENT_MAX) size = PLAN_SEGMENT_MAX;
    }
    x->space = SPACE_SLOT;
    x->size = (uint32_t)size;
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return transfers(p, to, !plan_is_parent(p, to));
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return transfers(p, from, plan_is_parent(p, from));
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    bool down = !plan_is_parent(p, to);
    cut(p, to, down, k, x);
    if (down)
        x->after = AFTER_RESULT;
    else if (p->tree.children > 0)
        x->after = AFTER_CHILDREN;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    cut(p, from, plan_is_parent(p, from), k, x);
}

static const char *unfit_tree(const struct plan_request *r)
{
    if (r->world < 3) return "needs 3 members";
    return r->tree || r->mesh ? NULL : "needs the links of a tree";
}

static const char *unfit_all_to_all(const struct plan_request *r)
{
    if (r->flow != FLOW_EVEN) return "needs blocks of one size";
    return unfit_tree(r);
}

static const char *unfit(const struct plan_request *r)
{
    uint64_t size = r->count * r->element;
    if (unfit_tree(r)) return unfit_tree(r);
    if (r->codes) return "its elements are not codes";
    if (r->coll == COLL_BARRIER) return NULL;
    if (r->count > PLAN_SEGMENT_MAX) return "takes up to 512 KiB";
    if (r->coll == COLL_ALLGATHER) size *= r->world;
    return size > PLAN_SEGMENT_MAX ? "takes up to 512 KiB" : NULL;
}

/* ---------------------------------------------------------- the operation */

static bool reduces(const struct op *op)
{
    return op->plan.r.coll == COLL_ALLREDUCE || op->plan.r.coll == COLL_BARRIER;
}

static size_t vector_size(const struct op *op)
{
    return (size_t)plan_vector_size(&op->plan);
}

/* The caller's blocks, in the order of positions. */
static void take_input(const struct op *op)
{
    const struct small_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    size_t size = vector_size(op);
    const uint8_t *own = op->r.sendbuf;
    if (size == 0) return;
    if (is_all_to_all(p)) {
        for (uint32_t i = 0; i < p->r.world; i++)
            memcpy(s->value + i * size, own + p->r.send_displs[plan_at(p, i)],
                   size);
        return;
    }
    if (!own) own = (const uint8_t *)op->r.recvbuf + p->r.rank * size;
    memcpy(s->value + p->tree.position * size, own, size);
}

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    size_t slots = 0;
    if (reduces(op)) slots = p->tree.children;
    if (p->r.coll == COLL_ALLGATHER) slots = p->r.world;
    if (is_all_to_all(p)) slots = (size_t)2 * p->tree.size * p->r.world;
    struct small_tree_state *s =
        op_take_state(e, op, sizeof *s, slots * vector_size(op));
    if (!s) return false;
    for (uint32_t i = 0; i < p->tree.children; i++)
        s->missing += op->eps[i].recvs;
    s->value = op->r.recvbuf;
    if (reduces(op) || p->r.coll == COLL_BROADCAST) return true;
    s->value = s->slots;
    take_input(op);
    return true;
}

static bool has(const struct op *op, uint32_t after)
{
    const struct small_tree_state *s = op->state;
    return s->missing == 0 && (after == AFTER_CHILDREN || s->has_result);
}

static const uint8_t *source(struct op *op, const struct plan_xfer *x)
{
    const struct small_tree_state *s = op->state;
    bool own = x->after == PLAN_NOTHING && reduces(op);
    return own ? op->r.sendbuf : s->value + x->offset;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    struct small_tree_state *s = op->state;
    (void)k;
    if (!reduces(op) || plan_is_parent(&op->plan, ep->rank))
        return s->value + x->offset;
    return s->slots + (size_t)(ep - op->eps) * vector_size(op);
}

/* At the root: from the order of the senders to that of the receivers. */
static void turn(const struct op *op)
{
    const struct small_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    size_t block = vector_size(op), line = (size_t)line_size(p);
    uint8_t *to = s->value + p->r.world * line;
    for (uint32_t i = 0; i < p->r.world && block > 0; i++) {
        for (uint32_t k = 0; k < p->r.world; k++, to += block)
            memcpy(to, s->value + k * line + i * block, block);
    }
}

static void fold(struct op *op)
{
    const struct small_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    size_t size = vector_size(op), count = (size_t)p->r.count;
    if (is_all_to_all(p) && plan_is_root(p)) turn(op);
    if (!reduces(op) || size == 0) return;
    const uint8_t *sum = op->r.sendbuf;
    for (uint32_t i = 0; i < p->tree.children; i++) {
        reduce_apply(op->r.dtype, op->r.redop, s->value, sum,
                     s->slots + i * size, count);
        sum = s->value;
    }
    if (plan_is_root(p) && op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, s->value, count, p->r.world);
}

/* Rule D9c: by the fast path, which had read the data of all children. They
 * come again, in any order with the result, which has the place of the sum. */
static bool sum_is_sent(const struct op *op)
{
    const struct plan *p = &op->plan;
    return !plan_is_root(p) && op->eps[p->tree.children].send_next > 0;
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct small_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    (void)k;
    (void)x;
    (void)body;
    if (plan_is_parent(p, ep->rank)) {
        s->has_result = ep->received == ep->recvs;
        if (!s->has_result) return;
    } else {
        if (--s->missing > 0) return;
        if (!sum_is_sent(op)) {
            fold(op);
            s->has_result = plan_is_root(p);
        }
    }
    op_wake(e, op);
    if (!plan_is_root(p)) op_announce(e, op, &op->eps[p->tree.children]);
}

static void complete(struct op *op)
{
    const struct small_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    size_t size = vector_size(op);
    const uint8_t *from = s->value;
    if (size == 0 || reduces(op) || p->r.coll == COLL_BROADCAST) return;
    if (is_all_to_all(p)) from += p->tree.size * line_size(p);
    for (uint32_t i = 0; i < p->r.world; i++, from += size) {
        uint32_t rank = plan_at(p, i);
        size_t at = is_all_to_all(p) ? p->r.recv_displs[rank] : rank * size;
        memcpy((uint8_t *)op->r.recvbuf + at, from, size);
    }
}

const struct algorithm small_tree = {
    .name = "tree",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER) | BIT(COLL_BROADCAST) |
             BIT(COLL_ALLGATHER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .fast = FAST_TREE,
    .shape = plan_shape_tree,
    .partners = plan_tree_partners,
    .partner = plan_tree_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = has,
    .source = source,
    .place = place,
    .arrived = arrived,
    .complete = complete,
};

const struct algorithm alltoallv_tree = {
    .name = "tree",
    .colls = BIT(COLL_ALLTOALLV),
    .unfit = unfit_all_to_all,
    .awaits_all = true,
    .shape = plan_shape_tree,
    .partners = plan_tree_partners,
    .partner = plan_tree_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = has,
    .source = source,
    .place = place,
    .arrived = arrived,
    .complete = complete,
};
