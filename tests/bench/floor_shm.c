/* floor_shm.c - all-reduce through shared memory with nothing around it: no
 * failures, no matching, and the users' buffers are shared as well. What this
 * takes is what the machine takes.
 *
 * Small: everybody puts its vector into its slot and adds all slots. Large:
 * everybody reduces its share of the vector, straight from all inputs into all
 * outputs. */
#include "floor.h"

#include <stdatomic.h>

enum {
    SLOT = 4096,       /* bytes of a small vector, two turns of them */
    BLOCK = 64 * 1024, /* floats of a share reduced at a time: in L2 */
    SPINS = 2000,
};

struct slot {
    _Alignas(64) atomic_uint full; /* number of the last turn in it */
    _Alignas(64) float values[2][SLOT / sizeof(float)];
};

static struct slot *slots;
static float **ins, **outs;
static unsigned turn;

static void await(const struct floor *f, atomic_uint *word, unsigned value)
{
    for (int i = 0;
         (int)(atomic_load_explicit(word, memory_order_acquire) - value) < 0;
         i++) {
        if (f->crowded || i > SPINS) sched_yield();
    }
}

static void small(struct floor *f, size_t count)
{
    size_t side = ++turn % 2;
    struct slot *own = &slots[f->rank];
    memcpy(own->values[side], f->in, count * sizeof(float));
    atomic_store_explicit(&own->full, turn, memory_order_release);
    for (int r = 0; r < f->ranks; r++) await(f, &slots[r].full, turn);
    const float *first = slots[0].values[side];
    const float *second = slots[1].values[side];
    for (size_t i = 0; i < count; i++) f->out[i] = first[i] + second[i];
    for (int r = 2; r < f->ranks; r++) {
        const float *more = slots[r].values[side];
        for (size_t i = 0; i < count; i++) f->out[i] += more[i];
    }
}

static void all_here(struct floor *f)
{
    turn++;
    atomic_store_explicit(&slots[f->rank].full, turn, memory_order_release);
    for (int r = 0; r < f->ranks; r++) await(f, &slots[r].full, turn);
}

static void add(float *restrict to, const float *restrict a,
                const float *restrict b, size_t count)
{
    for (size_t i = 0; i < count; i++) to[i] = a[i] + b[i];
}

static void large(struct floor *f, size_t count)
{
    size_t ranks = (size_t)f->ranks;
    size_t first = count * (size_t)f->rank / ranks;
    size_t end = count * ((size_t)f->rank + 1) / ranks;
    all_here(f);
    for (size_t i = first; i < end; i += BLOCK) {
        size_t n = end - i < BLOCK ? end - i : BLOCK;
        float *sum = outs[0] + i;
        add(sum, ins[0] + i, ins[1] + i, n);
        for (size_t r = 2; r < ranks; r++) {
            const float *more = ins[r] + i;
            for (size_t k = 0; k < n; k++) sum[k] += more[k];
        }
        for (size_t r = 1; r < ranks; r++)
            memcpy(outs[r] + i, sum, n * sizeof *sum);
    }
    all_here(f);
}

static void reduce(struct floor *f, size_t count)
{
    if (count * sizeof(float) <= SLOT)
        small(f, count);
    else
        large(f, count);
}

static void be_rank(struct floor *f, int argc, char **argv)
{
    f->in = ins[f->rank];
    f->out = outs[f->rank];
    for (int i = 2; i < argc; i++) {
        struct sample_case c;
        if (!sample_parse(argv[i], &c)) _exit(1);
        if (c.at_once == 1 && !c.in_place) floor_measure(f, &c, reduce);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct floor f = {.ranks = floor_ranks(argc, argv)};
    size_t most = 0;
    for (int i = 2; i < argc; i++) {
        struct sample_case c;
        if (!sample_parse(argv[i], &c)) return 2;
        if (c.at_once == 1 && !c.in_place && c.size > most) most = c.size;
    }
    f.crowded = f.ranks > sysconf(_SC_NPROCESSORS_ONLN);
    f.shared = floor_memory(sizeof *f.shared);
    slots = floor_memory((size_t)f.ranks * sizeof *slots);
    ins = calloc((size_t)f.ranks, sizeof *ins);
    outs = calloc((size_t)f.ranks, sizeof *outs);
    if (!ins || !outs) return 1;
    for (int i = 0; i < f.ranks; i++) {
        ins[i] = floor_memory(most);
        outs[i] = floor_memory(most);
    }
    for (f.rank = 0; f.rank < f.ranks; f.rank++) {
        if (fork() == 0) be_rank(&f, argc, argv);
    }
    return floor_end(f.ranks);
}
