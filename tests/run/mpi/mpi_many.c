/* mpi_many.c - tests many small collectives: they reuse their tags, so that no
 * table fills up and the epoch of the run does not change.
 *
 *   many [COUNT]   all-reduces by one thread, then by two threads on two
 *                  communicators, then more nonblocking ones than there are
 *                  slots, completed latest first */
#include "conform.h"

#include <pthread.h>

static int rank, size;

struct work {
    MPI_Comm comm;
    int count, wrong;
};

static void *reduce(void *context)
{
    struct work *work = context;
    for (int i = 0; i < work->count; i++) {
        int mine = rank + i, sum = -1;
        int code = MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, work->comm);
        work->wrong +=
            code != MPI_SUCCESS || sum != size * i + size * (size - 1) / 2;
    }
    return NULL;
}

static void threads(int count)
{
    struct work work[2] = {{.count = count}, {.count = count}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &work[i].comm));
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, reduce, &work[i]) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        CHECK(work[i].wrong == 0);
        OK(MPI_Comm_free(&work[i].comm));
    }
}

/* With blocking ones in between; rank 0 starts late. */
static void nonblocking(void)
{
    enum { COUNT = 200 };
    static int in[COUNT], out[COUNT];
    static MPI_Request requests[COUNT];
    int one = 1, sum = 0, wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        in[i] = i + rank;
        OK(MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                          &requests[i]));
        if (i % 50 == 0)
            OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
    for (int i = COUNT; i-- > 0;) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++) wrong += out[i] != i + size - 1;
    CHECK(wrong == 0 && sum == size);
}

int main(int argc, char **argv)
{
    int level;
    struct work work = {.count = argc > 1 ? atoi(argv[1]) : 2000};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    work.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double start = MPI_Wtime();
    reduce(&work);
    double each = (MPI_Wtime() - start) / work.count;
    CHECK(work.wrong == 0);
    if (rank == 0) printf("%.2f us for an all-reduce\n", each * 1e6);
    if (level == MPI_THREAD_MULTIPLE) threads(work.count / 20);
    nonblocking();
    return conform_end();
}
