/* mpi_backlog.c - tests very many messages and requests at once, in the worst
 * order for a linear search, which would take minutes. */
#include "conform.h"

#include <sys/resource.h>

enum {
    COUNT = 20000, /* small messages */
    LARGE_COUNT = 3000,
    LARGE = 40 * 1024, /* uses rendezvous */
    FLOOD = 20000,
    GROWTH_MAX_KIB = 4 * 1024,
    TAG_GO = 50000,
    TAG_LAST
};

static int rank, size, peer;
static MPI_Request requests[COUNT];
static MPI_Status statuses[COUNT];
static int indices[COUNT], values[COUNT], seen[COUNT];
static char *bytes;

static int is_sender(void)
{
    return rank % 2 == 0;
}

static void fill(int from)
{
    for (int i = 0; i < COUNT; i++) {
        values[i] = from ? from + i : -1;
        seen[i] = 0;
    }
}

/* All messages arrive before any receive; tags in descending order. */
static void unexpected(int any_source, int any_tag)
{
    if (is_sender()) {
        fill(7);
        for (int i = 0; i < COUNT; i++)
            OK(MPI_Isend(&values[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD,
                         &requests[i]));
        OK(MPI_Send(NULL, 0, MPI_INT, peer, TAG_GO, MPI_COMM_WORLD));
        OK(MPI_Waitall(COUNT, requests, statuses));
        return;
    }
    fill(0);
    OK(MPI_Recv(NULL, 0, MPI_INT, peer, TAG_GO, MPI_COMM_WORLD, statuses));
    for (int i = 0; i < COUNT; i++) {
        int at = any_tag ? i : COUNT - 1 - i;
        OK(MPI_Recv(&values[at], 1, MPI_INT, any_source ? MPI_ANY_SOURCE : peer,
                    any_tag ? MPI_ANY_TAG : at, MPI_COMM_WORLD, statuses));
        if (statuses[0].MPI_TAG != at || values[at] != at + 7) {
            CHECK(!"the wrong message");
            return;
        }
    }
}

/* All receives are posted before any message; `how` completes them. */
static void posted(int any_source, const char *how)
{
    int left = COUNT;
    if (is_sender()) {
        fill(9);
        OK(MPI_Recv(NULL, 0, MPI_INT, peer, TAG_GO, MPI_COMM_WORLD, statuses));
        for (int i = COUNT - 1; i >= 0; i--)
            OK(MPI_Send(&values[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD));
        return;
    }
    fill(0);
    for (int i = 0; i < COUNT; i++)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, any_source ? MPI_ANY_SOURCE : peer,
                     i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Send(NULL, 0, MPI_INT, peer, TAG_GO, MPI_COMM_WORLD));
    if (strcmp(how, "all") == 0) OK(MPI_Waitall(COUNT, requests, statuses));
    while (strcmp(how, "some") == 0 && left > 0) {
        int n;
        OK(MPI_Waitsome(COUNT, requests, &n, indices, statuses));
        for (int i = 0; i < n; i++) CHECK(seen[indices[i]]++ == 0);
        left -= n;
    }
    for (int i = 0; i < COUNT; i++) CHECK(values[i] == i + 9);
}

/* Rendezvous messages, received in the order of sending or in reverse. Each
 * receive has its own buffer. */
static void large(int back)
{
    if (is_sender()) {
        for (int i = 0; i < LARGE_COUNT; i++)
            OK(MPI_Isend(bytes, LARGE, MPI_BYTE, peer, i, MPI_COMM_WORLD,
                         &requests[i]));
        OK(MPI_Waitall(LARGE_COUNT, requests, statuses));
        return;
    }
    char *all = calloc(LARGE_COUNT, LARGE);
    for (int i = 0; i < LARGE_COUNT; i++)
        OK(MPI_Irecv(all + (size_t)i * LARGE, LARGE, MPI_BYTE, peer,
                     back ? LARGE_COUNT - 1 - i : i, MPI_COMM_WORLD,
                     &requests[i]));
    OK(MPI_Waitall(LARGE_COUNT, requests, statuses));
    for (int i = 0; i < LARGE_COUNT; i++) {
        CHECK(statuses[i].MPI_TAG == (back ? LARGE_COUNT - 1 - i : i));
        CHECK(all[(size_t)i * LARGE + LARGE - 1] == 'y');
    }
    free(all);
}

static long memory_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* The receiver bounds the memory for unmatched announcements, although it makes
 * progress all the time. Nevertheless the last message can be probed and
 * received first. */
static void flood(MPI_Comm beside, int probe)
{
    MPI_Request barrier;
    int flag = 0;
    if (is_sender()) {
        for (int i = 0; i < FLOOD; i++)
            OK(MPI_Isend(bytes, LARGE, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                         &requests[i]));
        OK(MPI_Ibarrier(beside, &barrier));
        OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
        OK(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_LAST, MPI_COMM_WORLD));
        OK(MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE));
        return;
    }
    long before = memory_kib();
    OK(MPI_Ibarrier(beside, &barrier));
    while (!flag) OK(MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE));
    CHECK(memory_kib() - before < GROWTH_MAX_KIB);
    flag = !probe;
    while (!flag)
        OK(MPI_Iprobe(peer, TAG_LAST, MPI_COMM_WORLD, &flag, statuses));
    OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_LAST, MPI_COMM_WORLD, statuses));
    for (int i = 0; i < FLOOD; i++)
        OK(MPI_Recv(bytes, LARGE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, statuses));
}

int main(int argc, char **argv)
{
    MPI_Comm beside;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    peer = rank ^ 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &beside);
    bytes = malloc(LARGE);
    memset(bytes, 'y', LARGE);
    if (peer < size) {
        for (int i = 0; i < 4; i++) unexpected(i & 1, i >> 1);
        for (int i = 0; i < 4; i++) posted(i & 1, i & 2 ? "some" : "all");
        flood(beside, 0); /* measures memory: before tests that need much */
        flood(beside, 1);
        large(0);
        large(1);
    }
    free(bytes);
    MPI_Comm_free(&beside);
    return conform_end();
}
