/* mpi_fork.c - a process that was forked from a rank is no part of the run: its
 * calls end it with a sentence, and its exit does nothing to its parent. */
#include "conform.h"

#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 90 };

static int rank, size;

static void reduce(void)
{
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size);
}

static void calls(int which)
{
    int one = 1, sum = 0;
    alarm(PATIENCE_S);
    switch (which) {
    case 0: /* exit handlers run, among them the one for sessions */
        exit(0);
    case 1:
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Send(&one, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
        break;
    case 3:
        MPI_Finalize();
        break;
    default:
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    exit(0); /* not reached */
}

static void fork_one(int which)
{
    char text[1024];
    size_t used = 0;
    int ends[2], status = -1;
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        calls(which);
    }
    close(ends[1]);
    for (ssize_t n = 1; n > 0 && used + 1 < sizeof text; used += (size_t)n) {
        n = read(ends[0], text + used, sizeof text - 1 - used);
        if (n < 0) break;
    }
    text[used] = 0;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK((WEXITSTATUS(status) == 0) == (which == 0));
    if (which > 0 && which < 4) CHECK(strstr(text, "forked") != NULL);
}

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    reduce();
    for (int i = 0; i < 5 && rank == 0; i++) fork_one(i);
    reduce();
    OK(MPI_Session_finalize(&session));
    return conform_end();
}
