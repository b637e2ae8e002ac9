/* mpi_samples.c - the functions of mpi_pccl.h that never block return while
 * another thread of the rank waits in a collective and one in a receive: the
 * last rank joins these when the others have called them. */
#include "conform.h"

#include <mpi_pccl.h>
#include <pthread.h>

enum { CALLS = 1000, GO = 1, DATA = 2 };

static int rank, size;

static void *collective(void *unused)
{
    int one = 1, sum = 0;
    (void)unused;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size);
    return NULL;
}

static void *receive(void *unused)
{
    int value = 0;
    (void)unused;
    OK(MPI_Recv(&value, 1, MPI_INT, size - 1, DATA, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE));
    CHECK(value == rank);
    return NULL;
}

static void first(void)
{
    void *(*const calls[])(void *) = {collective, receive};
    pthread_t threads[2];
    PCCL_Progress p;
    int flag = 1, go = 0;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, calls[i], NULL) == 0);
    for (int i = 1; i <= CALLS; i++) {
        OK(PCCL_Report_progress(MPI_COMM_WORLD, 1, (uint64_t)i, 0));
        OK(PCCL_Get_progress(MPI_COMM_WORLD, &p));
        OK(PCCL_Drain_requested(&flag));
        CHECK(flag == 0);
    }
    OK(MPI_Send(&go, 1, MPI_INT, size - 1, GO, MPI_COMM_WORLD));
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void last(void)
{
    int go;
    for (int r = 0; r < size - 1; r++)
        OK(MPI_Recv(&go, 1, MPI_INT, r, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    (void)collective(NULL);
    for (int r = 0; r < size - 1; r++)
        OK(MPI_Send(&r, 1, MPI_INT, r, DATA, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank < size - 1)
        first();
    else
        last();
    return conform_end();
}
