/* master_conn.h - one TCP connection of the master: bounded input, bounded
 * output. Knows the frames' codec and nothing of members. */
#ifndef PCCL_MASTER_CONN_H
#define PCCL_MASTER_CONN_H

#include "../base/base.h"
#include "../base/wire.h"

#include <ev.h>

enum {
    CONN_IN_START = 4096, /* any HELLO fits in */
    /* Output that waits for a peer that reads slowly. The largest burst is the
     * relay of 64 donated results at the end of a round; frames are shared
     * between connections, so a full queue costs pointers. */
    CONN_OUT_MAX = 8 * 1024 * 1024,
    CONN_OUT_FRAMES_MAX = 1024,
    CONN_PARTS_MAX = 16, /* frames of one sendmsg */
};

/* An encoded message, shared by the connections it goes to. One thread. */
struct master_frame {
    uint32_t refs;
    size_t size;
    uint8_t bytes[];
};

/* One reference, the caller's. NULL: out of memory. */
struct master_frame *master_frame_new(const uint8_t *bytes, size_t size);
void master_frame_release(struct master_frame *frame);

/* The input: in[in_done..in_size) is not decoded yet. */
struct master_conn {
    void *owner;
    ev_io io;
    ev_timer linger; /* runs after the master has closed the link */
    int fd;
    uint32_t link; /* MASTER_NO_LINK once the master has closed it */
    struct wire_addr addr;
    const char *lost; /* why; NULL while it is not */
    bool dirty;       /* waits in the server's list to be flushed */
    struct master_conn *next, *prev; /* the server's list of all */

    uint8_t *in;
    size_t in_size, in_done, in_capacity;
    struct master_frame **out; /* ring of out_capacity entries */
    uint32_t out_first, out_count, out_capacity;
    size_t out_done; /* bytes of the first frame that are gone */
    size_t out_size; /* bytes queued, those included */
};

/* Takes fd over, also on failure (NULL: out of memory). */
struct master_conn *master_conn_new(int fd);
void master_conn_free(struct master_conn *c); /* closes the socket */

/* False: over the limit, or out of memory. */
bool master_conn_queue(struct master_conn *c, struct master_frame *frame);

enum conn_result {
    CONN_DONE, /* everything is sent; some bytes came */
    CONN_WAIT, /* the socket is full; nothing came */
    CONN_END,  /* closed or reset by the other side */
};

enum conn_result master_conn_flush(struct master_conn *c);
enum conn_result master_conn_receive(struct master_conn *c);
enum conn_result master_conn_discard(struct master_conn *c);

/* Decodes the next frame; *msg borrows from the input and from store. */
enum wire_status master_conn_next(struct master_conn *c,
                                  struct wire_store *store,
                                  struct wire_msg *msg);

/* After MORE: makes room for what is missing, within limit bytes a frame.
 * False: over the limit, or out of memory. */
bool master_conn_make_room(struct master_conn *c, size_t limit);

#endif
