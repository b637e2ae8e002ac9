/* bench_topology.c - benchmark of the ring solver: quality and time by size.
 *
 * bench_topology [peers [rounds]]: random geometric worlds, ratio of the ring's
 * slowest edge to the upper bound, delay against the nearest-neighbour ring. */
#include <stdio.h>
#include <time.h>

#include "../unit/master/worlds.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void bench(uint32_t n, uint32_t seed, uint32_t rounds)
{
    struct world w = world_geometric(n, seed);
    size_t size = topology_search_size(n);
    void *memory = malloc(size);
    uint16_t *order = malloc(n * sizeof(*order));
    assert(memory && order);
    struct topology_options options = {.seed = seed, .rounds = rounds};
    struct topology_search *s =
        topology_search_init(memory, size, &w.in, &options);
    struct topology_result r;
    double begin = seconds(), slowest = 0, good = 0;
    uint16_t rate = 0;
    bool more = true;
    while (more) {
        double slice = seconds();
        more = topology_search_step(s, 64);
        slice = seconds() - slice;
        if (slice > slowest) slowest = slice;
        topology_search_result(s, &r, order);
        if (r.score.rate > rate) rate = r.score.rate, good = seconds() - begin;
    }
    struct topology_score plain = topology_ring_score(&w.in, order);
    assert(plain.rate == r.score.rate);
    printf("%5u %4u  %8.3f s (rate after %7.3f s)  %9llu steps  "
           "64 steps <= %6.2f ms  rate %6.2f MB/s = %.3f of bound  "
           "delay %8.1f ms%s\n",
           n, seed, seconds() - begin, good, (unsigned long long)r.steps,
           slowest * 1e3, (double)topology_decode(r.score.rate) / 1e6,
           (double)topology_decode(r.score.rate) /
               (double)topology_decode(r.bound),
           (double)r.score.delay / 1e6, r.optimal ? "  optimal" : "");
    fflush(stdout);
    free(order);
    free(memory);
    world_free(&w);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {8, 13, 16, 18, 64, 256, 1024};
    uint32_t rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    if (argc > 1) {
        for (uint32_t seed = 1; seed <= 3; seed++)
            bench((uint32_t)atoi(argv[1]), seed, rounds);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        for (uint32_t seed = 1; seed <= 3; seed++)
            bench(sizes[i], seed, rounds);
    return 0;
}
