/* mpi_churn.c - tests collectives of all kinds while ranks are killed at any
 * moment.
 *
 *   churn shrink SEED    the library goes on with the survivors
 *                        (PCCL_ON_FAILURE=shrink)
 *   churn ulfm SEED      the program revokes, agrees, shrinks and repeats
 *
 * All but rank 0 may die, by an independent timer. Every result contains a bit
 * set of its contributors and must equal their combination; all survivors must
 * see the same contributors in every step. */
#include "conform.h"

#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

enum { STEPS = 150, LONG = 60000, KINDS = 9 };

static int me; /* initial rank, contributed by this process */
static MPI_Comm comm;
static uint64_t history; /* hash over the contributors of all steps */
static int64_t data[LONG], result[LONG];
static MPI_Op add;

static void die(int signal)
{
    (void)signal;
    raise(SIGKILL);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

/* Two of three ranks die at some time in the first half second. */
static void set_timer(int seed)
{
    uint64_t x = mix((uint64_t)seed, (uint64_t)me * 77 + 1);
    if (me == 0 || x % 3 == 0) return;
    struct itimerval timer = {.it_value = {0, 1000 + (int)(x >> 8) % 499000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void user_add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int64_t *)inout)[i] += ((int64_t *)in)[i];
}

static void fill(int count)
{
    data[0] = (int64_t)1 << me;
    for (int i = 1; i < count; i++) data[i] = (int64_t)i * (me + 1);
    memset(result, 0xee, (size_t)count * sizeof *result);
}

/* The first element is the set of contributors. */
static void check_sum(const int64_t *sum, int count)
{
    int64_t weight = 0;
    for (int r = 0; r < 62; r++)
        if (sum[0] >> r & 1) weight += r + 1;
    CHECK(sum[0] >> me & 1);
    for (int i = 1; i < count; i++) {
        if (sum[i] == (int64_t)i * weight) continue;
        CHECK(!"the sum is not that of its contributors");
        break;
    }
}

static int reduce_all(int count, MPI_Op op, int in_place, int64_t *who)
{
    fill(count);
    int64_t *out = in_place ? data : result;
    int code = MPI_Allreduce(in_place ? MPI_IN_PLACE : data, out, count,
                             MPI_INT64_T, op, comm);
    if (code != MPI_SUCCESS) return code;
    check_sum(out, count);
    *who = out[0];
    return code;
}

static int gather_all(int64_t *who)
{
    int size, all[64];
    int code = MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, comm);
    if (code != MPI_SUCCESS) return code;
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) *who |= (int64_t)1 << all[i];
    for (int i = 1; i < size; i++) CHECK(all[i] > all[i - 1]);
    CHECK(*who >> me & 1);
    return code;
}

static int reduce_later(int64_t *who)
{
    MPI_Request request;
    fill(1000);
    int code = MPI_Iallreduce(data, result, 1000, MPI_INT64_T, MPI_SUM, comm,
                              &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    check_sum(result, 1000);
    *who = result[0];
    return code;
}

/* Runs one collective; `who` gets its contributors if the result has them. */
static int act(int step, int64_t *who)
{
    int rank, value = -1, code;
    *who = 0;
    switch (step % KINDS) {
    case 0:
        return reduce_all(1, MPI_SUM, 0, who);
    case 1:
        return reduce_all(1000, MPI_SUM, 1, who);
    case 2:
        return reduce_all(LONG, MPI_SUM, step % 2, who);
    case 3:
        return reduce_all(300, add, 0, who);
    case 4:
        return gather_all(who);
    case 5:
        MPI_Comm_rank(comm, &rank);
        if (rank == 0) value = step;
        code = MPI_Bcast(&value, 1, MPI_INT, 0, comm);
        if (code == MPI_SUCCESS) CHECK(value == step);
        return code;
    case 6:
        fill(1000);
        code = MPI_Reduce(data, result, 1000, MPI_INT64_T, MPI_SUM, 0, comm);
        if (code == MPI_SUCCESS && me == 0) check_sum(result, 1000);
        return code;
    case 7:
        return reduce_later(who);
    default:
        return MPI_Barrier(comm);
    }
}

/* The step is complete when all ranks agree; otherwise the remaining ranks
 * repeat it. */
static int settle(int code)
{
    MPI_Comm next;
    int flag = code == MPI_SUCCESS;
    CHECK(code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED ||
          code == MPIX_ERR_REVOKED);
    if (code != MPI_SUCCESS) OK(MPIX_Comm_revoke(comm));
    int agreed = MPIX_Comm_agree(comm, &flag);
    CHECK(agreed == MPI_SUCCESS || agreed == MPIX_ERR_PROC_FAILED);
    if (flag && agreed == MPI_SUCCESS) return 1;
    OK(MPIX_Comm_shrink(comm, &next));
    if (comm != MPI_COMM_WORLD) OK(MPI_Comm_free(&comm));
    comm = next;
    return flag;
}

int main(int argc, char **argv)
{
    int ulfm = argc > 1 && strcmp(argv[1], "ulfm") == 0;
    int seed = argc > 2 ? atoi(argv[2]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Op_create(user_add, 1, &add);
    if (ulfm) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    comm = MPI_COMM_WORLD;
    set_timer(seed);
    struct timeval start, now;
    gettimeofday(&start, NULL);
    int more = 1;
    for (int step = 0; more || step < STEPS; step++) {
        int64_t who;
        int code, over;
        do {
            code = act(step, &who);
            if (!ulfm) OK(code);
            over = ulfm ? settle(code) : 1;
        } while (!over);
        history = mix(history, (uint64_t)who);
        /* Rank 0 continues until all timers have expired. */
        gettimeofday(&now, NULL);
        int mine = me == 0 && now.tv_sec - start.tv_sec < 1, all = 0;
        do {
            all = mine;
            code = MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, comm);
            if (!ulfm) OK(code);
            over = ulfm ? settle(code) : 1;
        } while (!over);
        more = all;
    }
    uint64_t low = history, high = history;
    OK(MPI_Allreduce(MPI_IN_PLACE, &low, 1, MPI_UINT64_T, MPI_MIN, comm));
    OK(MPI_Allreduce(MPI_IN_PLACE, &high, 1, MPI_UINT64_T, MPI_MAX, comm));
    CHECK(low == high);
    MPI_Op_free(&add);
    MPI_Finalize();
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
