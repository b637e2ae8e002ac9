/* mpi_until.c - collectives until a file exists: mpi_until FILE [WHAT].
 * Prints its place and its process at the start and, on rank 0, the number of
 * ranks at the end. WHAT is update, to admit newcomers in each step, or ask, to
 * do so where PCCL_Are_peers_pending says that it is needed. */
#include <mpi.h>
#include <mpi_pccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    const char *file = argc > 1 ? argv[1] : "";
    int updates = argc > 2 && strcmp(argv[2], "update") == 0;
    int asks = argc > 2 && strcmp(argv[2], "ask") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d, pid %d\n", rank, size, (int)getpid());
    fflush(stdout);
    int skip = getenv("PCCL_JOIN") != NULL; /* MPI_Init was in that update */
    for (double over = 0; over == 0; skip = 0) {
        double here = access(file, F_OK) == 0;
        int needed = updates;
        if (asks && !skip) PCCL_Are_peers_pending(MPI_COMM_WORLD, &needed);
        if (needed && !skip) PCCL_Update_topology(MPI_COMM_WORLD);
        MPI_Allreduce(&here, &over, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) printf("over with %d ranks\n", size);
    MPI_Finalize();
    return 0;
}
