/* hash_simd.c - vector versions of the inner loop, chosen at run time.
 *
 * One multiplication of 32-bit halves and five cheap operations per vector.
 * Other machines use hash_rows_portable: with scalar multiplications of one
 * cycle it is as fast as two-lane vectors (SSE2, NEON). */
#include "hash_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* The loops over vectors are unrolled by pragma: otherwise gcc -O2 keeps the
 * vectors in memory, at half the speed. */
enum { PREFETCH_SIZE = 2048 }; /* bytes ahead */

#define LOAD256(p) _mm256_loadu_si256((const void *)(p))
#define STORE256(p, v) _mm256_storeu_si256((void *)(p), v)

/* A quarter of the lanes: its eight vectors and the temporaries fit 16
 * registers. */
__attribute__((target("avx2"))) static void
rows_quarter_avx2(uint64_t *state, const uint8_t *p, size_t rows)
{
    __m256i s[4], q[4];
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) {
        s[i] = LOAD256(state + 4 * i);
        q[i] = LOAD256(state + HASH_LANES + 4 * i);
    }
    for (; rows > 0; --rows, p += HASH_ROW_SIZE) {
        _mm_prefetch((const void *)(p + PREFETCH_SIZE), _MM_HINT_T0);
        _mm_prefetch((const void *)(p + PREFETCH_SIZE + 64), _MM_HINT_T0);
#pragma GCC unroll 8
        for (int i = 0; i < 4; ++i) {
            s[i] = _mm256_add_epi64(s[i], LOAD256(p + 32 * i));
            s[i] = _mm256_add_epi64(s[i], q[i]);
            const __m256i high = _mm256_srli_epi64(s[i], 32);
            q[i] = _mm256_add_epi64(q[i], s[i]);
            q[i] = _mm256_add_epi64(q[i], _mm256_mul_epu32(s[i], high));
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) {
        STORE256(state + 4 * i, s[i]);
        STORE256(state + HASH_LANES + 4 * i, q[i]);
    }
}

static void hash_rows_avx2(uint64_t *state, const uint8_t *p, size_t rows)
{
    while (rows > 0) {
        const size_t piece = rows < HASH_PIECE_ROWS ? rows : HASH_PIECE_ROWS;
        for (size_t l = 0; l < HASH_LANES; l += HASH_LANES / 4)
            rows_quarter_avx2(state + l, p + 8 * l, piece);
        p += piece * HASH_ROW_SIZE;
        rows -= piece;
    }
}

/* One pass over the data without prefetch: the hardware prefetcher is ahead,
 * and software prefetch cost 15 to 25 % of the speed. */
__attribute__((target("avx512f"))) static void
hash_rows_avx512(uint64_t *state, const uint8_t *p, size_t rows)
{
    __m512i s[8], q[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        s[i] = _mm512_loadu_si512(state + 8 * i);
        q[i] = _mm512_loadu_si512(state + HASH_LANES + 8 * i);
    }
    for (; rows > 0; --rows, p += HASH_ROW_SIZE)
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            s[i] = _mm512_add_epi64(s[i], _mm512_loadu_si512(p + 64 * i));
            s[i] = _mm512_add_epi64(s[i], q[i]);
            const __m512i high = _mm512_srli_epi64(s[i], 32);
            q[i] = _mm512_add_epi64(q[i], s[i]);
            q[i] = _mm512_add_epi64(q[i], _mm512_mul_epu32(s[i], high));
        }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        _mm512_storeu_si512(state + 8 * i, s[i]);
        _mm512_storeu_si512(state + HASH_LANES + 8 * i, q[i]);
    }
}
#endif

const struct hash_variant *hash_variant_get(unsigned index)
{
    static const struct hash_variant variants[] = {
        {"portable", hash_rows_portable},
#if defined(__x86_64__)
        {"avx2", hash_rows_avx2},
        {"avx512", hash_rows_avx512},
#endif
    };
    unsigned count = 1;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        count = 2;
        if (__builtin_cpu_supports("avx512f")) count = 3;
    }
#endif
    return index < count ? &variants[index] : NULL;
}

hash_rows_fn *hash_rows_best(void)
{
    unsigned index = 0;
    while (hash_variant_get(index + 1)) ++index;
    return hash_variant_get(index)->rows;
}
