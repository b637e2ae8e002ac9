/* bench_mpi_ranks.c - times of collectives of many ranks, any MPI library.
 *
 *   mpicc -O2 bench_mpi_ranks.c && mpiexec -n 64 ./a.out 8 65536
 *
 * Sizes are the bytes of a vector or block. Twenty calls in a row, after two;
 * prints, for each collective and size, the time of one call of the slowest
 * rank in microseconds, the median of seven rounds. The last results are
 * checked. With SAMPLE_DIRTY=1 the buffers are written before each call, which
 * is not timed. SAMPLE_ONLY=NAME measures that collective alone. The same
 * binary runs under any library with this one's binary interface. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 20, ROUNDS = 7, MEMORY = 64 << 20 };

static int rank, ranks, dirty;
static unsigned char *in, *out;

static void barrier(int size)
{
    (void)size;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(int size)
{
    MPI_Allreduce(in, out, size, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
}

static void reduce(int size)
{
    MPI_Reduce(in, out, size, MPI_UNSIGNED_CHAR, MPI_MAX, 0, MPI_COMM_WORLD);
}

static void bcast(int size)
{
    if (rank == 0) memcpy(out, in, (size_t)size);
    MPI_Bcast(out, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allgather(int size)
{
    MPI_Allgather(in, size, MPI_BYTE, out, size, MPI_BYTE, MPI_COMM_WORLD);
}

static void gather(int size)
{
    MPI_Gather(in, size, MPI_BYTE, out, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter(int size)
{
    MPI_Scatter(in, size, MPI_BYTE, out, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce_scatter(int size)
{
    MPI_Reduce_scatter_block(in, out, size, MPI_UNSIGNED_CHAR, MPI_MAX,
                             MPI_COMM_WORLD);
}

static void scan(int size)
{
    MPI_Scan(in, out, size, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
}

static void alltoall(int size)
{
    MPI_Alltoall(in, size, MPI_BYTE, out, size, MPI_BYTE, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(int size);
    int sends, receives; /* whether there is a block for each rank */
    int at_root;         /* the result is rank 0's alone */
    int of; /* the block of: -1 all, -2 the rank, -3 up to here, else a rank */
} all[] = {{"barrier", barrier, 0, 0, 0, -1},
           {"allreduce", allreduce, 0, 0, 0, -1},
           {"reduce", reduce, 0, 0, 1, -1},
           {"bcast", bcast, 0, 0, 0, 0},
           {"allgather", allgather, 0, 1, 0, -2},
           {"gather", gather, 0, 1, 1, -2},
           {"scatter", scatter, 1, 0, 0, 0},
           {"alltoall", alltoall, 1, 1, 0, -2},
           {"redscat", reduce_scatter, 1, 0, 0, -1},
           {"scan", scan, 0, 0, 0, -3}};

static unsigned char value(int from, int to)
{
    return (unsigned char)(from % 64 + 64 * (to % 3));
}

static void fill(int sends, int size)
{
    for (int to = 0; to < (sends ? ranks : 1); to++)
        memset(in + (size_t)to * (size_t)size, value(rank, to), (size_t)size);
    memset(out, 0, (size_t)size * (size_t)ranks);
}

static void check(int i, int size)
{
    int blocks = all[i].receives ? ranks : 1;
    if (all[i].run == barrier || (all[i].at_root && rank != 0)) return;
    for (int b = 0; b < blocks; b++) {
        int to = all[i].sends ? rank : 0;
        int of = all[i].of, end = of == -1 ? ranks : of == -3 ? rank + 1 : 0;
        unsigned char want = end > 0 ? 0 : value(of == -2 ? b : 0, to);
        for (int r = 0; r < end; r++)
            if (value(r, to) > want) want = value(r, to);
        for (int k = 0; k < size; k++)
            if (out[(size_t)b * (size_t)size + (size_t)k] != want)
                MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double run_clean(int i, int size)
{
    double start = MPI_Wtime();
    for (int k = 0; k < CALLS; k++) all[i].run(size);
    return MPI_Wtime() - start;
}

static double run_dirty(int i, int size)
{
    double took = 0;
    for (int k = 0; k < CALLS; k++) {
        fill(all[i].sends, size);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        all[i].run(size);
        took += MPI_Wtime() - start;
    }
    return took;
}

static void measure(int i, int size)
{
    double times[ROUNDS];
    fill(all[i].sends, size);
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < 2; k++) all[i].run(size);
        MPI_Barrier(MPI_COMM_WORLD);
        double took = (dirty ? run_dirty(i, size) : run_clean(i, size)) / CALLS;
        MPI_Allreduce(&took, &times[round], 1, MPI_DOUBLE, MPI_MAX,
                      MPI_COMM_WORLD);
    }
    check(i, size);
    qsort(times, ROUNDS, sizeof *times, ascending);
    if (rank == 0)
        printf("%-10s %8d %10.2f\n", all[i].name, size,
               1e6 * times[ROUNDS / 2]);
    if (rank == 0) fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *text = getenv("SAMPLE_DIRTY");
    dirty = text && *text == '1';
    const char *only = getenv("SAMPLE_ONLY");
    in = malloc(MEMORY);
    out = malloc(MEMORY);
    if (!in || !out) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int a = 1; a < argc; a++) {
        int size = atoi(argv[a]);
        if (size < 0 || size > MEMORY / ranks) MPI_Abort(MPI_COMM_WORLD, 1);
        for (int i = 0; i < (int)(sizeof all / sizeof all[0]); i++)
            if ((all[i].run != barrier || a == 1) &&
                (!only || strcmp(only, all[i].name) == 0))
                measure(i, size);
    }
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
