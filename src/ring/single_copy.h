/* single_copy.h - operations in this member's region: memory that the other
 * members of the host have mapped.
 *
 * A large all-reduce puts what it sends to one member, or the same to all, once
 * into the region, and an empty frame says that it is there: nothing passes
 * through the queues of all pairs, and what is reduced or taken is read from
 * where it lies. Rules D16, L7 and L8 of master/PROTOCOL.md. What the operation
 * does with it: allreduce_single_copy.c. Pure. */
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

struct engine;
struct op;

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

#endif
