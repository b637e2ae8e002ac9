/* scarce.c - see scarce.h. */
#include "scarce.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* A page. The memory of malloc() never begins with one: it has a head. */
enum { LARGE = 128 * 1024, LARGE_MAX = 1024, ALIGN = 4096 };

bool (*scarce_refuses)(void);

static struct {
    void *at;
    size_t size;
} large[LARGE_MAX];
static uint32_t large_end;

void *core_malloc(size_t size);
void *core_calloc(size_t count, size_t size);
void *core_realloc(void *old, size_t size);
void *core_aligned_alloc(size_t align, size_t size);
void core_free(void *memory);

static bool refused(void)
{
    return scarce_refuses && scarce_refuses();
}

void *scarce_zeros(size_t size)
{
    uint32_t i = 0;
    while (i < large_end && large[i].at) i++;
    if (SCARCE_CHECKED || size < LARGE || i == LARGE_MAX)
        return calloc(1, size);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    large[i].at = at;
    large[i].size = size;
    if (i == large_end) large_end++;
    return at;
}

void scarce_free(void *memory)
{
    bool may_be = memory && (uintptr_t)memory % ALIGN == 0;
    for (uint32_t i = 0; may_be && i < large_end; i++) {
        if (large[i].at != memory) continue;
        (void)munmap(memory, large[i].size);
        large[i].at = NULL;
        return;
    }
    free(memory);
}

void scarce_keeps(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
    (void)mallopt(M_TOP_PAD, 1024 * 1024);
#endif
}

void *core_malloc(size_t size)
{
    return refused() ? NULL : malloc(size);
}

void *core_calloc(size_t count, size_t size)
{
    if (refused()) return NULL;
    bool many = count > 0 && size > SIZE_MAX / count;
    return many ? calloc(count, size) : scarce_zeros(count * size);
}

/* No core enlarges what it has from calloc(). */
void *core_realloc(void *old, size_t size)
{
    return refused() ? NULL : realloc(old, size);
}

void *core_aligned_alloc(size_t align, size_t size)
{
    return refused() ? NULL : aligned_alloc(align, size);
}

void core_free(void *memory)
{
    scarce_free(memory);
}
