/* mpi_allreduce.c - median time of MPI_Allreduce by size, any MPI library.
 *
 *   mpicc -O2 mpi_allreduce.c && mpiexec -n 2 ./a.out 8 65536 1048576
 *
 * Floats, SUM, out of place, every result checked. The same binary, built with
 * MPICH, can be run under mpiexec and under pccl-master side by side. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES_MAX = 20000 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(size_t size, int rank, int ranks)
{
    static double times[TIMES_MAX];
    size_t count = size / sizeof(float);
    float *in = malloc(size + sizeof(float));
    float *out = malloc(size + sizeof(float));
    if (!in || !out) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < count; i++) in[i] = (float)(rank + 1);
    int rounds = size > (16u << 20) ? 7 : size > (1u << 20) ? 40 : 2000;
    for (int i = -5; i < rounds; i++) {
        double start = MPI_Wtime();
        MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (i >= 0) times[i] = (MPI_Wtime() - start) * 1e6;
    }
    float want = (float)(ranks * (ranks + 1) / 2);
    for (size_t i = 0; i < count; i++) {
        if (out[i] != want) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    if (rank == 0)
        printf("%12zu %12.2f %12.2f\n", size, times[rounds / 2], times[0]);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int rank;
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) printf("%12s %12s %12s\n", "bytes", "median us", "min us");
    for (int i = 1; i < argc; i++)
        measure((size_t)strtoul(argv[i], NULL, 10), rank, ranks);
    MPI_Finalize();
    return 0;
}
