/* own_clock.c - see own_clock.h. */
#include "own_clock.h"

pccl_ns own_clock_at(struct own_clock *c, pccl_ns host, pccl_ns late)
{
    pccl_ns own = host - c->slept;
    if (c->due != PCCL_NEVER && own - c->due > late) {
        pccl_ns awake = c->due > c->last ? c->due : c->last;
        pccl_ns gap = own - awake;
        c->slept += gap;
        c->gap += gap;
        own = awake;
    }
    c->last = own;
    return own;
}

pccl_ns own_clock_take(struct own_clock *c)
{
    pccl_ns gap = c->gap;
    c->gap = 0;
    return gap;
}
