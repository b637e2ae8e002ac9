/* samples.h - cases and medians, the same for every program that compare.sh
 * runs: MPI's, Gloo's and the floors.
 *
 * A case is a word: bytes, then perhaps xK for K operations at once, then
 * perhaps i for in place: 8, 65536x64, 268435456i. */
#ifndef PCCL_BENCH_SAMPLES_H
#define PCCL_BENCH_SAMPLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES_MAX 20000
#define SAMPLES_MIN 7
#define SAMPLES_WARM 5

struct sample_case {
    const char *name;
    size_t size; /* bytes of one vector */
    int at_once;
    int in_place;
};

static inline int sample_parse(const char *text, struct sample_case *c)
{
    char *end;
    memset(c, 0, sizeof *c);
    c->name = text;
    c->size = strtoull(text, &end, 10);
    c->at_once = *end == 'x' ? (int)strtol(end + 1, &end, 10) : 1;
    c->in_place = *end == 'i';
    if (c->in_place) end++;
    if (*end == '\0' && end != text && c->at_once >= 1 && c->at_once <= 256)
        return 1;
    fprintf(stderr, "%s is no case: BYTES[xK][i]\n", text);
    return 0;
}

static inline double sample_now(void) /* microseconds */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline int sample_is_long(const struct sample_case *c)
{
    return c->size * (size_t)c->at_once >= (size_t)64 << 20;
}

/* Operations before, to count how many fit. */
static inline int sample_warm(const struct sample_case *c)
{
    return sample_is_long(c) ? 2 : SAMPLES_WARM;
}

/* How many operations of `each` microseconds are measured, `least` at least. */
static inline int sample_count_from(int least, double each)
{
    const char *text = getenv("SAMPLE_SECONDS");
    double seconds = text ? strtod(text, NULL) : 0.3;
    double count = seconds * 1e6 / (each > 0.01 ? each : 0.01);
    if (count < least) return least;
    return count > SAMPLES_MAX ? SAMPLES_MAX : (int)count;
}

static inline int sample_count(double each)
{
    return sample_count_from(SAMPLES_MIN, each);
}

static inline int sample_count_of(const struct sample_case *c, double each)
{
    return sample_count_from(sample_is_long(c) ? 3 : SAMPLES_MIN, each);
}

static inline int sample_by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void sample_print(const struct sample_case *c, double *times,
                                int count)
{
    qsort(times, (size_t)count, sizeof *times, sample_by_value);
    printf("%s %.3f %.3f\n", c->name, times[count / 2], times[0]);
    fflush(stdout);
}

#endif
