/* successor_mpi.c FILE - an MPI program whose every sum is checked, until FILE
 * is there (successor.py). Rank 0 prints "step N" now and then, each "end N".
 */
#include <mpi.h>

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1000, EVERY = 10 };

static void fill(int *values, int rank, int step, const char *file)
{
    for (int i = 1; i < COUNT; i++) values[i] = rank * 1000 + step + i;
    values[0] = rank == 0 && access(file, F_OK) == 0;
}

static int is_right(const int *sums, int size, int step)
{
    for (int i = 1; i < COUNT; i++)
        if (sums[i] != size * (size - 1) / 2 * 1000 + size * (step + i))
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    static const struct timespec moment = {.tv_nsec = 1000 * 1000};
    static int values[COUNT], sums[COUNT];
    int rank, size, step = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (; sums[0] == 0; step++) {
        fill(values, rank, step, argc > 1 ? argv[1] : "");
        MPI_Allreduce(values, sums, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (!is_right(sums, size, step)) {
            printf("step %d is wrong\n", step);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
        if (rank == 0 && step % EVERY == 0) {
            printf("step %d\n", step);
            fflush(stdout);
        }
        (void)nanosleep(&moment, NULL);
    }
    printf("end %d\n", step);
    MPI_Finalize();
    return 0;
}
