/* choose.c - see choose.h. */
#include "choose.h"

#define K(n) ((uint64_t)(n)*1024)

/* What is asked for: the first two columns. */
#define SUM_TO_ROOT BIT(COLL_ALLREDUCE), BIT(FLOW_TO_ROOT)
#define ROOTED BIT(COLL_ALLTOALLV), BIT(FLOW_TO_ROOT) | BIT(FLOW_FROM_ROOT)
#define EVEN BIT(COLL_ALLTOALLV), BIT(FLOW_EVEN)
#define REDUCE_SCATTER BIT(COLL_REDUCE_SCATTER), BIT(FLOW_ALL)
#define SCAN BIT(COLL_SCAN), BIT(FLOW_ALL)

static const char root[] = "to and from one root", posts[] = "posts",
                  pairs[] = "small pairs", scan[] = "scan",
                  scatter[] = "reduce-scatter",
                  many[] = "all-to-all of many ranks";

/* The figures of members that share memory are those of the whole view: in a
 * scope nothing takes the fast path, so its members are asked for as if they
 * shared none (engine_choose). */
static const struct detour detours[] = {
    {SUM_TO_ROOT, WHERE_ANY, 0, 2, OF_EACH, 0, AS_ALL,
     "one message each, and nobody waits for a word of the root", NULL},
    {SUM_TO_ROOT, WHERE_ROOM, 0, 0, OF_OTHERS, K(960), AS_ALL,
     "everybody adds a part", root},
    {SUM_TO_ROOT, WHERE_ROOM, 0, 0, OF_EACH, K(64), AS_ASKED,
     "the sum goes nowhere else", root},
    {SUM_TO_ROOT, WHERE_ROOM, 0, 0, OF_EACH, 0, AS_ALL, "everybody adds a part",
     root},
    {SUM_TO_ROOT, WHERE_MEMORY, 0, 8, OF_OTHERS, K(3), AS_ALL,
     "one message deep", root},
    {SUM_TO_ROOT, WHERE_MEMORY, 0, 0, OF_EACH, 0, AS_ASKED,
     "the sum goes nowhere else", root},
    {SUM_TO_ROOT, WHERE_ANY, 0, 0, OF_EACH, 0, AS_ALL,
     "between hosts no algorithm is for a root", NULL},

    {ROOTED, WHERE_ROOM, 0, 0, OF_ALL, K(16), AS_ALL, "one post deep", posts},
    {ROOTED, WHERE_MEMORY, 0, 8, OF_ALL, K(2), AS_ALL,
     "one message deep, and it may take the fast path", root},
    {ROOTED, WHERE_MEMORY, 0, 0, OF_EACH, 0, AS_ASKED,
     "2(n-1) or 3(n-1) frames", root},
    {ROOTED, WHERE_ANY, 0, 8, OF_ALL, K(16), AS_ALL, "nobody waits for DONE",
     NULL},
    {ROOTED, WHERE_ANY, 9, 0, OF_ALL, K(256), AS_ALL,
     "2(n-1) messages over a tree, and nobody waits for DONE", NULL},

    {EVEN, WHERE_MEMORY, 0, 32, OF_PAIRS, K(8), AS_ALL,
     "nobody waits for DONE, and it may take the fast path", pairs},
    {EVEN, WHERE_ROOM, 0, 0, OF_PAIRS, K(8), AS_ALL, "one post deep", posts},
    {EVEN, WHERE_CROWDED, 33, 0, OF_PAIRS, K(64), AS_ALL,
     "of more a tree passes each block to its owner alone", many},
    {EVEN, WHERE_MEMORY, 0, 0, OF_EACH, 0, AS_ASKED,
     "each member gets its own blocks alone", pairs},
    {EVEN, WHERE_ANY, 0, 8, OF_PAIRS, K(16), AS_ALL, "nobody waits for DONE",
     NULL},
    {EVEN, WHERE_ANY, 9, 0, OF_PAIRS, K(256), AS_ALL,
     "2(n-1) messages over a tree, where pairs have n(n-1)", NULL},

    {REDUCE_SCATTER, WHERE_ANY, 33, 0, OF_EACH, 0, AS_ALL,
     "so many are not to be linked for it", scatter},
    {REDUCE_SCATTER, WHERE_MEMORY, 0, 0, OF_PAIRS, K(8), AS_ALL,
     "nobody waits for DONE", pairs},
    {REDUCE_SCATTER, WHERE_MEMORY, 5, 0, OF_ALL, K(32), AS_ALL,
     "it goes over a tree, and pairs of fewer bytes do not pay", pairs},
    {REDUCE_SCATTER, WHERE_MEMORY, 0, 0, OF_EACH, 0, AS_ASKED,
     "each member gets its own block alone", pairs},
    {REDUCE_SCATTER, WHERE_ANY, 0, 0, OF_ALL, K(64), AS_ALL,
     "it has fewer messages", scatter},
    {REDUCE_SCATTER, WHERE_ANY, 0, 0, OF_EACH, K(16) - 1, AS_ALL,
     "it has fewer messages", scatter},

    {SCAN, WHERE_CROWDED, 0, 0, OF_ALL, K(32), AS_ALL,
     "one message deep, and everybody folds", scan},
    {SCAN, WHERE_CROWDED, 0, 0, OF_SHARE, K(8), AS_STAR,
     "2(n-1) messages, where transposing takes 2n(n-1)", scan},
    {SCAN, WHERE_ROOM, 0, 0, OF_ALL, K(128) - 1, AS_ALL,
     "one post deep, and everybody folds", posts},
    {SCAN, WHERE_ROOM, 0, 0, OF_EACH, 0, AS_ASKED,
     "everybody folds a slice of all", posts},
    {SCAN, WHERE_ANY, 0, 0, OF_ALL, K(256) - 1, AS_ALL,
     "one step, and everybody folds", scan},
};

bool choice_is_where(enum choice_where where, const struct plan_request *r)
{
    switch (where) {
    case WHERE_ANY:
        return true;
    case WHERE_MEMORY:
        return r->one_host && r->shared_memory;
    case WHERE_BOARDS:
        return r->one_host && r->shared_memory && r->boards;
    case WHERE_ROOM:
        return choice_is_where(WHERE_BOARDS, r) && r->roomy;
    case WHERE_CROWDED:
        return choice_is_where(WHERE_MEMORY, r) &&
               !choice_is_where(WHERE_ROOM, r);
    case WHERE_SOCKETS:
        return r->one_host && !r->shared_memory;
    case WHERE_HOST:
        return r->one_host;
    case WHERE_HOSTS:
        return !r->one_host;
    case WHERE_GRID:
        return r->grid;
    case WHERE_SITES:
        return r->hierarchy && !r->codes;
    }
    return false;
}

/* Whether that many bytes are at most the row's. */
static bool is_small(const struct detour *d, uint64_t bytes, uint64_t world)
{
    uint64_t of[] = {
        [OF_OTHERS] = world - 1, [OF_ALL] = world, [OF_PAIRS] = world * world};
    if (d->max == 0 || bytes == 0) return true;
    if (d->of == OF_EACH) return bytes <= d->max;
    if (d->of == OF_SHARE) return bytes <= d->max * world;
    return bytes <= d->max / of[d->of];
}

static bool applies(const struct detour *d, const struct plan_request *r)
{
    return d->colls >> r->coll & 1 && d->flows >> r->flow & 1 &&
           choice_is_where(d->where, r) && r->world >= d->world_min &&
           (d->world_max == 0 || r->world <= d->world_max) &&
           is_small(d, r->count, r->world);
}

static enum plan_coll carrier(enum detour_as as, enum plan_coll coll,
                              enum plan_flow *flow)
{
    bool scatters = *flow == FLOW_FROM_ROOT;
    if (as == AS_ASKED) return coll == COLL_SCAN ? COLL_ALLTOALLV : coll;
    *flow = as == AS_STAR ? FLOW_TO_ROOT : FLOW_ALL;
    if (as == AS_STAR) return COLL_ALLTOALLV;
    if (plan_coll_reduces(coll)) return COLL_ALLREDUCE;
    return scatters ? COLL_BROADCAST : COLL_ALLGATHER;
}

const struct detour *choose_way(struct plan_request *r)
{
    const struct detour *d = detours, *end = detours + ARRAY_COUNT(detours);
    while (d < end && !applies(d, r)) d++;
    r->coll = carrier(d < end ? d->as : AS_ASKED, r->coll, &r->flow);
    return d < end ? d : NULL;
}

const struct detour *choose_row(uint32_t i)
{
    return i < ARRAY_COUNT(detours) ? &detours[i] : NULL;
}
