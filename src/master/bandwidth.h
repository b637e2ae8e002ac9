/* bandwidth.h - what is known about the edges between the peers of a group.
 *
 * A table of bounded rows: per peer the outgoing edges that were measured or
 * found unreachable, with their age; whatever nobody has used yet is
 * estimated. Fills instances for topology.h and says what to probe next. Pure:
 * no I/O, clock, thread or allocation; the caller gives memory and the time.
 * A peer is named by a slot the caller chooses (its index in the member
 * table). One thread. */
#ifndef PCCL_BANDWIDTH_H
#define PCCL_BANDWIDTH_H

#include "topology.h"

enum {
    /* Outgoing edges kept per peer. A world of one more peer than this is
     * stored in full; beyond it the oldest measurement makes room, and an
     * unreachable edge only if the row holds nothing else. */
    BANDWIDTH_ROW_MAX = 64,
    /* Up to this many peers, a plan covers every pair. */
    BANDWIDTH_FULL_MAX = 16,
    BANDWIDTH_ROUNDS_MAX = 64, /* rounds of one plan */
};

struct bandwidth;

/* Bytes of memory for peers_max slots: about 1 KiB a peer. */
size_t bandwidth_size(uint32_t peers_max);

/* Empty store inside memory (aligned for uint64_t), which stays the caller's.
 * 1 <= peers_max <= PEERS_MAX. */
struct bandwidth *bandwidth_init(void *memory, size_t size, uint32_t peers_max);

/* Puts a peer into a free slot. Peers with the same host id share a machine,
 * with the same site id a site; 0: not known, shared with nobody. */
void bandwidth_add(struct bandwidth *store, uint32_t slot, uint64_t host,
                   uint64_t site);

/* Forgets the peer in the slot and every edge from and to it. O(peers_max). */
void bandwidth_remove(struct bandwidth *store, uint32_t slot);

enum bandwidth_source {
    /* The link was the limit: a probe, or a transfer with a full send buffer
     * all the time. Replaces what was known. */
    BANDWIDTH_SATURATED,
    /* The link did at least this: a ring waits for its slowest edge, so its
     * other edges look slow too. Raises what was known, never lowers it, and
     * makes it younger only if it raises it. An edge known this way alone is
     * still worth probing. */
    BANDWIDTH_AT_LEAST,
};

/* rate in bytes/s (0 counts as 1), rtt in ns; rtt 0: not measured, keep what
 * was known. Ends unreachability. Both slots are in use and differ. */
void bandwidth_measured(struct bandwidth *store, uint32_t from, uint32_t to,
                        uint64_t rate, pccl_ns rtt,
                        enum bandwidth_source source, pccl_ns now);

/* The round trip between the two is rtt > 0, ns, and nothing more is known. The
 * way back counts as long unless something is known of it. Leaves rates and
 * their age alone, and an edge that cannot be made. */
void bandwidth_way(struct bandwidth *store, uint32_t from, uint32_t to,
                   pccl_ns rtt, pccl_ns now);

/* Of all pairs of a world, or that they cannot be joined. O(n * n * row). */
bool bandwidth_ways_known(const struct bandwidth *store, const uint16_t *slots,
                          uint32_t n);

/* A connection from `from` to `to` cannot be made. A fact, nobody's fault. */
void bandwidth_unreachable(struct bandwidth *store, uint32_t from, uint32_t to,
                           pccl_ns now);

/* Forgets edges last confirmed before the given time, unreachable ones too, so
 * that a firewall opened since gets another chance. Returns how many. */
uint32_t bandwidth_expire(struct bandwidth *store, pccl_ns before);

/* Forgets that edges from the peer cannot be made. */
void bandwidth_retry(struct bandwidth *store, uint32_t slot);

enum edge_state { EDGE_UNKNOWN, EDGE_MEASURED, EDGE_UNREACHABLE };

struct bandwidth_edge {
    enum edge_state state;
    uint64_t rate; /* bytes/s, rounded as topology_encode; estimated if UNKNOWN,
                      0 if UNREACHABLE */
    uint64_t rtt;  /* ns, likewise */
    pccl_ns since; /* last confirmed; PCCL_NEVER if UNKNOWN */
};

/* Estimate of an unknown edge: the smaller of the best rate `from` is known to
 * send at and the best `to` is known to receive at, and the larger of their
 * least round-trip times, all of it over edges of the same scope (host, site or
 * far apart); with neither known, a fixed value of that scope. If its round
 * trip is known, and at least 3 ms, the edge is one between sites, and not
 * faster than the fastest one measured that is about as long, or longer.
 * Estimates are hopeful. O(1) after the first call since the store changed. */
struct bandwidth_edge bandwidth_look(struct bandwidth *store, uint32_t from,
                                     uint32_t to);

struct bandwidth_view {
    /* Estimates of edges between sites are halved in rate this many times: 0
     * to find edges worth probing, 1 to choose a ring to run on. At 0, an edge
     * known by BANDWIDTH_AT_LEAST alone counts as its estimate, if higher. */
    uint32_t caution;
    /* Low bits of the rate's code to drop, so that noise neither hides the
     * round-trip times nor moves the ring: 8 is steps of 6 to 12 %. 0: none. */
    uint32_t coarse_bits;
};

/* Fills edges[i * n + j] for the peers in slots[0..n-1]. O(n * n). */
void bandwidth_fill(struct bandwidth *store, const uint16_t *slots, uint32_t n,
                    struct bandwidth_view view, struct topology_edge *edges);

struct bandwidth_probe {
    uint16_t a, b;       /* slots */
    bool a_to_b, b_to_a; /* directions to measure, one after the other */
    uint8_t round;       /* probes of one round share no peer */
};

struct bandwidth_wish {
    const uint16_t *slots; /* the world */
    uint32_t n;
    /* Ring found on a hopeful view (caution 0), indexes into slots, or NULL.
     * Its unknown edges, and their way back, come first: solve, probe, solve
     * again until the ring is all measured; no estimate beats it then. */
    const uint16_t *ring;
    bool ring_only; /* ... and nothing else: the solver knows all round trips */
    pccl_ns stale;  /* edges confirmed before this count as unknown */
    uint32_t sweep; /* number of the sweep: large worlds vary the pairs */
};

/* The next probes, in ascending rounds, at most max of them, no pair twice. Up
 * to BANDWIDTH_FULL_MAX peers: every unknown edge, in n-1 rounds (n if n is
 * odd) when there is no ring. Beyond: the ring, and pairs at distances 1,
 * 2, 4,
 * ... in the order of (site, host, slot), so O(log n) rounds and O(n log n)
 * probes. Returns the number of probes, *rounds the number of rounds. */
uint32_t bandwidth_plan(struct bandwidth *store,
                        const struct bandwidth_wish *wish,
                        struct bandwidth_probe *probes, uint32_t max,
                        uint32_t *rounds);

#endif
