/* mpi_coll.c - tests every blocking collective, for any number of ranks. */
#include "conform.h"

#include <complex.h>
#include <fenv.h>
#include <float.h>

static int rank, size;

static void test_allreduce_types(void)
{
#define TYPE(type, mpi_type)                                                   \
    do {                                                                       \
        type in[3] = {(type)(rank + 1), (type)2, (type)(rank == 0)}, out[3];   \
        OK(MPI_Allreduce(in, out, 3, mpi_type, MPI_SUM, MPI_COMM_WORLD));      \
        CHECK(out[0] == (type)(size * (size + 1) / 2));                        \
        CHECK(out[1] == (type)(2 * size) && out[2] == (type)1);                \
        OK(MPI_Allreduce(in, out, 3, mpi_type, MPI_MAX, MPI_COMM_WORLD));      \
        CHECK(out[0] == (type)size && out[1] == (type)2);                      \
        OK(MPI_Allreduce(in, out, 3, mpi_type, MPI_MIN, MPI_COMM_WORLD));      \
        CHECK(out[0] == (type)1 && out[1] == (type)2);                         \
        CHECK(out[2] == (type)(size == 1));                                    \
        OK(MPI_Allreduce(MPI_IN_PLACE, in, 2, mpi_type, MPI_PROD,              \
                         MPI_COMM_WORLD));                                     \
        type product = 1, power = 1;                                           \
        for (int r = 0; r < size; r++) {                                       \
            product = (type)(product * (type)(r + 1));                         \
            power = (type)(power * (type)2);                                   \
        }                                                                      \
        CHECK(in[0] == product && in[1] == power);                             \
    } while (0)
    TYPE(signed char, MPI_SIGNED_CHAR);
    TYPE(unsigned char, MPI_UNSIGNED_CHAR);
    TYPE(short, MPI_SHORT);
    TYPE(unsigned short, MPI_UNSIGNED_SHORT);
    TYPE(int, MPI_INT);
    TYPE(unsigned, MPI_UNSIGNED);
    TYPE(long, MPI_LONG);
    TYPE(unsigned long, MPI_UNSIGNED_LONG);
    TYPE(long long, MPI_LONG_LONG);
    TYPE(float, MPI_FLOAT);
    TYPE(double, MPI_DOUBLE);
    TYPE(long double, MPI_LONG_DOUBLE);
#undef TYPE
}

static void test_allreduce_operators(void)
{
    int in = rank == 0 ? 0 : 6 + rank % 2, out = -1;
    OK(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    CHECK(out == 0);
    OK(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD));
    CHECK(out == (size > 1));
    OK(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_LXOR, MPI_COMM_WORLD));
    CHECK(out == (size - 1) % 2);
    unsigned bits = 1u << rank % 8, all;
    OK(MPI_Allreduce(&bits, &all, 1, MPI_UNSIGNED, MPI_BOR, MPI_COMM_WORLD));
    CHECK(all == (size >= 8 ? 255u : (1u << size) - 1));
    OK(MPI_Allreduce(&bits, &all, 1, MPI_UNSIGNED, MPI_BAND, MPI_COMM_WORLD));
    CHECK(all == (size == 1 ? 1u : 0u));
    unsigned char byte = 3, sum;
    OK(MPI_Allreduce(&byte, &sum, 1, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD));
    CHECK(sum == (size % 2 ? 3 : 0));
    struct {
        double value;
        int index;
    } pair = {rank % 3, rank}, best;
    OK(MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC,
                     MPI_COMM_WORLD));
    CHECK(best.value == (size > 2 ? 2 : size - 1));
    CHECK(best.index == (size > 2 ? 2 : size - 1));
    OK(MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC,
                     MPI_COMM_WORLD));
    CHECK(best.value == 0 && best.index == 0);
    struct {
        short value;
        int index;
    } small = {5, rank}, least;
    OK(MPI_Allreduce(&small, &least, 1, MPI_SHORT_INT, MPI_MINLOC,
                     MPI_COMM_WORLD));
    CHECK(least.value == 5 && least.index == 0);
    double complex_in[2] = {1, rank}, complex_out[2];
    OK(MPI_Allreduce(complex_in, complex_out, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                     MPI_COMM_WORLD));
    CHECK(complex_out[0] == size && complex_out[1] == size * (size - 1) / 2);
    double unit[2] = {0, 1};
    OK(MPI_Allreduce(unit, complex_out, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD,
                     MPI_COMM_WORLD));
    CHECK(complex_out[0] == (size % 4 == 0) - (size % 4 == 2));
    CHECK(complex_out[1] == (size % 4 == 1) - (size % 4 == 3));
}

/* (a, b) o (c, d) = (a c, a d + b): affine maps; associative, not
 * commutative. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const double *a = in;
    double *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++) {
        double first = a[2 * i] * b[2 * i];
        double second = a[2 * i] * b[2 * i + 1] + a[2 * i + 1];
        b[2 * i] = first;
        b[2 * i + 1] = second;
    }
}

static void expected(int first, int last, double *out)
{
    out[0] = 1;
    out[1] = 0;
    for (int r = last; r >= first; r--) {
        out[1] = 2 * out[1] + r;
        out[0] = 2 * out[0];
    }
}

static void test_user_operator(void)
{
    MPI_Op op;
    MPI_Datatype type;
    int commutes = -1;
    double mine[6], out[6], want[2];
    OK(MPI_Op_create(compose, 0, &op));
    OK(MPI_Op_commutative(op, &commutes));
    CHECK(commutes == 0);
    OK(MPI_Type_contiguous(2, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 3; i++) {
        mine[2 * i] = 2;
        mine[2 * i + 1] = rank;
    }
    OK(MPI_Allreduce(mine, out, 3, type, op, MPI_COMM_WORLD));
    expected(0, size - 1, want);
    for (int i = 0; i < 3; i++)
        CHECK(out[2 * i] == want[0] && out[2 * i + 1] == want[1]);
    OK(MPI_Reduce(mine, out, 3, type, op, size - 1, MPI_COMM_WORLD));
    if (rank == size - 1) CHECK(out[0] == want[0] && out[5] == want[1]);
    OK(MPI_Scan(mine, out, 3, type, op, MPI_COMM_WORLD));
    expected(0, rank, want);
    CHECK(out[0] == want[0] && out[1] == want[1] && out[5] == want[1]);
    out[0] = out[1] = -1;
    OK(MPI_Exscan(mine, out, 3, type, op, MPI_COMM_WORLD));
    expected(0, rank - 1, want);
    if (rank > 0) CHECK(out[0] == want[0] && out[1] == want[1]);
    OK(MPI_Reduce_local(mine, out, 1, type, op));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL && type == MPI_DATATYPE_NULL);
}

static void add_ints(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *count; i++)
        *(int *)((char *)inout + i * extent + 4) +=
            *(int *)((char *)in + i * extent + 4);
}

/* A type with holes in front and behind, in an array too long for one round of
 * the fold. */
static void test_operator_on_holes(void)
{
    enum { COUNT = 300000 };
    MPI_Datatype inner, type;
    MPI_Op op;
    OK(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){4}, MPI_INT,
                                &inner));
    OK(MPI_Type_create_resized(inner, 0, 16, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add_ints, 1, &op));
    int *data = calloc(COUNT, 16);
    for (int i = 0; i < COUNT; i++) {
        data[4 * i] = -7;
        data[4 * i + 1] = i + rank;
    }
    OK(MPI_Allreduce(MPI_IN_PLACE, data, COUNT, type, op, MPI_COMM_WORLD));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        wrong += data[4 * i] != -7 || data[4 * i + 2] != 0;
        wrong += data[4 * i + 1] != size * i + size * (size - 1) / 2;
    }
    CHECK(wrong == 0);
    free(data);
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
}

static void test_rooted(void)
{
    for (int root = 0; root < size; root++) {
        int data[4] = {0, 0, 0, 0}, sum = -1;
        if (rank == root)
            for (int i = 0; i < 4; i++) data[i] = root + i;
        OK(MPI_Bcast(data, 4, MPI_INT, root, MPI_COMM_WORLD));
        CHECK(data[0] == root && data[3] == root + 3);
        OK(MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
        CHECK(sum == (rank == root ? size * (size - 1) / 2 : -1));
        sum = rank;
        OK(MPI_Reduce(rank == root ? MPI_IN_PLACE : &sum,
                      rank == root ? &sum : NULL, 1, MPI_INT, MPI_SUM, root,
                      MPI_COMM_WORLD));
        if (rank == root) CHECK(sum == size * (size - 1) / 2);
        int *all = malloc(sizeof(int) * 2 * (size_t)size);
        int mine[2] = {rank, 10 * rank};
        for (int i = 0; i < 2 * size; i++) all[i] = -1;
        OK(MPI_Gather(mine, 2, MPI_INT, all, 2, MPI_INT, root, MPI_COMM_WORLD));
        for (int r = 0; rank == root && r < size; r++)
            CHECK(all[2 * r] == r && all[2 * r + 1] == 10 * r);
        if (rank != root) CHECK(all[0] == -1);
        for (int i = 0; i < 2 * size; i++) all[i] = rank == root ? i : -1;
        OK(MPI_Scatter(all, 2, MPI_INT, mine, 2, MPI_INT, root,
                       MPI_COMM_WORLD));
        CHECK(mine[0] == 2 * rank && mine[1] == 2 * rank + 1);
        if (rank == root) {
            OK(MPI_Scatter(all, 2, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                           root, MPI_COMM_WORLD));
            OK(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2, MPI_INT,
                          root, MPI_COMM_WORLD));
            for (int r = 0; r < size; r++) CHECK(all[2 * r + 1] == 2 * r + 1);
        } else {
            OK(MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, mine, 2, MPI_INT, root,
                           MPI_COMM_WORLD));
            OK(MPI_Gather(mine, 2, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root,
                          MPI_COMM_WORLD));
        }
        free(all);
    }
}

static void test_allgather(void)
{
    int *all = malloc(sizeof(int) * 3 * (size_t)(size + 1) * (size_t)size);
    int mine[3] = {rank, rank + 1, rank + 2};
    OK(MPI_Allgather(mine, 3, MPI_INT, all, 3, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        CHECK(all[3 * r] == r && all[3 * r + 2] == r + 2);
    for (int i = 0; i < 3 * size; i++) all[i] = i / 3 == rank ? rank : -1;
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 3, MPI_INT,
                     MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) CHECK(all[3 * r + 1] == r);
    /* Rank r contributes r elements, placed from the end with a gap. */
    int *counts = calloc((size_t)size, sizeof(int));
    int *displs = calloc((size_t)size, sizeof(int));
    int total = 0;
    for (int r = size - 1; r >= 0; r--) {
        counts[r] = r;
        displs[r] = total;
        total += r + 1;
    }
    int *part = calloc((size_t)size, sizeof(int));
    for (int i = 0; i < rank; i++) part[i] = 100 * rank + i;
    for (int i = 0; i < total; i++) all[i] = -1;
    OK(MPI_Allgatherv(part, rank, MPI_INT, all, counts, displs, MPI_INT,
                      MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < r; i++) CHECK(all[displs[r] + i] == 100 * r + i);
        CHECK(all[displs[r] + r] == -1);
    }
    for (int i = 0; i < total; i++)
        if (i < displs[rank] || i >= displs[rank] + rank) all[i] = -1;
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displs,
                      MPI_INT, MPI_COMM_WORLD));
    for (int r = 1; r < size; r++) CHECK(all[displs[r]] == 100 * r);
    int root = size / 2;
    for (int i = 0; i < total; i++) all[i] = -1;
    OK(MPI_Gatherv(part, rank, MPI_INT, all, counts, displs, MPI_INT, root,
                   MPI_COMM_WORLD));
    for (int r = 1; rank == root && r < size; r++)
        CHECK(all[displs[r]] == 100 * r && all[displs[r] + r] == -1);
    memset(part, 0, sizeof(int) * (size_t)size);
    OK(MPI_Scatterv(all, counts, displs, MPI_INT, part, rank, MPI_INT, root,
                    MPI_COMM_WORLD));
    for (int i = 0; i < rank; i++) CHECK(part[i] == 100 * rank + i);
    free(part);
    free(counts);
    free(displs);
    free(all);
}

static void test_alltoall(void)
{
    size_t n = (size_t)size;
    int *out = malloc(n * 2 * sizeof(int)), *in = malloc(n * 2 * sizeof(int));
    for (int r = 0; r < size; r++) {
        out[2 * r] = 100 * rank + r;
        out[2 * r + 1] = -r;
    }
    OK(MPI_Alltoall(out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        CHECK(in[2 * r] == 100 * r + rank && in[2 * r + 1] == -rank);
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 2, MPI_INT,
                    MPI_COMM_WORLD));
    CHECK(memcmp(in, out, n * 2 * sizeof(int)) == 0);
    free(out);
    free(in);
    /* r sends r + s elements to s. */
    int *counts = malloc(n * sizeof(int)), *displs = malloc(n * sizeof(int));
    MPI_Datatype *types = malloc(n * sizeof *types);
    int total = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = rank + r;
        displs[r] = total;
        total += rank + r;
        types[r] = MPI_INT;
    }
    out = malloc((size_t)(total + 1) * sizeof(int));
    in = malloc((size_t)(total + 1) * sizeof(int));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            out[displs[r] + i] = 10000 * rank + 100 * r + i;
    OK(MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT,
                     MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(in[displs[r] + i] == 10000 * r + 100 * rank + i);
    for (int r = 0; r < size; r++) displs[r] *= (int)sizeof(int);
    memset(in, 0, (size_t)total * sizeof(int));
    OK(MPI_Alltoallw(out, counts, displs, types, in, counts, displs, types,
                     MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(in[displs[r] / 4 + i] == 10000 * r + 100 * rank + i);
    free(types);
    free(displs);
    free(counts);
    free(out);
    free(in);
}

static void test_scatter_reductions(void)
{
    size_t n = (size_t)size;
    int *counts = malloc(n * sizeof(int));
    int *data = malloc(n * (n + 1) * sizeof(int)),
        *out = malloc(n * sizeof(int) * 2);
    int total = 0, first = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = r;
        if (r < rank) first += r;
        total += r;
    }
    for (int i = 0; i < total; i++) data[i] = i + rank;
    OK(MPI_Reduce_scatter(data, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    int shift = size * (size - 1) / 2;
    for (int i = 0; i < rank; i++) CHECK(out[i] == size * (first + i) + shift);
    OK(MPI_Reduce_scatter(data, out, counts, MPI_INT, MPI_BOR, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, data, counts, MPI_INT, MPI_SUM,
                          MPI_COMM_WORLD));
    for (int i = 0; i < rank; i++) CHECK(data[i] == size * (first + i) + shift);
    for (int i = 0; i < 2 * size; i++) data[i] = i * (rank + 1);
    OK(MPI_Reduce_scatter_block(data, out, 2, MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD));
    int factor = size * (size + 1) / 2;
    CHECK(out[0] == 2 * rank * factor && out[1] == (2 * rank + 1) * factor);
    int sum = -1, mine = rank + 1;
    OK(MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == (rank + 1) * (rank + 2) / 2);
    OK(MPI_Scan(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(mine == sum);
    mine = rank + 1;
    OK(MPI_Exscan(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    if (rank > 0) CHECK(mine == rank);
    free(counts);
    free(data);
    free(out);
}

/* Blocks that no member has to add but its own; one that differs makes it an
 * all-reduce. */
static void scatter_blocks(int count, int odd)
{
    size_t total = (size_t)size * (size_t)count;
    double *data = malloc((total + 1) * sizeof *data);
    double *out = malloc((size_t)(count + 1) * sizeof *out);
    int *counts = malloc((size_t)size * sizeof *counts);
    for (int r = 0; r < size; r++) counts[r] = count;
    counts[size - 1] -= odd;
    double sum = size * (size - 1) / 2.0;
    for (size_t i = 0; i < total; i++) data[i] = (double)(i % 1000) + rank;
    out[counts[rank]] = -1;
    OK(MPI_Reduce_scatter(data, out, counts, MPI_DOUBLE, MPI_SUM,
                          MPI_COMM_WORLD));
    size_t first = (size_t)rank * (size_t)count;
    for (int i = 0; i < counts[rank]; i++)
        CHECK(out[i] == (double)((first + (size_t)i) % 1000) * size + sum);
    CHECK(out[counts[rank]] == -1);
    for (size_t i = 0; i < total; i++)
        CHECK(data[i] == (double)(i % 1000) + rank);
    OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_MAX,
                                MPI_COMM_WORLD));
    for (int i = 0; i < count; i++)
        CHECK(data[i] == (double)((first + (size_t)i) % 1000) + size - 1);
    free(data);
    free(out);
    free(counts);
}

static void test_large_blocks(void)
{
    static const int counts[] = {2047, 2049, 8191, 8193, 40001, 150000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int odd = 0; odd < 2; odd++) scatter_blocks(counts[i], odd);
}

/* The same data through types with holes on one side or both. */
static void test_derived(void)
{
    MPI_Datatype column;
    int matrix[4][5];
    OK(MPI_Type_vector(4, 1, 5, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    for (int i = 0; i < 20; i++) ((int *)matrix)[i] = rank == 0 ? i : -1;
    OK(MPI_Bcast(&matrix[0][2], 1, column, 0, MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++) {
        CHECK(matrix[i][2] == 5 * i + 2);
        if (rank > 0) CHECK(matrix[i][1] == -1);
    }
    int *lines = malloc(sizeof(int) * 4 * (size_t)size);
    OK(MPI_Allgather(&matrix[0][2], 1, column, lines, 4, MPI_INT,
                     MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < 4; i++) CHECK(lines[4 * r + i] == 5 * i + 2);
    for (int i = 0; i < 4 * size; i++) lines[i] = 7 * i;
    OK(MPI_Scatter(lines, 4, MPI_INT, &matrix[0][4], 1, column, 0,
                   MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++) CHECK(matrix[i][4] == 7 * (4 * rank + i));
    OK(MPI_Gather(&matrix[0][4], 1, column, lines, 4, MPI_INT, 0,
                  MPI_COMM_WORLD));
    for (int i = 0; rank == 0 && i < 4 * size; i++) CHECK(lines[i] == 7 * i);
    free(lines);
    OK(MPI_Type_free(&column));
}

/* The last rank rounds upwards: no result may depend on it. MPICH's do. */
static void test_rounding(void)
{
    if (conform_is_mpich()) return;
    volatile long double wide = 1, more = LDBL_EPSILON / 4;
    volatile float complex narrow = 1, less = FLT_EPSILON / 4;
    long double wide_in = rank == 0 ? wide : more / (size + 1), wide_out = 0;
    float complex in = rank == 0 ? narrow : less / (float)(size + 1), out = 0;
    if (rank == size - 1) fesetround(FE_UPWARD);
    OK(MPI_Allreduce(&wide_in, &wide_out, 1, MPI_LONG_DOUBLE, MPI_SUM,
                     MPI_COMM_WORLD));
    OK(MPI_Allreduce(&in, &out, 1, MPI_C_FLOAT_COMPLEX, MPI_SUM,
                     MPI_COMM_WORLD));
    CHECK(wide_out == wide && out == narrow);
    wide_in = more;
    in = less;
    OK(MPI_Reduce_local(&wide_in, &wide_out, 1, MPI_LONG_DOUBLE, MPI_SUM));
    OK(MPI_Reduce_local(&in, &out, 1, MPI_C_FLOAT_COMPLEX, MPI_SUM));
    CHECK(wide_out == wide && out == narrow);
    CHECK(rank < size - 1 || fegetround() == FE_UPWARD);
    fesetround(FE_TONEAREST);
}

static void test_empty(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_SELF));
}

/* A rank that sends itself more than it expects of itself gets an error, also
 * where there is nobody else, and its buffer stays. */
static void test_odd_with_itself(void)
{
    int out[64], in[64], none = 0, few = 4, many = 64;
    MPI_Comm alone;
    if (conform_is_mpich()) return; /* its error is fatal to the request */
    for (int i = 0; i < 64; i++) out[i] = 1, in[i] = 7;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &alone));
    OK(MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_NOT_SAME, MPI_Alltoallv(out, &many, &none, MPI_INT, in, &few,
                                          &none, MPI_INT, alone));
    FAILS(MPI_ERR_NOT_SAME, MPI_Alltoallv(out, &few, &none, MPI_INT, in, &many,
                                          &none, MPI_INT, alone));
    for (int i = 0; i < 64; i++) CHECK(in[i] == 7);
    OK(MPI_Alltoallv(out, &few, &none, MPI_INT, in, &few, &none, MPI_INT,
                     alone));
    for (int i = 0; i < 64; i++) CHECK(in[i] == (i < few ? 1 : 7));
    OK(MPI_Comm_free(&alone));
}

/* The root has counts and a buffer; the others may lack them. */
static void test_no_counts(void)
{
    int root = size / 2, mine = -1, one = 1, none = 0, in = 7;
    MPI_Datatype type = MPI_INT;
    int *all = calloc((size_t)size, sizeof *all);
    int *counts = calloc((size_t)size, sizeof *counts);
    int *displs = calloc((size_t)size, sizeof *displs);
    MPI_Comm alone;
    int have = rank == root;
    for (int r = 0; r < size; r++) counts[r] = 1, displs[r] = size - 1 - r;
    OK(MPI_Gatherv(&rank, 1, MPI_INT, have ? all : NULL, have ? counts : NULL,
                   have ? displs : NULL, MPI_INT, root, MPI_COMM_WORLD));
    for (int r = 0; have && r < size; r++) CHECK(all[r] == size - 1 - r);
    OK(MPI_Scatterv(have ? all : NULL, have ? counts : NULL,
                    have ? displs : NULL, MPI_INT, &mine, 1, MPI_INT, root,
                    MPI_COMM_WORLD));
    CHECK(mine == rank);
    free(all);
    free(counts);
    free(displs);
    if (conform_is_mpich()) return; /* it reads them */
    OK(MPI_Comm_dup(MPI_COMM_SELF, &alone));
    OK(MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_ARG,
          MPI_Gatherv(&mine, 1, MPI_INT, &in, NULL, &one, MPI_INT, 0, alone));
    FAILS(MPI_ERR_ARG,
          MPI_Scatterv(&mine, NULL, &one, MPI_INT, &in, 1, MPI_INT, 0, alone));
    FAILS(MPI_ERR_BUFFER,
          MPI_Gatherv(&mine, 1, MPI_INT, NULL, &one, NULL, MPI_INT, 0, alone));
    FAILS(MPI_ERR_BUFFER, MPI_Scatterv(MPI_IN_PLACE, &one, NULL, MPI_INT, &in,
                                       1, MPI_INT, 0, alone));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(NULL, &one, NULL, MPI_INT, &in, &one,
                                        NULL, MPI_INT, alone));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallw(&mine, &one, &none, &type, MPI_IN_PLACE,
                                        &one, &none, &type, alone));
    CHECK(in == 7);
    OK(MPI_Gatherv(&mine, 1, MPI_INT, &in, &one, NULL, MPI_INT, 0, alone));
    CHECK(in == rank);
    OK(MPI_Comm_free(&alone));
}

/* The same call again and again with other buffers, and now and then one that
 * differs from it. */
static void test_again(void)
{
    MPI_Comm comm;
    int in[2], out[4], sum = size * (size - 1) / 2;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 24; i++) {
        int *from = &in[i % 2], *to = &out[i % 4], root = i / 6 % size;
        *from = rank + i;
        MPI_Allreduce(from, to, 1, MPI_INT, MPI_SUM, comm);
        CHECK(*to == sum + i * size && *from == rank + i);
        if (i % 7 == 3) {
            MPI_Allreduce(from, to, 1, MPI_INT, MPI_MAX, comm);
            CHECK(*to == size - 1 + i);
            MPI_Allreduce(MPI_IN_PLACE, from, 1, MPI_INT, MPI_SUM, comm);
            CHECK(*from == sum + i * size);
        }
        if (i % 7 == 5) {
            int class, error = MPI_Allreduce(to, to, 1, MPI_INT, MPI_SUM, comm);
            MPI_Error_class(error, &class);
            CHECK(class == MPI_ERR_BUFFER);
        }
        if (i % 5 == 4) continue;
        *to = rank == root ? i : -1;
        MPI_Bcast(to, 1, MPI_INT, root, comm);
        CHECK(*to == i);
        MPI_Bcast(to, 1, MPI_INT, root, comm);
        MPI_Bcast(from, 1, MPI_INT, root, comm);
        MPI_Barrier(comm);
        MPI_Barrier(comm);
        for (int k = 0; k < 4; k++) {
            *from = rank + k;
            *to = -1;
            MPI_Reduce(from, rank == root ? to : NULL, 1, MPI_INT, MPI_SUM,
                       root, comm);
            CHECK(*to == (rank == root ? sum + k * size : -1));
        }
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_allreduce_types();
    test_allreduce_operators();
    test_user_operator();
    test_operator_on_holes();
    test_rooted();
    test_allgather();
    test_alltoall();
    test_scatter_reductions();
    test_large_blocks();
    test_derived();
    test_rounding();
    test_empty();
    test_odd_with_itself();
    test_no_counts();
    test_again();
    return conform_end();
}
