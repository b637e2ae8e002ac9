/* append.h - puts formatted text behind a text in a buffer of fixed size. */
#ifndef PCCL_APPEND_H
#define PCCL_APPEND_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Truncates at the end of the buffer; `size` has the 0 in it. */
__attribute__((format(printf, 3, 4))) static inline void
append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

#endif
