/* file_pattern.c - see file_pattern.h. */
#include "file_pattern.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The text in the place of % and `letter`. */
static const char *value_of(char letter, const char *rank, char *scratch,
                            size_t size)
{
    switch (letter) {
    case 'r':
        return rank;
    case 'p':
        (void)snprintf(scratch, size, "%d", (int)getpid());
        return scratch;
    case 'h':
        if (gethostname(scratch, size - 1) != 0) return "localhost";
        scratch[size - 1] = '\0';
        return scratch;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

bool file_pattern(char *to, size_t size, const char *pattern, const char *rank)
{
    char scratch[256] = "";
    size_t used = 0;
    for (const char *at = pattern; *at != '\0'; at++) {
        const char *value = NULL;
        if (*at == '%') value = value_of(at[1], rank, scratch, sizeof scratch);
        size_t length = value ? strlen(value) : 1;
        if (used + length >= size) return false;
        memcpy(to + used, value ? value : at, length);
        used += length;
        if (value) at++;
    }
    to[used] = '\0';
    return true;
}
