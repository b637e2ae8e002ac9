/* frame.h - header of the frames between peers, and its codec.
 *
 * Every frame is a header of FRAME_SIZE bytes, big-endian, and `size` bytes
 * of body. */
#ifndef PCCL_FRAME_H
#define PCCL_FRAME_H

#include "../base/base.h"

#include <string.h>

enum {
    FRAME_SIZE = 48,
    FRAME_MAGIC = 0xb5,
    FRAME_VERSION = 1,
    FRAME_BODY_MAX = PLAN_SEGMENT_MAX,
    FRAME_HELLO_SIZE = 32, /* body of HELLO: key, sender, receiver */
    /* Body of FILL. More than the largest packet of Ethernet (9000), so that
     * it takes a full one; and no more than TCP sends at once at first. */
    FRAME_FILL_SIZE = 12 * 1024,
};

enum frame_type {
    FRAME_HELLO = 1, /* first on a connection, in both directions */
    FRAME_DATA,  /* transfer `index` of operation (epoch, scope, tag, seq) */
    FRAME_READY, /* the sender has launched the operation */
    FRAME_DONE,  /* the sender, and index-1 before it, hold the result */
    FRAME_PING,
    /* Shared state (state.h): digest = synchronization, flags = kind, seq =
     * tensor, tag = offset, index = bytes asked for; no epoch. */
    FRAME_STATE_GET,
    FRAME_STATE_DATA, /* empty: the sender does not have it */
    /* Probes of a link (probe.h): seq = number of the probe; no epoch. */
    FRAME_PROBE, /* ballast; LAST: digest = bytes sent in index
                    microseconds, tag = round trip, ns */
    FRAME_ECHO,  /* to be sent back with FLAG_ANSWER */
    /* The sender's region (rule L7): seq, tag and digest as in a
     * HELLO; with FLAG_ANSWER: the sender has opened the other's. No epoch. */
    FRAME_REGION,
    /* On connections for messages only, see message.h. */
    FRAME_MESSAGE, /* index: bytes of the header at the start of the body */
    FRAME_EXPECT,  /* tag: key, index: number of the expect, digest: bytes */
    FRAME_CMA,     /* tag, index: the expect, digest: where the next CMA_PIECE
                       bytes of it lie in the sender's memory */
    FRAME_CANCEL,  /* tag, index: an expect that is cancelled */
    FRAME_REFUSE,  /* tag, index: an expect whose size is not the send's */
    FRAME_RNDV,    /* tag, index: the expect, digest: offset of the body */
    FRAME_GOT,     /* tag, index: an expect that is fulfilled */
    FRAME_ACK,
    FRAME_FILL, /* after HELLO: shows that full packets pass (rule R3d) */
    /* Between a member that offers its state and a guest, a newcomer that is
     * no member yet (rule S10); no epoch. scope = revision that is offered. */
    FRAME_OFFER,     /* digest: of the structure */
    FRAME_BLOCK_GET, /* seq = tensor, tag = offset, index = bytes, digest =
                        hash of what the guest has there */
    FRAME_BLOCK, /* the same seq, tag and index; empty: FLAG_ANSWER, it has that
                    hash; else it cannot be read */
    /* Partial all-reduce (partial.h): tag, scope = number of the round, seq =
     * part, flags = enum partial_data, digest = offset; no epoch. */
    FRAME_PART_GET,
    FRAME_PART_DATA, /* empty: the sender does not have it any more */
    /* First on a connection that the receiver is to relay (rule N11); scope =
     * id of the receiver; body as of HELLO: key, sender, the other end. */
    FRAME_RELAY,
    FRAME_TYPE_COUNT,
};

enum frame_flag {
    FLAG_CONFIRM = 1,  /* DATA: the sender wants a DONE from the receiver */
    FLAG_CLEAN = 2,    /* DONE: nothing else is in flight there (rule D6) */
    FLAG_MESSAGES = 4, /* HELLO: the connection is for messages */
    FLAG_ANSWER = 8,   /* messages: acknowledge at once; ECHO: the answer */
    /* HELLO of a dialer: seq, tag and digest offer shared memory (rule L1).
     * HELLO of an acceptor: the shared memory carries everything after the
     * HELLOs, in both directions. */
    FLAG_SHARE = 16,
    FLAG_LAST = 32,       /* PROBE: the end of it */
    FLAG_GUEST = 32,      /* HELLO: of a guest, or to one (rule S10) */
    FLAG_CMA = 16,        /* EXPECT, answer of REGION: the memory of who gets
                             it can be read */
    FLAG_DEAF = 16,       /* PING: the sender hears nothing (rule R7a) */
    FLAG_FULL = 64,       /* DATA: the connection had no rest before this one */
    FLAG_LISTEN = 1,      /* RELAY: for a dial of the other end */
    FLAG_SINGLE_COPY = 4, /* DATA: empty; its data lie in the sender's region */
};

struct frame {
    uint8_t type;
    uint8_t flags;
    uint32_t epoch;
    uint64_t tag;
    uint32_t seq;
    uint32_t index;
    uint32_t size;
    uint64_t digest; /* of the operation's arguments (contract C4) */
    uint64_t scope;  /* of the operation (base/scope.h); else 0 */
};

void frame_encode(const struct frame *f, uint8_t out[FRAME_SIZE]);

/* Gives a header another number. */
static inline void frame_renumber(uint8_t head[FRAME_SIZE], uint32_t seq)
{
    enum { SEQ_AT = 16 };
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) seq = __builtin_bswap32(seq);
    memcpy(head + SEQ_AT, &seq, sizeof seq);
}

/* The body of HELLO. */
struct frame_hello {
    uint64_t key[2];   /* of the run */
    uint64_t from, to; /* ids; a guest has none, and says 0 */
};

void frame_hello_encode(const struct frame_hello *h,
                        uint8_t out[FRAME_HELLO_SIZE]);
struct frame_hello frame_hello_decode(const uint8_t in[FRAME_HELLO_SIZE]);

static inline bool frame_is_single_copy(const struct frame *f)
{
    return f->type == FRAME_DATA && (f->flags & FLAG_SINGLE_COPY);
}

/* False: not a frame of this protocol; close the connection. */
bool frame_decode(const uint8_t in[FRAME_SIZE], struct frame *f);

#endif
