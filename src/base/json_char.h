/* json_char.h - the characters of a text inside of a string of JSON. */
#ifndef PCCL_JSON_CHAR_H
#define PCCL_JSON_CHAR_H

#include "utf8.h"

#include <string.h>

enum { JSON_CHAR_MAX = 6 };

/* Takes a character from *text, which is not at its end, and returns how many
 * bytes of `to` it fills. Texts are of others: a byte that is no character of
 * UTF-8 is U+FFFD. */
static inline size_t json_char(const char **text, char to[JSON_CHAR_MAX])
{
    static const char digits[] = "0123456789abcdef";
    const char *at = *text;
    size_t length = utf8_length(at);
    unsigned c = length > 0 ? (unsigned char)*at : 0xfffd;
    *text += length > 0 ? length : 1;
    if (c == '"' || c == '\\') {
        to[0] = '\\';
        to[1] = *at;
        return 2;
    }
    if (length > 0 && c >= ' ') {
        memcpy(to, at, length);
        return length;
    }
    to[0] = '\\';
    to[1] = 'u';
    for (unsigned i = 0; i < 4; i++) to[2 + i] = digits[c >> (12 - 4 * i) & 15];
    return JSON_CHAR_MAX;
}

#endif
