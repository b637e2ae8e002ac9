/* mpi_flow.c - tests messages without a receive, and messages under polling
 * alone.
 *
 *   flow held     a sender is held back before it fills the receiver's memory
 *   flow polled   sends and receives end by MPI_Test, MPI_Iprobe and the like
 *                 alone */
#include "conform.h"

#include <sys/resource.h>

enum {
    PIECE = 8 * 1024,
    PIECES = 6 * 1024,          /* 48 MiB in all */
    UNMATCHED_MAX = 8 << 20,    /* bytes of unmatched messages at a receiver */
    GROWTH_MAX_KIB = 24 * 1024, /* growth of its memory in all */
    TURNS = 100000,
    TAG_DATA = 1,
    TAG_END,
    TAG_PING
};

static int rank, size;

static long memory_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* All messages arrive, in order. */
static void receive_all(char *piece)
{
    for (int i = 0; i < PIECES; i++) {
        OK(MPI_Recv(piece, PIECE, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
        if (i % 1000 == 0) CHECK(piece[0] == 'x' && piece[PIECE - 1] == 'y');
    }
}

/* A blocking sender stops, although the receiver makes progress all the
 * time. */
static void held_blocking(char *piece)
{
    int flag = 0;
    if (rank == 0) {
        for (int i = 0; i < PIECES; i++)
            OK(MPI_Send(piece, PIECE, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_END, MPI_COMM_WORLD));
    } else if (rank == 1) {
        long before = memory_kib();
        OK(MPI_Probe(0, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < TURNS; i++) {
            OK(MPI_Iprobe(0, TAG_END, MPI_COMM_WORLD, &flag,
                          MPI_STATUS_IGNORE));
            CHECK(!flag);
            if (flag) break;
        }
        CHECK(memory_kib() - before < GROWTH_MAX_KIB);
        receive_all(piece);
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_END, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    }
}

/* Of many started sends only a few complete before they are received; a later
 * message whose receive comes first overtakes them. */
static void held_started(char *piece, MPI_Comm beside)
{
    static MPI_Request requests[PIECES];
    static int indices[PIECES];
    long before = memory_kib(), done = 0;
    int n;
    if (rank == 0)
        for (int i = 0; i < PIECES; i++)
            OK(MPI_Isend(piece, PIECE, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD,
                         &requests[i]));
    for (int i = 0; i < 500 && rank < 2; i++)
        OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - rank, TAG_PING, NULL, 0,
                        MPI_BYTE, 1 - rank, TAG_PING, beside,
                        MPI_STATUS_IGNORE));
    if (rank == 0) {
        do {
            OK(MPI_Testsome(PIECES, requests, &n, indices,
                            MPI_STATUSES_IGNORE));
            done += n > 0 ? n : 0;
        } while (n > 0);
        CHECK(done > 0 && done * PIECE < UNMATCHED_MAX);
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_PING, beside));
        OK(MPI_Waitall(PIECES, requests, MPI_STATUSES_IGNORE));
    } else if (rank == 1) {
        CHECK(memory_kib() - before < GROWTH_MAX_KIB);
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_PING, beside, MPI_STATUS_IGNORE));
        receive_all(piece);
    }
}

static void held(void)
{
    MPI_Comm beside;
    char *piece = malloc(PIECE);
    memset(piece, 'x', PIECE);
    piece[PIECE - 1] = 'y';
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &beside));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    held_blocking(piece);
    held_started(piece, beside);
    OK(MPI_Comm_free(&beside));
    free(piece);
}

/* Waits for a request by one of the calls that never block. */
static void poll(MPI_Request *request, int how)
{
    int flag = 0, index;
    while (!flag) {
        if (how == 0)
            OK(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
        else if (how == 1)
            OK(MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE));
        else if (how == 2)
            OK(MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE));
        else
            OK(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
    }
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

/* Around the ring; the send is tested only after the receive has completed. */
static void polled_ring(int bytes, int how)
{
    MPI_Request requests[2];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *out = malloc((size_t)bytes), *in = calloc(1, (size_t)bytes);
    memset(out, 'a' + rank, (size_t)bytes);
    OK(MPI_Isend(out, bytes, MPI_BYTE, next, TAG_DATA, MPI_COMM_WORLD,
                 &requests[0]));
    OK(MPI_Irecv(in, bytes, MPI_BYTE, before, TAG_DATA, MPI_COMM_WORLD,
                 &requests[1]));
    poll(&requests[1], how);
    CHECK(in[0] == 'a' + before && in[bytes - 1] == 'a' + before);
    poll(&requests[0], how);
    free(out);
    free(in);
}

/* A large message goes from a sender that only probes for the answer to a
 * receiver that only probes for the next message. */
static void polled_probe(int bytes)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0, peer = rank ^ 1;
    if (peer >= size) return;
    char *data = calloc(1, (size_t)bytes);
    if (rank % 2 == 0) {
        memset(data, 'q', (size_t)bytes);
        OK(MPI_Isend(data, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD,
                     &request));
        while (!flag)
            OK(MPI_Iprobe(peer, TAG_PING, MPI_COMM_WORLD, &flag, &status));
        OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_PING, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
        poll(&request, 0);
        OK(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_END, MPI_COMM_WORLD));
    } else {
        OK(MPI_Irecv(data, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD,
                     &request));
        while (!flag) {
            int other;
            OK(MPI_Iprobe(peer, TAG_END, MPI_COMM_WORLD, &other, &status));
            CHECK(!other);
            OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
        }
        OK(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_PING, MPI_COMM_WORLD));
        flag = 0;
        while (!flag)
            OK(MPI_Iprobe(peer, TAG_END, MPI_COMM_WORLD, &flag, &status));
        OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_END, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(data[0] == 'q' && data[bytes - 1] == 'q');
    }
    free(data);
}

static void polled(void)
{
    static const int bytes[] = {1, 8 * 1024, 40 * 1024, 3 << 20};
    for (int i = 0; i < 4; i++) {
        for (int how = 0; how < 4; how++) polled_ring(bytes[i], how);
        polled_probe(bytes[i]);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "held") == 0)
        held();
    else
        polled();
    return conform_end();
}
