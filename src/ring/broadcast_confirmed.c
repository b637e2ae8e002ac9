/* broadcast_confirmed.c - "confirmed": the root sends the vector to every
 * member, and every member sends an empty word to every other one (rule D12).
 * The word implies that all have launched, so nobody waits for DONE. Pure. */
#include "algorithm.h"
#include "geometry.h"

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    (void)to;
    (void)k;
    x->space = SPACE_RECV;
    if (p->r.rank == p->root) x->size = (uint32_t)plan_vector_size(p);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    (void)k;
    if (from == p->root) x->size = (uint32_t)plan_vector_size(p);
}

static const char *unfit(const struct plan_request *r)
{
    if (!r->mesh) return "needs links between all pairs of members";
    if (r->count > PLAN_SEGMENT_MAX) return "takes up to 512 KiB";
    return NULL;
}

const struct algorithm broadcast_confirmed = {
    .name = "confirmed",
    .colls = BIT(COLL_BROADCAST),
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
