/* topology.h - the order of the ring: solver for a directed bottleneck tour.
 *
 * A ring is as fast as its slowest edge, so the objective is lexicographic:
 * avoid edges that cannot be made, then maximise the smallest throughput,
 * then minimise the sum of round-trip times. Edges are directed and may
 * differ by direction.
 *
 * Pure: no I/O, clock, thread, allocation or global state. All arithmetic is
 * on integers, so the same instance, options and total number of steps give
 * the same ring on every machine, however the steps were sliced. A search may
 * live in any one thread; the instance must not change while it lives. */
#ifndef PCCL_TOPOLOGY_H
#define PCCL_TOPOLOGY_H

#include "../../base/base.h"

enum {
    TOPOLOGY_PEERS_MAX = PEERS_MAX,
    TOPOLOGY_EXACT_MAX = 18, /* up to here the ring is proven, at once */
};

/* Throughput (bytes/s) and round-trip time (ns) as 16-bit codes: 5 bits of
 * exponent, 11 of significand, exact below 2048, off by < 0.05 % above (always
 * rounded down), saturating at 4.4e12. Codes compare as their values do. A
 * dense world of 4096 peers is then 64 MiB. */
uint16_t topology_encode(uint64_t value);
uint64_t topology_decode(uint16_t code);

struct topology_edge {
    uint16_t rate;  /* code of bytes/s; 0: the edge cannot be made */
    uint16_t delay; /* code of ns; above 68 s counts as 68 s */
};

struct topology_instance {
    uint32_t n; /* 1 .. TOPOLOGY_PEERS_MAX */
    /* edges[from * n + to], the diagonal is ignored. Caller's memory. */
    const struct topology_edge *edges;
};

struct topology_score {
    uint32_t missing; /* edges of the ring that cannot be made */
    uint16_t rate;    /* code of the slowest edge; 0 if any is missing */
    uint64_t delay;   /* sum of the edges' round-trip times, ns */
};

/* Score of the closed ring order[0] -> order[1] -> ... -> order[0]. A single
 * peer has no edges: rate UINT16_MAX, delay 0. */
struct topology_score topology_ring_score(const struct topology_instance *in,
                                          const uint16_t *order);

/* Negative: a is better; 0: equal; positive: b is better. */
int topology_score_compare(const struct topology_score *a,
                           const struct topology_score *b);

struct topology_options {
    uint64_t seed;
    /* Heuristic only: number of restarts; 0: 1. */
    uint32_t rounds;
    /* Perturbations without success per peer (and 192 more) per attempt; 0:
     * 8. */
    uint32_t effort;
    /* Ring to start from, a permutation of 0..n-1, or NULL. The result is never
     * worse. Read by topology_search_init only. */
    const uint16_t *initial;
};

enum topology_verdict {
    TOPOLOGY_FOUND,      /* a ring of edges that can be made */
    TOPOLOGY_NOT_FOUND,  /* none found so far; one may exist */
    TOPOLOGY_IMPOSSIBLE, /* proven: there is none */
};

struct topology_result {
    enum topology_verdict verdict;
    bool optimal; /* proven: no ring scores better */
    struct topology_score score;
    /* No ring can be faster (code); UINT16_MAX until known. */
    uint16_t bound;
    uint64_t steps; /* taken so far */
};

/* Bytes of memory a search over n peers needs: 0.4 MiB at 13, 17 MiB at 18,
 * less than 0.5 MiB at 4096. */
size_t topology_search_size(uint32_t n);

/* Starts a search inside memory (aligned for uint64_t, at least
 * topology_search_size(n) bytes), which the caller owns and may release at any
 * time to cancel. Keeps the pointer to the edges. Does O(n) work. */
struct topology_search *
topology_search_init(void *memory, size_t size,
                     const struct topology_instance *in,
                     const struct topology_options *options);

/* Takes at most max_steps steps, each O(n) work at worst (tens of
 * microseconds at 1024 peers). Returns true while there is more to do. */
bool topology_search_step(struct topology_search *search, uint32_t max_steps);

/* The best ring so far, valid from init on; order (n entries) starts with
 * peer 0. With a verdict other than FOUND it is the ring with the fewest edges
 * that cannot be made. */
void topology_search_result(const struct topology_search *search,
                            struct topology_result *result, uint16_t *order);

#endif
