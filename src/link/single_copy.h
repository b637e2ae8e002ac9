/* single_copy.h - memory that a member lends to the others of its host.
 *
 * What a large all-reduce sends to one member, or the same to all, is put once
 * into memory that all of them have mapped, and an empty frame says that it is
 * there: nothing passes through the queues of all pairs, and what is reduced or
 * taken is read from where it lies. Rules D16, L7 and L8 of master/PROTOCOL.md.
 * What the operation does with it: lent.c. Pure. */
#ifndef PCCL_LEND_H
#define PCCL_LEND_H

#include "channel.h"
#include "frame.h"

enum {
    SINGLE_COPY_SLOTS = 8,   /* one operation each */
    SINGLE_COPY_BUFFERS = 2, /* segments of it under way */
    SINGLE_COPY_BUFFER =
        1024 * 1024, /* bytes of a set: a place for each member */
    SINGLE_COPY_HEAD =
        4096, /* before the places: struct single_copy_head of each room */
    SINGLE_COPY_SIZE = SINGLE_COPY_HEAD + SINGLE_COPY_SLOTS *
                                              SINGLE_COPY_BUFFERS *
                                              SINGLE_COPY_BUFFER,
};

struct conn;
struct engine;
struct endpoint;
struct link;
struct op;
struct plan_xfer;

/* In lent memory: the operation that a room is of. */
struct single_copy_head {
    _Alignas(CHANNEL_LINE) _Atomic uint64_t tag;
    _Atomic uint64_t number; /* epoch and sequence */
};

/* Of one's own memory. */
struct single_copy {
    uint8_t *region; /* SINGLE_COPY_SIZE bytes; NULL: none */
    struct op *users[SINGLE_COPY_SLOTS];
};

/* Of one connection. */
struct conn_region {
    bool offers, answers;  /* AREA is to be said */
    bool taken;            /* the other end has mapped this end's memory */
    const uint8_t *region; /* the other end's, mapped here; or NULL */
};

/* A new view: what was lent is over, and connections to members of this host
 * that know nothing of the memory are told. Says in engine.lends whether
 * members of this host lend at all, by the view alone. */
void single_copy_install(struct engine *e);
/* The next AREA of a connection; false: nothing to say. */
bool single_copy_next_frame(struct engine *e, struct conn *c, struct frame *f);
/* An AREA came; false: it breaks the protocol. */
bool single_copy_on_region(struct engine *e, uint32_t number);

/* An operation begins, and takes a room if one is free; or is over. */
void single_copy_begin(struct engine *e, struct op *op);
void single_copy_end(struct engine *e, struct op *op);
/* Whether transfer x to the other end of c can be lent. */
bool single_copy_fits(const struct conn *c, const struct op *op,
                      const struct plan_xfer *x);
/* Puts transfer k to a partner into the memory, and makes f say so. */
void single_copy_put(struct engine *e, struct op *op, const struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x, struct frame *f);
/* The memory of the other end of a link; NULL: it has none, or is gone. */
const uint8_t *single_copy_region(const struct engine *e, const struct link *l);
/* The room of an operation in another member's memory; SINGLE_COPY_SLOTS: it
 * has none there any more. */
uint32_t single_copy_slot(const struct op *op, const uint8_t *region);
/* In it, segment g of what is for, or the sum of, the member of that rank. */
const uint8_t *single_copy_at(const struct op *op, const uint8_t *region,
                              uint32_t slot, uint32_t g, uint32_t rank);
/* After reading: it was the operation's all the time (rule L8). */
bool single_copy_valid(const struct op *op, const uint8_t *region,
                       uint32_t slot);

#endif
