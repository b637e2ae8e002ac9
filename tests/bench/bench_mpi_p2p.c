/* bench_mpi_p2p.c - point-to-point of any MPI library: time and rate by size.
 *
 *   mpicc -O2 mpi_p2p.c && mpiexec -n 2 ./a.out pp 0 8 65536 mr 8 mo 8
 *
 * pp: half of a round trip between ranks 0 and 1, median and minimum in
 *     microseconds; the other ranks wait in a barrier.
 * mr: windows of 64 Isend from the lower half of the ranks to the upper half,
 *     answered by one short message, as osu_mbw_mr: messages per second and
 *     MB/s of all pairs, of the median window.
 * mo: windows of 64 from every other rank to rank 0, which receives from
 *     anybody.
 * SAMPLE_SECONDS as in samples.h. Contents are checked at the ends of a case.
 * The same binary, built with MPICH, runs under mpiexec and pccl-master. */
#include "samples.h"

#include <mpi.h>

enum { WINDOW = 64, TAG = 7, RANKS_MAX = 64 };

static int rank, ranks;
static double times[SAMPLES_MAX];

static char *memory(size_t size, int value)
{
    char *bytes = malloc(size + 1);
    if (!bytes) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(bytes, value, size + 1);
    return bytes;
}

static void check(const char *bytes, size_t size, int value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (char)value) MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Rank 0 knows how long one of them takes; all do as many. */
static int agree(double each)
{
    int count = sample_count(each);
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return count;
}

/* ---------------------------------------------------------------- ping-pong */

static void exchange(const char *out, char *in, int size)
{
    if (rank == 0) MPI_Send(out, size, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(in, size, MPI_CHAR, !rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
}

static void ping_pong(const struct sample_case *c)
{
    char *out = memory(c->size, rank + 1), *in = memory(c->size, 0);
    double start = sample_now();
    for (int i = 0; i < SAMPLES_WARM && rank < 2; i++)
        exchange(out, in, (int)c->size);
    int count = agree((sample_now() - start) / SAMPLES_WARM);
    for (int i = 0; i < count && rank < 2; i++) {
        start = sample_now();
        exchange(out, in, (int)c->size);
        times[i] = (sample_now() - start) / 2;
    }
    if (rank < 2) check(in, c->size, !rank + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("pp ");
        sample_print(c, times, count);
    }
    free(out);
    free(in);
}

/* ------------------------------------------------------------------ windows */

static MPI_Request requests[WINDOW * RANKS_MAX];
static MPI_Status statuses[WINDOW * RANKS_MAX];

static void window_send(const char *out, int size, int to)
{
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(out, size, MPI_CHAR, to, TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, statuses);
    MPI_Recv(NULL, 0, MPI_CHAR, to, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void window_receive(char *in, int size, int from, int senders)
{
    int count = WINDOW * senders;
    for (int i = 0; i < count; i++)
        MPI_Irecv(in + (size_t)i * (size_t)size, size, MPI_CHAR,
                  senders > 1 ? MPI_ANY_SOURCE : from, TAG, MPI_COMM_WORLD,
                  &requests[i]);
    MPI_Waitall(count, requests, statuses);
    for (int i = 0; i < senders; i++)
        MPI_Send(NULL, 0, MPI_CHAR, from + i, TAG + 1, MPI_COMM_WORLD);
}

static void window(int size, const char *out, char *in, int to_one)
{
    int half = ranks / 2;
    if (to_one && rank == 0)
        window_receive(in, size, 1, ranks - 1);
    else if (to_one)
        window_send(out, size, 0);
    else if (rank < half)
        window_send(out, size, rank + half);
    else if (rank < 2 * half)
        window_receive(in, size, rank - half, 1);
}

static void windows(const struct sample_case *c, int to_one)
{
    int senders = to_one ? ranks - 1 : 1;
    size_t room = c->size * WINDOW * (size_t)senders;
    char *out = memory(c->size, 1), *in = memory(room, 0);
    double start = sample_now();
    for (int i = 0; i < SAMPLES_WARM; i++)
        window((int)c->size, out, in, to_one);
    int count = agree((sample_now() - start) / SAMPLES_WARM);
    for (int i = 0; i < count; i++) {
        start = sample_now();
        window((int)c->size, out, in, to_one);
        times[i] = sample_now() - start;
    }
    int receives = to_one ? rank == 0 : rank >= ranks / 2;
    if (receives && rank < ranks / 2 * 2) check(in, room, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        qsort(times, (size_t)count, sizeof *times, sample_by_value);
        double messages = WINDOW * (double)(to_one ? ranks - 1 : ranks / 2) /
                          times[count / 2]; /* a microsecond */
        printf("%s %s %.0f %.1f\n", to_one ? "mo" : "mr", c->name,
               messages * 1e6, messages * (double)c->size);
        fflush(stdout);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    const char *kind = "pp";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2 || ranks > RANKS_MAX) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int i = 1; i < argc; i++) {
        struct sample_case c;
        if (argv[i][0] == 'p' || argv[i][0] == 'm') {
            kind = argv[i];
            continue;
        }
        if (!sample_parse(argv[i], &c)) MPI_Abort(MPI_COMM_WORLD, 3);
        if (strcmp(kind, "pp") == 0)
            ping_pong(&c);
        else
            windows(&c, strcmp(kind, "mo") == 0);
    }
    MPI_Finalize();
    return 0;
}
