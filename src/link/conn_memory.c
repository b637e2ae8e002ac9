/* conn_memory.c - what comes through memory is used where it lies. See
 * engine.h. */
#include "../ring/op.h"

#include "../reduce/stream.h"

#include <string.h>

/* Data of an operation that is not launched here (rule D2). Of a header that
 * comes in parts the first are taken already. */
static bool is_ahead(const struct engine *e, const struct conn *c,
                     const uint8_t *bytes, size_t size)
{
    struct frame f;
    uint8_t head[FRAME_SIZE];
    if (c->state != CONN_OPEN || c->peer || c->sink != SINK_NONE ||
        c->staged > 0 || size < FRAME_SIZE)
        return false;
    memcpy(head, bytes, FRAME_SIZE);
    return frame_decode(head, &f) && f.type == FRAME_DATA &&
           f.epoch == e->links.epoch && !engine_is_past(e, f.tag, f.seq);
}

static size_t reduce_from(struct conn *c, const uint8_t *bytes, size_t size)
{
    uint32_t element = c->rx_op->plan.r.element;
    if (size > c->rx_left) size = c->rx_left;
    size -= size % element;
    op_reduce(c->rx_op, c->rx_ep, &c->rx, c->rx.size - c->rx_left, bytes, size);
    return size;
}

size_t engine_rx_from(struct engine *e, uint32_t number, const uint8_t *bytes,
                      size_t size)
{
    const struct conn *c = e->links.conns[number];
    size_t done = 0;
    while (done < size) {
        uint8_t *to;
        size_t whole = 0;
        if (c->peer)
            whole = message_take_whole(e, number, bytes + done, size - done);
        done += whole;
        if (whole > 0) continue;
        if (e->defers && is_ahead(e, c, bytes + done, size - done)) break;
        size_t part = engine_rx_window(e, number, &to);
        if (part == 0) break;
        if (part > size - done) part = size - done;
        if (c->sink == SINK_OP && c->rx_reduces) {
            part = reduce_from(e->links.conns[number], bytes + done, part);
            if (part == 0) break; /* the rest of an element comes later */
        } else if (c->sink == SINK_OP && c->rx_streams) {
            stream_copy(to, bytes + done, part);
        } else if (c->sink != SINK_DISCARD) {
            memcpy(to, bytes + done, part);
        }
        done += part;
        if (!engine_rx(e, number, part) || c->state == CONN_FREE) break;
    }
    return done;
}
