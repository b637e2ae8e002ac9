/* pool.h - a cache of private memory, so that pages are faulted in only once.
 *
 * Sizes are rounded up to powers of two; each size has a list of free blocks.
 * Not thread-safe: one pool per communicator, under its lock. */
#ifndef PCCL_POOL_H
#define PCCL_POOL_H

#include "base.h"

enum {
    POOL_CLASS_MIN = 8, /* log2 of the smallest block */
    POOL_CLASS_MAX = 48,
};
/* Longer than the pause between two uses that belong together: two steps of a
 * training, say. */
#define POOL_IDLE (30 * PCCL_S)

struct pool {
    struct pool_list {
        struct pool_block *first;
        uint32_t count;
        uint32_t idle; /* least count since aged_at: not needed since then */
    } lists[POOL_CLASS_MAX + 1];
    size_t cached; /* bytes in the free lists */
    size_t in_use;
    pccl_ns aged_at;
};

/* Uninitialized memory, aligned to 64 bytes; NULL: no memory. */
void *pool_take(struct pool *p, size_t size);
void pool_give(struct pool *p, void *block); /* NULL is fine */
void pool_discard(void *block);              /* its pool is gone; likewise */

/* Frees the blocks that were not used for POOL_IDLE, or twice as long. Called
 * now and then. */
void pool_age(struct pool *p, pccl_ns now);

/* Frees the blocks in the lists; blocks in use stay valid. */
void pool_trim(struct pool *p);

#endif
