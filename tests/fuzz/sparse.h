/* sparse.h - large zeroed structs for one input after the other: only the pages
 * that an input has touched are zeroed again. */
#ifndef PCCL_FUZZ_SPARSE_H
#define PCCL_FUZZ_SPARSE_H

#include "../../src/base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct sparse {
    void *memory;
    size_t size;
};

/* Pages that have memory. A page fault costs more than to zero it again. */
static inline void sparse_clear(const struct sparse *s)
{
    static unsigned char resident[16384];
    enum { PAGE = 4096 };
    size_t pages = (s->size + PAGE - 1) / PAGE;
    if (pages > sizeof resident) abort();
    if (mincore(s->memory, s->size, resident) != 0) abort();
    for (size_t i = 0; i < pages; i++)
        if (resident[i] & 1) memset((char *)s->memory + i * PAGE, 0, PAGE);
}

/* Zeroed memory; the same each time, so that what the last input has left there
 * is gone. */
static inline void *sparse_take(struct sparse *s, size_t size)
{
    if (s->memory) {
        sparse_clear(s);
        return s->memory;
    }
    s->size = size;
    s->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->memory == MAP_FAILED) abort();
    /* One touched byte is not to cost 2 MiB. */
    (void)madvise(s->memory, size, MADV_NOHUGEPAGE);
    return s->memory;
}

#endif
