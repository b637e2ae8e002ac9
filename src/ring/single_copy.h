/* single_copy.h - operations in this member's region: memory that the other
 * members of the host have mapped.
 *
 * A large all-reduce writes its data once into the region, and an empty frame
 * announces them. The queues of all pairs carry no bodies, and the receivers
 * reduce or copy the data from where they lie. Rules D16, L7 and L8 of
 * master/PROTOCOL.md. The operation itself: allreduce_single_copy.c. Pure. */
#ifndef PCCL_SINGLE_COPY_H
#define PCCL_SINGLE_COPY_H

#include "../link/link.h"

enum {
    SINGLE_COPY_SLOTS = 8,            /* each serves one operation */
    SINGLE_COPY_BUFFERS = 2,          /* segments of an operation under way */
    SINGLE_COPY_BUFFER = 1024 * 1024, /* bytes; has a place for each member */
    SINGLE_COPY_HEAD = REGION_HEAD,   /* struct single_copy_head of each slot */
    SINGLE_COPY_SIZE = REGION_SIZE,
};
static_assert(SINGLE_COPY_SIZE == SINGLE_COPY_HEAD + SINGLE_COPY_SLOTS *
                                                         SINGLE_COPY_BUFFERS *
                                                         SINGLE_COPY_BUFFER,
              "the slots fill the region");

struct engine;
struct op;

/* In a region: the operation that owns a slot. */
struct single_copy_head {
    _Alignas(CHANNEL_LINE) _Atomic uint64_t scope;
    _Atomic uint64_t tag;
    _Atomic uint64_t number; /* epoch and sequence */
};

/* State of the own region. */
struct single_copy {
    struct op *users[SINGLE_COPY_SLOTS];
};

/* A new view: ends all use of the region and offers the region to those members
 * of this host that do not know it. Sets engine.single_copy_on by the view
 * alone: whether members of this host use their regions. */
void single_copy_install(struct engine *e);

#endif
