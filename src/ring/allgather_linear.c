/* allgather_linear.c - "linear": every member sends its block to every other
 * one, for small blocks. The own block is in its place from the start. Pure. */
#include "algorithm.h"
#include "geometry.h"

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    (void)to;
    (void)k;
    x->space = SPACE_RECV;
    x->size = (uint32_t)plan_vector_size(p);
    x->offset = p->r.rank * plan_vector_size(p);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)k;
    x->size = (uint32_t)plan_vector_size(p);
    x->offset = from * plan_vector_size(p);
}

static const char *unfit(const struct plan_request *r)
{
    if (!r->mesh) return "needs links between all pairs of members";
    if (r->count > PLAN_SEGMENT_MAX) return "takes blocks of up to 512 KiB";
    return NULL;
}

const struct algorithm allgather_linear = {
    .name = "linear",
    .colls = BIT(COLL_ALLGATHER),
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
};
