/* bench_quant.c - GB/s of elements that become codes, come back, and are
 * combined as a ring does it: by kernels for blocks in the cache, by type for
 * vectors in the cache and in memory. Then how far they are off. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/reduce/quant_kernels.h"

enum { SIZE_CACHE = 256 << 10, SIZE_MEMORY = 64 << 20 };

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Numbers of usual size in every type: patterns with a fixed exponent. */
static void numbers_fill(enum dtype type, void *data, size_t size)
{
    uint64_t x = 1;
    size_t step = dtype_size(type);

    for (size_t i = 0; i + step <= size; i += step) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const uint64_t f64 = x >> 13 | 0x3ff0000000000000u;
        const uint32_t f32 = (uint32_t)(x >> 41) | 0x3f800000;
        const uint16_t f16 = (uint16_t)(x >> 54 | 0x3c00);
        const uint16_t bf16 = (uint16_t)(x >> 57 | 0x3f80);
        const void *from = type == DTYPE_F64   ? (const void *)&f64
                           : type == DTYPE_F32 ? (const void *)&f32
                           : type == DTYPE_F16 ? (const void *)&f16
                                               : (const void *)&bf16;
        memcpy((char *)data + i, from, step);
    }
}

enum column { ENCODE, DECODE, COMBINE, COLUMNS };

struct buffers {
    void *elements, *codes, *result;
};

static void run(const struct quant *q, const struct quant_kernels *k,
                enum column column, const struct buffers *b, size_t count)
{
    quant_block_fn *const *row = NULL;
    enum quant_wide wide = q->source == DTYPE_F64 ? QUANT_F64 : QUANT_F32;

    if (k) { /* one block, again and again */
        row = column == ENCODE ? k->encode[wide] : k->decode[wide];
        for (size_t i = 0; i < count; i += QUANT_BLOCK)
            row[dtype_size(q->code) / 2](
                (int)q->algorithm, column == ENCODE ? b->codes : b->result,
                column == ENCODE ? b->elements : b->codes, QUANT_BLOCK);
    } else if (column == ENCODE) {
        quant_encode(q, b->codes, b->elements, count);
    } else if (column == DECODE) {
        quant_decode(q, b->result, b->codes, count);
    } else {
        quant_combine(q, REDOP_SUM, b->result, b->codes, b->elements, count, 0);
    }
}

/* Best of many runs: the machine may be shared. */
static double speed(const struct quant *q, const struct quant_kernels *k,
                    enum column column, const struct buffers *b, size_t size)
{
    size_t count = size / dtype_size(q->source);
    size_t repeat = size == SIZE_MEMORY ? 1 : 8;
    double best = 1e9, end = seconds() + 0.1;

    do {
        double start = seconds(), took;
        for (size_t i = 0; i < repeat; i++) run(q, k, column, b, count);
        took = seconds() - start;
        if (took < best) best = took;
    } while (seconds() < end);
    return 1e-9 * (double)(size * repeat) / best;
}

static void table(const struct quant_kernels *k, size_t size,
                  const struct buffers *b)
{
    static const enum dtype ways[][2] = {
        {DTYPE_F32, DTYPE_U8},  {DTYPE_F32, DTYPE_U16}, {DTYPE_F64, DTYPE_U8},
        {DTYPE_F64, DTYPE_U16}, {DTYPE_F64, DTYPE_U32}, {DTYPE_F16, DTYPE_U8},
        {DTYPE_BF16, DTYPE_U8}};

    for (size_t w = 0; w < (k ? 5 : ARRAY_COUNT(ways)); w++) {
        struct quant q = {QUANT_MINMAX, ways[w][0], ways[w][1]};
        numbers_fill(q.source, b->elements, size);
        quant_encode(&q, b->codes, b->elements, size / dtype_size(q.source));
        printf("%5s to %-4s", dtype_name(q.source), dtype_name(q.code));
        for (int column = 0; column < (k ? COMBINE : COLUMNS); column++)
            printf("%9.2f", speed(&q, k, (enum column)column, b, size));
        printf("\n");
    }
}

/* Floats of normal distribution, by the sum of uniform ones. */
static void normal_fill(float *data, size_t count)
{
    uint64_t x = 1;

    for (size_t i = 0; i < count; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            sum += (double)(x >> 11) * 0x1p-53;
        }
        data[i] = (float)sum;
    }
}

/* The range of a block's numbers: of MinMax's codes, or of those with 0. */
static double range(const float *block, size_t count, double least)
{
    double lo = least, hi = -least;

    for (size_t i = 0; i < count; i++) {
        lo = fmin(lo, (double)block[i]);
        hi = fmax(hi, (double)block[i]);
    }
    return hi - lo;
}

static void errors(const struct buffers *b)
{
    static const struct {
        const char *name;
        struct quant quant;
    } ways[] = {
        {"MinMax", {QUANT_MINMAX, DTYPE_F32, DTYPE_U8}},
        {"MinMax", {QUANT_MINMAX, DTYPE_F32, DTYPE_U16}},
        {"ZeroPointScale", {QUANT_ZERO_POINT_SCALE, DTYPE_F32, DTYPE_U8}},
        {"ZeroPointScale", {QUANT_ZERO_POINT_SCALE, DTYPE_F32, DTYPE_U16}}};
    enum { COUNT = 1 << 20 };
    const float *from = b->elements, *to = b->result;

    normal_fill(b->elements, COUNT);
    printf("normal floats there and back: bytes saved, root mean square of the "
           "error by\nthat of the numbers, largest error in steps of its "
           "block (0.52 is promised)\n");
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        const struct quant *q = &ways[w].quant;
        bool minmax = q->algorithm == QUANT_MINMAX;
        double codes = q->code == DTYPE_U8 ? 255 : 65535;
        double worst = 0, square = 0, all = 0;
        quant_encode(q, b->codes, from, COUNT);
        quant_decode(q, b->result, b->codes, COUNT);
        for (size_t i = 0; i < COUNT; i += QUANT_BLOCK) {
            double step =
                range(from + i, QUANT_BLOCK, minmax ? INFINITY : 0) / codes;
            for (size_t k = i; k < i + QUANT_BLOCK; k++) {
                double off = fabs((double)from[k] - (double)to[k]);
                square += off * off;
                all += (double)from[k] * (double)from[k];
                worst = fmax(worst, off / step);
            }
        }
        printf("%14s, f32 to %-3s  %.2f x  %.2e  %.3f\n", ways[w].name,
               dtype_name(q->code),
               (double)COUNT * 4 / (double)quant_size(q, COUNT),
               sqrt(square / all), worst);
    }
}

int main(void)
{
    const struct quant_kernels *k;
    struct buffers b = {aligned_alloc(64, SIZE_MEMORY),
                        aligned_alloc(64, SIZE_MEMORY),
                        aligned_alloc(64, SIZE_MEMORY)};

    if (!b.elements || !b.codes || !b.result) return 1;
    for (size_t i = 0; (k = quant_kernels_usable(i)); i++) {
        printf("%s, one block: GB/s of elements\n%12s%9s%9s\n", k->name, "",
               "encode", "decode");
        table(k, SIZE_CACHE, &b);
    }
    for (int m = 0; m < 2; m++) {
        printf("vectors of %d KiB: GB/s of elements\n%12s%9s%9s%9s\n",
               (m ? SIZE_MEMORY : SIZE_CACHE) >> 10, "", "encode", "decode",
               "combine");
        table(NULL, m ? SIZE_MEMORY : SIZE_CACHE, &b);
    }
    errors(&b);
    free(b.elements);
    free(b.codes);
    free(b.result);
    return 0;
}
