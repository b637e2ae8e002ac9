/* all_pairs.c - every member sends to every other one what concerns it, in one
 * step. Pure.
 *
 * "confirmed" of a broadcast (rule D12): the root sends the vector, and all
 * others an empty word. The words imply that all have launched, so nobody waits
 * for DONE. "linear" of an all-gather: each sends its block, and the own one is
 * in its place from the start. "pairwise" of an all-to-all-v: only the two of a
 * pair know its sizes; the digest between them covers them (rule D2c). */
#include "algorithm.h"
#include "geometry.h"
#include "pull.h"

/* ------------------------------------------------------------- a broadcast */

static void send_vector(const struct plan *p, uint32_t to, uint32_t k,
                        struct plan_xfer *x)
{
    (void)to;
    (void)k;
    x->space = SPACE_RECV;
    if (p->r.rank == p->root) x->size = (uint32_t)plan_vector_size(p);
}

static void recv_vector(const struct plan *p, uint32_t from, uint32_t k,
                        struct plan_xfer *x)
{
    (void)k;
    if (from == p->root) x->size = (uint32_t)plan_vector_size(p);
}

static const char *unfit(const struct plan_request *r)
{
    if (!r->mesh) return "needs links between all pairs of members";
    return r->count > PLAN_SEGMENT_MAX ? "takes up to 512 KiB of each" : NULL;
}

const struct algorithm broadcast_confirmed = {
    .name = "confirmed",
    .colls = BIT(COLL_BROADCAST),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .fast = FAST_FLAT,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = plan_one_transfer,
    .recvs = plan_one_transfer,
    .send = send_vector,
    .recv = recv_vector,
};

/* ----------------------------------------------------------- an all-gather */

static void block_of(const struct plan *p, uint32_t rank, struct plan_xfer *x)
{
    x->space = SPACE_RECV;
    x->size = (uint32_t)plan_vector_size(p);
    x->offset = rank * plan_vector_size(p);
}

static void send_block(const struct plan *p, uint32_t to, uint32_t k,
                       struct plan_xfer *x)
{
    (void)to;
    (void)k;
    block_of(p, p->r.rank, x);
}

static void recv_block(const struct plan *p, uint32_t from, uint32_t k,
                       struct plan_xfer *x)
{
    (void)k;
    block_of(p, from, x);
}

const struct algorithm allgather_linear = {
    .name = "linear",
    .colls = BIT(COLL_ALLGATHER),
    .unfit = unfit,
    .defers = true,
    .awaits_all = true,
    .fast = FAST_FLAT,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = plan_one_transfer,
    .recvs = plan_one_transfer,
    .send = send_block,
    .recv = recv_block,
};

/* --------------------------------------------------------- an all-to-all-v */

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
    .fast = FAST_PAIRS,
    .partners = plan_all_partners,
    .partner = plan_all_partner,
    .sends = sends,
    .recvs = recvs,
    .send = send,
    .recv = recv,
    .begin = pull_begin,
    .pulls = true,
    .put = pull_put,
    .take_put = pull_take,
};
