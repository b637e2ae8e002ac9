/* bound.h - how fast a ring can be over an emulated network. Pure. */
#ifndef WAN_BOUND_H
#define WAN_BOUND_H

#include "fabric.h"

/* A cycle through all peers: ring[i] sends to ring[i + 1]. */
struct ring {
    uint32_t count; /* 0: there is none */
    uint8_t node[NODES_MAX];
};

enum { BOUND_EXACT_MAX = 20 }; /* peers that bound_best can do */

/* The slowest link of the ring, bytes per second, when all of them are in use
 * over that many connections each: links that share a trunk share its rate. */
uint64_t bound_of(const struct fabric *f, const struct ring *ring,
                  uint32_t connections);

/* The ring whose slowest link is fastest. Exact without trunks, and with one
 * trunk each way; with more of them the fewest crossings in all are sought. At
 * most BOUND_EXACT_MAX peers. count 0: no ring through links that pass
 * anything. Takes a tenth of a second per rate that occurs for 18 peers. */
struct ring bound_best(const struct fabric *f, uint32_t connections);

/* Who sent most of its bytes to whom, if that is a cycle; else count 0. */
struct ring bound_seen(const struct fabric *f);

#endif
