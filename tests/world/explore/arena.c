/* arena.c - see arena.h. */
#include "arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "intern.h"

enum {
    CHUNKS = ARENA_PAGE / ARENA_CHUNK,
    CLASS_MIN = 6, /* log2 of the smallest block */
    CLASS_MAX = 26,
    BLOCKS_MAX = 1024,
    ARENAS_MAX = 4,
};

/* At the start of the memory itself. Blocks of a class lie side by side, and
 * the first free one is taken: where a block lies depends on what is in use,
 * not on what was. */
struct heap {
    uint64_t used[CLASS_MAX + 1][BLOCKS_MAX / 64]; /* bit set */
};

struct arena {
    uint8_t *memory;
    bool written[ARENA_SIZE / ARENA_PAGE];
    uint32_t pages[ARENA_PAGES_MAX]; /* in the order of their first write */
    uint32_t loaded[ARENA_PAGES_MAX];
    uint32_t count;
    struct intern chunks, descriptions, pictures;
};

static struct arena *arenas[ARENAS_MAX];
static struct arena *current;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *block);

/* ---------------------------------------------------------------- allocator */

static uint32_t class_of(size_t size)
{
    uint32_t class = CLASS_MIN;
    while (((size_t)1 << class) < size) class ++;
    return class;
}

/* Of a class, in address space that is never touched in vain. */
static uint32_t blocks_of(uint32_t class)
{
    return class <= 12 ? 512 : class <= 17 ? 64 : class <= 24 ? 4 : 1;
}

static size_t start_of(uint32_t class)
{
    size_t at = sizeof(struct heap);
    for (uint32_t i = CLASS_MIN; i < class; i++)
        at += (size_t)blocks_of(i) << i;
    return (at + ARENA_PAGE - 1) / ARENA_PAGE * ARENA_PAGE;
}

static void *take(size_t size)
{
    struct heap *heap = (struct heap *)current->memory;
    uint32_t class = class_of(size);
    if (class > CLASS_MAX) return NULL;
    for (uint32_t i = 0; i < blocks_of(class); i++) {
        uint64_t bit = (uint64_t)1 << i % 64;
        if (heap->used[class][i / 64] & bit) continue;
        heap->used[class][i / 64] |= bit;
        return current->memory + start_of(class) + ((size_t)i << class);
    }
    return NULL;
}

static uint32_t class_at(const struct arena *a, const void *block)
{
    size_t at = (size_t)((const uint8_t *)block - a->memory);
    uint32_t class = CLASS_MIN;
    while (class < CLASS_MAX && at >= start_of(class + 1)) class ++;
    return class;
}

/* Freed memory is zero: what was in it distinguishes no states. */
static void give(struct arena *a, void *memory)
{
    struct heap *heap = (struct heap *)a->memory;
    uint32_t class = class_at(a, memory);
    size_t at = (size_t)((uint8_t *)memory - a->memory) - start_of(class);
    memset(memory, 0, (size_t)1 << class);
    heap->used[class][(at >> class) / 64] &=
        ~((uint64_t)1 << (at >> class) % 64);
}

static struct arena *owner(const void *block)
{
    for (int i = 0; i < ARENAS_MAX; i++) {
        if (arenas[i] && arena_owns(arenas[i], block)) return arenas[i];
    }
    return NULL;
}

void *__wrap_malloc(size_t size)
{
    return current ? take(size) : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    if (!current) return __real_calloc(count, size);
    if (size > 0 && count > ARENA_SIZE / size) return NULL;
    return take(count * size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    if (!current) return __real_aligned_alloc(align, size);
    return align <= 64 ? take(size) : NULL;
}

void __wrap_free(void *block)
{
    struct arena *a = block ? owner(block) : NULL;
    if (a)
        give(a, block);
    else
        __real_free(block);
}

void *__wrap_realloc(void *block, size_t size)
{
    if (!current) return __real_realloc(block, size);
    void *more = take(size);
    if (!more || !block) return more;
    size_t old = (size_t)1 << class_at(current, block);
    memcpy(more, block, old < size ? old : size);
    give(current, block);
    return more;
}

/* ----------------------------------------------------------------- pictures */

struct arena *arena_new(void)
{
    struct arena *a = intern_reserve(sizeof *a);
    a->memory = mmap(NULL, ARENA_SIZE, PROT_READ,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a->memory == MAP_FAILED) abort();
    intern_init(&a->chunks, ARENA_CHUNK);
    intern_init(&a->descriptions, CHUNKS * sizeof(uint32_t));
    intern_init(&a->pictures, 0);
    for (int i = 0; i < ARENAS_MAX; i++) {
        if (arenas[i]) continue;
        arenas[i] = a;
        return a;
    }
    abort();
}

bool arena_owns(const struct arena *a, const void *address)
{
    return (const uint8_t *)address >= a->memory &&
           (const uint8_t *)address < a->memory + ARENA_SIZE;
}

bool arena_fault(void *address)
{
    struct arena *a = owner(address);
    if (!a || a->count == ARENA_PAGES_MAX) return false;
    uint32_t page = (uint32_t)((uint8_t *)address - a->memory) / ARENA_PAGE;
    if (a->written[page]) return false;
    a->written[page] = true;
    a->pages[a->count++] = page;
    return mprotect(a->memory + (size_t)page * ARENA_PAGE, ARENA_PAGE,
                    PROT_READ | PROT_WRITE) == 0;
}

void arena_enter(struct arena *a)
{
    current = a;
}

static uint8_t *page_at(const struct arena *a, uint32_t i)
{
    return a->memory + (size_t)a->pages[i] * ARENA_PAGE;
}

/* The description of the page as it is now. */
static uint32_t describe(struct arena *a, uint32_t i)
{
    uint32_t now[CHUNKS];
    bool same = true;
    memcpy(now, intern_get(&a->descriptions, a->loaded[i], NULL), sizeof now);
    for (uint32_t k = 0; k < CHUNKS; k++) {
        const uint8_t *bytes = page_at(a, i) + k * ARENA_CHUNK;
        const void *old = intern_get(&a->chunks, now[k], NULL);
        if (memcmp(bytes, old, ARENA_CHUNK) == 0) continue;
        now[k] = intern_put(&a->chunks, bytes, ARENA_CHUNK);
        same = false;
    }
    return same ? a->loaded[i] : intern_put(&a->descriptions, now, sizeof now);
}

uint32_t arena_save(struct arena *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        a->loaded[i] = describe(a, i);
        if (a->loaded[i] != 0) count = i + 1;
    }
    return intern_put(&a->pictures, a->loaded, count * sizeof(uint32_t));
}

/* The page may have been written to since `loaded`. */
static void load_page(struct arena *a, uint32_t i, uint32_t description)
{
    const uint32_t *next = intern_get(&a->descriptions, description, NULL);
    for (uint32_t k = 0; k < CHUNKS; k++) {
        uint8_t *bytes = page_at(a, i) + k * ARENA_CHUNK;
        const void *wanted = intern_get(&a->chunks, next[k], NULL);
        if (memcmp(bytes, wanted, ARENA_CHUNK) != 0)
            memcpy(bytes, wanted, ARENA_CHUNK);
    }
    a->loaded[i] = description;
}

void arena_load(struct arena *a, uint32_t picture)
{
    size_t size;
    const uint32_t *pages = intern_get(&a->pictures, picture, &size);
    for (uint32_t i = 0; i < a->count; i++)
        load_page(a, i, i < size / sizeof *pages ? pages[i] : 0);
}

void arena_clear(struct arena *a)
{
    for (uint32_t i = 0; i < a->count; i++) load_page(a, i, 0);
}

uint32_t arena_pictures(const struct arena *a)
{
    return a->pictures.count;
}

uint64_t arena_memory(const struct arena *a)
{
    return intern_memory(&a->chunks) + intern_memory(&a->descriptions) +
           intern_memory(&a->pictures);
}

void arena_compare(struct arena *a, uint32_t one, uint32_t other)
{
    static uint8_t kept[ARENA_PAGES_MAX][ARENA_PAGE];
    arena_load(a, one);
    for (uint32_t i = 0; i < a->count; i++)
        memcpy(kept[i], page_at(a, i), ARENA_PAGE);
    arena_load(a, other);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t k = 0; k < ARENA_PAGE && shown < 64; k += 8) {
            uint64_t x, y;
            memcpy(&x, kept[i] + k, 8);
            memcpy(&y, page_at(a, i) + k, 8);
            if (x == y) continue;
            shown++;
            printf("  offset %#zx: %016llx %016llx\n",
                   (size_t)a->pages[i] * ARENA_PAGE + k, (unsigned long long)x,
                   (unsigned long long)y);
        }
    }
}
