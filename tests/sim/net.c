/* net.c - see net.h. */
#include "net.h"

#include <stdlib.h>
#include <string.h>

/* splitmix64: Steele, Lea & Flood, OOPSLA 2014. */
uint64_t net_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t net_pick(uint64_t *state, uint32_t count)
{
    return (uint32_t)(net_random(state) % count);
}

bool net_chance(uint64_t *state, uint32_t per_mille)
{
    return net_pick(state, 1000) < per_mille;
}

size_t net_write(struct net_pipe *p, const uint8_t *from, size_t size)
{
    size_t room = p->limit > p->count ? p->limit - p->count : 0;
    if (size > room) size = room;
    if (p->first + p->count + size > p->capacity) {
        if (p->count > 0) memmove(p->bytes, p->bytes + p->first, p->count);
        p->first = 0;
        if (p->count + size > p->capacity) {
            p->capacity = 2 * (p->count + size);
            p->bytes = realloc(p->bytes, p->capacity);
            assert(p->bytes);
        }
    }
    if (size > 0) memcpy(p->bytes + p->first + p->count, from, size);
    p->count += size;
    return size;
}

size_t net_read(struct net_pipe *p, uint8_t *to, size_t size)
{
    if (size > p->count) size = p->count;
    if (size > 0) memcpy(to, p->bytes + p->first, size);
    p->first += size;
    p->count -= size;
    return size;
}

void net_cut(struct net_pipe *p, size_t keep)
{
    if (p->count > keep) p->count = keep;
}

void net_free(struct net_stream *s)
{
    free(s->pipe[0].bytes);
    free(s->pipe[1].bytes);
    memset(s, 0, sizeof *s);
}
