/* master_conn.c - input and output buffers of one connection. */
#include "master_conn.h"

#include <stdlib.h>
#include <string.h>

struct master_frame *master_frame_new(const uint8_t *bytes, size_t size)
{
    struct master_frame *frame = malloc(sizeof *frame + size);
    if (!frame) return NULL;
    frame->refs = 1;
    frame->size = size;
    memcpy(frame->bytes, bytes, size);
    return frame;
}

void master_frame_release(struct master_frame *frame)
{
    PCCL_ASSERT(frame->refs > 0);
    if (--frame->refs == 0) free(frame);
}

struct master_conn *master_conn_new(void)
{
    struct master_conn *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->out_max = CONN_OUT_MAX;
    c->out_frames_max = CONN_OUT_FRAMES_MAX;
    return c;
}

static void out_pop(struct master_conn *c)
{
    struct master_frame *frame = c->out[c->out_first];
    c->out_first = (c->out_first + 1) % c->out_capacity;
    c->out_count--;
    c->out_size -= frame->size;
    c->out_done = 0;
    master_frame_release(frame);
}

void master_conn_free(struct master_conn *c)
{
    while (c->out_count > 0) out_pop(c);
    free(c->out);
    free(c->in);
    free(c);
}

static bool out_grow(struct master_conn *c)
{
    uint32_t capacity = c->out_capacity > 0 ? 2 * c->out_capacity : 8;
    if (c->out_count >= c->out_frames_max) return false;
    if (capacity > c->out_frames_max) capacity = c->out_frames_max;
    struct master_frame **out = malloc(capacity * sizeof(*out));
    if (!out) return false;
    for (uint32_t i = 0; i < c->out_count; i++)
        out[i] = c->out[(c->out_first + i) % c->out_capacity];
    free(c->out);
    c->out = out;
    c->out_first = 0;
    c->out_capacity = capacity;
    return true;
}

bool master_conn_queue(struct master_conn *c, struct master_frame *frame)
{
    if (c->out_size + frame->size > c->out_max) return false;
    if (c->out_count == c->out_capacity && !out_grow(c)) return false;
    c->out[(c->out_first + c->out_count++) % c->out_capacity] = frame;
    c->out_size += frame->size;
    frame->refs++;
    return true;
}

uint32_t master_conn_parts(const struct master_conn *c,
                           struct master_chunk *parts, uint32_t most)
{
    size_t skip = c->out_done;
    uint32_t count = 0;
    const struct master_conn *from = c->partner;
    if (c->relays) {
        if (!from || from->in_size == from->in_done) return 0;
        *parts = (struct master_chunk){from->in + from->in_done,
                                       from->in_size - from->in_done};
        return 1;
    }
    for (; count < c->out_count && count < most; count++) {
        const struct master_frame *f =
            c->out[(c->out_first + count) % c->out_capacity];
        parts[count] = (struct master_chunk){f->bytes + skip, f->size - skip};
        skip = 0;
    }
    return count;
}

void master_conn_sent(struct master_conn *c, size_t size)
{
    struct master_conn *from = c->partner;
    if (c->relays) {
        from->in_done += size;
        if (from->in_done == from->in_size) from->in_done = from->in_size = 0;
        return;
    }
    c->out_done += size;
    while (c->out_count > 0 && c->out_done >= c->out[c->out_first]->size) {
        size_t rest = c->out_done - c->out[c->out_first]->size;
        out_pop(c);
        c->out_done = rest;
    }
}

void master_conn_relay(struct master_conn *c)
{
    c->relays = true;
    memmove(c->in, c->in + c->in_done, c->in_size - c->in_done);
    c->in_size -= c->in_done;
    c->in_done = 0;
}

bool master_conn_reads(const struct master_conn *c)
{
    return !c->relays || c->in_size - c->in_done < c->in_capacity;
}

static bool widen(struct master_conn *c)
{
    if (c->in_capacity >= CONN_RELAY_MAX) return true;
    uint8_t *in = realloc(c->in, CONN_RELAY_MAX);
    if (!in) return false;
    c->in = in;
    c->in_capacity = CONN_RELAY_MAX;
    return true;
}

bool master_conn_join(struct master_conn *c, struct master_conn *partner)
{
    if (!widen(c) || !widen(partner)) return false;
    c->partner = partner;
    partner->partner = c;
    return true;
}

uint8_t *master_conn_room(struct master_conn *c, size_t *size)
{
    if (c->relays && c->in_size == c->in_capacity) {
        memmove(c->in, c->in + c->in_done, c->in_size - c->in_done);
        c->in_size -= c->in_done;
        c->in_done = 0;
    }
    if (!c->in) {
        c->in = malloc(CONN_IN_START);
        c->in_capacity = c->in ? CONN_IN_START : 0;
    }
    PCCL_ASSERT(!c->in || c->in_size < c->in_capacity);
    *size = c->in_capacity - c->in_size;
    return c->in ? c->in + c->in_size : NULL;
}

void master_conn_received(struct master_conn *c, size_t size)
{
    PCCL_ASSERT(size <= c->in_capacity - c->in_size);
    c->in_size += size;
}

enum wire_status master_conn_next(struct master_conn *c,
                                  struct wire_store *store,
                                  struct wire_msg *msg)
{
    size_t used = 0;
    enum wire_status status = wire_decode(
        c->in + c->in_done, c->in_size - c->in_done, store, msg, &used);
    if (status == WIRE_OK) c->in_done += used;
    return status;
}

bool master_conn_make_room(struct master_conn *c, size_t limit)
{
    size_t left = c->in_size - c->in_done;
    memmove(c->in, c->in + c->in_done, left);
    c->in_size = left;
    c->in_done = 0;
    if (left >= limit) return false;
    /* The buffer is full without a complete frame: the decoder accepted a
     * larger frame size. Memory grows with the bytes received, not with the
     * size announced. */
    size_t capacity = c->in_capacity;
    if (left == capacity) capacity *= 2;
    if (left == 0) capacity = CONN_IN_START;
    if (capacity > WIRE_FRAME_MAX) capacity = WIRE_FRAME_MAX;
    if (capacity == c->in_capacity) return true;
    uint8_t *in = realloc(c->in, capacity);
    if (!in) return false;
    c->in = in;
    c->in_capacity = capacity;
    return true;
}
