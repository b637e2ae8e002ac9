/* fuzz_topology.c - the search of a ring over links of any rates and delays, as
 * members may have reported them. It ends, its answer is a ring that begins
 * with peer 0 and has the score that it says, never a worse one than the ring
 * it began with; what is said to be impossible has a reason. */
#include "fuzz.h"

#include "../../src/master/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS = 40, PROOF = 2000, STEPS = 2000000 };

static struct topology_edge edges[PEERS * PEERS];
static _Alignas(64) uint8_t memory[1 << 20];

/* Few different rates make many rings alike; a missing edge is rate 0. */
static void fill(struct fuzz_input *in, uint32_t n)
{
    uint8_t how = fuzz_u8(in);
    uint32_t state = fuzz_u32(in);
    for (uint32_t i = 0; i < n * n; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t rate = how & 1 ? state >> 8 : 1000u << (state >> 30);
        if (how & 2 && state >> 24 < how) rate = 0;
        edges[i] = (struct topology_edge){topology_encode(rate),
                                          topology_encode(state >> 4)};
    }
    while (in->left > 0) {
        uint32_t from = fuzz_below(in, n), to = fuzz_below(in, n);
        edges[from * n + to] =
            (struct topology_edge){fuzz_u16(in), fuzz_u16(in)};
    }
}

static void check(const struct topology_instance *in,
                  const struct topology_search *search, const uint16_t *initial)
{
    struct topology_result r;
    uint16_t order[PEERS];
    bool seen[PEERS] = {false};
    topology_search_result(search, &r, order);
    for (uint32_t i = 0; i < in->n; i++) {
        assert(order[i] < in->n && !seen[order[i]]);
        seen[order[i]] = true;
    }
    assert(order[0] == 0);
    struct topology_score score = topology_ring_score(in, order);
    assert(topology_score_compare(&score, &r.score) == 0);
    assert((r.verdict == TOPOLOGY_FOUND) == (score.missing == 0));
    struct topology_blocker blockers[4];
    uint32_t count = topology_blockers(in, order, blockers, 4);
    assert((count == 0) == (score.missing == 0));
    for (uint32_t i = 0; i < count && i < 4; i++)
        assert(blockers[i].from < in->n && blockers[i].to < in->n);
    if (!initial) return;
    struct topology_score begun = topology_ring_score(in, initial);
    assert(topology_score_compare(&score, &begun) <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    uint32_t n = 1 + fuzz_below(&in, PEERS);
    uint8_t bits = fuzz_u8(&in);
    uint16_t initial[PEERS];
    fill(&in, n);
    for (uint32_t i = 0; i < n; i++) initial[i] = (uint16_t)(n - 1 - i);
    struct topology_instance instance = {n, edges};
    struct topology_options o = {.seed = bits,
                                 .rounds = bits & 3,
                                 .effort = 1,
                                 .proof_steps = PROOF,
                                 .no_table = bits & 4,
                                 .initial = bits & 8 ? initial : NULL};
    assert(topology_search_size(n) <= sizeof memory);
    struct topology_search *search =
        topology_search_init(memory, sizeof memory, &instance, &o);
    uint32_t slices = 0;
    while (topology_search_step(search, 64)) assert(++slices < STEPS / 64);
    check(&instance, search, o.initial);
    return 0;
}
