/* test_bandwidth.c - tests of the bandwidth store, its views and probe
 * plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bandwidth.h"

static struct bandwidth *store_new(uint32_t peers_max)
{
    size_t size = bandwidth_size(peers_max);
    void *memory = malloc(size);
    assert_non_null(memory);
    memset(memory, 0xa5, size);
    return bandwidth_init(memory, size, peers_max);
}

static struct bandwidth *store_far(uint32_t n)
{
    struct bandwidth *store = store_new(n);
    for (uint32_t p = 0; p < n; p++) bandwidth_add(store, p, 0, 0);
    return store;
}

static void measured(struct bandwidth *store, uint32_t from, uint32_t to,
                     uint64_t rate, pccl_ns now)
{
    bandwidth_measured(store, from, to, rate, 1000, BANDWIDTH_SATURATED, now);
}

static void assert_edge(struct bandwidth *store, uint32_t from, uint32_t to,
                        enum edge_state edge_state, uint64_t rate)
{
    struct bandwidth_edge e = bandwidth_look(store, from, to);
    assert_int_equal(e.state, edge_state);
    assert_int_equal(e.rate, rate);
}

static void test_updates(void **state)
{
    (void)state;
    struct bandwidth *store = store_far(3);
    assert_int_equal(bandwidth_look(store, 0, 1).state, EDGE_UNKNOWN);
    assert_int_equal(bandwidth_look(store, 0, 1).since, PCCL_NEVER);
    bandwidth_measured(store, 0, 1, 1000, 500, BANDWIDTH_SATURATED, 10);
    assert_edge(store, 0, 1, EDGE_MEASURED, 1000);
    assert_int_equal(bandwidth_look(store, 1, 0).state, EDGE_UNKNOWN);

    /* Lower bounds raise the rate and otherwise leave rate and age alone. A new
     * round trip is stored in both cases; a missing one keeps the old. */
    bandwidth_measured(store, 0, 1, 900, 400, BANDWIDTH_AT_LEAST, 20);
    assert_edge(store, 0, 1, EDGE_MEASURED, 1000);
    assert_int_equal(bandwidth_look(store, 0, 1).since, 10);
    assert_int_equal(bandwidth_look(store, 0, 1).rtt, 400);
    bandwidth_measured(store, 0, 1, 1100, 0, BANDWIDTH_AT_LEAST, 30);
    assert_edge(store, 0, 1, EDGE_MEASURED, 1100);
    assert_int_equal(bandwidth_look(store, 0, 1).since, 30);
    assert_int_equal(bandwidth_look(store, 0, 1).rtt, 400);
    bandwidth_measured(store, 0, 1, 0, 0, BANDWIDTH_SATURATED, 40);
    assert_edge(store, 0, 1, EDGE_MEASURED, 1);

    bandwidth_unreachable(store, 0, 1, 50);
    assert_edge(store, 0, 1, EDGE_UNREACHABLE, 0);
    bandwidth_measured(store, 0, 1, 5, 0, BANDWIDTH_AT_LEAST, 60);
    assert_edge(store, 0, 1, EDGE_MEASURED, 5);
    free(store);
}

static void test_estimates(void **state)
{
    (void)state;
    struct bandwidth *store = store_new(6);
    bandwidth_add(store, 0, 7, 1);
    bandwidth_add(store, 1, 7, 1);
    bandwidth_add(store, 2, 8, 1);
    bandwidth_add(store, 3, 9, 2);
    bandwidth_add(store, 4, 0, 0);
    bandwidth_add(store, 5, 0, 0);
    struct bandwidth_edge host = bandwidth_look(store, 0, 1);
    struct bandwidth_edge site = bandwidth_look(store, 0, 2);
    struct bandwidth_edge high_rtt = bandwidth_look(store, 0, 3);
    assert_true(host.rate > site.rate && site.rate > high_rtt.rate);
    assert_true(host.rtt < site.rtt && site.rtt < high_rtt.rtt);
    assert_int_equal(bandwidth_look(store, 4, 5).rate, high_rtt.rate);

    /* Best rate of the sender and of the receiver, within the scope. */
    bandwidth_measured(store, 0, 4, 2000, 70, BANDWIDTH_SATURATED, 1);
    bandwidth_measured(store, 0, 5, 1500, 60, BANDWIDTH_SATURATED, 1);
    assert_edge(store, 0, 3, EDGE_UNKNOWN, 2000);
    bandwidth_measured(store, 4, 3, 1700, 90, BANDWIDTH_SATURATED, 1);
    assert_edge(store, 0, 3, EDGE_UNKNOWN, 1700);
    assert_int_equal(bandwidth_look(store, 0, 3).rtt, 90);
    assert_edge(store, 1, 3, EDGE_UNKNOWN, 1700);
    assert_int_equal(bandwidth_look(store, 0, 2).rate, site.rate);
    struct topology_edge e[4];
    bandwidth_fill(store, (uint16_t[]){0, 2}, 2, (struct bandwidth_view){1, 0},
                   e);
    assert_int_equal(e[1].rate, topology_encode(site.rate));
    /* A lower bound on one edge limits no other edge. */
    bandwidth_measured(store, 2, 3, 3, 0, BANDWIDTH_AT_LEAST, 1);
    assert_edge(store, 2, 4, EDGE_UNKNOWN, 2000);
    free(store);
}

static void test_capacity(void **state)
{
    (void)state;
    enum { N = BANDWIDTH_ROW_MAX + 5 };
    struct bandwidth *store = store_far(N);
    bandwidth_unreachable(store, 0, 1, 1);
    for (uint32_t p = 2; p <= BANDWIDTH_ROW_MAX; p++)
        measured(store, 0, p, 100 + p, 10 + p);
    assert_edge(store, 0, 2, EDGE_MEASURED, 102);
    measured(store, 0, N - 1, 50, 500); /* replaces the oldest measurement */
    assert_int_equal(bandwidth_look(store, 0, 2).state, EDGE_UNKNOWN);
    assert_edge(store, 0, 1, EDGE_UNREACHABLE, 0);
    assert_edge(store, 0, 3, EDGE_MEASURED, 103);
    assert_edge(store, 0, N - 1, EDGE_MEASURED, 50);
    for (uint32_t p = 1; p < N; p++)
        bandwidth_unreachable(store, 0, p, 1000 + p);
    uint32_t kept = 0;
    for (uint32_t p = 1; p < N; p++)
        kept += bandwidth_look(store, 0, p).state == EDGE_UNREACHABLE;
    assert_int_equal(kept, BANDWIDTH_ROW_MAX);
    assert_edge(store, 0, N - 1, EDGE_UNREACHABLE, 0);
    free(store);
}

static void test_remove(void **state)
{
    (void)state;
    struct bandwidth *store = store_far(4);
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t q = 0; q < 4; q++)
            if (p != q) measured(store, p, q, 10 + p, 100 * p + q);
    bandwidth_unreachable(store, 3, 0, 5);
    assert_edge(store, 3, 0, EDGE_UNREACHABLE, 0);

    bandwidth_remove(store, 1);
    bandwidth_add(store, 1, 0, 0);
    for (uint32_t p = 0; p < 4; p++) {
        if (p == 1) continue;
        assert_int_equal(bandwidth_look(store, p, 1).state, EDGE_UNKNOWN);
        assert_int_equal(bandwidth_look(store, 1, p).state, EDGE_UNKNOWN);
    }
    assert_edge(store, 2, 3, EDGE_MEASURED, 12);
    free(store);
}

static void test_fill(void **state)
{
    (void)state;
    struct bandwidth *store = store_far(6);
    uint16_t slots[3] = {5, 2, 3};
    struct topology_edge e[9];
    measured(store, 5, 2, 300000, 1);
    measured(store, 5, 1, 400000, 1); /* outside this world */
    measured(store, 2, 5, 200000, 1);
    measured(store, 2, 1, 100000, 1);
    bandwidth_unreachable(store, 3, 5, 1);
    bandwidth_measured(store, 5, 3, 50, 1, BANDWIDTH_AT_LEAST, 1);
    bandwidth_fill(store, slots, 3, (struct bandwidth_view){0, 0}, e);
    for (int i = 0; i < 3; i++) assert_int_equal(e[i * 4].rate, 0);
    assert_int_equal(e[1].rate, topology_encode(300000));
    assert_int_equal(e[1].delay, topology_encode(1000));
    assert_int_equal(e[3].rate, topology_encode(200000));
    assert_int_equal(e[6].rate, 0);
    assert_int_equal(e[2].rate, topology_encode(400000)); /* optimistic */
    assert_int_equal(e[7].rate, topology_encode(300000));
    bandwidth_fill(store, slots, 3, (struct bandwidth_view){1, 8}, e);
    assert_int_equal(e[2].rate, 50); /* cautious */
    assert_int_equal(e[7].rate, topology_encode(150000) & ~255);
    assert_int_equal(e[1].rate, topology_encode(300000) & ~255);
    free(store);
}

/* Without measurements, hosts and sites are contiguous in the ring. */
static void test_hierarchy_for_free(void **state)
{
    (void)state;
    enum { N = 48, SITES = 3, HOSTS = 12 }; /* slot p: host p % 12 */
    struct bandwidth *store = store_new(N);
    uint16_t slots[N], order[N];
    for (uint16_t p = 0; p < N; p++) {
        bandwidth_add(store, p, 100 + p % HOSTS, 1 + p % SITES);
        slots[p] = p;
    }
    struct topology_edge *edges = malloc(N * N * sizeof(*edges));
    size_t size = topology_search_size(N);
    void *memory = malloc(size);
    assert_non_null(edges);
    assert_non_null(memory);
    bandwidth_fill(store, slots, N, (struct bandwidth_view){1, 8}, edges);
    struct topology_instance in = {.n = N, .edges = edges};
    struct topology_options options = {.seed = 1};
    struct topology_result result;
    struct topology_search *s =
        topology_search_init(memory, size, &in, &options);
    while (topology_search_step(s, 1000)) continue;
    topology_search_result(s, &result, order);
    uint32_t sites = 0, hosts = 0;
    for (uint32_t i = 0; i < N; i++) {
        uint16_t p = order[i], q = order[(i + 1) % N];
        sites += p % SITES != q % SITES;
        hosts += p % HOSTS != q % HOSTS;
    }
    assert_int_equal(sites, SITES);
    assert_int_equal(hosts, HOSTS);
    free(memory);
    free(edges);
    free(store);
}

/* Rounds ascend, no peer twice in a round, no pair twice, no known edge. */
static void assert_plan(struct bandwidth *store,
                        const struct bandwidth_probe *probes, uint32_t count,
                        uint32_t rounds)
{
    static bool pair[1024][1024];
    static int busy[1024];
    memset(pair, 0, sizeof(pair));
    memset(busy, 0xff, sizeof(busy));
    for (uint32_t i = 0; i < count; i++) {
        struct bandwidth_probe p = probes[i];
        assert_true(p.a != p.b && (p.a_to_b || p.b_to_a));
        assert_true(p.round < rounds);
        if (i > 0) assert_true(p.round >= probes[i - 1].round);
        assert_true(busy[p.a] < p.round && busy[p.b] < p.round);
        busy[p.a] = busy[p.b] = p.round;
        assert_false(pair[p.a][p.b] || pair[p.b][p.a]);
        pair[p.a][p.b] = true;
        if (p.a_to_b)
            assert_int_equal(bandwidth_look(store, p.a, p.b).state,
                             EDGE_UNKNOWN);
    }
    if (count > 0) assert_int_equal(probes[count - 1].round + 1, rounds);
}

static void test_plan_small(void **state)
{
    (void)state;
    struct bandwidth_probe probes[256];
    uint16_t slots[16], ring[16];
    uint32_t rounds;
    for (uint32_t n = 1; n <= 16; n++) { /* as pccl.h says */
        struct bandwidth *store = store_far(n);
        for (uint16_t p = 0; p < n; p++) slots[p] = ring[p] = p;
        struct bandwidth_wish wish = {.slots = slots, .n = n};
        uint32_t count = bandwidth_plan(store, &wish, probes, 256, &rounds);
        assert_int_equal(count, n * (n - 1) / 2);
        assert_int_equal(rounds, n < 2 ? 0 : n - 1 + (n & 1));
        assert_plan(store, probes, count, rounds);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(probes[i].a_to_b && probes[i].b_to_a);
            measured(store, probes[i].a, probes[i].b, 10, 5);
            if (i > 0)
                bandwidth_unreachable(store, probes[i].b, probes[i].a, 5);
        }
        /* All but one edge known; then all; then all stale. */
        wish.ring = ring;
        count = bandwidth_plan(store, &wish, probes, 256, &rounds);
        assert_int_equal(count, n > 1);
        if (n > 1) assert_true(probes[0].a_to_b != probes[0].b_to_a);
        if (n > 1)
            measured(store, probes[0].a_to_b ? probes[0].a : probes[0].b,
                     probes[0].a_to_b ? probes[0].b : probes[0].a, 1, 6);
        assert_int_equal(bandwidth_plan(store, &wish, probes, 256, &rounds), 0);
        assert_int_equal(rounds, 0);
        wish.stale = 7;
        assert_int_equal(bandwidth_plan(store, &wish, probes, 256, &rounds),
                         n * (n - 1) / 2);
        assert_int_equal(bandwidth_plan(store, &wish, probes, 3, &rounds),
                         n < 3 ? n - 1 : 3);
        free(store);
    }
}

/* Round trips alone: no rate, no entry replaced, and unreachable edges
 * remain. */
static void test_rtts(void **state)
{
    (void)state;
    struct bandwidth *store = store_far(3);
    static const uint16_t slots[] = {0, 1, 2};
    bandwidth_rtt(store, 0, 1, 50 * PCCL_MS, 7);
    assert_int_equal(bandwidth_look(store, 0, 1).state, EDGE_UNKNOWN);
    assert_in_range(bandwidth_look(store, 0, 1).rtt, 49900000, 50000000);
    assert_in_range(bandwidth_look(store, 1, 0).rtt, 49900000, 50000000);
    bandwidth_rtt(store, 1, 0, 60 * PCCL_MS, 8);
    assert_in_range(bandwidth_look(store, 0, 1).rtt, 49900000, 50000000);
    assert_in_range(bandwidth_look(store, 1, 0).rtt, 59900000, 60000000);
    assert_false(bandwidth_rtts_known(store, slots, 3));
    measured(store, 0, 2, 1000, 9);
    bandwidth_rtt(store, 0, 2, 2000, 10);
    assert_edge(store, 0, 2, EDGE_MEASURED, 1000);
    assert_int_equal(bandwidth_look(store, 0, 2).since, 9);
    assert_int_equal(bandwidth_look(store, 0, 2).rtt, 2000);
    assert_false(bandwidth_rtts_known(store, slots, 3));
    bandwidth_unreachable(store, 1, 2, 11);
    bandwidth_unreachable(store, 2, 1, 11);
    assert_true(bandwidth_rtts_known(store, slots, 3));
    bandwidth_rtt(store, 1, 2, 2000, 12);
    assert_edge(store, 1, 2, EDGE_UNREACHABLE, 0);
    bandwidth_retry(store, 1);
    bandwidth_retry(store, 0);
    assert_in_range(bandwidth_look(store, 1, 0).rtt, 59900000, 60000000);
    assert_int_equal(bandwidth_look(store, 1, 2).state, EDGE_UNKNOWN);
    free(store);
}

/* One address prefix, but a long distance between 0, 1 and 2, 3. After one
 * measurement across, no other edge across is estimated as faster; shorter ones
 * may be. */
static void test_estimates_by_distance(void **state)
{
    (void)state;
    struct bandwidth *store = store_new(4);
    for (uint32_t p = 0; p < 4; p++) bandwidth_add(store, p, 0, 1);
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t q = 0; q < p; q++)
            bandwidth_rtt(store, p, q, p / 2 == q / 2 ? PCCL_MS : 90 * PCCL_MS,
                          1);
    struct bandwidth_edge site = bandwidth_look(store, 0, 1);
    assert_true(bandwidth_look(store, 0, 2).rate < site.rate);
    bandwidth_measured(store, 0, 2, 1000, 100 * PCCL_MS, BANDWIDTH_SATURATED,
                       2);
    assert_edge(store, 1, 3, EDGE_UNKNOWN, 1000);
    assert_edge(store, 3, 0, EDGE_UNKNOWN, 1000);
    assert_edge(store, 0, 1, EDGE_UNKNOWN, site.rate);
    bandwidth_rtt(store, 1, 3, 20 * PCCL_MS, 3);
    bandwidth_measured(store, 1, 2, 1500, 10 * PCCL_MS, BANDWIDTH_SATURATED, 3);
    assert_edge(store, 3, 0, EDGE_UNKNOWN, 1000);
    /* With caution, half of it. */
    struct topology_edge e[16];
    bandwidth_fill(store, (uint16_t[]){0, 1, 2, 3}, 4,
                   (struct bandwidth_view){1, 0}, e);
    assert_int_equal(e[3 * 4 + 0].rate, topology_encode(500));
    assert_in_range(topology_decode(e[3 * 4 + 0].delay), 89 * PCCL_MS,
                    90 * PCCL_MS);
    assert_int_equal(e[0 * 4 + 1].rate, topology_encode(site.rate));

    static const uint16_t ring[] = {0, 1, 2, 3};
    struct bandwidth_probe probes[16];
    uint32_t rounds;
    struct bandwidth_wish wish = {
        .slots = ring, .n = 4, .ring = ring, .ring_only = true};
    assert_int_equal(bandwidth_plan(store, &wish, probes, 16, &rounds), 4);
    assert_int_equal(rounds, 2);
    free(store);
}

/* An edge with a lower bound is probed only if its estimate is higher. */
static void test_plan_lower_bounds(void **state)
{
    (void)state;
    struct bandwidth *store = store_far(2);
    struct bandwidth_probe probes[1];
    uint16_t slots[2] = {0, 1};
    uint32_t rounds;
    struct bandwidth_wish wish = {.slots = slots, .n = 2};
    bandwidth_measured(store, 0, 1, 5, 1, BANDWIDTH_AT_LEAST, 1);
    measured(store, 1, 0, 5, 1);
    assert_int_equal(bandwidth_plan(store, &wish, probes, 1, &rounds), 1);
    assert_true(probes[0].a_to_b && !probes[0].b_to_a);
    bandwidth_measured(store, 0, 1, UINT64_MAX, 1, BANDWIDTH_AT_LEAST, 1);
    assert_int_equal(bandwidth_plan(store, &wish, probes, 1, &rounds), 0);
    free(store);
}

static void test_plan_large(void **state)
{
    (void)state;
    enum { MAX = 1024 * 24 };
    static struct bandwidth_probe probes[MAX];
    static uint16_t slots[1024], ring[1024];
    static const uint32_t sizes[] = {17, 64, 100, 1000, 1024};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        uint32_t n = sizes[i], log = 0, rounds;
        while (1u << log < n) log++;
        struct bandwidth *store = store_new(n);
        for (uint16_t p = 0; p < n; p++) {
            bandwidth_add(store, p, 0, 1 + p % 7);
            slots[p] = p;
            ring[p] = (uint16_t)((p * 3) % n);
        }
        struct bandwidth_wish wish = {.slots = slots, .n = n};
        if (n % 3 != 0) wish.ring = ring;
        for (wish.sweep = 0; wish.sweep < 3; wish.sweep++) {
            uint32_t count = bandwidth_plan(store, &wish, probes, MAX, &rounds);
            assert_plan(store, probes, count, rounds);
            assert_true(count >= n && count <= n * (log + 1));
            assert_true(rounds <= 4 * (log + 1));
        }
        /* Sweeps differ. */
        static struct bandwidth_probe others[MAX];
        uint32_t same = 0, first, second;
        first = bandwidth_plan(store, &wish, others, MAX, &rounds);
        wish.sweep = 0;
        second = bandwidth_plan(store, &wish, probes, MAX, &rounds);
        for (uint32_t c = 0; c < first && c < second; c++)
            same += probes[c].a == others[c].a && probes[c].b == others[c].b;
        assert_true(same < first * 9 / 10);
        /* The plan covers the ring, and a neighbour at the same site for
         * all. */
        uint32_t count = bandwidth_plan(store, &wish, probes, MAX, &rounds);
        uint32_t on_ring = 0, same_site = 0;
        for (uint32_t c = 0; c < count; c++) {
            uint32_t gap = (probes[c].b + n - probes[c].a) % n;
            on_ring += gap == 3 % n || gap == n - 3 % n;
            same_site += probes[c].a % 7 == probes[c].b % 7;
        }
        if (wish.ring) assert_true(on_ring >= n);
        assert_true(same_site >= n - 7);
        free(store);
    }
}

/* Solve optimistically, probe the ring's edges, repeat: ends at the best
 * ring. */
static void test_lazy_probing(void **state)
{
    (void)state;
    enum { N = 12, MAX = N * N };
    struct bandwidth *store = store_far(N);
    struct topology_edge truth[MAX] = {{0, 0}}, seen[MAX];
    struct bandwidth_probe probes[MAX];
    uint16_t slots[N], order[N];
    for (uint32_t i = 0; i < MAX; i++)
        truth[i] = (struct topology_edge){
            topology_encode(1000 + i * 7919 % 997 * 50), 1000};
    for (uint16_t p = 0; p < N; p++) slots[p] = p;
    struct topology_options options = {.seed = 1};
    void *memory = malloc(topology_search_size(N));
    assert_non_null(memory);
    struct topology_result result[2];
    for (int sweep = 0; sweep < 2; sweep++) {
        struct topology_instance in = {.n = N, .edges = sweep ? seen : truth};
        bandwidth_fill(store, slots, N, (struct bandwidth_view){0, 0}, seen);
        struct topology_search *s = topology_search_init(
            memory, topology_search_size(N), &in, &options);
        while (topology_search_step(s, 1000)) continue;
        topology_search_result(s, &result[sweep], order);
        struct bandwidth_wish wish = {.slots = slots, .n = N, .ring = order};
        uint32_t rounds, count;
        count = bandwidth_plan(store, &wish, probes, MAX, &rounds);
        assert_int_equal(count, sweep ? 0 : N * (N - 1) / 2);
        for (uint32_t i = 0; i < count; i++) {
            uint16_t a = probes[i].a, b = probes[i].b;
            measured(store, a, b, topology_decode(truth[a * N + b].rate), 1);
            measured(store, b, a, topology_decode(truth[b * N + a].rate), 1);
        }
    }
    assert_int_equal(topology_score_compare(&result[0].score, &result[1].score),
                     0);
    free(memory);
    free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_hierarchy_for_free),
        cmocka_unit_test(test_plan_small),
        cmocka_unit_test(test_rtts),
        cmocka_unit_test(test_estimates_by_distance),
        cmocka_unit_test(test_plan_lower_bounds),
        cmocka_unit_test(test_plan_large),
        cmocka_unit_test(test_lazy_probing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
