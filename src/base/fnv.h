/* fnv.h - FNV-1a in 64 bits: names for tables, digests of arguments. Whoever
 * wants to can make two texts with one value: nothing relies on that. */
#ifndef PCCL_FNV_H
#define PCCL_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN 0xcbf29ce484222325u

/* A byte, or a word in one step. */
static inline uint64_t fnv_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 0x100000001b3u;
}

static inline uint64_t fnv_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) hash = fnv_word(hash, at[i]);
    return hash;
}

static inline uint64_t fnv_words(uint64_t hash, const uint64_t *words,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++) hash = fnv_word(hash, words[i]);
    return hash;
}

#endif
