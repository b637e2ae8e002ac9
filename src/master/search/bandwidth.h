/* bandwidth.h - bandwidth and round-trip time of the links of a group.
 *
 * A table of bounded rows. Each peer has a row of outgoing edges (one edge is
 * one direction of a link) that were measured or found unreachable, with their
 * age. Other edges are estimated. The store fills instances for topology.h and
 * selects the next links to probe. Pure: no I/O, clock, thread or allocation;
 * the caller provides memory and time. The caller names a peer by a slot (its
 * index in the member table). One thread. */
#ifndef PCCL_BANDWIDTH_H
#define PCCL_BANDWIDTH_H

#include "topology.h"

enum {
    /* Outgoing edges stored per peer. A world of up to one peer more is stored
     * in full. In larger worlds a new edge replaces the oldest measurement, or
     * an unreachable edge if the row has no measurement. */
    BANDWIDTH_ROW_MAX = 64,
    /* A plan covers every pair up to this many peers. */
    BANDWIDTH_FULL_MAX = 16,
};

struct bandwidth;

/* Bytes of memory for peers_max slots: about 1 KiB a peer. */
size_t bandwidth_size(uint32_t peers_max);

/* Makes an empty store inside memory (aligned for uint64_t), which the caller
 * owns. 1 <= peers_max <= PEERS_MAX. */
struct bandwidth *bandwidth_init(void *memory, size_t size, uint32_t peers_max);

/* Puts a peer into a free slot. Peers with the same host id share a machine;
 * peers with the same site id share a site. 0: unknown, shared with no other
 * peer. */
void bandwidth_add(struct bandwidth *store, uint32_t slot, uint64_t host,
                   uint64_t site);

/* Forgets the peer in the slot and every edge from and to it. O(peers_max). */
void bandwidth_remove(struct bandwidth *store, uint32_t slot);

enum bandwidth_source {
    /* The link limited the transfer: a probe, or a transfer whose send buffer
     * was always full. Replaces the stored rate. */
    BANDWIDTH_SATURATED,
    /* The link carried at least this rate: in a ring each link waits for the
     * slowest. Raises the stored rate, never lowers it, and renews its age only
     * when it raises it. An edge with only a lower bound is still worth
     * probing. */
    BANDWIDTH_AT_LEAST,
};

/* rate in bytes/s (0 counts as 1), rtt in ns; rtt 0: not measured, the stored
 * one stays. Marks the edge as reachable. Both slots are in use and differ. */
void bandwidth_measured(struct bandwidth *store, uint32_t from, uint32_t to,
                        uint64_t rate, pccl_ns rtt,
                        enum bandwidth_source source, pccl_ns now);

/* Records a round trip rtt > 0 (ns) without a rate. It also applies to the
 * reverse edge, unless that has a measurement. Rates, their age and unreachable
 * edges do not change. */
void bandwidth_rtt(struct bandwidth *store, uint32_t from, uint32_t to,
                   pccl_ns rtt, pccl_ns now);

/* Whether the round trip of every pair of a world is known, or the pair is
 * unreachable. O(n * n * row). */
bool bandwidth_rtts_known(const struct bandwidth *store, const uint16_t *slots,
                          uint32_t n);

/* Records that no connection from `from` to `to` can be made. */
void bandwidth_unreachable(struct bandwidth *store, uint32_t from, uint32_t to,
                           pccl_ns now);

/* Removes the unreachable edges of a peer. */
void bandwidth_retry(struct bandwidth *store, uint32_t slot);

enum edge_state { EDGE_UNKNOWN, EDGE_MEASURED, EDGE_UNREACHABLE };

struct bandwidth_edge {
    enum edge_state state;
    uint64_t rate; /* bytes/s, rounded as by topology_encode; estimated if
                      UNKNOWN, 0 if UNREACHABLE */
    uint64_t rtt;  /* ns, likewise */
    pccl_ns since; /* last confirmed; PCCL_NEVER if UNKNOWN */
};

/* Estimate of an unknown edge. Rate: the smaller of the best known sending rate
 * of `from` and the best known receiving rate of `to`. Round trip: the larger
 * of their least round-trip times. Both over edges of the same scope (host,
 * site or remote); with neither known, a fixed value per scope. An edge with a
 * known round trip of at least 3 ms counts as one between sites; it is not
 * faster than the fastest measured edge of about the same or a larger round
 * trip. Estimates are optimistic. O(1) after the first call since the store
 * changed. */
struct bandwidth_edge bandwidth_look(struct bandwidth *store, uint32_t from,
                                     uint32_t to);

struct bandwidth_view {
    /* The rates of estimated edges between sites are halved this many times: 0
     * to find edges worth probing, 1 to choose a ring for use. At 0, an edge
     * known by BANDWIDTH_AT_LEAST alone counts as its estimate if that is
     * higher. */
    uint32_t caution;
    /* Number of low bits of the rate's code to drop, so that noise neither
     * hides round-trip times nor changes the ring: 8 is steps of 6 to 12 %. 0:
     * none. */
    uint32_t coarse_bits;
};

/* Fills edges[i * n + j] for the peers in slots[0..n-1]. O(n * n). */
void bandwidth_fill(struct bandwidth *store, const uint16_t *slots, uint32_t n,
                    struct bandwidth_view view, struct topology_edge *edges);

struct bandwidth_probe {
    uint16_t a, b;       /* slots */
    bool a_to_b, b_to_a; /* directions to measure, in this order */
    uint8_t round;       /* probes of one round share no peer */
};

struct bandwidth_wish {
    const uint16_t *slots; /* the world */
    uint32_t n;
    /* Ring found with optimistic estimates (caution 0), as indexes into slots,
     * or NULL. Its unknown edges and their reverse edges come first. The caller
     * solves, probes and solves again until all edges of the ring are measured;
     * then no estimate is better. */
    const uint16_t *ring;
    bool ring_only; /* only that ring: all round trips are known */
    pccl_ns stale;  /* edges last confirmed before this count as unknown */
    uint32_t sweep; /* number of the sweep: large worlds vary the pairs */
};

/* The next probes in ascending rounds: at most max, no pair twice. Up to
 * BANDWIDTH_FULL_MAX peers: every unknown edge, in n-1 rounds (n if n is odd)
 * when there is no ring. Beyond: the ring, and pairs at distances 1, 2, 4, ...
 * in the order of (site, host, slot), so O(log n) rounds and O(n log n) probes.
 * Returns the number of probes and stores the number of rounds in *rounds. */
uint32_t bandwidth_plan(struct bandwidth *store,
                        const struct bandwidth_wish *wish,
                        struct bandwidth_probe *probes, uint32_t max,
                        uint32_t *rounds);

#endif
