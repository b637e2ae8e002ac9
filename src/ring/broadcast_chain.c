/* broadcast_chain.c - "chain": the vector travels along the ring from the root,
 * segment by segment. No member sends more than one vector. Pure. */
#include "neighbors.h"

static void shape(struct plan *p)
{
    uint64_t size = plan_vector_size(p);
    ring_shape(p);
    plan_choose_segment(p, plan_segment_of(p, size), size);
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return to == p->next && p->next != p->root ? p->segments : 0;
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return from == p->prev && p->r.rank != p->root ? p->segments : 0;
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    (void)to;
    plan_cut(p, 0, plan_vector_size(p), k, x);
    x->space = SPACE_RECV;
    if (p->r.rank != p->root) x->after = k;
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)from;
    plan_cut(p, 0, plan_vector_size(p), k, x);
}

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
