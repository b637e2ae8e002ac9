/* hierarchy.h - the path of each part of a direct all-reduce between members at
 * several sites (rule D15). Pure arithmetic.
 *
 * A chunk has an owner. At every other site one member, the leader of the
 * chunk, adds up the parts of its site. Each member sends its part to that
 * leader, or to the owner if they share a site. The leader sends the sum to the
 * owner. Results take the same path back. Bandwidth between sites is scarce:
 * here two sites of n members send each other one vector. All pairs would send
 * n of them, and a ring two. */
#ifndef PCCL_HIERARCHY_H
#define PCCL_HIERARCHY_H

#include "../base/base.h"

struct hierarchy {
    uint32_t world, rank;
    /* [chunk][member]: the member that it sends its part to and receives the
     * sum from. An owner, whose rank is the chunk's number, has its own
     * rank. */
    uint8_t parent[HIERARCHY_MAX][HIERARCHY_MAX];
    /* Parts that this member receives of the chunks before each one; of all
     * chunks. */
    uint16_t parts_before[HIERARCHY_MAX], parts;
};

/* site[rank] names the site of a member; 2 <= world <= HIERARCHY_MAX. */
void hierarchy_init(struct hierarchy *t, const uint16_t *site, uint32_t world,
                    uint32_t rank);

/* Number of chunks of which `from` sends its part to `to`; the i-th of them. */
uint32_t hierarchy_chunks(const struct hierarchy *t, uint32_t from,
                          uint32_t to);
uint32_t hierarchy_chunk(const struct hierarchy *t, uint32_t from, uint32_t to,
                         uint32_t i);

/* Number of partners whose parts this member adds to its own; the turn of a
 * partner, from 1 on, in the order of ranks after this member's. */
uint32_t hierarchy_turns(const struct hierarchy *t, uint32_t chunk);
uint32_t hierarchy_turn(const struct hierarchy *t, uint32_t chunk,
                        uint32_t partner);

#endif
