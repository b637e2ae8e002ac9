/* pool_exact.c - in the place of base/pool.c: blocks that are given back are
 * not kept, because which ones are kept tells the past and changes nothing. */
#include "../../../src/base/pool.h"

#include <stdlib.h>

void *pool_take(struct pool *p, size_t size)
{
    (void)p;
    return malloc(size > 0 ? size : 1);
}

void pool_give(struct pool *p, void *memory)
{
    (void)p;
    free(memory);
}

void pool_discard(void *memory)
{
    free(memory);
}

void pool_age(struct pool *p, pccl_ns now)
{
    (void)p;
    (void)now;
}

void pool_trim(struct pool *p)
{
    (void)p;
}
