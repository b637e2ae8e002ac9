/* mpi_derived.c - tests communicators of all kinds while ranks are killed at
 * any moment.
 *
 *   derived shrink SEED    the library goes on with the survivors
 *                          (PCCL_ON_FAILURE=shrink): all communicators lose the
 *                          same ranks on all who are left, and a grid that lost
 *                          a cell says so
 *   derived ulfm SEED      the program revokes, shrinks and makes all anew
 *
 * Every call ends, its outcome is the same on all survivors, and its result is
 * that of its participants. Rank 0 survives. */
#include "conform.h"

#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

enum { KINDS = 6, STEPS = 60, RANKS_MAX = 16 };

static const char *const names[KINDS] = {"world", "duplicate", "half",
                                         "ring",  "reversed",  "line"};

static int me, total, elastic, step;
static MPI_Comm world, comms[KINDS];

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

/* Two of three ranks die at some time in the first third of a second. */
static void set_timer(int seed)
{
    uint64_t x = mix((uint64_t)seed * 31, (uint64_t)me * 77 + 1);
    if (me == 0 || x % 3 == 0) return;
    struct itimerval timer = {.it_value = {0, 1000 + (int)(x >> 8) % 330000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void blame(const char *what, const char *where, long a, long b)
{
    fprintf(stderr, "rank %d of %d, step %d, %s: %s (%ld, %ld)\n", me, total,
            step, where, what, a, b);
    conform_failures++;
}

static int lost_code(int code)
{
    return code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED;
}

/* ------------------------------------------------------------------- making */

static int make_reversed(MPI_Comm parent, MPI_Comm *out)
{
    MPI_Group all, back;
    int size, ranks[RANKS_MAX];
    MPI_Comm_group(parent, &all);
    MPI_Group_size(all, &size);
    for (int i = 0; i < size; i++) ranks[i] = size - 1 - i;
    MPI_Group_incl(all, size, ranks, &back);
    int code = MPI_Comm_create_group(parent, back, step, out);
    MPI_Group_free(&all);
    MPI_Group_free(&back);
    return code;
}

static int make_line(MPI_Comm parent, MPI_Comm *out)
{
    int size, dims[2] = {0, 0}, periods[2] = {1, 0}, remain[2] = {0, 1};
    MPI_Comm grid = MPI_COMM_NULL;
    MPI_Comm_size(parent, &size);
    MPI_Dims_create(size, 2, dims);
    int code = MPI_Cart_create(parent, 2, dims, periods, 0, &grid);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Cart_sub(grid, remain, out);
    MPI_Comm_free(&grid);
    return code;
}

static int make(int kind, MPI_Comm parent, MPI_Comm *out)
{
    int size, wrap = 1;
    *out = MPI_COMM_NULL;
    MPI_Comm_size(parent, &size);
    if (kind == 1) return MPI_Comm_dup(parent, out);
    if (kind == 2) return MPI_Comm_split(parent, me % 2, me, out);
    if (kind == 3) return MPI_Cart_create(parent, 1, &size, &wrap, 0, out);
    if (kind == 4) return make_reversed(parent, out);
    return make_line(parent, out);
}

/* ------------------------------------------------------------------ checking
 */

/* Checks the current participants, in the order of ranks; ascending or
 * descending. */
static int members_check(int kind, MPI_Comm comm)
{
    int all[RANKS_MAX], size, rank, down = kind == 4;
    all[0] = -1;
    int code = MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, comm);
    if (code != MPI_SUCCESS) return code;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    if (all[rank] != me) blame("not at my rank", names[kind], rank, all[rank]);
    for (int i = 1; i < size; i++)
        if (down ? all[i] >= all[i - 1] : all[i] <= all[i - 1])
            blame("another order", names[kind], all[i - 1], all[i]);
    return code;
}

/* The sum must be that of its contributors, the members at that time. */
static int sum_check(int kind, MPI_Comm comm)
{
    int64_t in[40], out[40], weight = 0, bits = 0;
    int size;
    in[0] = (int64_t)1 << me;
    for (int i = 1; i < 40; i++) in[i] = (int64_t)i * (me + 1);
    int code = MPI_Allreduce(in, out, 40, MPI_INT64_T, MPI_SUM, comm);
    if (code != MPI_SUCCESS) return code;
    for (int r = 0; r < total; r++) {
        if (!(out[0] >> r & 1)) continue;
        weight += r + 1;
        bits++;
    }
    for (int i = 1; i < 40; i++)
        if (out[i] != i * weight) blame("wrong sum", names[kind], out[i], i);
    MPI_Comm_size(comm, &size);
    if (bits != size) blame("other contributors", names[kind], bits, size);
    return code;
}

/* From the last rank, which may die: all receive the data, or all get an
 * error. */
static int root_check(int kind, MPI_Comm comm)
{
    int size, rank, value = -1, after, worst[2];
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    if (rank == size - 1) value = step;
    int code = MPI_Bcast(&value, 1, MPI_INT, size - 1, comm);
    if (code == MPI_SUCCESS && value != step)
        blame("wrong broadcast", names[kind], value, 0);
    if (code != MPI_SUCCESS && !lost_code(code))
        blame("another error", names[kind], code, 0);
    if (!elastic) return code;
    /* compare among the survivors */
    int both[2] = {code, -code};
    after = MPI_Allreduce(both, worst, 2, MPI_INT, MPI_MAX, comm);
    if (after != MPI_SUCCESS) return after;
    if (worst[0] != code || worst[1] != -code)
        blame("outcome not uniform", names[kind], code, worst[0]);
    return MPI_SUCCESS;
}

/* On all members a grid is either complete and works, or has lost a member and
 * fails. */
static void ring_check(MPI_Comm comm)
{
    int from = -5, to = -5, rank, size, in[2] = {-1, -1}, codes[2], worst[2];
    int dims[1], wraps[1], at[1], out = me, low[2];
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    codes[0] = MPI_Cart_shift(comm, 0, 1, &from, &to);
    if (codes[0] == MPI_SUCCESS && to != (rank + 1) % size)
        blame("wrong neighbour", "ring", to, rank);
    int code = MPI_Cart_get(comm, 1, dims, wraps, at);
    if (code != codes[0]) blame("half a grid", "ring", code, codes[0]);
    codes[1] = MPI_Neighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, comm);
    if (codes[0] != MPI_SUCCESS && codes[0] != MPIX_ERR_PROC_FAILED)
        blame("another error", "ring", codes[0], 0);
    if (codes[1] != MPI_SUCCESS && codes[1] != MPIX_ERR_PROC_FAILED)
        blame("another error", "ring", codes[1], 0);
    if (codes[0] != MPI_SUCCESS && codes[1] == MPI_SUCCESS)
        blame("works though broken", "ring", codes[0], 0);
    /* The members agree on the outcome before the exchange, and after it. */
    int negative[2] = {-codes[0], -codes[1]};
    OK(MPI_Allreduce(codes, worst, 2, MPI_INT, MPI_MAX, comm));
    OK(MPI_Allreduce(negative, low, 2, MPI_INT, MPI_MAX, comm));
    if (worst[1] != -low[1])
        blame("outcome not uniform", "ring", worst[1], -low[1]);
    if (worst[0] != -low[0])
        blame("shape not uniform", "ring", worst[0], -low[0]);
}

/* ----------------------------------------------------------------- the runs */

static void run_elastic(int seed)
{
    struct timeval start, now;
    int more = 1;
    for (int k = 1; k < KINDS; k++) OK(make(k, world, &comms[k]));
    OK(MPI_Barrier(world));
    set_timer(seed);
    gettimeofday(&start, NULL);
    for (step = 0; more || step < STEPS; step++) {
        MPI_Comm fresh;
        for (int k = 0; k < KINDS; k++) {
            OK(sum_check(k, comms[k]));
            OK(members_check(k, comms[k]));
            OK(root_check(k, comms[k]));
        }
        ring_check(comms[3]);
        /* made while ranks die; the result works */
        int kind = 1 + step % (KINDS - 1);
        int code = make(kind, world, &fresh);
        if (code == MPI_SUCCESS && fresh != MPI_COMM_NULL) {
            OK(sum_check(kind, fresh));
            OK(members_check(kind, fresh));
            OK(MPI_Comm_free(&fresh));
        } else if (code != MPI_SUCCESS && !lost_code(code) &&
                   conform_class(code) != MPI_ERR_ARG &&
                   conform_class(code) != MPI_ERR_DIMS &&
                   conform_class(code) != MPI_ERR_GROUP) {
            blame("another error", names[kind], code, kind);
        }
        gettimeofday(&now, NULL);
        int mine = me == 0 && now.tv_sec - start.tv_sec < 1;
        OK(MPI_Allreduce(&mine, &more, 1, MPI_INT, MPI_MAX, world));
    }
    for (int k = 1; k < KINDS; k++) OK(MPI_Comm_free(&comms[k]));
}

/* All derived communicators are dropped and made again from the survivors.
 * True: it worked. */
static int rebuild(void)
{
    MPI_Comm next;
    int flag = 1;
    for (int k = 1; k < KINDS; k++) {
        if (comms[k] == MPI_COMM_NULL) continue;
        (void)MPIX_Comm_revoke(comms[k]);
        OK(MPI_Comm_free(&comms[k]));
    }
    OK(MPIX_Comm_revoke(world));
    OK(MPIX_Comm_shrink(world, &next));
    if (world != MPI_COMM_WORLD) OK(MPI_Comm_free(&world));
    world = next;
    for (int k = 1; k < KINDS && flag; k++) {
        int code = make(k, world, &comms[k]);
        if (code == MPI_SUCCESS) continue;
        if (!lost_code(code)) blame("another error", names[k], code, 0);
        flag = 0;
        (void)MPIX_Comm_revoke(world);
    }
    int code = MPIX_Comm_agree(world, &flag);
    if (code != MPI_SUCCESS && code != MPIX_ERR_PROC_FAILED)
        blame("agreement", "world", code, 0);
    return flag && code == MPI_SUCCESS;
}

static void run_ulfm(int seed)
{
    struct timeval start, now;
    int more = 1;
    set_timer(seed);
    for (int k = 0; k < KINDS; k++) comms[k] = MPI_COMM_NULL;
    while (!rebuild()) continue;
    gettimeofday(&start, NULL);
    for (step = 0; more; step++) {
        int flag = 1, code = MPI_SUCCESS, agreed;
        gettimeofday(&now, NULL);
        int mine = me == 0 && now.tv_sec - start.tv_sec < 1;
        comms[0] = world;
        for (int k = 0; k < KINDS && code == MPI_SUCCESS; k++) {
            code = sum_check(k, comms[k]);
            if (code == MPI_SUCCESS) code = members_check(k, comms[k]);
            if (code == MPI_SUCCESS) code = root_check(k, comms[k]);
        }
        int next = 0;
        if (code == MPI_SUCCESS)
            code = MPI_Allreduce(&mine, &next, 1, MPI_INT, MPI_MAX, world);
        if (code != MPI_SUCCESS) {
            if (!lost_code(code)) blame("another error", "step", code, 0);
            flag = 0;
            for (int k = 0; k < KINDS; k++) (void)MPIX_Comm_revoke(comms[k]);
        }
        agreed = MPIX_Comm_agree(world, &flag);
        if (agreed == MPI_SUCCESS && flag) {
            more = next;
            continue;
        }
        while (!rebuild()) continue;
    }
    for (int k = 1; k < KINDS; k++) OK(MPI_Comm_free(&comms[k]));
    if (world != MPI_COMM_WORLD) OK(MPI_Comm_free(&world));
}

int main(int argc, char **argv)
{
    elastic = argc > 1 && strcmp(argv[1], "shrink") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &total);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    comms[0] = world = MPI_COMM_WORLD;
    int seed = argc > 2 ? atoi(argv[2]) : 1;
    if (elastic)
        run_elastic(seed);
    else
        run_ulfm(seed);
    MPI_Finalize();
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
