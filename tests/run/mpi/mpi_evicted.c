/* mpi_evicted.c - tests that a rank which the others had to evict says why: the
 * last rank stops itself, and the launcher continues it when it was evicted.
 * Run with --elastic and a short deadline. With an argument it stands still for
 * ever, and the job ends all the same. */
#include "conform.h"

#include <signal.h>

static int rank, size;

/* The calls of the evicted rank fail, and their texts say why. */
static void expect_reason(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(code != MPI_SUCCESS);
    MPI_Error_string(code, text, &length);
    int good = strstr(text, "evicted") && strstr(text, "stopped");
    if (!good) fprintf(stderr, "%s says: %s\n", what, text);
    CHECK(good);
}

int main(int argc, char **argv)
{
    int value = 1, sum;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1) {
        OK(MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request));
        do raise(SIGSTOP);
        while (argc > 1);
        expect_reason(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        expect_reason(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE),
                      "MPI_Recv");
        expect_reason(MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD),
                      "MPI_Send");
        expect_reason(
            MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
            "MPI_Allreduce");
    } else {
        /* they have named no ranks */
        int code =
            MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(code == MPI_SUCCESS && sum == size - 1);
    }
    MPI_Finalize();
    if (conform_failures == 0) printf("said so\n");
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
