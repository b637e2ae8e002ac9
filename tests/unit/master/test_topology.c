/* test_topology.c - tests of the ring solver: optimality, validity, slicing,
 * quality. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "topology_search.h"
#include "worlds.h"

struct solved {
    struct topology_result result;
    uint16_t order[TOPOLOGY_PEERS_MAX];
};

static const struct topology_options plain = {.seed = 1};

static void assert_ring(const uint16_t *order, uint32_t n)
{
    static bool seen[TOPOLOGY_PEERS_MAX];
    memset(seen, 0, sizeof(seen));
    assert_int_equal(order[0], 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(order[i] < n);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
}

/* Solves to the end in slices, checking the ring it reports. */
static struct solved solve(const struct topology_instance *in,
                           const struct topology_options *options,
                           uint32_t slice)
{
    struct solved out;
    size_t size = topology_search_size(in->n);
    /* Garbage in the memory must not matter, and the size must suffice. */
    void *memory = malloc(size);
    assert_non_null(memory);
    memset(memory, 0xa5, size);
    struct topology_search *s = topology_search_init(memory, size, in, options);
    while (topology_search_step(s, slice)) continue;
    assert_false(topology_search_step(s, slice));
    topology_search_result(s, &out.result, out.order);
    assert_ring(out.order, in->n);
    struct topology_score score = topology_ring_score(in, out.order);
    assert_int_equal(topology_score_compare(&score, &out.result.score), 0);
    assert_int_equal(score.missing == 0, out.result.verdict == TOPOLOGY_FOUND);
    if (score.missing == 0) assert_true(score.rate <= out.result.bound);
    free(memory);
    return out;
}

static void assert_score(struct topology_score a, struct topology_score b)
{
    assert_int_equal(a.missing, b.missing);
    assert_int_equal(a.rate, b.rate);
    assert_int_equal(a.delay, b.delay);
}

static void test_codes(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 2048; v++)
        assert_int_equal(topology_decode(topology_encode(v)), v);
    for (uint32_t c = 0; c < 65536; c++) {
        assert_int_equal(topology_encode(topology_decode((uint16_t)c)), c);
        if (c > 0)
            assert_true(topology_decode((uint16_t)c) >
                        topology_decode((uint16_t)(c - 1)));
    }
    for (uint64_t v = 2048; v < 4000000000000u; v += v / 7 + 1) {
        uint64_t low = topology_decode(topology_encode(v));
        assert_true(low <= v && v - low <= v / 2048);
    }
    assert_int_equal(topology_encode(UINT64_MAX), UINT16_MAX);
    assert_int_equal(topology_encode((uint64_t)1 << 42), UINT16_MAX);
}

/* All rings by Heap-like recursion. With none, only `missing` is compared and
 * then the delay, as the solver's relaxed ring has it. */
static void brute(const struct topology_instance *in, uint16_t *order,
                  uint32_t depth, struct topology_score *best)
{
    if (depth == in->n) {
        struct topology_score score = topology_ring_score(in, order);
        if (topology_score_compare(&score, best) < 0) *best = score;
        return;
    }
    for (uint32_t i = depth; i < in->n; i++) {
        uint16_t swap = order[depth];
        order[depth] = order[i], order[i] = swap;
        brute(in, order, depth + 1, best);
        swap = order[depth];
        order[depth] = order[i], order[i] = swap;
    }
}

static struct topology_score brute_best(const struct topology_instance *in)
{
    uint16_t order[9];
    for (uint16_t i = 0; i < in->n; i++) order[i] = i;
    struct topology_score best = topology_ring_score(in, order);
    brute(in, order, 1, &best);
    return best;
}

static void test_optimal_to_nine(void **state)
{
    (void)state;
    static const uint32_t levels[] = {1, 3, 1000};
    static const uint32_t blocked[] = {0, 40, 75};
    uint32_t impossible = 0, found = 0;
    for (uint32_t n = 1; n <= 9; n++)
        for (uint32_t seed = 0; seed < (n < 9 ? 72 : 18); seed++) {
            struct world w =
                world_uniform(n, seed, levels[seed % 3], blocked[seed / 3 % 3]);
            struct topology_score best = brute_best(&w.in);
            struct solved r = solve(&w.in, &plain, 1000);
            assert_true(r.result.optimal);
            assert_score(r.result.score, best);
            assert_int_equal(r.result.verdict, best.missing
                                                   ? TOPOLOGY_IMPOSSIBLE
                                                   : TOPOLOGY_FOUND);
            found += best.missing == 0;
            impossible += best.missing != 0;
            world_free(&w);
        }
    assert_true(found > 100 && impossible > 100);
}

/* The same method, with sets in another order and independent code: first the
 * best rate, then the least delay at it. */
static struct topology_score oracle(const struct topology_instance *in)
{
    uint32_t n = in->n, full = (1u << n) - 1;
    uint64_t *cost = malloc(sizeof(*cost) * n << n);
    assert_non_null(cost);
    struct topology_score best = {.missing = 1};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < (size_t)n << n; i++)
            cost[i] = pass ? UINT64_MAX : 0;
        cost[n] = pass ? 0 : UINT16_MAX; /* the set {0}, ending at 0 */
        uint64_t rate = 0, delay = UINT64_MAX;
        for (uint32_t set = 1; set <= full; set += 2)
            for (uint32_t p = 0; p < n; p++) {
                uint64_t have = cost[(size_t)set * n + p];
                if (have == (pass ? UINT64_MAX : 0)) continue;
                for (uint32_t q = 0; q < n; q++) {
                    struct topology_edge e = in->edges[p * n + q];
                    bool closes = q == 0 && set == full;
                    if ((set >> q & 1 && !closes) || p == q) continue;
                    if (e.rate == 0 || (pass && e.rate < best.rate)) continue;
                    uint64_t sum = have + topology_decode(e.delay);
                    uint64_t low = have < e.rate ? have : e.rate;
                    uint64_t *to = &cost[(size_t)(set | 1u << q) * n + q];
                    if (closes) to = pass ? &delay : &rate;
                    if (pass ? sum < *to : low > *to) *to = pass ? sum : low;
                }
            }
        if (pass == 0 && rate == 0) break;
        if (pass == 0)
            best = (struct topology_score){0, (uint16_t)rate, 0};
        else
            best.delay = delay;
    }
    free(cost);
    return best;
}

/* Up to the largest world that is proven: rates with many ties and with few, no
 * pair blocked, many, most. */
static void test_optimal_to_eighteen(void **state)
{
    (void)state;
    static const uint32_t blocked[] = {0, 70, 20};
    uint32_t impossible = 0;
    for (uint32_t n = 10; n <= TOPOLOGY_EXACT_MAX; n++)
        for (uint32_t seed = 0; seed < (n < 15 ? 12 : 3); seed++) {
            struct world w = seed % 3 == 0
                                 ? world_geometric(n, seed)
                                 : world_uniform(n, seed, seed % 2 ? 4 : 500,
                                                 blocked[seed % 3]);
            struct topology_score best = oracle(&w.in);
            struct solved r = solve(&w.in, &plain, 100000);
            assert_true(r.result.optimal);
            assert_int_equal(r.result.verdict, best.missing
                                                   ? TOPOLOGY_IMPOSSIBLE
                                                   : TOPOLOGY_FOUND);
            if (best.missing == 0) assert_score(r.result.score, best);
            impossible += best.missing != 0;
            world_free(&w);
        }
    assert_true(impossible > 5);
}

/* The search of large worlds, in worlds whose best ring is known: mostly
 * it finds one as fast. */
static void test_climb_in_small_worlds(void **state)
{
    (void)state;
    uint32_t fastest = 0, found = 0, all = 0;
    for (uint32_t n = NEIGHBOURS_MAX + 1; n <= 16; n++)
        for (uint32_t seed = 0; seed < 20; seed++) {
            struct world w =
                world_uniform(n, seed, seed % 2 ? 5 : 300, seed % 4 * 20);
            struct topology_result r;
            uint16_t order[16];
            void *memory = malloc(topology_search_size(n));
            assert_non_null(memory);
            struct topology_search *s = topology_search_init(
                memory, topology_search_size(n), &w.in, &plain);
            while (s->phase != PHASE_EXACT_RATE) topology_search_step(s, 1);
            climb_start(s);
            while (topology_search_step(s, 1000)) continue;
            topology_search_result(s, &r, order);
            struct topology_score best =
                solve(&w.in, &plain, 1000).result.score;
            assert_true(topology_score_compare(&r.score, &best) >= 0);
            found += topology_score_compare(&r.score, &best) == 0;
            fastest +=
                r.score.missing == best.missing && r.score.rate == best.rate;
            all++;
            free(memory);
            world_free(&w);
        }
    print_message("of %u rings %u as fast, %u best\n", all, fastest, found);
    assert_true(fastest > all * 8 / 10 && found > all * 6 / 10);
}

/* The incremental sums and places of the local search stay correct. */
static void test_local_sums(void **state)
{
    (void)state;
    struct world w = world_geometric(30, 6);
    size_t size = topology_search_size(30);
    void *memory = malloc(size);
    assert_non_null(memory);
    struct topology_search *s =
        topology_search_init(memory, size, &w.in, &plain);
    uint32_t checked = 0;
    while (topology_search_step(s, 1)) {
        if (s->phase != PHASE_DESCEND && s->phase != PHASE_KICK) continue;
        uint64_t ahead = 0, back = 0;
        for (uint32_t i = 0; i < 30; i++) {
            uint32_t p = s->order[i], q = s->order[(i + 1) % 30];
            assert_int_equal(s->place[p], i);
            assert_int_equal(s->ahead[i], ahead);
            assert_int_equal(s->back[i], back);
            ahead += search_cost(s, p, q);
            back += search_cost(s, q, p);
        }
        assert_int_equal(s->cost, ahead);
        checked++;
    }
    assert_true(checked > 1000);
    free(memory);
    world_free(&w);
}

static void test_slices_equal_one_shot(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {7, 13, 19, 40, 100};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        struct world w = world_geometric(sizes[i], 11);
        struct topology_options options = {.seed = 9, .rounds = 2};
        struct solved once = solve(&w.in, &options, UINT32_MAX);
        struct solved sliced = solve(&w.in, &options, 1);
        assert_memory_equal(once.order, sliced.order, 2 * sizes[i]);
        assert_int_equal(once.result.steps, sliced.result.steps);
        world_free(&w);
    }
}

/* At any step the ring is at least as good as the initial one, and only
 * improves. */
static void test_initial_and_monotone(void **state)
{
    (void)state;
    struct world w = world_geometric(30, 4);
    struct solved good = solve(&w.in, &plain, 1000);
    size_t size = topology_search_size(30);
    void *memory = malloc(size);
    assert_non_null(memory);
    struct topology_options options = {.seed = 8, .initial = good.order};
    struct topology_search *s =
        topology_search_init(memory, size, &w.in, &options);
    struct topology_result last, next;
    uint16_t order[30];
    topology_search_result(s, &last, order);
    assert_int_equal(topology_score_compare(&last.score, &good.result.score),
                     0);
    assert_memory_equal(order, good.order, sizeof(order));
    while (topology_search_step(s, 50)) {
        topology_search_result(s, &next, order);
        assert_true(topology_score_compare(&next.score, &last.score) <= 0);
        last = next;
    }
    free(memory);
    world_free(&w);
}

static void test_impossible(void **state)
{
    (void)state;
    /* Peer 2 has incoming but no outgoing edges: an outgoing firewall. */
    struct world w = world_uniform(6, 1, 10, 0);
    for (uint32_t q = 0; q < 6; q++) w.edges[2 * 6 + q].rate = 0;
    struct solved r = solve(&w.in, &plain, 100);
    assert_int_equal(r.result.verdict, TOPOLOGY_IMPOSSIBLE);
    assert_int_equal(r.result.score.missing, 1);
    for (uint32_t p = 0; p < 6; p++) w.edges[p * 6 + 4].rate = 0;
    r = solve(&w.in, &plain, 100);
    assert_int_equal(r.result.verdict, TOPOLOGY_IMPOSSIBLE);
    world_free(&w);

    /* Two islands joined in one direction only, small and large. */
    for (uint32_t n = 6; n <= 40; n += 34) {
        w = world_uniform(n, 2, 10, 0);
        for (uint32_t p = n / 2; p < n; p++)
            for (uint32_t q = 0; q < n / 2; q++) w.edges[p * n + q].rate = 0;
        r = solve(&w.in, &plain, 1000);
        assert_int_equal(r.result.verdict, TOPOLOGY_IMPOSSIBLE);
        assert_int_equal(r.result.score.missing, 1);
        world_free(&w);
    }
}

/* One possible ring hidden among blocked edges, plus some distractions. */
static void test_hidden_ring(void **state)
{
    (void)state;
    for (uint32_t n = 14; n <= 62; n += 16) {
        struct world w = world_uniform(n, n, 50, 93);
        uint16_t *hidden = malloc(n * sizeof(*hidden));
        assert_non_null(hidden);
        for (uint32_t i = 0; i < n; i++) hidden[i] = (uint16_t)i;
        for (uint32_t i = n - 1; i > 0; i--) {
            uint32_t j = world_random(i + 1);
            uint16_t swap = hidden[i];
            hidden[i] = hidden[j], hidden[j] = swap;
        }
        for (uint32_t i = 0; i < n; i++)
            w.edges[hidden[i] * n + hidden[(i + 1) % n]].rate = 25;
        struct solved r = solve(&w.in, &plain, 1000);
        assert_int_equal(r.result.verdict, TOPOLOGY_FOUND);
        free(hidden);
        world_free(&w);
    }
}

static void test_quality(void **state)
{
    (void)state;
    static const struct {
        uint32_t n, seed;
        double least, delay_ms; /* 1 % above what was measured */
    } cases[] = {{16, 1, .99, 441},   {16, 2, .99, 420},  {64, 1, .99, 813},
                 {64, 2, .8, 773},    {64, 3, .99, 766},  {64, 4, .99, 790},
                 {256, 1, .85, 1532}, {256, 2, .99, 1515}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct world w = world_geometric(cases[i].n, cases[i].seed);
        struct solved r = solve(&w.in, &plain, 1000);
        double ratio = (double)topology_decode(r.result.score.rate) /
                       (double)topology_decode(r.result.bound);
        print_message("%u peers, seed %u: %.3f of bound, delay %.1f ms\n",
                      cases[i].n, cases[i].seed, ratio,
                      (double)r.result.score.delay / 1e6);
        assert_true(ratio >= cases[i].least);
        assert_true((double)r.result.score.delay / 1e6 <= cases[i].delay_ms);
        world_free(&w);
    }
}

/* Delay alone, sites of equal links: a good ring enters each site once. */
static void test_sites_entered_once(void **state)
{
    (void)state;
    enum { N = 60, SITES = 5 };
    struct world w = world_new(N);
    for (uint32_t p = 0; p < N; p++)
        for (uint32_t q = 0; q < N; q++) {
            bool near = p % SITES == q % SITES;
            w.edges[p * N + q] = (struct topology_edge){
                topology_encode(near ? 1000000000 : 100000000),
                topology_encode(near ? 200000 : 40000000)};
        }
    struct solved r = solve(&w.in, &plain, 1000);
    uint32_t crossings = 0;
    for (uint32_t i = 0; i < N; i++)
        crossings += r.order[i] % SITES != r.order[(i + 1) % N] % SITES;
    assert_int_equal(crossings, SITES);
    world_free(&w);
}

/* Hard for a method that tells rings apart one by one: many are equally good.
 */
static void test_two_continents(void **state)
{
    (void)state;
    struct world w = world_two_continents();
    struct solved r = solve(&w.in, &plain, 1000);
    assert_true(r.result.optimal);
    assert_int_equal(r.result.score.rate, topology_encode(3750000));
    assert_true(r.result.score.delay <= 349 * PCCL_MS);
    world_free(&w);
}

/* Two sets of unequal size, with edges between them only: no ring, which is
 * proven of a small world, and which a large one does not show. */
static void test_a_hard_world_without_a_ring(void **state)
{
    (void)state;
    for (uint32_t n = TOPOLOGY_EXACT_MAX; n <= TOPOLOGY_EXACT_MAX + 2; n += 2) {
        struct world w = world_new(n);
        for (uint32_t p = 0; p < n; p++)
            for (uint32_t q = 0; q < n; q++)
                w.edges[p * n + q].rate = (p < n / 2 - 1) != (q < n / 2 - 1);
        struct solved r = solve(&w.in, &plain, 1000);
        assert_int_equal(r.result.verdict, n == TOPOLOGY_EXACT_MAX
                                               ? TOPOLOGY_IMPOSSIBLE
                                               : TOPOLOGY_NOT_FOUND);
        assert_int_equal(r.result.score.missing, 2);
        world_free(&w);
    }
}

/* A delay beyond the clamp, and the largest world's sum, stay exact. */
static void test_huge_delays(void **state)
{
    (void)state;
    struct world w = world_new(300);
    for (uint32_t i = 0; i < 300 * 300; i++)
        w.edges[i] = (struct topology_edge){7, UINT16_MAX};
    struct solved r = solve(&w.in, &plain, 1000);
    assert_int_equal(r.result.score.rate, 7);
    assert_int_equal(r.result.score.delay, 300 * (UINT64_C(4095) << 24));
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_optimal_to_nine),
        cmocka_unit_test(test_optimal_to_eighteen),
        cmocka_unit_test(test_climb_in_small_worlds),
        cmocka_unit_test(test_local_sums),
        cmocka_unit_test(test_slices_equal_one_shot),
        cmocka_unit_test(test_initial_and_monotone),
        cmocka_unit_test(test_impossible),
        cmocka_unit_test(test_hidden_ring),
        cmocka_unit_test(test_quality),
        cmocka_unit_test(test_sites_entered_once),
        cmocka_unit_test(test_two_continents),
        cmocka_unit_test(test_a_hard_world_without_a_ring),
        cmocka_unit_test(test_huge_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
