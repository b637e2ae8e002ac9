/* worlds.h - instances for the tests and the benchmark of the ring solver. */
#ifndef PCCL_TEST_WORLDS_H
#define PCCL_TEST_WORLDS_H

#include <math.h>
#include <stdlib.h>

#include "topology.h"

struct world {
    struct topology_instance in;
    struct topology_edge *edges;
};

static uint64_t world_seed;

static inline uint32_t world_random(uint32_t below)
{
    world_seed = world_seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((world_seed >> 33) * below >> 31);
}

static inline struct world world_new(uint32_t n)
{
    struct world w = {.edges = calloc((size_t)n * n, sizeof(*w.edges))};
    assert(w.edges);
    w.in = (struct topology_instance){n, w.edges};
    return w;
}

static inline void world_free(struct world *w)
{
    free(w->edges);
}

/* Independent directed edges: `levels` different rates (many ties if few),
 * each edge unreachable with a probability of blocked percent. */
static inline struct world world_uniform(uint32_t n, uint64_t seed,
                                         uint32_t levels, uint32_t blocked)
{
    struct world w = world_new(n);
    world_seed = seed * 7919 + n;
    for (uint32_t i = 0; i < n * n; i++) {
        uint32_t rate = 1 + world_random(levels);
        uint32_t delay = 1 + world_random(1000);
        if (world_random(100) < blocked) rate = 0;
        w.edges[i].rate = (uint16_t)rate;
        w.edges[i].delay = (uint16_t)delay;
    }
    return w;
}

/* Points in a square of 8000 by 8000 km: round-trip time from the distance,
 * rate falling with it, both with noise of +-20 % that differs by direction. */
static inline struct world world_geometric(uint32_t n, uint64_t seed)
{
    struct world w = world_new(n);
    world_seed = seed * 104729 + n;
    double *xy = malloc(2 * n * sizeof(*xy));
    assert(xy);
    for (uint32_t i = 0; i < 2 * n; i++) xy[i] = world_random(8000000) / 1e3;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            double km =
                hypot(xy[2 * i] - xy[2 * j], xy[2 * i + 1] - xy[2 * j + 1]);
            double rtt = (2e5 + km * 1.5e4) * (80 + world_random(41)) / 100;
            double rate = 1e9 / (1 + km / 300) * (80 + world_random(41)) / 100;
            w.edges[i * n + j].delay = topology_encode((uint64_t)rtt);
            w.edges[i * n + j].rate = topology_encode((uint64_t)rate);
        }
    free(xy);
    return w;
}

/* 18 peers at 12 places on two continents, some places twice. Round trips are
 * symmetric, and many rings are nearly equal, which makes a proof hard. The
 * rate falls with the distance. */
static inline struct world world_two_continents(void)
{
    enum { PLACES = 12, PEERS = 18 };
    static const uint8_t place[PEERS] = {0, 1, 2, 3, 7, 8, 9, 10, 11,
                                         4, 5, 3, 9, 0, 1, 6, 2,  6};
    static const uint8_t ms[PLACES][PLACES] = {
        {0},
        {42, 0},
        {66, 30, 0},
        {36, 15, 33, 0},
        {66, 44, 30, 36, 0},
        {58, 38, 28, 24, 9, 0},
        {60, 32, 14, 28, 17, 16, 0},
        {144, 120, 102, 114, 90, 98, 88, 0},
        {138, 114, 96, 108, 84, 92, 82, 9, 0},
        {136, 112, 94, 106, 82, 90, 80, 8, 6, 0},
        {132, 108, 90, 102, 78, 86, 76, 13, 9, 7, 0},
        {140, 116, 98, 110, 86, 94, 84, 8, 11, 7, 11, 0}};
    struct world w = world_new(PEERS);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t j = 0; j < PEERS; j++) {
            uint8_t a = place[i], b = place[j];
            uint32_t rtt = a > b ? ms[a][b] : ms[b][a];
            uint64_t rate = rtt < 20   ? 7500000
                            : rtt < 50 ? 6250000
                            : rtt < 75 ? 5000000
                                       : 3750000;
            uint64_t us = rtt > 0 ? rtt * 1000 : 500;
            w.edges[i * PEERS + j].rate = topology_encode(rate);
            w.edges[i * PEERS + j].delay = topology_encode(us * 1000);
        }
    return w;
}

#endif
