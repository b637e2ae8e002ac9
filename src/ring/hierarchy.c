/* hierarchy.c - see hierarchy.h. */
#include "hierarchy.h"

#include <string.h>

/* The leader for a chunk: the member of a site that adds up its parts of a
 * chunk of another site. The members take turns over the chunks. */
static uint32_t delegate(const uint16_t *site, uint32_t world, uint16_t at,
                         uint32_t chunk)
{
    uint32_t members = 0, before = 0;
    for (uint32_t i = 0; i < world; i++) {
        members += site[i] == at;
        before += i < chunk && site[i] != at;
    }
    uint32_t skip = before % members;
    uint32_t i = 0;
    while (site[i] != at || skip-- > 0) i++;
    return i;
}

void hierarchy_init(struct hierarchy *t, const uint16_t *site, uint32_t world,
                    uint32_t rank)
{
    PCCL_ASSERT(world >= 2 && world <= HIERARCHY_MAX && rank < world);
    memset(t, 0, sizeof *t);
    t->world = world;
    t->rank = rank;
    for (uint32_t c = 0; c < world; c++) {
        for (uint32_t i = 0; i < world; i++) {
            uint32_t up = c;
            if (site[i] != site[c]) up = delegate(site, world, site[i], c);
            t->parent[c][i] = (uint8_t)(up == i ? c : up);
        }
        t->parts_before[c] = t->parts;
        t->parts = (uint16_t)(t->parts + hierarchy_turns(t, c));
    }
}

static bool sends_part(const struct hierarchy *t, uint32_t chunk, uint32_t from,
                       uint32_t to)
{
    return from != chunk && from != to && t->parent[chunk][from] == to;
}

uint32_t hierarchy_chunks(const struct hierarchy *t, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < t->world; c++) count += sends_part(t, c, from, to);
    return count;
}

uint32_t hierarchy_chunk(const struct hierarchy *t, uint32_t from, uint32_t to,
                         uint32_t i)
{
    for (uint32_t c = 0; c < t->world; c++)
        if (sends_part(t, c, from, to) && i-- == 0) return c;
    PCCL_ASSERT(false && "tree_chunk: no such chunk");
    return 0;
}

uint32_t hierarchy_turns(const struct hierarchy *t, uint32_t chunk)
{
    return hierarchy_turn(t, chunk, t->rank);
}

/* For this member itself: the number of turns. */
uint32_t hierarchy_turn(const struct hierarchy *t, uint32_t chunk,
                        uint32_t partner)
{
    uint32_t turn = 0;
    for (uint32_t i = 1; i < t->world; i++) {
        uint32_t rank = (t->rank + i) % t->world;
        turn += sends_part(t, chunk, rank, t->rank);
        if (rank == partner) break;
    }
    return turn;
}
