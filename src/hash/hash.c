/* hash.c - portable implementation of the definition in hash.h. */
#include "hash_rows.h"

#include <assert.h>

#define EACH8(f, l)                                                            \
    f(l), f((l) + 1), f((l) + 2), f((l) + 3), f((l) + 4), f((l) + 5),          \
        f((l) + 6), f((l) + 7)
#define EACH64(f, l)                                                           \
    EACH8(f, l), EACH8(f, (l) + 8), EACH8(f, (l) + 16), EACH8(f, (l) + 24),    \
        EACH8(f, (l) + 32), EACH8(f, (l) + 40), EACH8(f, (l) + 48),            \
        EACH8(f, (l) + 56)

static const uint64_t seeds[HASH_STATE] = {EACH64(HASH_SEED, 0),
                                           EACH64(HASH_SEED, 64)};
static const uint64_t weights[HASH_STATE] = {EACH64(HASH_WEIGHT, 0),
                                             EACH64(HASH_WEIGHT, 64)};

/* Byte by byte, independent of the byte order; compilers emit a single load. */
static inline uint64_t load_le64(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
           (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
           (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

/* `rows` rows of four lanes; these fit into the registers of most machines. */
static void rows_of_4(uint64_t *state, const uint8_t *p, size_t rows)
{
    uint64_t *s = state, *q = state + HASH_LANES;
    uint64_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    uint64_t q0 = q[0], q1 = q[1], q2 = q[2], q3 = q[3];
    for (; rows > 0; --rows, p += HASH_ROW_SIZE) {
        hash_step(&s0, &q0, load_le64(p));
        hash_step(&s1, &q1, load_le64(p + 8));
        hash_step(&s2, &q2, load_le64(p + 16));
        hash_step(&s3, &q3, load_le64(p + 24));
    }
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
    q[0] = q0, q[1] = q1, q[2] = q2, q[3] = q3;
}

void hash_rows_portable(uint64_t *state, const uint8_t *p, size_t rows)
{
    while (rows > 0) {
        const size_t piece = rows < HASH_PIECE_ROWS ? rows : HASH_PIECE_ROWS;
        for (size_t l = 0; l < HASH_LANES; l += 4)
            rows_of_4(state + l, p + 8 * l, piece);
        p += piece * HASH_ROW_SIZE;
        rows -= piece;
    }
}

uint64_t hash_block(hash_rows_fn *rows, const uint8_t *p, uint64_t n)
{
    assert(n >= 1 && n <= HASH_BLOCK_SIZE);
    const size_t whole = (size_t)(n / HASH_ROW_SIZE);
    const size_t rest = (size_t)(n % HASH_ROW_SIZE);
    uint64_t state[HASH_STATE];

    memcpy(state, seeds, sizeof(state));
    rows(state, p, whole);
    if (rest) {
        uint8_t padded[HASH_ROW_SIZE] = {0};
        memcpy(padded, p + whole * HASH_ROW_SIZE, rest);
        rows(state, padded, 1);
    }
    uint64_t sum = 0;
    for (int i = 0; i < HASH_STATE; ++i)
        sum += hash_weigh(state[i], weights[i]);
    return hash_block_finish(sum, n);
}

uint64_t hash_sum(const uint64_t *blocks, uint64_t first, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i)
        sum += hash_block_sum(blocks[i], first + i);
    return sum;
}

uint64_t hash_finish(uint64_t sum, uint64_t size)
{
    return hash_mix(sum + (size + 1) * HASH_PHI);
}

uint64_t hash_combine(const uint64_t *blocks, uint64_t size)
{
    return hash_finish(hash_sum(blocks, 0, hash_block_count(size)), size);
}
