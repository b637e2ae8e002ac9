/* layouts.h - the places of members, which decide how they do a collective: on
 * one host with or without shared memory, with regions of it, or on several
 * hosts. */
#ifndef CORE_LAYOUTS_H
#define CORE_LAYOUTS_H

#include "engines.h"

#include "../../../src/ring/pieces.h"

/* Of hosts, as wire_member has them. */
enum layout { SHARED_MEMORY, REGIONS, SOCKETS, SEVERAL, LAYOUTS };

static uint8_t *regions[WORLD];

static uint64_t host_of(enum layout layout, uint32_t i)
{
    if (layout == SEVERAL) return 2 + 2 * (i / 2);
    return layout == SOCKETS ? 1 : 2;
}

static void begin(enum layout layout, uint32_t members_count)
{
    void *none = NULL;
    world = members_count;
    assert_int_equal(setup(&none), 0);
    for (uint32_t i = 0; i < world; i++) {
        members[i].host = engines[i]->links.host = host_of(layout, i);
        engines[i]->piece = 8192;
    }
    install_all(2);
    for (uint32_t a = 0; layout == REGIONS && a < world; a++) {
        memset(regions[a], 0, SINGLE_COPY_HEAD);
        engines[a]->links.region = regions[a];
        for (uint32_t b = 0; b < world; b++) {
            if (a == b) continue;
            engines[a]->links.conns[b]->region.taken = true;
            engines[a]->links.conns[b]->region.memory = regions[b];
        }
    }
}

static void end(void)
{
    void *none = NULL;
    for (uint32_t i = 0; i < WORLD; i++) members[i].host = 0;
    assert_int_equal(teardown(&none), 0);
}

/* Setup and teardown of all tests of a file. */
static int make_regions(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        regions[i] = aligned_alloc(4096, REGION_SIZE);
        if (!regions[i]) return 1;
    }
    return 0;
}

static int free_regions(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) free(regions[i]);
    return 0;
}

#endif
