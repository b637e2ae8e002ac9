/* mpi_icoll.c - tests nonblocking collectives: several in flight, completed in
 * another order by every completion call. */
#include "conform.h"

static int rank, size;

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

enum { KINDS = 16 };

/* Completion calls on lists of inactive requests. */
static void test_inactive(int k, MPI_Request *requests)
{
    int index, flag = 0, count = 0, indices[KINDS];
    OK(MPI_Waitsome(k, requests, &count, indices, MPI_STATUSES_IGNORE));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Testall(k, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag);
    OK(MPI_Testany(k, requests, &index, &flag, MPI_STATUS_IGNORE));
    CHECK(flag && index == MPI_UNDEFINED);
}

static void test_all(void)
{
    MPI_Request requests[KINDS];
    size_t n = (size_t)size;
    int one = rank + 1, sum = 0, max = 0, scan = 0, exscan = -1, from = 0;
    int part = 0, block = 0, user = 0, root = size - 1;
    int *gathered = calloc(n, sizeof(int)), *all = calloc(n, sizeof(int));
    int *out = calloc(n, sizeof(int)), *in = calloc(n, sizeof(int));
    int *ones = calloc(n, sizeof(int)), *places = calloc(n, sizeof(int));
    int *in2 = calloc(n, sizeof(int)), *all2 = calloc(n, sizeof(int));
    MPI_Op op;
    for (int i = 0; i < size; i++) {
        out[i] = 10 * rank + i;
        ones[i] = 1;
        places[i] = i;
    }
    if (rank == root) from = 42;
    OK(MPI_Op_create(add, 1, &op));
    int k = 0;
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                      &requests[k++]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ireduce(&one, &max, 1, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD,
                   &requests[k++]));
    OK(MPI_Ibcast(&from, 1, MPI_INT, root, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Igather(&one, 1, MPI_INT, gathered, 1, MPI_INT, root, MPI_COMM_WORLD,
                   &requests[k++]));
    OK(MPI_Iallgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD,
                      &requests[k++]));
    OK(MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD,
                     &requests[k++]));
    OK(MPI_Iscan(&one, &scan, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                 &requests[k++]));
    OK(MPI_Iexscan(&one, &exscan, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                   &requests[k++]));
    OK(MPI_Ireduce_scatter(out, &part, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                           &requests[k++]));
    OK(MPI_Ireduce_scatter_block(out, &block, 1, MPI_INT, MPI_SUM,
                                 MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Iallreduce(&one, &user, 1, MPI_INT, op, MPI_COMM_WORLD,
                      &requests[k++]));
    OK(MPI_Ialltoallv(out, ones, places, MPI_INT, in2, ones, places, MPI_INT,
                      MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Iallgatherv(&one, 1, MPI_INT, all2, ones, places, MPI_INT,
                       MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Op_free(&op)); /* lives until its last use */
    int index, flag = 0, count = 0, indices[KINDS];
    OK(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
    CHECK(from == 42 && requests[3] == MPI_REQUEST_NULL);
    while (!flag) OK(MPI_Test(&requests[5], &flag, MPI_STATUS_IGNORE));
    for (int r = 0; r < size; r++) CHECK(all[r] == r + 1);
    OK(MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index >= 0 && index < 3 && requests[index] == MPI_REQUEST_NULL);
    OK(MPI_Waitsome(k, requests, &count, indices, MPI_STATUSES_IGNORE));
    CHECK(count > 0);
    OK(MPI_Waitall(k, requests, MPI_STATUSES_IGNORE));
    int total = size * (size + 1) / 2, cross = 10 * size * (size - 1) / 2;
    CHECK(sum == total && user == total);
    if (rank == root) CHECK(max == size && gathered[rank] == rank + 1);
    for (int r = 0; r < size; r++)
        CHECK(in[r] == 10 * r + rank && in2[r] == in[r] && all2[r] == r + 1);
    CHECK(scan == (rank + 1) * (rank + 2) / 2);
    if (rank > 0) CHECK(exscan == rank * (rank + 1) / 2);
    CHECK(part == cross + size * rank && block == part);
    test_inactive(k, requests);
    free(gathered);
    free(all);
    free(out);
    free(in);
    free(ones);
    free(places);
    free(in2);
    free(all2);
}

/* The ranks complete them in opposite orders, with a blocking one in
 * between. */
static void test_orders(void)
{
    enum { COUNT = 20 };
    MPI_Request requests[COUNT];
    int values[COUNT], sums[COUNT], sum = 0;
    for (int i = 0; i < COUNT; i++) {
        values[i] = rank + i;
        OK(MPI_Iallreduce(&values[i], &sums[i], 1, MPI_INT, MPI_SUM,
                          MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * (size - 1) / 2);
    for (int i = 0; i < COUNT; i++) {
        int at = rank % 2 ? COUNT - 1 - i : i;
        OK(MPI_Wait(&requests[at], MPI_STATUS_IGNORE));
        CHECK(sums[at] == sum + size * at);
    }
}

/* Started repeatedly, with a blocking one in between. MPICH 4.0.2 gathers the
 * input from the creation of the request, so the input does not change here. */
static void test_persistent(void)
{
    enum { KINDS = 6, ROUNDS = 5 };
    MPI_Request requests[KINDS];
    size_t n = (size_t)size;
    int mine, sum, from, before, k = 0, part = 0;
    int *all = calloc(n, sizeof(int)), *out = calloc(n, sizeof(int));
    int *in = calloc(n, sizeof(int));
    OK(MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &requests[k++]));
    OK(MPI_Bcast_init(&from, 1, MPI_INT, size - 1, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &requests[k++]));
    OK(MPI_Allgather_init(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &requests[k++]));
    OK(MPI_Alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD,
                         MPI_INFO_NULL, &requests[k++]));
    OK(MPI_Reduce_scatter_block_init(out, &part, 1, MPI_INT, MPI_MAX,
                                     MPI_COMM_WORLD, MPI_INFO_NULL,
                                     &requests[k++]));
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k++]));
    for (int round = 0; round < ROUNDS; round++) {
        mine = rank * (round + 1);
        from = rank == size - 1 ? round : -1;
        for (int i = 0; i < size; i++) out[i] = 100 * round + 10 * rank + i;
        OK(MPI_Startall(k, requests));
        OK(MPI_Allreduce(&rank, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        OK(MPI_Waitall(k, requests, MPI_STATUSES_IGNORE));
        CHECK(sum == before * (round + 1) && from == round);
        for (int i = 0; i < size; i++)
            CHECK(all[i] == i && in[i] == 100 * round + 10 * i + rank);
        CHECK(part == 100 * round + 10 * (size - 1) + rank);
    }
    for (int i = 0; i < k; i++) {
        CHECK(requests[i] != MPI_REQUEST_NULL);
        OK(MPI_Request_free(&requests[i]));
    }
    free(all);
    free(out);
    free(in);
}

/* Two duplicates in progress are independent communicators. */
static void test_idup(void)
{
    MPI_Comm dups[2], half, other;
    MPI_Request requests[4];
    int sums[2];
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &dups[0], &requests[0]));
    OK(MPI_Comm_idup(half, &other, &requests[1]));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &dups[1], &requests[2]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; i++) {
        int order = rank % 2 ? 1 - i : i, value = rank * (order + 1);
        OK(MPI_Iallreduce(MPI_IN_PLACE, (sums[order] = value, &sums[order]), 1,
                          MPI_INT, MPI_SUM, dups[order], &requests[order]));
    }
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; i++) {
        CHECK(sums[i] == (i + 1) * size * (size - 1) / 2);
        int same = -1;
        OK(MPI_Comm_compare(dups[i], MPI_COMM_WORLD, &same));
        CHECK(same == MPI_CONGRUENT);
        OK(MPI_Comm_free(&dups[i]));
    }
    OK(MPI_Barrier(other));
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_all();
    test_orders();
    test_persistent();
    test_idup();
    return conform_end();
}
