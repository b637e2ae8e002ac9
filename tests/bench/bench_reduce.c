/* bench_reduce.c - GB/s of result per type and operator, in place as the ring
 * does it; memory traffic is three times that. With an argument, only kernels
 * of that name (base, avx2, avx512), else the best of this CPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/reduce/reduce_kernels.h"

enum { SIZE_CACHE = 256 << 10, SIZE_MEMORY = 64 << 20 };

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ones: results stay finite and normal, which subnormals would slow down. */
static void ones_fill(enum dtype type, void *data, size_t size)
{
    const uint16_t f16 = 0x3c00, bf16 = 0x3f80;
    const float f32 = 1;
    const double f64 = 1;
    const uint64_t integer = 0x0101010101010101;
    const void *one = type == DTYPE_F16    ? (const void *)&f16
                      : type == DTYPE_BF16 ? (const void *)&bf16
                      : type == DTYPE_F32  ? (const void *)&f32
                      : type == DTYPE_F64  ? (const void *)&f64
                                           : (const void *)&integer;
    size_t step = dtype_size(type);

    for (size_t i = 0; i < size; i += step) memcpy((char *)data + i, one, step);
}

/* Column REDOP_AVG is the division, as its reduction is that of SUM. */
static void column_run(const struct reduce_kernels *k, enum dtype type,
                       enum redop op, void *a, const void *b, size_t count)
{
    if (op == REDOP_AVG)
        k->divide[type](a, count, 1);
    else
        k->apply[type][op](a, a, b, count);
}

/* Best of many runs: the machine may be shared. */
static double column_speed(const struct reduce_kernels *k, enum dtype type,
                           enum redop op, void *a, void *b, size_t size)
{
    size_t count = size / dtype_size(type);
    size_t repeat = size == SIZE_MEMORY ? 1 : 8;
    double best = 1e9, end = seconds() + 0.1;

    ones_fill(type, a, size);
    ones_fill(type, b, size);
    do {
        double start = seconds(), took;
        for (size_t i = 0; i < repeat; i++)
            column_run(k, type, op, a, b, count);
        took = seconds() - start;
        if (took < best) best = took;
    } while (seconds() < end);
    return 1e-9 * (double)(size * repeat) / best;
}

int main(int argc, char **argv)
{
    const size_t sizes[] = {SIZE_CACHE, SIZE_MEMORY};
    void *a = aligned_alloc(64, SIZE_MEMORY),
         *b = aligned_alloc(64, SIZE_MEMORY);
    const struct reduce_kernels *k = reduce_kernels_usable(0);

    for (size_t i = 1; argc > 1 && k && strcmp(k->name, argv[1]) != 0; i++)
        k = reduce_kernels_usable(i);
    if (!k || !a || !b) return 1;
    for (size_t s = 0; s < ARRAY_COUNT(sizes); s++) {
        printf("%s, %zu KiB: GB/s of result\n%-6s", k->name, sizes[s] >> 10,
               "");
        for (int op = 0; op < REDOP_COUNT; op++)
            printf("%8s",
                   op == REDOP_AVG ? "divide" : redop_name((enum redop)op));
        for (int type = 0; type < DTYPE_COUNT; type++) {
            printf("\n%-6s", dtype_name((enum dtype)type));
            for (int op = 0; op < REDOP_COUNT; op++)
                printf("%8.2f", column_speed(k, (enum dtype)type,
                                             (enum redop)op, a, b, sizes[s]));
        }
        printf("\n");
    }
    free(a);
    free(b);
    return 0;
}
