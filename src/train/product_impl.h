/* product_impl.h - the inner loops, compiled for each instruction set. The
 * including file defines KERNELS, the name of the table, KERNELS_NAME, LANES of
 * a vector, and ROWS of a tile. */
#ifndef PCCL_TRAIN_PRODUCT_IMPL_H
#define PCCL_TRAIN_PRODUCT_IMPL_H

#include "product_kernels.h"

#include <string.h>

typedef float vector __attribute__((vector_size(4 * LANES)));

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

static void tile(float *c, size_t stride, const float *a, const float *b,
                 size_t inner)
{
    vector sums[ROWS][2];
    UNROLL
    for (int i = 0; i < ROWS; i++) {
        memcpy(&sums[i][0], c + (size_t)i * stride, sizeof(vector));
        memcpy(&sums[i][1], c + (size_t)i * stride + LANES, sizeof(vector));
    }
    for (size_t k = 0; k < inner; k++) {
        vector left, right;
        memcpy(&left, b + k * 2 * LANES, sizeof left);
        memcpy(&right, b + k * 2 * LANES + LANES, sizeof right);
        UNROLL
        for (int i = 0; i < ROWS; i++) {
            const float by = a[k * ROWS + (size_t)i];
            sums[i][0] += by * left;
            sums[i][1] += by * right;
        }
    }
    UNROLL
    for (int i = 0; i < ROWS; i++) {
        memcpy(c + (size_t)i * stride, &sums[i][0], sizeof(vector));
        memcpy(c + (size_t)i * stride + LANES, &sums[i][1], sizeof(vector));
    }
}

/* Columns before the pivot have factors of 0: the loop may begin where vectors
 * do. */
static void project(double *x, size_t rows, size_t columns, size_t pivot,
                    const double *restrict factors, double *restrict dots)
{
    const size_t from = pivot & ~(size_t)7;
    const size_t last = pivot > 0 ? pivot - 1 : 0;
    for (size_t i = 0; i < rows; i++) {
        double *restrict row = x + i * columns;
        const double by = row[last];
        for (size_t j = from; j < columns; j++) row[j] -= by * factors[j];
        const double p = row[pivot];
        for (size_t j = from; j < columns; j++) dots[j] += p * row[j];
    }
}

const struct product_kernels KERNELS = {
    .name = KERNELS_NAME,
    .tile_rows = ROWS,
    .tile_columns = 2 * LANES,
    .tile = tile,
    .project = project,
};

#endif
