/* single_copy.h - operations in this member's region: memory that the other
 * members of the host have mapped.
 *
 * A large operation writes its data once into the region, and an empty frame
 * announces them. The queues of all pairs carry no bodies, and the receivers
 * reduce or copy the data from where they lie. Rules D16, L7 and L8 of
 * ALGORITHMS.md. The operations: allreduce_single_copy.c and
 * spread_single_copy.c. Pure. */
#ifndef PCCL_SINGLE_COPY_H
#define PCCL_SINGLE_COPY_H

#include "../link/link.h"

enum {
    SINGLE_COPY_SLOTS = 8,            /* each serves one operation */
    SINGLE_COPY_BUFFERS = 2,          /* segments of an operation under way */
    SINGLE_COPY_BUFFER = 1024 * 1024, /* bytes; has a place for each member */
    SINGLE_COPY_PLACES = 8, /* or so many segments of this member alone */
    SINGLE_COPY_HEAD = REGION_HEAD, /* struct single_copy_head of each slot */
};
static_assert(REGION_BOARD_AT == SINGLE_COPY_HEAD + SINGLE_COPY_SLOTS *
                                                        SINGLE_COPY_BUFFERS *
                                                        SINGLE_COPY_BUFFER,
              "the slots fill the region up to the board");

struct endpoint;
struct engine;
struct op;
struct plan_request;
struct plan_xfer;

/* In a region: the operation that owns a slot. */
struct single_copy_head {
    _Alignas(CHANNEL_LINE) _Atomic uint64_t scope;
    _Atomic uint64_t tag;
    _Atomic uint64_t number; /* epoch and sequence */
};

/* The name of an operation, as it stands in a head. */
struct single_copy_name {
    uint64_t scope, tag, number;
};

/* Rule L8b. This comes before any other write to the slot. A member that was
 * left out of the view may still read the slot and must not take new data for
 * old (tests/world/litmus). */
static inline void single_copy_sign(struct single_copy_head *head,
                                    struct single_copy_name name)
{
    atomic_store_explicit(&head->scope, name.scope, memory_order_relaxed);
    atomic_store_explicit(&head->tag, name.tag, memory_order_relaxed);
    atomic_store_explicit(&head->number, name.number, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

static inline bool single_copy_is_named(const struct single_copy_head *head,
                                        struct single_copy_name name)
{
    return atomic_load_explicit(&head->scope, memory_order_relaxed) ==
               name.scope &&
           atomic_load_explicit(&head->tag, memory_order_relaxed) == name.tag &&
           atomic_load_explicit(&head->number, memory_order_relaxed) ==
               name.number;
}

/* After the data were read. */
static inline bool
single_copy_is_still_named(const struct single_copy_head *head,
                           struct single_copy_name name)
{
    atomic_thread_fence(memory_order_acquire);
    return single_copy_is_named(head, name);
}

/* State of the own region. */
struct single_copy {
    struct op *users[SINGLE_COPY_SLOTS];
};

/* A new view: ends all use of the region and offers the region to those members
 * of this host that do not know it. Sets engine.single_copy_on by the view
 * alone: whether members of this host use their regions. */
void single_copy_install(struct engine *e);
/* What the algorithms that use regions need; NULL: it is there. */
const char *single_copy_unfit(const struct plan_request *r);

/* Rule L8. Takes a slot of the own region, op->slot, if there is one. Gives it
 * back, if it is still this operation's: nobody finds it any more. */
void single_copy_take_slot(struct engine *e, struct op *op);
void single_copy_give_slot(struct engine *e, struct op *op);
/* The slot of an operation in another member's region. SINGLE_COPY_SLOTS: it
 * has none there any more. */
uint32_t single_copy_find_slot(const struct op *op, const uint8_t *region);
/* After reading: the slot belonged to the operation all the time. */
bool single_copy_is_valid(const struct op *op, const uint8_t *region,
                          uint32_t slot);
/* Copies a transfer from there, `at` bytes into the region of its sender, to
 * its place in the result. False: the sender has left the operation, and this
 * end will soon learn why; the transfer never counts (rule L8). */
bool single_copy_take(struct op *op, const struct endpoint *ep,
                      const struct plan_xfer *x, uint32_t slot, size_t at);

/* Of the buffers of a slot, in a region. */
static inline size_t single_copy_slot_offset(uint32_t slot)
{
    return SINGLE_COPY_HEAD +
           (size_t)slot * SINGLE_COPY_BUFFERS * SINGLE_COPY_BUFFER;
}

#endif
