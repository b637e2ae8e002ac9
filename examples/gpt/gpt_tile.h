/* gpt_tile.h - one tile of a product: TILE_ROWS x (TILE_VECTORS vectors).
 *
 * Included once for each instruction set, with TILE_NAME, TILE_TARGET,
 * TILE_BYTES of a vector, TILE_ROWS and TILE_VECTORS. The sums stay in
 * registers while k runs. */

/* a has TILE_ROWS elements for each k, b one row of the tile. */
TILE_TARGET static void TILE_NAME(size_t k, const real *restrict a,
                                  const real *restrict b, real *restrict c,
                                  size_t stride, bool add)
{
    typedef real lanes __attribute__((vector_size(TILE_BYTES)));
    enum { WIDTH = TILE_BYTES / sizeof(real) };
    lanes sums[TILE_ROWS][TILE_VECTORS] = {0};
    for (size_t p = 0; p < k; p++) {
        lanes right[TILE_VECTORS];
        memcpy(right, b + p * WIDTH * TILE_VECTORS, sizeof right);
        for (size_t i = 0; i < TILE_ROWS; i++) {
            for (size_t v = 0; v < TILE_VECTORS; v++)
                sums[i][v] += a[p * TILE_ROWS + i] * right[v];
        }
    }
    for (size_t i = 0; i < TILE_ROWS; i++) {
        for (size_t v = 0; v < TILE_VECTORS; v++) {
            lanes old = {0};
            if (add) memcpy(&old, c + i * stride + v * WIDTH, sizeof old);
            old += sums[i][v];
            memcpy(c + i * stride + v * WIDTH, &old, sizeof old);
        }
    }
}

#undef TILE_NAME
#undef TILE_TARGET
#undef TILE_BYTES
#undef TILE_ROWS
#undef TILE_VECTORS
