/* allgather_ring.c - "ring": blocks travel round the ring, segment by segment.
 * A member sends a block to at most one other member. Pure. */
#include "neighbors.h"

static void shape(struct plan *p)
{
    uint64_t size = plan_vector_size(p);
    ring_shape(p);
    plan_choose_segment(p, plan_segment_of(p, size), size);
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return to == p->next ? (p->r.world - 1) * p->segments : 0;
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return from == p->prev ? (p->r.world - 1) * p->segments : 0;
}

/* Segment of the block of the member at a position of the ring. */
static void block_cut(const struct plan *p, uint32_t position, uint32_t g,
                      struct plan_xfer *x)
{
    uint64_t size = plan_vector_size(p);
    plan_cut(p, plan_at(p, position) * size, size, g, x);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t step = k / p->segments;
    (void)to;
    block_cut(p, plan_wrap(p, p->position, step), k % p->segments, x);
    x->space = SPACE_RECV;
    if (step > 0) x->after = k - p->segments;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t step = k / p->segments;
    (void)from;
    block_cut(p, plan_wrap(p, p->position, step + 1), k % p->segments, x);
}

const struct algorithm allgather_ring = {
    .name = "ring",
    .colls = BIT(COLL_ALLGATHER),
    .awaits_all = true,
    .is_long = true,
    .widens = true,
    .shape = shape,
    .partners = ring_partners,
    .partner = ring_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = ring_begin,
    .end = ring_give,
    .has = ring_has,
    .arrived = ring_arrived,
};
