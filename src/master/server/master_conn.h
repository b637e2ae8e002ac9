/* master_conn.h - one connection of the master: bounded input and output. Pure:
 * knows the frame codec, and neither members nor sockets (master_socket.h). */
#ifndef PCCL_MASTER_CONN_H
#define PCCL_MASTER_CONN_H

#include "../../base/base.h"
#include "../../base/wire.h"

enum {
    CONN_IN_START = 4096, /* holds any HELLO */
    /* Output queued for a peer that reads slowly. The largest burst is the
     * relay of 64 donated results at the end of a round. Connections share
     * frames, so a full queue costs only pointers. */
    CONN_OUT_MAX = 8 * 1024 * 1024,
    CONN_OUT_FRAMES_MAX = 1024,
    CONN_RELAY_MAX = 64 * 1024, /* bytes held for the partner (rule N12c) */
};

enum conn_result {
    CONN_DONE, /* all is sent; some bytes were received */
    CONN_WAIT, /* the socket is full; no bytes were received */
    CONN_END,  /* closed or reset by the peer */
};

/* An encoded message, shared by its receivers' connections. One thread. */
struct master_frame {
    uint32_t refs;
    size_t size;
    uint8_t bytes[];
};

/* Has one reference, owned by the caller. NULL: out of memory. */
struct master_frame *master_frame_new(const uint8_t *bytes, size_t size);
void master_frame_release(struct master_frame *frame);

/* Input: in[in_done..in_size) is not decoded yet. */
struct master_conn {
    void *user;    /* the driver's, see switchboard.h */
    uint32_t link; /* MASTER_NO_LINK after the master has closed it */
    struct wire_addr addr;
    const char *lost;  /* reason, or NULL */
    bool held;         /* its HELLO waits for an answer: no stranger */
    bool dirty;        /* in the switchboard's list of connections to flush */
    pccl_ns linger_at; /* link closed: the connection is cut off then */
    struct master_conn *next, *prev; /* in a list of the switchboard */

    uint8_t *in; /* NULL until something is about to come */
    size_t in_size, in_done, in_capacity;
    struct master_frame **out; /* ring of out_capacity entries */
    uint32_t out_first, out_count, out_capacity;
    size_t out_done; /* bytes of the first frame already sent */
    size_t out_size; /* bytes queued, including those */
    size_t out_max;  /* limits of the two above */
    uint32_t out_frames_max;

    /* Of a connection that is relayed (rule N12): its input is what the partner
     * sends, as it is. */
    bool relays, listens;
    uint64_t from, to;
    struct master_conn *partner; /* NULL: it waits for one */
};

struct master_conn *master_conn_new(void); /* NULL: out of memory */
void master_conn_free(struct master_conn *c);

/* False: over the limit, or out of memory. */
bool master_conn_queue(struct master_conn *c, struct master_frame *frame);

struct master_chunk {
    const uint8_t *bytes;
    size_t size;
};

/* The bytes that are sent next, as at most `most` parts; 0: none. They are
 * valid until the next call with this connection. */
uint32_t master_conn_parts(const struct master_conn *c,
                           struct master_chunk *parts, uint32_t most);
/* So many bytes of them are sent. */
void master_conn_sent(struct master_conn *c, size_t size);

/* It sends what comes from now on to its partner, and waits for that. */
void master_conn_relay(struct master_conn *c);
/* More is read now: what is held for the partner has a limit. */
bool master_conn_reads(const struct master_conn *c);
/* False: out of memory. */
bool master_conn_join(struct master_conn *c, struct master_conn *partner);

/* Where received bytes go, and how many: never none, if it reads. NULL: out of
 * memory. */
uint8_t *master_conn_room(struct master_conn *c, size_t *size);
void master_conn_received(struct master_conn *c, size_t size);

/* Decodes the next frame; *msg borrows from the input and from store. */
enum wire_status master_conn_next(struct master_conn *c,
                                  struct wire_store *store,
                                  struct wire_msg *msg);

/* After MORE: grows the buffer for the missing bytes, up to limit bytes per
 * frame. False: over the limit, or out of memory. */
bool master_conn_make_room(struct master_conn *c, size_t limit);

#endif
