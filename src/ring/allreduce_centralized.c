/* allreduce_centralized.c - "centralized": all members send their vectors to a
 * root, which makes the sum and sends the result back (rule D11). Members of
 * one host share its processors; with sockets the total number of messages
 * decides, and this takes 2(n-1) instead of n(n-1). Pure. */
#include "algorithm.h"
#include "fold.h"
#include "geometry.h"

#include <string.h>

struct allreduce_centralized_state {
    /* Recv has the result; in place, the slots have the input. */
    bool folded;
    /* Root: a vector of each member. Others, in place: first the result as it
     * arrives, then the input. */
    _Alignas(64) uint8_t slots[];
};

/* --------------------------------------------------------------- the plan */

static void shape(struct plan *p)
{
    p->root = p->r.center % p->r.world;
    plan_shape_root(p);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    (void)to;
    (void)k;
    x->size = (uint32_t)plan_vector_size(p);
    if (!plan_is_root(p)) return;
    x->space = SPACE_RECV;
    x->after = 0; /* the sum */
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)k;
    x->size = (uint32_t)plan_vector_size(p);
    if (!plan_is_root(p)) return;
    x->space = SPACE_SLOT;
    x->offset = from * plan_vector_size(p);
}

static const char *unfit(const struct plan_request *r)
{
    if (r->world < 3) return "needs 3 members";
    if (!r->mesh) return "needs links between all pairs of members";
    if (r->codes) return "its elements are not codes";
    if (r->count * r->element > PLAN_SEGMENT_MAX) return "takes up to 512 KiB";
    return NULL;
}

/* ---------------------------------------------------------- the operation */

static bool begin(struct engine *e, struct op *op)
{
    size_t vectors = op_in_place(op) ? 2 : 0;
    if (plan_is_root(&op->plan)) vectors = op->plan.r.world;
    return op_take_state(e, op, sizeof(struct allreduce_centralized_state),
                         vectors * fold_size(op));
}

static bool has(const struct op *op, uint32_t after)
{
    const struct allreduce_centralized_state *s = op->state;
    (void)after;
    return s->folded;
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    struct allreduce_centralized_state *s = op->state;
    (void)ep;
    (void)k;
    bool root = plan_is_root(&op->plan);
    return root || op_in_place(op) ? s->slots + x->offset : op->r.recvbuf;
}

/* The input of an in-place operation. */
static uint8_t *kept_input(const struct op *op)
{
    struct allreduce_centralized_state *s = op->state;
    uint32_t slot = plan_is_root(&op->plan) ? op->plan.r.rank : 1;
    return s->slots + slot * fold_size(op);
}

static void keep_input(struct op *op)
{
    struct allreduce_centralized_state *s = op->state;
    if (op_in_place(op) && !s->folded && fold_size(op) > 0)
        memcpy(kept_input(op), op->r.recvbuf, fold_size(op));
    s->folded = true;
}

/* The root has all vectors. */
static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct allreduce_centralized_state *s = op->state;
    (void)ep;
    (void)k;
    (void)x;
    (void)body;
    if (!plan_is_root(&op->plan)) return;
    for (uint32_t i = 0; i < op->ep_count; i++) {
        if (op->eps[i].received < op->eps[i].recvs) return;
    }
    s->folded = true;
    fold_slots(op, s->slots);
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

static void complete(struct op *op)
{
    const struct allreduce_centralized_state *s = op->state;
    if (plan_is_root(&op->plan)) return;
    keep_input(op);
    if (op_in_place(op) && fold_size(op) > 0)
        memcpy(op->r.recvbuf, s->slots, fold_size(op));
}

static void undo(struct op *op)
{
    const struct allreduce_centralized_state *s = op->state;
    if (s->folded && fold_size(op) > 0)
        memcpy(op->r.recvbuf, kept_input(op), fold_size(op));
}

const struct algorithm allreduce_centralized = {
    .name = "centralized",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .shape = shape,
    .partners = plan_root_partners,
    .partner = plan_root_partner,
    .sends = plan_one_transfer,
    .recvs = plan_one_transfer,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = has,
    .place = place,
    .arrived = arrived,
    .complete = complete,
    .undo = undo,
    .keep_input = keep_input,
};
