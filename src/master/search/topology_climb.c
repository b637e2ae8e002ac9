/* topology_climb.c - heuristic ring of a large world.
 *
 * Binary search over the distinct rates: at each threshold an iterated local
 * search tries to get rid of all edges below it, starting at the upper bound,
 * which is often reached. Then the delays are polished at the best threshold.
 * A round is one such climb; further rounds start from other peers. */
#include "topology_search.h"

#include <string.h>

/* Small worlds are cheap, so they get more kicks per peer. */
enum { KICKS_EXTRA = 192 };

static void phase_enter(struct topology_search *s, enum search_phase phase)
{
    s->phase = phase;
    s->cursor = 0;
    memset(s->flagged, 0, s->in.n);
}

/* Starts a search for a ring at levels[goal]; goal < 0: polishes delays. */
static void attempt_start(struct topology_search *s, int32_t goal)
{
    int32_t level = goal >= 0 ? goal : s->low;
    s->goal = goal;
    /* Without a ring, threshold 1 makes the missing edges the bad ones. */
    s->threshold = level >= 0 ? s->levels[level] : 1;
    s->kicks = 0;
    s->kicks_max = (uint64_t)s->effort * (s->in.n + KICKS_EXTRA);
    if (goal < 0) s->kicks_max *= 2;
    phase_enter(s, PHASE_CANDIDATES);
}

static void attempt_next(struct topology_search *s)
{
    if (s->low < s->high) {
        attempt_start(s, s->low + (s->high - s->low + 1) / 2);
        return;
    }
    /* A failed attempt leaves a ring with edges below the best rate. */
    struct topology_score score = topology_ring_score(&s->in, s->order);
    if (s->low >= 0 && score.rate < s->levels[s->low])
        memcpy(s->order, s->best, s->in.n * sizeof(*s->order));
    attempt_start(s, -1);
}

static void round_start(struct topology_search *s)
{
    s->high = search_level(s, s->bound);
    s->threshold = s->high >= 0 ? s->levels[s->high] : 1;
    phase_enter(s, PHASE_CONSTRUCT);
}

void climb_start(struct topology_search *s)
{
    s->round = 0;
    round_start(s);
}

static void construct_step(struct topology_search *s)
{
    uint32_t n = s->in.n, placed = s->cursor++;
    uint32_t next = n;
    uint64_t least = UINT64_MAX;
    if (placed == 0) next = search_random(s, n);
    for (uint32_t q = 0; placed > 0 && q < n; q++) {
        if (s->flagged[q]) continue;
        uint64_t cost = search_cost(s, s->order[placed - 1], q);
        if (cost < least) least = cost, next = q;
    }
    s->flagged[next] = 1;
    s->order[placed] = (uint16_t)next;
    if (s->cursor < n) return;
    search_offer(s, s->order);
    s->low = search_level(s, s->best_score.rate);
    /* The upper bound first: it is often feasible. */
    attempt_start(s, s->low < s->high ? s->high : -1);
}

static void candidates_step(struct topology_search *s)
{
    local_candidates(s, s->cursor++);
    if (s->cursor < s->in.n) return;
    phase_enter(s, PHASE_DESCEND);
    local_load(s, s->order);
    s->kept_cost = UINT64_MAX;
    s->queue_head = s->queue_count = 0;
    for (uint32_t p = 0; p < s->in.n; p++) local_push(s, s->order[p]);
}

static void round_finish(struct topology_search *s)
{
    if (++s->round < s->rounds) {
        round_start(s);
        return;
    }
    s->phase = PHASE_DONE;
}

static void attempt_finish(struct topology_search *s)
{
    search_offer(s, s->order);
    if (s->goal < 0) {
        round_finish(s);
        return;
    }
    struct topology_score score = topology_ring_score(&s->in, s->order);
    int32_t reached = score.missing ? -1 : search_level(s, score.rate);
    if (reached > s->low) s->low = reached;
    if (reached < s->goal) s->high = s->goal - 1;
    attempt_next(s);
}

static bool goal_reached(const struct topology_search *s)
{
    return s->goal >= 0 && s->cost < EDGE_BAD;
}

/* Local search has converged: keeps the ring or reverts to the kept one, then
 * goes on. */
static void kick_step(struct topology_search *s)
{
    size_t size = s->in.n * sizeof(*s->order);
    if (s->cost > s->kept_cost) {
        local_load(s, s->cached);
    } else {
        /* Removing a bad edge resets the attempt's patience. */
        if (s->cost / EDGE_BAD < s->kept_cost / EDGE_BAD) s->kicks = 0;
        if (s->goal < 0 && s->cost < s->kept_cost) search_offer(s, s->order);
        memcpy(s->cached, s->order, size);
        s->kept_cost = s->cost;
    }
    if (goal_reached(s) || s->kicks++ >= s->kicks_max) {
        attempt_finish(s);
        return;
    }
    local_kick(s);
    s->phase = PHASE_DESCEND;
}

void climb_step(struct topology_search *s)
{
    switch (s->phase) {
    case PHASE_CONSTRUCT:
        construct_step(s);
        break;
    case PHASE_CANDIDATES:
        candidates_step(s);
        break;
    case PHASE_DESCEND:
        if (s->queue_count > 0) local_improve(s);
        if (s->queue_count == 0 || goal_reached(s)) s->phase = PHASE_KICK;
        break;
    case PHASE_KICK:
        kick_step(s);
        break;
    default:
        PCCL_ASSERT(false);
    }
}
