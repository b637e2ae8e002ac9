/* gpt_speed.c - how fast this machine multiplies, and how fast it trains. */
#include "gpt_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of ten, of at least 10 ms each. */
static void product(const char *what, size_t m, size_t n, size_t k)
{
    real *a = calloc(m * k + k * n + m * n, sizeof *a);
    real *b = a + m * k, *c = b + k * n;
    if (!a) return;
    const double each = 2e-9 * (double)m * (double)n * (double)k;
    const int repeat = 1 + (int)(0.5 / each);
    double best = 0;
    for (int i = 0; i < 10; i++) {
        double begin = seconds();
        for (int r = 0; r < repeat; r++)
            gpt_product(c, n, (struct gpt_matrix){a, k, 1},
                        (struct gpt_matrix){b, n, 1}, m, n, k, false);
        double rate = repeat * each / (seconds() - begin);
        if (rate > best) best = rate;
    }
    free(a);
    printf("%-12s %4zu x %4zu x %4zu  %6.1f GFLOP/s\n", what, m, n, k, best);
}

void gpt_speed(struct gpt_run *run)
{
    const size_t d = run->gpt.shape.width, rows = 4 * run->gpt.shape.context;
    product("up", rows, 4 * d, d);
    product("down", rows, d, 4 * d);
    product("gradient", d, 4 * d, rows);
    double best = 0;
    for (int i = 0; i < 5; i++) {
        float loss;
        double begin = seconds();
        int samples = gpt_run_gradient(run, i, &loss);
        double rate = samples / (seconds() - begin);
        if (rate > best) best = rate;
    }
    const double tokens = best * (double)run->gpt.shape.context;
    printf("training     %.0f bytes of text/s, %.1f GFLOP/s\n", tokens,
           6e-9 * tokens * (double)run->gpt.count);
}
