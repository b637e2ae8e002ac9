/* rare.c - which rare ways the cores take in this universe
 * (src/base/buggify.h). By the seed alone, and by random numbers of its own:
 * without it a seed means the same universe as ever. */
#include "rare.h"

#include <stdio.h>
#include <string.h>

/* Of the points of a universe; the others stay as in the product. */
enum { ENABLED_ONE_IN = 3 };

static const struct {
    const char *name;
    uint32_t one_in;
} points[BUGGIFY_COUNT] = {
#define X(name, one_in) {#name, one_in},
    PCCL_BUGGIFY_POINTS(X)
#undef X
};

static struct {
    uint64_t random;
    uint64_t universes, count[BUGGIFY_COUNT], among[BUGGIFY_COUNT];
    bool on, enabled[BUGGIFY_COUNT], fired[BUGGIFY_COUNT];
    bool forced[BUGGIFY_COUNT];
} rare;

/* splitmix64: Steele, Lea & Flood, OOPSLA 2014. */
static uint32_t draw(uint32_t count)
{
    uint64_t z = rare.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % count);
}

void rare_begin(uint64_t seed, bool on)
{
    rare.random = seed ^ 0xb099;
    rare.on = on;
    rare.universes += on;
    for (uint32_t i = 0; i < BUGGIFY_COUNT; i++) {
        rare.enabled[i] = draw(ENABLED_ONE_IN) == 0;
        rare.fired[i] = rare.forced[i] = false;
    }
}

void rare_forbid(enum buggify_point point)
{
    rare.enabled[point] = false;
}

void rare_force(enum buggify_point point)
{
    rare.forced[point] = true;
}

bool buggify(enum buggify_point point)
{
    if (rare.forced[point]) return true;
    if (!rare.on || !rare.enabled[point]) return false;
    if (draw(points[point].one_in) > 0) return false;
    rare.count[point]++;
    rare.among[point] += !rare.fired[point];
    rare.fired[point] = true;
    return true;
}

void rare_end(void)
{
    rare.on = false;
    for (uint32_t i = 0; i < BUGGIFY_COUNT; i++) rare.forced[i] = false;
}

int rare_report(bool all)
{
    int missing = 0;
    printf("rare ways in %llu universes: ", (unsigned long long)rare.universes);
    for (uint32_t i = 0; i < BUGGIFY_COUNT; i++) {
        printf("%s %llu in %llu, ", points[i].name,
               (unsigned long long)rare.count[i],
               (unsigned long long)rare.among[i]);
        if (!all || rare.count[i] > 0) continue;
        fprintf(stderr, "never taken: %s\n", points[i].name);
        missing++;
    }
    printf("end\n");
    return missing;
}
