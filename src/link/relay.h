/* relay.h - connections of other members that this one relays, and connections
 * of this member that lead over a relay. Rules N11 to N13 of
 * LINKS.md. Pure. */
#ifndef PCCL_RELAY_H
#define PCCL_RELAY_H

#include "../base/wire.h"
#include "links.h"

struct conn;
struct link;
struct links;

enum {
    RELAY_PIPE = 64 * 1024, /* bytes held for each direction (rule N12c) */
    RELAY_DIALS_MAX = 4,    /* dials that wait, of one end to another */
    RELAYED_MAX = WIRE_RELAYS_MAX,
};

/* One of the two connections that are joined, with the bytes that came from
 * it. */
struct relay_leg {
    struct relay_leg *next;
    struct relay_leg *other; /* NULL: it waits for that */
    struct conn *conn;       /* NULL: closed; its last bytes still go out */
    uint64_t from, to;
    bool listens;
    uint32_t first, count; /* of the bytes, a ring */
    uint8_t bytes[RELAY_PIPE];
};

struct relay {
    uint64_t pairs[RELAYED_MAX][2]; /* of the last proposal */
    uint32_t pair_count;
    struct relay_leg *legs;
    uint32_t pipe;  /* bytes held at most; fewer in tests */
    uint64_t bytes; /* copied so far */
};

/* --- relay.c: for others; this folder only --- */
/* The RELAY of a connection is received. False: close it. */
bool relay_open(struct links *n, struct conn *c);
/* Bytes behind RELAY that are in the receive buffer already. */
bool relay_absorb(struct links *n, struct conn *c);
size_t relay_rx_window(struct links *n, struct conn *c, uint8_t **to);
bool relay_rx(struct links *n, struct conn *c, size_t size);
uint32_t relay_tx_window(const struct conn *c, struct conn_part parts[2]);
void relay_tx(struct links *n, struct conn *c, size_t size);
void relay_closed(struct links *n, struct conn *c);
/* It has waited for the other end for long enough. */
bool relay_is_late(const struct links *n, const struct conn *c);
void relay_free(struct links *n);

/* --- way.c: for this member; this folder only --- */
/* The connection to the relay is up: says what it is for. */
void way_begin(struct links *n, struct conn *c);
/* The HELLO of this member should have come over a relay. */
bool way_is_wrong(struct links *n, const struct conn *c, uint64_t from);
/* A dial has come over this connection: the next one is to listen. */
void way_served(struct links *n, struct conn *c);
void way_tick(struct links *n, struct link *l);
/* The member is not reached over a relay any more. */
void way_leave(struct links *n, struct link *l);

#endif
