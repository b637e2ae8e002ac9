/* product_kernels.h - the table that each product_<isa>.c defines. */
#ifndef PCCL_TRAIN_PRODUCT_KERNELS_H
#define PCCL_TRAIN_PRODUCT_KERNELS_H

#include <stddef.h>

enum {
    TILE_ROWS_MAX = 12,
    TILE_COLUMNS_MAX = 32,
};

struct product_kernels {
    const char *name;
    size_t tile_rows, tile_columns;
    /* A tile of c, whose rows are `stride` apart, += a b. a is packed: inner
     * times tile_rows elements; b: inner times tile_columns, aligned to 64. */
    void (*tile)(float *c, size_t stride, const float *a, const float *b,
                 size_t inner);
    /* One step of Gram-Schmidt over the rows of x: row[j] -= row[pivot - 1] *
     * factors[j], then dots[j] += row[pivot] * row[j], for all j from the pivot
     * on. factors[j] is 0 for j < pivot, and all are for pivot 0. */
    void (*project)(double *x, size_t rows, size_t columns, size_t pivot,
                    const double *factors, double *dots);
};

extern const struct product_kernels product_base;
#ifdef PRODUCT_X86
extern const struct product_kernels product_avx2;
extern const struct product_kernels product_avx512;
#endif

#endif
