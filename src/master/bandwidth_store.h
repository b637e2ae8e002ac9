/* bandwidth_store.h - inside of the bandwidth store. */
#ifndef PCCL_BANDWIDTH_STORE_H
#define PCCL_BANDWIDTH_STORE_H

#include "bandwidth.h"

enum scope { SCOPE_HOST, SCOPE_SITE, SCOPE_FAR, SCOPE_COUNT };

enum {
    WAY_CLASS_BITS = 9, /* of a code that fall into one class: 4 an octave */
    WAY_CLASSES = (UINT16_MAX >> WAY_CLASS_BITS) + 1,
};

struct bandwidth_entry {
    uint16_t to;
    uint16_t rate;  /* code; 0: unreachable */
    uint16_t delay; /* code; 0: not measured */
    bool at_least;  /* the rate is a lower bound */
    bool way;       /* rate is 0 as it is not known; the delay is */
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
    uint64_t busy;  /* plan: rounds in which the peer has a probe */
    uint16_t next;  /* plan: slot after it on the wished ring, or its own */
    uint16_t index; /* fill: place in the world */
    uint16_t count; /* entries in the row */
    struct bandwidth_best out[SCOPE_COUNT], in[SCOPE_COUNT];
    struct bandwidth_entry row[BANDWIDTH_ROW_MAX];
};

struct bandwidth {
    uint32_t peers_max;
    bool changed; /* since what follows, out[] and in[] were computed */
    /* Best rate measured of any edge as long as this class of delays or longer:
     * a way is seldom faster than all that are at least as long. */
    uint16_t reach[WAY_CLASSES];
    uint16_t *sorted; /* plan: the world by site and host */
    struct bandwidth_peer *peers;
};

/* Rate and delay codes of an edge nobody measured, of the given delay if that
 * is known (else 0). The bests are fresh. */
struct topology_edge bandwidth_guess(const struct bandwidth *store,
                                     uint32_t from, uint32_t to,
                                     uint16_t delay);
const struct bandwidth_entry *bandwidth_find(const struct bandwidth *store,
                                             uint32_t from, uint32_t to);
void bandwidth_refresh(struct bandwidth *store);

#endif
