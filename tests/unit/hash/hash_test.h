/* hash_test.h - inputs and helpers shared by the tests of the hash. */
#ifndef PCCL_HASH_TEST_H
#define PCCL_HASH_TEST_H

#include "hash_core.h"
#include "hash_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BLOCK = HASH_BLOCK_SIZE, ROW = HASH_ROW_SIZE };

/* splitmix64 with fixed seeds, so that failures can be reproduced. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline uint8_t *random_buffer(size_t size, uint64_t seed)
{
    uint8_t *data = malloc(size ? size : 1);
    assert_non_null(data);
    for (size_t i = 0; i < size; ++i) data[i] = (uint8_t)random_next(&seed);
    return data;
}

static inline uint64_t hash1(const void *data, uint64_t size)
{
    return hash_bytes(data, size, 1);
}

static inline int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the list and fails if two entries are equal. */
static inline void assert_distinct(uint64_t *list, size_t count)
{
    qsort(list, count, sizeof(*list), compare_u64);
    for (size_t i = 1; i < count; ++i) assert_true(list[i - 1] != list[i]);
}

#endif
