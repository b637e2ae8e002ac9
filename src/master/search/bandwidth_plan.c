/* bandwidth_plan.c - selects the next links to probe, in rounds without
 * overlap.
 *
 * Probes of one round run at the same time, so a peer has at most one of them.
 * A pair goes to the first round in which both peers are free. That takes at
 * most twice as many rounds as the busiest peer has pairs. */
#include "bandwidth_store.h"

struct probe_plan {
    struct bandwidth *store;
    const struct bandwidth_wish *wish;
    struct bandwidth_probe *probes;
    uint32_t count, max;
};

static bool edge_wanted(const struct probe_plan *plan, uint32_t from,
                        uint32_t to)
{
    const struct bandwidth_entry *entry = bandwidth_find(plan->store, from, to);
    if (!entry || entry->rtt_only || entry->since < plan->wish->stale)
        return true;
    return entry->at_least &&
           entry->rate <
               bandwidth_guess(plan->store, from, to, entry->delay).rate;
}

static void pair_add(struct probe_plan *plan, uint32_t a, uint32_t b)
{
    struct bandwidth_peer *pa = &plan->store->peers[a];
    struct bandwidth_peer *pb = &plan->store->peers[b];
    bool a_to_b = edge_wanted(plan, a, b);
    bool b_to_a = edge_wanted(plan, b, a);
    uint64_t busy = pa->busy | pb->busy;
    if (!a_to_b && !b_to_a) return;
    if (busy == UINT64_MAX || plan->count == plan->max) return;
    uint32_t round = (uint32_t)__builtin_ctzll(~busy);
    pa->busy |= (uint64_t)1 << round;
    pb->busy |= (uint64_t)1 << round;
    plan->probes[plan->count++] = (struct bandwidth_probe){
        (uint16_t)a, (uint16_t)b, a_to_b, b_to_a, (uint8_t)round};
}

static bool pair_on_ring(const struct probe_plan *plan, uint32_t a, uint32_t b)
{
    const struct bandwidth_peer *peers = plan->store->peers;
    return peers[a].next == b || peers[b].next == a;
}

/* Every second edge first, so that a ring takes two rounds, or three. */
static void plan_ring(struct probe_plan *plan)
{
    const struct bandwidth_wish *wish = plan->wish;
    uint32_t pairs = wish->n == 2 ? 1 : wish->n;
    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t i = half; i < pairs; i += 2) {
            uint32_t next = i + 1 < wish->n ? i + 1 : 0;
            uint16_t a = wish->slots[wish->ring[i]];
            uint16_t b = wish->slots[wish->ring[next]];
            plan->store->peers[a].next = b;
            pair_add(plan, a, b);
        }
}

/* All pairs by the circle method: one peer is fixed, the others rotate. */
static void plan_full(struct probe_plan *plan)
{
    uint32_t n = plan->wish->n, even = n + (n & 1), turns = even - 1;
    for (uint32_t turn = 0; turn < turns; turn++)
        for (uint32_t i = 0; i < even / 2; i++) {
            uint32_t a = (turn + i) % turns;
            uint32_t b = i == 0 ? even - 1 : (turn + turns - i) % turns;
            if (a >= n || b >= n) continue;
            uint32_t x = plan->wish->slots[a], y = plan->wish->slots[b];
            if (!pair_on_ring(plan, x, y)) pair_add(plan, x, y);
        }
}

static bool place_less(const struct bandwidth *store, uint32_t a, uint32_t b)
{
    const struct bandwidth_peer *x = &store->peers[a], *y = &store->peers[b];
    if (x->site != y->site) return x->site < y->site;
    if (x->host != y->host) return x->host < y->host;
    return a < b;
}

/* Shell sort: no allocation, and fast enough for 4096 peers. */
static void sort_places(struct bandwidth *store, uint32_t n)
{
    uint16_t *sorted = store->sorted;
    uint32_t gap = 1;
    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (uint32_t i = gap; i < n; i++) {
            uint16_t slot = sorted[i];
            uint32_t j = i;
            for (; j >= gap && place_less(store, slot, sorted[j - gap]);
                 j -= gap)
                sorted[j] = sorted[j - gap];
            sorted[j] = slot;
        }
}

/* Pairs at distances 1, 2, 4, ... (longer ones shifted by the sweep) on the
 * circle of places. Near pairs measure hosts and sites, distant pairs the links
 * between them. */
static void plan_strides(struct probe_plan *plan)
{
    uint32_t n = plan->wish->n;
    uint16_t *sorted = plan->store->sorted;
    for (uint32_t i = 0; i < n; i++) sorted[i] = plan->wish->slots[i];
    sort_places(plan->store, n);
    for (uint32_t base = 1; base <= n / 2; base *= 2) {
        uint32_t stride = base + plan->wish->sweep % base;
        if (stride > n / 2) stride = n / 2;
        uint32_t pairs = 2 * stride == n ? stride : n;
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t i = 0; i < pairs; i++) {
                uint32_t a = sorted[i], b = sorted[(i + stride) % n];
                if (i / stride % 2 != half || pair_on_ring(plan, a, b))
                    continue;
                pair_add(plan, a, b);
            }
    }
}

/* Heap sort: qsort may allocate. */
static bool probe_less(const struct bandwidth_probe *x,
                       const struct bandwidth_probe *y)
{
    if (x->round != y->round) return x->round < y->round;
    return x->a != y->a ? x->a < y->a : x->b < y->b;
}

static void probe_sift(struct bandwidth_probe *heap, uint32_t at, uint32_t n)
{
    struct bandwidth_probe moved = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && probe_less(&heap[child], &heap[child + 1]))
            child++;
        if (!probe_less(&moved, &heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void sort_probes(struct bandwidth_probe *probes, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;) probe_sift(probes, i, n);
    for (uint32_t last = n; last-- > 1;) {
        struct bandwidth_probe top = probes[0];
        probes[0] = probes[last];
        probes[last] = top;
        probe_sift(probes, 0, last);
    }
}

uint32_t bandwidth_plan(struct bandwidth *store,
                        const struct bandwidth_wish *wish,
                        struct bandwidth_probe *probes, uint32_t max,
                        uint32_t *rounds)
{
    struct probe_plan plan = {store, wish, probes, 0, max};
    *rounds = 0;
    if (wish->n < 2) return 0;
    bandwidth_refresh(store);
    for (uint32_t i = 0; i < wish->n; i++) {
        PCCL_ASSERT(wish->slots[i] < store->peers_max);
        PCCL_ASSERT(store->peers[wish->slots[i]].used);
        store->peers[wish->slots[i]].busy = 0;
        store->peers[wish->slots[i]].next = wish->slots[i];
    }
    if (wish->ring) plan_ring(&plan);
    if (!wish->ring_only) {
        if (wish->n <= BANDWIDTH_FULL_MAX)
            plan_full(&plan);
        else
            plan_strides(&plan);
    }
    sort_probes(probes, plan.count);
    if (plan.count > 0) *rounds = probes[plan.count - 1].round + 1u;
    return plan.count;
}
