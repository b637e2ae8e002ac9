/* bound.c - best ring over an emulated network: exact search by thresholds. */
#include "bound.h"

#include <stdlib.h>
#include <string.h>

uint64_t bound_of(const struct network *net, const struct ring *ring,
                  uint32_t connections)
{
    uint32_t crossings[TRUNKS_MAX] = {0};
    for (uint32_t i = 0; i < ring->count; i++) {
        int t = network_trunk(net, ring->node[i],
                              ring->node[(i + 1) % ring->count]);
        if (t >= 0) crossings[t]++;
    }
    uint64_t best = ring->count == 0 ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < ring->count; i++) {
        uint32_t from = ring->node[i];
        uint32_t to = ring->node[(i + 1) % ring->count];
        int t = network_trunk(net, from, to);
        uint64_t capacity = network_capacity(net, from, to, connections,
                                             t < 0 ? 1 : crossings[t]);
        if (capacity < best) best = capacity;
    }
    return best;
}

/* Input of the search for a cycle. Peers are numbered from 0 here; every cycle
 * begins at 0. */
struct search {
    uint32_t count;
    uint64_t rate[BOUND_EXACT_MAX][BOUND_EXACT_MAX];
    uint32_t before[BOUND_EXACT_MAX]; /* peers that may send to each */
    bool crossing[BOUND_EXACT_MAX][BOUND_EXACT_MAX];
    uint8_t *cost; /* by set of visited peers and the last of them */
};

enum { NO_WAY = 255 };

static uint8_t *cost_at(const struct search *s, uint32_t visited, uint32_t last)
{
    return &s->cost[(size_t)visited * s->count + last];
}

/* The last peer of the cheapest path through `visited` to `to`, and its cost.
 */
static uint32_t best_last(const struct search *s, uint32_t visited, uint32_t to,
                          uint32_t *cost)
{
    uint32_t best = 0;
    *cost = NO_WAY;
    for (uint32_t last = 0; last < s->count; last++) {
        if (!((visited & s->before[to]) >> last & 1)) continue;
        uint32_t so_far = *cost_at(s, visited, last);
        if (so_far == NO_WAY || so_far + s->crossing[last][to] >= *cost)
            continue;
        *cost = so_far + s->crossing[last][to];
        best = last;
    }
    return best;
}

/* A Hamiltonian cycle over the links in `before` with the fewest crossings of
 * trunks: Held & Karp, J. SIAM 10(1), 1962. */
static bool find_cycle(const struct search *s, struct ring *ring)
{
    uint32_t all = (uint32_t)((1u << s->count) - 1);
    uint32_t cost;
    memset(s->cost, NO_WAY, ((size_t)all + 1) * s->count);
    *cost_at(s, 1, 0) = 0;
    for (uint32_t visited = 3; visited <= all; visited += 2) {
        for (uint32_t k = 1; k < s->count; k++) {
            if (!(visited >> k & 1)) continue;
            (void)best_last(s, visited & ~(1u << k), k, &cost);
            *cost_at(s, visited, k) = (uint8_t)cost;
        }
    }
    uint32_t visited = all;
    uint32_t follower = 0;
    for (uint32_t at = s->count; at-- > 0;) {
        uint32_t last = best_last(s, visited, follower, &cost);
        if (cost == NO_WAY) return false;
        ring->node[at] = (uint8_t)(last + 1);
        visited &= ~(1u << last);
        follower = last;
    }
    ring->count = s->count;
    return true;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t unique(uint64_t *sorted, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || sorted[i] != sorted[kept - 1])
            sorted[kept++] = sorted[i];
    }
    return kept;
}

/* All distinct rates of links, the lowest first. */
static uint32_t rates(struct search *s, uint64_t *sorted)
{
    uint32_t steps = 0;
    for (uint32_t a = 0; a < s->count; a++) {
        for (uint32_t b = 0; b < s->count; b++) {
            if (a != b && s->rate[a][b] > 0) sorted[steps++] = s->rate[a][b];
        }
    }
    qsort(sorted, steps, sizeof *sorted, by_size);
    return unique(sorted, steps);
}

static void threshold(struct search *s, uint64_t least)
{
    for (uint32_t b = 0; b < s->count; b++) {
        s->before[b] = 0;
        for (uint32_t a = 0; a < s->count; a++)
            if (a != b && s->rate[a][b] >= least) s->before[b] |= 1u << a;
    }
}

struct ring bound_best(const struct network *net, uint32_t connections)
{
    struct ring best = {0};
    uint32_t count = network_peers(net);
    uint64_t sorted[BOUND_EXACT_MAX * BOUND_EXACT_MAX];
    if (count > BOUND_EXACT_MAX || count < 2) return best;
    struct search *s = calloc(1, sizeof *s);
    if (s) s->cost = malloc(((size_t)1 << count) * count);
    if (!s || !s->cost) {
        free(s);
        return best;
    }
    s->count = count;
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count; b++) {
            if (a == b) continue;
            s->rate[a][b] = network_capacity(net, a + 1, b + 1, connections, 1);
            s->crossing[a][b] = network_trunk(net, a + 1, b + 1) >= 0;
        }
    }
    uint32_t steps = rates(s, sorted);
    uint64_t reached = 0;
    /* From the highest threshold down, until sharing costs less than it. */
    while (steps > 0 && sorted[steps - 1] > reached) {
        struct ring ring;
        threshold(s, sorted[--steps]);
        if (!find_cycle(s, &ring)) continue;
        uint64_t rate = bound_of(net, &ring, connections);
        if (rate <= reached) continue;
        reached = rate;
        best = ring;
    }
    free(s->cost);
    free(s);
    return best;
}

struct ring bound_seen(const struct network *net)
{
    struct ring ring = {0};
    uint32_t count = network_peers(net);
    node_set visited = 0;
    uint32_t at = 1;
    for (uint32_t i = 0; i < count; i++) {
        if ((visited >> at) & 1) return (struct ring){0};
        visited |= (node_set)1 << at;
        ring.node[i] = (uint8_t)at;
        uint32_t next = 0;
        uint64_t most = 0;
        for (uint32_t k = 1; k <= count; k++) {
            uint64_t bytes = network_tally(net, at, k)->delivered;
            if (bytes > most) {
                most = bytes;
                next = k;
            }
        }
        if (next == 0) return (struct ring){0};
        at = next;
    }
    if (at != 1) return (struct ring){0};
    ring.count = count;
    return ring;
}
