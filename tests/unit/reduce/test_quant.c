/* test_quant.c - codes are what quant.h defines, with every instruction set;
 * values are as near as it promises; vectors of any length keep to their
 * bytes; a ring of members gets the same bits everywhere. */
#include "quant_model.h"

#include "../../../src/reduce/quant_kernels.h"
#include "../../../src/reduce/reduce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD_MAX = 9, GUARD = 64 };

static uint64_t random_state = 1;

/* splitmix64: Steele, Lea & Flood, OOPSLA 2014. */
static uint64_t next_random(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(void)
{
    return (double)(next_random() >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

/* ------------------------------------------------------------ what is input */

enum shape {
    NORMAL,
    UNIFORM,
    NEGATIVE,
    CONSTANT,
    ZERO,
    SPARSE,
    OUTLIER,
    OFFSET,
    TINY,       /* subnormals */
    LEAST,      /* a few units of the smallest number */
    HUGE_RANGE, /* its width overflows */
    ANY_BITS,   /* but finite */
    SHAPES,
};

static double largest(enum dtype type)
{
    return type == DTYPE_F64   ? DBL_MAX
           : type == DTYPE_F16 ? 65504
           : type == DTYPE_F32 ? FLT_MAX
                               : 0x1.fep127;
}

static double smallest(enum dtype type)
{
    return type == DTYPE_F64   ? 0x1p-1074
           : type == DTYPE_F16 ? 0x1p-24
           : type == DTYPE_F32 ? 0x1p-149
                               : 0x1p-133;
}

static double any_number(enum dtype type)
{
    double x;
    uint64_t bits = next_random();
    float f;
    memcpy(&x, &bits, 8);
    memcpy(&f, &bits, 4);
    if (type != DTYPE_F64) x = f;
    return isfinite(x) && fabs(x) <= largest(type) ? x : 1;
}

static double shaped(enum shape shape, enum dtype type, size_t i)
{
    switch (shape) {
    case NORMAL:
        return normal();
    case UNIFORM:
        return uniform() * 3 - 1;
    case NEGATIVE:
        return -3 - uniform();
    case CONSTANT:
        return -0.7;
    case ZERO:
        return i % 2 ? 0.0 : -0.0;
    case SPARSE:
        return next_random() % 16 ? 0 : normal();
    case OUTLIER:
        return next_random() % 97 ? normal() : 3000 * normal();
    case OFFSET:
        return 1e4 + normal();
    case TINY:
        return smallest(type) * (double)(next_random() % 1000);
    case LEAST:
        return smallest(type) * (double)(next_random() % 3);
    case HUGE_RANGE:
        return largest(type) * (i == 1 ? 1 : i == 2 ? -1 : 2 * uniform() - 1);
    case ANY_BITS:
    case SHAPES:
        break;
    }
    return any_number(type);
}

/* By way of f32 for the halves, whose conversions test_reduce shows. */
static void put(enum dtype type, void *to, double x)
{
    float f = (float)x;
    if (type == DTYPE_F64) memcpy(to, &x, 8);
    if (type == DTYPE_F32) memcpy(to, &f, 4);
    if (type == DTYPE_F16 || type == DTYPE_BF16)
        quant_kernels_base.narrow[type](to, &f, 1);
}

static double get(enum dtype type, const void *from)
{
    float f;
    double x;
    memcpy(&x, from, type == DTYPE_F64 ? 8 : 0);
    if (type == DTYPE_F64) return x;
    if (type == DTYPE_F32)
        memcpy(&f, from, 4);
    else
        quant_kernels_base.widen[type](&f, from, 1);
    return f;
}

static uint8_t *vector_new(enum dtype type, enum shape shape, size_t count)
{
    size_t size = dtype_size(type);
    uint8_t *v = malloc(count * size + 1);
    assert_non_null(v);
    for (size_t i = 0; i < count; i++)
        put(type, v + i * size, shaped(shape, type, i));
    return v;
}

/* Every way to quantize. */
static bool next_way(struct quant *q)
{
    do {
        if (++q->code == DTYPE_COUNT) {
            q->code = 0;
            if (++q->source == DTYPE_COUNT) {
                q->source = 0;
                if (++q->algorithm == QUANT_ALGORITHM_COUNT) return false;
            }
        }
    } while (quant_check(q, REDOP_SUM));
    return true;
}

static const struct quant first_way = {QUANT_MINMAX, 0, 0};

/* ------------------------------------------------------- the definition */

static uint64_t code_at(const uint8_t *codes, size_t width, size_t i)
{
    uint64_t code = 0;
    memcpy(&code, codes + i * width, width); /* little-endian */
    return code;
}

#define SAME_AS_MODEL(name, type)                                              \
    static void name##_same(const struct quant_kernels *k, enum quant_wide w,  \
                            int width, int algorithm, const type *x, size_t n) \
    {                                                                          \
        static uint8_t block[16 + 4 * QUANT_BLOCK + GUARD];                    \
        type header[2], values[QUANT_BLOCK], got[QUANT_BLOCK];                 \
        uint64_t codes[QUANT_BLOCK];                                           \
        size_t bytes = (size_t)1 << width;                                     \
        size_t size = sizeof header + n * bytes;                               \
        memset(block, 0xa5, sizeof block);                                     \
        name##_block(algorithm, (type)(((uint64_t)1 << 8 * bytes) - 1), x, n,  \
                     header, codes, values);                                   \
        k->encode[w][width](algorithm, block, x, n);                           \
        k->decode[w][width](algorithm, got, block, n);                         \
        type found[2];                                                         \
        memcpy(found, block, sizeof found);                                    \
        assert_true(found[0] == header[0] && found[1] == header[1]);           \
        for (size_t i = 0; i < n; i++) {                                       \
            assert_int_equal(code_at(block + sizeof header, bytes, i),         \
                             codes[i]);                                        \
            assert_true(got[i] == values[i] ||                                 \
                        (isnan(got[i]) && isnan(values[i])));                  \
        }                                                                      \
        for (size_t i = size; i < size + GUARD; i++)                           \
            assert_int_equal(block[i], 0xa5);                                  \
    }

SAME_AS_MODEL(model_f32, float)
SAME_AS_MODEL(model_f64, double)

/* Some blocks have special elements, one of them nothing else. */
static void spoil(double *x, size_t n, int how)
{
    static const double special[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        if (how == 1 && next_random() % 50 == 0)
            x[i] = special[next_random() % 3];
        if (how == 2) x[i] = special[next_random() % 3];
        if (how == 3) x[i] = i % 2 ? NAN : 5;
        if (how == 4) x[i] = i % 2 ? -INFINITY : DBL_MAX;
    }
}

static void block_round(int shape, int how)
{
    size_t n = 1 + (size_t)(next_random() % QUANT_BLOCK);
    double x[QUANT_BLOCK];
    float f[QUANT_BLOCK];
    if (next_random() % 4 == 0) n = QUANT_BLOCK;
    for (size_t i = 0; i < n; i++)
        x[i] = shaped((enum shape)shape, DTYPE_F64, i);
    spoil(x, n, how);
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)x[i];
        if (how == 0 || how == 4)
            f[i] = (float)shaped((enum shape)shape, DTYPE_F32, i);
        if (how == 4) f[i] = i % 2 ? -INFINITY : FLT_MAX;
    }
    const struct quant_kernels *k;
    for (size_t i = 0; (k = quant_kernels_usable(i)); i++) {
        for (int a = QUANT_MINMAX; a <= QUANT_ZERO_POINT_SCALE; a++) {
            for (int width = 0; width < 3; width++)
                model_f64_same(k, QUANT_F64, width, a, x, n);
            for (int width = 0; width < 2; width++)
                model_f32_same(k, QUANT_F32, width, a, f, n);
        }
    }
}

static void every_kernel_computes_the_definition(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            for (int how = 0; how < 5; how++) block_round(shape, how);
        }
    }
}

/* ------------------------------------------------------------------- errors */

/* What a block of these elements may be off, as quant.h has it; the halves are
 * rounded once more. */
static double allowed(const struct quant *q, const uint8_t *v, size_t n)
{
    size_t size = dtype_size(q->source);
    bool wide = q->source == DTYPE_F64;
    double top = pow(2, 8 * (double)dtype_size(q->code)) - 1;
    double lo = get(q->source, v), hi = lo, least = smallest(q->source);
    for (size_t i = 0; i < n; i++) {
        lo = fmin(lo, get(q->source, v + i * size));
        hi = fmax(hi, get(q->source, v + i * size));
    }
    if (q->algorithm == QUANT_ZERO_POINT_SCALE) {
        lo = fmin(lo, 0);
        hi = fmax(hi, 0);
    }
    double unit = wide                     ? 0x1p-52
                  : q->source == DTYPE_F32 ? 0x1p-23
                  : q->source == DTYPE_F16 ? 0x1p-10
                                           : 0x1p-7;
    double wide_least = wide ? 0x1p-1074 : 0x1p-149;
    double step = (hi / top - lo / top) * (1 + unit) + wide_least;
    return 0.52 * step + 2 * unit * fmax(fabs(lo), fabs(hi)) + least;
}

static void vector_error(const struct quant *q, enum shape shape, size_t count)
{
    size_t size = dtype_size(q->source);
    uint8_t *v = vector_new(q->source, shape, count);
    uint8_t *back = malloc(count * size + 1);
    size_t bytes = (size_t)quant_size(q, count);
    uint8_t *codes = malloc(bytes + GUARD);
    assert_true(back && codes);
    memset(codes + bytes, 0x5a, GUARD);
    quant_encode(q, codes, v, count);
    quant_decode(q, back, codes, count);
    for (size_t i = 0; i < GUARD; i++) assert_int_equal(codes[bytes + i], 0x5a);
    for (size_t b = 0; b < count; b += QUANT_BLOCK) {
        size_t n = count - b < QUANT_BLOCK ? count - b : QUANT_BLOCK;
        double limit = allowed(q, v + b * size, n);
        for (size_t i = b; i < b + n; i++) {
            double x = get(q->source, v + i * size);
            double y = get(q->source, back + i * size);
            assert_true(fabs(y / 2 - x / 2) <= limit / 2);
            if (shape == CONSTANT && q->algorithm == QUANT_MINMAX)
                assert_true(x == y);
            if (x == 0 && q->algorithm == QUANT_ZERO_POINT_SCALE)
                assert_true(y == 0);
        }
    }
    free(codes);
    free(back);
    free(v);
}

static void values_are_near(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 511, 512, 513, 2000};
    for (struct quant q = first_way; next_way(&q);) {
        for (int shape = 0; shape < SHAPES; shape++) {
            for (size_t c = 0; c < ARRAY_COUNT(counts); c++)
                vector_error(&q, (enum shape)shape, counts[c]);
        }
    }
}

/* NaN and infinities stay what and where they are; the others stay near. */
static void special_elements_stay(void **state)
{
    (void)state;
    for (struct quant q = first_way; next_way(&q);) {
        size_t size = dtype_size(q.source);
        uint8_t *v = vector_new(q.source, NORMAL, 1000);
        uint8_t codes[5000], back[8000];
        put(q.source, v + 3 * size, NAN);
        put(q.source, v + 700 * size, INFINITY);
        put(q.source, v + 701 * size, -INFINITY);
        assert_true(quant_size(&q, 1000) <= sizeof codes);
        quant_encode(&q, codes, v, 1000);
        quant_decode(&q, back, codes, 1000);
        for (size_t i = 0; i < 1000; i++) {
            double x = get(q.source, v + i * size);
            double y = get(q.source, back + i * size);
            if (isfinite(x)) assert_true(fabs(x - y) < 0.03);
            if (isinf(x)) assert_true(x == y);
            if (isnan(x)) assert_true(isnan(y));
        }
        free(v);
    }
}

/* ------------------------------------------------------------------- a ring */

struct ring {
    struct quant q;
    enum redop op;
    uint32_t world;
    size_t count;
    uint8_t *in[WORLD_MAX], *out[WORLD_MAX], *codes;
};

static double exact_of(const struct ring *r, size_t i, double *magnitude)
{
    size_t size = dtype_size(r->q.source);
    double x = get(r->q.source, r->in[0] + i * size);
    *magnitude = fabs(x);
    for (uint32_t m = 1; m < r->world; m++) {
        double y = get(r->q.source, r->in[m] + i * size);
        *magnitude = fmax(*magnitude, fabs(y));
        if (r->op == REDOP_MAX)
            x = fmax(x, y);
        else if (r->op == REDOP_MIN)
            x = fmin(x, y);
        else
            x += y;
    }
    return r->op == REDOP_AVG ? x / r->world : x;
}

/* The bound of pccl.h, from the largest magnitude of the whole vector. */
static double ring_bound(const struct ring *r, double magnitude)
{
    double n = r->world;
    double top = pow(2, 8 * (double)dtype_size(r->q.code)) - 1;
    double unit = r->q.source == DTYPE_F64   ? 0x1p-52
                  : r->q.source == DTYPE_F32 ? 0x1p-23
                  : r->q.source == DTYPE_F16 ? 0x1p-10
                                             : 0x1p-7;
    double factor = 0.52 * n * (n + 1);
    if (r->op == REDOP_AVG) factor /= n;
    if (r->op == REDOP_MAX || r->op == REDOP_MIN) factor = 1.04 * n;
    double largest_result = r->op == REDOP_SUM ? n * magnitude : magnitude;
    return factor * magnitude / top + 2 * n * unit * largest_result;
}

/* One chunk: the partial sums go from member 0 to the last, who owns it. */
static void ring_run(struct ring *r)
{
    uint32_t divisor = r->op == REDOP_AVG ? r->world : 1;
    quant_encode(&r->q, r->codes, r->in[0], r->count);
    for (uint32_t m = 1; m < r->world; m++)
        quant_combine(&r->q, r->op, r->codes, r->codes, r->in[m], r->count,
                      m + 1 == r->world ? divisor : 0);
    for (uint32_t m = 0; m < r->world; m++)
        quant_decode(&r->q, r->out[m], r->codes, r->count);
}

static void exchange_run(struct ring *r)
{
    size_t stride = (size_t)quant_size(&r->q, r->count);
    uint8_t *slots = malloc(stride * r->world + 1);
    assert_non_null(slots);
    for (uint32_t m = 0; m < r->world; m++)
        quant_encode(&r->q, slots + m * stride, r->in[m], r->count);
    quant_fold(&r->q, r->op, r->out[0], slots, stride, r->world, r->count,
               r->op == REDOP_AVG ? r->world : 1);
    free(slots);
}

static void ring_check(const struct ring *r)
{
    size_t size = dtype_size(r->q.source);
    double magnitude = 0, one;
    for (size_t i = 0; i < r->count; i++) {
        (void)exact_of(r, i, &one);
        magnitude = fmax(magnitude, one);
    }
    double bound = ring_bound(r, magnitude);
    for (size_t i = 0; i < r->count; i++) {
        double want = exact_of(r, i, &one);
        double got = get(r->q.source, r->out[0] + i * size);
        assert_true(fabs(got - want) <= bound);
    }
}

static void ring_round(struct ring *r, enum shape shape)
{
    size_t bytes = r->count * dtype_size(r->q.source);
    for (uint32_t m = 0; m < r->world; m++) {
        r->in[m] = vector_new(r->q.source, shape, r->count);
        r->out[m] = malloc(bytes + 1);
        assert_non_null(r->out[m]);
    }
    r->codes = malloc((size_t)quant_size(&r->q, r->count) + 1);
    assert_non_null(r->codes);
    ring_run(r);
    ring_check(r);
    exchange_run(r);
    ring_check(r);
    free(r->codes);
    for (uint32_t m = 0; m < r->world; m++) {
        free(r->in[m]);
        free(r->out[m]);
    }
}

static void rings_keep_the_bound(void **state)
{
    (void)state;
    static const enum shape shapes[] = {NORMAL, NEGATIVE, SPARSE, OUTLIER};
    static const uint32_t worlds[] = {2, 3, WORLD_MAX};
    static const enum redop ops[] = {REDOP_SUM, REDOP_AVG, REDOP_MAX,
                                     REDOP_MIN};
    struct ring r = {.count = 700};
    for (r.q = first_way; next_way(&r.q);) {
        for (size_t i = 0; i < ARRAY_COUNT(shapes) * ARRAY_COUNT(ops); i++) {
            for (size_t w = 0; w < ARRAY_COUNT(worlds); w++) {
                if (r.q.source == DTYPE_F16 && shapes[i % 4] == OUTLIER)
                    continue; /* sums overflow */
                r.world = worlds[w];
                r.op = ops[i / 4];
                ring_round(&r, shapes[i % 4]);
            }
        }
    }
}

/* A partial sum may be more than the source type holds. */
static void partial_sums_are_wide(void **state)
{
    (void)state;
    struct quant q = {QUANT_MINMAX, DTYPE_F16, DTYPE_U8};
    uint8_t codes[600], v[1024];
    for (size_t i = 0; i < 512; i++) put(DTYPE_F16, v + 2 * i, 60000);
    quant_encode(&q, codes, v, 512);
    for (int m = 1; m < 4; m++)
        quant_combine(&q, REDOP_AVG, codes, codes, v, 512, m == 3 ? 4 : 0);
    quant_decode(&q, v, codes, 512);
    for (size_t i = 0; i < 512; i++)
        assert_true(get(DTYPE_F16, v + 2 * i) == 60000);
    quant_combine(&q, REDOP_SUM, codes, codes, v, 512, 1);
    quant_decode(&q, v, codes, 512);
    for (size_t i = 0; i < 512; i++)
        assert_true(get(DTYPE_F16, v + 2 * i) == INFINITY);
}

/* --------------------------------------------------------------- the limits */

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    int ways = 0;
    for (struct quant q = first_way; next_way(&q);) ways++;
    /* f64 to 6 types, f32 to 4, the halves to 2 each, twice */
    assert_int_equal(ways, 2 * (6 + 4 + 2 + 2));
    const struct quant fine = {QUANT_MINMAX, DTYPE_F32, DTYPE_U8};
    assert_null(quant_check(&fine, REDOP_MAX));
    assert_non_null(quant_check(&fine, REDOP_PROD));
    const struct quant same = {QUANT_MINMAX, DTYPE_F32, DTYPE_U32};
    assert_non_null(quant_check(&same, REDOP_SUM));
    const struct quant integers = {QUANT_MINMAX, DTYPE_I32, DTYPE_U8};
    assert_non_null(quant_check(&integers, REDOP_SUM));
    const struct quant floats = {QUANT_MINMAX, DTYPE_F32, DTYPE_F16};
    assert_non_null(quant_check(&floats, REDOP_SUM));
}

static void eight_bits_save_enough(void **state)
{
    (void)state;
    const struct quant q = {QUANT_MINMAX, DTYPE_F32, DTYPE_U8};
    assert_true(4.0 * (1 << 20) / (double)quant_size(&q, 1 << 20) > 3.93);
    assert_int_equal(quant_size(&q, 0), 0);
    assert_int_equal(quant_size(&q, 1), 9);
    assert_int_equal(quant_size(&q, 513), 8 + 512 + 8 + 1);
}

/* Codes from the network may be anything: no crash, whatever they mean. */
static void any_bytes_decode(void **state)
{
    (void)state;
    uint8_t codes[5000], own[8000], back[8000];
    for (struct quant q = first_way; next_way(&q);) {
        for (int round = 0; round < 50; round++) {
            for (size_t i = 0; i < sizeof codes; i++)
                codes[i] = (uint8_t)next_random();
            memset(own, 0, sizeof own);
            quant_decode(&q, back, codes, 1000);
            quant_combine(&q, REDOP_SUM, codes, codes, own, 1000,
                          (uint32_t)round % 3);
            quant_decode(&q, back, codes, 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_computes_the_definition),
        cmocka_unit_test(values_are_near),
        cmocka_unit_test(special_elements_stay),
        cmocka_unit_test(rings_keep_the_bound),
        cmocka_unit_test(partial_sums_are_wide),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(eight_bits_save_enough),
        cmocka_unit_test(any_bytes_decode),
    };
    return cmocka_run_group_tests_name("ring/quant", tests, NULL, NULL);
}
