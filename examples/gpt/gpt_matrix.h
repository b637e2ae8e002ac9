/* gpt_matrix.h - products of matrices, in blocks that fit the caches. */
#ifndef GPT_MATRIX_H
#define GPT_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

/* The test of the gradient compiles the model with GPT_DOUBLE. */
#ifdef GPT_DOUBLE
typedef double real;
#else
typedef float real;
#endif

/* Element (i, j) is at[i * row + j * column]. The transpose has the strides
 * exchanged. */
struct gpt_matrix {
    const real *at;
    size_t row, column;
};

/* c = a b, or c += a b (add). a is m x k, b is k x n; the rows of c, m x n, are
 * `stride` elements apart, and c overlaps neither. Threads of OpenMP share the
 * work, unless the caller is in a parallel region. Each element is a sum over k
 * in one order, whatever the number of threads: only the instruction set of the
 * processor changes the rounding. */
void gpt_product(real *c, size_t stride, struct gpt_matrix a,
                 struct gpt_matrix b, size_t m, size_t n, size_t k, bool add);

/* The instruction set that is used, for messages. */
const char *gpt_product_kernel(void);

#endif
