/* intern.h - byte strings that are kept once and are known by a number.
 *
 * Equal strings have equal numbers, so states that are made of numbers can be
 * compared without looking at their bytes. Nothing is ever removed, and malloc
 * is not used: a party may be running, whose memory malloc would be. */
#ifndef EXPLORE_INTERN_H
#define EXPLORE_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct intern_item {
    uint64_t at;
    uint32_t size;
};

struct intern {
    uint8_t *bytes; /* reserved address space, used from the front */
    uint64_t used;
    struct intern_item *items;
    uint32_t count;
    uint32_t *table; /* numbers plus 1; 0: free */
    uint32_t room;   /* of the table, a power of two */
};

/* Number 0 is the string of `size` zeros. */
void intern_init(struct intern *n, size_t size);
void intern_free(struct intern *n);
uint32_t intern_put(struct intern *n, const void *bytes, size_t size);
const void *intern_get(const struct intern *n, uint32_t number, size_t *size);
uint64_t intern_memory(const struct intern *n); /* bytes in use */

/* Numbers by a key of 64 bits, which is never 0. */
struct memo_entry {
    uint64_t key;
    uint32_t next, effects;
};

struct memo {
    struct memo_entry *entries;
    uint64_t count, room;
};

/* The entry of the key; a new one has next = MEMO_NEW. Valid until the next
 * call. */
#define MEMO_NEW UINT32_MAX
struct memo_entry *memo_at(struct memo *m, uint64_t key);
void memo_free(struct memo *m);

/* Address space without memory behind it, zero when it is touched. */
void *intern_reserve(size_t size);

uint64_t intern_hash(const void *bytes, size_t size, uint64_t seed);

#endif
