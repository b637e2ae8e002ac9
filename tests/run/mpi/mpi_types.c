/* mpi_types.c - tests datatypes: sizes, bounds, contents, packing. */
#include "conform.h"

#include <stddef.h>

static void extents(MPI_Datatype type, int size, MPI_Aint lb, MPI_Aint extent,
                    MPI_Aint true_lb, MPI_Aint true_extent)
{
    int n = -1;
    MPI_Aint a = -1, b = -1;
    OK(MPI_Type_size(type, &n));
    CHECK(n == size);
    OK(MPI_Type_get_extent(type, &a, &b));
    CHECK(a == lb && b == extent);
    OK(MPI_Type_get_true_extent(type, &a, &b));
    CHECK(a == true_lb && b == true_extent);
}

static void test_predefined(void)
{
    extents(MPI_CHAR, 1, 0, 1, 0, 1);
    extents(MPI_DOUBLE, 8, 0, 8, 0, 8);
    extents(MPI_LONG_DOUBLE, 16, 0, 16, 0, 16);
    extents(MPI_DOUBLE_INT, 12, 0, 16, 0, 12);
    extents(MPI_SHORT_INT, 6, 0, 8, 0, 8);
    extents(MPI_FLOAT_INT, 8, 0, 8, 0, 8);
    extents(MPI_LONG_DOUBLE_INT, 20, 0, 32, 0, 20);
    extents(MPI_2INT, 8, 0, 8, 0, 8);
    char name[MPI_MAX_OBJECT_NAME];
    int n = 0;
    OK(MPI_Type_get_name(MPI_INT, name, &n));
    CHECK(strcmp(name, "MPI_INT") == 0 && n == 7);
    MPI_Datatype found = MPI_DATATYPE_NULL;
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &found));
    OK(MPI_Type_size(found, &n));
    CHECK(n == 8);
}

static void test_constructors(void)
{
    MPI_Datatype t, u;
    OK(MPI_Type_contiguous(3, MPI_INT, &t));
    extents(t, 12, 0, 12, 0, 12);
    OK(MPI_Type_vector(2, 1, 3, t, &u));
    extents(u, 24, 0, 48, 0, 48);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_free(&u));
    OK(MPI_Type_create_hvector(3, 2, -16, MPI_INT, &t));
    extents(t, 24, -32, 40, -32, 40);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_indexed(2, (int[]){1, 2}, (int[]){4, 1}, MPI_DOUBLE, &t));
    extents(t, 24, 8, 32, 8, 32);
    OK(MPI_Type_create_resized(t, -8, 64, &u));
    extents(u, 24, -8, 64, 8, 32);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_dup(u, &t));
    extents(t, 24, -8, 64, 8, 32);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_free(&u));
    OK(MPI_Type_create_indexed_block(2, 2, (int[]){5, 0}, MPI_SHORT, &t));
    extents(t, 8, 0, 14, 0, 14);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){10, 0}, MPI_CHAR, &t));
    extents(t, 2, 0, 11, 0, 11);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8},
                              (MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR}, &t));
    extents(t, 9, 0, 16, 0, 9);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 2},
                                MPI_ORDER_C, MPI_INT, &t));
    extents(t, 24, 0, 80, 28, 32);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_contiguous(0, MPI_INT, &t));
    extents(t, 0, 0, 0, 0, 0);
    OK(MPI_Type_free(&t));
}

static void test_contents(void)
{
    MPI_Datatype t, back;
    int ints, aints, types, combiner, values[4];
    MPI_Aint places[4];
    OK(MPI_Type_get_envelope(MPI_INT, &ints, &aints, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED);
    OK(MPI_Type_vector(2, 3, 4, MPI_INT, &t));
    OK(MPI_Type_get_envelope(t, &ints, &aints, &types, &combiner));
    CHECK(ints == 3 && aints == 0 && types == 1);
    CHECK(combiner == MPI_COMBINER_VECTOR);
    OK(MPI_Type_get_contents(t, 4, 4, 1, values, places, &back));
    CHECK(values[0] == 2 && values[1] == 3 && values[2] == 4);
    CHECK(back == MPI_INT);
    MPI_Datatype outer;
    OK(MPI_Type_contiguous(2, t, &outer));
    OK(MPI_Type_free(&t));
    OK(MPI_Type_get_contents(outer, 4, 4, 1, values, places, &back));
    extents(back, 24, 0, 28, 0, 28);
    OK(MPI_Type_free(&back));
    OK(MPI_Type_free(&outer));
}

static void test_pack(void)
{
    struct record {
        double value;
        char tag;
        int numbers[3];
    } in[3], out[3];
    MPI_Datatype t;
    char buffer[200];
    int position = 0, size = 0, a = 77, b = 0;
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    for (int i = 0; i < 3; i++) {
        in[i].value = i + 0.5;
        in[i].tag = (char)('a' + i);
        in[i].numbers[0] = i;
        in[i].numbers[2] = -i;
    }
    OK(MPI_Type_create_struct(3, (int[]){1, 1, 3},
                              (MPI_Aint[]){offsetof(struct record, value),
                                           offsetof(struct record, tag),
                                           offsetof(struct record, numbers)},
                              (MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR, MPI_INT},
                              &t));
    OK(MPI_Type_commit(&t));
    OK(MPI_Pack_size(3, t, MPI_COMM_WORLD, &size));
    CHECK(size >= 63 && size <= 200);
    OK(MPI_Pack(&a, 1, MPI_INT, buffer, 200, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(in, 3, t, buffer, 200, &position, MPI_COMM_WORLD));
    CHECK(position >= 67);
    position = 0;
    OK(MPI_Unpack(buffer, 200, &position, &b, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Unpack(buffer, 200, &position, out, 3, t, MPI_COMM_WORLD));
    CHECK(b == 77 && memcmp(in, out, sizeof in) == 0);
    OK(MPI_Type_free(&t));
    MPI_Aint at = 0;
    int number = 0x01020304;
    OK(MPI_Pack_external("external32", &number, 1, MPI_INT, buffer, 200, &at));
    CHECK(at == 4 && buffer[0] == 1 && buffer[3] == 4);
    at = 0;
    OK(MPI_Unpack_external("external32", buffer, 4, &at, &b, 1, MPI_INT));
    CHECK(b == number);
    OK(MPI_Pack_external_size("external32", 3, MPI_DOUBLE, &at));
    CHECK(at == 24);
}

static void test_bottom(void)
{
    int a = 1, b = 2, sum[2] = {0, 0};
    MPI_Aint places[2], low;
    MPI_Datatype t;
    OK(MPI_Get_address(&a, &places[0]));
    OK(MPI_Get_address(&b, &places[1]));
    OK(MPI_Type_create_hindexed(2, (int[]){1, 1}, places, MPI_INT, &t));
    OK(MPI_Type_commit(&t));
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, t, 0, 0, sum, 2, MPI_INT, 0, 0,
                    MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(sum[0] == 1 && sum[1] == 2);
    OK(MPI_Bcast(MPI_BOTTOM, 1, t, 0, MPI_COMM_WORLD));
    OK(MPI_Type_free(&t));
    low = MPI_Aint_diff(places[0], places[1]);
    CHECK(MPI_Aint_add(places[1], low) == places[0]);
}

static void test_elements(void)
{
    MPI_Status status;
    MPI_Datatype t;
    int n = -1;
    memset(&status, 0, sizeof status);
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8},
                              (MPI_Datatype[]){MPI_DOUBLE, MPI_INT}, &t));
    OK(MPI_Type_commit(&t));
    OK(MPI_Status_set_elements(&status, MPI_INT, 5)); /* 20 bytes */
    OK(MPI_Get_count(&status, t, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, t, &n));
    CHECK(n == 3);
    OK(MPI_Status_set_elements(&status, t, 2));
    OK(MPI_Get_count(&status, t, &n));
    CHECK(n == 2);
    OK(MPI_Type_free(&t));
}

/* Every element of a distributed array belongs to exactly one process. */
static void test_darray(int order, const int how[3], const int arguments[3])
{
    enum { X = 7, Y = 5, Z = 4, ALL = X * Y * Z };
    const int sizes[] = {X, Y, Z}, places[] = {2, 3, 1};
    static int owner[ALL], mine[ALL], source[ALL];
    int wrong = 0, total = 0;
    for (int i = 0; i < ALL; i++) {
        owner[i] = 0;
        source[i] = i + 1;
    }
    for (int r = 0; r < 6; r++) {
        MPI_Datatype t;
        int size = 0, position = 0, last = 0;
        MPI_Aint lb = -1, extent = -1;
        OK(MPI_Type_create_darray(6, r, 3, sizes, how, arguments, places, order,
                                  MPI_INT, &t));
        OK(MPI_Type_commit(&t));
        OK(MPI_Type_size(t, &size));
        OK(MPI_Type_get_extent(t, &lb, &extent));
        CHECK(lb == 0 && extent == (MPI_Aint)sizeof owner);
        OK(MPI_Pack(source, 1, t, mine, sizeof mine, &position, MPI_COMM_SELF));
        CHECK(position == size);
        for (int i = 0; i < size / 4; i++) {
            wrong += mine[i] <= last; /* in the order of memory */
            last = mine[i];
            owner[mine[i] - 1]++;
        }
        total += size;
        OK(MPI_Type_free(&t));
    }
    for (int i = 0; i < ALL; i++) wrong += owner[i] != 1;
    CHECK(wrong == 0 && total == (int)sizeof owner);
}

static void test_darrays(void)
{
    const int blocks[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK,
                          MPI_DISTRIBUTE_NONE};
    const int mixed[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK,
                         MPI_DISTRIBUTE_NONE};
    const int none[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG,
                        MPI_DISTRIBUTE_DFLT_DARG};
    const int some[] = {2, 3, MPI_DISTRIBUTE_DFLT_DARG};
    test_darray(MPI_ORDER_C, blocks, none);
    test_darray(MPI_ORDER_FORTRAN, blocks, none);
    test_darray(MPI_ORDER_C, mixed, none);
    test_darray(MPI_ORDER_FORTRAN, mixed, some);
}

static void test_kinds(void)
{
    MPI_Datatype real, again, number;
    int size = 0, ints, aints, types, combiner, contents[2];
    OK(MPI_Type_create_f90_real(12, 100, &real));
    OK(MPI_Type_create_f90_real(12, 100, &again));
    CHECK(real == again);
    OK(MPI_Type_size(real, &size));
    CHECK(size == 8);
    OK(MPI_Type_get_envelope(real, &ints, &aints, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_F90_REAL && ints == 2 && types == 0);
    OK(MPI_Type_get_contents(real, 2, 0, 0, contents, NULL, NULL));
    CHECK(contents[0] == 12 && contents[1] == 100);
    OK(MPI_Type_create_f90_integer(7, &number));
    OK(MPI_Type_size(number, &size));
    CHECK(size == 4);
    double mine[2] = {1.5, 2.5}, sum[2];
    OK(MPI_Allreduce(mine, sum, 2, real, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(sum[0] == 1.5 * size && sum[1] == 2.5 * size);
}

static void test_large(void)
{
    MPI_Datatype t, types[2];
    MPI_Count ints, aints, counts, kinds, list[8], size;
    MPI_Aint addresses[1];
    int combiner, narrow;
    OK(MPI_Type_vector_c(3, 2, 4, MPI_INT, &t));
    extents(t, 24, 0, 40, 0, 40);
    OK(MPI_Type_get_envelope_c(t, &ints, &aints, &counts, &kinds, &combiner));
    CHECK(ints == 0 && aints == 0 && counts == 3 && kinds == 1);
    CHECK(combiner == MPI_COMBINER_VECTOR);
    OK(MPI_Type_get_contents_c(t, 0, 0, 3, 1, &narrow, addresses, list, types));
    CHECK(list[0] == 3 && list[1] == 2 && list[2] == 4 && types[0] == MPI_INT);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_contiguous_c((MPI_Count)3 << 31, MPI_INT, &t));
    OK(MPI_Type_size_c(t, &size));
    CHECK(size == (MPI_Count)12 << 31);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_struct_c(2, (MPI_Count[]){1, 2}, (MPI_Count[]){0, 8},
                                (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE}, &t));
    extents(t, 17, 0, 24, 0, 24);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_subarray_c(2, (MPI_Count[]){4, 6}, (MPI_Count[]){2, 3},
                                  (MPI_Count[]){1, 2}, MPI_ORDER_C, MPI_INT,
                                  &t));
    extents(t, 24, 0, 96, 32, 36);
    OK(MPI_Type_free(&t));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    test_predefined();
    test_constructors();
    test_darrays();
    test_kinds();
    test_large();
    test_contents();
    test_pack();
    test_bottom();
    test_elements();
    return conform_end();
}
