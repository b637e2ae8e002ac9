/* net.h - byte streams of the simulator: TCP as it can behave.
 *
 * Bytes arrive in order, cut anywhere, late, and not at all after a reset. */
#ifndef PCCL_SIM_NET_H
#define PCCL_SIM_NET_H

#include "../../../src/base/base.h"

enum { NET_STREAMS_MAX = 4096, NET_BUFFER_MAX = 4 * 1024 * 1024 };

struct net_pipe {
    uint8_t *bytes;
    size_t first, count, capacity;
    size_t limit;       /* bytes in flight at most, as socket buffers do */
    pccl_ns open_at;    /* stalled until then */
    bool ended;         /* the writer is gone; bytes in flight still come */
    pccl_ns deaf_until; /* the reader is gone, and the writer does not know */
    bool spoilt;        /* a header in it is none... */
    size_t sound;       /* ... which ends behind these bytes */
    bool holed;         /* a packet that does not pass blocks what follows... */
    size_t before;      /* ... these bytes, which still come */
};

enum { NET_MASTER = -1, NET_NOBODY = -2, NET_DIALED = -3, NET_CALLER = -4 };

struct net_end {
    int proc;      /* or one of these; NOBODY: it is gone */
    uint32_t conn; /* number there, UINT32_MAX: not accepted yet */
};

struct net_stream {
    bool used, control; /* control: to the master */
    bool pending;       /* not accepted yet */
    bool silent;        /* whoever takes it never answers */
    struct net_end end[2];
    uint32_t uid[2];         /* processes of a data stream */
    uint32_t joins;          /* the process whose HELLO it carries, or 0 */
    struct net_pipe pipe[2]; /* pipe[i] carries the bytes of end[i] */
};

/* splitmix64: Steele, Lea & Flood, OOPSLA 2014. Here, for a constant count is
 * no division: a universe draws several times a step. */
static inline uint64_t net_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0..count-1 */
static inline uint32_t net_pick(uint64_t *state, uint32_t count)
{
    return (uint32_t)(net_random(state) % count);
}

size_t net_write(struct net_pipe *p, const uint8_t *from, size_t size);
size_t net_read(struct net_pipe *p, uint8_t *to, size_t size);
void net_cut(struct net_pipe *p, size_t keep); /* loses all but the first */
void net_free(struct net_stream *s);

#endif
