/* hash_omp.c - hashes whole buffers with several threads where that is faster.
 *
 * The number of threads is set per region; the caller's OpenMP settings are
 * read and never changed. */
#include "hash_rows.h"

#include <assert.h>
#include <stddef.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* Blocks per task: 1 MiB, about 50 us of work, compared to a few microseconds
 * for waking a thread. */
enum { SHARE_BLOCKS = 16 };

#ifdef _OPENMP
/* Number of threads; 0 or 1: only the caller. */
static int threads_for(uint64_t blocks, unsigned threads)
{
    const uint64_t most = threads ? threads : (unsigned)omp_get_max_threads();
    const uint64_t shares = blocks / SHARE_BLOCKS;
    return (int)(shares < most ? shares : most);
}
#endif

/* Hashes blocks [first, first + count), writes the hashes to `out` unless it
 * is NULL, returns hash_sum() of them. */
static uint64_t sum_serial(const uint8_t *data, uint64_t size, uint64_t first,
                           uint64_t count, uint64_t *out)
{
    hash_rows_fn *rows = hash_rows_best();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t index = first + i;
        const uint64_t hash = hash_block(rows, data + index * HASH_BLOCK_SIZE,
                                         hash_block_size(size, index));
        if (out) out[i] = hash;
        sum += hash_block_sum(hash, index);
    }
    return sum;
}

static uint64_t sum_blocks(const uint8_t *data, uint64_t size, uint64_t first,
                           uint64_t count, uint64_t *out, unsigned threads)
{
#ifdef _OPENMP
    const int team = threads_for(count, threads);
    if (team > 1) {
        const uint64_t shares = (count + SHARE_BLOCKS - 1) / SHARE_BLOCKS;
        uint64_t sum = 0;
#pragma omp parallel for num_threads(team) schedule(dynamic) reduction(+ : sum)
        for (uint64_t s = 0; s < shares; ++s) {
            const uint64_t skip = s * SHARE_BLOCKS;
            const uint64_t left = count - skip;
            sum += sum_serial(data, size, first + skip,
                              left < SHARE_BLOCKS ? left : SHARE_BLOCKS,
                              out ? out + skip : NULL);
        }
        return sum;
    }
#endif
    (void)threads;
    return sum_serial(data, size, first, count, out);
}

uint64_t hash_bytes(const void *data, uint64_t size, unsigned threads)
{
    assert(data || size == 0);
    const uint64_t count = hash_block_count(size);
    return hash_finish(sum_blocks(data, size, 0, count, NULL, threads), size);
}

void hash_blocks(const void *data, uint64_t size, uint64_t first,
                 uint64_t count, uint64_t *out, unsigned threads)
{
    assert(first <= hash_block_count(size));
    assert(count <= hash_block_count(size) - first);
    (void)sum_blocks(data, size, first, count, out, threads);
}
