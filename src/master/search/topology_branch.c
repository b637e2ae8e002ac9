/* topology_branch.c - second exact method: branch and bound, up to 18 peers.
 *
 * First the rate: binary search over the distinct rates between the best ring
 * known and the upper bound, each answered by backtracking over the graph of
 * edges that fast. Then the delay, over edges of at least the best rate. The
 * walk starts at peer 0; sets of peers are bit masks. A good ring from the
 * heuristic makes both parts short, and either may be cut off at any step. */
#include "topology_search.h"

#include <string.h>

#define FAR_AWAY ((uint64_t)1 << 50)

static void walk_open(struct topology_search *s, uint16_t threshold)
{
    struct branch *b = s->branch;
    uint32_t n = s->in.n;
    memset(b->out, 0, sizeof(b->out));
    memset(b->in, 0, sizeof(b->in));
    for (uint32_t p = 0; p < n; p++) {
        for (uint32_t q = 0; q < n; q++) {
            struct topology_edge edge = search_edge(s, p, q);
            bool usable = p != q && edge.rate >= threshold;
            b->cost[p][q] = usable ? edge_delay(edge) : FAR_AWAY;
            if (usable) b->out[p] |= 1u << q, b->in[q] |= 1u << p;
        }
    }
    b->open = true;
    b->depth = 1;
    b->path[0] = 0;
    b->spent[0] = 0;
    b->unused = ((1u << n) - 1) & ~1u;
    b->untried[0] = b->out[0] & b->unused;
}

static void rate_next(struct topology_search *s)
{
    struct branch *b = s->branch;
    if (b->low < b->high) {
        s->goal = b->low + (b->high - b->low + 1) / 2;
        walk_open(s, s->levels[s->goal]);
        return;
    }
    if (b->low < 0) {
        s->impossible = true;
        s->phase = PHASE_DONE;
        return;
    }
    s->phase = PHASE_PROVE_DELAY;
    walk_open(s, s->levels[b->low]);
}

void branch_start(struct topology_search *s)
{
    struct branch *b = s->branch;
    s->phase = PHASE_PROVE_RATE;
    s->proof_spent = 0;
    b->high = search_level(s, s->bound);
    b->low = search_level(s, s->best_score.rate); /* -1 if an edge is missing */
    rate_next(s);
}

/* Whether all of `left` is reachable from `start` through peers of `left`. */
static bool all_reached(const uint32_t *edges, uint32_t start, uint32_t left)
{
    uint32_t reached = 0, wave = 1u << start;
    while (wave) {
        uint32_t p = (uint32_t)__builtin_ctz(wave);
        wave &= wave - 1;
        uint32_t fresh = edges[p] & left & ~reached;
        reached |= fresh;
        wave |= fresh;
    }
    return reached == left;
}

/* Whether every peer of `from` has an edge into `to`, and any two peers with a
 * single choice have different ones. */
static bool all_have_edge(const uint32_t *edges, uint32_t from, uint32_t to)
{
    uint32_t taken = 0;
    for (; from; from &= from - 1) {
        uint32_t p = (uint32_t)__builtin_ctz(from);
        uint32_t choice = edges[p] & to;
        if (choice == 0) return false;
        if (choice & (choice - 1)) continue;
        if (taken & choice) return false;
        taken |= choice;
    }
    return true;
}

/* Whether simple conditions allow the path to be closed. */
static bool walk_alive(const struct branch *b, uint32_t end)
{
    uint32_t left = b->unused;
    if (left == 0) return b->out[end] & 1u;
    if ((b->in[0] & left) == 0 || (b->out[end] & left) == 0) return false;
    return all_have_edge(b->in, left, left | 1u << end) &&
           all_have_edge(b->out, left, left | 1u) &&
           all_reached(b->out, end, left) && all_reached(b->in, 0, left);
}

/* A lower bound of the cost of closing the path: the end and all peers left pay
 * their cheapest outgoing edge. The remainder of the cheapest incoming edge of
 * the start and of all peers left comes on top. */
static uint64_t closing_bound(const struct branch *b, uint32_t n, uint32_t end)
{
    uint64_t row[TOPOLOGY_PROOF_MAX] = {0}, sum = 0;
    uint32_t froms = b->unused | 1u << end, tos = b->unused | 1u;
    for (uint32_t p = 0; p < n; p++) {
        if (!(froms >> p & 1)) continue;
        uint32_t edges = b->out[p] & tos;
        if (p == end && b->unused) edges &= ~1u;
        uint64_t least = FAR_AWAY;
        for (; edges; edges &= edges - 1) {
            uint64_t cost = b->cost[p][__builtin_ctz(edges)];
            if (cost < least) least = cost;
        }
        row[p] = least;
        sum += least;
    }
    for (uint32_t left = tos; left; left &= left - 1) {
        uint32_t q = (uint32_t)__builtin_ctz(left);
        uint32_t edges = b->in[q] & froms;
        if (q == 0 && b->unused) edges &= ~(1u << end);
        uint64_t least = FAR_AWAY;
        for (; edges; edges &= edges - 1) {
            uint32_t p = (uint32_t)__builtin_ctz(edges);
            uint64_t cost = b->cost[p][q] - row[p];
            if (cost < least) least = cost;
        }
        sum += least;
    }
    return sum;
}

/* One edge of the tree: extends the path by a peer, or takes one back. Returns
 * true when the path is complete and closes. */
static bool walk_step(struct topology_search *s, bool for_delay)
{
    struct branch *b = s->branch;
    uint32_t at = b->depth - 1, end = b->path[at], next = 0;
    if (b->untried[at] == 0) {
        b->unused |= 1u << end;
        b->open = --b->depth > 0;
        return false;
    }
    uint64_t least = UINT64_MAX;
    for (uint32_t left = b->untried[at]; left; left &= left - 1) {
        uint32_t q = (uint32_t)__builtin_ctz(left);
        if (b->cost[end][q] < least) least = b->cost[end][q], next = q;
    }
    b->untried[at] &= ~(1u << next);
    b->unused &= ~(1u << next);
    uint64_t spent = b->spent[at] + b->cost[end][next];
    if (!walk_alive(b, next) ||
        (for_delay &&
         spent + closing_bound(b, s->in.n, next) >= s->best_score.delay)) {
        b->unused |= 1u << next;
        return false;
    }
    b->path[b->depth] = (uint16_t)next;
    b->spent[b->depth] = spent;
    b->untried[b->depth] = b->out[next] & b->unused;
    return ++b->depth == s->in.n;
}

static bool gives_up(struct topology_search *s)
{
    if (s->proof_steps == 0) return false;
    uint64_t spent = s->proof_spent++;
    return spent >=
           s->proof_steps *
               (s->best_score.missing > 0 ? TOPOLOGY_NO_RING_FACTOR : 1);
}

void branch_step(struct topology_search *s)
{
    struct branch *b = s->branch;
    bool for_delay = s->phase == PHASE_PROVE_DELAY;
    if (gives_up(s)) {
        s->phase = PHASE_DONE;
        return;
    }
    if (walk_step(s, for_delay)) {
        search_offer(s, b->path);
        s->proof_spent = 0;
        if (!for_delay) {
            b->low = search_level(s, s->best_score.rate);
            rate_next(s);
        }
        return;
    }
    if (b->open) return;
    if (for_delay) {
        s->optimal = true;
        s->phase = PHASE_DONE;
        return;
    }
    b->high = s->goal - 1;
    rate_next(s);
}
