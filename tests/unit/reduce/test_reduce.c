/* test_reduce.c - every kernel of every instruction set of this CPU, bit by
 * bit, against a slow reference that shares no code with them: integers in
 * 128 bits, halves as exact doubles that are rounded by scaling. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../src/reduce/reduce.h"
#include "../../../src/reduce/reduce_kernels.h"

__extension__ typedef __int128 i128;

enum { COUNT_MAX = 1100, OFFSETS = 9, GUARD = 64 };

static uint64_t random_next(void)
{
    static uint64_t x = 0x9e3779b97f4a7c15;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x * 0x2545f4914f6cdd1d >> 7 ^ x;
}

/* --- reference ------------------------------------------------------- */

struct format {
    int mantissa; /* stored bits */
    int exponent; /* bits */
};

static const struct format formats[DTYPE_COUNT] = {
    [DTYPE_F16] = {10, 5},
    [DTYPE_BF16] = {7, 8},
    [DTYPE_F32] = {23, 8},
    [DTYPE_F64] = {52, 11},
};

static bool is_float(enum dtype type)
{
    return formats[type].mantissa != 0;
}

static double ref_decode(enum dtype type, uint64_t bits)
{
    const struct format f = formats[type];
    int exponent_max = (1 << f.exponent) - 1, bias = exponent_max >> 1;
    int exponent = (int)(bits >> f.mantissa) & exponent_max;
    uint64_t mantissa = bits & (((uint64_t)1 << f.mantissa) - 1);
    double sign = bits >> (f.mantissa + f.exponent) & 1 ? -1 : 1;

    if (exponent == exponent_max) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp((double)mantissa, 1 - bias - f.mantissa);
    return sign * ldexp((double)(mantissa | (uint64_t)1 << f.mantissa),
                        exponent - bias - f.mantissa);
}

/* nearbyint() rounds to nearest even. */
static uint64_t ref_encode(enum dtype type, double value)
{
    const struct format f = formats[type];
    int exponent_max = (1 << f.exponent) - 1, bias = exponent_max >> 1;
    uint64_t infinity = (uint64_t)exponent_max << f.mantissa;
    uint64_t sign = (uint64_t) !!signbit(value) << (f.mantissa + f.exponent);
    int exponent;
    double units;

    if (isnan(value)) return infinity | (uint64_t)1 << (f.mantissa - 1);
    if (isinf(value)) return sign | infinity;
    if (value == 0) return sign;
    exponent = ilogb(value);
    if (exponent < 1 - bias) exponent = 1 - bias;
    units = nearbyint(ldexp(fabs(value), f.mantissa - exponent));
    /* A carry out of the mantissa, or into the first normal number, adds. */
    if (exponent > bias) return sign | infinity;
    return sign |
           (((uint64_t)(exponent + bias - 1) << f.mantissa) + (uint64_t)units);
}

static double ref_float(enum redop op, double x, double y)
{
    switch (op) {
    case REDOP_PROD:
        return x * y;
    case REDOP_MAX:
        if (isnan(x) || isnan(y)) return NAN;
        return x > y || (x == y && signbit(y)) ? x : y;
    case REDOP_MIN:
        if (isnan(x) || isnan(y)) return NAN;
        return x < y || (x == y && signbit(x)) ? x : y;
    default:
        return x + y;
    }
}

static bool is_signed(enum dtype type)
{
    return type == DTYPE_I8 || type == DTYPE_I16 || type == DTYPE_I32 ||
           type == DTYPE_I64;
}

static i128 ref_integer(enum dtype type, uint64_t bits)
{
    i128 modulus = (i128)1 << (8 * dtype_size(type));

    return is_signed(type) && bits >= (uint64_t)(modulus / 2)
               ? (i128)bits - modulus
               : (i128)bits;
}

static uint64_t ref_mask(enum dtype type)
{
    return UINT64_MAX >> (64 - 8 * dtype_size(type));
}

static uint64_t ref_apply(enum dtype type, enum redop op, uint64_t a,
                          uint64_t b)
{
    i128 x, y;

    if (is_float(type)) {
        double value = ref_float(op, ref_decode(type, a), ref_decode(type, b));
        /* f32 first: halves are computed in it. */
        return type == DTYPE_F64 ? ref_encode(type, value)
                                 : ref_encode(type, (double)(float)value);
    }
    x = ref_integer(type, a);
    y = ref_integer(type, b);
    if (op == REDOP_MAX) return (uint64_t)(x > y ? x : y) & ref_mask(type);
    if (op == REDOP_MIN) return (uint64_t)(x < y ? x : y) & ref_mask(type);
    if (op == REDOP_PROD) return a * b & ref_mask(type);
    return (uint64_t)(x + y) & ref_mask(type);
}

static uint64_t ref_divide(enum dtype type, uint64_t a, uint32_t world)
{
    double x;

    if (!is_float(type))
        return (uint64_t)(ref_integer(type, a) / (i128)world) & ref_mask(type);
    x = ref_decode(type, a);
    if (type == DTYPE_F64) return ref_encode(type, x / world);
    return ref_encode(type, (double)(float)(x / (double)(float)world));
}

/* --- elements -------------------------------------------------------- */

static uint64_t element_get(enum dtype type, const unsigned char *data,
                            size_t i)
{
    uint64_t bits = 0; /* little-endian hosts only, as the kernels' callers */

    memcpy(&bits, data + i * dtype_size(type), dtype_size(type));
    return bits;
}

static void element_put(enum dtype type, unsigned char *data, size_t i,
                        uint64_t bits)
{
    memcpy(data + i * dtype_size(type), &bits, dtype_size(type));
}

/* One in two is next to a border: zeros, subnormals, ones, infinities, NaNs of
 * every kind, extreme integers. */
static uint64_t element_random(enum dtype type)
{
    const struct format f = formats[type];
    uint64_t r = random_next(), near = (r >> 8) % 5 - 2, border;
    int width = (int)(8 * dtype_size(type));

    if (r & 1) return random_next() & ref_mask(type);
    if (is_float(type)) {
        const uint64_t exponents[] = {0, 1, ((uint64_t)1 << f.exponent) / 2 - 1,
                                      ((uint64_t)1 << f.exponent) - 1};
        border = exponents[r >> 16 & 3] << f.mantissa;
        if ((r >> 20 & 7) == 0) border |= (uint64_t)1 << (f.mantissa - 1);
    } else {
        border = (r >> 16 & 1) << (width - 1);
    }
    border += (r >> 24 & 1) ? near : 0;
    border ^= (r >> 32 & 1) << (width - 1);
    return border & ref_mask(type);
}

static void elements_fill(enum dtype type, unsigned char *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        element_put(type, data, i, element_random(type));
}

static void element_check(const char *kernels, enum dtype type, const char *op,
                          uint64_t a, uint64_t b, uint64_t got, uint64_t want)
{
    if (got != want)
        fail_msg("%s %s %s: %llx, %llx gave %llx, not %llx", kernels,
                 dtype_name(type), op, (unsigned long long)a,
                 (unsigned long long)b, (unsigned long long)got,
                 (unsigned long long)want);
}

/* --- tests ----------------------------------------------------------- */

enum alias { ALIAS_NONE, ALIAS_A, ALIAS_B, ALIAS_BOTH, ALIAS_COUNT };

static unsigned char dst_buffer[COUNT_MAX * 8 + OFFSETS + 2 * GUARD];

/* Buffers are of the exact size and odd addresses; bytes around dst stay. */
static void apply_check(const struct reduce_kernels *k, enum dtype type,
                        enum redop op, size_t count, enum alias alias)
{
    static unsigned char a_buffer[COUNT_MAX * 8 + OFFSETS];
    static unsigned char b_buffer[COUNT_MAX * 8 + OFFSETS];
    static unsigned char a_copy[COUNT_MAX * 8], b_copy[COUNT_MAX * 8];
    size_t size = count * dtype_size(type);
    unsigned char *dst = dst_buffer + GUARD + random_next() % OFFSETS;
    unsigned char *a = a_buffer + random_next() % OFFSETS;
    unsigned char *b = b_buffer + random_next() % OFFSETS;

    memset(dst_buffer, 0xa5, sizeof(dst_buffer));
    if (alias == ALIAS_A || alias == ALIAS_BOTH) a = dst;
    if (alias == ALIAS_B || alias == ALIAS_BOTH) b = dst;
    elements_fill(type, a, count);
    elements_fill(type, b, count);
    memcpy(a_copy, a, size);
    memcpy(b_copy, b, size);
    k->apply[type][op](dst, a, b, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t x = element_get(type, a_copy, i);
        uint64_t y = element_get(type, b_copy, i);
        element_check(k->name, type, redop_name(op), x, y,
                      element_get(type, dst, i), ref_apply(type, op, x, y));
    }
    if (a != dst) assert_memory_equal(a, a_copy, size);
    if (b != dst) assert_memory_equal(b, b_copy, size);
    for (unsigned char *p = dst_buffer; p < dst_buffer + sizeof(dst_buffer);
         p++)
        if (p < dst || p >= dst + size) assert_int_equal(*p, 0xa5);
}

static void test_apply(void **state)
{
    const struct reduce_kernels *k;

    (void)state;
    for (size_t isa = 0; (k = reduce_kernels_usable(isa)); isa++)
        for (int cell = 0; cell < DTYPE_COUNT * REDOP_COUNT; cell++) {
            enum dtype type = (enum dtype)(cell / REDOP_COUNT);
            enum redop op = (enum redop)(cell % REDOP_COUNT);
            for (int alias = 0; alias < ALIAS_COUNT; alias++) {
                for (size_t count = 0; count <= 70; count++)
                    apply_check(k, type, op, count, (enum alias)alias);
                apply_check(k, type, op, COUNT_MAX, (enum alias)alias);
            }
        }
}

static const uint32_t worlds[] = {
    1,    2,     3,     7,     100,   127,   128,     255,      256,        257,
    4096, 32768, 65535, 65536, 65537, 46341, 1 << 24, 16777217, 4294967295u};

static void divide_check(const struct reduce_kernels *k, enum dtype type,
                         size_t count, uint32_t world)
{
    static unsigned char copy[COUNT_MAX * 8];
    unsigned char *dst = dst_buffer + GUARD + random_next() % OFFSETS;
    size_t size = count * dtype_size(type);

    memset(dst_buffer, 0xa5, sizeof(dst_buffer));
    elements_fill(type, dst, count);
    memcpy(copy, dst, size);
    k->divide[type](dst, count, world);
    for (size_t i = 0; i < count; i++) {
        uint64_t x = element_get(type, copy, i);
        element_check(k->name, type, "divided by", x, world,
                      element_get(type, dst, i), ref_divide(type, x, world));
    }
    assert_int_equal(dst[-1], 0xa5);
    assert_int_equal(dst[size], 0xa5);
}

static void test_divide(void **state)
{
    const struct reduce_kernels *k;

    (void)state;
    for (size_t isa = 0; (k = reduce_kernels_usable(isa)); isa++)
        for (int type = 0; type < DTYPE_COUNT; type++)
            for (size_t w = 0; w < ARRAY_COUNT(worlds); w++) {
                for (size_t count = 0; count <= 35; count++)
                    divide_check(k, (enum dtype)type, count, worlds[w]);
                divide_check(k, (enum dtype)type, COUNT_MAX, worlds[w]);
            }
}

/* All 65536 values of the 16-bit types. Adding -0, or dividing by 1, is the
 * conversion there and back; other divisors give f32 values of all kinds to
 * round. With count 1 the scalar end of each loop does the same work. */
static void test_exhaustive_16(void **state)
{
    const enum dtype all[] = {DTYPE_F16, DTYPE_BF16, DTYPE_U16, DTYPE_I16};
    static uint16_t in[65536], out[65536], zero[65536];
    const struct reduce_kernels *k;

    (void)state;
    for (size_t i = 0; i < 65536; i++) in[i] = (uint16_t)i;
    for (size_t isa = 0; (k = reduce_kernels_usable(isa)); isa++)
        for (size_t t = 0; t < ARRAY_COUNT(all); t++) {
            enum dtype type = all[t];
            for (size_t i = 0; i < 65536; i++)
                zero[i] = is_float(type) ? 0x8000 : 0;
            k->apply[type][REDOP_SUM](out, in, zero, 65536);
            for (size_t i = 0; i < 65536; i++) {
                element_check(k->name, type, "sum", i, zero[i], out[i],
                              ref_apply(type, REDOP_SUM, i, zero[i]));
                if (!is_float(type) || !isnan(ref_decode(type, i)))
                    assert_int_equal(out[i], in[i]);
            }
            for (size_t w = 0; w < ARRAY_COUNT(worlds); w++) {
                memcpy(out, in, sizeof(out));
                k->divide[type](out, 65536, worlds[w]);
                for (size_t i = 0; i < 65536; i++) {
                    uint16_t one = in[i];
                    uint64_t want = ref_divide(type, i, worlds[w]);
                    k->divide[type](&one, 1, worlds[w]);
                    element_check(k->name, type, "divided by", i, worlds[w],
                                  out[i], want);
                    element_check(k->name, type, "one divided by", i, worlds[w],
                                  one, want);
                }
            }
        }
}

/* Borders of rounding that random values seldom meet, and -128 / 128 without
 * and -1 / 128 with a remainder. */
static void test_known(void **state)
{
    static const struct {
        enum dtype type;
        enum redop op;
        uint64_t a, b, want;
    } cases[] = {
        {DTYPE_F16, REDOP_SUM, 0x7bff, 0x4bff, 0x7bff},  /* 65504 + 15.99 */
        {DTYPE_F16, REDOP_SUM, 0x7bff, 0x4c00, 0x7c00},  /* tie to infinity */
        {DTYPE_F16, REDOP_PROD, 0x0001, 0x3800, 0x0000}, /* tie to zero */
        {DTYPE_F16, REDOP_PROD, 0x0003, 0x3800, 0x0002}, /* tie to even */
        {DTYPE_F16, REDOP_PROD, 0x8001, 0x3801, 0x8001},
        {DTYPE_F16, REDOP_SUM, 0x03ff, 0x0001, 0x0400}, /* becomes normal */
        {DTYPE_F16, REDOP_SUM, 0x7c00, 0xfc00, 0x7e00},
        {DTYPE_F16, REDOP_MAX, 0xfd55, 0x3c00, 0x7e00},
        {DTYPE_BF16, REDOP_SUM, 0x3f80, 0x3b80, 0x3f80}, /* tie down */
        {DTYPE_BF16, REDOP_SUM, 0x3f81, 0x3b80, 0x3f82}, /* tie up */
        {DTYPE_BF16, REDOP_SUM, 0x7f7f, 0x7f7f, 0x7f80},
        {DTYPE_BF16, REDOP_PROD, 0xff80, 0x0000, 0x7fc0},
        {DTYPE_F32, REDOP_MAX, 0x80000000, 0, 0},
        {DTYPE_F32, REDOP_MIN, 0, 0x80000000, 0x80000000},
        {DTYPE_F32, REDOP_SUM, 0xffc12345, 0xff812345, 0x7fc00000},
        {DTYPE_F32, REDOP_MIN, 0x3f800000, 0x7f800001, 0x7fc00000},
        {DTYPE_I8, REDOP_SUM, 0x7f, 0x01, 0x80},
        {DTYPE_U16, REDOP_PROD, 0xffff, 0xffff, 0x0001},
        {DTYPE_I32, REDOP_AVG, 0x7fffffff, 1, 0x80000000},
        {DTYPE_U8, REDOP_MAX, 0x80, 0x7f, 0x80},
        {DTYPE_I8, REDOP_MAX, 0x80, 0x7f, 0x7f},
    };
    int8_t small[] = {-128, -127, 127, -1};
    const int8_t want[] = {-1, 0, 0, 0};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t out = 0;
        reduce_apply(cases[i].type, cases[i].op, &out, &cases[i].a, &cases[i].b,
                     1);
        element_check("best", cases[i].type, redop_name(cases[i].op),
                      cases[i].a, cases[i].b, out, cases[i].want);
        element_check(
            "reference", cases[i].type, redop_name(cases[i].op), cases[i].a,
            cases[i].b,
            ref_apply(cases[i].type, cases[i].op, cases[i].a, cases[i].b),
            cases[i].want);
    }
    reduce_divide(DTYPE_I8, small, ARRAY_COUNT(small), 128);
    assert_memory_equal(small, want, sizeof(want));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_divide),
        cmocka_unit_test(test_exhaustive_16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
