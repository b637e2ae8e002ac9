/* test_product.c - products of matrices and orthonormal columns: right, and the
 * same bits with every instruction set and number of threads. */
#include "../../../src/train/product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

static const char *const names[] = {"base", "avx2", "avx512"};

static float *vector(size_t count, uint32_t seed)
{
    float *x = malloc((count + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    return x;
}

static struct product_room *room_of(size_t rows, size_t columns, int threads)
{
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
    struct product_room *room = product_room_create(rows, columns);
    assert_non_null(room);
    return room;
}

static double at(struct product_in x, size_t i, size_t k)
{
    return (double)x.at[i * x.row + k * x.column];
}

/* c was filled with `before`. */
static void check(const float *c, float before, struct product_in a,
                  struct product_in b, const size_t *size,
                  enum product_mode mode)
{
    for (size_t i = 0; i < size[0]; i++) {
        for (size_t j = 0; j < size[2]; j++) {
            double sum = 0;
            for (size_t k = 0; k < size[1]; k++)
                sum += at(a, i, k) * at(b, k, j);
            if (mode == PRODUCT_SUBTRACT) sum = (double)before - sum;
            double got = (double)c[i * size[2] + j];
            assert_true(fabs(got - sum) <= 4e-6 * sqrt((double)size[1]) + 1e-5);
        }
    }
}

static void check_size(const size_t *size, enum product_mode mode, bool across)
{
    const size_t m = size[0], k = size[1], n = size[2], count = m * n;
    float *x = vector(m * k, 1), *y = vector(k * n, 2);
    struct product_in a =
        across ? (struct product_in){x, 1, m} : (struct product_in){x, k, 1};
    struct product_in b =
        across ? (struct product_in){y, 1, k} : (struct product_in){y, n, 1};
    float *first = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!product_use(names[i])) continue;
        for (int threads = 1; threads <= 3; threads += 2) {
            struct product_room *room = room_of(0, 0, threads);
            float *c = vector(count, 3);
            for (size_t e = 0; e < count; e++) c[e] = 7;
            c[count] = 42;
            product(room, c, a, b, m, k, n, mode);
            assert_true(c[count] == 42); /* nothing behind it */
            if (!first) check(c, 7, a, b, size, mode);
            if (first) assert_memory_equal(c, first, count * sizeof *c);
            if (first)
                free(c);
            else
                first = c;
            product_room_free(room);
        }
    }
    free(first);
    free(x);
    free(y);
}

static void test_products(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {
        {1, 1, 1},     {3, 5, 7},     {12, 256, 32}, {13, 257, 33},
        {97, 64, 300}, {300, 513, 4}, {5, 1, 600},   {200, 700, 70}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_size(sizes[i], PRODUCT_SET, false);
        check_size(sizes[i], PRODUCT_SET, true);
        check_size(sizes[i], PRODUCT_SUBTRACT, false);
        check_size(sizes[i], PRODUCT_SUBTRACT, true);
    }
}

static double dot(const float *x, size_t rows, size_t columns, size_t a,
                  size_t b)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        sum += (double)x[i * columns + a] * (double)x[i * columns + b];
    return sum;
}

/* Columns of very different sizes; one is 0, one is the sum of two others,
 * one is another one. */
static void spoil(float *x, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++) {
        float *row = x + i * columns;
        row[0] *= 1e-20F;
        row[1] *= 1e15F;
        row[3] = 0;
        row[4] = row[1] + row[2] * 1e10F;
        row[5] = row[2];
    }
}

static void check_columns(size_t rows, size_t columns, bool bad)
{
    float *first = NULL;
    bool dropped[32];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (!product_use(names[n])) continue;
        float *x = vector(rows * columns, 5);
        if (bad) spoil(x, rows, columns);
        struct product_room *room = room_of(rows, columns, 1);
        orthonormalize(room, x, rows, columns, dropped);
        product_room_free(room);
        if (first) {
            assert_memory_equal(x, first, rows * columns * sizeof *x);
            free(x);
        } else {
            first = x;
        }
    }
    for (size_t a = 0; a < columns; a++) {
        assert_int_equal(dropped[a], bad && a >= 3 && a <= 5);
        for (size_t b = 0; b <= a; b++) {
            double want = a == b && !dropped[a] ? 1 : 0;
            assert_true(fabs(dot(first, rows, columns, a, b) - want) < 1e-5);
        }
    }
    free(first);
}

static void test_orthonormal(void **state)
{
    (void)state;
    check_columns(1, 1, false);
    check_columns(50, 8, false);
    check_columns(333, 31, false);
    check_columns(333, 13, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_orthonormal),
    };
    return cmocka_run_group_tests_name("train/product", tests, NULL, NULL);
}
