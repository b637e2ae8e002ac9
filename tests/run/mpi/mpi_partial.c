/* mpi_partial.c - tests PCCL_Allreduce_partial: a round of all ranks, a round
 * that loses one of them, and wrong arguments. */
#include "conform.h"

#include <mpi_pccl.h>
#include <signal.h>

enum { COUNT = 1000 };

static int rank, size;
static double vector[COUNT];
static PCCL_Partial_part parts[PCCL_PARTIAL_PARTS_MAX];

static void fill(void)
{
    for (int i = 0; i < COUNT; i++) vector[i] = rank + i;
}

static PCCL_Partial_options options(void)
{
    return (PCCL_Partial_options){
        .weight = 1, .deadline_ms = 120000, .gather_ms = 120000};
}

/* Of ranks 0 to n - 1. */
static void check_average(int n)
{
    for (int i = 0; i < COUNT; i++) CHECK(vector[i] == (n - 1) / 2.0 + i);
}

static void whole(void)
{
    PCCL_Partial_info info = {.parts = parts,
                              .part_room = PCCL_PARTIAL_PARTS_MAX};
    PCCL_Partial_options o = options();
    fill();
    OK(PCCL_Allreduce_partial(MPI_IN_PLACE, vector, COUNT, MPI_DOUBLE, &o,
                              MPI_COMM_WORLD, &info));
    check_average(size);
    CHECK(info.elements == COUNT && info.contributed && info.ranks == size);
    CHECK(info.part_count == size && parts[0].begin == 0);
    CHECK(parts[0].contributors == size && parts[0].weight == size);
}

/* The last rank dies: what it was to do is left to the others. */
static void loses(void)
{
    PCCL_Partial_info info = {.part_room = 0};
    PCCL_Partial_options o = options();
    if (size < 2) return;
    fill();
    if (rank == size - 1) raise(SIGKILL);
    OK(PCCL_Allreduce_partial(MPI_IN_PLACE, vector, COUNT, MPI_DOUBLE, &o,
                              MPI_COMM_WORLD, &info));
    check_average(size - 1);
    CHECK(info.elements == COUNT && info.contributed);
}

static void refuses(void)
{
    PCCL_Partial_options o = options();
    MPI_Comm self;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_ARG,
          PCCL_Allreduce_partial(MPI_IN_PLACE, vector, COUNT, MPI_DOUBLE, NULL,
                                 MPI_COMM_WORLD, NULL));
    FAILS(MPI_ERR_COUNT,
          PCCL_Allreduce_partial(MPI_IN_PLACE, vector, -1, MPI_DOUBLE, &o,
                                 MPI_COMM_WORLD, NULL));
    FAILS(MPI_ERR_TYPE,
          PCCL_Allreduce_partial(MPI_IN_PLACE, vector, 1, MPI_DOUBLE_INT, &o,
                                 MPI_COMM_WORLD, NULL));
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_COMM, PCCL_Allreduce_partial(MPI_IN_PLACE, vector, 1,
                                               MPI_DOUBLE, &o, self, NULL));
    MPI_Comm_free(&self);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    whole();
    refuses();
    loses();
    return conform_end();
}
