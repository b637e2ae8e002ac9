/* algorithm_table.c - see algorithm_table.h. */
#include "algorithm_table.h"

#include <string.h>

#define K(n) ((uint64_t)(n)*1024)
#define REDUCES (BIT(COLL_ALLREDUCE) | BIT(COLL_BARRIER))

/* Condition -> algorithm -> reason -> place of the measurement. A barrier is an
 * all-reduce of zero bytes. */
static const struct choice choices[] = {
    {.algorithm = &local_algorithm,
     .colls = ~0u,
     .world_max = 1,
     .why = "a world of one exchanges nothing"},

    {.colls = BIT(COLL_ALLREDUCE),
     .where = WHERE_MEMORY,
     .flow = FLOW_TO_ROOT,
     .world_min = 3,
     .bytes_max = K(1024),
     .algorithm = &star_sum,
     .why = "the sum goes nowhere else; of more bytes several members add",
     .measured = "to and from one root"},
    {.colls = REDUCES,
     .where = WHERE_ROOM,
     .bytes_max = K(64),
     .total_max = K(960),
     .algorithm = &allreduce_flat,
     .why = "one post deep, or two where each adds up a part",
     .measured = "posts"},
    {.colls = REDUCES,
     .where = WHERE_HOST,
     .world_min = 9,
     .bytes_max = K(64),
     .algorithm = &small_tree,
     .why = "2(n-1) messages, where flat has n(n-1)",
     .measured = "many ranks"},
    {.colls = REDUCES,
     .where = WHERE_SOCKETS,
     .bytes_max = K(128),
     .algorithm = &small_tree,
     .why = "2(n-1) messages, where flat has n(n-1) and processors are shared",
     .measured = "allreduce, one host, sockets"},
    {.colls = REDUCES,
     .where = WHERE_SITES,
     .bytes_max = K(8),
     .total_max = K(128),
     .algorithm = &allreduce_flat,
     .why = "one distance; more bytes would fight for what sites share",
     .measured = "allreduce, sites"},
    {.colls = REDUCES,
     .where = WHERE_SITES,
     .bytes_max = K(1024),
     .algorithm = &allreduce_direct,
     .why = "one vector crosses between two sites, and it takes two distances",
     .measured = "allreduce, sites"},
    {.colls = REDUCES,
     .where = WHERE_MEMORY,
     .bytes_max = K(64),
     .total_max = K(128),
     .world_max = 4,
     .algorithm = &allreduce_flat,
     .why = "one message deep, and it may take the fast path",
     .measured = "allreduce, one host, shared memory"},
    {.colls = REDUCES,
     .where = WHERE_MEMORY,
     .bytes_max = K(8),
     .total_max = K(24),
     .algorithm = &allreduce_flat,
     .why = "one message deep, and it may take the fast path",
     .measured = "allreduce, one host, shared memory"},
    {.colls = REDUCES,
     .where = WHERE_MEMORY,
     .world_min = 4,
     .bytes_max = K(64),
     .algorithm = &small_tree,
     .why = "2(n-1) messages, where flat has n(n-1), and processors are shared",
     .measured = "allreduce, one host, shared memory"},
    {.colls = REDUCES,
     .where = WHERE_MEMORY,
     .bytes_max = K(128),
     .world_max = 4,
     .algorithm = &allreduce_direct,
     .why = "waits twice, and not 2(n-1) times, for another one's processor; "
            "single copy stalls where more are under way than it has slots",
     .measured = "allreduce, one host, shared memory"},
    {.colls = REDUCES,
     .where = WHERE_MEMORY,
     .algorithm = &allreduce_single_copy,
     .why = "bytes are copied once and not by every pair",
     .measured = "allreduce, one host, shared memory"},
    {.colls = REDUCES,
     .bytes_max = K(64),
     .total_max = K(128),
     .algorithm = &allreduce_flat,
     .why = "one message deep",
     .measured = "allreduce, one host, shared memory"},
    {.colls = REDUCES,
     .bytes_max = K(64),
     .total_max = K(128),
     .algorithm = &allreduce_flat_codes,
     .why = "one message deep",
     .measured = "allreduce, quantized"},
    {.colls = REDUCES,
     .where = WHERE_HOSTS,
     .bytes_max = K(1024),
     .algorithm = &allreduce_direct,
     .why = "two distances, where a ring takes 2(n-1)",
     .measured = "allreduce, several hosts"},
    {.colls = REDUCES,
     .where = WHERE_MEMORY,
     .bytes_max = K(256),
     .algorithm = &small_tree,
     .why = "four messages deep, where a ring is 2(n-1)",
     .measured = "many ranks"},
    {.colls = REDUCES,
     .where = WHERE_GRID,
     .bytes_max = K(64),
     .total_max = K(1536),
     .algorithm = &small_grid,
     .why = "two messages deep, where a tree is four; of more bytes a member "
            "sends 2 sqrt(n) copies",
     .measured = "many hosts"},
    {.colls = REDUCES,
     .bytes_max = K(64),
     .algorithm = &small_tree,
     .why = "four messages deep; more bytes would queue at the root",
     .measured = "many ranks"},
    {.colls = BIT(COLL_ALLREDUCE),
     .where = WHERE_GRID,
     .bytes_max = K(2048),
     .algorithm = &allreduce_grid,
     .why = "four distances, where a ring takes 2(n-1)",
     .measured = "many hosts"},
    {.colls = REDUCES,
     .algorithm = &allreduce_ring,
     .why = "each link carries 2(n-1)/n vectors, the least there is",
     .measured = "allreduce, several hosts"},
    {.colls = REDUCES,
     .algorithm = &allreduce_ring_codes,
     .why = "each link carries 2(n-1)/n vectors of codes",
     .measured = "allreduce, quantized"},

    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_ROOM,
     .bytes_max = K(64),
     .algorithm = &broadcast_confirmed,
     .why = "the root posts once",
     .measured = "posts"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_BOARDS,
     .bytes_max = K(64),
     .world_max = 8,
     .algorithm = &broadcast_confirmed,
     .why = "the root posts once",
     .measured = "posts"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_SOCKETS,
     .world_min = 9,
     .bytes_max = K(64),
     .algorithm = &small_tree,
     .why = "2(n-1) messages, and nobody waits for DONE",
     .measured = "many ranks"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_MEMORY,
     .world_min = 9,
     .bytes_max = K(48),
     .algorithm = &small_tree,
     .why = "2(n-1) messages, and nobody waits for DONE",
     .measured = "many ranks"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_MEMORY,
     .bytes_max = K(64),
     .total_max = K(448),
     .algorithm = &broadcast_confirmed,
     .why = "nobody waits for DONE, and it may take the fast path",
     .measured = "broadcast"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_MEMORY,
     .algorithm = &spread_single_copy,
     .why = "the root puts the vector once where all others take it",
     .measured = "put once, taken by all"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_SOCKETS,
     .bytes_max = K(256),
     .world_min = 3,
     .world_max = 8,
     .algorithm = &small_tree,
     .why = "2(n-1) messages, and nobody waits for DONE",
     .measured = "broadcast"},
    {.colls = BIT(COLL_BROADCAST),
     .bytes_max = K(64),
     .total_max = K(128),
     .algorithm = &broadcast_confirmed,
     .why = "one message deep, and nobody waits for DONE",
     .measured = "broadcast"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_HOST,
     .bytes_max = K(256),
     .world_max = 2,
     .algorithm = &broadcast_confirmed,
     .why = "one message, where a chain has several segments",
     .measured = "broadcast"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_GRID,
     .bytes_max = K(2),
     .algorithm = &small_grid,
     .why = "two messages deep, where a tree is four",
     .measured = "many hosts"},
    {.colls = BIT(COLL_BROADCAST),
     .bytes_max = K(64),
     .algorithm = &small_tree,
     .why = "four messages deep, and nobody waits for DONE",
     .measured = "many ranks"},
    {.colls = BIT(COLL_BROADCAST),
     .where = WHERE_GRID,
     .bytes_max = K(16384),
     .algorithm = &broadcast_grid,
     .why = "three steps, where a chain is n-1",
     .measured = "many hosts"},
    {.colls = BIT(COLL_BROADCAST),
     .algorithm = &broadcast_chain,
     .why = "nobody sends more than one vector",
     .measured = "broadcast"},

    {.colls = BIT(COLL_ALLGATHER),
     .where = WHERE_ROOM,
     .total_max = K(64),
     .algorithm = &allgather_linear,
     .why = "one post deep",
     .measured = "posts"},
    {.colls = BIT(COLL_ALLGATHER),
     .where = WHERE_HOST,
     .world_min = 9,
     .total_max = K(64),
     .algorithm = &small_tree,
     .why = "2(n-1) messages, where linear has n(n-1)",
     .measured = "many ranks"},
    {.colls = BIT(COLL_ALLGATHER),
     .where = WHERE_HOST,
     .world_min = HOST_MESH_MAX + 1,
     .total_max = K(504), /* with the own block 512 KiB at most */
     .algorithm = &small_tree,
     .why = "four messages deep, where a ring is n-1",
     .measured = "many ranks"},
    {.colls = BIT(COLL_ALLGATHER),
     .where = WHERE_MEMORY,
     .world_min = 5,
     .total_max = K(64),
     .algorithm = &allgather_linear,
     .why = "one message deep, and it may take the fast path",
     .measured = "allgather"},
    {.colls = BIT(COLL_ALLGATHER),
     .where = WHERE_MEMORY,
     .world_min = 5,
     .algorithm = &spread_single_copy,
     .why = "a member puts its block once where all others take it",
     .measured = "put once, taken by all"},
    {.colls = BIT(COLL_ALLGATHER),
     .bytes_max = K(64),
     .total_max = K(128),
     .algorithm = &allgather_linear,
     .why = "one message deep, and it may take the fast path",
     .measured = "allgather"},
    {.colls = BIT(COLL_ALLGATHER),
     .where = WHERE_GRID,
     .total_max = K(2048),
     .algorithm = &small_grid,
     .why = "two messages deep, and a member sends as many bytes as in a ring",
     .measured = "many hosts"},
    {.colls = BIT(COLL_ALLGATHER),
     .total_max = K(64),
     .algorithm = &small_tree,
     .why = "four messages deep, where a ring is n-1",
     .measured = "many ranks"},
    {.colls = BIT(COLL_ALLGATHER),
     .where = WHERE_MEMORY,
     .algorithm = &spread_single_copy,
     .why = "a member puts its block once where all others take it",
     .measured = "put once, taken by all"},
    {.colls = BIT(COLL_ALLGATHER),
     .algorithm = &allgather_ring,
     .why = "nobody sends a block to more than one member",
     .measured = "allgather"},

    {.colls = BIT(COLL_ALLTOALLV),
     .where = WHERE_MEMORY,
     .flow = FLOW_TO_ROOT,
     .algorithm = &star_gather,
     .why = "2(n-1) frames, where pairs have 2n(n-1), and nobody waits for "
            "DONE",
     .measured = "to and from one root"},
    {.colls = BIT(COLL_ALLTOALLV),
     .where = WHERE_MEMORY,
     .flow = FLOW_FROM_ROOT,
     .algorithm = &star_scatter,
     .why = "3(n-1) frames, where pairs have 2n(n-1)",
     .measured = "to and from one root"},
    {.colls = BIT(COLL_ALLTOALLV),
     .where = WHERE_HOST,
     .flow = FLOW_EVEN,
     .world_min = 33,
     .total_max = K(32),
     .algorithm = &alltoallv_tree,
     .why = "2(n-1) messages, where pairs have n(n-1)",
     .measured = "all-to-all of many ranks"},
    {.colls = BIT(COLL_ALLTOALLV),
     .where = WHERE_HOST,
     .flow = FLOW_EVEN,
     .world_min = HOST_MESH_MAX + 1,
     .total_max = K(128),
     .algorithm = &alltoallv_tree,
     .why = "it needs no other links",
     .measured = "all-to-all of many ranks"},
    {.colls = BIT(COLL_ALLTOALLV),
     .where = WHERE_HOST,
     .flow = FLOW_EVEN,
     .world_min = 129,
     .total_max = K(256), /* the root has 2n of it */
     .algorithm = &alltoallv_tree,
     .why = "it needs no other links, and pairs have 8,256 and more",
     .measured = "all-to-all of many ranks"},
    {.colls = BIT(COLL_ALLTOALLV),
     .algorithm = &alltoallv_pairwise,
     .why = "what a pair exchanges concerns nobody else"},

    {.colls = BIT(COLL_REDUCE_SCATTER),
     .where = WHERE_MEMORY,
     .total_max = K(1024),
     .algorithm = &reduce_scatter_direct,
     .why = "the queues hold it, and members wait for nobody's segments",
     .measured = "reduce-scatter"},
    {.colls = BIT(COLL_REDUCE_SCATTER),
     .where = WHERE_MEMORY,
     .algorithm = &reduce_scatter_single_copy,
     .why = "a member adds the blocks from where they were put",
     .measured = "reduce-scatter"},
    {.colls = BIT(COLL_REDUCE_SCATTER),
     .algorithm = &reduce_scatter_direct,
     .why = "each block goes once, to the member that adds it",
     .measured = "reduce-scatter"},
};

/* All algorithms that may be forced. Of those with one name for one collective,
 * at most one fits a request. */
static const struct algorithm *const algorithms[] = {
    &allreduce_flat,
    &allreduce_flat_codes,
    &allreduce_direct,
    &allreduce_single_copy,
    &allreduce_ring,
    &allreduce_ring_codes,
    &broadcast_confirmed,
    &broadcast_grid,
    &broadcast_chain,
    &allgather_linear,
    &allgather_ring,
    &spread_single_copy,
    &alltoallv_pairwise,
    &alltoallv_tree,
    &star_gather,
    &star_scatter,
    &star_sum,
    &small_grid,
    &allreduce_grid,
    &small_tree,
    &reduce_scatter_direct,
    &reduce_scatter_single_copy,
};

static const char *const coll_names[COLL_COUNT] = {
    "allreduce", "broadcast", "barrier",
    "allgather", "alltoallv", "reduce_scatter"};

static bool does(const struct algorithm *a, enum plan_coll coll)
{
    return a->colls >> coll & 1;
}

static const char *unfit(const struct algorithm *a,
                         const struct plan_request *r)
{
    return a->unfit ? a->unfit(r) : NULL;
}

/* ----------------------------------------------------------------- choice */

/* Only such requests have a size that the rows count. */
static bool is_sized(const struct plan_request *r)
{
    return r->coll != COLL_BARRIER &&
           (r->coll != COLL_ALLTOALLV || r->flow == FLOW_EVEN);
}

/* Bytes of a vector or block. */
static uint64_t bytes_of(const struct plan_request *r)
{
    return is_sized(r) ? r->count * r->element - r->spare : 0;
}

static uint64_t bytes_max(const struct choice *c, const struct plan_request *r)
{
    uint64_t most = c->bytes_max > 0 ? c->bytes_max : UINT64_MAX;
    if (c->total_max == 0 || r->world == 1) return most;
    uint64_t each = c->total_max / (r->world - 1);
    return each < most ? each : most;
}

/* The row is for such a request. A vector of codes has rows of its own. */
static bool applies(const struct choice *c, const struct plan_request *r)
{
    if (!(c->colls >> r->coll & 1) || !choice_is_where(c->where, r))
        return false;
    if (c->flow != FLOW_ALL && c->flow != r->flow) return false;
    if (bytes_of(r) > bytes_max(c, r)) return false;
    if (r->world < c->world_min) return false;
    if (c->world_max > 0 && r->world > c->world_max) return false;
    return r->world == 1 || c->algorithm->codes == r->codes;
}

/* Returns the first algorithm of that name that fits, or NULL. */
static const struct algorithm *find_forced(const struct plan_request *r,
                                           const char **why)
{
    bool alike = false;
    *why = "there is none of that name for this collective";
    for (size_t i = 0; i < ARRAY_COUNT(algorithms); i++) {
        const struct algorithm *a = algorithms[i];
        if (!does(a, r->coll) || strcmp(a->name, r->forced) != 0) continue;
        const char *reason = unfit(a, r);
        if (!reason) return a;
        /* Of two, the one for such elements has the reason. */
        if (!alike) *why = reason;
        alike |= a->codes == r->codes;
    }
    return NULL;
}

const char *algorithm_unfit(const struct plan_request *r)
{
    const char *why = NULL;
    if (r->forced && r->world > 1 && find_forced(r, &why)) return NULL;
    return why;
}

const struct choice *algorithm_row_of(const struct plan_request *r)
{
    for (size_t i = 0; i < ARRAY_COUNT(choices); i++) {
        const struct choice *c = &choices[i];
        if (applies(c, r) && !unfit(c->algorithm, r)) return c;
    }
    PCCL_ASSERT(false && "algorithm_row_of: not a collective");
    return &choices[0];
}

const struct algorithm *algorithm_choose(const struct plan_request *r)
{
    const char *why;
    const struct algorithm *forced = NULL;
    if (r->forced && r->world > 1) forced = find_forced(r, &why);
    return forced ? forced : algorithm_row_of(r)->algorithm;
}

/* The algorithm fits a request of more bytes as well. */
static bool fits_up_to(const struct algorithm *a, struct plan_request r,
                       uint64_t bytes)
{
    uint64_t least = bytes_of(&r);
    r.count = bytes / r.element;
    return bytes >= least && !unfit(a, &r);
}

/* A row that does not apply or fit does so for no more bytes either. Those that
 * fit up to some bytes do so for vectors, or blocks of all, of one frame. */
const struct algorithm *algorithm_choose_range(const struct plan_request *r,
                                               uint64_t *most)
{
    const struct algorithm *a = algorithm_choose(r);
    const struct choice *row = algorithm_row_of(r);
    uint64_t last = row->algorithm == a ? bytes_max(row, r) : UINT64_MAX;
    *most = UINT64_MAX;
    if (!is_sized(r)) return a;
    *most = bytes_of(r);
    const uint64_t limits[] = {last, PLAN_SEGMENT_MAX,
                               PLAN_SEGMENT_MAX / r->world};
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        if (limits[i] > last || !fits_up_to(a, *r, limits[i])) continue;
        *most = limits[i];
        break;
    }
    return a;
}

void algorithm_explain(const struct plan_request *r, struct plan_reason *reason)
{
    const struct choice *row = algorithm_row_of(r);
    *reason = (struct plan_reason){row->algorithm->name, row->why, NULL, NULL};
    if (r->forced && r->world > 1) {
        const struct algorithm *forced = find_forced(r, &reason->unfit);
        reason->instead_of = r->forced;
        if (!forced) return;
        *reason = (struct plan_reason){forced->name, "forced", NULL, NULL};
        return;
    }
    const struct choice *c = choices;
    while (!applies(c, r)) c++;
    if (c == row) return;
    reason->instead_of = c->algorithm->name;
    reason->unfit = unfit(c->algorithm, r);
}

const struct choice *algorithm_row(uint32_t i)
{
    return i < ARRAY_COUNT(choices) ? &choices[i] : NULL;
}

const struct algorithm *algorithm_by_number(uint32_t i)
{
    return i < ARRAY_COUNT(algorithms) ? algorithms[i] : NULL;
}

/* ---------------------------------------------------------- PCCL_ALGORITHM */

const char *algorithm_coll_name(enum plan_coll coll)
{
    return coll_names[coll];
}

const char *algorithm_name(uint32_t i)
{
    for (size_t k = 0; k < ARRAY_COUNT(algorithms); k++) {
        size_t first = 0;
        while (strcmp(algorithms[first]->name, algorithms[k]->name) != 0)
            first++;
        if (first == k && i-- == 0) return algorithms[k]->name;
    }
    return NULL;
}

const char *algorithm_gone(const char *text)
{
    static const struct {
        const char *word, *what;
    } gone[] = {
        {"centralized", "centralized is gone: use tree, which within a host "
                        "has the same messages"},
        {"broadcast:linear", "broadcast:linear is gone: use "
                             "broadcast:confirmed"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(gone); i++) {
        if (strstr(text, gone[i].word)) return gone[i].what;
    }
    return NULL;
}

static bool is_word(const char *word, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(word, name, size) == 0;
}

/* Returns those collectives of the set that have an algorithm of that name. */
static bool force(uint32_t colls, const char *word, size_t size,
                  const char *forced[COLL_COUNT])
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_COUNT(algorithms); i++) {
        const struct algorithm *a = algorithms[i];
        if (!is_word(word, size, a->name)) continue;
        for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
            if (!(colls >> coll & 1) || !does(a, coll)) continue;
            forced[coll] = a->name;
            any = true;
        }
    }
    return any;
}

bool algorithm_parse(const char *text, const char *forced[COLL_COUNT])
{
    for (unsigned coll = 0; coll < COLL_COUNT; coll++) forced[coll] = NULL;
    for (;;) {
        size_t size = strcspn(text, ",");
        size_t head = strcspn(text, ":,");
        uint32_t colls = ~0u;
        if (head < size) {
            colls = 0;
            for (unsigned coll = 0; coll < COLL_COUNT; coll++)
                if (is_word(text, head, coll_names[coll])) colls |= BIT(coll);
            text += head + 1;
            size -= head + 1;
        }
        if (!force(colls, text, size, forced)) return false;
        text += size;
        if (*text++ == '\0') return true;
    }
}
