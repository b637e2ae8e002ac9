/* fabric.h - all links of an emulated network, in virtual time. Pure.
 *
 * A packet goes through up to four pipes: what its sender may send (up), what
 * the two sides share (trunk), what the two nodes have between them (path,
 * with its delay, jitter, loss and walls), what its receiver may receive
 * (down). The driver offers packets as they come, runs the fabric up to the
 * present and delivers what has come out. Events are handled at their own
 * times, not at the times of the calls: a driver that comes late delays
 * packets, but changes no rate. */
#ifndef WAN_FABRIC_H
#define WAN_FABRIC_H

#include "wan_world.h"

struct fabric;

/* What happened on the way from one node to another since the last mark;
 * bytes and packets as the links count them. */
struct tally {
    uint64_t offered, delivered; /* bytes */
    uint64_t packets;            /* delivered */
    uint64_t dropped;            /* packets a queue had no room for */
    uint64_t lost;               /* ... that the path's loss took */
    uint64_t stopped;            /* ... at a wall, or blocked */
};

/* The world is borrowed. NULL: out of memory. */
struct fabric *fabric_make(const struct world *world);
void fabric_destroy(struct fabric *f);

/* Brings the statement into force. */
void fabric_apply(struct fabric *f, const struct statement *s);

/* Takes the packet, whose from, to, flow, call, wire, size and data are set.
 * Times never go back. */
void fabric_offer(struct fabric *f, wan_ns now, struct packet *packet);

/* Handles everything up to that time, later statements of the world too. */
void fabric_run(struct fabric *f, wan_ns now);

/* When fabric_run has something to do again; WAN_NEVER. */
wan_ns fabric_due(const struct fabric *f);

/* The next packet that has arrived, or NULL; the caller frees it. `at` is when
 * it arrived. */
struct packet *fabric_take(struct fabric *f);

/* Statements brought into force so far, at least 1. */
uint32_t fabric_changes(const struct fabric *f);

/* Peers of the world: nodes 1 to this. */
uint32_t fabric_peers(const struct fabric *f);

const struct wire *fabric_path(const struct fabric *f, uint32_t from,
                               uint32_t to);
const struct tally *fabric_tally(const struct fabric *f, uint32_t from,
                                 uint32_t to);
void fabric_clear_tallies(struct fabric *f);

/* Bytes per second that one pair can get when nobody else sends, over that
 * many connections; 0 when nothing passes, UINT64_MAX without a limit. With
 * sharers > 1 the trunk on the way is shared by that many pairs. */
uint64_t fabric_capacity(const struct fabric *f, uint32_t from, uint32_t to,
                         uint32_t connections, uint32_t sharers);

/* The trunk on the way, or -1. */
int fabric_trunk(const struct fabric *f, uint32_t from, uint32_t to);

#endif
