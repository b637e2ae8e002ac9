/* arena.h - the memory of one party: a fixed range of addresses with an
 * allocator that depends on nothing but the calls, and pictures of it.
 *
 * A picture is a number: two moments with equal bytes have the same one. It
 * costs the pages that differ, so a party may have large tables that it does
 * not touch. While a party runs (arena_enter), malloc, calloc, realloc,
 * aligned_alloc and free of the cores use its arena; the program is linked with
 * --wrap for them. */
#ifndef EXPLORE_ARENA_H
#define EXPLORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ARENA_SIZE = 256 * 1024 * 1024,
    ARENA_PAGE = 4096,
    ARENA_CHUNK = 256,
    ARENA_PAGES_MAX = 2048, /* that are ever written */
};

struct arena;

struct arena *arena_new(void);
/* The party's memory is zero from now on, and has no picture yet. */
void arena_clear(struct arena *a);
void arena_enter(struct arena *a); /* NULL: none */
bool arena_owns(const struct arena *a, const void *address);

uint32_t arena_save(struct arena *a);
void arena_load(struct arena *a, uint32_t picture);

uint32_t arena_pictures(const struct arena *a);
uint64_t arena_memory(const struct arena *a);

/* A write to a page that nobody wrote to before: true, and it can go on. */
bool arena_fault(void *address);

/* Prints where two pictures differ. */
void arena_compare(struct arena *a, uint32_t one, uint32_t other);

#endif
