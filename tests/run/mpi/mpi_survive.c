/* mpi_survive.c - tests the effect of a rank's death, by PCCL_ON_FAILURE:
 *
 *   survive shrink          the victim dies; each collective goes on among the
 *                           others, whose ranks and size change together
 *   survive return          MPIX_ERR_PROC_FAILED until the topology is updated
 *   survive abort           never returns from the collective
 *   survive fold MODE       the victim dies in its operator, in mid-collective
 *   survive scan MODE       likewise, between the operations of a scan
 *   survive gather          the first to notice is an in-place all-gather
 *   survive alone           all but one die, and that one has opted in: what it
 *                           receives from any rank ends
 *   survive topology KIND   the victim dies before its topology is made: it has
 *                           lost a member, as if that had died afterwards; KIND
 *                           copy: it dies before it is copied
 *
 * The last but one rank is the victim. */
#include "conform.h"

#include <mpi_pccl.h>
#include <signal.h>
#include <unistd.h>

enum { STEPS = 40, DEATH = 17, LONG = 400000 };

static int rank, size, first_rank, first_size, victim;

static void look(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void maybe_die(int step)
{
    if (step == DEATH && first_rank == victim) raise(SIGKILL);
}

/* Sum of the initial ranks over the members without the victim. */
static int expected_sum(void)
{
    int all = first_size * (first_size - 1) / 2;
    return size == first_size ? all : all - victim;
}

static void shrink_step(int step, int *data, MPI_Comm dup)
{
    int sum = -1, scan = -1, from = -1, *all = calloc((size_t)first_size, 4);
    maybe_die(step);
    OK(MPI_Allreduce(&first_rank, &sum, 1, MPI_INT, MPI_SUM, dup));
    look();
    CHECK(sum == expected_sum());
    OK(MPI_Allgather(&first_rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    look();
    CHECK(all[rank] == first_rank);
    for (int r = 1; r < size; r++) CHECK(all[r] > all[r - 1]);
    OK(MPI_Scan(&first_rank, &scan, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK(scan == first_rank);
    if (rank == 0) from = step;
    OK(MPI_Bcast(&from, 1, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(from == step);
    for (int i = 0; i < LONG; i++) data[i] = i + first_rank;
    OK(MPI_Allreduce(MPI_IN_PLACE, data, LONG, MPI_INT, MPI_MAX,
                     MPI_COMM_WORLD));
    look();
    CHECK(data[LONG - 1] == LONG - 1 + first_size - 1);
    free(all);
}

static int shrink(void)
{
    MPI_Comm dup, half;
    int *data = malloc(LONG * sizeof *data), n = 0, changes = 0, before;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_split(MPI_COMM_WORLD, first_rank % 2, 0, &half));
    before = size;
    for (int step = 0; step < STEPS; step++) {
        MPI_Request request;
        int one = 1, count = 0;
        OK(MPI_Iallreduce(&one, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                          &request));
        shrink_step(step, data, dup);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        look();
        CHECK(count == size || count == before);
        changes += size != before;
        before = size;
        OK(MPI_Allreduce(&one, &n, 1, MPI_INT, MPI_SUM, half));
        int left;
        OK(MPI_Comm_size(half, &left));
        CHECK(n == left);
    }
    CHECK(size == first_size - 1 && changes == 1);
    CHECK(rank == first_rank - (first_rank > victim));
    int root = -1;
    OK(MPI_Comm_size(dup, &root));
    CHECK(root == size);
    free(data);
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&dup));
    return conform_end();
}

static int errors(void)
{
    int sum = 0, one = 1, failures = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int step = 0; step < STEPS; step++) {
        maybe_die(step);
        int code =
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        look();
        CHECK(size == first_size && rank == first_rank);
        if (code == MPI_SUCCESS)
            CHECK(sum == first_size && step < DEATH + 1);
        else
            CHECK(code == (MPIX_ERR_PROC_FAILED));
        failures += code != MPI_SUCCESS;
    }
    CHECK(failures >= STEPS - DEATH - 1);
    OK(PCCL_Update_topology(MPI_COMM_WORLD));
    look();
    CHECK(size == first_size - 1);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size);
    return conform_end();
}

/* Adds; the victim dies after the first of several rounds. */
static void deadly(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    if (first_rank == victim) raise(SIGKILL);
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

/* After an error an in-place input is restored, and a repetition contains no
 * contribution of the victim. */
static int fold(int repeats)
{
    enum { COUNT = 6000000 };
    int *data = malloc(COUNT * sizeof *data), wrong = 0;
    MPI_Op op;
    for (int i = 0; i < COUNT; i++) data[i] = i + first_rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Op_create(deadly, 1, &op));
    int code =
        MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_INT, op, MPI_COMM_WORLD);
    look();
    CHECK(repeats ? code == MPI_SUCCESS : code == (MPIX_ERR_PROC_FAILED));
    for (int i = 0; i < COUNT; i++) {
        unsigned sum = (unsigned)size * (unsigned)i + (unsigned)expected_sum();
        wrong += data[i] != (repeats ? (int)sum : i + first_rank);
    }
    CHECK(wrong == 0);
    OK(MPI_Op_free(&op));
    free(data);
    OK(PCCL_Update_topology(MPI_COMM_WORLD));
    return conform_end();
}

/* The victim has sent its vector and dies in the fold. */
static int scan(int repeats)
{
    enum { COUNT = 200003 };
    int *data = malloc(COUNT * sizeof *data), wrong = 0;
    MPI_Op op;
    for (int i = 0; i < COUNT; i++) data[i] = i + first_rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Op_create(deadly, 0, &op));
    int code = MPI_Scan(MPI_IN_PLACE, data, COUNT, MPI_INT, op, MPI_COMM_WORLD);
    look();
    CHECK(repeats ? code == MPI_SUCCESS : code == (MPIX_ERR_PROC_FAILED));
    int ranks = first_rank * (first_rank + 1) / 2;
    if (first_rank > victim) ranks -= victim;
    for (int i = 0; i < COUNT; i++)
        wrong += data[i] != (repeats ? (rank + 1) * i + ranks : i + first_rank);
    CHECK(wrong == 0);
    OK(MPI_Op_free(&op));
    free(data);
    OK(PCCL_Update_topology(MPI_COMM_WORLD));
    return conform_end();
}

static int gather(void)
{
    enum { BLOCK = 100000 };
    int *all = calloc((size_t)first_size * BLOCK, sizeof *all), wrong = 0;
    for (int i = 0; i < BLOCK; i++) all[first_rank * BLOCK + i] = first_rank;
    maybe_die(DEATH);
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, BLOCK, MPI_INT,
                     MPI_COMM_WORLD));
    look();
    CHECK(size == first_size - 1);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < BLOCK; i++)
            wrong += all[r * BLOCK + i] != r + (r >= victim);
    CHECK(wrong == 0);
    free(all);
    return conform_end();
}

static int fatal(void)
{
    for (int step = 0; step < STEPS; step++) {
        maybe_die(step);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return EXIT_SUCCESS; /* not expected by the test */
}

/* On a ring of all. */
static void make_topology(const char *kind, MPI_Comm *out)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    int one = 1, next = (rank + 1) % size, last = (rank + size - 1) % size;
    int *index = malloc((size_t)size * sizeof *index);
    int *edges = malloc((size_t)size * sizeof *edges);
    for (int i = 0; i < size; i++) {
        index[i] = i + 1;
        edges[i] = (i + 1) % size;
    }
    if (strcmp(kind, "whole") == 0)
        OK(MPI_Graph_create(world, size, index, edges, 0, out));
    else if (strcmp(kind, "near") == 0)
        OK(MPI_Dist_graph_create_adjacent(world, 1, &last, MPI_UNWEIGHTED, 1,
                                          &next, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                          0, out));
    else if (strcmp(kind, "edges") == 0)
        OK(MPI_Dist_graph_create(world, 1, &rank, &one, &next, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, out));
    else
        OK(MPI_Cart_create(world, 1, &size, &one, 0, out));
    free(index);
    free(edges);
}

static int topology(const char *kind)
{
    MPI_Comm made = MPI_COMM_NULL, copy;
    int *all = malloc((size_t)first_size * 2 * sizeof *all), sum = 0, left;
    int copies = strcmp(kind, "copy") == 0;
    if (copies) make_topology(kind, &made);
    maybe_die(DEATH);
    if (copies) {
        OK(MPI_Allreduce(&first_rank, &sum, 1, MPI_INT, MPI_SUM, made));
        OK(MPI_Comm_dup(made, &copy));
        OK(MPI_Comm_free(&made));
        made = copy;
    } else {
        make_topology(kind, &made);
    }
    OK(MPI_Comm_size(made, &left));
    CHECK(left == first_size - 1);
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    CHECK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, made) ==
          (MPIX_ERR_PROC_FAILED));
    OK(MPI_Allreduce(&first_rank, &sum, 1, MPI_INT, MPI_SUM, made));
    look();
    CHECK(sum == expected_sum());
    OK(MPI_Comm_free(&made));
    free(all);
    return conform_end();
}

static int alone(void)
{
    int value = -1, flag = 0, failed;
    MPI_Request request;
    PCCL_Drain_requested(&flag); /* opts in */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (first_rank != victim) raise(SIGKILL);
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1,
                                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
                 &request));
    failed = conform_class(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(failed == (MPIX_ERR_PROC_FAILED_PENDING));
    /* It is still there, and this rank may send. */
    OK(MPI_Send(&first_rank, 1, MPI_INT, rank, 1, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(value == first_rank);
    return conform_end();
}

/* The victim ends the run; the others would never. */
static int ends_all(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim) MPI_Abort(MPI_COMM_WORLD, 7);
    while (pause() != 0) continue;
    return 1;
}

/* The victim ends with status 0 and without MPI_Finalize, or calls no MPI after
 * MPI_Init and is killed, which no call of the others meets; "opted": so, under
 * a program that has opted in. */
static int unfinished(const char *how)
{
    int sum, flag;
    if (strcmp(how, "opted") == 0) PCCL_Drain_requested(&flag);
    OK(MPI_Allreduce(&first_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (rank == victim && strcmp(how, "exit") == 0) exit(0);
    if (rank == victim && strcmp(how, "_exit") == 0) _exit(0);
    if (rank == victim && strcmp(how, "exec") == 0)
        execlp("true", "true", NULL);
    if (rank == victim && strcmp(how, "killed") == 0) raise(SIGKILL);
    if (rank == victim && strcmp(how, "opted") == 0) raise(SIGKILL);
    /* Its connections stay open where its child has them. */
    if (rank == victim && strcmp(how, "fork") == 0) {
        if (fork() != 0) _exit(0);
        for (;;) pause();
    }
    return conform_end();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    look();
    first_rank = rank;
    first_size = size;
    victim = size - 2;
    if (argc > 1 && strcmp(argv[1], "shrink") == 0) return shrink();
    if (argc > 1 && strcmp(argv[1], "return") == 0) return errors();
    if (argc > 2 && strcmp(argv[1], "fold") == 0)
        return fold(strcmp(argv[2], "shrink") == 0);
    if (argc > 2 && strcmp(argv[1], "scan") == 0)
        return scan(strcmp(argv[2], "shrink") == 0);
    if (argc > 1 && strcmp(argv[1], "gather") == 0) return gather();
    if (argc > 1 && strcmp(argv[1], "alone") == 0) return alone();
    if (argc > 2 && strcmp(argv[1], "topology") == 0) return topology(argv[2]);
    if (argc > 2 && strcmp(argv[1], "unfinished") == 0)
        return unfinished(argv[2]);
    if (argc > 1 && strcmp(argv[1], "ends_all") == 0) return ends_all();
    return fatal();
}
