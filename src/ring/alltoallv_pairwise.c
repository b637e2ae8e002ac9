/* alltoallv_pairwise.c - "pairwise": the members of every pair send each other
 * their blocks directly. Only the two of a pair know its sizes; the digest
 * between them covers them (rule D2c). Pure. */
#include "algorithm.h"
#include "geometry.h"

/* At least one, so that every pair agrees before any is complete (D2e). */
static uint32_t transfers(uint64_t size)
{
    if (size == 0) return 1;
    return (uint32_t)((size + PLAN_SEGMENT_MAX - 1) / PLAN_SEGMENT_MAX);
}

static uint32_t sends(const struct plan *p, uint32_t to)
{
    return transfers(p->r.send_bytes[to]);
}

static uint32_t recvs(const struct plan *p, uint32_t from)
{
    return transfers(p->r.recv_bytes[from]);
}

static void cut(const size_t *bytes, const size_t *displs, uint32_t rank,
                uint32_t k, struct plan_xfer *x)
{
    uint64_t begin = (uint64_t)k * PLAN_SEGMENT_MAX;
    uint64_t left = bytes[rank] - begin;
    x->offset = displs[rank] + begin;
    x->size = (uint32_t)(left < PLAN_SEGMENT_MAX ? left : PLAN_SEGMENT_MAX);
}

static void send(const struct plan *p, uint32_t to, uint32_t k,
                 struct plan_xfer *x)
{
    cut(p->r.send_bytes, p->r.send_displs, to, k, x);
}

static void recv(const struct plan *p, uint32_t from, uint32_t k,
                 struct plan_xfer *x)
{
    cut(p->r.recv_bytes, p->r.recv_displs, from, k, x);
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
};
