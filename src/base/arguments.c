/* arguments.c - lists of named values. An argument is a byte of flags, a byte
 * with the size of its name and one with that of its text, the number of its
 * values (u16), then name, text and values (u64). */
#include "arguments.h"

#include "cursor.h"
#include "fnv.h"

enum { FLAG_LATE = 1, FLAG_CUT = 2, HEAD_SIZE = 5 };

struct head {
    uint8_t flags, name_size, text_size;
    uint16_t count;
};

static void head_field(struct cursor *c, struct head *h)
{
    cursor_u8(c, &h->flags);
    cursor_u8(c, &h->name_size);
    cursor_u8(c, &h->text_size);
    cursor_u16(c, &h->count);
}

/* Appends all but the values; false: the whole argument does not fit. */
static bool put(struct arguments *a, struct cursor *c, struct head *h,
                const char *name, const char *text)
{
    uint8_t bytes[ARGUMENT_NAME_MAX + ARGUMENT_TEXT_MAX];
    size_t names = strnlen(name, ARGUMENT_NAME_MAX);
    size_t texts = text ? strnlen(text, ARGUMENT_TEXT_MAX) : 0;
    memcpy(bytes, name, names);
    if (texts > 0) memcpy(bytes + names, text, texts);
    for (size_t i = 0; i < names + texts; i++)
        if (bytes[i] < ' ' || bytes[i] > '~') bytes[i] = '?';
    h->name_size = (uint8_t)names;
    h->text_size = (uint8_t)texts;
    *c = (struct cursor){.out = a->bytes + a->size,
                         .left = ARGUMENTS_SIZE - a->size};
    if (c->left < HEAD_SIZE + names + texts + (size_t)h->count * 8)
        return false;
    head_field(c, h);
    cursor_bytes(c, bytes, names + texts);
    return true;
}

void arguments_text(struct arguments *a, bool late, const char *name,
                    const char *text)
{
    struct cursor c;
    struct head h = {.flags = late ? FLAG_LATE : 0};
    if (put(a, &c, &h, name, text)) a->size += (uint32_t)c.done;
}

void arguments_values(struct arguments *a, bool late, const char *name,
                      const uint64_t *values, size_t count)
{
    struct cursor c;
    bool cut = count > ARGUMENT_VALUES_MAX;
    size_t whole = cut ? ARGUMENT_VALUES_MAX - 1 : count;
    struct head h = {
        .flags = (uint8_t)((late ? FLAG_LATE : 0) | (cut ? FLAG_CUT : 0)),
        .count = (uint16_t)(whole + cut)};
    if (!put(a, &c, &h, name, NULL)) return;
    for (size_t i = 0; i < whole + cut; i++) {
        uint64_t value =
            i < whole ? values[i]
                      : fnv_words(FNV_BEGIN, values + whole, count - whole);
        cursor_u64(&c, &value);
    }
    a->size += (uint32_t)c.done;
}

static bool read(const uint8_t *bytes, size_t size, struct argument *out,
                 size_t *used)
{
    struct cursor c = {.in = bytes, .left = size};
    struct head h = {0};
    head_field(&c, &h);
    size_t text_size = (size_t)h.name_size + h.text_size;
    if (c.failed || h.name_size > ARGUMENT_NAME_MAX ||
        h.text_size > ARGUMENT_TEXT_MAX || h.count > ARGUMENT_VALUES_MAX ||
        h.flags > (FLAG_LATE | FLAG_CUT) ||
        c.left < text_size + (size_t)h.count * 8)
        return false;
    const uint8_t *text = bytes + HEAD_SIZE;
    for (size_t i = 0; i < text_size; i++)
        if (text[i] < ' ' || text[i] > '~') return false;
    *used = HEAD_SIZE + text_size + (size_t)h.count * 8;
    *out = (struct argument){.name = (const char *)text,
                             .text = (const char *)text + h.name_size,
                             .name_size = h.name_size,
                             .text_size = h.text_size,
                             .values = text + text_size,
                             .count = h.count,
                             .cut = (h.flags & FLAG_CUT) && h.count > 0,
                             .late = h.flags & FLAG_LATE};
    return true;
}

bool arguments_next(const uint8_t *bytes, size_t size, size_t *at,
                    struct argument *out)
{
    size_t used = 0;
    if (*at >= size || !read(bytes + *at, size - *at, out, &used)) return false;
    *at += used;
    return true;
}

bool arguments_valid(const uint8_t *bytes, size_t size)
{
    struct argument one;
    size_t at = 0;
    while (arguments_next(bytes, size, &at, &one)) continue;
    return at == size && size <= ARGUMENTS_SIZE;
}

uint64_t argument_value(const struct argument *a, uint32_t i)
{
    struct cursor c = {.in = a->values + 8 * (size_t)i, .left = 8};
    uint64_t value = 0;
    cursor_u64(&c, &value);
    return value;
}
