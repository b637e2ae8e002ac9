/* bench_product.c - the speed of the products and of the orthonormal columns of
 * PowerSGD, for each instruction set of this machine.
 *
 *     bench_product [ROWS COLUMNS RANK [THREADS]] */
#include "../../src/train/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Processor time of all threads: other programs do not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *vector(size_t count)
{
    float *x = malloc(count * sizeof *x);
    if (!x) exit(1);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(i * 2654435761u % 1000) / 1000 - 0.5F;
    return x;
}

struct bench {
    struct product_room *room;
    size_t m, n, r;
    float *grad, *p, *q;
    bool *dropped;
};

static void m_q(struct bench *b)
{
    product(b->room, b->p, (struct product_in){b->grad, b->n, 1},
            (struct product_in){b->q, b->r, 1}, b->m, b->n, b->r, PRODUCT_SET);
}

static void mt_p(struct bench *b)
{
    product(b->room, b->q, (struct product_in){b->grad, 1, b->n},
            (struct product_in){b->p, b->r, 1}, b->n, b->m, b->r, PRODUCT_SET);
}

static void p_qt(struct bench *b)
{
    product(b->room, b->grad, (struct product_in){b->p, b->r, 1},
            (struct product_in){b->q, 1, b->r}, b->m, b->r, b->n, PRODUCT_SET);
}

static void orthonormal(struct bench *b)
{
    orthonormalize(b->room, b->p, b->m, b->r, b->dropped);
}

/* The best of some runs, in seconds. */
static double best(void (*run)(struct bench *), struct bench *b)
{
    double least = 1e9;
    double end = now() + 1;
    do {
        double begin = now();
        run(b);
        double took = now() - begin;
        if (took < least) least = took;
    } while (now() < end);
    return least;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    struct bench b = {.m = 4096, .n = 4096, .r = 64};
    if (argc > 3) {
        b.m = strtoul(argv[1], NULL, 10);
        b.n = strtoul(argv[2], NULL, 10);
        b.r = strtoul(argv[3], NULL, 10);
    }
    if (argc > 4) (void)setenv("OMP_NUM_THREADS", argv[4], 1);
    b.room = product_room_create(b.m, b.r);
    b.grad = vector(b.m * b.n);
    b.p = vector(b.m * b.r);
    b.q = vector(b.n * b.r);
    b.dropped = calloc(b.r, sizeof *b.dropped);
    if (!b.room || !b.dropped) return 1;
    double flop = 2e-9 * (double)b.m * (double)b.n * (double)b.r;
    double steps = 2e-9 * (double)b.m * (double)b.r * (double)b.r;
    printf("GFLOP/s of a processor, %zu x %zu, rank %zu\n", b.m, b.n, b.r);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!product_use(names[i])) continue;
        printf("%-7s M Q %6.1f  ", names[i], flop / best(m_q, &b));
        printf("orthonormal %6.1f  ", steps / best(orthonormal, &b));
        printf("M' P %6.1f  ", flop / best(mt_p, &b));
        printf("P Q' %6.1f\n", flop / best(p_qt, &b));
    }
    product_room_free(b.room);
    free(b.grad);
    free(b.p);
    free(b.q);
    free(b.dropped);
    return 0;
}
