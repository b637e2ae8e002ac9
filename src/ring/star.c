/* star.c - "star": an all-to-all in which only the root exchanges data with the
 * others: a gather or a scatter. Each other member has the root as its only
 * partner (rule D23): 2(n-1) or 3(n-1) frames, where pairs have 2n(n-1). Pure.
 *
 * In a gather the root sends everybody an empty word when it has all blocks. So
 * a result implies that all have launched and that the root has its own: nobody
 * waits for DONE (rule D5). In a scatter a block is with its owner alone, and
 * completion is confirmed: DONE goes to the root, and comes back from it. */
#include "algorithm.h"
#include "geometry.h"
#include "op.h"
#include "pull.h"

struct star_state {
    uint32_t missing; /* members whose block has not come in full */
};

/* --------------------------------------------------------------- the plan */

static bool gathers(const struct plan *p)
{
    return p->r.flow == FLOW_TO_ROOT;
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    if (plan_is_root(p))
        return gathers(p) ? 1 : plan_block_transfers(p->r.send_bytes[to]);
    return gathers(p) ? plan_block_transfers(p->r.send_bytes[to]) : 0;
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    if (plan_is_root(p))
        return gathers(p) ? plan_block_transfers(p->r.recv_bytes[from]) : 0;
    return gathers(p) ? 1 : plan_block_transfers(p->r.recv_bytes[from]);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    if (plan_is_root(p) && gathers(p))
        x->after = 0; /* the word: all blocks */
    else
        plan_block_cut(p->r.send_bytes, p->r.send_displs, to, k, x);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    if (plan_is_root(p) || !gathers(p))
        plan_block_cut(p->r.recv_bytes, p->r.recv_displs, from, k, x);
}

static const char *unfit_flow(const struct plan_request *r, enum plan_flow flow)
{
    if (r->flow != flow) return "needs a root that sends or receives all";
    if (!r->one_host || !r->shared_memory)
        return "needs members of one host that share its memory";
    return NULL;
}

static const char *unfit_gather(const struct plan_request *r)
{
    return unfit_flow(r, FLOW_TO_ROOT);
}

static const char *unfit_scatter(const struct plan_request *r)
{
    return unfit_flow(r, FLOW_FROM_ROOT);
}

/* ---------------------------------------------------------- the operation */

/* Rule D2f: a root that waits for itself sends no words. */
static bool begin(struct engine *e, struct op *op)
{
    const struct plan_request *p = &op->plan.r;
    struct star_state *s = op_take_state(e, op, sizeof *s, 0);
    if (!s) return false;
    bool odd = p->send_bytes[p->rank] != p->recv_bytes[p->rank];
    s->missing = op->ep_count + odd;
    return true;
}

static bool has(const struct op *op, uint32_t after)
{
    const struct star_state *s = op->state;
    (void)after;
    return s->missing == 0;
}

static void arrived(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t k, const struct plan_xfer *x, const uint8_t *body)
{
    struct star_state *s = op->state;
    (void)k, (void)x, (void)body;
    if (!plan_is_root(&op->plan) || ep->received < ep->recvs) return;
    if (--s->missing > 0) return;
    for (uint32_t i = 0; i < op->ep_count; i++)
        link_dirty(&e->links, op->eps[i].link);
}

const struct algorithm star_gather = {
    .name = "star",
    .colls = BIT(COLL_ALLTOALLV),
    .unfit = unfit_gather,
    .defers = true,
    .awaits_all = true,
    .at_root = true,
    .is_long = true,
    .fast = FAST_STAR,
    .shape = plan_shape_root,
    .partners = plan_root_partners,
    .partner = plan_root_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = begin,
    .has = has,
    .arrived = arrived,
};

const struct algorithm star_scatter = {
    .name = "star",
    .colls = BIT(COLL_ALLTOALLV),
    .unfit = unfit_scatter,
    .is_long = true,
    .fast = FAST_STAR,
    .shape = plan_shape_root,
    .partners = plan_root_partners,
    .partner = plan_root_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = pull_begin,
    .end = pull_end,
    .pulls = true,
    .may_put = pull_may_put,
    .put = pull_put,
    .take_put = pull_take,
};
