/* fence.h - the parties of test_fence, and what is under way between them. */
#ifndef CORE_FENCE_H
#define CORE_FENCE_H

#include "../unit.h"

#include "../../../src/elastic/session.h"
#include "../../../src/master/master.h"

#include <stdlib.h>
#include <string.h>

enum {
    MASTERS = 3,
    MEMBERS = 5,
    CONNS = 64,
    DEADLINE = 100, /* ms */
    GRACE = 12 * DEADLINE,
    FAULTY = 60000,   /* steps with faults */
    SETTLE = 1000000, /* then so many at most */
    UNIVERSES = 400,
    FRAMES = 1024,
};

/* Messages, one after the other, as encoded frames. */
struct pipe {
    uint8_t *frames[FRAMES];
    size_t sizes[FRAMES];
    uint32_t count;
};

static inline void put(struct pipe *p, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size = wire_encode(msg, frame);
    assert_true(p->count < FRAMES);
    p->frames[p->count] = malloc(size);
    assert_non_null(p->frames[p->count]);
    memcpy(p->frames[p->count], frame, size);
    p->sizes[p->count++] = size;
}

static inline void clear(struct pipe *p)
{
    while (p->count > 0) free(p->frames[--p->count]);
}

/* The first frame; false: there is none. */
static inline bool take(struct pipe *p, struct wire_store *store,
                        struct wire_msg *msg, uint8_t **bytes)
{
    size_t used;
    if (p->count == 0) return false;
    *bytes = p->frames[0];
    assert_int_equal(wire_decode(*bytes, p->sizes[0], store, msg, &used),
                     WIRE_OK);
    p->count--;
    memmove(p->frames, p->frames + 1, p->count * sizeof p->frames[0]);
    memmove(p->sizes, p->sizes + 1, p->count * sizeof p->sizes[0]);
    return true;
}

struct conn {
    bool used;
    uint32_t member, master, link;
    bool cut;          /* nothing passes */
    bool ends[2];      /* closed by the member; by the master */
    struct pipe to[2]; /* the master; the member */
};

struct member {
    struct session *keeps; /* of which only the record is used */
    struct conn *conn;
    uint32_t turn, epoch, proposed;
    uint32_t calls, vote; /* the number of the one that it waits in, or 0 */
    uint64_t id, term;
    struct wire_key secret;
    bool resuming, installs, gone, silent;
    pccl_ns asked, lost_at; /* it lost its master, or 0 */
};

struct side {
    struct master *m;
    pccl_ns sleeps_until;
    uint64_t led; /* the term of its last take-over that was counted */
};

static inline void forget(struct conn *c)
{
    clear(&c->to[0]);
    clear(&c->to[1]);
    c->used = false;
}

#endif
