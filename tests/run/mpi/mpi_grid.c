/* mpi_grid.c - tests neighbourhood collectives on Cartesian grids of all
 * shapes, and nonblocking exchanges along them. */
#include "conform.h"

enum { DIMS_MAX = 3, DEGREE_MAX = 2 * DIMS_MAX, ITEMS = 3 };

static int rank, size, degree, neighbors[DEGREE_MAX];
static MPI_Comm grid;

/* Item i of the block that a rank sends in direction j. */
static int item(int from, int j, int i)
{
    return from * 1000 + j * 10 + i;
}

/* A block from the neighbour in direction j was sent in the opposite
 * direction. */
static void check_received(const int *in, int j, int count)
{
    for (int i = 0; i < count; i++) {
        int expected =
            neighbors[j] == MPI_PROC_NULL ? -1 : item(neighbors[j], j ^ 1, i);
        CHECK(in[i] == expected);
    }
}

static void wait_for(MPI_Request *request, int how)
{
    if (how == 1) OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    if (how < 2) return;
    OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(request));
}

static void clear(int *in, int count)
{
    for (int i = 0; i < count; i++) in[i] = -1;
}

static void test_allgather(int how)
{
    int out[ITEMS], in[DEGREE_MAX * ITEMS + 1], counts[DEGREE_MAX + 1],
        displs[DEGREE_MAX + 1];
    MPI_Request request;
    for (int i = 0; i < ITEMS; i++) out[i] = item(rank, 0, i);
    clear(in, DEGREE_MAX * ITEMS);
    if (how == 0)
        OK(MPI_Neighbor_allgather(out, ITEMS, MPI_INT, in, ITEMS, MPI_INT,
                                  grid));
    else if (how == 1)
        OK(MPI_Ineighbor_allgather(out, ITEMS, MPI_INT, in, ITEMS, MPI_INT,
                                   grid, &request));
    else
        OK(MPI_Neighbor_allgather_init(out, ITEMS, MPI_INT, in, ITEMS, MPI_INT,
                                       grid, MPI_INFO_NULL, &request));
    wait_for(&request, how);
    for (int j = 0; j < degree; j++)
        for (int i = 0; i < ITEMS; i++)
            CHECK(in[j * ITEMS + i] == (neighbors[j] == MPI_PROC_NULL
                                            ? -1
                                            : item(neighbors[j], 0, i)));
    for (int j = 0; j < degree; j++) {
        counts[j] = 1;
        displs[j] = 2 * (degree - 1 - j); /* backwards, with gaps */
    }
    clear(in, DEGREE_MAX * ITEMS);
    if (how == 0)
        OK(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, counts, displs, MPI_INT,
                                   grid));
    else if (how == 1)
        OK(MPI_Ineighbor_allgatherv(out, 1, MPI_INT, in, counts, displs,
                                    MPI_INT, grid, &request));
    else
        OK(MPI_Neighbor_allgatherv_init(out, 1, MPI_INT, in, counts, displs,
                                        MPI_INT, grid, MPI_INFO_NULL,
                                        &request));
    wait_for(&request, how);
    for (int j = 0; j < degree; j++)
        CHECK(in[displs[j]] ==
              (neighbors[j] == MPI_PROC_NULL ? -1 : item(neighbors[j], 0, 0)));
}

static void test_alltoall(int how)
{
    int out[DEGREE_MAX * ITEMS + 1], in[DEGREE_MAX * ITEMS + 1];
    int sends[DEGREE_MAX + 1], recvs[DEGREE_MAX + 1], displs[DEGREE_MAX + 1];
    MPI_Request request;
    for (int j = 0; j < degree; j++)
        for (int i = 0; i < ITEMS; i++) out[j * ITEMS + i] = item(rank, j, i);
    clear(in, DEGREE_MAX * ITEMS);
    if (how == 0)
        OK(MPI_Neighbor_alltoall(out, ITEMS, MPI_INT, in, ITEMS, MPI_INT,
                                 grid));
    else if (how == 1)
        OK(MPI_Ineighbor_alltoall(out, ITEMS, MPI_INT, in, ITEMS, MPI_INT, grid,
                                  &request));
    else
        OK(MPI_Neighbor_alltoall_init(out, ITEMS, MPI_INT, in, ITEMS, MPI_INT,
                                      grid, MPI_INFO_NULL, &request));
    wait_for(&request, how);
    for (int j = 0; j < degree; j++) check_received(in + j * ITEMS, j, ITEMS);
    for (int j = 0; j < degree; j++) {
        sends[j] = j % (ITEMS + 1);
        recvs[j] = (j ^ 1) % (ITEMS + 1);
        displs[j] = j * ITEMS;
    }
    clear(in, DEGREE_MAX * ITEMS);
    if (how == 0)
        OK(MPI_Neighbor_alltoallv(out, sends, displs, MPI_INT, in, recvs,
                                  displs, MPI_INT, grid));
    else if (how == 1)
        OK(MPI_Ineighbor_alltoallv(out, sends, displs, MPI_INT, in, recvs,
                                   displs, MPI_INT, grid, &request));
    else
        OK(MPI_Neighbor_alltoallv_init(out, sends, displs, MPI_INT, in, recvs,
                                       displs, MPI_INT, grid, MPI_INFO_NULL,
                                       &request));
    wait_for(&request, how);
    for (int j = 0; j < degree; j++)
        check_received(in + j * ITEMS, j, recvs[j]);
}

/* Sends columns of a matrix and receives rows. */
static void test_alltoallw(int how)
{
    int out[ITEMS][DEGREE_MAX], in[DEGREE_MAX * ITEMS + 1];
    int ones[DEGREE_MAX + 1], rows[DEGREE_MAX + 1];
    MPI_Aint sends[DEGREE_MAX + 1], recvs[DEGREE_MAX + 1];
    MPI_Datatype column, columns[DEGREE_MAX + 1], ints[DEGREE_MAX + 1];
    MPI_Request request;
    OK(MPI_Type_vector(ITEMS, 1, DEGREE_MAX, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    for (int j = 0; j < degree; j++) {
        ones[j] = 1;
        rows[j] = ITEMS;
        columns[j] = column;
        ints[j] = MPI_INT;
        sends[j] = (MPI_Aint)sizeof(int) * j;
        recvs[j] = (MPI_Aint)sizeof(int) * j * ITEMS;
        for (int i = 0; i < ITEMS; i++) out[i][j] = item(rank, j, i);
    }
    clear(in, DEGREE_MAX * ITEMS);
    if (how == 0)
        OK(MPI_Neighbor_alltoallw(out, ones, sends, columns, in, rows, recvs,
                                  ints, grid));
    else if (how == 1)
        OK(MPI_Ineighbor_alltoallw(out, ones, sends, columns, in, rows, recvs,
                                   ints, grid, &request));
    else
        OK(MPI_Neighbor_alltoallw_init(out, ones, sends, columns, in, rows,
                                       recvs, ints, grid, MPI_INFO_NULL,
                                       &request));
    wait_for(&request, how);
    for (int j = 0; j < degree; j++) check_received(in + j * ITEMS, j, ITEMS);
    OK(MPI_Type_free(&column));
}

static void test_isendrecv(void)
{
    MPI_Request requests[2 * DIMS_MAX];
    MPI_Status statuses[2 * DIMS_MAX];
    int out[2 * DIMS_MAX], in[2 * DIMS_MAX], both[DIMS_MAX], source, dest;
    int dims = degree / 2;
    for (int d = 0; d < dims; d++) {
        OK(MPI_Cart_shift(grid, d, 1, &source, &dest));
        CHECK(source == neighbors[2 * d] && dest == neighbors[2 * d + 1]);
        out[d] = item(rank, d, 1);
        in[d] = -1;
        both[d] = item(rank, d, 2);
        OK(MPI_Isendrecv(&out[d], 1, MPI_INT, dest, d, &in[d], 1, MPI_INT,
                         source, d, grid, &requests[2 * d]));
        OK(MPI_Isendrecv_replace(&both[d], 1, MPI_INT, dest, 100 + d, source,
                                 100 + d, grid, &requests[2 * d + 1]));
    }
    OK(MPI_Waitall(degree, requests, statuses));
    for (int d = 0; d < dims; d++) {
        source = neighbors[2 * d];
        int there = source != MPI_PROC_NULL;
        CHECK(in[d] == (there ? item(source, d, 1) : -1));
        CHECK(both[d] == item(there ? source : rank, d, 2));
        CHECK(statuses[2 * d].MPI_SOURCE == source);
    }
}

static int is_mpich(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strncmp(version, "MPICH", 5) == 0;
}

/* MPI 4.0 (8.6) requires that a block sent downwards arrives from above, even
 * if both neighbours are the same process; MPICH matches such blocks in the
 * order of the directions. */
static int crosses(void)
{
    for (int j = 0; j < degree; j++)
        if (neighbors[j] != MPI_PROC_NULL && neighbors[j] == neighbors[j ^ 1])
            return !is_mpich();
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(&rank, 1, MPI_INT, neighbors,
                                                   1, MPI_INT, MPI_COMM_WORLD));
    for (int dims = 1; dims <= DIMS_MAX; dims++) {
        for (int wraps = 0; wraps < 1 << dims; wraps++) {
            int sizes[DIMS_MAX] = {0}, periods[DIMS_MAX];
            OK(MPI_Dims_create(size, dims, sizes));
            for (int d = 0; d < dims; d++) periods[d] = wraps >> d & 1;
            OK(MPI_Cart_create(MPI_COMM_WORLD, dims, sizes, periods, 0, &grid));
            MPI_Comm_rank(grid, &rank);
            degree = 2 * dims;
            for (int d = 0; d < dims; d++)
                OK(MPI_Cart_shift(grid, d, 1, &neighbors[2 * d],
                                  &neighbors[2 * d + 1]));
            for (int how = 0; how < 3; how++) {
                test_allgather(how);
                if (!crosses()) continue;
                test_alltoall(how);
                test_alltoallw(how);
            }
            /* MPICH 4.0.2 crashes there */
            if (!is_mpich()) test_isendrecv();
            OK(MPI_Comm_free(&grid));
        }
    }
    return conform_end();
}
