/* scarce.c - see scarce.h. */
#include "scarce.h"

#include <stdlib.h>

bool (*scarce_refuses)(void);

void *core_malloc(size_t size);
void *core_calloc(size_t count, size_t size);
void *core_realloc(void *old, size_t size);
void *core_aligned_alloc(size_t align, size_t size);

static bool refused(void)
{
    return scarce_refuses && scarce_refuses();
}

void *core_malloc(size_t size)
{
    return refused() ? NULL : malloc(size);
}

void *core_calloc(size_t count, size_t size)
{
    return refused() ? NULL : calloc(count, size);
}

void *core_realloc(void *old, size_t size)
{
    return refused() ? NULL : realloc(old, size);
}

void *core_aligned_alloc(size_t align, size_t size)
{
    return refused() ? NULL : aligned_alloc(align, size);
}
