/* handle.c - tables of integer handles. A table grows by chunks that never
 * move, so a lookup needs no lock; the lowest free slot is reused first. */
#include "facade.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 1024, CHUNKS = 4096 };

/* Bits 31-30 of a dynamic ("direct") handle, and the position of the kind. */
#define HANDLE_DIRECT 0x80000000u
#define HANDLE_KIND_SHIFT 26
#define HANDLE_INDEX_MASK 0x3fffffu
/* MPICH encodes a keyval's kind of object below the kind; here the values only
 * need to be distinct. */

typedef _Atomic(struct object *) slot;

/* In the slot of a hidden object: it is not free. */
static struct object hidden;

struct table {
    _Atomic(slot *) chunks[CHUNKS];
    uint32_t used; /* slots ever used */
    uint32_t hint; /* no free slot below */
};

static struct table tables[HANDLE_KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void facade_lock(void)
{
    int result = pthread_mutex_lock(&lock);
    assert(result == 0);
    (void)result;
}

void facade_unlock(void)
{
    int result = pthread_mutex_unlock(&lock);
    assert(result == 0);
    (void)result;
}

void object_init(struct object *object, void (*destroy)(struct object *))
{
    object->handle = HANDLE_OF(0);
    atomic_init(&object->references, 1);
    object->destroy = destroy;
}

void object_retain(struct object *object)
{
    int before = atomic_fetch_add(&object->references, 1);
    assert(before > 0);
    (void)before;
}

/* Nobody but its owner can change the only reference. */
void object_release(struct object *object)
{
    bool last = atomic_load(&object->references) == 1;
    int before = last ? 1 : atomic_fetch_sub(&object->references, 1);
    assert(before > 0);
    if (before == 1 && object->destroy) object->destroy(object);
}

int object_set_name(char name[MPI_MAX_OBJECT_NAME], const char *to)
{
    if (!to) return note_argument("null name");
    facade_lock();
    snprintf(name, MPI_MAX_OBJECT_NAME, "%s", to);
    facade_unlock();
    return MPI_SUCCESS;
}

static slot *slot_at(struct table *table, uint32_t index)
{
    slot *chunk = atomic_load(&table->chunks[index / CHUNK]);
    return chunk ? &chunk[index % CHUNK] : NULL;
}

static bool table_reserve(struct table *table, uint32_t index)
{
    if (index >= CHUNK * CHUNKS) return false;
    if (slot_at(table, index)) return true;
    slot *chunk = calloc(CHUNK, sizeof *chunk);
    if (!chunk) return false;
    atomic_store(&table->chunks[index / CHUNK], chunk);
    return true;
}

bool handle_open(enum handle_kind kind, struct object *object)
{
    struct table *table = &tables[kind];
    assert(object->handle == HANDLE_OF(0));
    facade_lock();
    uint32_t index = table->hint;
    while (index < table->used && atomic_load(slot_at(table, index))) index++;
    bool done = table_reserve(table, index);
    if (done) {
        object->handle = HANDLE_OF(HANDLE_DIRECT |
                                   (uint32_t)kind << HANDLE_KIND_SHIFT | index);
        atomic_store(slot_at(table, index), object);
        table->hint = index + 1;
        if (table->used <= index) table->used = index + 1;
    }
    facade_unlock();
    return done;
}

static struct table *table_of(const struct object *object, uint32_t *index)
{
    uint32_t handle = HANDLE_BITS(object->handle);
    assert(handle & HANDLE_DIRECT);
    *index = handle & HANDLE_INDEX_MASK;
    return &tables[handle >> HANDLE_KIND_SHIFT & 15];
}

static void replace(const struct object *whose, struct object *before,
                    struct object *after)
{
    uint32_t index;
    struct table *table = table_of(whose, &index);
    slot *at = slot_at(table, index);
    assert(atomic_load_explicit(at, memory_order_relaxed) == before);
    (void)before;
    atomic_store_explicit(at, after, memory_order_release);
}

void handle_hide(struct object *object)
{
    replace(object, object, &hidden);
}

void handle_show(struct object *object)
{
    replace(object, &hidden, object);
}

void handle_close(struct object *object)
{
    uint32_t index;
    struct table *table = table_of(object, &index);
    facade_lock();
    assert(atomic_load(slot_at(table, index)) == object ||
           atomic_load(slot_at(table, index)) == &hidden);
    atomic_store(slot_at(table, index), NULL);
    if (index < table->hint) table->hint = index;
    facade_unlock();
    object->handle = HANDLE_OF(0);
}

struct object *handle_find(enum handle_kind kind, any_handle handle)
{
    uint32_t bits = HANDLE_BITS(handle);
    uint32_t index = bits & HANDLE_INDEX_MASK;
    if (bits >> HANDLE_KIND_SHIFT !=
            (HANDLE_DIRECT >> HANDLE_KIND_SHIFT | (uint32_t)kind) ||
        !handle_fits(handle))
        return NULL;
    if (index >= CHUNK * CHUNKS) return NULL;
    slot *at = slot_at(&tables[kind], index);
    struct object *object =
        at ? atomic_load_explicit(at, memory_order_acquire) : NULL;
    return object != &hidden ? object : NULL;
}

void handle_each(enum handle_kind kind, void (*visit)(struct object *object))
{
    struct table *table = &tables[kind];
    facade_lock();
    for (uint32_t i = 0; i < table->used; i++) {
        struct object *object = atomic_load(slot_at(table, i));
        if (object && object != &hidden) visit(object);
    }
    facade_unlock();
}
