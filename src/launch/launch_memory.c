/* launch_memory.c - allocation that exits on failure. */
#include "launch_base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
    if (memory) return memory;
    fputs("pccl-master: out of memory\n", stderr);
    exit(EXIT_FAILURE);
}

void *memory_get(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size));
}

void *memory_grow(void *old, size_t count, size_t size)
{
    return checked(reallocarray(old, count, size));
}

char *memory_text(const char *text)
{
    return checked(strdup(text));
}

char *memory_print(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    return checked(length < 0 ? NULL : text);
}
