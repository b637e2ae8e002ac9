/* mpi_traced.c - the program of trace.sh: collectives, a message that comes
 * late, and a rank that is killed when its trace is written. */
#include "conform.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 1000, TAG = 5, PATIENCE_S = 300 };

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* Until the trace of the rank has the text. */
static void await_text(int rank, const char *text)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s.%d", getenv("PCCL_TRACE"), rank);
    for (time_t end = time(NULL) + PATIENCE_S; time(NULL) < end; nap()) {
        FILE *in = fopen(path, "r");
        int found = 0;
        while (in && fgets(line, sizeof line, in))
            found = found || strstr(line, text) != NULL;
        if (in) fclose(in);
        if (found) return;
    }
    CHECK(!"the trace is written");
}

int main(int argc, char **argv)
{
    static int words[WORDS];
    int rank, size, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == 3);
    for (int i = 0; i < 10; i++) {
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(sum == size);
    }
    /* Rank 1 has told that it waits before the message is sent. */
    if (rank == 0) await_text(1, "\"name\":\"MPI_Recv waits\"");
    if (rank == 0) OK(MPI_Send(words, WORDS, MPI_INT, 1, TAG, MPI_COMM_WORLD));
    if (rank == 1)
        OK(MPI_Recv(words, WORDS, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    if (rank == 2) {
        await_text(2, "\"name\":\"MPI_Barrier\"");
        (void)kill(getpid(), SIGKILL);
    }
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == 2);
    return conform_end();
}
