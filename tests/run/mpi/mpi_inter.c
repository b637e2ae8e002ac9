/* mpi_inter.c - tests intercommunicators between even and odd ranks and between
 * uneven halves: messages, collectives, derived communicators. */
#include "conform.h"

enum { COUNT = 5, RANKS_MAX = 16, LARGE = 100000 };

static int rank, size;          /* of the world */
static int mine, others, place; /* sizes of the groups, rank in this one */
static int side;                /* this process's group */
static MPI_Comm half, inter;

/* Item i of a process on a side. */
static int item(int of_side, int of_rank, int i)
{
    return of_side * 100000 + of_rank * 1000 + i;
}

static void test_groups(void)
{
    MPI_Group local, remote, both, world;
    int flag = 0, count = 0, relation;
    OK(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag);
    OK(MPI_Comm_test_inter(half, &flag));
    CHECK(!flag);
    OK(MPI_Comm_size(inter, &count));
    CHECK(count == mine);
    OK(MPI_Comm_rank(inter, &count));
    CHECK(count == place);
    OK(MPI_Comm_remote_size(inter, &count));
    CHECK(count == others);
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Comm_remote_group(inter, &remote));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_union(local, remote, &both));
    OK(MPI_Group_compare(both, world, &relation));
    CHECK(relation == MPI_SIMILAR || relation == MPI_IDENT);
    OK(MPI_Comm_compare(inter, half, &relation));
    CHECK(relation == MPI_UNEQUAL);
    MPI_Group_free(&local);
    MPI_Group_free(&remote);
    MPI_Group_free(&both);
    MPI_Group_free(&world);
}

/* Every process with every process of the other side. */
static void test_messages(MPI_Comm comm)
{
    MPI_Request requests[2 * RANKS_MAX];
    MPI_Status statuses[2 * RANKS_MAX];
    int out[RANKS_MAX], in[RANKS_MAX], used = 0;
    for (int r = 0; r < others; r++) {
        out[r] = item(side, place, r);
        OK(MPI_Irecv(&in[r], 1, MPI_INT, r, 7, comm, &requests[used++]));
    }
    for (int r = 0; r < others; r++)
        OK(MPI_Isend(&out[r], 1, MPI_INT, r, 7, comm, &requests[used++]));
    OK(MPI_Waitall(used, requests, statuses));
    for (int r = 0; r < others; r++) {
        CHECK(in[r] == item(!side, r, place));
        CHECK(statuses[r].MPI_SOURCE == r);
    }
    /* from any source, and a long one */
    static int big[2][LARGE];
    for (int i = 0; i < LARGE; i++) big[0][i] = item(side, place, i % 999);
    for (int r = 0; r < others; r++)
        OK(MPI_Isend(big[0], LARGE, MPI_INT, r, 8, comm, &requests[r]));
    for (int k = 0; k < others; k++) {
        MPI_Status status;
        OK(MPI_Probe(MPI_ANY_SOURCE, 8, comm, &status));
        CHECK(status.MPI_SOURCE >= 0 && status.MPI_SOURCE < others);
        OK(MPI_Recv(big[1], LARGE, MPI_INT, status.MPI_SOURCE, 8, comm,
                    &status));
        CHECK(big[1][LARGE - 1] ==
              item(!side, status.MPI_SOURCE, (LARGE - 1) % 999));
    }
    OK(MPI_Waitall(others, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Send(&mine, 1, MPI_INT, MPI_PROC_NULL, 0, comm));
    FAILS(MPI_ERR_RANK, MPI_Send(&mine, 1, MPI_INT, others, 0, comm));
}

/* The root argument of a rooted collective: rank `root` of side `from`. */
static int root_for(int from, int root)
{
    if (side != from) return root;
    return place == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void test_rooted(MPI_Comm comm, int from, int root)
{
    int is_root = side == from && place == root, arg = root_for(from, root);
    int buffer[COUNT], all[RANKS_MAX * COUNT];
    for (int i = 0; i < COUNT; i++) buffer[i] = is_root ? 77 + i : -1;
    OK(MPI_Bcast(buffer, COUNT, MPI_INT, arg, comm));
    for (int i = 0; i < COUNT; i++)
        CHECK(buffer[i] == (is_root || side != from ? 77 + i : -1));

    for (int i = 0; i < COUNT; i++) buffer[i] = item(side, place, i);
    memset(all, -1, sizeof all);
    OK(MPI_Gather(buffer, COUNT, MPI_INT, all, COUNT, MPI_INT, arg, comm));
    for (int r = 0; is_root && r < others; r++)
        for (int i = 0; i < COUNT; i++)
            CHECK(all[r * COUNT + i] == item(!side, r, i));
    CHECK(is_root || all[0] == -1);

    int counts[RANKS_MAX], displs[RANKS_MAX];
    for (int r = 0; r < RANKS_MAX; r++) {
        counts[r] = r % COUNT + 1;
        displs[r] = (RANKS_MAX - 1 - r) * COUNT;
    }
    memset(all, -1, sizeof all);
    OK(MPI_Gatherv(buffer, counts[place], MPI_INT, all, counts, displs, MPI_INT,
                   arg, comm));
    for (int r = 0; is_root && r < others; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(all[displs[r] + i] == item(!side, r, i));

    for (int i = 0; i < RANKS_MAX * COUNT; i++) all[i] = 3 * i;
    memset(buffer, -1, sizeof buffer);
    OK(MPI_Scatter(all, COUNT, MPI_INT, buffer, COUNT, MPI_INT, arg, comm));
    for (int i = 0; i < COUNT; i++)
        CHECK(buffer[i] == (side != from ? 3 * (place * COUNT + i) : -1));
    memset(buffer, -1, sizeof buffer);
    OK(MPI_Scatterv(all, counts, displs, MPI_INT, buffer, counts[place],
                    MPI_INT, arg, comm));
    for (int i = 0; side != from && i < counts[place]; i++)
        CHECK(buffer[i] == 3 * (displs[place] + i));

    int sum[COUNT], give[COUNT];
    for (int i = 0; i < COUNT; i++) {
        give[i] = place + i + 1;
        sum[i] = -1;
    }
    OK(MPI_Reduce(give, sum, COUNT, MPI_INT, MPI_SUM, arg, comm));
    for (int i = 0; i < COUNT; i++)
        CHECK(sum[i] ==
              (is_root ? others * (others - 1) / 2 + others * (i + 1) : -1));
}

static void test_all(MPI_Comm comm)
{
    int buffer[RANKS_MAX * COUNT], all[RANKS_MAX * COUNT];
    int counts[RANKS_MAX], displs[RANKS_MAX], sends[RANKS_MAX];
    MPI_Request request;
    OK(MPI_Barrier(comm));
    OK(MPI_Ibarrier(comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++) buffer[i] = item(side, place, i);
    memset(all, -1, sizeof all);
    OK(MPI_Allgather(buffer, COUNT, MPI_INT, all, COUNT, MPI_INT, comm));
    for (int r = 0; r < others; r++)
        for (int i = 0; i < COUNT; i++)
            CHECK(all[r * COUNT + i] == item(!side, r, i));
    for (int r = 0; r < RANKS_MAX; r++) {
        counts[r] = r % 2 + 1;
        displs[r] = 2 * r;
        sends[r] = place % 2 + 1;
    }
    memset(all, -1, sizeof all);
    OK(MPI_Iallgatherv(buffer, place % 2 + 1, MPI_INT, all, counts, displs,
                       MPI_INT, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int r = 0; r < others; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(all[2 * r + i] == item(!side, r, i));

    for (int r = 0; r < others; r++)
        for (int i = 0; i < 2; i++)
            buffer[2 * r + i] = item(side, place, 10 * r + i);
    memset(all, -1, sizeof all);
    OK(MPI_Alltoall(buffer, 2, MPI_INT, all, 2, MPI_INT, comm));
    for (int r = 0; r < others; r++)
        for (int i = 0; i < 2; i++)
            CHECK(all[2 * r + i] == item(!side, r, 10 * place + i));
    memset(all, -1, sizeof all);
    OK(MPI_Alltoallv(buffer, sends, displs, MPI_INT, all, counts, displs,
                     MPI_INT, comm));
    for (int r = 0; r < others; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(all[2 * r + i] == item(!side, r, 10 * place + i));
    MPI_Datatype types[RANKS_MAX];
    for (int r = 0; r < RANKS_MAX; r++) {
        types[r] = MPI_INT;
        displs[r] = 2 * r * (int)sizeof(int);
    }
    memset(all, -1, sizeof all);
    OK(MPI_Alltoallw(buffer, sends, displs, types, all, counts, displs, types,
                     comm));
    for (int r = 0; r < others; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(all[2 * r + i] == item(!side, r, 10 * place + i));
}

static void join(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++) b[i] = a[i] * 10 + b[i] % 10;
}

static void test_reductions(MPI_Comm comm)
{
    double give[COUNT], got[COUNT];
    int blocks[RANKS_MAX * RANKS_MAX], kept[RANKS_MAX], counts[RANKS_MAX];
    MPI_Request request;
    for (int i = 0; i < COUNT; i++) give[i] = side * 1000 + place + i;
    OK(MPI_Allreduce(give, got, COUNT, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; i < COUNT; i++)
        CHECK(got[i] ==
              others * (!side * 1000 + i) + others * (others - 1) / 2);
    OK(MPI_Iallreduce(give, got, COUNT, MPI_DOUBLE, MPI_MAX, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++)
        CHECK(got[i] == !side * 1000 + others - 1 + i);
    /* In the order of the ranks. */
    MPI_Op op;
    int digit = place % 10, number = 0, expected = 0;
    OK(MPI_Op_create(join, 0, &op));
    OK(MPI_Allreduce(&digit, &number, 1, MPI_INT, op, comm));
    for (int r = 0; r < others; r++) expected = expected * 10 + r % 10;
    CHECK(others > 2 || number == expected);
    OK(MPI_Op_free(&op));
    /* equal totals: each side keeps mine * others elements */
    int total = mine * others;
    for (int i = 0; i < total; i++) blocks[i] = i + place;
    for (int r = 0; r < mine; r++) counts[r] = others;
    memset(kept, -1, sizeof kept);
    OK(MPI_Reduce_scatter(blocks, kept, counts, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < others; i++)
        CHECK(kept[i] ==
              others * (place * others + i) + others * (others - 1) / 2);
    memset(kept, -1, sizeof kept);
    OK(MPI_Reduce_scatter_block(blocks, kept, others, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < others; i++)
        CHECK(kept[i] ==
              others * (place * others + i) + others * (others - 1) / 2);
    FAILS(MPI_ERR_COMM, MPI_Scan(blocks, kept, 1, MPI_INT, MPI_SUM, comm));
}

static void test_merge(int high_side)
{
    MPI_Comm all;
    int sum = 0, where, first = high_side == 0 ? 1 : 0;
    OK(MPI_Intercomm_merge(inter, side == high_side, &all));
    OK(MPI_Comm_rank(all, &where));
    CHECK(where == (side == first ? place : others + place));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&all));
    OK(MPI_Intercomm_merge(inter, 0, &all));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&all));
}

static void test_made(void)
{
    MPI_Comm made;
    MPI_Group group, part;
    int relation, count, zero = 0;
    OK(MPI_Comm_dup(inter, &made));
    OK(MPI_Comm_compare(inter, made, &relation));
    CHECK(relation == MPI_CONGRUENT);
    test_messages(made);
    test_all(made);
    OK(MPI_Comm_free(&made));
    /* the first process of each side */
    OK(MPI_Comm_group(inter, &group));
    OK(MPI_Group_incl(group, 1, &zero, &part));
    OK(MPI_Comm_create(inter, part, &made));
    CHECK((made == MPI_COMM_NULL) == (place != 0));
    if (made != MPI_COMM_NULL) {
        OK(MPI_Comm_remote_size(made, &count));
        CHECK(count == 1);
        int got = -1;
        OK(MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_SUM, made));
        CHECK(side == 0 ? got > 0 : got == 0);
        OK(MPI_Comm_free(&made));
    }
    MPI_Group_free(&group);
    MPI_Group_free(&part);
    /* by parity of the rank; a color without partners gives MPI_COMM_NULL */
    OK(MPI_Comm_split(inter, place % 2, -place, &made));
    int partners = place % 2 ? others / 2 : (others + 1) / 2;
    CHECK((made == MPI_COMM_NULL) == (partners == 0));
    if (made != MPI_COMM_NULL) {
        OK(MPI_Comm_remote_size(made, &count));
        CHECK(count == partners);
        OK(MPI_Comm_rank(made, &relation));
        OK(MPI_Comm_size(made, &count));
        CHECK(relation == count - 1 - place / 2);
        OK(MPI_Barrier(made));
        OK(MPI_Comm_free(&made));
    }
}

static void test_errors(void)
{
    MPI_Comm made;
    int value = 0;
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, others, inter));
    /* MPICH 4.0.2 fails an assertion there */
    if (!conform_is_mpich())
        FAILS(MPI_ERR_COMM, MPI_Intercomm_merge(half, 0, &made));
    FAILS(MPI_ERR_RANK,
          MPI_Intercomm_create(half, mine, MPI_COMM_WORLD, 0, 3, &made));
}

/* Groups by `rank * 2 < size` or by parity. */
static void with_halves(int parity)
{
    side = parity ? rank % 2 : rank >= (size + 1) / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half));
    OK(MPI_Comm_size(half, &mine));
    OK(MPI_Comm_rank(half, &place));
    others = size - mine;
    int other_first = parity ? !side : side ? 0 : (size + 1) / 2;
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other_first, 11, &inter));
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    test_groups();
    test_messages(inter);
    for (int from = 0; from < 2; from++)
        for (int root = 0; root < (from == side ? mine : others); root++)
            test_rooted(inter, from, root);
    test_all(inter);
    test_reductions(inter);
    test_merge(0);
    test_merge(1);
    test_made();
    test_errors();
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

/* Chains of pairs made of MPI_COMM_SELF, like servers and clients, always with
 * the same tag; and overlapping groups. */
static void test_pairs(void)
{
    MPI_Comm pair;
    MPI_Group world, group;
    for (int r = 1; r < size; r++) {
        if (rank != 0 && rank != r) continue;
        int got = -1, relation;
        OK(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD,
                                rank == 0 ? r : 0, 5, &pair));
        OK(MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_SUM, pair));
        CHECK(got == (rank == 0 ? r : 0));
        OK(MPI_Comm_compare(pair, pair, &relation));
        CHECK(relation == MPI_IDENT);
        OK(MPI_Comm_disconnect(&pair));
    }
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int r = 1; r < size; r++) {
        int both[] = {0, r}, sum = 0;
        if (rank != 0 && rank != r) continue;
        OK(MPI_Group_incl(world, 2, both, &group));
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &pair));
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, pair));
        CHECK(sum == r);
        OK(MPI_Comm_free(&pair));
        OK(MPI_Group_free(&group));
    }
    OK(MPI_Group_free(&world));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (size > 1) {
        with_halves(0);
        with_halves(1);
        test_pairs();
    }
    return conform_end();
}
