/* mpi_revoke.c - tests MPIX_Comm_revoke: it reaches every rank, in a call on
 * the communicator or not, and other communicators are not affected.
 *
 *   revoke calls     all kinds of calls under way
 *   revoke storm     many rounds, revoked by the fastest; several at once
 *   revoke death     the revoking rank dies
 *   revoke any       receives from anybody, with failures acknowledged or not
 * */
#include "conform.h"

#include <signal.h>
#include <unistd.h>

/* Not in MPICH's header. */
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *out, MPI_Request *request);

enum { LARGE = 200000 };

static int rank, size;

static int sum_over(MPI_Comm comm, int mine, int *sum)
{
    *sum = -1;
    return MPI_Allreduce(&mine, sum, 1, MPI_INT, MPI_SUM, comm);
}

/* A revoked communicator refuses all calls except those for repair. */
static void check_revoked(MPI_Comm comm)
{
    int flag = 0, value = 0;
    MPI_Request request;
    MPI_Comm dup;
    OK(MPIX_Comm_is_revoked(comm, &flag));
    CHECK(flag);
    FAILS(MPIX_ERR_REVOKED, MPI_Send(&value, 1, MPI_INT, 0, 0, comm));
    FAILS(MPIX_ERR_REVOKED,
          MPI_Recv(&value, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
    FAILS(MPIX_ERR_REVOKED, MPI_Probe(0, 0, comm, MPI_STATUS_IGNORE));
    FAILS(MPIX_ERR_REVOKED, sum_over(comm, 1, &value));
    FAILS(MPIX_ERR_REVOKED, MPI_Comm_dup(comm, &dup));
    int code = MPI_Ibarrier(comm, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(conform_class(code) == MPIX_ERR_REVOKED);
    OK(MPI_Comm_size(comm, &value));
    CHECK(value == size);
}

static void repair(MPI_Comm *comm)
{
    MPI_Comm next = MPI_COMM_NULL, later = MPI_COMM_NULL;
    MPI_Request requests[2];
    int flag = rank == 0 ? 3 : 5, again = ~(1 << (rank % 8)), sum, n;
    OK(MPIX_Comm_agree(*comm, &flag));
    CHECK(flag == (size == 1 ? 3 : 1));
    /* two at once, completed in reverse order */
    OK(MPIX_Comm_ishrink(*comm, &later, &requests[0]));
    OK(MPIX_Comm_iagree(*comm, &again, &requests[1]));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK((again & 1) == 0 && (size < 2 || (again & 2) == 0));
    OK(MPIX_Comm_shrink(*comm, &next));
    OK(MPI_Comm_free(comm));
    MPI_Comm_size(next, &n);
    CHECK(n == size);
    OK(sum_over(next, 1, &sum));
    CHECK(sum == n);
    OK(sum_over(later, 2, &sum));
    CHECK(sum == 2 * n);
    OK(MPI_Comm_free(&later));
    *comm = next;
}

/* Rank 0 revokes while each other rank is in a different call. */
static void calls(void)
{
    MPI_Comm comm, other;
    MPI_Request requests[4];
    int value = 0, sum = 0;
    double *data = calloc(LARGE, sizeof *data);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int kind = 0; kind < 8; kind++) {
        int mine = (rank + kind) % 8;
        OK(MPI_Barrier(other));
        if (rank == 0) {
            /* lets the others block; the test is also correct without */
            if (kind < 2) usleep(20000);
            OK(MPIX_Comm_revoke(comm));
            OK(MPIX_Comm_revoke(comm));
        } else if (mine == 0) {
            FAILS(MPIX_ERR_REVOKED,
                  MPI_Recv(&value, 1, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE));
        } else if (mine == 1) {
            FAILS(MPIX_ERR_REVOKED, MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE,
                                             7, comm, MPI_STATUS_IGNORE));
        } else if ((mine == 2 || mine == 3) && kind % 2) {
            FAILS(MPIX_ERR_REVOKED, sum_over(comm, 1, &value));
        } else if (mine == 2 || mine == 3) {
            FAILS(MPIX_ERR_REVOKED, MPI_Allreduce(MPI_IN_PLACE, data, LARGE,
                                                  MPI_DOUBLE, MPI_MAX, comm));
            CHECK(data[0] == 0);
        } else if (mine == 4) {
            /* without a receive */
            FAILS(MPIX_ERR_REVOKED,
                  MPI_Send(data, LARGE, MPI_DOUBLE, 0, 9, comm));
        } else if (mine == 5) {
            FAILS(MPIX_ERR_REVOKED, MPI_Ssend(&value, 1, MPI_INT, 0, 9, comm));
        } else if (mine == 6) {
            FAILS(MPIX_ERR_REVOKED, MPI_Probe(0, 3, comm, MPI_STATUS_IGNORE));
        } else {
            int codes[4];
            OK(MPI_Irecv(&value, 1, MPI_INT, 0, 1, comm, &requests[0]));
            OK(MPI_Ibarrier(comm, &requests[1]));
            OK(MPI_Isend(data, LARGE, MPI_DOUBLE, 0, 1, comm, &requests[2]));
            OK(MPI_Issend(&value, 1, MPI_INT, 0, 1, comm, &requests[3]));
            for (int i = 0; i < 4; i++)
                codes[i] =
                    conform_class(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
            for (int i = 0; i < 4; i++) CHECK(codes[i] == MPIX_ERR_REVOKED);
        }
        int revoked = 0;
        while (!revoked) OK(MPIX_Comm_is_revoked(comm, &revoked));
        check_revoked(comm);
        OK(sum_over(other, 1, &sum));
        CHECK(sum == size);
        repair(&comm);
    }
    free(data);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&other));
}

/* All work on the communicator until a rank revokes it; sometimes several do,
 * also on parts of it. */
static void storm(int seed)
{
    unsigned state = (unsigned)(seed * 7919);
    MPI_Comm comm, part;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int round = 0; round < 12; round++) {
        int done = 0, value = 0, sum, code = MPI_SUCCESS;
        state = state * 1103515245u + 12345u;
        int who = (int)(state >> 16) % size, second = (who + 1) % size;
        int when = (int)(state >> 20) % 6;
        OK(MPI_Comm_split(comm, rank % 2, 0, &part));
        OK(MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN));
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* all have it */
        for (int step = 0; code == MPI_SUCCESS; step++) {
            if ((rank == who || (rank == second && round % 3 == 0)) &&
                step == when) {
                if (round % 2) OK(MPIX_Comm_revoke(part));
                OK(MPIX_Comm_revoke(comm));
            }
            if (round % 4 < 2)
                code = sum_over(comm, step, &sum);
            else
                code = MPI_Sendrecv(
                    &step, 1, MPI_INT, (rank + 1) % size, 1, &value, 1, MPI_INT,
                    (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
            done += code == MPI_SUCCESS;
        }
        CHECK(conform_class(code) == MPIX_ERR_REVOKED);
        CHECK(done <= when + size);
        /* a rank may not have noticed a faster one's revocation yet */
        if (round % 2 && rank == who) OK(MPIX_Comm_revoke(part));
        if (round % 2 && rank % 2 == who % 2) {
            do {
                code = sum_over(part, 1, &sum);
            } while (code == MPI_SUCCESS);
            CHECK(conform_class(code) == MPIX_ERR_REVOKED);
        }
        OK(MPI_Comm_free(&part));
        repair(&comm);
    }
    OK(MPI_Comm_free(&comm));
}

/* Rank 1 revokes and dies. All others notice the revocation or the death, and
 * all notice the revocation if one does. */
static void death(void)
{
    MPI_Comm comm, next;
    int sum, code, flag, n;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1) {
        MPIX_Comm_revoke(comm);
        raise(SIGKILL);
    }
    do {
        code = sum_over(comm, 1, &sum);
    } while (code == MPI_SUCCESS);
    CHECK(conform_class(code) == MPIX_ERR_REVOKED ||
          conform_class(code) == MPIX_ERR_PROC_FAILED);
    /* others may wait in a receive for a rank that has left the loop */
    OK(MPIX_Comm_revoke(comm));
    flag = 1;
    code = MPIX_Comm_agree(comm, &flag);
    CHECK(code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED);
    do { /* the death may be noticed after the revocation */
        OK(MPIX_Comm_shrink(comm, &next));
        OK(MPI_Comm_free(&comm));
        comm = next;
        code = sum_over(comm, 1, &sum);
    } while (code != MPI_SUCCESS);
    MPI_Comm_size(comm, &n);
    CHECK(n == sum && n == size - 1);
    OK(MPI_Comm_free(&comm));
}

/* A receive from any source fails after a loss until the loss is acknowledged;
 * afterwards it may match the others. */
static void any(void)
{
    int value = 0, flag = 0, victim = size - 1;
    MPI_Request request;
    MPI_Status status;
    MPI_Group failed;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == victim) raise(SIGKILL);
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD,
                 &request));
    FAILS(MPIX_ERR_PROC_FAILED_PENDING, MPI_Wait(&request, &status));
    CHECK(request != MPI_REQUEST_NULL);
    FAILS(MPIX_ERR_PROC_FAILED_PENDING, MPI_Test(&request, &flag, &status));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Recv(&flag, 1, MPI_INT, MPI_ANY_SOURCE, 5,
                                         MPI_COMM_WORLD, &status));
    OK(MPIX_Comm_failure_ack(MPI_COMM_WORLD));
    OK(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed));
    MPI_Group_size(failed, &flag);
    CHECK(flag == 1);
    OK(MPI_Group_free(&failed));
    (void)MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    OK(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % victim, 4, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(value == (rank + victim - 1) % victim && status.MPI_SOURCE == value);
    OK(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % victim, 5, MPI_COMM_WORLD));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD,
                &status));
    CHECK(value == (rank + victim - 1) % victim);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "calls";
    if (strcmp(what, "calls") == 0) calls();
    if (strcmp(what, "storm") == 0) storm(argc > 2 ? atoi(argv[2]) : 1);
    if (strcmp(what, "death") == 0) death();
    if (strcmp(what, "any") == 0) any();
    MPI_Finalize();
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
