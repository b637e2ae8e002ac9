/* local.c - "local": a world of one, which sends nothing. Pure. */
#include "algorithm.h"

static uint32_t none(const struct plan *p)
{
    (void)p;
    return 0;
}

static uint32_t none_of(const struct plan *p, uint32_t rank)
{
    (void)p;
    (void)rank;
    return 0;
}

static void nothing(const struct plan *p, uint32_t rank, uint32_t k,
                    struct plan_xfer *x)
{
    (void)p;
    (void)rank;
    (void)k;
    (void)x;
}

static const char *unfit(const struct plan_request *r)
{
    return r->world > 1 ? "needs a world of one" : NULL;
}

const struct algorithm local_algorithm = {
    .name = "local",
    .colls = BIT(COLL_ALLREDUCE) | BIT(COLL_BROADCAST) | BIT(COLL_BARRIER) |
             BIT(COLL_ALLGATHER) | BIT(COLL_ALLTOALLV) |
             BIT(COLL_REDUCE_SCATTER),
    .unfit = unfit,
    .partners = none,
    .partner = none_of,
    .sends = none_of,
    .recvs = none_of,
    .send = nothing,
    .recv = nothing,
};
