/* switchboard.h - the connections of the master: what is queued for whom, what
 * has come from whom, and who is cut off when. Pure: bytes come in by calls and
 * go out by callbacks; time is an argument.
 *
 * The driver steps the machine (struct master), and hands its effects to
 * switchboard_send() and switchboard_close(). After whatever it has done it
 * ends its turn by switchboard_turn(): effects are queued during the turn and
 * flushed there. A connection that turns out to be lost becomes an event there,
 * never inside a step.
 *
 * A connection is cut off if its other end reads so slowly that its queue is
 * full; if it sends bytes that are no frame, or before HELLO a frame larger
 * than HELLO is; and a deadline after the master has closed its link, if the
 * other end has not read its queue to the end or does not end the connection.
 */
#ifndef PCCL_SWITCHBOARD_H
#define PCCL_SWITCHBOARD_H

#include "../master.h"
#include "master_conn.h"

enum {
    /* connections of the master, and as many that are closing */
    SWITCHBOARD_CONNS_MAX = 3 * MASTER_LINKS_MAX,
    SWITCHBOARD_LEGS_MAX = MASTER_LINKS_MAX, /* of them, relayed ones */
    SWITCHBOARD_DIALS_MAX = 4, /* dials that wait, of one end to another */
    /* Bytes that one turn sends, and those of one connection more: the view of
     * 4,000 members for all of them is 700 MB. */
    SWITCHBOARD_TURN_MAX = 4 * 1024 * 1024,
};

/* What the driver does. None of them calls the switchboard, but step(). */
struct switchboard_output {
    void *user;
    /* Applies an event to the machine. */
    void (*step)(void *user, struct master_event *event);
    /* Sends what is queued (master_conn_parts). WAIT: the driver calls
     * switchboard_touch() when there is room again. */
    enum conn_result (*flush)(void *user, struct master_conn *c);
    /* The link is closed, and all is sent: ends the output. Closing with unread
     * input would reset the connection and discard sent data, so the driver
     * waits for the peer's end, until linger_at. */
    void (*finish)(void *user, struct master_conn *c);
    /* The connection is over for the reason c->lost; c is freed next. */
    void (*end)(void *user, struct master_conn *c);
};

struct switchboard_limits { /* 0: as master_conn.h says, SWITCHBOARD_CONNS_MAX
                             */
    size_t out_max;
    uint32_t out_frames_max;
    uint32_t conns_max;
    size_t turn_max;
};

/* A list of connections, oldest first. */
struct switchboard_list {
    struct master_conn *first, *last;
};

struct switchboard {
    struct switchboard_output out;
    struct switchboard_limits limits;
    struct master *machine;
    struct switchboard_list open, closing; /* with a link; without */
    struct switchboard_list legs;          /* relayed ones (rule N12) */
    uint32_t leg_count;
    uint64_t relayed; /* bytes so far */
    uint32_t conn_count;
    struct master_conn *links[MASTER_LINKS_MAX];
    struct master_conn *dirty[SWITCHBOARD_CONNS_MAX];
    struct master_conn *lost[SWITCHBOARD_CONNS_MAX];
    uint32_t dirty_count, lost_count;
    struct wire_store store;
    uint8_t frame[WIRE_FRAME_MAX];
};

/* The struct is large: allocate it zeroed. The machine is borrowed. */
void switchboard_init(struct switchboard *b, struct master *machine,
                      const struct switchboard_output *out,
                      const struct switchboard_limits *limits);
/* Ends all connections. */
void switchboard_free(struct switchboard *b);

/* No further connection can be accepted now. */
bool switchboard_is_full(const struct switchboard *b);
/* The oldest connection before its HELLO, or NULL. While it is full the driver
 * reads that one once more, and then loses it to make room (rule M1). */
struct master_conn *switchboard_stranger(const struct switchboard *b);
/* A new connection; not while it is full. NULL: out of memory. */
struct master_conn *switchboard_accept(struct switchboard *b,
                                       const struct wire_addr *addr,
                                       void *user);

/* The machine's effects. A link that is closed is free at once; the connection
 * lingers until the peer has received what is queued. */
void switchboard_send(struct switchboard *b, const uint32_t *links,
                      uint32_t count, const struct wire_msg *msg);
void switchboard_close(struct switchboard *b, uint32_t link);

/* The machine has agreed to relay the connection: the link is free, and what
 * comes is for the other end. */
void switchboard_relay(struct switchboard *b, uint32_t link,
                       const struct wire_msg *msg);

/* Bytes have come into master_conn_room(). */
void switchboard_received(struct switchboard *b, struct master_conn *c,
                          size_t size);
/* More can be sent. */
void switchboard_touch(struct switchboard *b, struct master_conn *c);
/* The connection is over; the reason is a literal. */
void switchboard_lose(struct switchboard *b, struct master_conn *c,
                      const char *reason);
void switchboard_turn(struct switchboard *b);
/* More can be sent at once: another turn is due, after what others have. */
static inline bool switchboard_is_behind(const struct switchboard *b)
{
    return b->dirty_count > 0;
}

/* When the next one has lingered for long enough, or PCCL_NEVER. */
pccl_ns switchboard_next_linger(const struct switchboard *b);
/* Cuts those off. */
void switchboard_linger(struct switchboard *b, pccl_ns now);

#endif
