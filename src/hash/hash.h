/* hash.h - the hash of shared state: its definition and its functions.
 *
 * Not cryptographic: it finds accidents, not attacks. The same bytes have the
 * same hash on every machine, whatever its byte order, vector unit, number of
 * threads or GPU, and at any address. All functions are pure and may be called
 * from any thread.
 *
 * The definition (hash.c is its portable text, hash_core.h has the constants;
 * all arithmetic is mod 2^64):
 *
 *   step(s, p, w): s += w + p, then p += s + low half of s * high half of s
 *   mix(x)  = two rounds of xor-shift and multiply, a permutation
 *
 *   data    = blocks of HASH_BLOCK_SIZE bytes, the last one may be shorter
 *   block   = rows of 64 little-endian 64-bit words, zero-padded to full rows
 *   lane l  = s, p = SEED(l), SEED(64 + l), then step(s, p, word l) per row
 *   block's hash = mix(n * PHI + sum over l of fold(s) * WEIGHT(l)
 *                                            + fold(p) * WEIGHT(64 + l))
 *             where n = bytes in the block and fold(x) = x ^ x >> 32
 *   sum     = sum over blocks i of mix(hash of block i ^ (i + 1) * PHI)
 *   hash    = mix(sum + (size + 1) * PHI)
 *
 * A step is a permutation of the 128 bits of a lane and adds the word to them,
 * so an edit of one word always changes the lane for good, and a different lane
 * changes the block with probability 1 - 2^-64. To undo an edit, later words of
 * the same lane must match it and a product of two unknown halves: the square
 * is there because with a constant factor small edits of a few neighbours
 * cancelled. The sums let threads, blocks and GPU warps finish in any order;
 * the weights and the index make them depend on position. One changed block
 * hash always changes the whole.
 *
 * A block is 64 KiB because it is the unit of three things: one warp's work on
 * a GPU (16 MiB make 256 warps), a few microseconds of a CPU core, of which the
 * weighing at its end is a small part, and what a member downloads for one
 * changed row; its hash is 1/8192 of the data. */
#ifndef PCCL_HASH_H
#define PCCL_HASH_H

#include <stdint.h>

enum { HASH_BLOCK_SIZE = 65536 };

/* Blocks in `size` bytes; 0 for none. */
static inline uint64_t hash_block_count(uint64_t size)
{
    return size / HASH_BLOCK_SIZE + (size % HASH_BLOCK_SIZE != 0);
}

/* The hash of `size` bytes. `data` may be NULL if size is 0. `threads` is the
 * maximum number of threads, including the caller; 0 = as many as OpenMP would
 * use here. Less than 2 MiB is always hashed by the caller alone. */
uint64_t hash_bytes(const void *data, uint64_t size, unsigned threads);

/* out[i] = hash of block first + i, 0 <= i < count, of the `size` bytes at
 * `data`; first + count <= hash_block_count(size). */
void hash_blocks(const void *data, uint64_t size, uint64_t first,
                 uint64_t count, uint64_t *out, unsigned threads);

/* hash_bytes() of data whose hash_block_count(size) blocks have these hashes,
 * in order. */
uint64_t hash_combine(const uint64_t *blocks, uint64_t size);

/* That hash from partial sums in any order: hash_finish(sum of hash_sum() over
 * all blocks, size). For an updated block add its new hash_sum() and subtract
 * the old one. */
uint64_t hash_sum(const uint64_t *blocks, uint64_t first, uint64_t count);
uint64_t hash_finish(uint64_t sum, uint64_t size);

#endif
