/* launch_memory.c - allocation that exits on failure, and what it says. */
#include "launch_base.h"

#include "../base/lacking.h"

#include <ev.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void complain(const char *format, ...)
{
    char line[MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "pccl-master: %s\n", line);
}

static void *checked(void *memory)
{
    char text[256];
    if (memory) return memory;
    lacking_text(text, sizeof text, "the launcher", LACKING_MEMORY);
    complain("%s", text);
    exit(EXIT_FAILURE);
}

static void *loop_memory(void *old, long size)
{
    if (size > 0) return checked(realloc(old, (size_t)size));
    free(old);
    return NULL;
}

void memory_for_loops(void)
{
    ev_set_allocator(loop_memory);
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
