/* pool.c - free lists of private memory, by power-of-two size. */
#include "pool.h"

#include "buggify.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Precedes every block and keeps its alignment. */
struct pool_block {
    struct pool_block *next;
    uint32_t class;
    uint8_t pad[64 - sizeof(void *) - sizeof(uint32_t)];
};
_Static_assert(sizeof(struct pool_block) == 64, "blocks stay aligned");

enum { HUGE_CLASS = 21 }; /* 2 MiB: the kernel can use a huge page */

static uint32_t class_of(size_t size)
{
    if (size <= (size_t)1 << POOL_CLASS_MIN) return POOL_CLASS_MIN;
    uint32_t class = 64 - (uint32_t)__builtin_clzll(size - 1);
    return class < POOL_CLASS_MAX ? class : POOL_CLASS_MAX;
}

void *pool_take(struct pool *p, size_t size)
{
    uint32_t class = class_of(size + sizeof(struct pool_block));
    size_t bytes = (size_t)1 << class;
    struct pool_list *list = &p->lists[class];
    struct pool_block *block = list->first;
    if (block && !PCCL_BUGGIFY(pool_empty)) {
        list->first = block->next;
        list->count--;
        if (list->idle > list->count) list->idle = list->count;
        p->cached -= bytes;
    } else {
        size_t align = class >= HUGE_CLASS ? (size_t)1 << HUGE_CLASS : 64;
        block = aligned_alloc(align, bytes);
        if (!block) return NULL;
        /* only a hint; small pages work as well */
        if (class >= HUGE_CLASS) (void)madvise(block, bytes, MADV_HUGEPAGE);
        block->class = class;
    }
    p->in_use += bytes;
    return block + 1;
}

void pool_give(struct pool *p, void *memory)
{
    if (!memory) return;
    struct pool_block *block = (struct pool_block *)memory - 1;
    size_t bytes = (size_t)1 << block->class;
    struct pool_list *list = &p->lists[block->class];
    block->next = list->first;
    list->first = block;
    list->count++;
    p->in_use -= bytes;
    p->cached += bytes;
}

void pool_discard(void *memory)
{
    if (memory) free((struct pool_block *)memory - 1);
}

static void free_some(struct pool *p, uint32_t class, uint32_t count)
{
    struct pool_list *list = &p->lists[class];
    for (; count > 0; count--) {
        struct pool_block *next = list->first->next;
        free(list->first);
        list->first = next;
        list->count--;
        p->cached -= (size_t)1 << class;
    }
}

void pool_age(struct pool *p, pccl_ns now)
{
    if (now - p->aged_at < POOL_IDLE && !PCCL_BUGGIFY(pool_aged)) return;
    p->aged_at = now;
    for (uint32_t i = 0; i <= POOL_CLASS_MAX; i++) {
        free_some(p, i, p->lists[i].idle);
        p->lists[i].idle = p->lists[i].count;
    }
}

void pool_trim(struct pool *p)
{
    for (uint32_t i = 0; i <= POOL_CLASS_MAX; i++) {
        free_some(p, i, p->lists[i].count);
        p->lists[i].idle = 0;
    }
}
