/* fuzz_topology.c - what members measure of their links, in any order, and the
 * ring that the coordinator makes of it: the store, the plan of the next
 * probes, and the search. */
#include "fuzz.h"

#include "../../src/master/search/bandwidth.h"
#include "../../src/master/search/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 80,
    PROBES = 200,     /* a plan may want more */
    STEPS = 4000,     /* of one search */
    TRIED_WORLD = 7,  /* all rings of it are tried */
    EDGE_EVENTS = 96, /* between two rings */
    RINGS = 3,        /* of one input */
};

struct world {
    struct bandwidth *store;
    uint32_t n;
    uint16_t slots[SLOTS];
    struct topology_edge edges[SLOTS * SLOTS];
    uint16_t ring[SLOTS];
    pccl_ns now;
};

/* --------------------------------------------------------------- the store */

static uint32_t some(const struct world *w, struct fuzz_input *in)
{
    return w->slots[fuzz_below(in, w->n)];
}

static void join(struct world *w, uint32_t slot, uint8_t bits)
{
    bandwidth_add(w->store, slot, bits & 7, bits >> 3 & 3);
    w->slots[w->n++] = (uint16_t)slot;
}

/* Somebody leaves, and its slot is somebody else's at once. */
static void change_places(struct world *w, struct fuzz_input *in)
{
    uint32_t place = fuzz_below(in, w->n);
    uint16_t slot = w->slots[place];
    bandwidth_remove(w->store, slot);
    w->slots[place] = w->slots[--w->n];
    join(w, slot, fuzz_u8(in));
}

/* Of a few bits to all bits. */
static uint64_t wide(struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    return (uint64_t)(1 + (bits & 15)) << ((bits >> 4) * 3);
}

static void look(const struct world *w, uint32_t a, uint32_t b)
{
    struct bandwidth_edge e = bandwidth_look(w->store, a, b);
    assert(e.state == EDGE_UNREACHABLE ? e.rate == 0 : e.rate > 0);
    assert(e.state == EDGE_UNKNOWN ? e.since == PCCL_NEVER : e.since <= w->now);
}

static void happen(struct world *w, struct fuzz_input *in)
{
    uint8_t what = fuzz_u8(in);
    uint32_t a = some(w, in), b = some(w, in);
    w->now += what >> 4;
    switch (what % 8) {
    case 0:
        change_places(w, in);
        return;
    case 1:
    case 2:
        bandwidth_retry(w->store, a);
        return;
    default:
        break;
    }
    if (a == b) return;
    switch (what % 8) {
    case 3:
        bandwidth_unreachable(w->store, a, b, w->now);
        return;
    case 4:
        bandwidth_rtt(w->store, a, b, (pccl_ns)wide(in), w->now);
        look(w, b, a);
        return;
    case 5:
        look(w, a, b);
        return;
    default: {
        uint64_t rate = wide(in) - 1;
        bandwidth_measured(
            w->store, a, b, rate, (pccl_ns)wide(in) - 1,
            what % 8 == 6 ? BANDWIDTH_SATURATED : BANDWIDTH_AT_LEAST, w->now);
        look(w, a, b);
    }
    }
}

/* A member tells of all its links at once, more than one row has. */
static void tell_all(struct world *w, struct fuzz_input *in)
{
    uint32_t a = some(w, in);
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->slots[i] == a) continue;
        w->now++;
        bandwidth_measured(w->store, a, w->slots[i], wide(in), 1000,
                           BANDWIDTH_SATURATED, w->now);
        if (fuzz_u8(in) & 1)
            bandwidth_unreachable(w->store, a, w->slots[i], w->now);
    }
}

/* ---------------------------------------------------------------- the plan */

/* Probes of one round share no peer, and no pair is there twice. */
static void check_plan(const struct world *w, const struct bandwidth_wish *wish,
                       uint32_t most)
{
    static struct bandwidth_probe probes[PROBES];
    static uint64_t busy[SLOTS];
    static bool paired[SLOTS][SLOTS];
    uint32_t rounds;
    memset(busy, 0, sizeof busy);
    memset(paired, 0, sizeof paired);
    uint32_t count = bandwidth_plan(w->store, wish, probes, most, &rounds);
    assert(count <= most && rounds <= 64);
    for (uint32_t i = 0; i < count; i++) {
        const struct bandwidth_probe *p = &probes[i];
        uint64_t round = (uint64_t)1 << p->round;
        assert(p->a != p->b && (p->a_to_b || p->b_to_a) && p->round < rounds);
        assert(i == 0 || probes[i - 1].round <= p->round);
        assert(!((busy[p->a] | busy[p->b]) & round));
        assert(!paired[p->a][p->b] && !paired[p->b][p->a]);
        busy[p->a] |= round;
        busy[p->b] |= round;
        paired[p->a][p->b] = true;
    }
}

/* -------------------------------------------------------------- the search */

static void check_ring(const struct topology_instance *in,
                       const struct topology_result *r, const uint16_t *order)
{
    bool seen[SLOTS] = {false};
    struct topology_score score = topology_ring_score(in, order);
    for (uint32_t i = 0; i < in->n; i++) {
        assert(order[i] < in->n && !seen[order[i]]);
        seen[order[i]] = true;
    }
    assert(order[0] == 0 && topology_score_compare(&score, &r->score) == 0);
    assert((r->verdict == TOPOLOGY_FOUND) == (score.missing == 0));
    assert(score.missing > 0 || score.rate <= r->bound);
}

/* Any slices give the same. */
static struct topology_result
search(const struct world *w, struct topology_options options, uint16_t *order)
{
    struct topology_instance in = {w->n, w->edges};
    struct topology_result r;
    size_t size = topology_search_size(w->n);
    void *memory = malloc(size);
    assert(memory);
    struct topology_search *s =
        topology_search_init(memory, size, &in, &options);
    uint32_t most = w->n > 24 ? STEPS / 8 : STEPS;
    for (uint32_t steps = 0; steps < most; steps += 50)
        if (!topology_search_step(s, 50)) break;
    topology_search_result(s, &r, order);
    check_ring(&in, &r, order);
    if (options.initial) {
        struct topology_score first = topology_ring_score(&in, options.initial);
        assert(topology_score_compare(&r.score, &first) <= 0);
    }
    free(memory);
    return r;
}

/* Of a small world no ring is better. */
static void try_all(const struct topology_instance *in,
                    const struct topology_score *best, uint16_t *order,
                    uint32_t depth)
{
    if (depth == in->n) {
        struct topology_score score = topology_ring_score(in, order);
        assert(topology_score_compare(best, &score) <= 0);
        return;
    }
    for (uint32_t i = depth; i < in->n; i++) {
        uint16_t at = order[depth];
        order[depth] = order[i], order[i] = at;
        try_all(in, best, order, depth + 1);
        order[i] = order[depth], order[depth] = at;
    }
}

static void search_ring(struct world *w, uint8_t bits)
{
    struct topology_options options = {.seed = bits,
                                       .rounds = bits & 3,
                                       .effort = bits >> 2 & 1,
                                       .initial = bits & 16 ? w->ring : NULL};
    uint16_t order[SLOTS];
    struct topology_result r = search(w, options, order);
    if (w->n <= TRIED_WORLD) {
        assert(r.optimal);
        struct topology_instance in = {w->n, w->edges};
        try_all(&in, &r.score, order, 1);
        memcpy(w->ring, order, w->n * sizeof *order);
    }
}

static void decide(struct world *w, struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in), options = fuzz_u8(in);
    struct bandwidth_view view = {.caution = bits & 1,
                                  .coarse_bits = bits & 2 ? 8 : 0};
    for (uint32_t i = 0; i < w->n; i++)
        w->ring[i] = (uint16_t)((i + (bits >> 4)) % w->n);
    bandwidth_fill(w->store, w->slots, w->n, view, w->edges);
    search_ring(w, options);
    struct bandwidth_wish wish = {.slots = w->slots,
                                  .n = w->n,
                                  .ring = bits & 4 ? w->ring : NULL,
                                  .ring_only = (bits & 12) == 12,
                                  .stale = bits & 128 ? w->now : 0,
                                  .sweep = options};
    check_plan(w, &wish, bits & 64 ? 5 : PROBES);
    (void)bandwidth_rtts_known(w->store, w->slots, w->n);
}

/* A code is exact at its own value. */
static void codes(void)
{
    for (uint32_t code = 0; code <= UINT16_MAX; code += 257)
        assert(topology_encode(topology_decode((uint16_t)code)) == code);
    assert(topology_encode(UINT64_MAX) == UINT16_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct world w;
    static _Alignas(8) uint8_t memory[256 * 1024];
    struct fuzz_input in = {bytes, size};
    memset(&w, 0, sizeof w);
    w.now = PCCL_S;
    assert(bandwidth_size(SLOTS) <= sizeof memory);
    w.store = bandwidth_init(memory, sizeof memory, SLOTS);
    uint32_t n = 1 + fuzz_below(&in, 32);
    uint8_t bits = fuzz_u8(&in);
    if (bits == 255) n = SLOTS; /* rows are full */
    for (uint32_t i = 0; i < n; i++)
        join(&w, i, bits & 1 ? fuzz_u8(&in) : bits);
    codes();
    for (uint32_t rings = 0; rings < RINGS && in.left > 4; rings++) {
        for (uint32_t i = 0; i < EDGE_EVENTS && in.left > 4; i++)
            happen(&w, &in);
        if (fuzz_u8(&in) >= 250) tell_all(&w, &in);
        decide(&w, &in);
    }
    decide(&w, &in);
    return 0;
}
