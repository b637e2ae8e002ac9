/* mpi_ulfm.c - tests User-Level Failure Mitigation with ranks that kill
 * themselves.
 *
 *   ulfm parts    communicators with and without a dead member
 *   ulfm repair   acknowledge, agree, shrink, go on; twice
 *   ulfm during   ranks die while others agree and shrink */
#include "conform.h"

#include <signal.h>

/* Not in MPICH's header. */
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed);
int MPIX_Comm_ack_failed(MPI_Comm comm, int wanted, int *acknowledged);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);

static int rank, size;

static int group_size(MPI_Group *group)
{
    int n = -1;
    OK(MPI_Group_size(*group, &n));
    if (*group != MPI_GROUP_EMPTY) OK(MPI_Group_free(group));
    return n;
}

static int sum_over(MPI_Comm comm, int mine, int *sum)
{
    *sum = -1;
    return MPI_Allreduce(&mine, sum, 1, MPI_INT, MPI_SUM, comm);
}

/* Communicators without the victim continue to work. Every communicator with it
 * fails at each use, also a duplicate made in time. */
static int parts(void)
{
    int victim = size - 1, sum, failures = 0;
    MPI_Comm part, pair, dup;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 || rank == victim, 0, &part));
    OK(MPI_Comm_dup(part, &dup));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == victim, 0, &pair));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == victim) raise(SIGKILL);
    for (int i = 0; i < 50; i++) {
        OK(sum_over(pair, 1, &sum));
        CHECK(sum == size - 1);
        if (rank > 0) {
            OK(sum_over(part, 1, &sum));
            CHECK(sum == size - 2);
        } else {
            FAILS(MPIX_ERR_PROC_FAILED, sum_over(part, 1, &sum));
            FAILS(MPIX_ERR_PROC_FAILED, MPI_Barrier(dup));
        }
        if (i % 10 == 0)
            failures += sum_over(MPI_COMM_WORLD, 1, &sum) != MPI_SUCCESS;
    }
    CHECK(failures == 5);
    OK(sum_over(pair, conform_failures, &sum));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&pair));
    MPI_Finalize();
    return sum ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The last rank dies, and the others repair the communicator. */
static MPI_Comm lose_one(MPI_Comm comm)
{
    int me, n, flag, sum, acked = -1, code, revoked = 1;
    MPI_Group group;
    MPI_Comm next = MPI_COMM_NULL;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    OK(MPIX_Comm_get_failed(comm, &group));
    CHECK(group == MPI_GROUP_EMPTY);
    flag = 6 | (me == 0);
    OK(MPIX_Comm_agree(comm, &flag));
    CHECK(flag == (n == 1 ? 7 : 6));
    (void)MPI_Barrier(comm); /* the victim may end after all have agreed */
    if (me == n - 1) raise(SIGKILL);
    do {
        code = sum_over(comm, 1, &sum);
    } while (code == MPI_SUCCESS);
    CHECK(conform_class(code) == MPIX_ERR_PROC_FAILED);
    flag = 1;
    FAILS(MPIX_ERR_PROC_FAILED, MPIX_Comm_agree(comm, &flag));
    CHECK(flag == 1);
    OK(MPIX_Comm_get_failed(comm, &group));
    CHECK(group_size(&group) == 1);
    OK(MPIX_Comm_failure_get_acked(comm, &group));
    CHECK(group_size(&group) == 0);
    if (me == 0) {
        OK(MPIX_Comm_failure_ack(comm));
    } else {
        OK(MPIX_Comm_ack_failed(comm, 1, &acked));
        CHECK(acked == 1);
    }
    OK(MPIX_Comm_failure_get_acked(comm, &group));
    CHECK(group_size(&group) == 1);
    flag = me == 0 ? 3 : 5;
    OK(MPIX_Comm_agree(comm, &flag));
    CHECK(flag == (n == 2 ? 3 : 1));
    OK(MPIX_Comm_is_revoked(comm, &revoked));
    CHECK(revoked == 0);
    OK(MPIX_Comm_shrink(comm, &next));
    MPI_Comm_size(next, &sum);
    CHECK(sum == n - 1);
    MPI_Comm_rank(next, &sum);
    CHECK(sum == me);
    OK(sum_over(next, me, &sum));
    CHECK(sum == (n - 1) * (n - 2) / 2);
    return next;
}

static int repair(void)
{
    MPI_Comm dup, once, twice;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    once = lose_one(dup);
    twice = lose_one(once);
    int bad = 0;
    OK(sum_over(twice, conform_failures, &bad));
    OK(MPI_Comm_free(&twice));
    OK(MPI_Comm_free(&once));
    OK(MPI_Comm_free(&dup));
    MPI_Finalize();
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

static unsigned random_state;

static int dies(int odds)
{
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 16) % (unsigned)odds == 0;
}

/* All but rank 0 may die at any moment. Results of agreement and shrink must be
 * the same on all survivors. */
static int during(int seed)
{
    MPI_Comm comm, next;
    random_state = (unsigned)(seed * 7919 + rank * 104729);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int step = 0; step < 60; step++) {
        int sum, n, me, flag = 1 << (step % 8), code;
        MPI_Comm_size(comm, &n);
        MPI_Comm_rank(comm, &me);
        if (rank > 0 && dies(40)) raise(SIGKILL);
        code = MPI_Barrier(comm);
        CHECK(code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED);
        if (rank > 0 && dies(60)) raise(SIGKILL);
        int want = code == MPI_SUCCESS, all = want;
        int agreed = MPIX_Comm_agree(comm, &all);
        CHECK(agreed == MPI_SUCCESS || agreed == MPIX_ERR_PROC_FAILED);
        CHECK(all == want); /* the barrier was uniform */
        (void)flag;
        if (all && agreed == MPI_SUCCESS) continue;
        if (rank > 0 && dies(20)) raise(SIGKILL);
        OK(MPIX_Comm_shrink(comm, &next));
        OK(MPI_Comm_free(&comm));
        comm = next;
        if (sum_over(comm, agreed, &sum) != MPI_SUCCESS) continue;
        MPI_Comm_size(comm, &n);
        CHECK(sum == n * agreed);
    }
    OK(MPI_Comm_free(&comm));
    MPI_Finalize();
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "repair";
    if (strcmp(what, "parts") == 0) return parts();
    if (strcmp(what, "repair") == 0) return repair();
    return during(argc > 2 ? atoi(argv[2]) : 1);
}
