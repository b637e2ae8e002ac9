/* spread_single_copy.c - "single_copy" of a broadcast and an all-gather: data
 * that several members receive unchanged (rules D19, L7, L8). Pure.
 *
 * A member with data puts them once into its region, segment by segment, and an
 * empty frame to each of the others announces a segment. They copy it from
 * there. The slot holds several segments, in turn. One is put where another was
 * only when all are known to have taken that: the transfers of those that have
 * it show it, which in a broadcast are empty words to the root. */
#include "algorithm.h"
#include "geometry.h"
#include "op.h"

#include <string.h>

enum {
    PLACES = SINGLE_COPY_PLACES,
    PLACE_SIZE = SINGLE_COPY_BUFFERS * SINGLE_COPY_BUFFER / PLACES,
    /* Segment g waits until segment g - LAG of everyone is here. Everyone sent
     * that when it had segment g - 2 * LAG of all. So nobody needs that any
     * more, and g takes its place. */
    LAG = PLACES / 2,
};

struct spread_state {
    uint32_t senders;
    uint32_t put[PLACES]; /* the segment that is there, plus 1 */
    uint16_t came[];      /* by segment: members whose transfer is here */
};

/* --------------------------------------------------------------- the plan */

/* In a broadcast the root knows all others, and they know it alone. */
static bool has_spokes(const struct plan *p)
{
    return p->r.coll == COLL_BROADCAST;
}

static uint32_t partners(const struct plan *p)
{
    return has_spokes(p) ? plan_root_partners(p) : plan_all_partners(p);
}

static uint32_t partner(const struct plan *p, uint32_t i)
{
    return has_spokes(p) ? plan_root_partner(p, i) : plan_all_partner(p, i);
}

static void shape(struct plan *p)
{
    if (has_spokes(p)) plan_shape_root(p);
    uint64_t segment = PLACE_SIZE;
    if (p->r.piece > 0 && p->r.piece < segment) segment = p->r.piece;
    plan_choose_segment(p, segment, plan_vector_size(p));
}

static bool has_data(const struct plan *p, uint32_t rank)
{
    return p->r.coll == COLL_ALLGATHER || rank == p->root;
}

static uint32_t transfers(const struct plan *p, uint32_t from, uint32_t to)
{
    if (has_data(p, from)) return p->segments;
    if (to != p->root || p->segments <= LAG) return 0;
    return p->segments - LAG;
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return transfers(p, p->r.rank, to);
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return transfers(p, from, p->r.rank);
}

static void cut(const struct plan *p, uint32_t rank, uint32_t k,
                struct plan_xfer *x)
{
    uint64_t size = plan_vector_size(p);
    if (!has_data(p, rank)) return;
    plan_cut(p, p->r.coll == COLL_ALLGATHER ? rank * size : 0, size, k, x);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    (void)to;
    cut(p, p->r.rank, k, x);
    x->space = SPACE_RECV;
    if (!has_data(p, p->r.rank))
        x->after = k;
    else if (k >= LAG)
        x->after = k - LAG;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    cut(p, from, k, x);
}

/* ---------------------------------------------------------- the operation */

static bool begin(struct engine *e, struct op *op)
{
    const struct plan *p = &op->plan;
    size_t size = sizeof(struct spread_state) + p->segments * sizeof(uint16_t);
    struct spread_state *s = op_take_state(e, op, size, 0);
    if (!s) return false;
    for (uint32_t i = 0; i < op->ep_count; i++)
        s->senders += op->eps[i].recvs > 0;
    if (has_data(p, p->r.rank)) single_copy_take_slot(e, op);
    return true;
}

static bool has(const struct op *op, uint32_t after)
{
    const struct spread_state *s = op->state;
    return s->came[after] == s->senders;
}

static void count(struct engine *e, struct op *op, uint32_t k)
{
    struct spread_state *s = op->state;
    if (++s->came[k] == s->senders) op_wake(e, op);
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    (void)ep, (void)x, (void)body;
    count(e, op, k);
}

static bool streams(const struct plan *p, uint32_t k)
{
    (void)k;
    return p->bypasses;
}

/* --------------------------------------------------------- through regions */

static size_t place_of(uint32_t slot, uint32_t g)
{
    return single_copy_slot_offset(slot) + g % PLACES * (size_t)PLACE_SIZE;
}

static void put(struct engine *e, struct op *op, const struct endpoint *ep,
                uint32_t k, const struct plan_xfer *x)
{
    struct spread_state *s = op->state;
    uint32_t *there = &s->put[k % PLACES];
    (void)ep;
    if (*there == k + 1) return; /* for another member */
    *there = k + 1;
    memcpy(e->links.region + place_of(op->slot - 1, k),
           (const uint8_t *)op->r.recvbuf + x->offset, x->size);
}

static bool take_put(struct engine *e, struct op *op, struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x, uint32_t slot)
{
    if (!single_copy_take(op, ep, x, slot, place_of(slot, k))) return false;
    count(e, op, k);
    return true;
}

const struct algorithm spread_single_copy = {
    .name = "single_copy",
    .colls = BIT(COLL_ALLGATHER) | BIT(COLL_BROADCAST),
    .unfit = single_copy_unfit,
    .is_long = true,
    .tells_launch = true,
    .shape = shape,
    .partners = partners,
    .partner = partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = has,
    .arrived = arrived,
    .streams = streams,
    .put = put,
    .take_put = take_put,
};
