/* growing_text.h - a text that grows; out of memory shows at its end. */
#ifndef PCCL_GROWING_TEXT_H
#define PCCL_GROWING_TEXT_H

#include "json_char.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed before; text_free() after. */
struct growing_text {
    char *bytes; /* ends with a 0 that `size` does not count; or NULL */
    size_t size, room;
    bool failed; /* out of memory: bytes are missing */
};

__attribute__((format(printf, 2, 3))) static inline void
text_add(struct growing_text *t, const char *format, ...)
{
    for (int tries = 0; tries < 2 && !t->failed; tries++) {
        va_list args;
        va_start(args, format);
        size_t left = t->room - t->size;
        int n =
            vsnprintf(left > 0 ? t->bytes + t->size : NULL, left, format, args);
        va_end(args);
        if (n < 0) break;
        if ((size_t)n < left) {
            t->size += (size_t)n;
            return;
        }
        size_t room = 2 * (t->size + (size_t)n + 1);
        char *more = realloc(t->bytes, room);
        if (!more) break;
        t->bytes = more;
        t->room = room;
    }
    t->failed = true;
}

/* Adds bytes as they are, as fast as they can be copied. */
static inline void text_add_bytes(struct growing_text *t, const char *bytes,
                                  size_t size)
{
    if (t->failed) return;
    if (t->room - t->size <= size) {
        size_t room = 2 * (t->size + size + 1);
        char *more = realloc(t->bytes, room);
        t->failed = !more;
        if (!more) return;
        t->bytes = more;
        t->room = room;
    }
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    t->bytes[t->size] = '\0';
}

/* Between quotes, as JSON has it. */
static inline void text_add_json(struct growing_text *t, const char *text)
{
    char one[JSON_CHAR_MAX];
    text_add_bytes(t, "\"", 1);
    while (*text != '\0') {
        size_t size = json_char(&text, one);
        text_add_bytes(t, one, size);
    }
    text_add_bytes(t, "\"", 1);
}

static inline void text_free(struct growing_text *t)
{
    free(t->bytes);
    *t = (struct growing_text){0};
}

#endif
