/* cart.c - Cartesian topologies in row-major order, like MPICH, and balanced
 * dimensions. */
#include "cart.h"
#include "mpi_comm.h"
#include "comm_split.h"

#include <stdlib.h>
#include <string.h>

struct cart *cart_new(int dims, const int sizes[], const int periods[])
{
    size_t n = (size_t)dims;
    struct cart *cart = malloc(sizeof *cart + 2 * n * sizeof(int));
    if (!cart) return NULL;
    cart->dims = dims;
    cart->sizes = (int *)(cart + 1);
    cart->periods = cart->sizes + dims;
    if (n > 0) memcpy(cart->sizes, sizes, n * sizeof(int));
    for (size_t i = 0; i < n; i++) cart->periods[i] = periods[i] != 0;
    return cart;
}

struct cart *cart_copy(const struct cart *cart)
{
    return cart ? cart_new(cart->dims, cart->sizes, cart->periods) : NULL;
}

void cart_release(struct cart *cart)
{
    free(cart);
}

static int cells(int dims, const int sizes[])
{
    long total = 1;
    for (int i = 0; i < dims; i++) {
        if (sizes[i] < 1) return -1;
        total *= sizes[i];
        if (total > INT32_MAX) return -1;
    }
    return (int)total;
}

/* -1: outside, in a dimension without period. */
static int rank_at(const struct cart *cart, const int coords[])
{
    int rank = 0;
    for (int i = 0; i < cart->dims; i++) {
        int at = coords[i], size = cart->sizes[i];
        if (at < 0 || at >= size) {
            if (!cart->periods[i]) return -1;
            at = (at % size + size) % size;
        }
        rank = rank * size + at;
    }
    return rank;
}

static void coords_of(const struct cart *cart, int rank, int coords[])
{
    for (int i = cart->dims - 1; i >= 0; i--) {
        coords[i] = rank % cart->sizes[i];
        rank /= cart->sizes[i];
    }
}

void cart_neighbors(const struct cart *cart, int rank, int neighbors[])
{
    int stride = 1;
    for (int i = cart->dims - 1; i >= 0; i--) {
        int size = cart->sizes[i], at = rank / stride % size;
        for (int side = 0; side < 2; side++) {
            int to = at + (side ? 1 : -1);
            bool inside = to >= 0 && to < size;
            to = (to + size) % size;
            neighbors[2 * i + side] = inside || cart->periods[i]
                                          ? rank + (to - at) * stride
                                          : MPI_PROC_NULL;
        }
        stride *= size;
    }
}

/* A grid that has lost a member has no coordinates. */
static int cart_of(const struct comm *comm, const struct cart **cart)
{
    *cart = comm->cart;
    if (!*cart)
        return error_note(MPI_ERR_TOPOLOGY,
                          "the communicator has no Cartesian topology");
    if (atomic_load(&comm->lost) > 0)
        return error_note(MPIX_ERR_PROC_FAILED, "a cell of the grid was lost");
    return MPI_SUCCESS;
}

int mpi_Cart_create(struct comm *comm, int dims, const int sizes[],
                    const int periods[], int reorder, MPI_Comm *out)
{
    (void)reorder; /* the ranks keep their order */
    if (comm->remote)
        return error_note(MPI_ERR_COMM, "not defined for intercommunicators");
    if (dims < 0) return error_note(MPI_ERR_DIMS, "negative dimensions");
    if (dims > 0 && (!sizes || !periods)) return note_argument("null pointer");
    int total = cells(dims, sizes);
    const struct group *members = comm_members(comm);
    if (total < 0) return error_note(MPI_ERR_DIMS, "a size is below 1");
    if (total > members->size)
        return note_argument("the grid has more cells than there are ranks");
    int result = split_run(comm, members->rank < total ? 0 : MPI_UNDEFINED,
                           members->rank, out);
    if (result != MPI_SUCCESS) return result;
    struct comm *grid = comm_find(*out);
    if (!grid) return MPI_SUCCESS;
    split_lacks(grid, total);
    grid->cart = cart_new(dims, sizes, periods);
    return grid->cart ? MPI_SUCCESS : note_no_memory();
}

int mpi_Cart_map(struct comm *comm, int dims, const int sizes[],
                 const int periods[], int *rank)
{
    (void)periods;
    if (dims < 0 || !sizes) return note_argument("dims or null");
    int total = cells(dims, sizes);
    const struct group *members = comm_members(comm);
    if (total < 0 || total > members->size)
        return error_note(MPI_ERR_DIMS, "the grid does not fit");
    *rank = members->rank < total ? members->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int mpi_Cartdim_get(struct comm *comm, int *dims)
{
    const struct cart *cart;
    int result = cart_of(comm, &cart);
    if (result != MPI_SUCCESS) return result;
    *dims = cart->dims;
    return MPI_SUCCESS;
}

int mpi_Cart_get(struct comm *comm, int max, int sizes[], int periods[],
                 int coords[])
{
    const struct cart *cart;
    int result = cart_of(comm, &cart);
    if (result != MPI_SUCCESS) return result;
    if (max < cart->dims) return note_argument("arrays are too short");
    for (int i = 0; i < cart->dims; i++) {
        sizes[i] = cart->sizes[i];
        periods[i] = cart->periods[i];
    }
    coords_of(cart, comm_members(comm)->rank, coords);
    return MPI_SUCCESS;
}

int mpi_Cart_rank(struct comm *comm, const int coords[], int *rank)
{
    const struct cart *cart;
    int result = cart_of(comm, &cart);
    if (result != MPI_SUCCESS) return result;
    if (cart->dims > 0 && !coords) return note_argument("null pointer");
    int found = rank_at(cart, coords);
    if (found < 0) return note_argument("coordinates outside of the grid");
    *rank = found;
    return MPI_SUCCESS;
}

int mpi_Cart_coords(struct comm *comm, int rank, int max, int coords[])
{
    const struct cart *cart;
    int result = cart_of(comm, &cart);
    if (result != MPI_SUCCESS) return result;
    if (rank < 0 || rank >= comm_members(comm)->size)
        return error_note(MPI_ERR_RANK, "rank %d", rank);
    if (max < cart->dims) return note_argument("the array is too short");
    coords_of(cart, rank, coords);
    return MPI_SUCCESS;
}

int mpi_Cart_shift(struct comm *comm, int direction, int shift, int *source,
                   int *dest)
{
    const struct cart *cart;
    int result = cart_of(comm, &cart);
    if (result != MPI_SUCCESS) return result;
    if (direction < 0 || direction >= cart->dims)
        return note_argument("no such direction");
    int *coords = malloc((size_t)cart->dims * sizeof *coords);
    if (!coords) return note_no_memory();
    coords_of(cart, comm_members(comm)->rank, coords);
    coords[direction] += shift;
    int to = rank_at(cart, coords);
    coords[direction] -= 2 * shift;
    int from = rank_at(cart, coords);
    free(coords);
    *dest = to < 0 ? MPI_PROC_NULL : to;
    *source = from < 0 ? MPI_PROC_NULL : from;
    return MPI_SUCCESS;
}

/* The grid of a slice: the remaining dimensions. */
static struct cart *cart_slice(const struct cart *cart, const int remain[])
{
    struct cart *slice = cart_copy(cart);
    if (!slice) return NULL;
    slice->dims = 0;
    for (int i = 0; i < cart->dims; i++) {
        if (!remain[i]) continue;
        slice->sizes[slice->dims] = cart->sizes[i];
        slice->periods[slice->dims++] = cart->periods[i];
    }
    return slice;
}

int mpi_Cart_sub(struct comm *comm, const int remain[], MPI_Comm *out)
{
    const struct cart *cart;
    int result = cart_of(comm, &cart);
    if (result != MPI_SUCCESS) return result;
    if (cart->dims > 0 && !remain) return note_argument("null pointer");
    int rank = comm_members(comm)->rank;
    int *coords = malloc(((size_t)cart->dims + 1) * sizeof *coords);
    struct cart *slice = cart_slice(cart, remain);
    if (!coords || !slice) {
        free(coords);
        cart_release(slice);
        return note_no_memory();
    }
    coords_of(cart, rank, coords);
    int color = 0, key = 0;
    for (int i = 0; i < cart->dims; i++) {
        int *number = remain[i] ? &key : &color;
        *number = *number * cart->sizes[i] + coords[i];
    }
    free(coords);
    result = split_run(comm, color, key, out);
    if (result != MPI_SUCCESS) {
        cart_release(slice);
        return result;
    }
    struct comm *made = comm_find(*out);
    split_lacks(made, cells(slice->dims, slice->sizes));
    made->cart = slice;
    return MPI_SUCCESS;
}

/* ---------------------------------------------------------------- dimensions
 */

/* Splits `total` into `count` factors as close to each other as possible, in
 * descending order. Tries the largest factor from the root upwards, then the
 * others. The first result has the least largest factor. */
static void factors(int total, int count, int limit, int out[], int best[],
                    int depth, int *found)
{
    if (count == 1) {
        if (total > limit) return;
        out[depth] = total;
        for (int i = 0; i <= depth; i++) best[i] = out[i];
        *found = 1;
        return;
    }
    for (int f = 1; f <= total && f <= limit && !*found; f++) {
        if (total % f != 0) continue;
        /* all other factors are at most f */
        long room = 1;
        for (int i = 0; i < count && room < total; i++) room *= f;
        if (room < total) continue;
        out[depth] = f;
        factors(total / f, count - 1, f, out, best, depth + 1, found);
    }
}

int mpi_Dims_create(int nodes, int dims, int sizes[])
{
    int open = 0, found = 0;
    long fixed = 1;
    if (nodes < 1) return error_note(MPI_ERR_ARG, "%d nodes", nodes);
    if (dims < 0 || (dims > 0 && !sizes))
        return error_note(MPI_ERR_DIMS, "negative dimensions or null array");
    for (int i = 0; i < dims; i++) {
        if (sizes[i] < 0) return error_note(MPI_ERR_DIMS, "negative size");
        if (sizes[i] == 0)
            open++;
        else
            fixed *= sizes[i];
    }
    if (fixed > nodes || nodes % fixed != 0 || (open == 0 && fixed != nodes))
        return error_note(MPI_ERR_DIMS,
                          "%d nodes cannot be spread over the dimensions",
                          nodes);
    if (open == 0) return MPI_SUCCESS;
    int *work = calloc(2 * (size_t)open, sizeof *work);
    if (!work) return note_no_memory();
    int rest = (int)(nodes / fixed);
    factors(rest, open, rest, work, work + open, 0, &found);
    for (int i = 0, k = 0; i < dims; i++)
        if (sizes[i] == 0) sizes[i] = work[open + k++];
    free(work);
    return MPI_SUCCESS;
}
