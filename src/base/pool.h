/* pool.h - private memory that is kept, so that it is faulted in only once.
 *
 * Sizes are rounded up to powers of two; freed blocks wait in one list per
 * size. Not thread-safe: one pool per communicator, under its lock. */
#ifndef PCCL_POOL_H
#define PCCL_POOL_H

#include "base.h"

enum {
    POOL_CLASS_MIN = 8, /* log2 of the smallest block */
    POOL_CLASS_MAX = 48,
};

struct pool {
    struct pool_block *lists[POOL_CLASS_MAX + 1];
    size_t cached; /* bytes waiting in the lists */
    size_t in_use;
};

/* Uninitialized memory, aligned to 64 bytes; NULL when there is none. */
void *pool_take(struct pool *p, size_t size);
void pool_give(struct pool *p, void *block); /* NULL is fine */

/* Frees what waits; what is in use stays valid. */
void pool_trim(struct pool *p);

#endif
