/* siphash.h - SipHash-2-4 of whole words: who does not have the key cannot tell
 * the hash of a value that it has not seen. (Aumasson and Bernstein, 2012.) */
#ifndef PCCL_SIPHASH_H
#define PCCL_SIPHASH_H

#include <stdint.h>

static inline void siphash_round(uint64_t v[4])
{
#define SIPHASH_TURN(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))
    v[0] += v[1];
    v[2] += v[3];
    v[1] = SIPHASH_TURN(v[1], 13) ^ v[0];
    v[3] = SIPHASH_TURN(v[3], 16) ^ v[2];
    v[0] = SIPHASH_TURN(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = SIPHASH_TURN(v[1], 17) ^ v[2];
    v[3] = SIPHASH_TURN(v[3], 21) ^ v[0];
    v[2] = SIPHASH_TURN(v[2], 32);
#undef SIPHASH_TURN
}

/* Of the words as little-endian bytes. */
static inline uint64_t siphash_words(const uint64_t key[2],
                                     const uint64_t *words, uint32_t count)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u,
                     key[1] ^ 0x7465646279746573u};
    for (uint32_t i = 0; i <= count; i++) {
        uint64_t word = i < count ? words[i] : (uint64_t)count << 59;
        v[3] ^= word;
        siphash_round(v);
        siphash_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) siphash_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
