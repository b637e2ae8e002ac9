/* bandwidth_store.h - internal header of bandwidth.c and bandwidth_plan.c. */
#ifndef PCCL_BANDWIDTH_STORE_H
#define PCCL_BANDWIDTH_STORE_H

#include "bandwidth.h"

enum scope { SCOPE_HOST, SCOPE_SITE, SCOPE_FAR, SCOPE_COUNT };

enum {
    RTT_CLASS_BITS =
        9, /* low bits of a code within one class: 4 classes per octave */
    RTT_CLASSES = (UINT16_MAX >> RTT_CLASS_BITS) + 1,
};

struct bandwidth_entry {
    uint16_t to;
    uint16_t rate;  /* code; 0: unreachable */
    uint16_t delay; /* code; 0: not measured */
    bool at_least;  /* the rate is a lower bound */
    bool rtt_only;  /* only the delay is known; rate is 0 */
    pccl_ns since;
};

/* Best of a peer's edges in one direction and scope. */
struct bandwidth_best {
    uint16_t rate;  /* code; 0: none known, or only lower bounds */
    uint16_t delay; /* least, code; 0: none known */
};

struct bandwidth_peer {
    bool used;
    uint64_t host, site;
    uint64_t busy; /* plan: bit set of rounds in which the peer has a probe */
    uint16_t
        next; /* plan: slot of its successor on the wished ring, or its own */
    uint16_t index; /* fill: place in the world */
    uint16_t count; /* entries in use */
    struct bandwidth_best out[SCOPE_COUNT], in[SCOPE_COUNT];
    struct bandwidth_entry row[BANDWIDTH_ROW_MAX];
};

struct bandwidth {
    uint32_t peers_max;
    bool changed; /* out[] and in[] are out of date */
    /* Best measured rate of any edge in this class of delays or a longer one:
     * an edge is rarely faster than all edges of at least its length. */
    uint16_t reach[RTT_CLASSES];
    uint16_t *sorted; /* plan: slots of the world, sorted by site and host */
    struct bandwidth_peer *peers;
};

/* Rate and delay codes of an unmeasured edge, with the given delay if it is
 * known (not 0). The caller has updated out[] and in[]. */
struct topology_edge bandwidth_guess(const struct bandwidth *store,
                                     uint32_t from, uint32_t to,
                                     uint16_t delay);
const struct bandwidth_entry *bandwidth_find(const struct bandwidth *store,
                                             uint32_t from, uint32_t to);
void bandwidth_refresh(struct bandwidth *store);

#endif
