/* alltoallv_pairwise.c - "pairwise": the members of every pair send each other
 * their blocks directly. Only the two of a pair know its sizes; the digest
 * between them covers them (rule D2c). Pure. */
#include "algorithm.h"
#include "geometry.h"
#include "pull.h"

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return plan_block_transfers(p->r.send_bytes[to]);
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return plan_block_transfers(p->r.recv_bytes[from]);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    plan_block_cut(p->r.send_bytes, p->r.send_displs, to, k, x);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    plan_block_cut(p->r.recv_bytes, p->r.recv_displs, from, k, x);
}

const struct algorithm alltoallv_pairwise = {
    .name = "pairwise",
    .colls = BIT(COLL_ALLTOALLV),
    .is_long = true,
    .is_fast = true,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
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
