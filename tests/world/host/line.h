/* line.h - the bytes of one connection, between the links of the cores and
 * whatever a test has for a network. When they go, how many, and what becomes
 * of them is the test's choice. */
#ifndef PCCL_TESTS_LINE_H
#define PCCL_TESTS_LINE_H

#include "../../../src/link/channel.h"
#include "../../../src/link/link.h"

#include <string.h>

/* A network takes bytes, or has some. Both return how many; 0: none now. */
typedef size_t line_put(void *net, uint32_t conn, const uint8_t *bytes,
                        size_t size);
typedef size_t line_get(void *net, uint32_t conn, uint8_t *to, size_t room);

/* The bytes to be sent next, as far as they are taken. 0: none were. */
static inline size_t line_send(struct links *n, uint32_t conn, line_put *put,
                               void *net)
{
    struct conn_part parts[2];
    uint32_t count = conn_tx_window(n, conn, parts);
    size_t done = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t size = put(net, conn, parts[i].from, parts[i].size);
        done += size;
        if (size < parts[i].size) break;
    }
    if (done > 0) conn_tx(n, conn, done);
    if (count == 0 && !conn_is_free(n, conn)) conn_clear_dirty(n, conn);
    return done;
}

/* What the links want next, as far as the network has it. 0: nothing came. */
static inline size_t line_receive(struct links *n, uint32_t conn, line_get *get,
                                  void *net)
{
    uint8_t *to = NULL;
    size_t room = conn_rx_window(n, conn, &to);
    size_t size = room > 0 ? get(net, conn, to, room) : 0;
    if (size > 0) (void)conn_rx(n, conn, size);
    return size;
}

/* ------------------------------------------------------- bytes of the test */

struct line_bytes {
    uint8_t *bytes;
    size_t size, room;
};

static inline size_t line_append(void *net, uint32_t conn, const uint8_t *bytes,
                                 size_t size)
{
    struct line_bytes *b = net;
    (void)conn;
    if (size > b->room - b->size) size = b->room - b->size;
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
    return size;
}

/* Takes what a connection has to send, at most so much. */
static inline size_t line_take(struct links *n, uint32_t conn, uint8_t *bytes,
                               size_t room)
{
    struct line_bytes b = {bytes, 0, room};
    while (b.size < room && !conn_is_free(n, conn))
        if (line_send(n, conn, line_append, &b) == 0) break;
    return b.size;
}

/* These bytes come. Returns how many the links have read: the rest has to wait,
 * or goes through memory, or the connection is closed. */
static inline size_t line_give(struct links *n, uint32_t conn,
                               const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    while (done < size && !conn_is_free(n, conn) && !conn_channel(n, conn)) {
        uint8_t *to = NULL;
        size_t part = conn_rx_window(n, conn, &to);
        if (part == 0) break;
        if (part > size - done) part = size - done;
        memcpy(to, bytes + done, part);
        done += part;
        if (!conn_rx(n, conn, part)) break;
    }
    return done;
}

/* ------------------------------------------------------ through the memory */

static inline size_t line_put_shared(struct channel *c, const uint8_t *bytes,
                                     size_t size)
{
    uint8_t *to = NULL;
    size_t room = channel_room(c, &to);
    if (size > room) size = room;
    if (size == 0) return 0;
    memcpy(to, bytes, size);
    channel_write(c, size);
    return size;
}

/* Bytes that have come in the memory of a connection. False: none, or it is not
 * wanted, or the channel is broken. */
static inline bool line_receive_shared(struct links *n, uint32_t conn)
{
    struct channel *c = conn_channel(n, conn);
    const uint8_t *from;
    size_t size = channel_ready(c, &from);
    if (c->broken) return false;
    if (size == 0) {
        conn_rx_dry(n, conn);
        return false;
    }
    size = conn_rx_from(n, conn, from, size);
    if (conn_channel(n, conn) != c) return true; /* closed */
    if (size > 0) channel_read(c, size);
    return size > 0;
}

#endif
