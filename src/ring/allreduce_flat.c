/* allreduce_flat.c - "flat" (one-shot): every member sends its vector to every
 * other one, and all compute the same sum, in the order of ranks (rules D3 and
 * D8). One message deep, for small vectors. Pure. */
#include "algorithm.h"
#include "geometry.h"
#include "op.h"

#include "../reduce/reduce.h"

#include <string.h>

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

/* op->state has a vector of each member, by rank. */
static size_t vector_size(const struct op *op)
{
    return (size_t)plan_vector_size(&op->plan);
}

static uint8_t *own_slot(const struct op *op)
{
    return (uint8_t *)op->state + op->plan.r.rank * vector_size(op);
}

/* With two members, the received vector is added to the own one from where it
 * lies. */
static bool may_be_reduced(const struct op *op)
{
    return op->plan.r.world == 2 && vector_size(op) > PAIR_MAX &&
           !op_is_quantized(op);
}

static bool begin(struct engine *e, struct op *op)
{
    size_t slots = op->plan.r.world * vector_size(op);
    if (may_be_reduced(op)) slots = 0;
    return op_take_state(e, op, 0, slots);
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    (void)ep;
    (void)k;
    return may_be_reduced(op) ? NULL : (uint8_t *)op->state + x->offset;
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
    (void)e;
    if (may_be_reduced(op) && body) reduce(op, ep, k, 0, body, x->size);
}

/* Rule D3: in the order of ranks, so that all members compute the same sums. */
static void complete(struct op *op)
{
    const struct plan *p = &op->plan;
    size_t size = vector_size(op), count = (size_t)p->r.count;
    const uint8_t *slots = op->state, *sum = NULL;
    if (size == 0 || may_be_reduced(op)) return;
    for (uint32_t r = 0; r < p->r.world; r++) {
        const uint8_t *x = r == p->r.rank ? op->r.sendbuf : slots + r * size;
        if (sum)
            reduce_apply(op->r.dtype, op->r.redop, op->r.recvbuf, sum, x,
                         count);
        sum = sum ? op->r.recvbuf : x;
    }
    if (op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, op->r.recvbuf, count, p->r.world);
}

const struct algorithm allreduce_flat = {
    .name = "flat",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .fast = FAST_FLAT,
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
};

/* --------------------------------------------------------------- quantized
 *
 * Rule D8: everybody takes its own vector from its codes as well. */

static bool begin_codes(struct engine *e, struct op *op)
{
    if (!begin(e, op)) return false;
    quant_encode(&op->r.quant, own_slot(op), op->r.sendbuf,
                 (size_t)op->r.count);
    return true;
}

static const uint8_t *source_codes(struct op *op, const struct plan_xfer *x)
{
    return own_slot(op) + x->offset;
}

static void complete_codes(struct op *op)
{
    const struct plan *p = &op->plan;
    if (vector_size(op) == 0) return;
    quant_fold(&op->r.quant, op->r.redop, op->r.recvbuf, op->state,
               vector_size(op), p->r.world, (size_t)op->r.count,
               op->r.redop == REDOP_AVG ? p->r.world : 1);
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
    .source = source_codes,
    .place = place,
    .complete = complete_codes,
};
