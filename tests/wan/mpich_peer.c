/* mpich_peer.c - MPI's all-reduce in the nodes of an emulated network, measured
 * as wan-peer does it.
 *
 *   mpich-peer LOADS     as in load.h; rank 0 is peer 1 and prints
 *
 * Ends without MPI_Finalize, which MPICH 4.0 over UCX does not always return
 * from when packets have a long way. run.sh builds and starts it with MPICH's
 * own mpicc and mpiexec. */
#include "load.h"

#include <mpi.h>
#include <unistd.h>

static int rank, size;

static double most(double value)
{
    double result;
    MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return result;
}

static void fail(const char *why)
{
    fprintf(stderr, "mpich-peer %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void mark(const char *format, const char *name)
{
    char line[64];
    const char *fd = getenv("WAN_CONTROL");
    int length = snprintf(line, sizeof line, format, name);
    if (rank != 0) return;
    if (!fd || write(atoi(fd), line, (size_t)length) != length)
        fail("the emulator does not listen");
}

static void turn(const struct load *l, const float *in, float *out)
{
    MPI_Request requests[LOAD_CONCURRENT_MAX];
    MPI_Status statuses[LOAD_CONCURRENT_MAX];
    size_t count = l->bytes / sizeof *in;
    if (l->concurrent == 1) {
        MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < l->concurrent; i++) {
        MPI_Iallreduce(in + (size_t)i * count, out + (size_t)i * count,
                       (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &requests[i]);
    }
    MPI_Waitall(l->concurrent, requests, statuses);
}

static void measure(const struct load *l, float *in, float *out)
{
    double times[LOAD_TIMES_MAX];
    size_t total = l->bytes / sizeof *in * (size_t)l->concurrent;
    for (size_t i = 0; i < total; i++) in[i] = (float)(rank + (int)(i % 17));
    mark("mark begin\n%s", "");
    for (int k = 0; k < l->repeat; k++) {
        memset(out, 0, total * sizeof *out);
        (void)most(0);
        double begin = MPI_Wtime(); /* of the machine, the same for all */
        for (int i = 0; i < l->row; i++) turn(l, in, out);
        double end = most(MPI_Wtime());
        times[k] = end + most(-begin); /* from the first launch */
    }
    for (size_t i = 0; i < total; i++) {
        int want = size * (size - 1) / 2 + size * (int)(i % 17);
        if (out[i] != (float)want) fail("a wrong result");
    }
    mark("mark mpich %s\n", l->name);
    if (rank == 0) load_print(l, "mpich", size, 1, times);
}

int main(int argc, char **argv)
{
    struct load loads[LOADS_MAX];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int count = argc == 2 ? loads_read(loads, argv[1], 1) : 0;
    if (count == 0) fail("usage: mpich-peer LOADS");
    size_t room = loads_room(loads, count);
    float *in = malloc(room), *out = malloc(room);
    if (!in || !out) fail("out of memory");
    for (int i = 0; i < count; i++) measure(&loads[i], in, out);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}
