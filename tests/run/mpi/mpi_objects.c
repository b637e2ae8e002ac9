/* mpi_objects.c - tests groups, communicators, attributes, info, error
 * handlers, and Cartesian topologies. */
#include "conform.h"

static int rank, size;

static void test_groups(void)
{
    MPI_Group world, even, odd, both, none, part;
    int count = -1, at = -1, result = -1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_size(world, &count));
    OK(MPI_Group_rank(world, &at));
    CHECK(count == size && at == rank);
    int range[1][3] = {{0, size - 1, 2}};
    OK(MPI_Group_range_incl(world, 1, range, &even));
    OK(MPI_Group_range_excl(world, 1, range, &odd));
    OK(MPI_Group_size(even, &count));
    CHECK(count == (size + 1) / 2);
    OK(MPI_Group_intersection(even, odd, &none));
    CHECK(none == MPI_GROUP_EMPTY);
    OK(MPI_Group_union(odd, even, &both));
    OK(MPI_Group_compare(both, world, &result));
    CHECK(result == (size < 2 ? MPI_IDENT : MPI_SIMILAR));
    OK(MPI_Group_difference(world, odd, &part));
    OK(MPI_Group_compare(part, even, &result));
    CHECK(result == MPI_IDENT);
    int last = size - 1, there = -1;
    OK(MPI_Group_translate_ranks(world, 1, &last, even, &there));
    CHECK(there == (last % 2 ? MPI_UNDEFINED : last / 2));
    int nobody = MPI_PROC_NULL;
    OK(MPI_Group_translate_ranks(world, 1, &nobody, even, &there));
    CHECK(there == MPI_PROC_NULL);
    OK(MPI_Group_compare(world, even, &result));
    CHECK(result == (size == 1 ? MPI_IDENT : MPI_UNEQUAL));
    MPI_Group *all[] = {&world, &even, &odd, &both, &none, &part};
    for (int i = 0; i < 6; i++) OK(MPI_Group_free(all[i]));
    CHECK(world == MPI_GROUP_NULL);
}

static void test_communicators(void)
{
    MPI_Comm dup, split, none, created, shared, subgroup;
    MPI_Group group, half;
    int result = -1, n = -1, r = -1, sum = -1;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, dup, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_compare(dup, dup, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Comm_set_name(dup, "second"));
    OK(MPI_Comm_get_name(dup, name, &n));
    CHECK(strcmp(name, "second") == 0 && n == 6);
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &n));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
    OK(MPI_Comm_split(dup, rank % 2, -rank, &split));
    OK(MPI_Comm_size(split, &n));
    OK(MPI_Comm_rank(split, &r));
    CHECK(n == (rank % 2 ? size / 2 : (size + 1) / 2));
    CHECK(r == n - 1 - rank / 2);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_MAX, split));
    CHECK(sum % 2 == rank % 2 && sum >= size - 2);
    OK(MPI_Comm_split(split, rank, 0, &created));
    OK(MPI_Comm_size(created, &n));
    CHECK(n == 1);
    OK(MPI_Comm_free(&created));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 3 : MPI_UNDEFINED, 0, &none));
    CHECK((none == MPI_COMM_NULL) == (rank != 0));
    if (rank == 0) OK(MPI_Comm_free(&none));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                           MPI_INFO_NULL, &shared));
    OK(MPI_Comm_size(shared, &n));
    CHECK(n >= 1 && n <= size);
    OK(MPI_Comm_free(&shared));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    int range[1][3] = {{0, (size - 1) / 2, 1}};
    OK(MPI_Group_range_incl(group, 1, range, &half));
    OK(MPI_Comm_create(MPI_COMM_WORLD, half, &created));
    int in = rank <= (size - 1) / 2;
    CHECK((created != MPI_COMM_NULL) == in);
    if (in) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, half, 4, &subgroup));
        OK(MPI_Comm_compare(created, subgroup, &result));
        CHECK(result == MPI_CONGRUENT);
        OK(MPI_Bcast(&sum, 1, MPI_INT, 0, subgroup));
        OK(MPI_Barrier(created));
        OK(MPI_Comm_free(&created));
        OK(MPI_Comm_free(&subgroup));
    }
    OK(MPI_Comm_test_inter(dup, &n));
    CHECK(n == 0);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&half));
    OK(MPI_Comm_free(&split));
    OK(MPI_Comm_free(&dup));
    CHECK(dup == MPI_COMM_NULL);
}

static int copies, deletes;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out,
                int *flag)
{
    (void)comm;
    (void)key;
    CHECK(extra == &copies);
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    CHECK(extra == &copies);
    deletes++;
    return MPI_SUCCESS;
}

static void test_attributes(void)
{
    static char data[4];
    int key = 0, plain = 0, flag = -1, *ub = NULL;
    void *value = NULL;
    MPI_Comm dup;
    OK(MPI_Comm_create_keyval(copy, drop, &key, &copies));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
                              &plain, NULL));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, data));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, plain, data));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(flag && value == data);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_get_attr(dup, key, &value, &flag));
    CHECK(flag && value == data + 1 && copies == 1);
    OK(MPI_Comm_get_attr(dup, plain, &value, &flag));
    CHECK(!flag);
    OK(MPI_Comm_set_attr(dup, key, data));
    CHECK(deletes == 1);
    OK(MPI_Comm_free(&dup));
    CHECK(deletes == 2);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CHECK(deletes == 3);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, plain));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_free_keyval(&plain));
    CHECK(key == MPI_KEYVAL_INVALID);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &flag));
    CHECK(flag && *ub >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &ub, &flag));
    CHECK(flag && (*ub == 0 || *ub == 1));
}

static void test_info(void)
{
    MPI_Info info, dup;
    char value[MPI_MAX_INFO_VAL + 1];
    int flag = -1, n = -1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "first", "one"));
    OK(MPI_Info_set(info, "second", "two"));
    OK(MPI_Info_set(info, "first", "eins"));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 2);
    OK(MPI_Info_get(info, "first", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(flag && strcmp(value, "eins") == 0);
    OK(MPI_Info_get(info, "third", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_get_valuelen(info, "second", &n, &flag));
    CHECK(flag && n == 3);
    OK(MPI_Info_get_nthkey(info, 1, value));
    CHECK(strcmp(value, "second") == 0);
    OK(MPI_Info_dup(info, &dup));
    OK(MPI_Info_delete(info, "first"));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 1);
    OK(MPI_Info_get_nkeys(dup, &n));
    CHECK(n == 2);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&dup));
    CHECK(info == MPI_INFO_NULL);
}

static int handled;
static MPI_Comm handled_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    handled = conform_class(*code);
    handled_comm = *comm;
}

static void test_errors(void)
{
    MPI_Errhandler mine, found;
    MPI_Comm dup;
    char text[MPI_MAX_ERROR_STRING];
    int n = 0, x = 0, y = 0, error_class = 0, code = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(dup, mine));
    OK(MPI_Errhandler_free(&mine));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&x, 1, MPI_INT, size, dup));
    CHECK(handled == MPI_ERR_ROOT && handled_comm == dup);
    OK(MPI_Comm_get_errhandler(dup, &found));
    OK(MPI_Errhandler_free(&found));
    OK(MPI_Comm_call_errhandler(dup, MPI_ERR_OTHER));
    CHECK(handled == MPI_ERR_OTHER);
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_COUNT, MPI_Bcast(&x, -1, MPI_INT, 0, dup));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(&x, 1, MPI_DATATYPE_NULL, 0, dup));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_OP_NULL, dup));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&x, &y, 1, MPI_FLOAT, MPI_BAND, dup));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(&x, &x, 1, MPI_INT, MPI_SUM, dup));
    FAILS(MPI_ERR_RANK, MPI_Send(&x, 1, MPI_INT, size, 0, dup));
    FAILS(MPI_ERR_TAG, MPI_Send(&x, 1, MPI_INT, 0, -5, dup));
    MPI_Datatype type;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(&x, 1, type, 0, dup));
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_COMM, MPI_Comm_rank(MPI_COMM_NULL, &x));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Add_error_class(&error_class));
    OK(MPI_Add_error_code(error_class, &code));
    OK(MPI_Add_error_string(code, "our own"));
    CHECK(conform_class(code) == error_class);
    OK(MPI_Error_string(code, text, &n));
    CHECK(strcmp(text, "our own") == 0 && n == 7);
    OK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &n));
    CHECK(n == (int)strlen(text) && n > 0);
}

static void test_dims(void)
{
    static const int cases[][6] = {/* nodes, dims, given, wanted 3 */
                                   {6, 2, 0, 3, 2, 0},  {7, 2, 0, 7, 1, 0},
                                   {12, 3, 0, 3, 2, 2}, {24, 3, 0, 4, 3, 2},
                                   {6, 3, 3, 3, 2, 1},  {16, 2, 0, 4, 4, 0},
                                   {1, 3, 0, 1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int *c = cases[i];
        int dims[3] = {0, 0, 0};
        int at = c[2] ? 1 : 0;
        if (c[2]) dims[1] = c[2];
        OK(MPI_Dims_create(c[0], c[1], dims));
        if (at)
            CHECK(dims[0] == 2 && dims[1] == 3 && dims[2] == 1);
        else
            for (int d = 0; d < c[1]; d++) CHECK(dims[d] == c[3 + d]);
    }
}

static void test_cart(void)
{
    MPI_Comm grid, line;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], n, kind, r;
    OK(MPI_Dims_create(size, 2, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
    OK(MPI_Topo_test(grid, &kind));
    CHECK(kind == MPI_CART);
    OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    CHECK(kind == MPI_UNDEFINED);
    OK(MPI_Cartdim_get(grid, &n));
    CHECK(n == 2);
    OK(MPI_Cart_coords(grid, rank, 2, coords));
    CHECK(coords[0] == rank / dims[1] && coords[1] == rank % dims[1]);
    OK(MPI_Cart_rank(grid, coords, &r));
    CHECK(r == rank);
    int around[2] = {coords[0] + dims[0], coords[1]};
    OK(MPI_Cart_rank(grid, around, &r));
    CHECK(r == rank);
    int source, dest;
    OK(MPI_Cart_shift(grid, 0, 1, &source, &dest));
    CHECK(dest == (coords[0] + 1) % dims[0] * dims[1] + coords[1]);
    OK(MPI_Cart_shift(grid, 1, 1, &source, &dest));
    CHECK(dest == (coords[1] + 1 < dims[1] ? rank + 1 : MPI_PROC_NULL));
    CHECK(source == (coords[1] > 0 ? rank - 1 : MPI_PROC_NULL));
    int got[2], per[2], mine[2];
    OK(MPI_Cart_get(grid, 2, got, per, mine));
    CHECK(got[0] == dims[0] && per[0] == 1 && per[1] == 0);
    CHECK(mine[1] == coords[1]);
    int remain[2] = {0, 1};
    OK(MPI_Cart_sub(grid, remain, &line));
    OK(MPI_Comm_size(line, &n));
    OK(MPI_Comm_rank(line, &r));
    CHECK(n == dims[1] && r == coords[1]);
    OK(MPI_Cartdim_get(line, &n));
    CHECK(n == 1);
    OK(MPI_Comm_free(&line));
    OK(MPI_Comm_free(&grid));
}

static void test_environment(void)
{
    int flag = 0, version = 0, sub = 0, n = 0, level = -1;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    void *memory = NULL;
    OK(MPI_Initialized(&flag));
    CHECK(flag);
    OK(MPI_Finalized(&flag));
    CHECK(!flag);
    OK(MPI_Get_version(&version, &sub));
    /* The library may be of a later version than the header. */
    CHECK(version >= MPI_VERSION && sub >= 0);
    OK(MPI_Get_library_version(text, &n));
    CHECK(n > 0 && n == (int)strlen(text));
    OK(MPI_Get_processor_name(text, &n));
    CHECK(n > 0 && n == (int)strlen(text));
    OK(MPI_Query_thread(&level));
    CHECK(level == MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&flag));
    CHECK(flag);
    double start = MPI_Wtime();
    CHECK(MPI_Wtick() > 0 && MPI_Wtime() >= start);
    OK(MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory));
    memset(memory, 1, 1000);
    OK(MPI_Free_mem(memory));
    CHECK(PMPI_Comm_size(MPI_COMM_WORLD, &n) == MPI_SUCCESS && n == size);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_environment();
    test_groups();
    test_communicators();
    test_attributes();
    test_info();
    test_errors();
    test_dims();
    test_cart();
    return conform_end();
}
