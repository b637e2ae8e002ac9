/* links.h - the face of this folder: the functions for the owner of a member's
 * links and for its driver. The structs are in link.h and conn.h, for the
 * clients of the links.
 *
 * Pure: the driver asks a connection where the next bytes go or come from,
 * moves them, and reports their number. */
#ifndef PCCL_LINKS_H
#define PCCL_LINKS_H

#include "../base/base.h"
#include "../base/wire.h"
#include "driver.h"

struct conn;
struct links;

enum {
    CONNS_MAX = 16384,        /* connections of one member */
    NEAR_DIALS_MAX = 16,      /* dials to members of the host at a time (R3l) */
    LINK_STRANGERS_MAX = 128, /* of them, before their HELLO */
    /* Bytes of a region: a head of 4 KiB, 8 slots of 2 buffers of 1 MiB, and a
     * board (rule L11). */
    REGION_HEAD = 4096,
    REGION_BOARD_AT = REGION_HEAD + 8 * 2 * 1024 * 1024,
    REGION_SIZE = REGION_BOARD_AT + BOARD_SIZE,
};

/* A link with at least this round trip has several connections: a single one
 * needs many round trips to fill it, and providers limit a connection to a rate
 * that falls with the distance. Too many compete for the queues. */
#define RTT_HIGH (3 * PCCL_MS)
#define RTT_VERY_HIGH (30 * PCCL_MS)

/* ----------------------------------------------------------- for the owner */

/* Links (rule R3). */
void links_want(struct links *n, const struct wire_member *m,
                uint32_t connections);
void links_unwant(struct links *n);
/* Links that could not be made may be tried again. */
void links_retry(struct links *n);
/* Rules N10, N11: the pairs of a proposal that are linked over a relay. Those
 * of this member change their way, those that it relays may come. */
struct relay_way {
    uint64_t a, b;
    uint64_t relay; /* a member, or 0: the master */
    struct wire_member member;
};
void links_set_ways(struct links *n, const struct relay_way *ways,
                    uint32_t count);
/* The view in force has these ways: relayed connections of others end. */
void links_prune(struct links *n);
/* Connections that this member relays, joined ones; and bytes so far. */
uint32_t links_relays(const struct links *n, uint64_t *bytes);
/* A message of the master may explain connections that wait for it. */
void links_resume(struct links *n);
enum link_status { LINK_WAITS, LINK_OPEN, LINK_FAILED };
enum link_status links_status(struct links *n, uint64_t id);
void links_drop(struct links *n, uint64_t id);
/* Closes the connections that probes opened and nobody wants now. */
void links_close_unwanted(struct links *n);
void links_close_all(struct links *n);

/* HELLO and WELCOME carry these facts about this member. */
void links_set_host(struct links *n, uint64_t host);
void links_set_self(struct links *n, uint64_t self, const struct wire_key *key);
void links_set_deadline(struct links *n, pccl_ns deadline);
/* The time at which the owner begins to call. */
void links_begin(struct links *n, pccl_ns now);
/* Time in which the owner did not call counts against no other member. */
void links_set_now(struct links *n, pccl_ns now);
/* The master does not hear these members either: their links have a new
 * deadline. */
void links_excuse(struct links *n, const uint64_t *ids, uint32_t count);
/* The members whose links have open connections that are silent, with the ms
 * of their silence: pairs; returns the number of entries, at most `most`. */
uint32_t links_quiet(const struct links *n, uint64_t *pairs, uint32_t most);
uint64_t links_host(const struct links *n);
pccl_ns links_deadline(const struct links *n);
pccl_ns links_now(const struct links *n);
/* Time in which the owner should have called and did not, in all. */
pccl_ns links_late(const struct links *n);
/* Another end has tried to link, and given up, before this one could (R4f);
 * since the last call. */
bool links_missed(struct links *n);
uint32_t links_pool_size(const struct links *n);
/* Between FLUSH and INSTALL. */
bool links_is_frozen(const struct links *n);
/* The link was made, carried no data, and fell silent (rule R4e). */
bool links_was_useless(struct links *n, uint64_t id);
/* A proposal needs the link. */
bool links_is_wanted(struct links *n, uint64_t id);
/* As in struct driver; 0: unknown. */
uint64_t links_round_trip(const struct links *n, uint64_t peer);
bool links_has_round_trips(const struct links *n);
/* Reports of probes; without them no probe is taken. */
void links_on_probed(struct links *n,
                     void (*report)(void *user, uint32_t step,
                                    const struct wire_edge *edge),
                     void *user);

/* ---------------------------------------------------------- for the driver */

/* A number comes from the driver (its table index). */
bool conn_accepted(struct links *n, uint32_t number);
void conn_dialed(struct links *n, uint32_t number, bool success);
/* The time that the other end took to answer: after conn_accepted, or before
 * conn_dialed. */
void conn_measured(struct links *n, uint32_t number, pccl_ns rtt);
/* The connection is part of a ring that may cross a high RTT, even if its own
 * is low: data that wait in its queues delay all others. */
bool conn_is_long(const struct links *n, uint32_t number);
/* Connections that carry data of one link, with this one; 1: it has none. */
uint32_t conn_sisters(const struct links *n, uint32_t number);
void conn_closed(struct links *n, uint32_t number);
/* The address for received bytes; 0: do not read now. */
size_t conn_rx_window(struct links *n, uint32_t number, uint8_t **to);
/* False: the bytes break the protocol; the connection was closed. */
bool conn_rx(struct links *n, uint32_t number, size_t size);
/* Takes bytes from where they lie, as many as can be used now. It takes fewer
 * when the connection is parked or closed, or when a client defers the next
 * frame. */
size_t conn_rx_from(struct links *n, uint32_t number, const uint8_t *bytes,
                    size_t size);
/* Everything that had arrived has been read. */
void conn_rx_dry(struct links *n, uint32_t number);
/* The next bytes to send, at most two parts; 0: none. Stable until conn_tx. */
struct conn_part {
    const uint8_t *from;
    size_t size;
};
uint32_t conn_tx_window(struct links *n, uint32_t number,
                        struct conn_part parts[2]);
void conn_tx(struct links *n, uint32_t number, size_t size);
bool conn_may_send(const struct links *n, uint32_t number);
void conn_clear_dirty(struct links *n, uint32_t number);

/* The state of a connection; all false and 0 for a number without one. */
bool conn_is_free(const struct links *n, uint32_t number);
bool conn_is_open(const struct links *n, uint32_t number);
bool conn_is_parked(const struct links *n, uint32_t number);
bool conn_is_p2p(const struct links *n, uint32_t number);
bool conn_is_of_guest(const struct links *n, uint32_t number);
/* It is open and carries what operations send. */
bool conn_is_of_link(const struct links *n, uint32_t number);
bool conn_is_relay(const struct links *n, uint32_t number);
/* Nothing more is read now: the program has many messages to take. */
bool conn_is_full(const struct links *n, uint32_t number);
/* The member at the other end of an open connection of a link; or 0. */
uint64_t conn_member(const struct links *n, uint32_t number);
/* The shared memory that carries the connection, or NULL; whether the next
 * bytes go through it: the own HELLO does not. */
struct channel *conn_channel(const struct links *n, uint32_t number);
bool conn_sends_shared(const struct links *n, uint32_t number);

#endif
