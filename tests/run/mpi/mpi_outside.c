/* mpi_outside.c - a call before MPI_Init, or after MPI_Finalize, or an error of
 * a session whose handler is MPI_ERRORS_ARE_FATAL, ends the job with a sentence
 * that says so:
 *
 *   outside before|after|session */
#include "conform.h"

int main(int argc, char **argv)
{
    int one = 1, sum = 0;
    if (argc > 1 && strcmp(argv[1], "after") == 0) {
        MPI_Init(&argc, &argv);
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        MPI_Finalize();
    }
    if (argc > 1 && strcmp(argv[1], "session") == 0) {
        MPI_Session session;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
        MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(!"it has ended");
    return 0;
}
