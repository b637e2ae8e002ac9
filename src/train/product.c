/* product.c - products by tiles that stay in registers, of blocks that stay in
 * the caches. */
#include "product.h"
#include "product_kernels.h"

#include <fenv.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    INNER = 256,    /* a block of the sums: 32 KiB of a panel of b */
    COLUMNS = 256,  /* of a block of b */
    ROWS_BLOCK = 96 /* of a block of a; a multiple of all tile_rows */
};

/* A thread is worth its start for that many multiplications. */
static const double thread_work = 4e6;

/* The best that this machine has, or the one of that name. */
static const struct product_kernels *choose(const char *name)
{
#ifdef PRODUCT_X86
    if (__builtin_cpu_supports("avx512f") &&
        (!name || strcmp(name, "avx512") == 0))
        return &product_avx512;
    if (__builtin_cpu_supports("avx2") && (!name || strcmp(name, "avx2") == 0))
        return &product_avx2;
#endif
    return !name || strcmp(name, "base") == 0 ? &product_base : NULL;
}

static _Atomic(const struct product_kernels *) chosen;

static const struct product_kernels *kernels(void)
{
    const struct product_kernels *k = atomic_load(&chosen);
    if (!k) {
        k = choose(NULL);
        atomic_store(&chosen, k);
    }
    return k;
}

bool product_use(const char *name)
{
    const struct product_kernels *k = choose(name);
    if (k) atomic_store(&chosen, k);
    return k != NULL;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------------ packing */

/* Panels of `width` rows of x (rows x inner), each inner x width; rows that are
 * not there are 0. */
static void pack(float *to, struct product_in x, size_t rows, size_t inner,
                 size_t width, float sign)
{
    for (size_t i = 0; i < rows; i += width, to += inner * width) {
        const size_t n = least(width, rows - i);
        const float *from = x.at + i * x.row;
        if (n < width) memset(to, 0, inner * width * sizeof *to);
        for (size_t k = 0; k < inner; k++) {
            for (size_t r = 0; r < n; r++)
                to[k * width + r] = sign * from[r * x.row + k * x.column];
        }
    }
}

static struct product_in part(struct product_in x, size_t row, size_t column)
{
    x.at += row * x.row + column * x.column;
    return x;
}

/* Swaps rows and columns. */
static struct product_in across(struct product_in x)
{
    return (struct product_in){x.at, x.column, x.row};
}

/* ------------------------------------------------------------------- blocks */

struct multiplication {
    const struct product_kernels *kernels;
    float *c;
    size_t stride; /* of rows of c */
    struct product_in a, b;
    size_t rows, inner, columns;
    float sign;
};

/* A tile at the lower or right border has a copy of its own. */
static void border(const struct multiplication *j, float *c, size_t rows,
                   size_t columns, const float *a, const float *b, size_t inner)
{
    _Alignas(64) float copy[TILE_ROWS_MAX * TILE_COLUMNS_MAX] = {0};
    const size_t width = j->kernels->tile_columns;
    for (size_t i = 0; i < rows; i++)
        memcpy(copy + i * width, c + i * j->stride, columns * sizeof *c);
    j->kernels->tile(copy, width, a, b, inner);
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * j->stride, copy + i * width, columns * sizeof *c);
}

/* c (rows x columns) += packed a times packed b. */
static void block(const struct multiplication *j, float *c, size_t rows,
                  size_t columns, const float *a, const float *b, size_t inner)
{
    const size_t high = j->kernels->tile_rows, wide = j->kernels->tile_columns;
    for (size_t n = 0; n < columns; n += wide) {
        for (size_t m = 0; m < rows; m += high) {
            float *at = c + m * j->stride + n;
            const float *left = a + m * inner, *right = b + n * inner;
            if (m + high <= rows && n + wide <= columns)
                j->kernels->tile(at, j->stride, left, right, inner);
            else
                border(j, at, least(high, rows - m), least(wide, columns - n),
                       left, right, inner);
        }
    }
}

/* All columns of some rows of c; room is for the packed blocks. */
static void multiply(const struct multiplication *j, size_t from, size_t to,
                     float *room)
{
    float *packed_a = room, *packed_b = room + ROWS_BLOCK * INNER;
    const size_t high = j->kernels->tile_rows, wide = j->kernels->tile_columns;
    for (size_t n = 0; n < j->columns; n += COLUMNS) {
        const size_t columns = least(COLUMNS, j->columns - n);
        for (size_t k = 0; k < j->inner; k += INNER) {
            const size_t inner = least(INNER, j->inner - k);
            pack(packed_b, across(part(j->b, k, n)), columns, inner, wide, 1);
            for (size_t m = from; m < to; m += ROWS_BLOCK) {
                const size_t rows = least(ROWS_BLOCK, to - m);
                pack(packed_a, part(j->a, m, k), rows, inner, high, j->sign);
                block(j, j->c + m * j->stride + n, rows, columns, packed_a,
                      packed_b, inner);
            }
        }
    }
}

enum { ROOM = (ROWS_BLOCK + COLUMNS + TILE_COLUMNS_MAX) * INNER };

struct product_room {
    size_t threads;
    float *packed; /* ROOM for each thread */
    double *work;  /* of the orthonormal columns */
};

struct product_room *product_room_create(size_t rows, size_t columns)
{
    struct product_room *room = calloc(1, sizeof *room);
    if (!room) return NULL;
    room->threads = 1;
#ifdef _OPENMP
    room->threads = (size_t)omp_get_max_threads();
#endif
    room->packed = aligned_alloc(64, room->threads * ROOM * sizeof(float));
    room->work = calloc(rows * columns + 4 * columns + 1, sizeof(double));
    if (room->packed && room->work) return room;
    product_room_free(room);
    return NULL;
}

void product_room_free(struct product_room *room)
{
    if (!room) return;
    free(room->packed);
    free(room->work);
    free(room);
}

static size_t thread_count(const struct multiplication *j, size_t most)
{
    double work = (double)j->rows * (double)j->inner * (double)j->columns;
    size_t count = (size_t)fmin(work / thread_work, (double)most);
    return count > 0 ? count : 1;
}

void product(struct product_room *room, float *c, struct product_in a,
             struct product_in b, size_t rows, size_t inner, size_t columns,
             enum product_mode mode)
{
    const struct multiplication j = {.kernels = kernels(),
                                     .c = c,
                                     .stride = columns,
                                     .a = a,
                                     .b = b,
                                     .rows = rows,
                                     .inner = inner,
                                     .columns = columns,
                                     .sign = mode == PRODUCT_SUBTRACT ? -1.0F
                                                                      : 1.0F};
    const size_t threads = thread_count(&j, room->threads);
    if (mode == PRODUCT_SET) memset(c, 0, rows * columns * sizeof *c);
    const size_t each = (rows + threads - 1) / threads;
#ifdef _OPENMP
#pragma omp parallel for num_threads((int)threads) schedule(static)
#endif
    for (size_t t = 0; t < threads; t++) {
        const size_t from = least(t * each, rows);
        fenv_t saved; /* of this thread */
        (void)fegetenv(&saved);
        (void)fesetenv(FE_DFL_ENV);
        multiply(&j, from, least(from + each, rows), room->packed + t * ROOM);
        (void)fesetenv(&saved);
    }
}

/* ----------------------------------------------------- orthonormal columns */

/* `work` has rows x columns doubles, then four of `columns`. */
static void gram_schmidt(double *work, size_t rows, size_t columns,
                         bool *dropped)
{
    const double tolerance = 1e-12; /* of squares */
    double *at_first = work + rows * columns, *factors = at_first + columns;
    double *dots = factors + columns, *scales = dots + columns;
    memset(at_first, 0, 4 * columns * sizeof *work);
    for (size_t i = 0; i < rows; i++) {
        const double *row = work + i * columns;
        for (size_t j = 0; j < columns; j++) at_first[j] += row[j] * row[j];
    }
    for (size_t k = 0; k < columns; k++) {
        memset(dots, 0, columns * sizeof *dots);
        kernels()->project(work, rows, columns, k, factors, dots);
        const double square = dots[k];
        dropped[k] = !(square > tolerance * at_first[k]);
        scales[k] = dropped[k] ? 0 : 1 / sqrt(square);
        for (size_t j = 0; j < columns; j++)
            factors[j] = j <= k || dropped[k] ? 0 : dots[j] / square;
    }
}

void orthonormalize(struct product_room *room, float *x, size_t rows,
                    size_t columns, bool *dropped)
{
    double *work = room->work;
    for (size_t i = 0; i < rows * columns; i++) work[i] = (double)x[i];
    gram_schmidt(work, rows, columns, dropped);
    const double *scales = work + rows * columns + 3 * columns;
    for (size_t i = 0; i < rows; i++) {
        const double *row = work + i * columns;
        for (size_t j = 0; j < columns; j++)
            x[i * columns + j] = (float)(row[j] * scales[j]);
    }
}
