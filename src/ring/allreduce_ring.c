/* allreduce_ring.c - "ring": reduce-scatter and all-gather round a ring, for
 * large vectors. Rules D13, D14 and D8. Pure.
 *
 * After Patarasuk & Yuan, JPDC 69(2), 2009: world-1 steps of reduce-scatter,
 * world-1 of all-gather. In step s the member at position p sends chunk p-s and
 * receives chunk p-s-1. It ends up as the owner of chunk p+1, and the
 * all-gather passes on the data received one step before. Both halves are one
 * stream of 2(world-1) steps, each of `segments` transfers; the k-th sent
 * depends on the one received a step earlier.
 *
 * Within a host, for vectors that no cache holds (`streamed`), the segments are
 * not sent step by step but interleaved (rule D14), in the order of step plus
 * segment. A segment is passed on before the next one arrives, and need not be
 * read from memory again. */
#include "neighbors.h"

#include "../reduce/reduce.h"

struct allreduce_ring_state {
    struct ring_state ring;
    uint8_t *codes; /* of a quantized vector */
};

/* --------------------------------------------------------------- the plan */

static void shape(struct plan *p)
{
    ring_shape(p);
    uint64_t size = plan_chunk_size(p, 0);
    uint64_t segment = plan_segment_of(p, size);
    /* Within a host, sockets are faster with few large calls than with overlap,
     * because all members send all the time. */
    bool sockets = p->r.one_host && !p->r.shared_memory && !p->r.codes;
    if (sockets && size > PLAN_SEGMENT_MIN) segment = size;
    if (p->streamed && segment > INTERLEAVED_MAX) segment = INTERLEAVED_MAX;
    plan_choose_segment(p, segment, size);
}

static uint32_t steps_of(const struct plan *p)
{
    return 2 * (p->r.world - 1);
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return to == p->next ? steps_of(p) * p->segments : 0;
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return from == p->prev ? steps_of(p) * p->segments : 0;
}

/* Interleaved: number of transfers with step + segment < `diagonal`. Diagonals
 * grow, stay, and shrink again. */
static uint32_t before_diagonal(const struct plan *p, uint32_t diagonal)
{
    uint32_t steps = steps_of(p);
    uint32_t less = steps < p->segments ? steps : p->segments;
    uint32_t more = steps < p->segments ? p->segments : steps;
    uint32_t left = steps + p->segments - 1 - diagonal;
    if (diagonal <= less) return diagonal * (diagonal + 1) / 2;
    if (diagonal <= more)
        return less * (less + 1) / 2 + (diagonal - less) * less;
    return steps * p->segments - left * (left + 1) / 2;
}

/* The first step on a diagonal. */
static uint32_t first_step(const struct plan *p, uint32_t diagonal)
{
    return diagonal < p->segments ? 0 : diagonal - p->segments + 1;
}

static uint32_t ring_index(const struct plan *p, uint32_t step, uint32_t g)
{
    if (!p->streamed) return step * p->segments + g;
    uint32_t diagonal = step + g;
    return before_diagonal(p, diagonal) + step - first_step(p, diagonal);
}

static uint32_t ring_step(const struct plan *p, uint32_t k, uint32_t *g)
{
    if (!p->streamed) {
        *g = k % p->segments;
        return k / p->segments;
    }
    uint32_t diagonal = 0;
    uint32_t end = steps_of(p) + p->segments - 1;
    while (end - diagonal > 1) {
        uint32_t middle = diagonal + (end - diagonal) / 2;
        if (before_diagonal(p, middle) <= k)
            diagonal = middle;
        else
            end = middle;
    }
    uint32_t step = first_step(p, diagonal) + k - before_diagonal(p, diagonal);
    *g = diagonal - step;
    return step;
}

bool ring_streams(const struct plan *p, uint32_t k)
{
    uint32_t g;
    return p->streamed && ring_step(p, k, &g) + 1 == steps_of(p);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t g;
    uint32_t step = ring_step(p, k, &g);
    uint32_t half = p->r.world - 1;
    uint32_t chunk = step < half ? plan_wrap(p, p->position, step)
                                 : plan_wrap(p, p->position + 1, step - half);
    (void)to;
    plan_chunk_cut(p, chunk, g, x);
    x->space = step == 0 ? SPACE_SEND : SPACE_RECV;
    x->after = step == 0 ? PLAN_NOTHING : ring_index(p, step - 1, g);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t g;
    uint32_t step = ring_step(p, k, &g);
    uint32_t half = p->r.world - 1;
    uint32_t chunk = step < half ? plan_wrap(p, p->position, step + 1)
                                 : plan_wrap(p, p->position, step - half);
    (void)from;
    plan_chunk_cut(p, chunk, g, x);
    x->action = ACTION_STORE;
    if (step < half) x->action = ACTION_REDUCE;
    if (step == half - 1) x->action = ACTION_DIVIDE;
}

/* ---------------------------------------------------------- the operation */

static bool begin(struct engine *e, struct op *op)
{
    return ring_take(e, op, sizeof(struct allreduce_ring_state));
}

static void end(struct engine *e, struct op *op)
{
    struct allreduce_ring_state *s = op->state;
    pool_give(&e->links.pool, s->codes);
    ring_give(e, op);
}

static uint8_t *place(struct op *op, const struct endpoint *ep, uint32_t k,
                      const struct plan_xfer *x)
{
    (void)ep;
    (void)k;
    if (x->action != ACTION_STORE) return NULL;
    return (uint8_t *)op->r.recvbuf + x->offset;
}

static void add(struct op *op, const struct plan_xfer *x, size_t at,
                const uint8_t *bytes, size_t size)
{
    size_t count = size / op->plan.r.element;
    uint8_t *to = (uint8_t *)op->r.recvbuf + x->offset + at;
    const uint8_t *own = (const uint8_t *)op->r.sendbuf + x->offset + at;
    input_overwrite(op, to, size);
    reduce_apply(op->r.dtype, op->r.redop, to, bytes, own, count);
    if (x->action == ACTION_DIVIDE && op->r.redop == REDOP_AVG)
        reduce_divide(op->r.dtype, to, count, op->plan.r.world);
}

/* By blocks, so that an input that is saved is read from memory once. */
static void reduce(struct op *op, const struct endpoint *ep, uint32_t k,
                   size_t at, const uint8_t *bytes, size_t size)
{
    struct plan_xfer x;
    plan_recv(&op->plan, ep->rank, k, &x);
    for (size_t done = 0; done < size; done += INPUT_BLOCK) {
        size_t left = size - done;
        add(op, &x, at + done, bytes + done,
            left < INPUT_BLOCK ? left : INPUT_BLOCK);
    }
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    if (x->action != ACTION_STORE && x->size > 0 && body)
        reduce(op, ep, k, 0, body, x->size);
    ring_arrived(e, op, ep, k, x, body);
}

static const char *unfit(const struct plan_request *r)
{
    return r->codes ? "its elements are not codes" : NULL;
}

const struct algorithm allreduce_ring = {
    .name = "ring",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER),
    .unfit = unfit,
    .awaits_all = true,
    .is_long = true,
    .widens = true,
    .announces_writes = true,
    .shape = shape,
    .partners = ring_partners,
    .partner = ring_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .end = end,
    .has = ring_has,
    .place = place,
    .reduce = reduce,
    .arrived = arrived,
    .streams = ring_streams,
};

/* --------------------------------------------------------------- quantized
 *
 * Rule D8. `codes` holds the data to pass on: partial sums and then results.
 * The caller's input is read when its first codes are made and when a partial
 * sum arrives. The result is made only from codes that all members have. */

static bool begin_codes(struct engine *e, struct op *op)
{
    if (!begin(e, op)) return false;
    struct allreduce_ring_state *s = op->state;
    s->codes = pool_take(&e->links.pool, plan_vector_size(&op->plan) + 1);
    return s->codes != NULL;
}

/* The own codes are made when the link can take them, so that the work overlaps
 * with the transfer of others. */
static const uint8_t *source_codes(struct op *op, const struct plan_xfer *x)
{
    const struct allreduce_ring_state *s = op->state;
    if (x->space == SPACE_SEND) {
        struct plan_xfer y = *x;
        op_to_elements(op, &y);
        quant_encode(&op->r.quant, s->codes + x->offset,
                     (const uint8_t *)op->r.sendbuf + y.offset,
                     y.size / dtype_size(op->r.dtype));
    }
    return s->codes + x->offset;
}

static uint8_t *place_codes(struct op *op, const struct endpoint *ep,
                            uint32_t k, const struct plan_xfer *x)
{
    const struct allreduce_ring_state *s = op->state;
    (void)ep;
    (void)k;
    return x->action == ACTION_STORE ? s->codes + x->offset : NULL;
}

/* A partial sum is sent as soon as it is made, one step later. A place of
 * `codes` is written again only by results, which arrive after the partial sum
 * has been sent. */
static void take_codes(struct op *op, const struct plan_xfer *x,
                       const uint8_t *body)
{
    const struct allreduce_ring_state *s = op->state;
    const struct quant *q = &op->r.quant;
    struct plan_xfer y = *x;
    op_to_elements(op, &y);
    size_t count = y.size / dtype_size(op->r.dtype);
    uint32_t divisor = x->action == ACTION_DIVIDE; /* the result: at least 1 */
    if (divisor == 1 && op->r.redop == REDOP_AVG) divisor = op->plan.r.world;
    if (x->action != ACTION_STORE)
        quant_combine(q, op->r.redop, s->codes + x->offset, body,
                      (const uint8_t *)op->r.sendbuf + y.offset, count,
                      divisor);
    if (x->action == ACTION_REDUCE) return;
    uint8_t *to = (uint8_t *)op->r.recvbuf + y.offset;
    input_overwrite(op, to, y.size);
    quant_decode(q, to, s->codes + x->offset, count);
}

static void arrived_codes(struct engine *e, struct op *op, struct endpoint *ep,
                          uint32_t k, const struct plan_xfer *x,
                          const uint8_t *body)
{
    if (x->size > 0) take_codes(op, x, body);
    ring_arrived(e, op, ep, k, x, body);
}

static const char *unfit_codes(const struct plan_request *r)
{
    return r->codes ? NULL : "its elements are codes";
}

/* Codes are decoded by blocks, which a channel may cut anywhere. */
const struct algorithm allreduce_ring_codes = {
    .name = "ring",
    .colls = BIT(COLL_ALLREDUCE),
    .unfit = unfit_codes,
    .codes = true,
    .awaits_all = true,
    .is_long = true,
    .widens = true,
    .announces_writes = true,
    .whole_bodies = true,
    .shape = shape,
    .partners = ring_partners,
    .partner = ring_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin_codes,
    .end = end,
    .has = ring_has,
    .source = source_codes,
    .place = place_codes,
    .arrived = arrived_codes,
};
