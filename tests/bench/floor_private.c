/* floor_private.c - what the machine takes where the vectors are private, as a
 * program's are: everybody copies its vector into memory that all share,
 * reduces its share of it there and copies the sum out; no failures and no
 * matching, as in floor_shm.c. In place it also keeps what it overwrites, as
 * everybody must who may have to give the input back.
 *
 * It goes by portions, so that they stay in the caches between these steps.
 * Between two ranks several are in flight, for what the other processor has
 * just read is dear to overwrite; more ranks than that fill its caches. */
#include "floor.h"

#include <stdatomic.h>

enum {
    PORTION = 256 * 1024, /* bytes */
    VALUES = PORTION / sizeof(float),
    SIDES_MAX = 8,
    SIDES_IN_ALL = 16,
    SPINS = 2000,
};

struct area {
    _Alignas(64) atomic_uint put;     /* portions copied into it */
    _Alignas(64) atomic_uint reduced; /* portions of which the share is */
    _Alignas(64) float values[SIDES_MAX][VALUES];
};

static struct area *areas;
static float (*sums)[VALUES];
static float *undo;
static unsigned turn, sides;

static void await(const struct floor *f, const atomic_uint *word,
                  unsigned value)
{
    for (int i = 0;
         (int)(atomic_load_explicit(word, memory_order_acquire) - value) < 0;
         i++) {
        if (f->crowded || i > SPINS) sched_yield();
    }
}

static void put(const struct floor *f, size_t first, size_t n, unsigned number)
{
    struct area *own = &areas[f->rank];
    memcpy(own->values[number % sides], f->in + first, n * sizeof(float));
    atomic_store_explicit(&own->put, number, memory_order_release);
}

static void reduce_share(const struct floor *f, size_t n, unsigned number)
{
    size_t ranks = (size_t)f->ranks;
    size_t first = n * (size_t)f->rank / ranks;
    size_t count = n * ((size_t)f->rank + 1) / ranks - first;
    for (size_t r = 0; r < ranks; r++) await(f, &areas[r].put, number);
    float *sum = sums[number % sides] + first;
    const float *a = areas[0].values[number % sides] + first;
    const float *b = areas[1].values[number % sides] + first;
    for (size_t i = 0; i < count; i++) sum[i] = a[i] + b[i];
    for (size_t r = 2; r < ranks; r++) {
        const float *more = areas[r].values[number % sides] + first;
        for (size_t i = 0; i < count; i++) sum[i] += more[i];
    }
    atomic_store_explicit(&areas[f->rank].reduced, number,
                          memory_order_release);
}

static void take(const struct floor *f, size_t first, size_t n, unsigned number)
{
    for (int r = 0; r < f->ranks; r++) await(f, &areas[r].reduced, number);
    if (undo) memcpy(undo + first, f->out + first, n * sizeof(float));
    memcpy(f->out + first, sums[number % sides], n * sizeof(float));
}

static size_t portion(size_t count, size_t index)
{
    size_t left = count - index * VALUES;
    return left < VALUES ? left : VALUES;
}

static void reduce(struct floor *f, size_t count)
{
    size_t portions = (count + VALUES - 1) / VALUES;
    put(f, 0, portion(count, 0), turn + 1);
    for (size_t i = 0; i < portions; i++) {
        unsigned number = turn + (unsigned)i + 1;
        if (i + 1 < portions)
            put(f, (i + 1) * VALUES, portion(count, i + 1), number + 1);
        reduce_share(f, portion(count, i), number);
        take(f, i * VALUES, portion(count, i), number);
    }
    turn += (unsigned)portions;
}

static float *own_memory(size_t size)
{
    void *p = NULL;
    if (posix_memalign(&p, (size_t)2 << 20, size) != 0) _exit(1);
    (void)madvise(p, size, MADV_HUGEPAGE);
    memset(p, 0, size);
    return p;
}

static void be_rank(struct floor *f, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        struct sample_case c;
        if (!sample_parse(argv[i], &c) || c.size == 0) _exit(1);
        if (c.at_once > 1) continue;
        f->in = own_memory(c.size);
        f->out = own_memory(c.size);
        undo = c.in_place ? own_memory(c.size) : NULL;
        floor_measure(f, &c, reduce);
        free(undo);
        free(f->out);
        free(f->in);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct floor f = {.ranks = floor_ranks(argc, argv)};
    f.crowded = f.ranks > sysconf(_SC_NPROCESSORS_ONLN);
    f.shared = floor_memory(sizeof *f.shared);
    areas = floor_memory((size_t)f.ranks * sizeof *areas);
    sums = floor_memory(SIDES_MAX * sizeof *sums);
    sides = SIDES_IN_ALL / (unsigned)f.ranks;
    if (sides < 2) sides = 2;
    for (f.rank = 0; f.rank < f.ranks; f.rank++) {
        if (fork() == 0) be_rank(&f, argc, argv);
    }
    return floor_end(f.ranks);
}
