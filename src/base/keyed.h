/* keyed.h - a hash table of objects by key, of any size, with constant lookup
 * time. Keys may occur more than once. Not thread-safe. */
#ifndef PCCL_KEYED_H
#define PCCL_KEYED_H

#include "base.h"

#include <stdlib.h>

enum { KEYED_FEW = 16 }; /* initial slots; a power of two */

struct keyed {
    struct keyed *next;
    uint64_t key;
};

/* All zero: empty. */
struct keyed_table {
    struct keyed **grown; /* mask + 1 slots, or NULL: the initial ones */
    uint32_t mask, count;
    struct keyed *few[KEYED_FEW];
};

static inline struct keyed **keyed_slot(struct keyed_table *t, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15u >> 32;
    if (!t->grown) return &t->few[hash % KEYED_FEW];
    return &t->grown[hash & t->mask];
}

/* The object with this key that was added last; NULL: none. */
static inline struct keyed *keyed_find(struct keyed_table *t, uint64_t key)
{
    struct keyed *at = t->count > 0 ? *keyed_slot(t, key) : NULL;
    while (at && at->key != key) at = at->next;
    return at;
}

/* Without memory for more slots the chains grow longer. */
static inline void keyed_grow(struct keyed_table *t)
{
    uint32_t slots = t->grown ? t->mask + 1 : KEYED_FEW;
    if (t->count < slots || slots > UINT32_MAX / 8) return;
    struct keyed_table larger = {.mask = 4 * slots - 1};
    larger.grown =
        (struct keyed **)calloc((size_t)4 * slots, sizeof *larger.grown);
    if (!larger.grown) return;
    struct keyed **old = t->grown ? t->grown : t->few;
    for (uint32_t i = 0; i < slots; i++) {
        /* keep the last added of equal keys in front */
        struct keyed *reversed = NULL;
        for (struct keyed *at = old[i], *next; at; at = next) {
            next = at->next;
            at->next = reversed;
            reversed = at;
        }
        for (struct keyed *at = reversed, *next; at; at = next) {
            next = at->next;
            struct keyed **slot = keyed_slot(&larger, at->key);
            at->next = *slot;
            *slot = at;
        }
    }
    free(t->grown);
    t->grown = larger.grown;
    t->mask = larger.mask;
}

static inline void keyed_add(struct keyed_table *t, struct keyed *k)
{
    keyed_grow(t);
    struct keyed **slot = keyed_slot(t, k->key);
    k->next = *slot;
    *slot = k;
    t->count++;
}

/* The object must be in the table. */
static inline void keyed_remove(struct keyed_table *t, struct keyed *k)
{
    struct keyed **at = keyed_slot(t, k->key);
    while (*at != k) at = &(*at)->next;
    *at = k->next;
    t->count--;
}

/* Empties the table and frees its memory; returns a list of all objects by
 * `next`. */
static inline struct keyed *keyed_take_all(struct keyed_table *t)
{
    struct keyed *all = NULL;
    struct keyed **slots = t->grown ? t->grown : t->few;
    uint32_t count = t->grown ? t->mask + 1 : KEYED_FEW;
    for (uint32_t i = 0; t->count > 0 && i < count; i++) {
        for (struct keyed *at = slots[i], *next; at; at = next) {
            next = at->next;
            at->next = all;
            all = at;
        }
    }
    free(t->grown);
    *t = (struct keyed_table){0};
    return all;
}

#endif
