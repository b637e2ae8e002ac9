/* mpi_partitioned.c - tests partitioned messages: parts ready in any order and
 * from several threads, several requests with the same tag, and restarts. */
#include "conform.h"

#include <pthread.h>

enum { PARTS = 6, COUNT = 4, LARGE = 20000, ROUNDS = 3 };

static int rank, size, next, before;

static int item(int from, int round, int i)
{
    return from * 1000000 + round * 100000 + i;
}

/* Makes the parts ready in an order that depends on the round. */
static void give(MPI_Request request, int round)
{
    int list[] = {5, 0, 2};
    switch (round % 3) {
    case 0:
        for (int p = PARTS - 1; p >= 0; p--) OK(MPI_Pready(p, request));
        break;
    case 1:
        OK(MPI_Pready_range(3, 4, request));
        OK(MPI_Pready_list(3, list, request));
        OK(MPI_Pready(1, request));
        break;
    case 2:
        OK(MPI_Pready_range(0, PARTS - 1, request));
        break;
    }
}

static void test_ring(int count, int in_parts)
{
    int total = PARTS * count, flag;
    int *out = calloc((size_t)total, sizeof *out);
    int *in = malloc(sizeof *in * (size_t)total);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Psend_init(out, PARTS, count, MPI_INT, next, 3, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, in_parts, total / in_parts, MPI_INT, before, 3,
                      MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < total; i++) out[i] = item(rank, round, i);
        memset(in, -1, sizeof *in * (size_t)total);
        OK(MPI_Startall(2, requests));
        give(requests[0], round);
        if (round == 1) {
            for (int p = 0; p < in_parts; p++)
                for (flag = 0; !flag;) OK(MPI_Parrived(requests[1], p, &flag));
            CHECK(in[total - 1] == item(before, round, total - 1));
        }
        OK(MPI_Waitall(2, requests, statuses));
        for (int i = 0; i < total; i++)
            if (in[i] != item(before, round, i)) {
                CHECK(in[i] == item(before, round, i));
                break;
            }
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    free(out);
    free(in);
}

/* The n-th send matches the n-th receive, whichever starts first, and no
 * ordinary message with the same tag. */
static void test_order(void)
{
    int out[2] = {item(rank, 1, 0), item(rank, 2, 0)}, in[2] = {-1, -1};
    int plain = rank, got = -1;
    MPI_Request sends[2], recvs[2], request;
    for (int k = 0; k < 2; k++) {
        OK(MPI_Psend_init(&out[k], 1, 1, MPI_INT, next, 4, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &sends[k]));
        OK(MPI_Precv_init(&in[k], 1, 1, MPI_INT, before, 4, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &recvs[k]));
    }
    OK(MPI_Irecv(&got, 1, MPI_INT, before, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&sends[1]));
    OK(MPI_Pready(0, sends[1]));
    OK(MPI_Start(&sends[0]));
    OK(MPI_Pready(0, sends[0]));
    OK(MPI_Send(&plain, 1, MPI_INT, next, 4, MPI_COMM_WORLD));
    OK(MPI_Startall(2, recvs));
    OK(MPI_Waitall(2, recvs, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in[0] == item(before, 1, 0) && in[1] == item(before, 2, 0));
    CHECK(got == before);
    for (int k = 0; k < 2; k++) {
        OK(MPI_Request_free(&sends[k]));
        OK(MPI_Request_free(&recvs[k]));
    }
}

struct worker {
    pthread_t thread;
    MPI_Request request;
    int part, *out;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < COUNT; i++)
        worker->out[worker->part * COUNT + i] =
            item(rank, 0, worker->part * COUNT + i);
    OK(MPI_Pready(worker->part, worker->request));
    return NULL;
}

static void test_threads(void)
{
    int out[PARTS * COUNT] = {0}, in[PARTS * COUNT];
    struct worker workers[PARTS];
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, PARTS, COUNT, MPI_INT, next, 5, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, PARTS, COUNT, MPI_INT, before, 5, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    for (int p = 0; p < PARTS; p++) {
        workers[p].request = requests[0];
        workers[p].part = p;
        workers[p].out = out;
        CHECK(pthread_create(&workers[p].thread, NULL, work, &workers[p]) == 0);
    }
    for (int p = 0; p < PARTS; p++) pthread_join(workers[p].thread, NULL);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < PARTS * COUNT; i++) CHECK(in[i] == item(before, 0, i));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

static void test_null(void)
{
    int value = 5, flag = 0;
    MPI_Request requests[2];
    OK(MPI_Psend_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    OK(MPI_Pready(0, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Parrived(requests[1], 0, &flag));
    CHECK(flag && value == 5);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    CHECK(MPI_Psend_init(&value, 1, 1, MPI_INT, size, 0, MPI_COMM_WORLD,
                         MPI_INFO_NULL, &requests[0]) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    test_ring(COUNT, PARTS);
    test_ring(COUNT, 1);
    test_ring(LARGE, PARTS / 2);
    test_order();
    if (level == MPI_THREAD_MULTIPLE) test_threads();
    /* MPICH 4.0.2 crashes there */
    if (!conform_is_mpich()) test_null();
    return conform_end();
}
