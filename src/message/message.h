/* message.h - messages between two members, as a pure state machine beside the
 * collectives of the engine. Rules P2P-1.. stand in master/PROTOCOL.md.
 *
 * Two members that talk have one connection for it, of its own. What travels
 * on it in one direction is a sequence of numbered items (messages, requests
 * for bulk data, pieces of bulk data) that the sender keeps until they are
 * acknowledged; a connection that is made anew goes on with the first item
 * that the other end has not got. */
#ifndef PCCL_MESSAGE_H
#define PCCL_MESSAGE_H

#include "../base/base.h"
#include "../link/frame.h"
#include "../base/keyed.h"

enum {
    MESSAGE_HEADER_MAX = 64,
    MESSAGE_MAX = 64 * 1024,           /* header and body */
    MESSAGE_QUEUE_MAX = 1024,          /* posted and not acknowledged ... */
    MESSAGE_QUEUE_BYTES = 1024 * 1024, /* ... of one member */
    MESSAGE_INBOX_MAX = 1024,          /* received and not taken ... */
    MESSAGE_INBOX_BYTES = 1024 * 1024, /* ... from one member */
    MESSAGE_ACK_COUNT = 64,            /* items after which to acknowledge */
    MESSAGE_ACK_BYTES = 256 * 1024,
    BULK_PIECE = 256 * 1024,
    BULK_PIECES_MAX = 32,  /* on their way to one member */
    CMA_MIN = 1536 * 1024, /* less is copied twice in less time */
    CMA_PIECE = 8 * 1024 * 1024,
    CMA_PIECES_MAX = 2,    /* pieces on offer to one member */
    EXPECTS_MAX = 1 << 20, /* of one member, with a send or without */
    UNTOLD_MAX = 1024,     /* losses kept before the first one takes events */
    MAIL_MAX = 256,        /* connections that are worth to be polled */
};

struct engine;
struct conn;

enum message_event_kind {
    EVENT_MESSAGE,
    EVENT_SENT,     /* bulk */
    EVENT_RECEIVED, /* bulk */
    EVENT_ROOM,     /* a post that was refused has a chance now */
    EVENT_LOST,     /* the last one of this member */
};

struct message_event {
    struct message_event *next;
    enum message_event_kind kind;
    int result; /* pcclResult_t, of bulk */
    bool queued;
    uint64_t member, key;
};

/* A message, at the sender or at the receiver. From the engine's pool. */
struct message_block {
    struct message_event event;
    uint32_t head, size; /* header's bytes, all bytes */
    uint8_t bytes[];
};

/* One end of a bulk transfer. The buffer is the caller's until its event. */
struct bulk {
    struct message_event event; /* first */
    struct keyed keyed;
    uint32_t number;                                /* of the expect */
    enum { BULK_WAITS, BULK_RUNS, BULK_CUT } state; /* of a send */
    bool lends;                                     /* a send: see LEND */
    struct bulk *next, *previous;                   /* of the sends that run */
    const uint8_t *from;
    uint8_t *to;
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
    bool lends;
};

/* One other member. */
struct mlink {
    struct mlink *next;
    uint64_t id, host;
    uint32_t conn; /* NO_CONN: none */
    bool open;     /* the connection has been agreed on */
    bool gone;     /* removed from the view; the rest is being read */
    bool starved;  /* a post was refused */
    bool barred;   /* its memory could not be read */
    bool asks;     /* the next attempt is to have the other end call */
    bool asked;    /* ... and was, since there was a connection */
    bool inward;   /* only the other end's calls passed, the last time */
    bool ack_due, answer_due;
    uint32_t dials, peer_dials; /* calls made, calls known to be made */
    uint32_t failures;          /* since the last connection */
    pccl_ns retry_at;

    /* Sending: a ring of items, the first `sent` of them on the connection. */
    struct message_item *items;
    uint32_t capacity, first, count, sent;
    uint32_t first_seq;
    uint32_t posted, pieces;
    size_t posted_bytes;
    struct keyed_table sends;
    struct bulk *running, *running_last; /* of those, in their order */
    struct keyed_table expected;         /* by the other end, before our send */

    /* Receiving. */
    uint32_t seq;           /* of the last item */
    uint32_t unacked_items; /* not acknowledged */
    size_t unacked_bytes;
    uint32_t inbox_count;
    size_t inbox_bytes;
    struct keyed_table expects;
    uint32_t number; /* of the next expect */

    struct message_event lost, room;
};

/* The connections that messages may come by, for who polls their memory. */
struct mail {
    bool known;  /* what follows is true */
    bool others; /* some do without shared memory, or there are too many */
    uint32_t count, conns[MAIL_MAX];
};

struct messages {
    struct mlink *links[256]; /* hash by id */
    struct mail mail;
    struct message_event *first, *last;
    bool used;       /* all losses are kept for somebody who takes events */
    uint32_t untold; /* losses before that */
    bool pending;    /* a link may need to be dialed */
};

/* Results are pcclResult_t; see pccl.h. */
int message_post(struct engine *e, uint64_t to, const void *head,
                 size_t head_size, const void *body, size_t size);
int message_send_bulk(struct engine *e, uint64_t to, uint64_t key,
                      const void *from, size_t size);
int message_expect_bulk(struct engine *e, uint64_t from, uint64_t key, void *to,
                        size_t size);
int message_cancel_bulk(struct engine *e, uint64_t from, uint64_t key);
int message_withdraw_bulk(struct engine *e, uint64_t to, uint64_t key);

/* The next event or NULL; it belongs to the caller until released. */
struct message_event *message_take(struct engine *e);
void message_release(struct engine *e, struct message_event *event);
void message_use(struct engine *e); /* from here on all losses are events */

/* --- for the owner of the engine --- */
void message_lose(struct engine *e, uint64_t id); /* removed from the view */
void message_stop(struct engine *e, int result);  /* out of the run */
/* The member wants to be called (rule P2P-10). */
void message_called(struct engine *e, uint64_t id, uint32_t dials,
                    uint32_t heard);
void message_pump(struct engine *e); /* makes the connections that are due */
bool message_pending(const struct engine *e); /* pump soon */
/* Acknowledges, and asks for it; false: nothing is left to wait for. */
bool message_flush(struct engine *e);
bool message_lacks_link(const struct engine *e);
const struct mail *message_mail(struct engine *e);
void message_free(struct engine *e);

/* --- for conn.c and engine.c --- */
bool message_full(const struct mlink *l);
bool message_waits(const struct mlink *l); /* silence matters */
void message_hello(const struct mlink *l, struct frame *f);
bool message_open(struct engine *e, uint32_t number, uint64_t from);
void message_closed(struct engine *e, uint32_t number, bool dialed);
bool message_begin(struct engine *e, uint32_t number);
size_t message_take_whole(struct engine *e, uint32_t number,
                          const uint8_t *bytes, size_t size);
void message_end(struct engine *e, uint32_t number);
bool message_next(struct engine *e, struct conn *c, struct frame *f);
void message_sent(struct conn *c);

/* --- shared by message.c, message_receive.c and message_bulk.c only --- */
void mlink_push(struct engine *e, struct message_event *event);
/* Everything up to `seq` has arrived; at most `most` items can have. */
bool mlink_acked(struct engine *e, struct mlink *l, uint32_t seq,
                 uint32_t most);
void mlink_dirty(struct engine *e, const struct mlink *l);
struct mlink *mlink_find(struct engine *e, uint64_t id, bool create);
struct mlink *mlink_to(struct engine *e, uint64_t id, int *result);
/* The transfer has ended. */
void mlink_end_bulk(struct engine *e, struct mlink *l, struct bulk *b,
                    int result);
void mlink_end_all(struct engine *e, struct keyed_table *table, int result);
/* A send has something to be sent, or has not. */
void mlink_run(struct mlink *l, struct bulk *b);
void mlink_pause(struct mlink *l, struct bulk *b);
bool mlink_control(struct engine *e, struct mlink *l, enum frame_type type,
                   uint64_t key, uint32_t number, uint64_t size);
bool mlink_flagged(struct engine *e, struct mlink *l, enum frame_type type,
                   uint8_t flags, uint64_t key, uint32_t number, uint64_t size);
bool mlink_announce(struct engine *e, struct mlink *l, const struct bulk *b);
void mlink_want(struct engine *e, struct mlink *l);
/* The expect that a frame is about; NULL: it is cancelled. */
struct bulk *mlink_find_bulk(struct mlink *l, const struct frame *f);
bool mlink_on_expect(struct engine *e, struct mlink *l, const struct frame *f);
void mlink_on_word(struct engine *e, struct mlink *l, const struct frame *f);

#endif
