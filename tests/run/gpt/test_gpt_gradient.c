/* test_gpt_gradient.c - the gradient of the example's transformer against
 * differences of its loss, in double; and its products against sums. */
#include "../../../examples/gpt/gpt_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

_Static_assert(sizeof(real) == sizeof(double), "compiled with GPT_DOUBLE");

static double unit(uint64_t number)
{
    return (double)(gpt_random(number) >> 11) / (double)((uint64_t)1 << 52) - 1;
}

/* Every order of rows and columns, sizes on both sides of each block's. */
static void products(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 5, 51, 260, 515};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    double *a = calloc(515 * 515, sizeof *a), *b = calloc(515 * 515, sizeof *b);
    double *c = calloc(515 * 518, sizeof *c);
    assert_true(a && b && c);
    for (size_t i = 0; i < 515 * 515; i++) {
        a[i] = unit(i);
        b[i] = unit(i + 1000000);
    }
    for (size_t x = 0; x < COUNT * COUNT * COUNT; x++) {
        size_t m = sizes[x % COUNT], n = sizes[x / COUNT % COUNT];
        size_t k = sizes[x / COUNT / COUNT];
        struct gpt_matrix left = {a, x & 1 ? 1 : k, x & 1 ? m : 1};
        struct gpt_matrix right = {b, x & 2 ? 1 : n, x & 2 ? k : 1};
        bool add = x & 4;
        for (size_t i = 0; i < 515 * 518; i++) c[i] = 3;
        gpt_product(c, n + 3, left, right, m, n, k, add);
        for (size_t i = 0; i < m; i += 1 + m / 5) {
            for (size_t j = i % 3; j < n; j += 3) {
                double sum = add ? 3 : 0;
                for (size_t p = 0; p < k; p++)
                    sum += a[i * left.row + p * left.column] *
                           b[p * right.row + j * right.column];
                assert_true(fabs(c[i * (n + 3) + j] - sum) < 1e-10);
            }
            assert_true(c[i * (n + 3) + n] == 3); /* not its column */
        }
    }
    free(a);
    free(b);
    free(c);
}

/* Three samples, two at a time. Every tensor, some of its weights. */
static void differences(void **state)
{
    (void)state;
    const struct gpt_shape shape = {
        .layers = 2, .heads = 3, .width = 12, .context = 7};
    struct gpt gpt;
    assert_true(gpt_create(&gpt, shape, 2, 5));
    unsigned char text[40];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * i % 11);
    const unsigned char *samples[] = {text, text + 9, text + 20};
    double loss = gpt_gradient(&gpt, samples, 3);
    assert_true(fabs(loss / 3 - log(GPT_SYMBOLS)) < 1);
    assert_true(loss == gpt_loss(&gpt, samples, 3));
    double *at = gpt.weights;
    for (size_t t = 0; t < gpt.tensor_count; t++) {
        size_t count = gpt.tensors[t].rows * gpt.tensors[t].columns;
        for (size_t i = 0; i < count; i += 1 + count / 37) {
            const double step = 1e-5, was = at[i];
            at[i] = was + step;
            double above = gpt_loss(&gpt, samples, 3);
            at[i] = was - step;
            double below = gpt_loss(&gpt, samples, 3);
            at[i] = was;
            double slope = (above - below) / (2 * step);
            double found = gpt.gradient[at + i - gpt.weights];
            if (fabs(found - slope) > 1e-8 + 1e-6 * fabs(slope))
                fail_msg("%s, weight %zu: %.10g, difference %.10g",
                         gpt.tensors[t].name, i, found, slope);
        }
        at += count;
    }
    assert_ptr_equal(at, gpt.weights + gpt.count);
    gpt_free(&gpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
