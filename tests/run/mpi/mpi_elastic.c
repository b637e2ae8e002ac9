/* mpi_elastic.c - tests what a loss does to programs of each kind under
 * `pccl-master --elastic` (rules E1 to E8 of src/mpi/rank_use.h). elastic.sh
 * knows how each case is to end. Ranks kill themselves between two calls. */
#include "conform.h"

#include <errno.h>
#include <mpi_pccl.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

enum { STEPS = 10, DEATH = 5, LARGE = 1 << 20 };

static int rank, size; /* as asked at the start */

static void die_if(int one)
{
    if (rank == one) raise(SIGKILL);
}

static void ask(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void return_errors(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static int sum_of(int mine, MPI_Comm comm, int *sum)
{
    return MPI_Allreduce(&mine, sum, 1, MPI_INT, MPI_SUM, comm);
}

#define LOST(call) FAILS(MPIX_ERR_PROC_FAILED, call)

/* ------------------------------------------------- indifferent to ranks */

/* Each rank sums the part that its first rank owns. Nobody asks again. */
static void test_domain(void)
{
    int sum = 0;
    for (int step = 0; step < STEPS; step++) {
        if (step == DEATH) die_if(1);
        OK(sum_of(1, MPI_COMM_WORLD, &sum));
        CHECK(sum == (step < DEATH ? size : size - 1));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* The root dies before the broadcast: nobody has its data. All ranks hold the
 * same, so the next one may take its place (PCCL_LOST_ROOT=promote). */
static void test_bcast_nobody(void)
{
    int value, now;
    for (int step = 0; step < STEPS; step++) {
        if (step == DEATH) die_if(0);
        value = rank > 1 ? -1 : step;
        OK(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD));
        CHECK(value == step);
        MPI_Comm_size(MPI_COMM_WORLD, &now);
        CHECK(now == (step < DEATH ? size : size - 1));
    }
}

/* Returned errors of the same: alike on all, and the job goes on. */
static void test_bcast_returned(void)
{
    int value = 7, sum;
    return_errors();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    die_if(0);
    LOST(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(value == 7);
    OK(sum_of(1, MPI_COMM_WORLD, &sum));
    CHECK(sum == size - 1);
}

/* Rank 1 kills the root as soon as it has the last of its data, in the middle
 * of the call. The others call when the root is dead. */
static void test_bcast_survivor(void)
{
    int pid = rank == 0 ? (int)getpid() : 0, root, done = 0;
    volatile int *data = malloc(LARGE * sizeof *data);
    for (int i = 0; i < LARGE; i++) data[i] = rank == 0 ? i : -1;
    MPI_Allreduce(&pid, &root, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    while (rank > 1 && (kill(root, 0) == 0 || errno != ESRCH)) usleep(100);
    MPI_Request request;
    OK(MPI_Ibcast((void *)(uintptr_t)data, LARGE, MPI_INT, 0, MPI_COMM_WORLD,
                  &request));
    while (rank == 1 && data[LARGE - 1] != LARGE - 1)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (rank == 1) kill(root, SIGKILL);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    int wrong = 0;
    for (int i = 0; i < LARGE; i++) wrong += data[i] != i;
    CHECK(wrong == 0);
    free((void *)(uintptr_t)data);
}

/* After a change nobody but the one that began with the number is passed off
 * as the root: who asks for its rank may still go by the former one. */
static void test_bcast_moved(void)
{
    int value = 5, sum, one, now;
    return_errors();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    die_if(0);
    OK(sum_of(1, MPI_COMM_WORLD, &sum));
    LOST(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD));
    /* the first rank 2, now 1, is not the root that the first rank 1 thinks it
     * is */
    LOST(MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD));
    MPI_Comm_rank(MPI_COMM_WORLD, &now);
    CHECK(now == rank - 1);
    one = rank == 0 ? 42 : 0;
    LOST(MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(one == 0);
}

/* The root lives, and is still the one that it thinks it is. */
static void test_bcast_stays(void)
{
    int value;
    for (int step = 0; step < STEPS; step++) {
        if (step == DEATH) die_if(1);
        value = rank == 0 ? step : -1;
        OK(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD));
        CHECK(value == step);
    }
}

/* To a lost root: to the rank that now has its number. */
static void test_reduce(void)
{
    int sum = -1, now, mine = 1;
    for (int step = 0; step < STEPS; step++) {
        if (step == DEATH) die_if(0);
        OK(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
        MPI_Comm_rank(MPI_COMM_WORLD, &now);
        CHECK(now != 0 || sum == (step < DEATH ? size : size - 1));
    }
    CHECK(now == rank - 1);
}

/* To a root that has moved, and whose place is taken by one who has passed no
 * buffer: the one that takes itself for the root gets the result. */
static void test_reduce_moved(void)
{
    int sum = -1, mine = 1, *out = rank == 1 ? &sum : NULL;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    die_if(0);
    for (int step = 0; step < 3; step++)
        OK(MPI_Reduce(&mine, out, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD));
    CHECK(sum == (rank == 1 ? size - 1 : -1));
}

/* -------------------------------------------------------- naming ranks */

static void exchange(int *in)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 1, in, 1, MPI_INT, left, 1,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(*in == left);
}

static void test_halo(void)
{
    int sum, in;
    for (int step = 0; step < STEPS; step++) {
        exchange(&in);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (step == DEATH) die_if(1);
        OK(sum_of(1, MPI_COMM_WORLD, &sum));
    }
}

/* The survivors keep their ranks until the program repairs its communicator. */
static void test_halo_ulfm(void)
{
    int sum, in, now;
    MPI_Comm left;
    return_errors();
    for (int step = 0; step < DEATH; step++) {
        exchange(&in);
        OK(sum_of(1, MPI_COMM_WORLD, &sum));
    }
    die_if(1);
    LOST(sum_of(1, MPI_COMM_WORLD, &sum));
    LOST(sum_of(1, MPI_COMM_WORLD, &sum));
    LOST(MPI_Recv(&in, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
    MPI_Comm_rank(MPI_COMM_WORLD, &now);
    CHECK(now == rank);
    int other = rank == 0 ? size - 1 : 0;
    if (rank == 0 || rank == size - 1)
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, other, 3, &in, 1, MPI_INT, other, 3,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &left));
    OK(sum_of(1, left, &sum));
    CHECK(sum == size - 1);
    OK(MPI_Comm_free(&left));
}

/* Requests of all kinds that need the lost rank end. */
static void test_pending(void)
{
    int in, out = rank, sum[2], *large = calloc(LARGE, sizeof *large);
    MPI_Request requests[5];
    return_errors();
    exchange(&in);
    OK(MPI_Recv_init(&in, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Irecv(&in, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Isend(large, LARGE, MPI_INT, 1, 9, MPI_COMM_WORLD, &requests[2]));
    die_if(1);
    OK(MPI_Start(&requests[0]));
    OK(MPI_Iallreduce(&out, &sum[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                      &requests[3]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[4]));
    for (int i = 4; i >= 0; i--)
        LOST(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&requests[0]));
    LOST(sum_of(1, MPI_COMM_WORLD, &sum[1]));
    free(large);
}

/* Two ranks name ranks, the others do not: all get the same. */
static void test_mix(void)
{
    int sum, in = 0;
    return_errors();
    for (int step = 0; step < DEATH; step++) {
        if (rank < 2)
            OK(MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &in, 1, MPI_INT,
                            1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(sum_of(1, MPI_COMM_WORLD, &sum));
    }
    die_if(size - 1);
    LOST(sum_of(1, MPI_COMM_WORLD, &sum));
    LOST(MPI_Barrier(MPI_COMM_WORLD));
}

static void test_derived(void)
{
    int sum, half_size;
    MPI_Comm half;
    return_errors();
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &half));
    OK(sum_of(1, MPI_COMM_WORLD, &sum));
    die_if(1);
    LOST(sum_of(1, MPI_COMM_WORLD, &sum));
    if (rank == 0)
        OK(sum_of(1, half, &sum));
    else
        LOST(sum_of(1, half, &sum));
    OK(MPI_Comm_size(half, &half_size));
    CHECK(half_size == (rank == 0 ? 1 : size - 1));
    OK(MPI_Comm_free(&half));
}

/* An all-gather names ranks; `goes_on`: the program has opted in. */
static void gather_all(int goes_on)
{
    int all[64], now = 0;
    OK(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    die_if(1);
    if (!goes_on) {
        LOST(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
        MPI_Comm_size(MPI_COMM_WORLD, &now);
        CHECK(now == size);
        return;
    }
    OK(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    MPI_Comm_size(MPI_COMM_WORLD, &now);
    CHECK(now == size - 1);
    for (int i = 0; i < now; i++) CHECK(all[i] == i + (i > 0));
}

static void test_gather_all(void)
{
    return_errors();
    gather_all(0);
}

static void test_forced(void)
{
    gather_all(1);
}

static void test_pccl(void)
{
    PCCL_Shared_state *state;
    OK(PCCL_State_create(&state));
    gather_all(1);
    OK(PCCL_State_free(&state));
}

static void test_mpix(void)
{
    int flag;
    OK(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
    gather_all(1);
}

/* Asks in every step, and sends to numbers that it has stored. */
static void test_asks(void)
{
    int sum, in, now, right = (rank + 1) % size;
    int left = (rank + size - 1) % size;
    return_errors();
    for (int step = 0; step <= DEATH; step++) {
        MPI_Comm_rank(MPI_COMM_WORLD, &now);
        MPI_Comm_size(MPI_COMM_WORLD, &now);
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 1, &in, 1, MPI_INT, left, 1,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(in == left);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (step == DEATH) die_if(1);
        if (step < DEATH) OK(sum_of(1, MPI_COMM_WORLD, &sum));
    }
    LOST(sum_of(1, MPI_COMM_WORLD, &sum));
    MPI_Comm_rank(MPI_COMM_WORLD, &now);
    CHECK(now == rank);
}

/* Gathers to a lost root, opted in. Each block is too large to be sent before
 * the root is there. */
static void test_gather(void)
{
    enum { BLOCK = 100000 };
    int *mine = malloc(BLOCK * sizeof *mine), now, wrong = 0;
    int *all = malloc((size_t)size * BLOCK * sizeof *all);
    for (int i = 0; i < BLOCK; i++) mine[i] = rank;
    for (int i = 0; i < size * BLOCK; i++) all[i] = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    die_if(0);
    OK(MPI_Gather(mine, BLOCK, MPI_INT, all, BLOCK, MPI_INT, 0,
                  MPI_COMM_WORLD));
    MPI_Comm_rank(MPI_COMM_WORLD, &now);
    CHECK(now == rank - 1);
    for (int i = 0; i < (size - 1) * BLOCK; i++)
        wrong += all[i] != (now == 0 ? i / BLOCK + 1 : -1);
    CHECK(wrong == 0);
    free(mine);
    free(all);
}

static void test_scatter(void)
{
    int out[64] = {0}, in = 0, flag;
    return_errors();
    OK(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    die_if(0);
    LOST(MPI_Scatter(out, 1, MPI_INT, &in, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The first use of ranks comes after a change that the process may not know:
 * it names nobody. */
static void test_late(void)
{
    int sum, in = -1, all[64];
    return_errors();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    die_if(1);
    OK(sum_of(1, MPI_COMM_WORLD, &sum));
    int next = rank == 0 ? size - 1 : 0;
    LOST(MPI_Send(&rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD));
    LOST(MPI_Recv(&in, 1, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    /* one rank has asked, the others have not: alike on all; nor does it help
     * that all have, since they may use other numbers */
    int first = rank, last = size - 1;
    for (int i = 0; i < 2; i++) {
        if (i == 1 || rank == 0) ask();
        LOST(
            MPI_Allgather(&first, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    }
    CHECK(rank == first - (first > 1));
    /* a number that exists no more */
    MPI_Request request;
    LOST(MPI_Irecv(&in, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &request));
    LOST(MPI_Send(&in, 1, MPI_INT, last, 1, MPI_COMM_WORLD));
}

/* The same of a program that has opted in; a number that never existed. */
static void test_number(void)
{
    int sum, in, flag;
    return_errors();
    OK(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(&rank, 1, MPI_INT, size, 1, MPI_COMM_WORLD));
    die_if(1);
    OK(sum_of(1, MPI_COMM_WORLD, &sum));
    LOST(MPI_Send(&rank, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD));
    LOST(MPI_Recv(&in, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"domain", test_domain},
                 {"bcast_nobody", test_bcast_nobody},
                 {"bcast_returned", test_bcast_returned},
                 {"bcast_survivor", test_bcast_survivor},
                 {"bcast_moved", test_bcast_moved},
                 {"bcast_stays", test_bcast_stays},
                 {"number", test_number},
                 {"reduce", test_reduce},
                 {"reduce_moved", test_reduce_moved},
                 {"halo", test_halo},
                 {"halo_ulfm", test_halo_ulfm},
                 {"pending", test_pending},
                 {"mix", test_mix},
                 {"derived", test_derived},
                 {"gather_all", test_gather_all},
                 {"forced", test_forced},
                 {"pccl", test_pccl},
                 {"mpix", test_mpix},
                 {"asks", test_asks},
                 {"gather", test_gather},
                 {"scatter", test_scatter},
                 {"late", test_late}};
    int found = 0;
    /* The only algorithm that brings large data to a rank before all have
     * called. */
    if (argc > 1 && strcmp(argv[1], "bcast_survivor") == 0)
        (void)setenv("PCCL_ALGORITHM", "broadcast:chain", 1);
    MPI_Init(&argc, &argv);
    ask();
    for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(argv[1], tests[i].name) != 0) continue;
        tests[i].run();
        found = 1;
    }
    CHECK(found);
    MPI_Finalize();
    if (conform_failures == 0) printf("went on\n");
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
