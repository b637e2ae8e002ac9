/* topology_exact.c - the best ring of a small world, by dynamic programming.
 *
 * Held and Karp (1962): the best path from peer 0 through a set of peers to
 * the last of them. The pair (rate, delay) has no optimal substructure - a
 * slower path with less delay may win when a later edge is slower still - so
 * a first pass finds the best rate and a second one the least delay over
 * edges of at least that rate. Peer p of the world is bit p-1 of a set. */
#include "topology_search.h"

size_t exact_size(uint32_t n)
{
    return ((size_t)1 << (n - 1)) * (n - 1) * sizeof(uint64_t);
}

static uint64_t *cell(const struct topology_search *s, uint32_t set,
                      uint32_t last)
{
    return &s->table[(size_t)set * (s->in.n - 1) + last - 1];
}

void exact_start(struct topology_search *s)
{
    s->phase = PHASE_EXACT_RATE;
    s->cursor = 1;
}

static uint64_t best_rate(const struct topology_search *s, uint32_t before,
                          uint32_t last)
{
    uint64_t best = 0;
    if (before == 0) return search_edge(s, 0, last).rate;
    for (uint32_t left = before; left; left &= left - 1) {
        uint32_t prev = (uint32_t)__builtin_ctz(left) + 1;
        uint64_t rate = search_edge(s, prev, last).rate;
        if (*cell(s, before, prev) < rate) rate = *cell(s, before, prev);
        if (rate > best) best = rate;
    }
    return best;
}

static uint64_t least_cost(const struct topology_search *s, uint32_t before,
                           uint32_t last)
{
    uint64_t best = UINT64_MAX;
    if (before == 0) return search_cost(s, 0, last);
    for (uint32_t left = before; left; left &= left - 1) {
        uint32_t prev = (uint32_t)__builtin_ctz(left) + 1;
        uint64_t cost = *cell(s, before, prev) + search_cost(s, prev, last);
        if (cost < best) best = cost;
    }
    return best;
}

/* The peer before `next` on the best path over `set`. */
static uint32_t best_last(const struct topology_search *s, uint32_t set,
                          uint32_t next)
{
    uint64_t best = UINT64_MAX;
    uint32_t last = 0;
    for (uint32_t left = set; left; left &= left - 1) {
        uint32_t prev = (uint32_t)__builtin_ctz(left) + 1;
        uint64_t cost = *cell(s, set, prev) + search_cost(s, prev, next);
        if (cost < best) best = cost, last = prev;
    }
    return last;
}

static void rate_finish(struct topology_search *s, uint32_t all)
{
    uint16_t best = 0;
    for (uint32_t last = 1; last < s->in.n; last++) {
        uint64_t rate = *cell(s, all, last);
        uint16_t closing = search_edge(s, last, 0).rate;
        if (closing < rate) rate = closing;
        if (rate > best) best = (uint16_t)rate;
    }
    s->impossible = best == 0;
    /* Without a ring, 1 makes the missing edges the bad ones and minimizes
     * their number. */
    s->threshold = best ? best : 1;
    s->phase = PHASE_EXACT_DELAY;
    s->cursor = 1;
}

static void delay_finish(struct topology_search *s, uint32_t all)
{
    uint32_t next = 0;
    s->order[0] = 0;
    for (uint32_t i = s->in.n - 1; i > 0; i--) {
        next = best_last(s, all, next);
        s->order[i] = (uint16_t)next;
        all &= ~(1u << (next - 1));
    }
    search_offer(s, s->order);
    s->optimal = true;
    s->phase = PHASE_DONE;
}

/* Handles one set of peers. Sets ascend, so every subset precedes it. */
void exact_step(struct topology_search *s)
{
    uint32_t set = s->cursor++, all = (1u << (s->in.n - 1)) - 1;
    for (uint32_t left = set; left; left &= left - 1) {
        uint32_t last = (uint32_t)__builtin_ctz(left) + 1;
        uint32_t before = set & ~(1u << (last - 1));
        *cell(s, set, last) = s->phase == PHASE_EXACT_RATE
                                  ? best_rate(s, before, last)
                                  : least_cost(s, before, last);
    }
    if (set != all) return;
    if (s->phase == PHASE_EXACT_RATE)
        rate_finish(s, all);
    else
        delay_finish(s, all);
}
