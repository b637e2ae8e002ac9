/* floor.h - what the floors share: they start their ranks themselves and meet
 * in shared memory, so that nothing but the exchange is measured. */
#ifndef PCCL_BENCH_FLOOR_H
#define PCCL_BENCH_FLOOR_H

#include "samples.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLOOR_RANKS_MAX 64

struct floor_shared {
    int arrived __attribute__((aligned(64)));
    int turn __attribute__((aligned(64)));
    int count; /* of operations; rank 0 decides */
};

struct floor {
    int rank, ranks;
    int crowded; /* more ranks than processors: never spin for long */
    struct floor_shared *shared;
    float *in, *out; /* of this rank */
};

static inline void *floor_memory(size_t size)
{
    void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(1);
    (void)madvise(p, size, MADV_HUGEPAGE);
    return p;
}

static inline void floor_meet(const struct floor *f)
{
    struct floor_shared *s = f->shared;
    int turn = __atomic_load_n(&s->turn, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&s->arrived, 1, __ATOMIC_SEQ_CST) == f->ranks) {
        __atomic_store_n(&s->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&s->turn, turn + 1, __ATOMIC_SEQ_CST);
    }
    while (__atomic_load_n(&s->turn, __ATOMIC_SEQ_CST) == turn) sched_yield();
}

typedef void floor_reduce_fn(struct floor *f, size_t count);

static inline void floor_measure(struct floor *f, const struct sample_case *c,
                                 floor_reduce_fn *reduce)
{
    static double times[SAMPLES_MAX];
    size_t count = c->size / sizeof(float);
    for (size_t i = 0; i < count; i++) {
        f->in[i] = (float)(f->rank + 1);
        f->out[i] = 0;
    }
    floor_meet(f);
    double warm = sample_now();
    for (int i = 0; i < sample_warm(c); i++) reduce(f, count);
    if (f->rank == 0)
        f->shared->count =
            sample_count_of(c, (sample_now() - warm) / sample_warm(c));
    floor_meet(f);
    int rounds = f->shared->count;
    for (int i = 0; i < rounds; i++) {
        double start = sample_now();
        reduce(f, count);
        times[i] = sample_now() - start;
    }
    float want = (float)(f->ranks * (f->ranks + 1) / 2);
    for (size_t i = 0; i < count; i++) {
        if (f->out[i] == want) continue;
        fprintf(stderr, "floor: wrong at %zu: %f\n", i, (double)f->out[i]);
        _exit(2);
    }
    floor_meet(f);
    if (f->rank == 0) sample_print(c, times, rounds);
}

/* The ranks have ended; the exit status of the program. */
static inline int floor_end(int ranks)
{
    int worst = 0;
    for (int i = 0; i < ranks; i++) {
        int status = 0;
        if (wait(&status) < 0 || status != 0) worst = 1;
    }
    return worst;
}

static inline int floor_ranks(int argc, char **argv)
{
    int ranks = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
    if (ranks >= 2 && ranks <= FLOOR_RANKS_MAX) return ranks;
    fprintf(stderr, "usage: %s RANKS CASE...\n", argv[0]);
    exit(2);
}

#endif
