/* mpi_outside.c - a call before MPI_Init, or after MPI_Finalize, ends the job
 * with a sentence that says so:
 *
 *   outside before|after */
#include "conform.h"

int main(int argc, char **argv)
{
    int one = 1, sum = 0;
    if (argc > 1 && strcmp(argv[1], "after") == 0) {
        MPI_Init(&argc, &argv);
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        MPI_Finalize();
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(!"it has ended");
    return 0;
}
