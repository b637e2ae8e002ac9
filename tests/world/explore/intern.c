/* intern.c - see intern.h. */
#include "intern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SPACE ((size_t)16 << 30)
#define ITEMS ((size_t)1 << 27)

void *intern_reserve(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) return at;
    perror("explorer: address space");
    exit(77); /* the test is skipped */
}

uint64_t intern_hash(const void *bytes, size_t size, uint64_t seed)
{
    const uint8_t *p = bytes;
    uint64_t h = seed ^ size * 0x9e3779b97f4a7c15u;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 31;
    }
    uint64_t last = 0;
    if (size > 0) memcpy(&last, p, size);
    h = (h ^ last) * 0x94d049bb133111ebu;
    return h ^ h >> 29;
}

void intern_init(struct intern *n, size_t size)
{
    *n = (struct intern){.bytes = intern_reserve(SPACE),
                         .items = intern_reserve(ITEMS * sizeof *n->items),
                         .room = 1024};
    static const uint8_t zeros[4096];
    n->table = intern_reserve(n->room * sizeof *n->table);
    (void)intern_put(n, zeros, size);
}

void intern_free(struct intern *n)
{
    munmap(n->bytes, SPACE);
    munmap(n->items, ITEMS * sizeof *n->items);
    munmap(n->table, n->room * sizeof *n->table);
    *n = (struct intern){0};
}

static void grow(struct intern *n)
{
    uint32_t room = n->room * 2;
    uint32_t *table = intern_reserve(room * sizeof *table);
    for (uint32_t i = 0; i < n->count; i++) {
        const struct intern_item *item = &n->items[i];
        uint64_t h = intern_hash(n->bytes + item->at, item->size, 0);
        while (table[h & (room - 1)]) h++;
        table[h & (room - 1)] = i + 1;
    }
    munmap(n->table, n->room * sizeof *table);
    n->table = table;
    n->room = room;
}

uint32_t intern_put(struct intern *n, const void *bytes, size_t size)
{
    if (n->count * 2 >= n->room) grow(n);
    if (n->count == ITEMS || n->used + size > SPACE) {
        (void)fprintf(stderr, "explorer: too many states\n");
        exit(3);
    }
    uint64_t h = intern_hash(bytes, size, 0);
    for (;; h++) {
        uint32_t *slot = &n->table[h & (n->room - 1)];
        if (*slot == 0) {
            struct intern_item *item = &n->items[n->count];
            *item = (struct intern_item){n->used, (uint32_t)size};
            if (size > 0) memcpy(n->bytes + n->used, bytes, size);
            n->used += (size + 7) & ~(size_t)7;
            *slot = ++n->count;
            return n->count - 1;
        }
        const struct intern_item *item = &n->items[*slot - 1];
        if (item->size == size &&
            (size == 0 || memcmp(n->bytes + item->at, bytes, size) == 0))
            return *slot - 1;
    }
}

const void *intern_get(const struct intern *n, uint32_t number, size_t *size)
{
    if (size) *size = n->items[number].size;
    return n->bytes + n->items[number].at;
}

uint64_t intern_memory(const struct intern *n)
{
    return n->used + n->count * sizeof *n->items + n->room * 4ull;
}

static struct memo_entry *find(struct memo_entry *entries, uint64_t room,
                               uint64_t key)
{
    uint64_t h = intern_hash(&key, 8, 1);
    while (entries[h & (room - 1)].key != 0 &&
           entries[h & (room - 1)].key != key)
        h++;
    return &entries[h & (room - 1)];
}

struct memo_entry *memo_at(struct memo *m, uint64_t key)
{
    if (m->count * 2 >= m->room) {
        uint64_t room = m->room ? m->room * 2 : 4096;
        struct memo_entry *entries = intern_reserve(room * sizeof *entries);
        for (uint64_t i = 0; i < m->room; i++) {
            if (m->entries[i].key)
                *find(entries, room, m->entries[i].key) = m->entries[i];
        }
        if (m->room > 0) munmap(m->entries, m->room * sizeof *entries);
        m->entries = entries;
        m->room = room;
    }
    struct memo_entry *e = find(m->entries, m->room, key);
    if (e->key == 0) {
        *e = (struct memo_entry){key, MEMO_NEW, 0};
        m->count++;
    }
    return e;
}

void memo_free(struct memo *m)
{
    if (m->room > 0) munmap(m->entries, m->room * sizeof *m->entries);
    *m = (struct memo){0};
}
