/* icoll.c - nonblocking collectives, several in flight, completed in another
 * order, by every way of completing. */
#include "conform.h"

static int rank, size;

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void test_all(void)
{
    enum { KINDS = 16 };
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
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ireduce(&one, &max, 1, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ibcast(&from, 1, MPI_INT, root, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Igather(&one, 1, MPI_INT, gathered, 1, MPI_INT, root, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Iallgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Iscan(&one, &scan, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Iexscan(&one, &exscan, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ireduce_scatter(out, &part, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ireduce_scatter_block(out, &block, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Iallreduce(&one, &user, 1, MPI_INT, op, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Ialltoallv(out, ones, places, MPI_INT, in2, ones, places, MPI_INT, MPI_COMM_WORLD, &requests[k++]));
    OK(MPI_Iallgatherv(&one, 1, MPI_INT, all2, ones, places, MPI_INT, MPI_COMM_WORLD, &requests[k++]));
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
    OK(MPI_Waitsome(k, requests, &count, indices, MPI_STATUSES_IGNORE));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Testall(k, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag);
    OK(MPI_Testany(k, requests, &index, &flag, MPI_STATUS_IGNORE));
    CHECK(flag && index == MPI_UNDEFINED);
    free(gathered);
    free(all);
    free(out);
    free(in);
    free(ones);
    free(places);
    free(in2);
    free(all2);
}

/* Completed by the ranks in opposite orders, with a blocking one between. */
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

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_all();
    test_orders();
    return conform_end();
}
