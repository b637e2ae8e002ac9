/* product.h - products of matrices, and orthonormal columns.
 *
 * Each element of a product is one sum, in the order of its index, without
 * contraction. So its bits depend neither on the instruction set nor on the
 * number of threads. */
#ifndef PCCL_TRAIN_PRODUCT_H
#define PCCL_TRAIN_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

/* A matrix: element (i, k) is at[i * row + k * column]. */
struct product_in {
    const float *at;
    size_t row, column;
};

enum product_mode {
    PRODUCT_SET,      /* c = a b */
    PRODUCT_SUBTRACT, /* c -= a b */
};

/* Memory for the functions below, so that they cannot fail: for columns of at
 * most so many rows to be made orthonormal. NULL: no memory. Allowed for 0 x 0.
 * To be freed by product_room_free. */
struct product_room *product_room_create(size_t rows, size_t columns);
void product_room_free(struct product_room *room);

/* c is rows x columns, by rows; a is rows x inner, b is inner x columns,
 * neither overlaps c. */
void product(struct product_room *room, float *c, struct product_in a,
             struct product_in b, size_t rows, size_t inner, size_t columns,
             enum product_mode mode);

/* Makes the columns of x (rows x columns, by rows) orthonormal, by modified
 * Gram-Schmidt in double. A column that depends on those before it (what is
 * left of it is less than 1e-6 of it) becomes 0, and is marked in dropped. x is
 * finite. */
void orthonormalize(struct product_room *room, float *x, size_t rows,
                    size_t columns, bool *dropped);

/* Uses this instruction set from now on (base, avx2, avx512), for tests. False:
 * this machine does not have it. */
bool product_use(const char *name);

#endif
