/* ring_pass.c - data that travel round a ring unchanged, segment by segment:
 * "ring" of an all-gather, in which a member passes on all blocks but that of
 * the next one, and "chain" of a broadcast, in which it passes on the root's.
 * Nobody sends a block to more than one other member. Rule D13. Pure. */
#include "neighbors.h"

static void shape(struct plan *p)
{
    uint64_t size = plan_vector_size(p);
    ring_shape(p);
    plan_choose_segment(p, plan_segment_of(p, size), size);
}

static bool is_chain(const struct plan *p)
{
    return p->r.coll == COLL_BROADCAST;
}

/* Blocks that go to the next member, and that come from the one before. */
static uint32_t sends(const struct plan *p, uint32_t to)
{
    uint32_t blocks = is_chain(p) ? p->next != p->root : p->r.world - 1;
    return to == p->next ? blocks * p->segments : 0;
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    uint32_t blocks = is_chain(p) ? p->r.rank != p->root : p->r.world - 1;
    return from == p->prev ? blocks * p->segments : 0;
}

/* Segment g of the block of the member `back` positions before this one. */
static void block_cut(const struct plan *p, uint32_t back, uint32_t g,
                      struct plan_xfer *x)
{
    uint64_t size = plan_vector_size(p);
    uint32_t rank = plan_at(p, plan_wrap(p, p->position, back));
    plan_cut(p, is_chain(p) ? 0 : rank * size, size, g, x);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    uint32_t step = k / p->segments;
    (void)to;
    block_cut(p, step, k % p->segments, x);
    x->space = SPACE_RECV;
    if (is_chain(p) && p->r.rank != p->root)
        x->after = k;
    else if (step > 0)
        x->after = k - p->segments;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)from;
    block_cut(p, k / p->segments + 1, k % p->segments, x);
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

const struct algorithm broadcast_chain = {
    .name = "chain",
    .colls = BIT(COLL_BROADCAST),
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
