/* hash_core.h - arithmetic of the hash, shared by C and CUDA.
 *
 * hash.h has the definition. The lower half is the work of one GPU thread; it
 * also compiles as plain C, so that a test can run it without a GPU. */
#ifndef PCCL_HASH_CORE_H
#define PCCL_HASH_CORE_H

#include "hash.h"

#include <stdbool.h>
#include <string.h>

#ifdef __CUDACC__
#define HASH_FN static __host__ __device__ __forceinline__
#else
#define HASH_FN static inline
#endif
#ifdef __CUDA_ARCH__
#define HASH_UNROLL _Pragma("unroll")
#else
#define HASH_UNROLL
#endif

enum {
    HASH_LANES = 64,
    HASH_ROW_SIZE = 8 * HASH_LANES,
    HASH_STATE = 2 * HASH_LANES, /* words: s of all lanes, then p */
    HASH_PIECE_ROWS = 8,         /* 4 KiB, which fits the first-level cache */
    HASH_WARP = 32,  /* threads of a block on a GPU, two lanes each */
    HASH_DEPTH = 16, /* 16-byte loads that a GPU thread keeps in flight */
};

/* Leading bits of the golden ratio and of the roots of 3 and 7. */
#define HASH_PHI UINT64_C(0x9e3779b97f4a7c15)
#define HASH_C1 UINT64_C(0xbb67ae8584caa73b)
#define HASH_C2 UINT64_C(0xa54ff53a5f1d36f1)

/* Constants of word l of the lanes' state (s of all, then p of all) as constant
 * expressions; C has no constexpr function. */
#define HASH_LANE(l, c)                                                        \
    ((((l) + 1) * HASH_PHI ^ (((l) + 1) * HASH_PHI) >> 32) * (c))
#define HASH_SEED(l) HASH_LANE(l, HASH_C1)
#define HASH_WEIGHT(l) (HASH_LANE(l, HASH_C2) | 1)

HASH_FN void hash_step(uint64_t *s, uint64_t *p, uint64_t word)
{
    *s += word + *p;
    *p += *s + (*s & UINT32_MAX) * (*s >> 32);
}

HASH_FN uint64_t hash_mix(uint64_t x)
{
    x = (x ^ x >> 32) * HASH_C1;
    x = (x ^ x >> 29) * HASH_C2;
    return x ^ x >> 32;
}

/* Contribution of a word of a lane's state to its block. */
HASH_FN uint64_t hash_weigh(uint64_t word, uint64_t weight)
{
    return (word ^ word >> 32) * weight;
}

/* The hash of a block of n bytes, from the sum of its lanes. */
HASH_FN uint64_t hash_block_finish(uint64_t sum, uint64_t n)
{
    return hash_mix(sum + n * HASH_PHI);
}

/* Contribution of block `index` to the whole. */
HASH_FN uint64_t hash_block_sum(uint64_t hash, uint64_t index)
{
    return hash_mix(hash ^ (index + 1) * HASH_PHI);
}

/* Bytes in block `index`. */
HASH_FN uint64_t hash_block_size(uint64_t size, uint64_t index)
{
    const uint64_t left = size - index * HASH_BLOCK_SIZE;
    return left / HASH_BLOCK_SIZE > 0 ? (uint64_t)HASH_BLOCK_SIZE : left;
}

/* Two adjacent words, and the next two for unaligned data. */
struct hash_pair {
    uint64_t lo, hi;
};
struct hash_window {
    struct hash_pair a, b;
};

/* p must be 16-byte aligned. */
HASH_FN struct hash_pair hash_load16(const uint8_t *p)
{
    struct hash_pair pair;
#ifdef __CUDA_ARCH__
    const ulonglong2 v = __ldg((const ulonglong2 *)p);
    pair.lo = v.x;
    pair.hi = v.y;
#else
    memcpy(&pair, p, sizeof(pair));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    pair.lo = __builtin_bswap64(pair.lo);
    pair.hi = __builtin_bswap64(pair.hi);
#endif
#endif
    return pair;
}

/* The aligned words around the 16 bytes at p, which is `shift` bytes above a
 * multiple of 16. No shift here, because it would wait for the load. */
HASH_FN struct hash_window hash_window_load(const uint8_t *p, unsigned shift)
{
    struct hash_window w;
    w.a = hash_load16(p - shift);
    w.b = shift ? hash_load16(p - shift + 16) : w.a;
    return w;
}

HASH_FN struct hash_pair hash_window_get(struct hash_window w, unsigned shift)
{
    struct hash_pair pair = w.a;
    if (shift == 0) return pair;
    uint64_t next = w.b.lo;
    if (shift >= 8) {
        pair.lo = w.a.hi;
        pair.hi = w.b.lo;
        next = w.b.hi;
    }
    const unsigned bits = shift % 8 * 8;
    const unsigned rest = 63 - bits; /* and one more, to allow bits == 0 */
    pair.lo = pair.lo >> bits | pair.hi << 1 << rest;
    pair.hi = pair.hi >> bits | next << 1 << rest;
    return pair;
}

/* The 16 bytes at p, of which only the first `n` exist; n may be <= 0. */
HASH_FN struct hash_pair hash_load_edge(const uint8_t *p, int64_t n)
{
    struct hash_pair pair = {0, 0};
    for (int i = 0; i < 8; ++i) {
        if (i < n) pair.lo |= (uint64_t)p[i] << (8 * i);
        if (i + 8 < n) pair.hi |= (uint64_t)p[i + 8] << (8 * i);
    }
    return pair;
}

/* The state of a thread's two lanes. */
struct hash_lane_pair {
    struct hash_pair s, p;
};

HASH_FN void hash_pair_step(struct hash_lane_pair *acc, struct hash_pair word)
{
    hash_step(&acc->s.lo, &acc->p.lo, word.lo);
    hash_step(&acc->s.hi, &acc->p.hi, word.hi);
}

/* Processes `rows` rows from p for one thread, with HASH_DEPTH loads always in
 * flight: each slot is refilled as soon as it is read. */
HASH_FN void hash_thread_rows(struct hash_lane_pair *acc, const uint8_t *p,
                              uint64_t rows, unsigned shift)
{
    struct hash_window slot[HASH_DEPTH];
    if (rows >= HASH_DEPTH) {
        HASH_UNROLL
        for (int i = 0; i < HASH_DEPTH; ++i)
            slot[i] = hash_window_load(p + i * HASH_ROW_SIZE, shift);
        for (; rows >= 2 * HASH_DEPTH; rows -= HASH_DEPTH) {
            p += HASH_DEPTH * HASH_ROW_SIZE;
            HASH_UNROLL
            for (int i = 0; i < HASH_DEPTH; ++i) {
                hash_pair_step(acc, hash_window_get(slot[i], shift));
                slot[i] = hash_window_load(p + i * HASH_ROW_SIZE, shift);
            }
        }
        p += HASH_DEPTH * HASH_ROW_SIZE;
        rows -= HASH_DEPTH;
        HASH_UNROLL
        for (int i = 0; i < HASH_DEPTH; ++i)
            hash_pair_step(acc, hash_window_get(slot[i], shift));
    }
    for (; rows > 0; --rows, p += HASH_ROW_SIZE) {
        const struct hash_window w = hash_window_load(p, shift);
        hash_pair_step(acc, hash_window_get(w, shift));
    }
}

/* Contribution of thread 0..HASH_WARP-1 to the sum of block `index`. `shift` is
 * the address of the data modulo 16, a constant 0 if that is known. Reads
 * nothing outside the data: rows whose aligned words would exceed it (the first
 * and the last) are read byte by byte. */
HASH_FN uint64_t hash_thread_block(const uint8_t *data, uint64_t size,
                                   uint64_t index, unsigned thread,
                                   unsigned shift)
{
    const uint64_t offset = 16 * (uint64_t)thread;
    const uint8_t *p = data + index * HASH_BLOCK_SIZE;
    const uint64_t n = hash_block_size(size, index);
    const uint64_t left = size - index * HASH_BLOCK_SIZE;
    const uint64_t rows = (n + HASH_ROW_SIZE - 1) / HASH_ROW_SIZE;
    const uint64_t lane = 2 * (uint64_t)thread;
    const uint64_t p_lane = HASH_LANES + lane;
    struct hash_lane_pair acc = {
        {HASH_SEED(lane), HASH_SEED(lane + 1)},
        {HASH_SEED(p_lane), HASH_SEED(p_lane + 1)},
    };

    uint64_t first = 0;
    uint64_t end = n / HASH_ROW_SIZE;
    if (shift) {
        const uint64_t inside = left < 16 ? 0 : (left - 16) / HASH_ROW_SIZE;
        first = index == 0;
        if (end > inside) end = inside;
        if (end < first) end = first;
    }
    for (uint64_t row = 0; row < rows; ++row) {
        if (row == first && row < end) {
            hash_thread_rows(&acc, p + row * HASH_ROW_SIZE + offset,
                             end - first, shift);
            row = end - 1;
            continue;
        }
        const uint64_t at = row * HASH_ROW_SIZE + offset;
        hash_pair_step(&acc, hash_load_edge(p + at, (int64_t)(n - at)));
    }
    return hash_weigh(acc.s.lo, HASH_WEIGHT(lane)) +
           hash_weigh(acc.s.hi, HASH_WEIGHT(lane + 1)) +
           hash_weigh(acc.p.lo, HASH_WEIGHT(p_lane)) +
           hash_weigh(acc.p.hi, HASH_WEIGHT(p_lane + 1));
}

#endif
