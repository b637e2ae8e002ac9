/* alltoallv_tree.c - "tree": an all-to-all whose blocks are all equally large
 * goes over the links of a tree (rule D26): what a part of the tree sends goes
 * up as it is, the root turns the table of all blocks, and what a part receives
 * goes down. 2(n-1) messages, where pairs have n(n-1); a block is sent four
 * times at most, and all of them pass the root. Pure. */
#include "algorithm.h"
#include "geometry.h"
#include "op.h"

#include <string.h>

/* What a transfer waits for. */
enum { AFTER_CHILDREN, AFTER_RESULT };

struct alltoallv_tree_state {
    uint32_t missing; /* transfers of the children that have not come */
    bool has_result;
    /* Of each member of this part of the tree, in the order of positions: its
     * blocks for all, then in a second table those of all for it. */
    _Alignas(64) uint8_t tables[];
};

/* --------------------------------------------------------------- the plan */

static size_t block_size(const struct plan *p)
{
    return (size_t)plan_vector_size(p);
}

/* Bytes of one member in either table. */
static size_t line_size(const struct plan *p)
{
    return p->r.world * block_size(p);
}

/* The part of the tree whose lines go over the link to a partner. */
static void part_of(const struct plan *p, uint32_t rank, struct tree_node *part)
{
    *part = p->tree;
    if (!plan_is_parent(p, rank)) (void)plan_tree_child(p, rank, part);
}

static uint32_t transfers(const struct plan *p, uint32_t rank)
{
    struct tree_node part;
    part_of(p, rank, &part);
    return plan_block_transfers(part.size * line_size(p));
}

/* Transfer k of the lines of a part, in one of the tables. */
static void cut(const struct plan *p, uint32_t rank, bool second, uint32_t k,
                struct plan_xfer *x)
{
    struct tree_node part;
    part_of(p, rank, &part);
    size_t line = line_size(p), size = part.size * line;
    size_t first = (part.position - p->tree.position) * line;
    size_t begin = (size_t)k * PLAN_SEGMENT_MAX, left = size - begin;
    x->space = SPACE_SLOT;
    x->offset = (second ? p->tree.size * line : 0) + first + begin;
    x->size = (uint32_t)(left < PLAN_SEGMENT_MAX ? left : PLAN_SEGMENT_MAX);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    bool up = plan_is_parent(p, to);
    cut(p, to, !up, k, x);
    if (!up)
        x->after = AFTER_RESULT;
    else if (p->tree.children > 0)
        x->after = AFTER_CHILDREN;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    cut(p, from, plan_is_parent(p, from), k, x);
}

static const char *unfit(const struct plan_request *r)
{
    if (r->flow != FLOW_EVEN) return "needs blocks of one size";
    if (r->world < 3) return "needs 3 members";
    if (!r->tree && !r->mesh) return "needs the links of a tree";
    return NULL;
}

/* ---------------------------------------------------------- the operation */

static uint8_t *table(const struct op *op, bool second)
{
    struct alltoallv_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    return s->tables + (second ? p->tree.size * line_size(p) : 0);
}

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    const struct plan_request *r = &p->r;
    size_t block = block_size(p);
    struct alltoallv_tree_state *s =
        op_take_state(e, op, sizeof *s, 2 * p->tree.size * line_size(p));
    if (!s) return false;
    for (uint32_t i = 0; i < p->tree.children; i++)
        s->missing += transfers(p, plan_tree_partner(p, i));
    const uint8_t *from = op->r.sendbuf;
    for (uint32_t i = 0; i < r->world && block > 0; i++)
        memcpy(s->tables + i * block, from + r->send_displs[plan_at(p, i)],
               block);
    return true;
}

static bool has(const struct op *op, uint32_t after)
{
    const struct alltoallv_tree_state *s = op->state;
    return s->missing == 0 && (after == AFTER_CHILDREN || s->has_result);
}

static const uint8_t *source(struct op *op, const struct plan_xfer *x)
{
    return table(op, false) + x->offset;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    (void)ep;
    (void)k;
    return table(op, false) + x->offset;
}

/* At the root: from the order of the senders to that of the receivers. */
static void turn(const struct op *op)
{
    const struct plan *p = &op->plan;
    uint32_t n = p->r.world;
    size_t block = block_size(p), line = line_size(p);
    const uint8_t *sent = table(op, false);
    uint8_t *to = table(op, true);
    if (block == 0) return;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            memcpy(to, sent + k * line + i * block, block);
            to += block;
        }
    }
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct alltoallv_tree_state *s = op->state;
    const struct plan *p = &op->plan;
    (void)k;
    (void)x;
    (void)body;
    if (plan_is_parent(p, ep->rank)) {
        s->has_result = ep->received == ep->recvs;
        if (!s->has_result) return;
    } else {
        if (--s->missing > 0) return;
        if (plan_is_root(p)) turn(op);
        s->has_result = plan_is_root(p);
    }
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
    if (!plan_is_root(p)) op_announce(e, op, &op->eps[p->tree.children]);
}

static void complete(struct op *op)
{
    const struct plan *p = &op->plan;
    size_t block = block_size(p);
    const uint8_t *from = table(op, true);
    for (uint32_t i = 0; i < p->r.world && block > 0; i++)
        memcpy((uint8_t *)op->r.recvbuf + p->r.recv_displs[plan_at(p, i)],
               from + i * block, block);
}

const struct algorithm alltoallv_tree = {
    .name = "tree",
    .colls = BIT(COLL_ALLTOALLV),
    .unfit = unfit,
    .awaits_all = true,
    .shape = plan_shape_tree,
    .partners = plan_tree_partners,
    .partner = plan_tree_partner,
    .sends = transfers,
    .recvs = transfers,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = has,
    .source = source,
    .place = place,
    .arrived = arrived,
    .complete = complete,
};
