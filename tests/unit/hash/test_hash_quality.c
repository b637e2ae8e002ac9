/* test_hash_quality.c - statistical tests of the hash: realistic edits change
 * it, and the values are distributed like random ones. Edits: flips, swaps,
 * shifts, growth, equal and small steps at several places; inputs: counters,
 * sparse and random data. */
#include "hash_test.h"

#include <math.h>
#include <string.h>

/* Every single bit of small inputs; in a large input only its own block
 * changes. */
static void test_bit_flips(void **state)
{
    (void)state;
    for (size_t size = 1; size < 1200; size += size < 130 ? 1 : 97) {
        uint8_t *data = random_buffer(size, size);
        uint64_t *list = malloc((8 * size + 1) * sizeof(*list));
        assert_non_null(list);
        list[8 * size] = hash1(data, size);
        for (size_t bit = 0; bit < 8 * size; ++bit) {
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            list[bit] = hash1(data, size);
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_distinct(list, 8 * size + 1);
        free(list);
        free(data);
    }

    enum { COUNT = 5, SIZE = COUNT * BLOCK - 100 };
    uint8_t *data = random_buffer(SIZE, 2);
    uint64_t before[COUNT], after[COUNT], seed = 3;
    hash_blocks(data, SIZE, 0, COUNT, before, 1);
    for (int i = 0; i < 500; ++i) {
        const uint64_t bit = random_next(&seed) % (8 * SIZE);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        hash_blocks(data, SIZE, 0, COUNT, after, 1);
        for (uint64_t b = 0; b < COUNT; ++b)
            assert_true((before[b] != after[b]) == (b == bit / 8 / BLOCK));
        assert_true(hash_combine(before, SIZE) != hash_combine(after, SIZE));
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(data);
}

/* Many values of one word, beside sparse, equal and random data. */
static void test_one_word(void **state)
{
    enum { SIZE = 3 * ROW, VALUES = 4096 };
    static uint64_t list[VALUES];
    (void)state;
    for (int fill = 0; fill < 3; ++fill) {
        uint8_t *data = random_buffer(SIZE, 4);
        if (fill < 2) memset(data, fill ? 0xff : 0, SIZE);
        for (size_t word = 0; word < SIZE / 8; word += 5) {
            uint8_t saved[8];
            memcpy(saved, data + 8 * word, 8);
            for (uint64_t v = 0; v < VALUES; ++v) {
                const uint64_t value = v << word % 53;
                memcpy(data + 8 * word, &value, 8);
                list[v] = hash1(data, SIZE);
            }
            memcpy(data + 8 * word, saved, 8);
            assert_distinct(list, VALUES);
        }
        free(data);
    }
}

enum fill { ZEROS, ONES, NORMAL, FILLS };

static void fill_floats(float *f, size_t count, enum fill fill)
{
    uint64_t seed = 5;
    for (size_t i = 0; i < count; ++i) {
        const double u = (double)(random_next(&seed) >> 11) * 0x1p-53;
        f[i] = fill == ZEROS ? 0 : fill == ONES ? 1 : (float)(u - 0.5);
    }
}

/* Edit number `kind` of one float: the sign, zero <-> one, the last bit. */
static void edit_float(float *f, int kind)
{
    uint32_t bits;
    memcpy(&bits, f, 4);
    bits ^= kind == 0 ? UINT32_C(0x80000000) : kind == 1 ? 0x3f800000u : 1u;
    memcpy(f, &bits, 4);
}

/* The same small edit at any two places, and at three: among neighbours in a
 * row, in the next rows of the lane, and in other lanes. */
static void test_equal_edits(void **state)
{
    enum { COUNT = 512, PAIRS = COUNT * (COUNT - 1) / 2, NEAR = 36 };
    uint64_t *list = malloc((PAIRS + NEAR * NEAR * NEAR) * sizeof(*list));
    float data[COUNT];
    (void)state;
    assert_non_null(list);
    for (int kind = 0; kind < 3; ++kind)
        for (int fill = 0; fill < FILLS; ++fill) {
            size_t n = 0;
            fill_floats(data, COUNT, (enum fill)fill);
            list[n++] = hash1(data, sizeof(data));
            for (size_t i = 0; i < COUNT; ++i) {
                edit_float(&data[i], kind);
                for (size_t j = i + 1; j < COUNT; ++j) {
                    edit_float(&data[j], kind);
                    list[n++] = hash1(data, sizeof(data));
                    edit_float(&data[j], kind);
                }
                edit_float(&data[i], kind);
            }
            assert_distinct(list, n);

            /* four rows, nine floats each: two of lane 0, two of lane 1, ... */
            size_t near[NEAR];
            for (size_t i = 0; i < NEAR; ++i)
                near[i] = i / 9 * (ROW / 4) + (i % 9 < 4 ? i % 9 : i % 9 * 8);
            n = 0;
            for (size_t i = 0; i < NEAR; ++i)
                for (size_t j = 0; j < i; ++j)
                    for (size_t k = 0; k < j; ++k) {
                        edit_float(&data[near[i]], kind);
                        edit_float(&data[near[j]], kind);
                        edit_float(&data[near[k]], kind);
                        list[n++] = hash1(data, sizeof(data));
                        edit_float(&data[near[i]], kind);
                        edit_float(&data[near[j]], kind);
                        edit_float(&data[near[k]], kind);
                    }
            assert_distinct(list, n);
        }
    free(list);
}

/* Small integer steps in the high bits of six adjacent 32-bit words, three of
 * them in the same lane. A hash that multiplies by constants fails here,
 * because such differences cancel between rows. */
static void test_small_steps(void **state)
{
    enum { STEPS = 9, COUNT = STEPS * STEPS * STEPS * STEPS * STEPS * STEPS };
    static const size_t places[] = {0, 1, ROW / 4, ROW / 4 + 1, 2, ROW / 2};
    uint64_t *list = malloc(COUNT * sizeof(*list));
    uint32_t data[3 * ROW / 4];
    (void)state;
    assert_non_null(list);
    for (int shift = 23; shift >= 3; shift -= 20)
        for (uint32_t n = 0; n < COUNT; ++n) {
            uint32_t rest = n;
            memset(data, shift == 23 ? 0 : 0x3f, sizeof(data));
            for (int i = 0; i < 6; ++i, rest /= STEPS)
                data[places[i]] += rest % STEPS << (i % 2 ? shift - 3 : shift);
            list[n] = hash1(data, sizeof(data));
            if (n + 1 == COUNT) assert_distinct(list, COUNT);
        }
    free(list);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        const uint8_t byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* All swaps of two units of `unit` bytes, in counters and random data. */
static void check_swaps(size_t unit, size_t count, int counters)
{
    uint8_t *data = random_buffer(unit * count, unit);
    uint64_t *list = malloc(count * count * sizeof(*list));
    size_t n = 0;
    assert_non_null(list);
    for (size_t i = 0; counters && i < unit * count; ++i)
        data[i] = (uint8_t)(i % unit == 0 ? i / unit : 0);
    list[n++] = hash1(data, unit * count);
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j < i; ++j) {
            swap_bytes(data + i * unit, data + j * unit, unit);
            list[n++] = hash1(data, unit * count);
            swap_bytes(data + i * unit, data + j * unit, unit);
        }
    assert_distinct(list, n);
    free(list);
    free(data);
}

static void test_swaps(void **state)
{
    (void)state;
    for (int counters = 0; counters < 2; ++counters) {
        check_swaps(8, 256, counters);  /* words: within lanes and across */
        check_swaps(16, 128, counters); /* a GPU thread's pairs */
        check_swaps(64, 100, counters); /* vectors */
        check_swaps(ROW, 64, counters); /* rows */
        check_swaps(BLOCK, 12, counters);
    }
    check_swaps(4, 200, 1);
}

/* Lengths, shifts and moves within zeros and other constant bytes. */
static void test_lengths_and_shifts(void **state)
{
    enum { MOST = 20000, SIZE = 3 * BLOCK };
    uint64_t *list = malloc(4 * MOST * sizeof(*list));
    uint8_t *data = calloc(1, SIZE);
    size_t n = 0;
    (void)state;
    assert_true(list && data);
    for (size_t size = 0; size < MOST; ++size)
        list[n++] = hash1(data, size); /* only zeros */
    for (size_t size = BLOCK - 3; n < MOST + 300; size += 257)
        list[n++] = hash1(data, size);
    for (size_t at = 0; at < 3 * ROW; ++at) {
        data[at] = 1; /* one non-zero byte at each position */
        list[n++] = hash1(data, 3 * ROW);
        data[at] = 0;
    }
    for (size_t at = 0; at < SIZE; at += 511) {
        data[at] = 1;
        list[n++] = hash1(data, SIZE);
        data[at] = 0;
    }
    uint8_t *text = random_buffer(2000, 8);
    for (size_t shift = 0; shift < 1500; ++shift) {
        memset(data, 0,
               4096); /* a text after `shift` zeros, followed by zeros */
        memcpy(data + shift, text, 2000);
        list[n++] = hash1(data, 2000 + shift);
        list[n++] = hash1(data, 4096);
        list[n++] = hash1(data, 2001 + shift);
    }
    assert_distinct(list, n);
    free(text);
    free(data);
    free(list);
}

/* Chi-square of each of the 8 bytes of the values over 256 buckets: with 255
 * degrees of freedom it is 255 +- 22.6; six sigmas in both directions. */
static void assert_spread(const uint64_t *list, size_t count)
{
    for (int byte = 0; byte < 8; ++byte) {
        double buckets[256] = {0}, chi = 0;
        for (size_t i = 0; i < count; ++i)
            buckets[list[i] >> 8 * byte & 255] += 1;
        const double mean = (double)count / 256;
        for (int b = 0; b < 256; ++b)
            chi += (buckets[b] - mean) * (buckets[b] - mean) / mean;
        assert_true(chi > 255 - 136 && chi < 255 + 136);
    }
}

/* Pairs that are equal in 32 bits: as many as among random values, count^2 /
 * 2^33. */
static void assert_few_collisions(const uint64_t *list, size_t count, int shift)
{
    uint64_t *part = malloc(count * sizeof(*part));
    double pairs = 0;
    const double mean = (double)count * (double)count / 0x1p33;
    assert_non_null(part);
    for (size_t i = 0; i < count; ++i) part[i] = list[i] >> shift & UINT32_MAX;
    qsort(part, count, sizeof(*part), compare_u64);
    for (size_t i = 1; i < count; ++i) pairs += part[i] == part[i - 1];
    assert_true(fabs(pairs - mean) < 6 * sqrt(mean) + 1);
    free(part);
}

/* Input number i of a family: counters, a pair of small numbers, a sparse row,
 * one float value repeated, random bytes. Returns its size. */
static size_t make_input(int family, uint64_t i, uint8_t data[2 * ROW])
{
    float value = (float)i;
    uint64_t seed = i;
    size_t size = 8;
    memset(data, 0, 2 * ROW);
    switch (family) {
    case 0:
        memcpy(data, &i, 8);
        break;
    case 1:
        data[0] = (uint8_t)i;
        data[ROW] = (uint8_t)(i >> 8);
        data[ROW + 8] = (uint8_t)(i >> 16);
        size = 2 * ROW;
        break;
    case 2:
        data[i % ROW] = (uint8_t)(1 + i / ROW);
        data[ROW + (i * 7 + i / ROW) % ROW] = 1;
        size = 2 * ROW;
        break;
    case 3:
        for (size_t at = 0; at < ROW; at += 4) memcpy(data + at, &value, 4);
        size = ROW;
        break;
    default:
        size = 1 + (size_t)(random_next(&seed) % 40) + 8;
        for (size_t at = 0; at < size; ++at)
            data[at] = (uint8_t)random_next(&seed);
    }
    return size;
}

static void test_spread(void **state)
{
    enum { COUNT = 100000, FAMILIES = 5 };
    uint64_t *list = malloc(COUNT * sizeof(*list));
    uint8_t data[2 * ROW];
    (void)state;
    assert_non_null(list);
    for (int family = 0; family < FAMILIES; ++family) {
        for (uint64_t i = 0; i < COUNT; ++i)
            list[i] = hash1(data, make_input(family, i, data));
        assert_spread(list, COUNT);
        assert_few_collisions(list, COUNT, 0);
        assert_few_collisions(list, COUNT, 32);
        assert_distinct(list, COUNT);
    }
    free(list);
}

/* Each input bit flips each bit of the value in half of the cases, in random
 * and in all-zero data; +- 6 sigmas of the binomial distribution. */
static void test_avalanche(void **state)
{
    enum { SIZE = 2 * ROW + 24, TRIALS = 400 };
    uint8_t data[SIZE];
    uint64_t seed = 9;
    double flips[64] = {0}, total = 0;
    (void)state;
    for (size_t bit = 0; bit < 8 * SIZE; bit += 13) {
        int changed[64] = {0};
        for (int t = 0; t < TRIALS; ++t) {
            for (size_t i = 0; i < SIZE; ++i)
                data[i] = (uint8_t)random_next(&seed);
            uint64_t diff = hash1(data, SIZE);
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            diff ^= hash1(data, SIZE);
            for (int b = 0; b < 64; ++b) changed[b] += (int)(diff >> b & 1);
        }
        for (int b = 0; b < 64; ++b) {
            assert_true(abs(changed[b] - TRIALS / 2) < 3 * 20);
            flips[b] += changed[b];
        }
        total += TRIALS;
    }
    for (int b = 0; b < 64; ++b)
        assert_true(fabs(flips[b] - total / 2) < 3 * sqrt(total));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_one_word),
        cmocka_unit_test(test_equal_edits),
        cmocka_unit_test(test_small_steps),
        cmocka_unit_test(test_swaps),
        cmocka_unit_test(test_lengths_and_shifts),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_avalanche),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
