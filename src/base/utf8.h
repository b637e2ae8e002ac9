/* utf8.h - which bytes are a character of UTF-8. */
#ifndef PCCL_UTF8_H
#define PCCL_UTF8_H

#include <stddef.h>

/* The bytes of the character at `at`, or 0: it is none. Overlong forms,
 * surrogates and what lies beyond U+10FFFF are none. A text ends with 0, which
 * is not read past. */
static inline size_t utf8_length(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80) return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
    size_t length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    unsigned low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    return length;
}

#endif
