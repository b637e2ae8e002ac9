/* bench_mpi_allreduce.c - median time of MPI_Allreduce by size, any MPI
 * library.
 *
 *   mpicc -O2 mpi_allreduce.c && mpiexec -n 2 ./a.out 8 65536x64 1048576i
 *
 * Cases as in samples.h; several at once are MPI_Iallreduce. Floats, SUM, every
 * last result checked; prints each case with the median and the minimum of
 * rank 0 in microseconds. The same binary, built with MPICH, runs under
 * mpiexec and under pccl-master side by side. */
#include "samples.h"

#include <mpi.h>

static double once(const struct sample_case *c, float *in, float *out)
{
    static MPI_Request requests[256];
    static MPI_Status statuses[256];
    size_t count = c->size / sizeof(float);
    double start = sample_now();
    if (c->at_once == 1) {
        MPI_Allreduce(c->in_place ? MPI_IN_PLACE : in, out, (int)count,
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        return sample_now() - start;
    }
    for (int i = 0; i < c->at_once; i++) {
        float *from = in + (size_t)i * count;
        float *to = out + (size_t)i * count;
        MPI_Iallreduce(c->in_place ? MPI_IN_PLACE : from, to, (int)count,
                       MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(c->at_once, requests, statuses);
    return sample_now() - start;
}

static void measure(const struct sample_case *c, int rank, int ranks)
{
    static double times[SAMPLES_MAX];
    size_t total = c->size / sizeof(float) * (size_t)c->at_once;
    float *in = malloc((total + 1) * sizeof *in);
    float *out = malloc((total + 1) * sizeof *out);
    if (!in || !out) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < total; i++) in[i] = (float)(rank + 1);
    for (size_t i = 0; i < total; i++) out[i] = 0;
    double warm = sample_now();
    for (int i = 0; i < sample_warm(c); i++) once(c, in, out);
    int count = sample_count_of(c, (sample_now() - warm) / sample_warm(c));
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        if (c->in_place) {
            /* The last result is no input; nobody pays for others' copying. */
            memcpy(out, in, total * sizeof *in);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        times[i] = once(c, in, out);
    }
    float want = (float)(ranks * (ranks + 1) / 2);
    for (size_t i = 0; i < total; i++) {
        if (out[i] != want) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0) sample_print(c, times, count);
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
    for (int i = 1; i < argc; i++) {
        struct sample_case c;
        if (!sample_parse(argv[i], &c)) MPI_Abort(MPI_COMM_WORLD, 3);
        measure(&c, rank, ranks);
    }
    MPI_Finalize();
    return 0;
}
