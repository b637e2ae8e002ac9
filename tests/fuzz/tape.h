/* tape.h - the input of a fuzzer as a sequence of records: what happens to one
 * member, or to the coordinator.
 *
 * The simulator records tapes (recorder.c), a fuzzer plays them, and mutate.c
 * changes them: it knows where a record ends, and leaves most of a tape as it
 * is, so that what follows still has a meaning. A record is its kind, an
 * argument, the size of what follows (2 bytes) and that; numbers are
 * little-endian. Any bytes are a tape: the last record may be cut. */
#ifndef PCCL_FUZZ_TAPE_H
#define PCCL_FUZZ_TAPE_H

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { TAPE_HEAD = 4, TAPE_SIZE_MAX = UINT16_MAX };

/* What happens to a member. The argument is a connection unless it says
 * otherwise. */
enum member_kind {
    MEMBER_CONFIG, /* first: see member_config() in member.c */
    MEMBER_TICK,   /* ns since the last one (4) */
    MEMBER_MASTER, /* a message of the coordinator */
    MEMBER_MASTER_GONE,
    MEMBER_SETTLE,
    MEMBER_ACCEPTED,
    MEMBER_DIALED, /* success (1), round trip in ns (4) */
    MEMBER_CLOSED,
    MEMBER_BYTES, /* what the other end has sent */
    MEMBER_DRY,
    MEMBER_SENT, /* bytes that leave (4) */
    MEMBER_LAUNCH,
    MEMBER_FAST, /* as LAUNCH, on the fast path if it can be */
    MEMBER_POLL,
    MEMBER_CONVERT,
    MEMBER_TAKE, /* tag (8) */
    MEMBER_FAIL, /* tag (8) */
    MEMBER_WAITS,
    MEMBER_VOTE, /* argument: kind */
    MEMBER_LEAVE,
    MEMBER_SYNC, /* argument: strategy; revision (8), tensors */
    MEMBER_SYNC_TAKE,
    MEMBER_POST,  /* argument: size of the header; member (8), bytes */
    MEMBER_EVENT, /* takes one */
    MEMBER_PROGRESS,
    MEMBER_RECORDED,              /* the simulator records what is above */
    MEMBER_SAY = MEMBER_RECORDED, /* a frame that fits what is going on */
    MEMBER_MASTER_SAYS,           /* likewise, a message of the coordinator */
    MEMBER_MEMORY, /* another process writes into shared memory */
    MEMBER_REGION, /* ... into its own region */
    MEMBER_SEND,   /* a rendezvous; argument: member; key, size */
    MEMBER_RECV,
    MEMBER_CANCEL,
    MEMBER_GREET, /* a HELLO that is right */
    /* Recorded as well. Inputs of the corpus have the numbers of all before. */
    MEMBER_PARTIAL,      /* a partial all-reduce; argument: in place */
    MEMBER_PARTIAL_TAKE, /* tag (8) */
    MEMBER_OFFER,        /* revision (8), rate (8), share (4), tensors */
    MEMBER_OFFER_END,
    MEMBER_SAMPLES,  /* step, count, target (8 each) */
    MEMBER_RESUME,   /* calls the next coordinator; bits of the argument: 1, the
                        last one was lost with a grace, 2, RESUMED follows, 4,
                        which says that INSTALL does */
    MEMBER_SAY_FAST, /* what a fast operation waits for; argument: endpoint, or
                        128 and more: of all; how odd it is (1), bytes */
    MEMBER_KIND_COUNT,
};

/* What happens to the coordinator. The argument is a link, unless it says
 * otherwise. */
enum master_kind {
    COORD_CONFIG, /* argument: quorum; probes (1), key (16), deadline ms (2),
                   bits (1): a job; relays;
                     a grace; warns; tokens; a minimum; few descriptors */
    COORD_CONNECTED,
    COORD_RECEIVED, /* a message */
    COORD_CLOSED,
    COORD_TICK,
    COORD_QUORUM,   /* argument: quorum */
    COORD_SEARCHED, /* argument: found; order (2 bytes each) */
    COORD_EVIDENCE, /* argument: evidence; id (8) */
    COORD_RECORDED,
    COORD_SAY = COORD_RECORDED, /* a message that fits what is going on */
    COORD_PARTIAL,              /* likewise, of a partial all-reduce */
    COORD_RELAY,                /* likewise, a RELAY before HELLO */
    COORD_CROWD,                /* argument: how many connect */
    COORD_SETTLE, /* all say what they owe; argument: mood, 16: a second has
                     passed; more of the mood */
    COORD_GRANT,  /* argument: link; rights, group (1: any), name; 255: it is
                     expelled */
    COORD_KIND_COUNT,
};

struct tape_record {
    uint8_t kind, arg;
    uint16_t size;
    const uint8_t *bytes;
};

/* False: the tape is over. */
static inline bool tape_next(struct fuzz_input *in, struct tape_record *r)
{
    if (in->left < TAPE_HEAD) return false;
    r->kind = fuzz_u8(in);
    r->arg = fuzz_u8(in);
    r->size = fuzz_u16(in);
    if (r->size > in->left) r->size = (uint16_t)in->left;
    r->bytes = in->at;
    in->at += r->size;
    in->left -= r->size;
    return true;
}

static inline size_t tape_put(uint8_t *to, uint8_t kind, uint8_t arg,
                              const void *bytes, uint16_t size)
{
    to[0] = kind;
    to[1] = arg;
    to[2] = (uint8_t)size;
    to[3] = (uint8_t)(size >> 8);
    if (size > 0) memcpy(to + TAPE_HEAD, bytes, size);
    return TAPE_HEAD + (size_t)size;
}

/* Each fuzzer of tapes has these, for mutate.c. */
/* The number of kinds, and one record of that kind, of random fields that may
 * make sense: writes at most TAPE_HEAD + TAPE_SIZE_MAX bytes to `to`. */
extern const uint8_t tape_kinds;
size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to);
/* Changes one field of a message in the record, if it has one. */
void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size);

/* xorshift64*; never 0. */
static inline uint64_t tape_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u >> 16;
}

static inline uint32_t tape_pick(uint64_t *state, uint32_t count)
{
    return (uint32_t)(tape_random(state) % count);
}

/* A number of `width` bytes at the boundary of something, or beside the one
 * that is there. */
void tape_vary_number(uint64_t *random, uint8_t *at, size_t width);

#endif
