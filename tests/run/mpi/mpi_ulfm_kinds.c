/* mpi_ulfm_kinds.c - User-Level Failure Mitigation on other kinds of
 * communicators: an intercommunicator, a grid, graphs.
 *
 *   ulfm_kinds WHO           WHO dies, and each kind is repaired
 *      last, first           that rank, which leads one of the sides or none
 *      both                  one of each side
 *      side                  all of one side of the intercommunicator
 *   ulfm_kinds during SEED   ranks die while others agree, revoke and shrink
 *
 * Survivors exchange their results, which must be equal. */
#include "conform.h"

#include <mpi_pccl.h>
#include <signal.h>
#include <stdint.h>

enum kind { INTER, GRID, GRAPH, ADJACENT, KINDS };
enum { OUTCOMES_MAX = 200 };

static const char *const names[KINDS] = {"inter", "grid", "graph", "adjacent"};

static int me, total; /* in the world */
static unsigned dead; /* bit set of ranks of the world */
static int outcomes[OUTCOMES_MAX], outcome_count;

static void record(int outcome)
{
    if (outcome_count < OUTCOMES_MAX) outcomes[outcome_count++] = outcome;
}

static int high_side(int rank, int size)
{
    return rank >= size / 2;
}

static int make_inter(MPI_Comm base, MPI_Comm *out)
{
    MPI_Comm half = MPI_COMM_NULL;
    int rank, size;
    MPI_Comm_rank(base, &rank);
    MPI_Comm_size(base, &size);
    int high = high_side(rank, size);
    int code = MPI_Comm_split(base, high, rank, &half);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Intercomm_create(half, 0, base, high ? 0 : size / 2, 3, out);
    OK(MPI_Comm_free(&half));
    return code;
}

static int make_graph(MPI_Comm base, MPI_Comm *out)
{
    int size, index[32], edges[64];
    MPI_Comm_size(base, &size);
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    return MPI_Graph_create(base, size, index, edges, 0, out);
}

static int make(enum kind kind, MPI_Comm base, MPI_Comm *out)
{
    int rank, size, dims[2] = {0, 0}, periods[2] = {1, 0};
    *out = MPI_COMM_NULL;
    MPI_Comm_rank(base, &rank);
    MPI_Comm_size(base, &size);
    int ends[2] = {(rank + size - 1) % size, (rank + 1) % size};
    switch (kind) {
    case INTER:
        return make_inter(base, out);
    case GRID:
        MPI_Dims_create(size, 2, dims);
        return MPI_Cart_create(base, 2, dims, periods, 0, out);
    case GRAPH:
        return make_graph(base, out);
    default:
        return MPI_Dist_graph_create_adjacent(base, 2, ends, MPI_UNWEIGHTED, 2,
                                              ends, MPI_UNWEIGHTED,
                                              MPI_INFO_NULL, 0, out);
    }
}

static int sum_over(MPI_Comm comm, int mine, int *sum)
{
    *sum = -1;
    return MPI_Allreduce(&mine, sum, 1, MPI_INT, MPI_SUM, comm);
}

/* The living peers that ranks in comm refer to, as bits: the other side of an
 * intercommunicator. */
static unsigned peers_left(enum kind kind)
{
    unsigned left = 0;
    for (int i = 0; i < total; i++)
        if (kind != INTER || high_side(i, total) != high_side(me, total))
            left |= 1u << i;
    return left & ~dead;
}

static int count(unsigned bits)
{
    return __builtin_popcount(bits);
}

static void check_group(MPI_Group group, unsigned wanted)
{
    MPI_Group world;
    int size, place, rank;
    unsigned got = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(group, &size);
    for (place = 0; place < size; place++) {
        MPI_Group_translate_ranks(group, 1, &place, world, &rank);
        if (rank != MPI_UNDEFINED) got |= 1u << rank;
    }
    CHECK(size == count(wanted) && got == wanted);
    OK(MPI_Group_free(&world));
}

static void check_failed(MPI_Comm comm, unsigned failed, unsigned acknowledged)
{
    MPI_Group group;
    OK(MPIX_Comm_get_failed(comm, &group));
    check_group(group, failed);
    if (group != MPI_GROUP_EMPTY) OK(MPI_Group_free(&group));
    OK(MPIX_Comm_failure_get_acked(comm, &group));
    check_group(group, acknowledged);
    if (group != MPI_GROUP_EMPTY) OK(MPI_Group_free(&group));
}

/* An agreement in which each clears its own bit. */
static void check_agree(enum kind kind, MPI_Comm comm, int wanted, int later)
{
    int flag = ~(1 << me), code;
    MPI_Request request;
    if (later) {
        code = MPIX_Comm_iagree(comm, &flag, &request);
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        code = MPIX_Comm_agree(comm, &flag);
    }
    code = conform_class(code);
    CHECK(code == wanted);
    CHECK((unsigned)flag == ~peers_left(kind));
    record(code);
    if (kind != INTER) record(flag);
}

/* The remaining members of the kind, in a working communicator. */
static void check_shrunk(enum kind kind, MPI_Comm next)
{
    unsigned peers = peers_left(kind);
    int inter = -1, topology = 0, size = -1, rank, sum, got = -1, to = -1;
    OK(MPI_Comm_test_inter(next, &inter));
    CHECK(inter == (kind == INTER));
    /* A grid that has lost a member is none. */
    OK(MPI_Topo_test(next, &topology));
    CHECK(topology == MPI_UNDEFINED);
    if (inter)
        OK(MPI_Comm_remote_size(next, &size));
    else
        OK(MPI_Comm_size(next, &size));
    CHECK(size == count(peers));
    OK(sum_over(next, 1 << me, &sum));
    CHECK((unsigned)sum == peers);
    record(inter ? 0 : sum);
    /* The first of each side and the last of the other exchange their ranks. */
    MPI_Comm_rank(next, &rank);
    if (rank == 0) to = size - 1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (to >= 0) OK(MPI_Isend(&me, 1, MPI_INT, to, 5, next, &request));
    int own = 0;
    OK(MPI_Comm_size(next, &own));
    if (rank == own - 1) {
        OK(MPI_Recv(&got, 1, MPI_INT, 0, 5, next, MPI_STATUS_IGNORE));
        CHECK(got == __builtin_ctz(peers));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* A survivor revokes while the others wait for a message of a living rank, or
 * for all. */
static void check_revoke(MPI_Comm comm, int broken)
{
    int first = __builtin_ctz(~dead), value, revoked = 0, code = MPI_SUCCESS;
    MPI_Request request;
    /* All have received their messages; a late rank gets the revocation. */
    if (!broken) (void)MPI_Barrier(comm);
    if (me == first)
        OK(MPIX_Comm_revoke(comm));
    else if (!broken && me % 2)
        code = MPI_Recv(&value, 1, MPI_INT, 0, 9, comm, MPI_STATUS_IGNORE);
    else if (!broken)
        code = sum_over(comm, 1, &value);
    if (me != first && !broken) CHECK(conform_class(code) == MPIX_ERR_REVOKED);
    while (!revoked) OK(MPIX_Comm_is_revoked(comm, &revoked));
    FAILS(MPIX_ERR_REVOKED, sum_over(comm, 1, &value));
    FAILS(MPIX_ERR_REVOKED, MPI_Send(&value, 1, MPI_INT, 0, 9, comm));
    code = MPI_Ibarrier(comm, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(conform_class(code) == MPIX_ERR_REVOKED);
}

static void shrink(enum kind kind, MPI_Comm comm, int later)
{
    MPI_Comm next = MPI_COMM_NULL;
    MPI_Request request;
    int code;
    if (later) {
        code = MPIX_Comm_ishrink(comm, &next, &request);
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        code = MPIX_Comm_shrink(comm, &next);
    }
    record(conform_class(code));
    if (peers_left(kind) == 0) {
        CHECK(conform_class(code) == MPIX_ERR_PROC_FAILED);
        CHECK(next == MPI_COMM_NULL);
        return;
    }
    CHECK(code == MPI_SUCCESS);
    if (code != MPI_SUCCESS) return;
    check_shrunk(kind, next);
    check_revoke(next, 0);
    check_agree(kind, next, MPI_SUCCESS, later);
    OK(MPI_Comm_free(&next));
}

static void repair(enum kind kind, MPI_Comm comm)
{
    int sum, acknowledged = -1, in[4], status = -1;
    FAILS(MPIX_ERR_PROC_FAILED, sum_over(comm, 1, &sum));
    if (kind != INTER) {
        FAILS(MPIX_ERR_PROC_FAILED,
              MPI_Neighbor_allgather(&me, 1, MPI_INT, in, 1, MPI_INT, comm));
        OK(MPI_Topo_test(comm, &status));
        CHECK(status == (kind == GRID    ? MPI_CART
                         : kind == GRAPH ? MPI_GRAPH
                                         : MPI_DIST_GRAPH));
    }
    check_agree(kind, comm, MPIX_ERR_PROC_FAILED, 0);
    check_failed(comm, dead, 0);
    if (me % 2) {
        OK(MPIX_Comm_failure_ack(comm));
    } else {
        OK(MPIX_Comm_ack_failed(comm, count(dead), &acknowledged));
        CHECK(acknowledged == count(dead));
    }
    check_failed(comm, dead, dead);
    check_agree(kind, comm, MPI_SUCCESS, 0);
    check_agree(kind, comm, MPI_SUCCESS, 1);
    shrink(kind, comm, 0);
    check_revoke(comm, 1);
    check_agree(kind, comm, MPI_SUCCESS, 0);
    shrink(kind, comm, 1);
}

/* All survivors have recorded the same results. */
static void compare(MPI_Comm *base)
{
    int ends[2 * OUTCOMES_MAX], n = outcome_count, code;
    for (int i = 0; i < n; i++) {
        ends[2 * i] = outcomes[i];
        ends[2 * i + 1] = ~outcomes[i];
    }
    do { /* until no rank dies meanwhile */
        MPI_Comm next;
        int all[2 * OUTCOMES_MAX];
        OK(MPIX_Comm_shrink(*base, &next));
        OK(MPI_Comm_free(base));
        *base = next;
        code = MPI_Allreduce(ends, all, 2 * n, MPI_INT, MPI_MAX, next);
        for (int i = 0; code == MPI_SUCCESS && i < n; i++)
            CHECK(all[2 * i] == ~all[2 * i + 1]);
    } while (code != MPI_SUCCESS);
}

static void victims(const char *who, MPI_Comm *base)
{
    MPI_Comm comms[KINDS];
    for (int k = 0; k < KINDS; k++) OK(make((enum kind)k, *base, &comms[k]));
    if (!strcmp(who, "first") || !strcmp(who, "both")) dead |= 1;
    if (!strcmp(who, "last") || !strcmp(who, "both")) dead |= 1u << (total - 1);
    for (int i = total / 2; i < total && !strcmp(who, "side"); i++)
        dead |= 1u << i;
    OK(MPI_Barrier(*base));
    if (dead >> me & 1) raise(SIGKILL);
    for (int k = 0; k < KINDS; k++) {
        int before = conform_failures;
        repair((enum kind)k, comms[k]);
        if (conform_failures > before)
            fprintf(stderr, "rank %d: it was %s\n", me, names[k]);
        OK(MPI_Comm_free(&comms[k]));
    }
    compare(base);
}

/* --------------------------------------------------------- at any moment */

static uint64_t random_state;

static void die_perhaps(unsigned odds)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    if (me != 1 && (random_state >> 33) % odds == 0) raise(SIGKILL);
}

static int lost_code(int code)
{
    code = conform_class(code);
    return code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED;
}

static void try_all(enum kind kind, MPI_Comm comm, int revokes)
{
    MPI_Comm next = MPI_COMM_NULL;
    int flag = ~(1 << me), code, size = 0, remote = 0;
    die_perhaps(30);
    code = MPIX_Comm_agree(comm, &flag);
    CHECK(lost_code(code));
    record(conform_class(code));
    record(kind == INTER ? 0 : flag);
    die_perhaps(30);
    if (revokes) OK(MPIX_Comm_revoke(comm));
    die_perhaps(30);
    code = MPIX_Comm_shrink(comm, &next);
    CHECK(code == MPI_SUCCESS || (kind == INTER && lost_code(code)));
    record(conform_class(code));
    if (code != MPI_SUCCESS) return;
    MPI_Comm_size(next, &size);
    if (kind == INTER) MPI_Comm_remote_size(next, &remote);
    record(size + remote);
    die_perhaps(30);
    flag = 1;
    code = MPIX_Comm_agree(next, &flag);
    CHECK(lost_code(code) && (flag & 1));
    record(conform_class(code));
    OK(MPI_Comm_free(&next));
}

static void during(int seed, MPI_Comm *base)
{
    random_state = (uint64_t)seed * 7919 + (uint64_t)me * 104729 + 1;
    for (int step = 0; step < 40; step++) {
        MPI_Comm comm;
        enum kind kind = (enum kind)(step % KINDS);
        int size, rank, flag;
        outcome_count = 0;
        MPI_Comm_size(*base, &size);
        MPI_Comm_rank(*base, &rank);
        if (size < 2) break;
        flag = make(kind, *base, &comm) == MPI_SUCCESS;
        /* others may wait for this rank in the call */
        if (!flag) OK(MPIX_Comm_revoke(*base));
        int code = MPIX_Comm_agree(*base, &flag);
        CHECK(lost_code(code));
        record(conform_class(code));
        record(flag);
        if (flag) try_all(kind, comm, rank == step % size);
        if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
        compare(base);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm base;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &total);
    const char *what = argc > 1 ? argv[1] : "last";
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &base));
    if (strcmp(what, "during") == 0)
        during(argc > 2 ? atoi(argv[2]) : 1, &base);
    else
        victims(what, &base);
    OK(MPI_Comm_free(&base));
    MPI_Finalize();
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
