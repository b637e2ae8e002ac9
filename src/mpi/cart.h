/* cart.h - Cartesian topologies. */
#ifndef CART_H
#define CART_H

struct cart {
    int dims;
    int *sizes;
    int *periods;
};

struct cart *cart_new(int dims, const int sizes[], const int periods[]);
struct cart *cart_copy(const struct cart *cart);
void cart_release(struct cart *cart);
/* The two neighbours in each dimension, the lower one first; MPI_PROC_NULL
 * where the grid ends. Room for 2 * dims. */
void cart_neighbors(const struct cart *cart, int rank, int neighbors[]);

#endif
