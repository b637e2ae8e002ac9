/* net.c - see net.h. */
#include "net.h"

#include <stdlib.h>
#include <string.h>

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
