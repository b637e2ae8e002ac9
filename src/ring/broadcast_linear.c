/* broadcast_linear.c - "linear": the root sends the vector to every member.
 * Where members of one host share no memory, DONE goes through the root: 2(n-1)
 * messages instead of n(n-1) (rule D11). Pure. */
#include "algorithm.h"
#include "geometry.h"

static void shape(struct plan *p)
{
    bool sockets = p->r.one_host && !p->r.shared_memory;
    if (sockets && p->r.world > 2) plan_shape_root(p);
}

static uint32_t partners(const struct plan *p)
{
    return p->done == DONE_TREE ? plan_root_partners(p) : plan_all_partners(p);
}

static uint32_t partner(const struct plan *p, uint32_t i)
{
    return p->done == DONE_TREE ? plan_root_partner(p, i)
                                : plan_all_partner(p, i);
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    (void)to;
    return p->r.rank == p->root ? 1 : 0;
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return from == p->root ? 1 : 0;
}

static void transfer(const struct plan *p, uint32_t rank, uint32_t k,
                     struct plan_xfer *x)
{
    (void)rank;
    (void)k;
    x->space = SPACE_RECV;
    x->size = (uint32_t)plan_vector_size(p);
}

static const char *unfit(const struct plan_request *r)
{
    if (!r->mesh) return "needs links between all pairs of members";
    if (r->count > PLAN_SEGMENT_MAX) return "takes up to 512 KiB";
    return NULL;
}

const struct algorithm broadcast_linear = {
    .name = "linear",
    .colls = BIT(COLL_BROADCAST),
    .unfit = unfit,
    .shape = shape,
    .partners = partners,
    .partner = partner,
    .sends = sends,
    .recvs = recvs,
    .send = transfer,
    .recv = transfer,
};
