/* mpi_p2p_loss.c - tests point-to-point with a rank that dies, with
 * PCCL_ON_FAILURE=return: no rank hangs, messages sent before the death arrive,
 * and messages without a receive delay neither MPI_Finalize nor other ranks. */
#include "conform.h"

#include <signal.h>

enum { LARGE = 300000 };

int main(int argc, char **argv)
{
    int rank, size, value = 7, flag = 0;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *data = calloc(LARGE, sizeof *data);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int victim = size - 1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == victim) {
        for (int to = 0; to < victim; to++) {
            OK(MPI_Ssend(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
            OK(MPI_Send(&value, 1, MPI_INT, to, 2, MPI_COMM_WORLD));
        }
        raise(SIGKILL);
    }
    OK(MPI_Recv(&value, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, &status));
    /* The large message has no receive, and the receive no message. */
    int sent = conform_class(MPI_Isend(data, LARGE, MPI_INT, victim, 3,
                                       MPI_COMM_WORLD, &requests[0]));
    CHECK(sent == MPI_SUCCESS || sent == MPIX_ERR_PROC_FAILED);
    OK(MPI_Irecv(data, 1, MPI_INT, victim, 9, MPI_COMM_WORLD, &requests[1]));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Wait(&requests[1], &status));
    if (sent == MPI_SUCCESS)
        FAILS(MPIX_ERR_PROC_FAILED, MPI_Wait(&requests[0], &status));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 9,
                                         MPI_COMM_WORLD, &status));
    FAILS(MPIX_ERR_PROC_FAILED,
          MPI_Send(&value, 1, MPI_INT, victim, 1, MPI_COMM_WORLD));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Probe(victim, 9, MPI_COMM_WORLD, &status));
    /* sent before the death */
    OK(MPI_Iprobe(victim, 2, MPI_COMM_WORLD, &flag, &status));
    CHECK(flag);
    OK(MPI_Recv(&value, 1, MPI_INT, victim, 2, MPI_COMM_WORLD, &status));
    CHECK(value == 7);
    /* the others go on */
    int to = (rank + 1) % victim, from = (rank + victim - 1) % victim, in = -1;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, 5, &in, 1, MPI_INT, from, 5,
                    MPI_COMM_WORLD, &status));
    CHECK(in == from);
    OK(MPI_Send(&rank, 1, MPI_INT, to, 6,
                MPI_COMM_WORLD)); /* without a receive */
    free(data);
    MPI_Finalize();
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
