/* why_rank.c - a rank that keeps others waiting, for judge.py: why_rank KIND
 * VICTIM. Prints "ready PID" when it is about to do what the kind is about.
 *
 * Where the MPI call of the others does not matter it is MPI_Allreduce. */
#include <mpi.h>
#include <mpi_pccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 4 << 20 };

static int rank, size, victim, other;
static char *large;

static void forever(void)
{
    for (;;) pause();
}

static void compute(void)
{
    for (volatile unsigned long i = 0;; i++) continue;
}

static void sum(MPI_Comm comm)
{
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
}

static void receive(int from)
{
    int word;
    MPI_Recv(&word, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void synchronize(void)
{
    static double numbers[8];
    PCCL_Shared_state *state = NULL;
    if (PCCL_State_create(&state) != MPI_SUCCESS) return;
    PCCL_State_add(state, "x", numbers, 8, MPI_DOUBLE);
    PCCL_Sync_shared_state(MPI_COMM_WORLD, state, PCCL_SYNC_POPULAR, NULL);
}

static int is(const char *kind, const char *name)
{
    return strcmp(kind, name) == 0;
}

static void tell(void)
{
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
}

static void of_victim(const char *kind, MPI_Comm twin)
{
    MPI_Request request;
    MPI_Status status;
    int word;
    if (is(kind, "spin")) compute();
    if (is(kind, "stop")) raise(SIGSTOP);
    if (is(kind, "kill")) raise(SIGKILL);
    if (is(kind, "vanish")) _exit(0); /* without MPI_Finalize */
    if (is(kind, "other")) MPI_Barrier(twin);
    if (is(kind, "receive")) receive(other);
    if (is(kind, "probe")) MPI_Probe(other, 9, MPI_COMM_WORLD, &status);
    if (is(kind, "wait")) {
        MPI_Irecv(&word, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
    }
    if (is(kind, "sends"))
        MPI_Ssend(large, LARGE, MPI_CHAR, other, 5, MPI_COMM_WORLD);
    forever();
}

static void of_others(const char *kind)
{
    MPI_Request request;
    int one = 1, all = 0;
    if (is(kind, "update")) PCCL_Update_topology(MPI_COMM_WORLD);
    if (is(kind, "sync")) synchronize();
    if (is(kind, "finalize")) MPI_Finalize();
    if (is(kind, "silent")) receive(victim);
    if (is(kind, "sends") && rank == other)
        MPI_Ssend(large, LARGE, MPI_CHAR, victim, 6, MPI_COMM_WORLD);
    if (is(kind, "pending")) {
        MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    sum(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 2 ? argv[1] : "";
    const char *mine = getenv("PCCL_RANK");
    victim = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (is(kind, "quorum") || is(kind, "join")) tell();
    if (is(kind, "quorum") && mine && strtol(mine, NULL, 10) == victim)
        forever();
    MPI_Init(&argc, &argv);
    MPI_Comm twin;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    other = (victim + 1) % size;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    large = calloc(1, LARGE);
    sum(MPI_COMM_WORLD);
    tell();
    while (is(kind, "healthy")) sum(MPI_COMM_WORLD);
    if (is(kind, "newcomer")) forever();
    if (rank == victim)
        of_victim(kind, twin);
    else
        of_others(kind);
    forever();
}
