/* plan.c - see plan.h. */
#include "algorithm.h"
#include "algorithm_table.h"

#include <string.h>

void plan_init(struct plan *p, const struct plan_request *request)
{
    PCCL_ASSERT(request->world > 0 && request->rank < request->world);
    PCCL_ASSERT(request->root < request->world);
    memset(p, 0, sizeof *p);
    p->r = *request;
    if (p->r.coll == COLL_BARRIER) p->r.count = 0;
    if (!plan_coll_reduces(p->r.coll)) {
        p->r.element = 1;
        p->r.spare = 0;
    }
    p->root = p->r.root;
    p->chunks = p->r.world;
    p->segments = 1;
    uint64_t beside = p->r.one_host ? p->r.world : 1;
    if (p->r.coll == COLL_ALLGATHER) beside *= p->r.world; /* blocks of each */
    uint64_t all = plan_vector_size(p) * beside;
    bool shares = p->r.one_host && p->r.shared_memory;
    p->uncached = !p->r.codes && all >= p->r.cached;
    p->streamed = p->uncached && p->r.one_host && p->r.shared_memory;
    p->bypasses = p->streamed || (shares && !p->r.roomy && all >= PLAN_CROWDED);
    p->algorithm = algorithm_choose(&p->r);
    if (p->algorithm->shape) p->algorithm->shape(p);
}

uint32_t plan_partners(const struct plan *p)
{
    return p->algorithm->partners(p);
}

uint32_t plan_partner(const struct plan *p, uint32_t i)
{
    PCCL_ASSERT(i < plan_partners(p));
    return p->algorithm->partner(p, i);
}

uint32_t plan_sends(const struct plan *p, uint32_t to)
{
    return p->algorithm->sends(p, to);
}

uint32_t plan_recvs(const struct plan *p, uint32_t from)
{
    return p->algorithm->recvs(p, from);
}

void plan_send(const struct plan *p, uint32_t to, uint32_t k,
               struct plan_xfer *x)
{
    PCCL_ASSERT(k < plan_sends(p, to));
    *x = (struct plan_xfer){.space = SPACE_SEND, .after = PLAN_NOTHING};
    p->algorithm->send(p, to, k, x);
}

void plan_recv(const struct plan *p, uint32_t from, uint32_t k,
               struct plan_xfer *x)
{
    PCCL_ASSERT(k < plan_recvs(p, from));
    *x = (struct plan_xfer){.space = SPACE_RECV, .after = PLAN_NOTHING};
    p->algorithm->recv(p, from, k, x);
}
