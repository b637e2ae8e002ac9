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
    BOARD_SIZE_BITS = 20,
};
static_assert(BOARD_SLOTS * BOARD_STRIDE <= BOARD_SIZE &&
                  BOARD_STRIDE % BOARD_LINE == 0 &&
                  BOARD_POST_MAX < 1 << BOARD_SIZE_BITS,
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

/* Shows them. The readers may sleep: channel_ring() is to follow for each. */
static inline void board_post(struct board *b, size_t size)
{
    uint64_t number = ++b->posts;
    struct board_slot *slot =
        (struct board_slot *)(void *)(b->memory + board_slot_at(number));
    atomic_store_explicit(&slot->word, number << BOARD_SIZE_BITS | size,
                          memory_order_release);
}

/* The word of a post that is to come, of another member's board. */
static inline const _Atomic uint64_t *board_word(const uint8_t *memory,
                                                 uint64_t number)
{
    return &((const struct board_slot *)(const void *)(memory +
                                                       board_slot_at(number)))
                ->word;
}

static inline bool board_shows(const uint8_t *memory, uint64_t number,
                               memory_order order)
{
    uint64_t word = atomic_load_explicit(board_word(memory, number), order);
    return word >> BOARD_SIZE_BITS == number;
}

/* Copies the post into private memory of BOARD_POST_MAX bytes. Returns its
 * size; 0: it is not there; SIZE_MAX: it is there no more, because this reader
 * does not count any longer, or it cannot be. */
static inline size_t board_take(const uint8_t *memory, uint64_t number,
                                uint8_t *copy)
{
    const _Atomic uint64_t *at = board_word(memory, number);
    uint64_t word = atomic_load_explicit(at, memory_order_acquire);
    if (word >> BOARD_SIZE_BITS != number) return 0;
    size_t size = word & ((1u << BOARD_SIZE_BITS) - 1);
    if (size == 0 || size > BOARD_POST_MAX) return SIZE_MAX;
    memcpy(copy, (const uint8_t *)(const void *)(at + 1), size);
    atomic_thread_fence(memory_order_acquire);
    bool same = atomic_load_explicit(at, memory_order_relaxed) == word;
    return same ? size : SIZE_MAX;
}

#endif
