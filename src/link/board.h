/* board.h - a multicast ring: memory in which one process shows the same bytes
 * to all other processes of a host at once.
 *
 * A channel takes a write and an index for each partner, and each partner reads
 * two lines. On the board the bytes of a *post* are written once, and lie on
 * the line of the word that shows them. Rule L11. Pure: the memory is the end
 * of a region (rule L7), which only its owner can write.
 *
 * Field: the single-writer broadcast buffers of XPMEM-based collectives. */
#ifndef PCCL_BOARD_H
#define PCCL_BOARD_H

#include "../base/base.h"

#include <stdatomic.h>
#include <string.h>

enum {
    BOARD_SLOTS = 8, /* posts that a reader may lag behind */
    BOARD_POST_MAX = 64 * 1024 + 64,
    BOARD_LINE = 128,
    /* No multiple of a page: posts in a row begin in different sets of the
     * caches. */
    BOARD_STRIDE = BOARD_POST_MAX + BOARD_LINE + 64,
    BOARD_SIZE = 532 * 1024, /* whole pages */
    BOARD_SIZE_BITS = 20,    /* of a word; the uppermost of them is this: */
    BOARD_HINT = 1 << 19,    /* the post is a hint (L11e) */
    BOARD_MARKED = 1 << 18,  /* it comes after bytes of some channels (L11b) */
};
static_assert(BOARD_SLOTS * BOARD_STRIDE <= BOARD_SIZE &&
                  BOARD_STRIDE % BOARD_LINE == 0 &&
                  BOARD_POST_MAX < BOARD_MARKED,
              "the slots fit, and begin on lines");

/* The word is the number of the post, from 1 on, and its size; 0 while the slot
 * is written. */
struct board_slot {
    _Alignas(BOARD_LINE) _Atomic uint64_t word;
    uint8_t bytes[];
};

/* The own one, in private memory. */
struct board {
    uint8_t *memory; /* BOARD_SIZE bytes; NULL: none */
    uint64_t posts;  /* so far */
};

static inline size_t board_slot_at(uint64_t number)
{
    return (size_t)(number % BOARD_SLOTS) * BOARD_STRIDE;
}

/* Where the bytes of the next post go. Nobody takes the slot for a post from
 * here on, nor what was read from it before for one: L11c. */
static inline uint8_t *board_begin(const struct board *b)
{
    struct board_slot *slot =
        (struct board_slot *)(void *)(b->memory + board_slot_at(b->posts + 1));
    atomic_store_explicit(&slot->word, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    return slot->bytes;
}

/* Shows them; `size` may have BOARD_HINT or BOARD_MARKED. The readers may
 * sleep: channel_ring() is to follow for each. */
static inline void board_post(struct board *b, size_t size)
{
    uint64_t number = ++b->posts;
    struct board_slot *slot =
        (struct board_slot *)(void *)(b->memory + board_slot_at(number));
    atomic_store_explicit(&slot->word, number << BOARD_SIZE_BITS | size,
                          memory_order_release);
}

/* A post of another member's board, where it lies. */
struct board_view {
    const uint8_t *bytes; /* NULL: it is not there */
    size_t size;          /* 0: it cannot be */
    bool hint, marked;
};

/* The word of a post that is to come, of another member's board. */
static inline const _Atomic uint64_t *board_word(const uint8_t *memory,
                                                 uint64_t number)
{
    const struct board_slot *slot =
        (const struct board_slot *)(const void *)(memory +
                                                  board_slot_at(number));
    return &slot->word;
}

static inline bool board_shows(const uint8_t *memory, uint64_t number,
                               memory_order order)
{
    uint64_t word = atomic_load_explicit(board_word(memory, number), order);
    return word >> BOARD_SIZE_BITS == number;
}

static inline struct board_view board_look(const uint8_t *memory,
                                           uint64_t number)
{
    const _Atomic uint64_t *at = board_word(memory, number);
    uint64_t word = atomic_load_explicit(at, memory_order_acquire);
    if (word >> BOARD_SIZE_BITS != number)
        return (struct board_view){.bytes = NULL};
    size_t size = word & (BOARD_MARKED - 1);
    return (struct board_view){.bytes = (const uint8_t *)(const void *)(at + 1),
                               .size = size > BOARD_POST_MAX ? 0 : size,
                               .hint = word & BOARD_HINT,
                               .marked = word & BOARD_MARKED};
}

/* After its bytes were read: they were those of the post (L11c). */
static inline bool board_holds(const uint8_t *memory, uint64_t number)
{
    atomic_thread_fence(memory_order_acquire);
    return board_shows(memory, number, memory_order_relaxed);
}

#endif
