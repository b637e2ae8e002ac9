/* said.h - a text of what happens, line by line, that a test compares. */
#ifndef CORE_SAID_H
#define CORE_SAID_H

#include "../unit.h"

static char said[65536];

static inline void say(const char *format, ...)
{
    size_t used = strlen(said);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(said + used, sizeof said - used, format, args);
    va_end(args);
}

/* Since the last look. */
static inline void expect(const char *text)
{
    assert_string_equal(said, text);
    said[0] = '\0';
}

#endif
