/* mpi_probes.c - tests threads that probe for messages concurrently in one
 * communicator: with matched probes each message goes to exactly one thread,
 * complete and of any size. Needs MPI_THREAD_MULTIPLE. */
#include "conform.h"

#include <pthread.h>

enum { THREADS = 3, EACH = 60, LONG = 20000, TAG = 5 };

static int rank, size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seen[16][EACH]; /* number of receptions of each message, by sender */
static int taken, wrong;

static int length_of(int number)
{
    return number % 7 == 0 ? LONG : 2 + number % 5;
}

/* All threads take messages until the number sent to this rank is reached. */
static void *take(void *argument)
{
    int how = (int)(long)argument, *data = malloc(LONG * sizeof *data);
    for (;;) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status, last;
        int flag = 0, count = -1, over;
        pthread_mutex_lock(&lock);
        over = taken == size * EACH;
        pthread_mutex_unlock(&lock);
        if (over) break;
        if (MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, &message,
                        &status) != MPI_SUCCESS)
            break;
        if (!flag) continue;
        MPI_Get_count(&status, MPI_INT, &count);
        if (how == 1) {
            MPI_Request request;
            MPI_Imrecv(data, count, MPI_INT, &message, &request);
            MPI_Wait(&request, &last);
        } else {
            MPI_Mrecv(data, count, MPI_INT, &message, &last);
        }
        pthread_mutex_lock(&lock);
        int number = data[1];
        if (number < 0 || number >= EACH || data[0] != status.MPI_SOURCE ||
            last.MPI_SOURCE != status.MPI_SOURCE ||
            count != length_of(number) ||
            (count > 2 && data[count - 1] != number))
            wrong++;
        else
            seen[data[0]][number]++;
        taken++;
        pthread_mutex_unlock(&lock);
    }
    free(data);
    return NULL;
}

/* Blocks in a probe for its own tag, while the other threads probe. */
static void *wait_alone(void *unused)
{
    MPI_Status status;
    int value = 0;
    (void)unused;
    MPI_Probe(MPI_ANY_SOURCE, TAG + 1, MPI_COMM_WORLD, &status);
    MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, TAG + 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    pthread_mutex_lock(&lock);
    wrong += value != 99;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS + 1];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take, (void *)i);
    pthread_create(&threads[THREADS], NULL, wait_alone, NULL);
    int *data = calloc(LONG, sizeof *data);
    for (int number = 0; number < EACH; number++) {
        for (int to = 0; to < size; to++) {
            int count = length_of(number);
            data[0] = rank;
            data[1] = number;
            if (count > 2) data[count - 1] = number;
            OK(MPI_Send(data, count, MPI_INT, to, TAG, MPI_COMM_WORLD));
        }
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    int last = 99;
    OK(MPI_Send(&last, 1, MPI_INT, (rank + 1) % size, TAG + 1, MPI_COMM_WORLD));
    pthread_join(threads[THREADS], NULL);
    for (int from = 0; from < size; from++)
        for (int number = 0; number < EACH; number++)
            CHECK(seen[from][number] == 1);
    CHECK(wrong == 0);
    free(data);
    return conform_end();
}
