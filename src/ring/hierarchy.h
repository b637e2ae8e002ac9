/* hierarchy.h - which way the parts of a direct all-reduce take where members
 * are at several sites (rule D15): pure arithmetic.
 *
 * A chunk has an owner, and at every other site one member that adds up what
 * its site has for it. Parts go up from each member to that one, or to an owner
 * at its own site, and from there to the owner; sums go down the same way. Way
 * between sites is dear: two sites of n members send each other one vector,
 * where every pair of members would send n of them, and a ring two. */
#ifndef PCCL_TREE_H
#define PCCL_TREE_H

#include "../base/base.h"

struct hierarchy {
    uint32_t world, rank;
    /* [chunk][member]: whom it sends its part, and has the sum from; of the
     * owner itself, whose rank is the chunk's number. */
    uint8_t parent[HIERARCHY_MAX][HIERARCHY_MAX];
    /* Parts that this member receives of the chunks before; of all of them. */
    uint16_t parts_before[HIERARCHY_MAX], parts;
};

/* site[rank] names the site of a member; 2 <= world <= HIERARCHY_MAX. */
void hierarchy_init(struct hierarchy *t, const uint16_t *site, uint32_t world,
                    uint32_t rank);

/* Chunks of which `from` sends its part to `to`, and the i-th of them. */
uint32_t hierarchy_chunks(const struct hierarchy *t, uint32_t from,
                          uint32_t to);
uint32_t hierarchy_chunk(const struct hierarchy *t, uint32_t from, uint32_t to,
                         uint32_t i);

/* Partners whose parts this member adds to its own; the turn of one of them,
 * from 1 on, in the order of ranks from this member's on; and the partner whose
 * turn it is. */
uint32_t hierarchy_turns(const struct hierarchy *t, uint32_t chunk);
uint32_t hierarchy_turn(const struct hierarchy *t, uint32_t chunk,
                        uint32_t partner);
uint32_t hierarchy_partner(const struct hierarchy *t, uint32_t chunk,
                           uint32_t turn);

#endif
