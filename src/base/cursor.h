/* cursor.h - one cursor to encode (out), decode (in) or measure (neither).
 *
 * `failed` is sticky and read once, at the end, so a message body is a plain
 * list of fields for both directions. Big-endian. */
#ifndef PCCL_CURSOR_H
#define PCCL_CURSOR_H

#include "base.h"

#include <string.h>

struct cursor {
    uint8_t *out;
    const uint8_t *in;
    size_t left;
    size_t done;
    bool failed;
};

enum { CURSOR_SWAPS = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

/* A load and a swap, a swap and a store: a compiler does not make them of
 * shifts. */
__attribute__((always_inline)) static inline uint64_t
cursor_load(const uint8_t *in, size_t width)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (width) {
    case 1:
        return *in;
    case 2:
        memcpy(&two, in, sizeof two);
        return CURSOR_SWAPS ? __builtin_bswap16(two) : two;
    case 4:
        memcpy(&four, in, sizeof four);
        return CURSOR_SWAPS ? __builtin_bswap32(four) : four;
    default:
        memcpy(&eight, in, sizeof eight);
        return CURSOR_SWAPS ? __builtin_bswap64(eight) : eight;
    }
}

__attribute__((always_inline)) static inline void
cursor_store(uint8_t *out, uint64_t value, size_t width)
{
    uint64_t wide = value << (64 - 8 * width);
    if (CURSOR_SWAPS) wide = __builtin_bswap64(wide);
    memcpy(out, &wide, width);
}

__attribute__((always_inline)) static inline void
cursor_field(struct cursor *c, uint64_t *value, size_t width)
{
    if (width > c->left) {
        c->failed = true;
        c->left = 0;
        if (c->in) *value = 0;
        return;
    }
    if (c->out) {
        cursor_store(c->out, *value, width);
        c->out += width;
    }
    if (c->in) {
        *value = cursor_load(c->in, width);
        c->in += width;
    }
    c->left -= width;
    c->done += width;
}

#define CURSOR_UINT(name, type)                                                \
    __attribute__((always_inline)) static inline void cursor_##name(           \
        struct cursor *c, type *value)                                         \
    {                                                                          \
        uint64_t wide = (uint64_t)*value;                                      \
        cursor_field(c, &wide, sizeof(type));                                  \
        if (c->in) *value = (type)wide;                                        \
    }
CURSOR_UINT(u8, uint8_t)
CURSOR_UINT(u16, uint16_t)
CURSOR_UINT(u32, uint32_t)
CURSOR_UINT(i32, int32_t)
CURSOR_UINT(u64, uint64_t)
#undef CURSOR_UINT

/* Fails on any byte but 0 and 1, so that every flipped bit is detected. */
static inline void cursor_flag(struct cursor *c, bool *value)
{
    uint8_t byte = !c->in && *value ? 1 : 0;
    cursor_u8(c, &byte);
    if (!c->in) return;
    if (byte > 1) c->failed = true;
    *value = byte == 1;
}

/* Bytes that stay where they are: decoded, *bytes points into the input. */
static inline void cursor_raw(struct cursor *c, const uint8_t **bytes,
                              size_t size)
{
    if (size > c->left) {
        c->failed = true;
        c->left = 0;
        return;
    }
    if (c->out && size > 0) memcpy(c->out, *bytes, size);
    if (c->out) c->out += size;
    if (c->in) {
        *bytes = c->in;
        c->in += size;
    }
    c->left -= size;
    c->done += size;
}

static inline void cursor_bytes(struct cursor *c, uint8_t *bytes, size_t size)
{
    const uint8_t *at = bytes;
    cursor_raw(c, &at, size);
    if (at != bytes && size > 0) memcpy(bytes, at, size);
}

/* The number that was read is below `count`. */
static inline void cursor_limit(struct cursor *c, uint32_t value,
                                uint32_t count)
{
    if (value >= count) c->failed = true;
}

#endif
