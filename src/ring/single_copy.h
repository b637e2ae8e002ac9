/* single_copy.h - operations in this member's region: memory that the other
 * members of the host have mapped.
 *
 * A large all-reduce puts what it sends to one member, or the same to all, once
 * into the region, and an empty frame says that it is there: nothing passes
 * through the queues of all pairs, and what is reduced or taken is read from
 * where it lies. Rules D16, L7 and L8 of master/PROTOCOL.md. What the operation
 * does with it: op_single_copy.c. Pure. */
#ifndef PCCL_SINGLE_COPY_H
#define PCCL_SINGLE_COPY_H

#include "../link/link.h"

enum {
    SINGLE_COPY_SLOTS = 8,            /* one operation each */
    SINGLE_COPY_BUFFERS = 2,          /* segments of it under way */
    SINGLE_COPY_BUFFER = 1024 * 1024, /* bytes: a place for each member */
    SINGLE_COPY_HEAD = REGION_HEAD,   /* struct single_copy_head of each slot */
    SINGLE_COPY_SIZE = REGION_SIZE,
};
static_assert(SINGLE_COPY_SIZE == SINGLE_COPY_HEAD + SINGLE_COPY_SLOTS *
                                                         SINGLE_COPY_BUFFERS *
                                                         SINGLE_COPY_BUFFER,
              "the slots fill the region");

struct conn;
struct engine;
struct endpoint;
struct link;
struct op;
struct plan_xfer;

/* In a region: the operation that a slot is of. */
struct single_copy_head {
    _Alignas(CHANNEL_LINE) _Atomic uint64_t tag;
    _Atomic uint64_t number; /* epoch and sequence */
};

/* Of the own region. */
struct single_copy {
    struct op *users[SINGLE_COPY_SLOTS];
};

/* A new view: what was in the region is over, and connections to members of
 * this host that know nothing of the region are offered it. Sets
 * engine.single_copy_on by the view alone: whether members of this host use
 * their regions at all. */
void single_copy_install(struct engine *e);

/* An operation begins, and takes a slot if one is free; or is over. */
void single_copy_begin(struct engine *e, struct op *op);
void single_copy_end(struct engine *e, struct op *op);
/* Whether transfer x to the other end of c can be put there. */
bool single_copy_fits(const struct conn *c, const struct op *op,
                      const struct plan_xfer *x);
/* Puts transfer k to a partner into the region, and makes f say so. */
void single_copy_put(struct engine *e, struct op *op, const struct endpoint *ep,
                     uint32_t k, const struct plan_xfer *x, struct frame *f);
/* The slot of an operation in another member's region; SINGLE_COPY_SLOTS: it
 * has none there any more. */
uint32_t single_copy_slot(const struct op *op, const uint8_t *region);
/* In it, segment g of what is for, or the sum of, the member of that rank. */
const uint8_t *single_copy_at(const struct op *op, const uint8_t *region,
                              uint32_t slot, uint32_t g, uint32_t rank);
/* After reading: it was the operation's all the time (rule L8). */
bool single_copy_valid(const struct op *op, const uint8_t *region,
                       uint32_t slot);

#endif
