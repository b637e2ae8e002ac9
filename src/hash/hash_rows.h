/* hash_rows.h - variants of the hash's inner loop, per instruction set. */
#ifndef PCCL_HASH_ROWS_H
#define PCCL_HASH_ROWS_H

#include "hash_core.h"

#include <stddef.h>

/* Adds `rows` whole rows at p, any alignment, to the HASH_STATE words. */
typedef void hash_rows_fn(uint64_t *state, const uint8_t *p, size_t rows);

struct hash_variant {
    const char *name;
    hash_rows_fn *rows;
};

/* The portable variant first, which is the definition; then those that this CPU
 * supports, the fastest last. NULL past the end. */
const struct hash_variant *hash_variant_get(unsigned index);
hash_rows_fn *hash_rows_best(void);

hash_rows_fn hash_rows_portable;

/* The hash of one block of 1 <= n <= HASH_BLOCK_SIZE bytes. */
uint64_t hash_block(hash_rows_fn *rows, const uint8_t *p, uint64_t n);

#endif
