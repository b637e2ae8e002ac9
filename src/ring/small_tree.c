/* small_tree.c - "tree": every member waits for the members below it in a tree
 * and tells the one above; the root answers, and the answer goes down (rule
 * D17). 2(n-1) messages, four of them deep. Pure.
 *
 * An all-reduce adds up on the way to the root, in the order of positions. The
 * data of a broadcast go to the root first, if its sender is another member;
 * all others send an empty word. The blocks of an all-gather are collected on
 * the way to the root. So all results imply that all have launched (rule D5),
 * and all collectives use the same links. */
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
    bool kept; /* in place: `input` has the input */
    /* The sum of this part of the tree, then the result; of an all-gather the
     * blocks in the order of positions. */
    uint8_t *value;
    uint8_t *input;
    _Alignas(64) uint8_t slots[]; /* a vector of each child, and these two */
};

/* --------------------------------------------------------------- the plan */

static bool holds_root(const struct plan *p, const struct tree_node *part)
{
    uint32_t root = plan_position(p, p->r.root);
    return root >= part->position && root < part->position + part->size;
}

/* What goes up from that part of the tree. */
static void up(const struct plan *p, const struct tree_node *part,
               struct plan_xfer *x)
{
    uint64_t size = plan_vector_size(p);
    if (p->r.coll == COLL_ALLGATHER) {
        x->offset = part->position * size;
        size *= part->size;
    } else if (p->r.coll == COLL_BROADCAST && !holds_root(p, part)) {
        size = 0;
    }
    x->size = (uint32_t)size;
}

/* What goes down to it: what did not come from it. */
static void down(const struct plan *p, const struct tree_node *part, uint32_t k,
                 struct plan_xfer *x)
{
    uint64_t size = plan_vector_size(p);
    x->after = AFTER_RESULT;
    if (p->r.coll == COLL_ALLGATHER) {
        uint32_t end = part->position + part->size;
        x->offset = k == 0 ? 0 : end * size;
        size *= k == 0 ? part->position : p->r.world - end;
    } else if (p->r.coll == COLL_BROADCAST && holds_root(p, part)) {
        size = 0;
    }
    x->size = (uint32_t)size;
}

static uint32_t downs(const struct plan *p)
{
    return p->r.coll == COLL_ALLGATHER ? 2 : 1;
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return plan_is_parent(p, to) ? 1 : downs(p);
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return plan_is_parent(p, from) ? downs(p) : 1;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    struct tree_node part = p->tree;
    x->space = SPACE_SLOT;
    if (!plan_is_parent(p, to)) {
        (void)plan_tree_child(p, to, &part);
        down(p, &part, k, x);
        return;
    }
    up(p, &part, x);
    if (p->tree.children > 0) x->after = AFTER_CHILDREN;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    struct tree_node part = p->tree;
    x->space = SPACE_SLOT;
    if (plan_is_parent(p, from)) {
        down(p, &part, k, x);
        return;
    }
    (void)plan_tree_child(p, from, &part);
    up(p, &part, x);
}

static const char *unfit(const struct plan_request *r)
{
    uint64_t size = r->count * r->element;
    if (r->world < 3) return "needs 3 members";
    if (!r->tree && !r->mesh) return "needs the links of a tree";
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

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    size_t size = vector_size(op), slots = 0;
    bool gathers = p->r.coll == COLL_ALLGATHER;
    if (reduces(op)) slots = p->tree.children + (op_in_place(op) ? 2 : 0);
    if (gathers) slots = p->r.world;
    struct small_tree_state *s = op_take_state(e, op, sizeof *s, slots * size);
    if (!s) return false;
    s->missing = p->tree.children;
    s->value = op->r.recvbuf;
    if (op_in_place(op)) {
        s->value = s->slots + p->tree.children * size;
        s->input = s->value + size;
    }
    if (!gathers) return true;
    s->value = s->slots;
    const uint8_t *own = op->r.sendbuf;
    if (!own) own = (const uint8_t *)op->r.recvbuf + p->r.rank * size;
    if (size > 0) memcpy(s->value + p->tree.position * size, own, size);
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

static void fold(struct op *op)
{
    struct small_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    size_t size = vector_size(op), count = (size_t)p->r.count;
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
    } else {
        if (--s->missing > 0) return;
        if (!sum_is_sent(op)) {
            fold(op);
            s->has_result = plan_is_root(p);
        }
    }
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
    if (!plan_is_root(p)) op_announce(e, op, &op->eps[p->tree.children]);
}

static void keep_input(struct op *op)
{
    struct small_tree_state *s = op->state;
    if (op_in_place(op) && !s->kept && vector_size(op) > 0)
        memcpy(s->input, op->r.recvbuf, vector_size(op));
    s->kept = true;
}

static void complete(struct op *op)
{
    const struct small_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    size_t size = vector_size(op);
    keep_input(op);
    if (size == 0) return;
    if (op_in_place(op)) memcpy(op->r.recvbuf, s->value, size);
    if (p->r.coll != COLL_ALLGATHER) return;
    for (uint32_t i = 0; i < p->r.world; i++) {
        uint8_t *to = (uint8_t *)op->r.recvbuf + plan_at(p, i) * size;
        if (i != p->tree.position) memcpy(to, s->value + i * size, size);
    }
}

static void undo(struct op *op)
{
    const struct small_tree_state *s = op->state;
    if (s->kept && vector_size(op) > 0)
        memcpy(op->r.recvbuf, s->input, vector_size(op));
}

const struct algorithm small_tree = {
    .name = "tree",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER) | BIT(COLL_BROADCAST) |
             BIT(COLL_ALLGATHER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .is_fast = true,
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
    .undo = undo,
    .keep_input = keep_input,
};
