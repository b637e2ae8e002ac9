/* mpi_loss.c graph|grid|inter|partitioned|session - tests that a rank dies
 * while the others use or make an object that spans several of them: each gets
 * MPIX_ERR_PROC_FAILED, and none hangs. */
#include "conform.h"

#include <mpi_pccl.h>
#include <signal.h>

static int rank, size;

static void die(void)
{
    raise(SIGKILL);
}

static void expect_lost(int result, const char *what)
{
    int error_class = conform_class(result);
    if (error_class == MPIX_ERR_PROC_FAILED) return;
    fprintf(stderr, "rank %d: %s: class %d\n", rank, what, error_class);
    conform_failures++;
}

/* The last rank dies between two exchanges on a ring. */
static void neighbors(MPI_Comm comm)
{
    int out[2] = {rank, rank}, in[2] = {-1, -1};
    OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm));
    if (rank == size - 1) die();
    expect_lost(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm),
                "Neighbor_alltoall");
    MPI_Request request;
    int result =
        MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm, &request);
    if (result == MPI_SUCCESS) result = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_lost(result, "Ineighbor_alltoall");
}

static void test_graph(void)
{
    MPI_Comm comm;
    int ends[2] = {(rank + size - 1) % size, (rank + 1) % size};
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, ends, MPI_UNWEIGHTED,
                                      2, ends, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &comm));
    neighbors(comm);
}

static void test_grid(void)
{
    MPI_Comm comm;
    int one = 1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &one, 0, &comm));
    neighbors(comm);
}

/* The last rank, leader of the other side, dies before and after the
 * intercommunicator is made. */
static void test_inter(void)
{
    MPI_Comm half, inter, bad = MPI_COMM_NULL;
    int side = rank == size - 1, value = rank, got = -1;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : size - 1, 7,
                            &inter));
    OK(MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, inter));
    if (side) die();
    expect_lost(MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, inter),
                "Allreduce");
    expect_lost(MPI_Recv(&got, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE),
                "Recv");
    expect_lost(MPI_Bcast(&got, 1, MPI_INT, 0, inter), "Bcast");
    expect_lost(MPI_Intercomm_merge(inter, 0, &bad), "Intercomm_merge");
    expect_lost(MPI_Comm_dup(inter, &bad), "Comm_dup");
    expect_lost(
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size - 1, 8, &bad),
        "Intercomm_create");
    OK(MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, half));
    CHECK(got == (size - 1) * (size - 2) / 2);
}

static void test_partitioned(void)
{
    int out[2] = {1, 2}, in[2] = {-1, -1};
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, 2, 1, MPI_INT, next, 3, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, 2, 1, MPI_INT, before, 3, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    if (rank == size - 1) die();
    (void)MPI_Pready_range(0, 1, requests[0]);
    (void)MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    int result = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (before == size - 1)
        expect_lost(result, "Wait");
    else
        CHECK(result == MPI_SUCCESS && in[1] == 2);
}

/* The last rank never takes part in making a communicator. */
static void test_session(void)
{
    MPI_Group group;
    MPI_Comm made;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1) die();
    expect_lost(MPI_Comm_create_from_group(group, "loss", MPI_INFO_NULL,
                                           MPI_ERRORS_RETURN, &made),
                "Comm_create_from_group");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"graph", test_graph},
                 {"grid", test_grid},
                 {"inter", test_inter},
                 {"partitioned", test_partitioned},
                 {"session", test_session}};
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; i++)
        if (strcmp(argv[1], tests[i].name) == 0) tests[i].run();
    MPI_Finalize();
    if (conform_failures == 0 && rank == 0) printf("bounded\n");
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
