/* topology_search.h - internal header of the ring search, topology_*.c. */
#ifndef PCCL_TOPOLOGY_SEARCH_H
#define PCCL_TOPOLOGY_SEARCH_H

#include "topology.h"

enum {
    NEIGHBOURS_MAX = 8, /* candidate edges per peer and direction */
    /* Delays are clamped below 2^36 ns, so 4096 of them stay below EDGE_BAD
     * and a sum of costs compares as (bad edges, delay). */
    DELAY_CODE_MAX = (26 << 11) - 1,
};

#define EDGE_BAD ((uint64_t)1 << 48)

enum search_phase {
    PHASE_SCAN,       /* distinct rates, per-peer bound */
    PHASE_REACH_OUT,  /* widest paths from peer 0 */
    PHASE_REACH_IN,   /* widest paths to peer 0 */
    PHASE_EXACT_RATE, /* n <= TOPOLOGY_EXACT_MAX */
    PHASE_EXACT_DELAY,
    PHASE_CONSTRUCT,  /* else: nearest neighbour */
    PHASE_CANDIDATES, /* neighbour lists for the threshold */
    PHASE_DESCEND,    /* local search until no peer improves */
    PHASE_KICK,       /* accept or undo, then perturb */
    PHASE_DONE,
};

struct topology_search {
    struct topology_instance in;
    enum search_phase phase;
    uint64_t steps;
    uint64_t random;
    uint32_t cursor; /* of the phase: row, mask, peers placed */

    uint16_t bound;
    bool bound_known, optimal, impossible;
    uint32_t level_count;
    uint16_t *levels; /* distinct rates, ascending */
    uint64_t *level_bits;
    uint16_t *width;  /* widest paths; scratch */
    uint8_t *flagged; /* visited (bounds, construct), queued (descend) */

    uint16_t *best;
    struct topology_score best_score;

    /* Heuristic. */
    uint16_t threshold;      /* edges below it are bad */
    int32_t low, high, goal; /* levels; goal < 0: polishing delays */
    uint32_t round, rounds, effort;
    uint64_t kicks, kicks_max;
    uint16_t *order, *place; /* place[order[i]] == i */
    uint64_t *ahead, *back;  /* cost of order[0..i] forwards, backwards */
    uint64_t cost;           /* of order, closed */
    uint16_t *cached;        /* order to restore after a failed kick */
    uint64_t kept_cost;
    uint16_t *scratch;
    uint16_t *out_list, *in_list; /* NEIGHBOURS_MAX for each peer */
    uint16_t *queue;
    uint32_t queue_head, queue_count;

    uint64_t *table; /* n <= TOPOLOGY_EXACT_MAX; see topology_exact.c */
};

static inline uint64_t edge_delay(struct topology_edge edge)
{
    uint32_t code = edge.delay;
    if (code > DELAY_CODE_MAX) code = DELAY_CODE_MAX;
    uint32_t exponent = code >> 11;
    if (exponent == 0) return code;
    return (uint64_t)(2048 + (code & 2047)) << (exponent - 1);
}

static inline struct topology_edge search_edge(const struct topology_search *s,
                                               uint32_t from, uint32_t to)
{
    return s->in.edges[(size_t)from * s->in.n + to];
}

static inline uint64_t search_cost(const struct topology_search *s,
                                   uint32_t from, uint32_t to)
{
    struct topology_edge edge = search_edge(s, from, to);
    return edge_delay(edge) + (edge.rate < s->threshold ? EDGE_BAD : 0);
}

/* topology.c: takes over a ring if it is better than the best one. */
void search_offer(struct topology_search *s, const uint16_t *order);
/* Index of the largest of s->levels that is <= rate, -1 if there is none. */
int32_t search_level(const struct topology_search *s, uint16_t rate);
uint32_t search_random(struct topology_search *s, uint32_t below);

/* topology_exact.c */
size_t exact_size(uint32_t n);
void exact_start(struct topology_search *s);
void exact_step(struct topology_search *s);

/* topology_local.c */
void local_load(struct topology_search *s, const uint16_t *order);
void local_candidates(struct topology_search *s, uint32_t peer);
void local_push(struct topology_search *s, uint32_t peer);
void local_improve(struct topology_search *s); /* the next peer in the queue */
void local_kick(struct topology_search *s);

/* topology_climb.c */
void climb_start(struct topology_search *s);
void climb_step(struct topology_search *s);

#endif
