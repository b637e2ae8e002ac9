/* bound.h - how fast a ring can be over an emulated network. Pure. */
#ifndef WAN_BOUND_H
#define WAN_BOUND_H

#include "network.h"

/* A cycle through all peers: ring[i] sends to ring[i + 1]. */
struct ring {
    uint32_t count; /* 0: there is none */
    uint8_t node[NODES_MAX];
};

enum { BOUND_EXACT_MAX = 20 }; /* largest number of peers for bound_best */

/* Rate of the slowest link of the ring in bytes per second. All links are in
 * use, each over that many connections; links that share a trunk share its
 * rate. */
uint64_t bound_of(const struct network *net, const struct ring *ring,
                  uint32_t connections);

/* The ring whose slowest link is fastest. The result is exact without trunks
 * and with one trunk each way; with more trunks the search minimizes the number
 * of crossings in all. At most BOUND_EXACT_MAX peers. count 0: no ring over
 * links that pass anything. For 18 peers the search takes a tenth of a second
 * per distinct rate. */
struct ring bound_best(const struct network *net, uint32_t connections);

/* The ring along which each peer sent most of its bytes; count 0 if those links
 * are no cycle. */
struct ring bound_seen(const struct network *net);

#endif
