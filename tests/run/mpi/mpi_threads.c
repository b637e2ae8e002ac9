/* mpi_threads.c - tests MPI_THREAD_MULTIPLE: each thread sends to, receives
 * from and reduces with the same thread of the other ranks, all at once. */
#include "conform.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 60, LONG = 20000 };

static int rank, size;
static MPI_Comm comms[THREADS];
static int failures[THREADS]; /* of each thread; added up at the end */

static void check(int number, int good)
{
    failures[number] += !good;
}

/* Small and large messages, in order within the thread's tag. */
static void messages(int number, int round)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size, in = -1;
    int count = round % 10 == 0 ? LONG : 1, out = rank * 1000 + round;
    int *big = calloc(LONG, sizeof *big), *got = calloc(LONG, sizeof *got);
    MPI_Request requests[2];
    MPI_Status status;
    big[count - 1] = out;
    check(number, MPI_Irecv(got, count, MPI_INT, from, number, MPI_COMM_WORLD,
                            &requests[0]) == MPI_SUCCESS);
    check(number, MPI_Isend(big, count, MPI_INT, to, number, MPI_COMM_WORLD,
                            &requests[1]) == MPI_SUCCESS);
    check(number, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    check(number, got[count - 1] == from * 1000 + round);
    check(number, MPI_Sendrecv(&out, 1, MPI_INT, to, 100 + number, &in, 1,
                               MPI_INT, from, 100 + number, MPI_COMM_WORLD,
                               &status) == MPI_SUCCESS);
    check(number, in == from * 1000 + round && status.MPI_SOURCE == from);
    free(big);
    free(got);
}

static void *run(void *argument)
{
    int number = (int)(long)argument;
    for (int round = 0; round < ROUNDS; round++) {
        int sum = -1, mine = rank + number;
        MPI_Request request;
        messages(number, round);
        check(number, MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM,
                                    comms[number]) == MPI_SUCCESS);
        check(number, sum == size * (size - 1) / 2 + size * number);
        check(number, MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_MAX,
                                     comms[number], &request) == MPI_SUCCESS);
        check(number, MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        check(number, sum == size - 1 + number);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(failures[i] == 0);
        OK(MPI_Comm_free(&comms[i]));
    }
    return conform_end();
}
