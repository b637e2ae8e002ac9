/* allreduce_flat.c - "flat" (one-shot): every member sends its vector to every
 * other one, and all compute the same sum. One message deep, for small vectors.
 * Pure. */
#include "algorithm.h"
#include "fold.h"
#include "geometry.h"

#include "../reduce/reduce.h"

#include <string.h>

enum {
    /* With two members, the received vector is added to the own one from where
     * it lies if it has at least this size. Smaller vectors are in the caches
     * anyway. */
    TWO_MIN = 16 * 1024,
};

struct allreduce_flat_state {
    /* Two members: the sum is made while the other vector arrives. */
    bool reduced;
    /* Recv has the result; in place, the input is in the own slot or in
     * `input`. */
    bool folded;
    uint8_t *input; /* of codes, in place: the elements of the input */
    _Alignas(64) uint8_t slots[]; /* a vector of each member */
};

/* --------------------------------------------------------------- the plan */

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    (void)to;
    (void)k;
    x->size = (uint32_t)plan_vector_size(p);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)k;
    x->space = SPACE_SLOT;
    x->size = (uint32_t)plan_vector_size(p);
    x->offset = from * plan_vector_size(p);
}

static const char *limits(const struct plan_request *r)
{
    if (!r->mesh) return "needs links between all pairs of members";
    if (r->count * r->element > PLAN_SEGMENT_MAX) return "takes up to 512 KiB";
    return NULL;
}

static const char *unfit(const struct plan_request *r)
{
    return r->codes ? "its elements are not codes" : limits(r);
}

/* ---------------------------------------------------------- the operation */

static uint8_t *own_slot(const struct op *op)
{
    struct allreduce_flat_state *s = op->state;
    return s->slots + op->plan.r.rank * fold_size(op);
}

static bool may_be_reduced(const struct op *op)
{
    return op->plan.r.world == 2 && fold_size(op) >= TWO_MIN &&
           !op_is_quantized(op);
}

static bool begin(struct engine *e, struct op *op)
{
    size_t slots = op->plan.r.world * fold_size(op);
    if (may_be_reduced(op) && !op_in_place(op)) slots = 0;
    return op_take_state(e, op, sizeof(struct allreduce_flat_state), slots);
}

static void keep_input(struct op *op)
{
    struct allreduce_flat_state *s = op->state;
    if (op_in_place(op) && !s->folded && fold_size(op) > 0)
        memcpy(own_slot(op), op->r.sendbuf, fold_size(op));
    s->folded = true;
}

/* In place, this waits until the own vector is sent. */
static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    struct allreduce_flat_state *s = op->state;
    (void)k;
    s->reduced =
        may_be_reduced(op) && (!op_in_place(op) || ep->sent == ep->sends);
    if (!s->reduced) return s->slots + x->offset;
    keep_input(op);
    return NULL;
}

static void reduce(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size)
{
    uint32_t rank = op->plan.r.rank;
    size_t count = size / op->plan.r.element;
    const uint8_t *own = (const uint8_t *)op->r.sendbuf + at;
    uint8_t *to = (uint8_t *)op->r.recvbuf + at;
    (void)ep;
    (void)k;
    if (count == 0) return;
    reduce_apply(op->r.dtype, op->r.redop, to, rank == 0 ? own : bytes,
                 rank == 0 ? bytes : own, count);
    if (op->r.redop == REDOP_AVG) reduce_divide(op->r.dtype, to, count, 2);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    const struct allreduce_flat_state *s = op->state;
    (void)e;
    if (s->reduced && body) reduce(op, ep, k, 0, body, x->size);
}

static void complete(struct op *op)
{
    struct allreduce_flat_state *s = op->state;
    s->folded = true;
    if (!s->reduced) fold_slots(op, s->slots);
}

static void undo(struct op *op)
{
    const struct allreduce_flat_state *s = op->state;
    if (s->folded && fold_size(op) > 0)
        memcpy(op->r.recvbuf, own_slot(op), fold_size(op));
}

const struct algorithm allreduce_flat = {
    .name = "flat",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .is_fast = true,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = plan_one_transfer,
    .recvs = plan_one_transfer,
    .send = send,
    .recv = recv,
    .begin = begin,
    .place = place,
    .reduce = reduce,
    .arrived = arrived,
    .complete = complete,
    .undo = undo,
    .keep_input = keep_input,
};

/* --------------------------------------------------------------- quantized
 *
 * Rule D8: everybody takes its own vector from its codes as well. */

static bool begin_codes(struct engine *e, struct op *op)
{
    if (!begin(e, op)) return false;
    struct allreduce_flat_state *s = op->state;
    if (op_in_place(op)) {
        s->input = pool_take(&e->links.pool, op_vector_size(op) + 1);
        if (!s->input) return false;
    }
    quant_encode(&op->r.quant, own_slot(op), op->r.sendbuf,
                 (size_t)op->r.count);
    return true;
}

static void end_codes(struct engine *e, struct op *op)
{
    struct allreduce_flat_state *s = op->state;
    pool_give(&e->links.pool, s->input);
}

static const uint8_t *source_codes(struct op *op, const struct plan_xfer *x)
{
    return own_slot(op) + x->offset;
}

static void keep_input_codes(struct op *op)
{
    struct allreduce_flat_state *s = op->state;
    if (s->input && !s->folded)
        memcpy(s->input, op->r.sendbuf, op_vector_size(op));
    s->folded = true;
}

static void complete_codes(struct op *op)
{
    const struct allreduce_flat_state *s = op->state;
    const struct plan *p = &op->plan;
    keep_input_codes(op);
    if (fold_size(op) == 0) return;
    quant_fold(&op->r.quant, op->r.redop, op->r.recvbuf, s->slots,
               fold_size(op), p->r.world, (size_t)op->r.count,
               op->r.redop == REDOP_AVG ? p->r.world : 1);
}

static void undo_codes(struct op *op)
{
    const struct allreduce_flat_state *s = op->state;
    if (s->input && s->folded)
        memcpy(op->r.recvbuf, s->input, op_vector_size(op));
}

static const char *unfit_codes(const struct plan_request *r)
{
    return r->codes ? limits(r) : "its elements are codes";
}

const struct algorithm allreduce_flat_codes = {
    .name = "flat",
    .colls = BIT(COLL_ALLREDUCE),
    .unfit = unfit_codes,
    .codes = true,
    .defers = true,
    .awaits_all = true,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = plan_one_transfer,
    .recvs = plan_one_transfer,
    .send = send,
    .recv = recv,
    .begin = begin_codes,
    .end = end_codes,
    .source = source_codes,
    .place = place,
    .complete = complete_codes,
    .undo = undo_codes,
    .keep_input = keep_input_codes,
};
