/* message.h - messages between two members, as a pure state machine beside the
 * collectives of the engine. Rules P2P-1.. are in MESSAGES.md.
 *
 * Two members that send each other messages have one connection of its own for
 * them. Each direction carries a sequence of numbered items (messages,
 * requests for rendezvous data, pieces of such data). The sender keeps an item
 * until it is acknowledged. A connection that is made again continues with the
 * first item that the other end has not received. */
#ifndef PCCL_MESSAGE_H
#define PCCL_MESSAGE_H

#include "../base/base.h"
#include "../base/keyed.h"
#include "../link/frame.h"
#include "../link/links.h"

enum {
    MESSAGE_HEADER_MAX = 64,
    MESSAGE_MAX = 64 * 1024,           /* header and body */
    MESSAGE_QUEUE_MAX = 1024,          /* posted to a member, not yet acked */
    MESSAGE_QUEUE_BYTES = 1024 * 1024, /* bytes of these */
    MESSAGE_INBOX_MAX = 1024,          /* received from one, not taken */
    MESSAGE_INBOX_BYTES = 1024 * 1024, /* bytes of these */
    MESSAGE_ACK_COUNT = 64,            /* items after which to acknowledge */
    MESSAGE_ACK_BYTES = 256 * 1024,
    RNDV_PIECE = 256 * 1024,
    RNDV_PIECES_MAX = 32,       /* under way to one member */
    MESSAGE_PORTION = 8 * 1024, /* shown at a time, above MESSAGE_WHOLE_MAX */
    CMA_PIECE = CMA_MIN,
    CMA_PIECES_MAX = 2,    /* pieces queued to one member */
    EXPECTS_MAX = 1 << 20, /* of one member, with a send or without */
    UNTOLD_MAX = 1024,     /* losses stored before events are taken */
    POLL_SET_MAX = 256,    /* connections that are worth polling */
};

enum message_event_kind {
    EVENT_MESSAGE,
    EVENT_SENT,     /* rendezvous */
    EVENT_RECEIVED, /* rendezvous */
    EVENT_ROOM,     /* a post that was refused can succeed now */
    EVENT_LOST,     /* the last one of this member */
};

struct message_event {
    struct message_event *next;
    enum message_event_kind kind;
    int result; /* pcclResult_t, of a rendezvous */
    bool queued;
    uint64_t member, key;
};

/* A message, at the sender or at the receiver. From the engine's pool. */
struct message_block {
    struct message_event event;
    uint32_t head, size; /* header's bytes, all bytes */
    uint8_t bytes[];
};

/* One end of a rendezvous transfer. The buffer is the caller's until its event.
 */
struct rndv {
    struct message_event event; /* first */
    struct keyed keyed;
    uint32_t number;                                /* of the expect */
    enum { RNDV_WAITS, RNDV_RUNS, RNDV_CUT } state; /* of a send */
    bool uses_cma;                /* the pieces are, or may be, CMA frames */
    bool compared;                /* the driver looks how long it takes */
    struct rndv *next, *previous; /* of the sends that run */
    const uint8_t *send;          /* the user's buffer of a send, */
    uint8_t *recv;                /* or of a receive */
    uint64_t size, done;
};

struct message_item {
    struct frame frame; /* without number and acknowledgement */
    const uint8_t *body;
    struct message_block *block; /* owned, or NULL */
};

struct expected {
    struct keyed keyed; /* first */
    uint64_t size;
    uint32_t number;
    bool uses_cma;
};

/* The state of messages with one other member. */
struct p2p_link {
    struct p2p_link *next;
    uint64_t id, host;
    uint32_t conn; /* NO_CONN: none */
    bool open;     /* the connection has been agreed on */
    bool gone;     /* removed from the view; the rest is being read */
    bool starved;  /* a post was refused */
    bool barred;   /* its memory could not be read */
    bool asks;     /* the next attempt asks the other end to dial */
    bool asked;    /* one has asked, since there was a connection */
    bool inward;   /* the last time only the other end's dials passed */
    bool ack_due, answer_due;
    uint32_t dials, peer_dials; /* dials made, dials known to be made */
    uint32_t failures;          /* since the last connection */
    pccl_ns retry_at;

    /* Sending: a ring of items, the first `sent` of them on the connection. */
    struct message_item *items;
    uint32_t capacity, first, count, sent;
    bool tx_item; /* the item being sent is the first one not yet sent */
    uint32_t first_seq;
    uint32_t posted, pieces;
    size_t posted_bytes;
    struct keyed_table sends;
    struct rndv *running, *running_last; /* of those, in their order */
    struct keyed_table expected; /* by the other end, before the send here */

    /* Receiving. */
    bool rx_numbered; /* the frame being received counts in the sequence */
    struct message_block *rx_block;
    struct rndv *rx_rndv;
    uint32_t seq;           /* of the last item */
    uint32_t unacked_items; /* not acknowledged */
    size_t unacked_bytes;
    uint32_t inbox_count;
    size_t inbox_bytes;
    struct keyed_table expects;
    uint32_t number; /* of the next expect */

    struct message_event lost, room;
};

/* The poll set: the connections that a caller polls for messages. */
struct poll_set {
    bool known;  /* the next fields are valid */
    bool others; /* some share no memory, or there are too many */
    uint32_t count, conns[POLL_SET_MAX];
};

/* The events of messages, for their owner. */
struct message_events {
    void *user;
    void (*event)(void *user); /* message_take() has something; or NULL */
    /* Rule P2P-10: asks through the master that the member dial. False, or
     * NULL: the request cannot be forwarded. */
    bool (*ask)(void *user, uint64_t member, uint32_t dials, uint32_t known);
};

struct messages {
    struct links *links;
    struct message_events out;
    struct p2p_link *table[256]; /* hash by id */
    struct poll_set poll_set;
    struct message_event *first, *last;
    bool used;       /* a consumer exists: all losses are stored */
    uint32_t untold; /* losses before that */
    bool pending;    /* a link may need to be dialed */
};

/* The caller zeroes it before. The links are initialized, and belong to the
 * caller. */
void message_init(struct messages *m, struct links *links,
                  const struct message_events *events);
/* Before the links are freed. */
void message_free(struct messages *m);

/* Results are pcclResult_t; see pccl.h. */
int message_post(struct messages *m, uint64_t to, const void *head,
                 size_t head_size, const void *body, size_t size);
int message_send_rndv(struct messages *m, uint64_t to, uint64_t key,
                      const void *send, size_t size);
int message_recv_rndv(struct messages *m, uint64_t from, uint64_t key,
                      void *recv, size_t size);
int message_cancel_recv(struct messages *m, uint64_t from, uint64_t key);
int message_cancel_send(struct messages *m, uint64_t to, uint64_t key);

/* The next event or NULL; it belongs to the consumer until released. */
struct message_event *message_take(struct messages *m);
void message_release(struct messages *m, struct message_event *event);
/* Releases an event once its queue is freed; NULL is fine. */
void message_discard(struct message_event *message);
void message_use(struct messages *m); /* from here on all losses are events */

/* --- for the owner of the engine --- */
void message_lose(struct messages *m, uint64_t id); /* removed from the view */
void message_stop(struct messages *m, int result);  /* out of the run */
/* The member asks this peer to dial it (rule P2P-10). */
void message_dial_requested(struct messages *m, uint64_t id, uint32_t dials,
                            uint32_t known);
void message_progress(
    struct messages *m); /* makes the connections that are due */
bool message_pending(const struct messages *m); /* progress is due soon */
/* Sends acknowledgements, and asks for them; false: nothing is left to wait
 * for. */
bool message_flush(struct messages *m);
bool message_lacks_link(const struct messages *m);
const struct poll_set *message_poll_set(struct messages *m);
/* A member's next connection to serve, NO_CONN: none. */
uint32_t message_conn(struct messages *m, uint64_t member);

/* --- for the driver --- */
bool message_full(const struct p2p_link *l);

/* --- this folder only --- */
void message_receive_frames(struct messages *m); /* registers its handlers */
size_t message_take_whole(void *messages, struct conn *c, const uint8_t *bytes,
                          size_t size);
struct message_item *p2p_link_new_item(struct p2p_link *l);
bool message_next_send(void *messages, struct conn *c, struct frame *f);
void message_sent(struct p2p_link *l);
void p2p_link_push(struct messages *m, struct message_event *event);
/* Everything up to `seq` has arrived; at most `most` items can have. */
bool p2p_link_acked(struct messages *m, struct p2p_link *l, uint32_t seq,
                    uint32_t most);
void p2p_link_dirty(struct messages *m, const struct p2p_link *l);
struct p2p_link *p2p_link_find(struct messages *m, uint64_t id, bool create);
struct p2p_link *p2p_link_to(struct messages *m, uint64_t id, int *result);
/* The transfer has ended. */
void p2p_link_end_rndv(struct messages *m, struct p2p_link *l, struct rndv *b,
                       int result);
void p2p_link_end_all(struct messages *m, struct keyed_table *table,
                      int result);
/* A send has data to send, or has none. */
void p2p_link_run(struct p2p_link *l, struct rndv *b);
void p2p_link_pause(struct p2p_link *l, struct rndv *b);
bool p2p_link_control(struct messages *m, struct p2p_link *l,
                      enum frame_type type, uint64_t key, uint32_t number,
                      uint64_t size);
bool p2p_link_flagged(struct messages *m, struct p2p_link *l,
                      enum frame_type type, uint8_t flags, uint64_t key,
                      uint32_t number, uint64_t size);
bool p2p_link_announce(struct messages *m, struct p2p_link *l, struct rndv *b);
void p2p_link_want(struct messages *m, struct p2p_link *l);
/* The expect that a frame refers to; NULL: it is cancelled. */
struct rndv *p2p_link_find_rndv(struct p2p_link *l, const struct frame *f);
bool p2p_link_on_expect(struct messages *m, struct p2p_link *l,
                        const struct frame *f);
void p2p_link_on_word(struct messages *m, struct p2p_link *l,
                      const struct frame *f);

#endif
