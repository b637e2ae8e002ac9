/* network.h - all links of an emulated network, in virtual time. Pure.
 *
 * A packet passes up to four shapers in turn: the sender's uplink (up), the
 * trunk that its side shares, the path between the two nodes (with delay,
 * jitter, loss and firewall), and the receiver's downlink (down). The driver
 * offers packets, runs the network up to the present time and delivers packets
 * that have arrived. Events are handled at their own times, not at the times of
 * the calls: a late driver delays packets but changes no rate. */
#ifndef WAN_NETWORK_H
#define WAN_NETWORK_H

#include "wan_world.h"

struct network;

/* Counters of the path from one node to another since the last mark. Bytes and
 * packets are counted as on the link. */
struct tally {
    uint64_t offered, delivered; /* bytes */
    uint64_t packets;            /* delivered */
    uint64_t dropped;            /* packets dropped by a full queue */
    uint64_t lost;               /* packets lost at random, by `loss` */
    uint64_t stopped; /* packets stopped by a block, a firewall, a middlebox,
                         or for their size */
};

/* The world must outlive the network. NULL: out of memory. */
struct network *network_make(const struct world *world);
void network_destroy(struct network *net);

/* Applies the statement. */
void network_apply(struct network *net, const struct statement *s);

/* Takes over the packet; from, to, flow, syn, wire_size, size and data are set.
 * Times never decrease. */
void network_offer(struct network *net, wan_ns now, struct packet *packet);

/* Handles all events up to that time, including later statements of the
 * world. */
void network_run(struct network *net, wan_ns now);

/* Time of the next event for network_run, or WAN_NEVER. */
wan_ns network_due(const struct network *net);

/* The next packet that has arrived (at `at`), or NULL; the caller frees it. */
struct packet *network_take(struct network *net);

/* Statements applied so far, at least 1. */
uint32_t network_changes(const struct network *net);

/* Number of peers: nodes 1 to this number. */
uint32_t network_peers(const struct network *net);

const struct shaped_link *network_path(const struct network *net, uint32_t from,
                                       uint32_t to);
const struct tally *network_tally(const struct network *net, uint32_t from,
                                  uint32_t to);
void network_clear_tallies(struct network *net);

/* Capacity of a pair in bytes per second over that many connections, while no
 * other pair sends; 0 when nothing passes, UINT64_MAX without a limit. With
 * sharers > 1 that many pairs share the trunk of the pair. */
uint64_t network_capacity(const struct network *net, uint32_t from, uint32_t to,
                          uint32_t connections, uint32_t sharers);

/* The trunk that the pair crosses, or -1. */
int network_trunk(const struct network *net, uint32_t from, uint32_t to);

#endif
