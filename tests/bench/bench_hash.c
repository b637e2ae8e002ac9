/* bench_hash.c - GB/s of the hash beside a plain sum of 64-bit words and, where
 * it was found, xxh3, on the same buffer in one run.
 *
 *   bench_hash [largest buffer in MiB, 256] [rounds, 7]
 *
 * Every round measures every candidate once, in turn, so that noise affects all
 * equally; medians are printed. The sum is the cost of reading alone. */
#include "hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef PCCL_HAVE_XXHASH
#include <xxh_x86dispatch.h>
#endif

enum { ROUNDS_MAX = 101, ROUND_SIZE = 64 << 20 };

typedef uint64_t run_fn(const uint8_t *data, size_t size);

/* Compiled with -O3, which uses all vector instructions that the build
 * allows. */
static uint64_t sum_part(const uint64_t *words, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += words[i];
    return sum;
}

static uint64_t run_sum(const uint8_t *data, size_t size)
{
    return sum_part((const void *)data, size / 8);
}

static uint64_t run_sum_all(const uint8_t *data, size_t size)
{
    const size_t parts = (size + (1 << 20) - 1) >> 20;
    uint64_t sum = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
#endif
    for (size_t i = 0; i < parts; ++i) {
        const size_t left = size - (i << 20);
        sum += run_sum(data + (i << 20), left < 1 << 20 ? left : 1 << 20);
    }
    return sum;
}

static uint64_t run_hash(const uint8_t *data, size_t size)
{
    return hash_bytes(data, size, 1);
}

static uint64_t run_hash_all(const uint8_t *data, size_t size)
{
    return hash_bytes(data, size, 0);
}

#ifdef PCCL_HAVE_XXHASH
static uint64_t run_xxh3(const uint8_t *data, size_t size)
{
    return XXH3_64bits_dispatch(data, size);
}
#endif

static const struct {
    const char *name;
    run_fn *run;
} runs[] = {
    {"sum/1", run_sum},       {"hash/1", run_hash},
#ifdef PCCL_HAVE_XXHASH
    {"xxh3/1", run_xxh3},
#endif
    {"sum/all", run_sum_all}, {"hash/all", run_hash_all},
};
enum { RUNS = sizeof(runs) / sizeof(runs[0]) };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of one pass of each candidate over `size` bytes. */
static void measure(const uint8_t *data, size_t size, int rounds,
                    double median[RUNS])
{
    static double times[RUNS][ROUNDS_MAX];
    static volatile uint64_t sink;
    const size_t repeat = size < ROUND_SIZE ? ROUND_SIZE / size : 1;
    for (int round = -1; round < rounds; ++round) /* the first round warms up */
        for (int r = 0; r < RUNS; ++r) {
            const double start = seconds();
            for (size_t i = 0; i < repeat; ++i) sink = runs[r].run(data, size);
            if (round < 0) continue;
            times[r][round] = (seconds() - start) / (double)repeat;
        }
    (void)sink;
    for (int r = 0; r < RUNS; ++r) {
        qsort(times[r], (size_t)rounds, sizeof(double), compare);
        median[r] = times[r][rounds / 2];
    }
}

/* Some small sizes, then those of figure 5 of the technical report. */
static size_t size_next(size_t size)
{
    if (size < 400 << 10) return size * 10;
    return size < 16 << 20 ? 16 << 20 : size * 2;
}

int main(int argc, char **argv)
{
    size_t most = (size_t)(argc > 1 ? atol(argv[1]) : 256) << 20;
    int rounds = argc > 2 ? atoi(argv[2]) : 7;
    struct sysinfo info;
    if (sysinfo(&info) != 0) return EXIT_FAILURE;
    while (most > info.freeram * info.mem_unit / 2) most /= 2;
    if (rounds < 1 || rounds > ROUNDS_MAX || most == 0) {
        fprintf(stderr, "usage: bench_hash [MiB] [1..%d rounds]\n", ROUNDS_MAX);
        return EXIT_FAILURE;
    }
    uint8_t *data = malloc(most);
    if (!data) return EXIT_FAILURE;
    for (size_t i = 0; i < most; ++i) data[i] = (uint8_t)(i * 167 >> 3);

    printf("%10s", "KiB");
    for (int r = 0; r < RUNS; ++r) printf("%10s", runs[r].name);
    printf("   GB/s; hash/1 in us\n");
    for (size_t size = 4096; size <= most; size = size_next(size)) {
        double median[RUNS];
        measure(data, size, rounds, median);
        printf("%10zu", size >> 10);
        for (int r = 0; r < RUNS; ++r)
            printf("%10.2f", (double)size / median[r] * 1e-9);
        printf("%13.2f\n", median[1] * 1e6);
        fflush(stdout);
    }
    free(data);
    return EXIT_SUCCESS;
}
