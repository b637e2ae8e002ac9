/* cart.h - Cartesian topologies of communicators. */
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
/* Writes the two neighbours of each dimension, the lower one first;
 * MPI_PROC_NULL at the border. Needs space for 2 * dims. */
void cart_neighbors(const struct cart *cart, int rank, int neighbors[]);

#endif
