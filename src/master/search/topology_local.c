/* topology_local.c - local search on a directed ring.
 *
 * Moves: 2-opt (turn a stretch round) and the exchange of two adjacent
 * stretches, either of them turned round or not, which contains Or-opt and the
 * one 3-opt move that keeps directions. Costs differ by direction, so prefix
 * sums of the ring's cost both ways (ahead, back) make a turned stretch as
 * cheap to evaluate as a straight one. New edges come from neighbour lists,
 * and only if they cost less than the edge they replace (Lin and Kernighan's
 * gain criterion). */
#include "topology_search.h"

#include <string.h>

/* Positions first < middle < last name the edges that leave them. */
struct move {
    int64_t gain;
    uint32_t first, middle, last;
    enum { MOVE_TURN, MOVE_SWAP, MOVE_SWAP_TURN_A, MOVE_SWAP_TURN_B } kind;
};

static uint32_t peer_at(const struct topology_search *s, uint32_t position)
{
    return s->order[position < s->in.n ? position : position - s->in.n];
}

static uint64_t leaving_cost(const struct topology_search *s, uint32_t position)
{
    uint32_t n = s->in.n;
    if (position + 1 < n) return s->ahead[position + 1] - s->ahead[position];
    return search_cost(s, s->order[n - 1], s->order[0]);
}

/* Cost that reversing positions first..last adds inside the stretch. */
static int64_t turn_cost(const struct topology_search *s, uint32_t first,
                         uint32_t last)
{
    return (int64_t)(s->back[last] - s->back[first]) -
           (int64_t)(s->ahead[last] - s->ahead[first]);
}

/* Updates the prefix sums after a change of positions first..last. */
static void resum(struct topology_search *s, uint32_t first, uint32_t last)
{
    uint32_t n = s->in.n, i = first > 0 ? first : 1;
    uint64_t ahead, back;
    for (; i < n && i <= last + 1; i++) {
        ahead = s->ahead[i], back = s->back[i];
        uint32_t p = s->order[i - 1], q = s->order[i];
        s->ahead[i] = s->ahead[i - 1] + search_cost(s, p, q);
        s->back[i] = s->back[i - 1] + search_cost(s, q, p);
        if (i <= last) continue;
        uint64_t ahead_shift = s->ahead[i] - ahead;
        uint64_t back_shift = s->back[i] - back;
        for (uint32_t j = i + 1; j < n; j++) {
            s->ahead[j] += ahead_shift;
            s->back[j] += back_shift;
        }
    }
    s->cost = s->ahead[n - 1] + leaving_cost(s, n - 1);
}

void local_load(struct topology_search *s, const uint16_t *order)
{
    uint32_t n = s->in.n;
    if (order != s->order) memcpy(s->order, order, n * sizeof(*order));
    for (uint32_t i = 0; i < n; i++) s->place[s->order[i]] = (uint16_t)i;
    s->ahead[0] = s->back[0] = 0;
    resum(s, 0, n - 1);
}

void local_push(struct topology_search *s, uint32_t peer)
{
    if (s->flagged[peer]) return;
    s->flagged[peer] = 1;
    uint32_t at = s->queue_head + s->queue_count++;
    s->queue[at < s->in.n ? at : at - s->in.n] = (uint16_t)peer;
}

static void copy_reversed(uint16_t *to, const uint16_t *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) to[i] = from[count - 1 - i];
}

static void move_apply(struct topology_search *s, const struct move *m)
{
    uint32_t last = m->kind == MOVE_TURN ? m->middle : m->last;
    uint16_t *a = &s->order[m->first + 1], *b = &s->order[m->middle + 1];
    uint32_t a_count = m->middle - m->first, b_count = last - m->middle;
    uint16_t *to = s->scratch;

    if (m->kind == MOVE_SWAP_TURN_B)
        copy_reversed(to, b, b_count);
    else
        memcpy(to, b, b_count * sizeof(*b));
    if (m->kind == MOVE_SWAP || m->kind == MOVE_SWAP_TURN_B)
        memcpy(to + b_count, a, a_count * sizeof(*a));
    else
        copy_reversed(to + b_count, a, a_count);

    memcpy(a, to, (a_count + b_count) * sizeof(*a));
    for (uint32_t i = m->first + 1; i <= last; i++)
        s->place[s->order[i]] = (uint16_t)i;
    resum(s, m->first + 1, last);

    /* The ends of every new edge may improve further. */
    uint32_t cuts[3] = {m->first, m->first + b_count, last};
    for (int i = 0; i < 3; i++) {
        local_push(s, peer_at(s, cuts[i]));
        local_push(s, peer_at(s, cuts[i] + 1));
    }
}

static void consider(struct move *best, struct move m)
{
    if (m.gain > best->gain) *best = m;
}

static void try_turn(const struct topology_search *s, struct move *best,
                     uint32_t i, uint32_t j)
{
    if (i > j) {
        uint32_t swap = i;
        i = j, j = swap;
    }
    if (j - i < 2) return;
    uint64_t added = search_cost(s, s->order[i], s->order[j]) +
                     search_cost(s, s->order[i + 1], peer_at(s, j + 1));
    uint64_t removed = leaving_cost(s, i) + leaving_cost(s, j);
    int64_t gain = (int64_t)(removed - added) - turn_cost(s, i + 1, j);
    consider(best, (struct move){gain, i, j, j, MOVE_TURN});
}

/* Cuts the ring at three places, in any order, and exchanges the stretches
 * between them: a A b B y becomes a B A y. */
static void try_swap(const struct topology_search *s, struct move *best,
                     uint32_t i, uint32_t j, uint32_t k)
{
    uint32_t swap;
    if (i > j) swap = i, i = j, j = swap;
    if (j > k) swap = j, j = k, k = swap;
    if (i > j) swap = i, i = j, j = swap;
    if (i == j || j == k) return;

    uint32_t a = s->order[i], y = peer_at(s, k + 1);
    uint32_t a_head = s->order[i + 1], a_tail = s->order[j];
    uint32_t b_head = s->order[j + 1], b_tail = s->order[k];
    int64_t removed =
        (int64_t)(leaving_cost(s, i) + leaving_cost(s, j) + leaving_cost(s, k));
    uint64_t a_b = search_cost(s, a, b_head), a_y = search_cost(s, a_tail, y);
    uint64_t added = a_b + search_cost(s, b_tail, a_head) + a_y;
    consider(best, (struct move){removed - (int64_t)added, i, j, k, MOVE_SWAP});
    if (j - i > 1) {
        added =
            a_b + search_cost(s, b_tail, a_tail) + search_cost(s, a_head, y);
        int64_t gain = removed - (int64_t)added - turn_cost(s, i + 1, j);
        consider(best, (struct move){gain, i, j, k, MOVE_SWAP_TURN_A});
    }
    if (k - j > 1) {
        added =
            search_cost(s, a, b_tail) + search_cost(s, b_head, a_head) + a_y;
        int64_t gain = removed - (int64_t)added - turn_cost(s, j + 1, k);
        consider(best, (struct move){gain, i, j, k, MOVE_SWAP_TURN_B});
    }
}

static uint32_t before(const struct topology_search *s, uint32_t position)
{
    return position > 0 ? position - 1 : s->in.n - 1;
}

static uint32_t after(const struct topology_search *s, uint32_t position,
                      uint32_t distance)
{
    position += distance;
    return position < s->in.n ? position : position - s->in.n;
}

enum { SHORT_STRETCH = 3 }; /* Or-opt moves stretches of up to 3 peers */

/* Moves with a new edge that leaves `peer`. */
static void try_out(const struct topology_search *s, struct move *best,
                    uint32_t peer)
{
    uint32_t n = s->in.n, i = s->place[peer];
    uint64_t old = leaving_cost(s, i);
    const uint16_t *out = &s->out_list[peer * NEIGHBOURS_MAX];
    for (uint32_t c = 0; c < NEIGHBOURS_MAX; c++) {
        if (search_cost(s, peer, out[c]) >= old) return;
        uint32_t j = before(s, s->place[out[c]]), from = s->order[j];
        try_turn(s, best, i, s->place[out[c]]);
        const uint16_t *next = &s->out_list[from * NEIGHBOURS_MAX];
        for (uint32_t d = 0; d < NEIGHBOURS_MAX; d++)
            try_swap(s, best, i, j, before(s, s->place[next[d]]));
        for (uint32_t d = 1; d <= SHORT_STRETCH && d < n; d++)
            try_swap(s, best, i, j, after(s, j, d));
    }
}

/* Moves with a new edge that enters `peer`. */
static void try_in(const struct topology_search *s, struct move *best,
                   uint32_t peer)
{
    uint32_t n = s->in.n, i = before(s, s->place[peer]), prev = s->order[i];
    uint64_t old = leaving_cost(s, i);
    const uint16_t *in = &s->in_list[peer * NEIGHBOURS_MAX];
    const uint16_t *next = &s->out_list[prev * NEIGHBOURS_MAX];
    for (uint32_t c = 0; c < NEIGHBOURS_MAX; c++) {
        if (search_cost(s, in[c], peer) >= old) return;
        uint32_t k = s->place[in[c]];
        try_turn(s, best, k, s->place[peer]);
        for (uint32_t d = 0; d < NEIGHBOURS_MAX; d++)
            try_swap(s, best, i, before(s, s->place[next[d]]), k);
        for (uint32_t d = 1; d <= SHORT_STRETCH && d < n; d++)
            try_swap(s, best, i, after(s, k, n - d), k);
    }
}

void local_improve(struct topology_search *s)
{
    uint32_t peer = s->queue[s->queue_head];
    s->queue_head = after(s, s->queue_head, 1);
    s->queue_count--;
    s->flagged[peer] = 0;

    struct move best = {.gain = 0};
    try_out(s, &best, peer);
    try_in(s, &best, peer);
    if (best.gain > 0) move_apply(s, &best);
}

/* Sorts `peer` into the NEIGHBOURS_MAX cheapest of a list. */
static void list_add(uint16_t *list, uint64_t *costs, uint32_t *count,
                     uint32_t max, uint32_t peer, uint64_t cost)
{
    if (*count == max && cost >= costs[max - 1]) return;
    uint32_t at = *count < max ? (*count)++ : max - 1;
    for (; at > 0 && costs[at - 1] > cost; at--) {
        costs[at] = costs[at - 1];
        list[at] = list[at - 1];
    }
    costs[at] = cost;
    list[at] = (uint16_t)peer;
}

void local_candidates(struct topology_search *s, uint32_t peer)
{
    uint64_t out_costs[NEIGHBOURS_MAX], in_costs[NEIGHBOURS_MAX];
    uint32_t out_count = 0, in_count = 0;
    for (uint32_t q = 0; q < s->in.n; q++) {
        if (q == peer) continue;
        list_add(&s->out_list[peer * NEIGHBOURS_MAX], out_costs, &out_count,
                 NEIGHBOURS_MAX, q, search_cost(s, peer, q));
        list_add(&s->in_list[peer * NEIGHBOURS_MAX], in_costs, &in_count,
                 NEIGHBOURS_MAX, q, search_cost(s, q, peer));
    }
}

enum { KICK_WINDOW = 48 };

/* Exchanges two random stretches that are close to each other, near a bad edge
 * if there is one and else anywhere. */
void local_kick(struct topology_search *s)
{
    uint32_t n = s->in.n, at = search_random(s, n);
    for (uint32_t i = 0; s->cost >= EDGE_BAD && i < n; i++) {
        if (leaving_cost(s, at) >= EDGE_BAD) break;
        at = after(s, at, 1);
    }
    uint32_t window = n < KICK_WINDOW ? n : KICK_WINDOW;
    uint32_t start = at + window <= n ? at : n - window;
    uint32_t cuts[3];
    cuts[0] = at;
    do cuts[1] = start + search_random(s, window);
    while (cuts[1] == cuts[0]);
    do cuts[2] = start + search_random(s, window);
    while (cuts[2] == cuts[0] || cuts[2] == cuts[1]);

    struct move kick = {.gain = INT64_MIN};
    for (int i = 0; i < 3; i++) /* three passes of bubble sort */
        for (int j = 0; j < 2; j++)
            if (cuts[j] > cuts[j + 1]) {
                uint32_t swap = cuts[j];
                cuts[j] = cuts[j + 1], cuts[j + 1] = swap;
            }
    kick.first = cuts[0], kick.middle = cuts[1], kick.last = cuts[2];
    kick.kind = MOVE_SWAP;
    move_apply(s, &kick);
}
