/* conn.h - one connection: a byte stream (TCP, or shared memory within a host)
 * that carries frames in both directions.
 *
 * Pure: the driver asks a connection where the next bytes go or come from,
 * moves them, and reports their number. A table defines how frames of each type
 * are received: the states in which they are legal, and the functions for the
 * header and for the end of the body. The folder knows the frames of links
 * only; the owners of all others register theirs (links_receive). */
#ifndef PCCL_CONN_H
#define PCCL_CONN_H

#include "../base/base.h"
#include "channel.h"
#include "links.h"
#include "frame.h"

enum {
    RX_BUFFER_SIZE = 8192, /* received bytes that are not parsed yet */
    /* RELAY, or the message to the master; HELLO; header of FILL. */
    TX_HEAD_MAX = 3 * FRAME_SIZE + 2 * FRAME_HELLO_SIZE,
};

struct conn;
struct link;
struct link_client;
struct links;
struct offer_guest;
struct p2p_link;
struct relay_leg;
struct unexpected;

enum conn_state {
    CONN_FREE,
    CONN_DIALED,   /* this end dials; its HELLO is sent or under way */
    CONN_ACCEPTED, /* the other end dialed; its HELLO has not come */
    CONN_OPEN,
};

/* The use of a connection. */
enum conn_use {
    CONN_OF_LINK,
    CONN_OF_P2P_LINK,
    CONN_OF_GUEST, /* who is no member (rule S10) */
    CONN_USE_COUNT
};

/* The destination of received bytes. */
enum conn_rx {
    RX_HEADER,  /* between frames: to the receive buffer */
    RX_DISCARD, /* the body is dropped */
    RX_BODY,    /* the body goes to rx_to */
};

/* The reception of frames of one type. */
struct frame_handler {
    uint8_t states; /* bit set over enum conn_state; in all others the frame
                       breaks the protocol */
    /* The header is in conn.rx, which is to be checked. Sets rx_state to
     * RX_BODY and rx_to, or leaves the body to be dropped. False: the frame
     * breaks the protocol. NULL: nothing to do. */
    bool (*begin)(void *user, struct conn *c);
    /* The body is complete, or was dropped. */
    bool (*end)(void *user, struct conn *c);
};

#define ON_OPEN (1u << CONN_OPEN)
#define ON_ACCEPTED (1u << CONN_ACCEPTED)
#define ON_GREETING (1u << CONN_DIALED | 1u << CONN_ACCEPTED)

/* A region as one connection knows it (rule L7). */
struct conn_region {
    bool offers, answers;  /* REGION is to be sent */
    bool taken;            /* the other end has mapped this end's region */
    bool pulls;            /* the other end reads this process's memory (D27) */
    bool unreadable;       /* a pull from the other end has failed */
    const uint8_t *memory; /* the other end's, mapped here; or NULL */
    uint8_t *post; /* BOARD_POST_MAX bytes of its board (L11); or NULL */
};

struct conn {
    uint32_t number;
    enum conn_state state;
    struct link *link;         /* NULL: ACCEPTED, or of a p2p link */
    struct conn *next;         /* the next one of that link, by number */
    struct p2p_link *peer;     /* of a connection for messages */
    struct offer_guest *guest; /* of a guest's connection */
    struct relay_leg *leg;     /* this member relays its bytes (rule N12) */
    uint32_t turn;             /* of the dial (rule N2) */
    uint64_t to, to_host; /* the member at the other end, as far as known */
    bool relayed;     /* it leads to a relay (rule N11), which is a member */
    uint64_t relay;   /* that member, or 0: the master */
    uint64_t listens; /* the member whose dial it waits for there, or 0 */
    pccl_ns last_recv, last_sent;
    pccl_ns deaf_at; /* since then the other end says that it hears nothing */
    struct channel *channel; /* carries everything after the HELLOs */
    struct channel *offered; /* in the own HELLO; the answer has not come */
    uint32_t generation;     /* of the link, when the HELLO was made */
    pccl_ns rtt;             /* when it was made; 0: unknown */
    uint32_t made;           /* attempt in which it was opened */
    uint32_t asked, alive;   /* attempt in which a PING went, an answer came */
    uint32_t asks;           /* an answer to that attempt is due, or 0 */
    bool accepted;           /* and no PING has shown that the answer to the
                                other end's HELLO has arrived there */
    bool greets;             /* the own HELLO is not all out */
    bool further;            /* of a link that is open: short FILLs (R3c) */

    /* receiving */
    uint8_t rx_buffer[RX_BUFFER_SIZE];
    uint32_t rx_filled, rx_parsed; /* bytes in the buffer, of them consumed */
    struct frame rx;
    enum conn_rx rx_state;
    bool parked;   /* a frame of an epoch to come: waits for INSTALL */
    bool stranger; /* parked: a HELLO that may be ahead (rules R3, P2P-2) */
    bool ahead;    /* it is, of WELCOME or of the PROPOSE with its sender */
    bool ping;     /* one is due on this very connection */
    uint8_t *rx_to;
    uint32_t rx_left;
    /* Set by the handler: the owner of rx_to, and a part of it. */
    void *rx_owner;
    void *rx_part;
    /* Of the handler, or NULL: takes bytes where they lie in shared memory,
     * instead of a copy to rx_to; returns how many. */
    size_t (*rx_consume)(struct conn *c, const uint8_t *bytes, size_t size);
    struct unexpected *rx_unexpected;
    uint8_t *scratch; /* one segment, taken when first needed */
    uint8_t hello[FRAME_HELLO_SIZE];
    struct frame hello_frame; /* of the other end; type 0: not complete */

    /* sending */
    uint8_t tx_head[TX_HEAD_MAX];
    uint32_t tx_head_size, tx_head_done;
    const uint8_t *tx_from; /* NULL with tx_left > 0: padding */
    uint32_t tx_left;
    /* Set by the client that gave the frame: the owner of tx_from, and a
     * part. */
    const struct link_client *tx_client;
    void *tx_owner;
    void *tx_part;
    bool *tx_busy; /* or NULL: false once the body is not needed any more */
    struct conn_region region;
    /* Since the last DATA began: a send was cut short; nothing was to send. */
    bool tx_cut, tx_starved;
};

/* An offer of shared memory, as HELLO and REGION carry it. */
void channel_offer_encode(const struct channel_offer *offer, struct frame *f);
struct channel_offer channel_offer_decode(const struct frame *f);

/* --------------------------------------------------------- for the clients */

void conn_dirty(struct links *n, uint32_t number);
/* Nothing is half sent or half received, or waits on the connection. */
bool conn_is_idle(const struct conn *c);
/* Nothing is half sent. */
static inline bool conn_sent_all(const struct conn *c)
{
    return c->tx_head_done == c->tx_head_size && c->tx_left == 0;
}
/* Rule R7b: each end has shown the other one that it uses the memory. Nothing
 * between them can fail but a process. */
static inline bool conn_has_no_path(const struct conn *c)
{
    return c->state == CONN_OPEN && c->link && c->channel && !c->accepted;
}
/* Drops the half-received body of an owner: on all connections, or on those of
 * a link. */
void conn_stop_receiving(struct links *n, const void *owner);
void link_stop_receiving(const struct link *l, const void *owner);
/* The owner takes its memory back: its half-received body is dropped, its
 * half-sent body is padded. */
void conn_forget(struct links *n, const void *owner);
/* Closes the connections on which something of the owner is half sent. */
void conn_cut_sending(struct links *n, const void *owner);
/* A new epoch: frames that were ahead of it can be read now. */
void conn_resume(struct links *n);
void conn_resume_one(struct links *n, uint32_t number);
/* Closes; false, for the caller to return. */
bool conn_reject(struct links *n, uint32_t number);
/* Lets the driver close it, and handles the consequences. */
void conn_close(struct links *n, uint32_t number);
/* A dial that the driver has begun for a client. False: out of memory. */
bool conn_begin_dial(struct links *n, uint32_t number, uint64_t to,
                     uint64_t host);

/* ------------------------------------------------------ for this folder only
 */

static inline enum conn_use conn_use_of(const struct conn *c)
{
    if (c->guest) return CONN_OF_GUEST;
    return c->peer ? CONN_OF_P2P_LINK : CONN_OF_LINK;
}
void conn_stop_body(struct conn *c, const void *owner);
void conn_queue_hello(struct links *n, struct conn *c);
bool conn_open(struct links *n, struct conn *c);
/* A message of the master that explains it may be under way: it is checked
 * again later. */
bool conn_park(struct conn *c);
/* Rule L1: the other end's HELLO is here and right. */
void conn_settle_memory(struct links *n, struct conn *c, bool dialed);
void conn_drop_tx(struct conn *c);
/* Closes a dial that nobody has accepted. */
void conn_forget_dial(struct links *n, struct conn *c);

#endif
