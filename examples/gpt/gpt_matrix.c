/* gpt_matrix.c - a product in blocks: panels of b, blocks of a, tiles of c.
 *
 * A block of b (DEEP x WIDE) is copied into panels as wide as a tile, for all
 * threads; each thread copies its blocks of a (HIGH x DEEP) into panels as high
 * as a tile. So the inner loop reads both along memory, whatever their strides
 * (Goto & van de Geijn, ACM TOMS 34(3), 2008). */
#include "gpt_matrix.h"

#include <string.h>

#define DEEP 256
#define WIDE 512
#define HIGH 48 /* divisible by the rows of each tile */

#if defined(__x86_64__)
#define TILE_NAME tile_avx512
#define TILE_TARGET __attribute__((target("avx512f")))
#define TILE_BYTES 64
#define TILE_ROWS 8
#define TILE_VECTORS 2
#include "gpt_tile.h"

#define TILE_NAME tile_avx2
#define TILE_TARGET __attribute__((target("avx2,fma")))
#define TILE_BYTES 32
#define TILE_ROWS 6
#define TILE_VECTORS 2
#include "gpt_tile.h"
#endif

#define TILE_NAME tile_base
#define TILE_TARGET
#define TILE_BYTES 16
#define TILE_ROWS 4
#define TILE_VECTORS 2
#include "gpt_tile.h"

struct kernel {
    const char *name;
    size_t rows, columns; /* of a tile */
    void (*tile)(size_t k, const real *a, const real *b, real *c, size_t stride,
                 bool add);
};

#define MOST_ROWS 8
#define MOST_COLUMNS (2 * 64 / sizeof(real))

static const struct kernel kernels[] = {
    {"base", 4, 2 * 16 / sizeof(real), tile_base},
#if defined(__x86_64__)
    {"AVX2", 6, 2 * 32 / sizeof(real), tile_avx2},
    {"AVX-512", 8, 2 * 64 / sizeof(real), tile_avx512},
#endif
};

static const struct kernel *choose(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return &kernels[2];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &kernels[1];
#endif
    return &kernels[0];
}

const char *gpt_product_kernel(void)
{
    return choose()->name;
}

/* Copies `lines` lines of `depth` elements, `line` and `step` apart, into
 * panels of `high` lines, in which the elements of one depth are neighbours.
 * Lines that are missing in the last panel are 0. */
static void pack(real *restrict out, const real *from, size_t line, size_t step,
                 size_t lines, size_t depth, size_t high)
{
    for (size_t first = 0; first < lines; first += high) {
        size_t count = lines - first < high ? lines - first : high;
        for (size_t p = 0; p < depth; p++) {
            const real *at = from + first * line + p * step;
            for (size_t i = 0; i < count; i++) out[i] = at[i * line];
            for (size_t i = count; i < high; i++) out[i] = 0;
            out += high;
        }
    }
}

struct block { /* of the product that is being made */
    const struct kernel *kernel;
    real *c;
    size_t stride, rows, columns, depth;
    bool add;
};

static void multiply(const struct block *b, const real *left, const real *right)
{
    const size_t high = b->kernel->rows, wide = b->kernel->columns;
    for (size_t j = 0; j < b->columns; j += wide) {
        for (size_t i = 0; i < b->rows; i += high) {
            const real *x = left + i * b->depth, *y = right + j * b->depth;
            real *c = b->c + i * b->stride + j;
            size_t rows = b->rows - i, columns = b->columns - j;
            if (rows >= high && columns >= wide) {
                b->kernel->tile(b->depth, x, y, c, b->stride, b->add);
                continue;
            }
            /* a tile on the border */
            real whole[MOST_ROWS * MOST_COLUMNS];
            b->kernel->tile(b->depth, x, y, whole, wide, false);
            for (size_t r = 0; r < rows && r < high; r++) {
                for (size_t s = 0; s < columns && s < wide; s++) {
                    real *at = c + r * b->stride + s;
                    *at = whole[r * wide + s] + (b->add ? *at : 0);
                }
            }
        }
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void gpt_product(real *c, size_t stride, struct gpt_matrix a,
                 struct gpt_matrix b, size_t m, size_t n, size_t k, bool add)
{
    static _Thread_local real panels[DEEP * (WIDE + MOST_COLUMNS)];
    real *right = panels; /* of the calling thread, for all */
    const struct kernel *kernel = choose();
    const size_t wide = kernel->columns;
#pragma omp parallel if (m * n * k > 65536)
    for (size_t j = 0; j < n; j += WIDE) {
        size_t columns = least(n - j, WIDE);
        for (size_t p = 0; p < k; p += DEEP) {
            size_t depth = least(k - p, DEEP);
            const real *from = b.at + p * b.row + j * b.column;
#pragma omp for
            for (size_t s = 0; s < columns; s += wide)
                pack(right + s * depth, from + s * b.column, b.column, b.row,
                     least(columns - s, wide), depth, wide);
#pragma omp for
            for (size_t i = 0; i < m; i += HIGH) {
                static _Thread_local real left[HIGH * DEEP];
                struct block block = {kernel,      c + i * stride + j,
                                      stride,      least(m - i, HIGH),
                                      columns,     depth,
                                      add || p > 0};
                pack(left, a.at + i * a.row + p * a.column, a.row, a.column,
                     block.rows, depth, kernel->rows);
                multiply(&block, left, right);
            }
        }
    }
}
