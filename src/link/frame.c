/* frame.c - see frame.h. */
#include "frame.h"

#include "../base/cursor.h"

/* Written twice, so that each direction is only moves and swaps of bytes. */
__attribute__((always_inline)) static inline void frame_fields(struct cursor *c,
                                                               struct frame *f)
{
    uint8_t magic = FRAME_MAGIC;
    uint8_t version = FRAME_VERSION;
    uint32_t reserved = 0;
    cursor_u8(c, &magic);
    cursor_u8(c, &version);
    cursor_u8(c, &f->type);
    cursor_u8(c, &f->flags);
    cursor_u32(c, &f->epoch);
    cursor_u64(c, &f->tag);
    cursor_u32(c, &f->seq);
    cursor_u32(c, &f->index);
    cursor_u32(c, &f->size);
    cursor_u64(c, &f->digest);
    cursor_u64(c, &f->scope);
    cursor_u32(c, &reserved);
    if (magic != FRAME_MAGIC || version != FRAME_VERSION || reserved != 0)
        c->failed = true;
}

void frame_encode(const struct frame *f, uint8_t out[FRAME_SIZE])
{
    struct frame copy = *f;
    struct cursor c = {.out = out, .left = FRAME_SIZE};
    frame_fields(&c, &copy);
    PCCL_ASSERT(!c.failed && c.left == 0);
}

static void hello_fields(struct cursor *c, struct frame_hello *h)
{
    cursor_u64(c, &h->key[0]);
    cursor_u64(c, &h->key[1]);
    cursor_u64(c, &h->from);
    cursor_u64(c, &h->to);
}

void frame_hello_encode(const struct frame_hello *h,
                        uint8_t out[FRAME_HELLO_SIZE])
{
    struct frame_hello copy = *h;
    struct cursor c = {.out = out, .left = FRAME_HELLO_SIZE};
    hello_fields(&c, &copy);
}

struct frame_hello frame_hello_decode(const uint8_t in[FRAME_HELLO_SIZE])
{
    struct frame_hello h = {{0, 0}, 0, 0};
    struct cursor c = {.in = in, .left = FRAME_HELLO_SIZE};
    hello_fields(&c, &h);
    return h;
}

bool frame_decode(const uint8_t in[FRAME_SIZE], struct frame *f)
{
    struct cursor c = {.in = in, .left = FRAME_SIZE};
    frame_fields(&c, f);
    if (c.failed || f->type == 0 || f->type >= FRAME_TYPE_COUNT) return false;
    if (f->type == FRAME_HELLO || f->type == FRAME_RELAY)
        return f->size == FRAME_HELLO_SIZE;
    if (f->type == FRAME_FILL) return f->size <= FRAME_FILL_SIZE;
    if (f->type == FRAME_DATA || f->type == FRAME_MESSAGE ||
        f->type == FRAME_RNDV || f->type == FRAME_STATE_DATA ||
        f->type == FRAME_PROBE || f->type == FRAME_BLOCK ||
        f->type == FRAME_PART_DATA)
        return f->size <= FRAME_BODY_MAX;
    return f->size == 0;
}
