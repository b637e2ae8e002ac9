/* master_conn.h - one TCP connection of the master: bounded input and output.
 * Knows the frame codec and nothing of members. */
#ifndef PCCL_MASTER_CONN_H
#define PCCL_MASTER_CONN_H

#include "../base/base.h"
#include "../base/wire.h"

#include <ev.h>

enum {
    CONN_IN_START = 4096, /* holds any HELLO */
    /* Output queued for a peer that reads slowly. The largest burst is the
     * relay of 64 donated results at the end of a round. Connections share
     * frames, so a full queue costs only pointers. */
    CONN_OUT_MAX = 8 * 1024 * 1024,
    CONN_OUT_FRAMES_MAX = 1024,
    CONN_PARTS_MAX = 16, /* frames per sendmsg */
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
    void *owner;
    ev_io io;
    ev_timer linger; /* runs after the master has closed the link */
    int fd;
    uint32_t link; /* MASTER_NO_LINK after the master has closed it */
    struct wire_addr addr;
    const char *lost; /* reason, or NULL */
    bool dirty;       /* in the server's list of connections to flush */
    struct master_conn *next, *prev; /* the server's list of all connections */

    uint8_t *in;
    size_t in_size, in_done, in_capacity;
    struct master_frame **out; /* ring of out_capacity entries */
    uint32_t out_first, out_count, out_capacity;
    size_t out_done; /* bytes of the first frame already sent */
    size_t out_size; /* bytes queued, including those */
};

/* Takes over fd, also on failure (NULL: out of memory). */
struct master_conn *master_conn_new(int fd);
void master_conn_free(struct master_conn *c); /* closes the socket */

/* False: over the limit, or out of memory. */
bool master_conn_queue(struct master_conn *c, struct master_frame *frame);

enum conn_result {
    CONN_DONE, /* all is sent; some bytes were received */
    CONN_WAIT, /* the socket is full; no bytes were received */
    CONN_END,  /* closed or reset by the peer */
};

enum conn_result master_conn_flush(struct master_conn *c);
enum conn_result master_conn_receive(struct master_conn *c);
enum conn_result master_conn_discard(struct master_conn *c);

/* Decodes the next frame; *msg borrows from the input and from store. */
enum wire_status master_conn_next(struct master_conn *c,
                                  struct wire_store *store,
                                  struct wire_msg *msg);

/* After MORE: grows the buffer for the missing bytes, up to limit bytes per
 * frame. False: over the limit, or out of memory. */
bool master_conn_make_room(struct master_conn *c, size_t limit);

#endif
