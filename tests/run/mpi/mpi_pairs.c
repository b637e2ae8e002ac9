/* mpi_pairs.c - tests MINLOC and MAXLOC on every pair type through every
 * reduction, in place and not, blocking and not; operators on text, logical and
 * complex types; and datatypes or operators that are freed while in use. */
#include "conform.h"

#include <complex.h>

static int rank, size;

enum { COUNT = 5 };

/* Rank r contributes in element i the value (r * 3 + i) % 4 and the index r:
 * ties go to the lowest index. */
#define VALUE(r, i) (((r)*3 + (i)) % 4)

/* The winner among ranks [0, last]. */
static int winner(int i, int last, int largest)
{
    int best = 0;
    for (int r = 1; r <= last; r++) {
        int a = VALUE(r, i), b = VALUE(best, i);
        if (largest ? a > b : a < b) best = r;
    }
    return best;
}

#define PAIR_TEST(type, mpi_type)                                              \
    do {                                                                       \
        struct pair {                                                          \
            type value;                                                        \
            int index;                                                         \
        } in[COUNT * 16], out[COUNT * 16];                                     \
        for (int largest = 0; largest < 2; largest++) {                        \
            MPI_Op op = largest ? MPI_MAXLOC : MPI_MINLOC;                     \
            for (int how = 0; how < 14; how++) {                               \
                int last = size - 1, first = 0, count = COUNT, given = 1;      \
                MPI_Request request = MPI_REQUEST_NULL;                        \
                memset(in, 0x55, sizeof in);                                   \
                memset(out, 0x55, sizeof out);                                 \
                int total = how >= 8 && how < 12 ? COUNT * size : COUNT;       \
                int counts[16];                                                \
                for (int r = 0; r < size; r++) counts[r] = COUNT;              \
                for (int i = 0; i < total; i++) {                              \
                    in[i].value = (type)VALUE(rank, i);                        \
                    in[i].index = rank;                                        \
                }                                                              \
                switch (how) {                                                 \
                case 0:                                                        \
                    OK(MPI_Allreduce(in, out, COUNT, mpi_type, op,             \
                                     MPI_COMM_WORLD));                         \
                    break;                                                     \
                case 1:                                                        \
                    memcpy(out, in, sizeof in);                                \
                    OK(MPI_Allreduce(MPI_IN_PLACE, out, COUNT, mpi_type, op,   \
                                     MPI_COMM_WORLD));                         \
                    break;                                                     \
                case 2:                                                        \
                    OK(MPI_Reduce(in, out, COUNT, mpi_type, op, size - 1,      \
                                  MPI_COMM_WORLD));                            \
                    given = rank == size - 1;                                  \
                    break;                                                     \
                case 3:                                                        \
                    memcpy(out, in, sizeof in);                                \
                    OK(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : in, out, COUNT,   \
                                  mpi_type, op, 0, MPI_COMM_WORLD));           \
                    given = rank == 0;                                         \
                    break;                                                     \
                case 4:                                                        \
                    OK(MPI_Scan(in, out, COUNT, mpi_type, op,                  \
                                MPI_COMM_WORLD));                              \
                    last = rank;                                               \
                    break;                                                     \
                case 5:                                                        \
                    memcpy(out, in, sizeof in);                                \
                    OK(MPI_Scan(MPI_IN_PLACE, out, COUNT, mpi_type, op,        \
                                MPI_COMM_WORLD));                              \
                    last = rank;                                               \
                    break;                                                     \
                case 6:                                                        \
                    OK(MPI_Exscan(in, out, COUNT, mpi_type, op,                \
                                  MPI_COMM_WORLD));                            \
                    last = rank - 1;                                           \
                    given = rank > 0;                                          \
                    break;                                                     \
                case 7:                                                        \
                    memcpy(out, in, sizeof in);                                \
                    OK(MPI_Exscan(MPI_IN_PLACE, out, COUNT, mpi_type, op,      \
                                  MPI_COMM_WORLD));                            \
                    last = rank - 1;                                           \
                    given = rank > 0;                                          \
                    break;                                                     \
                case 8:                                                        \
                    OK(MPI_Reduce_scatter_block(in, out, COUNT, mpi_type, op,  \
                                                MPI_COMM_WORLD));              \
                    first = rank * COUNT;                                      \
                    break;                                                     \
                case 9:                                                        \
                    memcpy(out, in, sizeof in);                                \
                    OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, out, COUNT,      \
                                                mpi_type, op,                  \
                                                MPI_COMM_WORLD));              \
                    first = rank * COUNT;                                      \
                    break;                                                     \
                case 10:                                                       \
                    OK(MPI_Reduce_scatter(in, out, counts, mpi_type, op,       \
                                          MPI_COMM_WORLD));                    \
                    first = rank * COUNT;                                      \
                    break;                                                     \
                case 11:                                                       \
                    OK(MPI_Ireduce_scatter(in, out, counts, mpi_type, op,      \
                                           MPI_COMM_WORLD, &request));         \
                    first = rank * COUNT;                                      \
                    break;                                                     \
                case 12:                                                       \
                    OK(MPI_Iallreduce(in, out, COUNT, mpi_type, op,            \
                                      MPI_COMM_WORLD, &request));              \
                    break;                                                     \
                default:                                                       \
                    memcpy(out, in, sizeof in);                                \
                    in[0].value = (type)9;                                     \
                    OK(MPI_Reduce_local_c(in, out, COUNT, mpi_type, op));      \
                    CHECK(out[0].value ==                                      \
                          (type)(largest ? 9 : VALUE(rank, 0)));               \
                    OK(MPI_Reduce_local(in, out, 1, mpi_type, op));            \
                    given = 0;                                                 \
                }                                                              \
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                     \
                for (int i = 0; given && i < count; i++) {                     \
                    int best = winner(first + i, last, largest);               \
                    CHECK(out[i].index == best);                               \
                    CHECK(out[i].value == (type)VALUE(best, first + i));       \
                }                                                              \
            }                                                                  \
        }                                                                      \
    } while (0)

static void test_pairs(void)
{
    PAIR_TEST(float, MPI_FLOAT_INT);
    PAIR_TEST(double, MPI_DOUBLE_INT);
    PAIR_TEST(long, MPI_LONG_INT);
    PAIR_TEST(short, MPI_SHORT_INT);
    PAIR_TEST(int, MPI_2INT);
    PAIR_TEST(int, MPI_2INTEGER);
    PAIR_TEST(long double, MPI_LONG_DOUBLE_INT);
    /* Fortran's pairs have no integer: the index has the value's type. */
    double in[2] = {VALUE(rank, 0), rank}, out[2];
    OK(MPI_Allreduce(in, out, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC,
                     MPI_COMM_WORLD));
    CHECK(out[1] == winner(0, size - 1, 1));
    float a[2] = {(float)VALUE(rank, 1), (float)rank}, b[2];
    OK(MPI_Allreduce(a, b, 1, MPI_2REAL, MPI_MINLOC, MPI_COMM_WORLD));
    CHECK(b[1] == (float)winner(1, size - 1, 0));
}

#define LOGICAL_TEST(type, mpi_type)                                           \
    do {                                                                       \
        type in[3] = {(type)1, (type)0, (type)(rank == 0)}, out[3];            \
        OK(MPI_Allreduce(in, out, 3, mpi_type, MPI_LAND, MPI_COMM_WORLD));     \
        CHECK(out[0] && !out[1] && !out[2] == (size > 1));                     \
        OK(MPI_Allreduce(in, out, 3, mpi_type, MPI_LOR, MPI_COMM_WORLD));      \
        CHECK(out[0] && !out[1] && out[2]);                                    \
        OK(MPI_Allreduce(in, out, 3, mpi_type, MPI_LXOR, MPI_COMM_WORLD));     \
        CHECK(!out[0] == !(size % 2) && !out[1] && out[2]);                    \
    } while (0)

#define BITS_TEST(type, mpi_type)                                              \
    do {                                                                       \
        type in[2] = {(type)(1u << rank % 7), (type) ~(type)(1u << rank % 7)}, \
             out[2];                                                           \
        type all = 0;                                                          \
        for (int r = 0; r < size; r++) all |= (type)(1u << r % 7);             \
        OK(MPI_Allreduce(in, out, 2, mpi_type, MPI_BOR, MPI_COMM_WORLD));      \
        CHECK(out[0] == all);                                                  \
        OK(MPI_Allreduce(in, out, 2, mpi_type, MPI_BAND, MPI_COMM_WORLD));     \
        CHECK(out[1] == (type)~all);                                           \
        OK(MPI_Allreduce(in, out, 1, mpi_type, MPI_BXOR, MPI_COMM_WORLD));     \
        CHECK(size > 7 || out[0] == all);                                      \
    } while (0)

#define COMPLEX_TEST(type, mpi_type)                                           \
    do {                                                                       \
        type in = rank + 1 + I * (rank + 2), out, sum = 0, product = 1;        \
        for (int r = 0; r < size; r++) {                                       \
            sum += r + 1 + I * (r + 2);                                        \
            product *= r + 1 + I * (r + 2);                                    \
        }                                                                      \
        OK(MPI_Allreduce(&in, &out, 1, mpi_type, MPI_SUM, MPI_COMM_WORLD));    \
        CHECK(out == sum);                                                     \
        OK(MPI_Allreduce(&in, &out, 1, mpi_type, MPI_PROD, MPI_COMM_WORLD));   \
        CHECK(cabsl((long double complex)(out - product)) <                    \
              1e-3L * cabsl((long double complex)product));                    \
    } while (0)

static void test_others(void)
{
    LOGICAL_TEST(int, MPI_INT);
    LOGICAL_TEST(short, MPI_SHORT);
    LOGICAL_TEST(long, MPI_LONG);
    LOGICAL_TEST(unsigned char, MPI_UNSIGNED_CHAR);
    LOGICAL_TEST(_Bool, MPI_C_BOOL);
    LOGICAL_TEST(int, MPI_LOGICAL);
    BITS_TEST(unsigned char, MPI_BYTE);
    BITS_TEST(unsigned short, MPI_UNSIGNED_SHORT);
    BITS_TEST(unsigned, MPI_UNSIGNED);
    BITS_TEST(unsigned long, MPI_UNSIGNED_LONG);
    BITS_TEST(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    BITS_TEST(unsigned, MPI_INTEGER);
    COMPLEX_TEST(float complex, MPI_C_FLOAT_COMPLEX);
    COMPLEX_TEST(double complex, MPI_C_DOUBLE_COMPLEX);
    COMPLEX_TEST(long double complex, MPI_C_LONG_DOUBLE_COMPLEX);
    COMPLEX_TEST(double complex, MPI_DOUBLE_COMPLEX);
    long double in = rank + 0.5L, out;
    OK(MPI_Allreduce(&in, &out, 1, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    CHECK(out == size - 0.5L);
    OK(MPI_Allreduce(&in, &out, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(out == size * size / 2.0L);
}

static void add_extent(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint low, extent;
    int bytes = 0;
    OK(MPI_Type_get_extent(*type, &low, &extent));
    OK(MPI_Type_size(*type, &bytes));
    CHECK(bytes == 4 && extent == 12);
    for (int i = 0; i < *count; i++)
        *(int *)((char *)inout + i * extent) +=
            *(int *)((char *)in + i * extent);
}

static void add_many(void *in, void *inout, MPI_Count *count,
                     MPI_Datatype *type)
{
    (void)type;
    for (MPI_Count i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

/* Freed objects live until their last use, and the operator gets the type. */
static void test_freed(void)
{
    MPI_Datatype type;
    MPI_Op op;
    MPI_Request request;
    int in[30], out[30], sum;
    for (int i = 0; i < 30; i++) {
        in[i] = rank + i;
        out[i] = -1;
    }
    OK(MPI_Type_create_resized(MPI_INT, 0, 12, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add_extent, 1, &op));
    OK(MPI_Iallreduce(in, out, 10, type, op, MPI_COMM_WORLD, &request));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 30; i++)
        CHECK(out[i] == (i % 3 ? -1 : size * i + size * (size - 1) / 2));
    OK(MPI_Op_create_c(add_many, 1, &op));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Op_free(&op));
    /* the same for a message */
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request requests[2];
    OK(MPI_Type_vector(10, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Irecv(out, 1, type, from, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Type_free(&type));
    OK(MPI_Isend(in, 10, MPI_INT, to, 0, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 10; i++) CHECK(out[2 * i] == from + i);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_pairs();
    test_others();
    test_freed();
    return conform_end();
}
