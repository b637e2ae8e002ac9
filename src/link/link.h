/* link.h - what two members exchange bytes with: a link is a set of connections
 * to one other member, a connection one byte stream (TCP, or shared memory
 * within a host).
 *
 * Pure: the driver asks a connection where the next bytes go or come from,
 * moves them, and reports how many. Rules R3, R6, L1 to L8 of
 * master/PROTOCOL.md. */
#ifndef PCCL_LINK_H
#define PCCL_LINK_H

#include "../base/base.h"
#include "../base/pool.h"
#include "../base/wire.h"
#include "channel.h"
#include "frame.h"
#include "probe.h"
#include "single_copy.h"

enum {
    CONNS_MAX = 16384,             /* connections of one communicator */
    STAGE_SIZE = 8192,             /* received bytes that are not parsed yet */
    POOL_HIGH_RTT = 8,             /* connections over a long way */
    POOL_VERY_HIGH_RTT = 16,       /* ... over an ocean */
    EAGER_MAX = 64 * 1024,         /* bytes sent before READY, a transfer */
    EAGER_LINK_MAX = 1024 * 1024,  /* ... and a link */
    UNEXPECTED_MAX = 16 * OPS_MAX, /* early frames kept per link */
    CONTROL_MAX = 8 * OPS_MAX,     /* control frames queued per link */
};

#define NO_CONN UINT32_MAX

/* Round trips from which on a link has several connections: one alone needs
 * many of them to fill it, and providers hold connections to a rate that falls
 * with the distance. Too many fight each other for the queues. */
#define RTT_HIGH (3 * PCCL_MS)
#define RTT_VERY_HIGH (30 * PCCL_MS)

struct engine;
struct op;
struct endpoint;
struct mlink;
struct message_block;
struct bulk;
struct state_stage;

enum conn_state {
    CONN_FREE,
    CONN_DIALED,   /* we called; our HELLO is out or on its way */
    CONN_ACCEPTED, /* somebody called; its HELLO has not come */
    CONN_OPEN,
};

enum conn_sink {
    SINK_NONE,    /* between frames */
    SINK_DISCARD, /* nobody wants the body */
    SINK_HELLO,
    SINK_UNEXPECTED, /* kept until the operation is launched here */
    SINK_OP,         /* straight to the operation */
    SINK_MESSAGE,
    SINK_STATE, /* straight to a tensor of the shared state */
};

struct conn {
    enum conn_state state;
    struct link *link;  /* NULL: ACCEPTED, or for messages */
    struct mlink *peer; /* of a connection for messages */
    pccl_ns last_recv, last_sent;
    struct channel *channel; /* what follows the HELLOs goes through it */
    struct channel *offered; /* in our HELLO; the answer has not come */
    uint32_t generation;     /* of the link, when it was made */
    bool greets;             /* our HELLO is not all out */

    /* receiving */
    uint8_t stage[STAGE_SIZE];
    uint32_t staged, parsed; /* bytes in the stage, of them consumed */
    struct frame rx;
    enum conn_sink sink;
    bool parked;   /* a frame of an epoch to come: waits for INSTALL */
    bool stranger; /* held: a HELLO that may be ahead (rules R3, P2P-2) */
    bool ping;     /* one is due on this very connection */
    uint8_t *rx_to;
    uint32_t rx_left;
    struct op *rx_op;
    struct endpoint *rx_ep;
    struct unexpected *rx_unexpected;
    bool rx_numbered; /* the frame counts in the sequence of messages */
    struct message_block *rx_block;
    struct bulk *rx_bulk;
    bool rx_reduces;  /* the body is reduced from where it lies */
    bool rx_streams;  /* ... or goes past the caches */
    uint8_t *scratch; /* one segment, taken when first needed */
    uint8_t hello[FRAME_HELLO_SIZE];

    /* sending */
    uint8_t tx_head[FRAME_SIZE + FRAME_HELLO_SIZE];
    uint32_t tx_head_size, tx_head_done;
    const uint8_t *tx_from; /* NULL with tx_left > 0: filler */
    uint32_t tx_left;
    struct op *tx_op;
    struct endpoint *tx_ep;
    bool tx_item;                 /* the frame is the next item of `peer` */
    bool tx_state;                /* tx_from is shared state... */
    struct state_stage *tx_stage; /* ... of a device, through here */
    struct conn_region region;
    /* Since the last DATA began: a send was cut short; nothing was to send. */
    bool tx_cut, tx_starved;
};

struct unexpected {
    struct unexpected *next;
    struct frame frame;
    bool complete;
    uint8_t body[];
};

/* One other peer. */
struct link {
    struct link *next;
    uint64_t id;
    uint64_t host;
    struct wire_addr addr;
    bool known;    /* addr is valid: the peer has been in a proposal */
    bool wanted;   /* a proposal needs it (rule R3) */
    bool reversed; /* the one with the higher id calls (rule R3) */
    uint32_t want; /* connections to have, once something needs the link */
    uint32_t open, dialing, failed;
    uint32_t generation; /* the caller has closed all of lower ones (R3) */
    pccl_ns wanted_at;
    pccl_ns rtt; /* shortest seen by its callers, 0: unknown */
    struct unexpected *unexpected, **unexpected_end;
    uint32_t unexpected_count;
    size_t unexpected_bytes;
    size_t eager_bytes; /* sent, and not known to be launched over there */
    struct link_speed speed;
    struct frame *control; /* ring of CONTROL_MAX, taken when first needed */
    uint32_t control_first, control_count;
};

/* All connections and links of one member, and what they need to know. */
struct links {
    struct conn *conns[CONNS_MAX];
    uint32_t conn_end;
    struct link *table[1024]; /* hash by id */
    uint32_t generation;      /* of links, the highest */
    uint64_t *dirty; /* bit set over conns that may have something to send */
    struct pool pool;
    pccl_ns now, deadline;
    uint64_t self, host;
    struct wire_key key;
    uint32_t pool_size; /* connections to a ring neighbor, at least */
    bool pool_auto;     /* more of them to one with a high RTT (rule R3) */
    bool high_rtt;      /* somebody is RTT_HIGH away: a ring is a long one */
    bool frozen;        /* between FLUSH and INSTALL */
    uint32_t epoch;
    /* The view in force; borrowed from the owner. */
    const struct wire_member *members;
    uint32_t world;
    uint8_t trash[64 * 1024]; /* where unwanted bodies go */
};

/* Connections: conn.c. A number comes from the driver (its table index). */
bool engine_accepted(struct engine *e, uint32_t conn);
void engine_dialed(struct engine *e, uint32_t conn, bool success);
/* How long the other end took to answer: after engine_accepted, or before
 * engine_dialed. */
void engine_measured(struct engine *e, uint32_t conn, pccl_ns rtt);
/* Part of a ring that may lead far away, even if it is short itself: what waits
 * in its queues keeps all the others waiting. */
bool engine_is_long(const struct engine *e, uint32_t conn);
void engine_closed(struct engine *e, uint32_t conn);
/* Where received bytes go; 0: do not read now. */
size_t engine_rx_window(struct engine *e, uint32_t conn, uint8_t **to);
/* False: the bytes break the protocol; the connection was closed. */
bool engine_rx(struct engine *e, uint32_t conn, size_t size);
/* Takes bytes from where they lie, as many as can be used now; fewer when the
 * connection is held, or was closed, or (`defers`) what follows is of an
 * operation that has yet to be launched here. */
size_t engine_rx_from(struct engine *e, uint32_t conn, const uint8_t *bytes,
                      size_t size);
/* What to send next, at most two parts; 0: nothing. Stable until engine_tx. */
struct engine_part {
    const uint8_t *from;
    size_t size;
};
uint32_t engine_tx_window(struct engine *e, uint32_t conn,
                          struct engine_part parts[2]);
void engine_tx(struct engine *e, uint32_t conn, size_t size);
bool engine_may_send(const struct engine *e, uint32_t conn);
void engine_clear_dirty(struct engine *e, uint32_t conn);
/* Everything that had arrived has been read. */
void engine_rx_dry(struct engine *e, uint32_t conn);

/* Links (rule R3). */
void engine_want_link(struct engine *e, const struct wire_member *m,
                      uint32_t connections);
void engine_unwant_links(struct engine *e);
/* Who calls whom, against the order of ids: of all links, or of one. Closes
 * the connections of a link whose caller changes. */
void engine_set_directions(struct engine *e, const struct wire_pair *pairs,
                           uint32_t count);
void engine_set_direction(struct engine *e, uint64_t id, bool calls);
enum link_status { LINK_WAITS, LINK_OPEN, LINK_FAILED };
enum link_status engine_link_status(struct engine *e, uint64_t id);
void engine_drop_link(struct engine *e, uint64_t id);
/* Closes what probes opened and nobody wants now. */
void engine_close_unwanted(struct engine *e);
void engine_close_all(struct engine *e);

/* --- shared by the data plane's files only --- */
struct link *link_find(struct engine *e, uint64_t id, bool create);
void links_free(struct engine *e);
void link_dial(struct engine *e, struct link *l);
/* From now on, as many connections as a ring over the link has. */
void link_widen(const struct engine *e, struct link *l);
/* Whether this end calls (rule R3). */
bool link_dials(const struct engine *e, const struct link *l);
bool link_control(struct engine *e, struct link *l, const struct frame *f);
void link_dirty(struct engine *e, const struct link *l);
void link_drop_unexpected(struct engine *e, struct link *l);
void conn_stop_receiving(struct engine *e, const struct op *op);
void conn_forget_op(struct engine *e, const struct op *op);
void conn_cut_sending(struct engine *e, const struct op *op);
/* Of one link or (NULL) of all: what comes in of shared state is thrown away;
 * what goes out is filled up, if `sending`. */
void conn_forget_state(struct engine *e, const struct link *l, bool sending);
void conn_resume(struct engine *e);
void conn_resume_one(struct engine *e, uint32_t number);
void conn_dirty(struct engine *e, uint32_t number);
void conn_reject(struct engine *e, uint32_t number);

#endif
