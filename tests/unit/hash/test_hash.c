/* test_hash.c - tests that every implementation of the hash agrees with hash.h:
 * vectors, threads, the work of GPU threads, blocks and their combination. */
#include "hash_test.h"

#include <dirent.h>
#include <string.h>
#include <sys/mman.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#endif

/* The definition again, written from the text of hash.h alone. */
static uint64_t text_mix(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xbb67ae8584caa73b);
    x = (x ^ x >> 29) * UINT64_C(0xa54ff53a5f1d36f1);
    return x ^ x >> 32;
}

static uint64_t text_block(const uint8_t *p, uint64_t n)
{
    const uint64_t phi = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t sum = n * phi;
    for (uint64_t l = 0; l < 64; ++l) {
        uint64_t base[2], lane[2];
        for (uint64_t i = 0; i < 2; ++i) {
            base[i] = (64 * i + l + 1) * phi;
            base[i] ^= base[i] >> 32;
            lane[i] = base[i] * UINT64_C(0xbb67ae8584caa73b);
        }
        for (uint64_t row = 0; row < n; row += 512) {
            uint64_t word = 0;
            for (uint64_t i = 0; i < 8; ++i) {
                const uint64_t at = row + 8 * l + i;
                if (at < n) word |= (uint64_t)p[at] << (8 * i);
            }
            lane[0] += word + lane[1];
            lane[1] += lane[0] + (lane[0] % (UINT64_C(1) << 32)) *
                                     (lane[0] / (UINT64_C(1) << 32));
        }
        for (int i = 0; i < 2; ++i)
            sum += (lane[i] ^ lane[i] >> 32) *
                   (base[i] * UINT64_C(0xa54ff53a5f1d36f1) | 1);
    }
    return text_mix(sum);
}

static uint64_t text_hash(const uint8_t *p, uint64_t size)
{
    const uint64_t phi = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t sum = (size + 1) * phi;
    for (uint64_t i = 0; i * 65536 < size; ++i) {
        const uint64_t left = size - i * 65536;
        const uint64_t n = left < 65536 ? left : 65536;
        sum += text_mix(text_block(p + i * 65536, n) ^ (i + 1) * phi);
    }
    return text_mix(sum);
}

static uint64_t variant_hash(hash_rows_fn *rows, const uint8_t *p,
                             uint64_t size)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < hash_block_count(size); ++i) {
        const uint64_t hash =
            hash_block(rows, p + i * BLOCK, hash_block_size(size, i));
        sum += hash_sum(&hash, i, 1);
    }
    return hash_finish(sum, size);
}

/* The algorithm of kernels/hash.cu, with loops for its warps and threads. */
static uint64_t gpu_hash(const uint8_t *p, uint64_t size)
{
    const unsigned shift = (unsigned)((uintptr_t)p % 16);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < hash_block_count(size); ++i) {
        uint64_t lanes = 0;
        for (unsigned t = 0; t < HASH_WARP; ++t)
            lanes += hash_thread_block(p, size, i, t, shift);
        const uint64_t hash =
            hash_block_finish(lanes, hash_block_size(size, i));
        sum += hash_block_sum(hash, i);
    }
    return hash_finish(sum, size);
}

static void assert_all_same(const uint8_t *p, uint64_t size)
{
    const uint64_t want = text_hash(p, size);
    for (unsigned i = 0; hash_variant_get(i); ++i)
        assert_true(variant_hash(hash_variant_get(i)->rows, p, size) == want);
    assert_true(hash_bytes(p, size, 1) == want);
    assert_true(hash_bytes(p, size, 0) == want);
    assert_true(gpu_hash(p, size) == want);
}

static void test_every_size(void **state)
{
    (void)state;
    for (unsigned i = 0; hash_variant_get(i); ++i)
        print_message("variant %s\n", hash_variant_get(i)->name);
    uint8_t *data = random_buffer(5000 + 64, 1);
    for (uint64_t size = 0; size <= 5000; ++size)
        assert_all_same(data + size * 7 % 64, size);
    free(data);
}

/* Buffers of the exact size, so that a sanitizer detects any byte too many:
 * malloc guards the end, and the bytes before the start are poisoned. */
static void test_every_alignment(void **state)
{
    static const uint64_t sizes[] = {1,   15,  16,   17,   511,  512,  513,
                                     527, 528, 1023, 1024, 1040, 1041, 16384};
    (void)state;
    for (size_t start = 0; start < 64; ++start)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            uint8_t *data = random_buffer(start + sizes[i], i);
            ASAN_POISON_MEMORY_REGION(data, start);
            assert_all_same(data + start, sizes[i]);
            ASAN_UNPOISON_MEMORY_REGION(data, start);
            free(data);
        }
}

static void test_block_bounds(void **state)
{
    (void)state;
    for (size_t start = 0; start < 17; start += start < 2 ? 1 : 5)
        for (uint64_t blocks = 1; blocks <= 2; ++blocks)
            for (uint64_t d = 0; d <= 34; ++d) {
                const uint64_t size = blocks * BLOCK - 17 + d;
                uint8_t *data = random_buffer(start + size, d);
                assert_all_same(data + start, size);
                free(data);
            }
}

static void test_threads(void **state)
{
    enum { SIZE = 9 * 1048576 + 12345 };
    (void)state;
    uint8_t *data = random_buffer(SIZE, 3);
    assert_all_same(data, SIZE);
    const uint64_t want = text_hash(data, SIZE);
    for (unsigned threads = 1; threads <= 9; ++threads)
        assert_true(hash_bytes(data, SIZE, threads) == want);
    uint64_t seed = 4;
    for (int i = 0; i < 30; ++i) {
        const uint64_t start = random_next(&seed) % 4096;
        const uint64_t size = random_next(&seed) % (SIZE - start);
        assert_true(hash_bytes(data + start, size, 3) ==
                    variant_hash(hash_rows_portable, data + start, size));
    }
    free(data);
}

#ifdef _OPENMP
static int task_count(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    while (readdir(dir)) ++count;
    closedir(dir);
    return count;
}
#endif

/* The caller's OpenMP settings are unchanged, and OpenMP may be in use around
 * the call; threads are used only on request. Runs first, because OpenMP keeps
 * its threads. */
static void test_openmp(void **state)
{
    (void)state;
#ifdef _OPENMP
    enum { SIZE = 4 << 20 };
    uint8_t *data = random_buffer(SIZE, 5);
    const uint64_t want = text_hash(data, SIZE);
    const int tasks = task_count();
    int wrong = 0;
    omp_set_num_threads(7);
    assert_true(hash_bytes(data, SIZE, 1) == want);
    (void)hash_bytes(data, SIZE / 4, 0);
    assert_int_equal(task_count(), tasks);
    assert_true(hash_bytes(data, SIZE, 3) == want);
    assert_int_equal(task_count(), tasks + 2);
    assert_int_equal(omp_get_max_threads(), 7);
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    wrong += hash_bytes(data, SIZE, 0) != want;
    assert_int_equal(wrong, 0);
    free(data);
#else
    skip();
#endif
}

static void test_blocks_and_combine(void **state)
{
    enum { COUNT = 70, SIZE = COUNT * BLOCK - 1000 };
    (void)state;
    uint8_t *data = random_buffer(SIZE, 6);
    uint64_t all[COUNT], part[COUNT];
    hash_blocks(data, SIZE, 0, COUNT, all, 2);
    const uint64_t want = text_hash(data, SIZE);
    assert_int_equal(hash_block_count(SIZE), COUNT);
    assert_true(hash_combine(all, SIZE) == want);
    for (uint64_t i = 0; i < COUNT; ++i)
        assert_true(all[i] == text_block(data + i * BLOCK,
                                         i + 1 < COUNT ? BLOCK : BLOCK - 1000));
    for (uint64_t first = 0; first <= COUNT; first += 7) {
        memset(part, 0xee, sizeof(part));
        hash_blocks(data, SIZE, first, COUNT - first, part, 0);
        assert_memory_equal(part, all + first, (COUNT - first) * 8);
        assert_true(hash_finish(hash_sum(all + first, first, COUNT - first) +
                                    hash_sum(all, 0, first),
                                SIZE) == want);
    }
    /* an updated block replaces its part of the sum */
    const uint64_t sum = hash_sum(all, 0, COUNT) - hash_sum(all + 9, 9, 1);
    data[9 * BLOCK + 77] ^= 1;
    hash_blocks(data, SIZE, 9, 1, part, 1);
    assert_true(hash_finish(sum + hash_sum(part, 9, 1), SIZE) ==
                text_hash(data, SIZE));
    hash_blocks(data, SIZE, COUNT, 0, NULL, 1);
    assert_true(hash_bytes(NULL, 0, 0) == hash_combine(NULL, 0));
    free(data);
}

/* More than 4 GiB of sparse memory, of which only some pages are touched. */
static void test_beyond_4_gib(void **state)
{
    const uint64_t size = (UINT64_C(5) << 30) + 12345;
    const uint64_t count = hash_block_count(size);
    uint64_t have[3], want[3];
    (void)state;
    if (sizeof(size_t) < 8) skip();
    uint8_t *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(data != MAP_FAILED);
    uint8_t *tail = random_buffer(2 * BLOCK + 12345, 7);
    memcpy(data + (count - 3) * BLOCK, tail, 2 * BLOCK + 12345);
    assert_int_equal(count, 5 * 16384 + 1);
    hash_blocks(data, size, count - 3, 3, have, 2);
    hash_blocks(tail, 2 * BLOCK + 12345, 0, 3, want, 1);
    assert_memory_equal(have, want, sizeof(have));
    for (unsigned t = 0, wrong = 0; t < 3; ++t) {
        uint64_t lanes = 0;
        for (unsigned i = 0; i < HASH_WARP; ++i)
            lanes += hash_thread_block(data, size, count - 3 + t, i, 0);
        wrong += hash_block_finish(lanes, t < 2 ? BLOCK : 12345) != want[t];
        assert_int_equal(wrong, 0);
    }
    munmap(data, size);
    free(tail);

    /* the size affects the hash with all of its 64 bits */
    uint64_t *list = calloc(count, sizeof(*list));
    assert_non_null(list);
    const uint64_t whole = hash_combine(list, size);
    assert_true(whole == hash_finish(hash_sum(list, 0, count), size));
    assert_true(hash_finish(1, 7) != hash_finish(1, 7 + (UINT64_C(1) << 32)));
    assert_true(hash_block_count(UINT64_MAX) == UINT64_C(1) << 48);
    free(list);
}

/* The definition must never change: members of a run may use different builds.
 * The values are from an independent program. */
static void test_known_answers(void **state)
{
    static const struct {
        uint64_t size, hash;
    } known[] = {
        {0, UINT64_C(0x6273572b6d60d96a)},
        {1, UINT64_C(0x15783a1007ebe807)},
        {7, UINT64_C(0xb438e7a3a6e8cd6a)},
        {8, UINT64_C(0x5c6baa4acf24a253)},
        {9, UINT64_C(0xe0a77c673e152e66)},
        {511, UINT64_C(0xc8159ffb29a91af1)},
        {512, UINT64_C(0xdc8485050b3e738f)},
        {513, UINT64_C(0x19641718b1df82c1)},
        {65535, UINT64_C(0x3b7c098da1062f86)},
        {65536, UINT64_C(0x735fdcd2c0812bba)},
        {65537, UINT64_C(0xbb32bcfaa7e597fc)},
        {131072, UINT64_C(0xaf84eddf0e510198)},
        {1000003, UINT64_C(0x1d476095737a6a72)},
        {3145728, UINT64_C(0x46dc83609fa6717f)},
    };
    (void)state;
    uint8_t *data = malloc(3 << 20);
    assert_non_null(data);
    for (size_t i = 0; i < 3 << 20; ++i)
        data[i] = (uint8_t)(i * 251 + (i >> 8) * 7 + (i >> 16));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i)
        assert_true(hash1(data, known[i].size) == known[i].hash);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmp),
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_every_alignment),
        cmocka_unit_test(test_block_bounds),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_blocks_and_combine),
        cmocka_unit_test(test_beyond_4_gib),
        cmocka_unit_test(test_known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
