/* mpi_join.c - tests ranks that join later:
 *
 *   join TARGET    works and lets newcomers in until there are TARGET ranks
 *
 * Existing communicators keep their members and continue to work. */
#include "conform.h"

#include <mpi_pccl.h>

static int rank, size;

static void look(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void check_sum(MPI_Comm comm)
{
    int n, mine, sum = -1;
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &mine);
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == n * (n - 1) / 2);
}

/* The ring may change; ranks, communicators and their data do not. */
static void optimize(MPI_Comm part)
{
    int was = rank, class = MPI_SUCCESS;
    OK(PCCL_Optimize_topology(MPI_COMM_WORLD));
    look();
    CHECK(rank == was);
    check_sum(MPI_COMM_WORLD);
    check_sum(part);
    /* it applies to the whole run */
    OK(MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN));
    OK(MPI_Error_class(PCCL_Optimize_topology(part), &class));
    CHECK(class == MPI_ERR_COMM);
}

/* One iteration of the loop of all ranks; newcomers take part from their start.
 * Nonblocking collectives advance counters that are zero in newcomers. */
static void turn(void)
{
    MPI_Request request;
    int pending = 0, highest = 0;
    OK(MPI_Iallreduce(&rank, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                      &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(highest == size - 1);
    OK(PCCL_Are_peers_pending(MPI_COMM_WORLD, &pending));
    int ranks = size, mine = rank;
    look();
    CHECK(size == ranks && rank == mine); /* until the update */
    if (pending) OK(PCCL_Update_topology(MPI_COMM_WORLD));
    look();
}

/* All have samples of a step, and find it reached; a duplicate is the world. */
static void report(void)
{
    PCCL_Progress p = {.reached = 0};
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(PCCL_Report_progress(dup, 1, 10, 10 * (uint64_t)size));
    while (!p.reached) OK(PCCL_Get_progress(dup, &p));
    CHECK(p.step == 1 && p.samples == 10 * (uint64_t)size && p.ranks == size);
    CHECK(p.target == 10 * (uint64_t)size);
    OK(MPI_Comm_free(&dup));
}

int main(int argc, char **argv)
{
    int target = argc > 1 ? atoi(argv[1]) : 3, members;
    MPI_Init(&argc, &argv);
    look();
    MPI_Comm before = MPI_COMM_NULL, dup, after;
    MPI_Request prepared;
    const char *join = getenv("PCCL_JOIN");
    int newcomer = join && *join, first = size;
    if (!newcomer) {
        OK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &before));
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
        OK(MPI_Barrier_init(before, MPI_INFO_NULL, &prepared));
    }
    while (size < target) {
        turn();
        if (newcomer) continue;
        check_sum(before);
        OK(MPI_Start(&prepared));
        OK(MPI_Wait(&prepared, MPI_STATUS_IGNORE));
    }
    if (!newcomer) {
        MPI_Comm_size(before, &members);
        CHECK(members == first);
        MPI_Comm_size(dup, &members);
        CHECK(members == size);
        OK(MPI_Request_free(&prepared));
        OK(MPI_Comm_free(&before));
        OK(MPI_Comm_free(&dup));
    }
    CHECK(size == target);
    check_sum(MPI_COMM_WORLD);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &after));
    check_sum(after);
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int values[3], n = 0;
    for (int i = 0; i < 3; i++)
        OK(MPI_Iallreduce(&rank, &values[i], 1, MPI_INT, MPI_MAX,
                          MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Waitall(3, requests, statuses));
    for (int i = 0; i < 3; i++) CHECK(values[i] == size - 1);
    OK(MPI_Allreduce(&newcomer, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    optimize(after);
    report();
    if (rank == 0) printf("%d ranks, %d of them newcomers\n", size, n);
    OK(MPI_Comm_free(&after));
    return conform_end();
}
