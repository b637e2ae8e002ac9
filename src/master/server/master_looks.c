/* master_looks.c - see master_looks.h. */
#include "master_looks.h"

void looks_add(struct master_looks *l, const struct wire_member *peer)
{
    if (l->count == ARRAY_COUNT(l->list)) return;
    l->list[l->count++] =
        (struct master_look){peer->id, peer->host & ~(uint64_t)1, peer->pid};
}

const struct master_look *looks_take(struct master_looks *l, pccl_ns now,
                                     enum evidence *seen)
{
    if (l->count == 0) return NULL;
    const struct master_look *look = &l->list[--l->count];
    if (look->host == l->host) *seen = host_look(&l->watch, look->pid, now);
    return look;
}
