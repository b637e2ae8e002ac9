/* mpi_rest.c - tests calls that no other program covers: old names, wide counts
 * of datatypes and packing, wide neighbourhood exchanges, hints, attributes of
 * types, statuses of Fortran. */
#include "conform.h"

/* The standard ABI has their names of MPI 4.1. */
#ifdef MPI_ABI_VERSION
#define MPIX_Delete_error_class MPI_Remove_error_class
#define MPIX_Delete_error_code MPI_Remove_error_code
#define MPIX_Delete_error_string MPI_Remove_error_string
#endif

static int rank, size, mpich;

static void same_type(MPI_Datatype a, MPI_Datatype b)
{
    MPI_Aint la, ea, lb, eb;
    MPI_Count wide_low, wide_extent, bytes;
    int na, nb;
    OK(MPI_Type_size(a, &na));
    OK(MPI_Type_size(b, &nb));
    OK(MPI_Type_get_extent(a, &la, &ea));
    OK(MPI_Type_get_extent(b, &lb, &eb));
    CHECK(na == nb && la == lb && ea == eb);
    OK(MPI_Type_get_extent_c(a, &wide_low, &wide_extent));
    CHECK(wide_low == la && wide_extent == ea);
    OK(MPI_Type_get_true_extent(a, &la, &ea));
    OK(MPI_Type_get_true_extent_c(b, &wide_low, &wide_extent));
    CHECK(wide_low == la && wide_extent == ea);
    OK(MPI_Type_size_c(b, &bytes));
    CHECK(bytes == na);
    OK(MPI_Type_free(&a));
    OK(MPI_Type_free(&b));
}

static void test_wide_types(void)
{
    MPI_Datatype a, b;
    int blocks[] = {2, 1}, steps[] = {3, 0}, sizes[] = {4, 6}, subs[] = {2, 3},
        starts[] = {1, 1};
    MPI_Count wide_blocks[] = {2, 1}, wide_steps[] = {3, 0},
              wide_bytes[] = {24, 0}, wide_sizes[] = {4, 6},
              wide_subs[] = {2, 3}, wide_starts[] = {1, 1};
    MPI_Aint bytes[] = {24, 0};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
#define BOTH(name, narrow, wide)                                               \
    OK(name narrow);                                                           \
    OK(name##_c wide);                                                         \
    same_type(a, b)
    BOTH(MPI_Type_contiguous, (3, MPI_INT, &a), (3, MPI_INT, &b));
    BOTH(MPI_Type_vector, (3, 2, -4, MPI_INT, &a), (3, 2, -4, MPI_INT, &b));
    BOTH(MPI_Type_create_hvector, (3, 2, 40, MPI_INT, &a),
         (3, 2, 40, MPI_INT, &b));
    BOTH(MPI_Type_indexed, (2, blocks, steps, MPI_INT, &a),
         (2, wide_blocks, wide_steps, MPI_INT, &b));
    BOTH(MPI_Type_create_hindexed, (2, blocks, bytes, MPI_INT, &a),
         (2, wide_blocks, wide_bytes, MPI_INT, &b));
    BOTH(MPI_Type_create_indexed_block, (2, 2, steps, MPI_INT, &a),
         (2, 2, wide_steps, MPI_INT, &b));
    BOTH(MPI_Type_create_hindexed_block, (2, 2, bytes, MPI_INT, &a),
         (2, 2, wide_bytes, MPI_INT, &b));
    BOTH(MPI_Type_create_struct, (2, blocks, bytes, types, &a),
         (2, wide_blocks, wide_bytes, types, &b));
    BOTH(MPI_Type_create_resized, (MPI_INT, -8, 32, &a), (MPI_INT, -8, 32, &b));
    BOTH(MPI_Type_create_subarray,
         (2, sizes, subs, starts, MPI_ORDER_C, MPI_INT, &a),
         (2, wide_sizes, wide_subs, wide_starts, MPI_ORDER_C, MPI_INT, &b));
    int how[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
        arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[] = {2, 2};
    BOTH(MPI_Type_create_darray,
         (4, 3, 2, sizes, how, arguments, grid, MPI_ORDER_C, MPI_INT, &a),
         (4, 3, 2, wide_sizes, how, arguments, grid, MPI_ORDER_C, MPI_INT, &b));
}

static void test_packing(void)
{
    int out[6] = {1, 2, 3, 4, 5, 6}, in[6] = {0};
    char room[200];
    MPI_Count at = 0, need = -1;
    OK(MPI_Pack_size_c(6, MPI_INT, MPI_COMM_WORLD, &need));
    CHECK(need >= 24 && need <= 200);
    OK(MPI_Pack_c(out, 6, MPI_INT, room, 200, &at, MPI_COMM_WORLD));
    CHECK(at >= 24 && at <= need);
    at = 0;
    OK(MPI_Unpack_c(room, 200, &at, in, 6, MPI_INT, MPI_COMM_WORLD));
    CHECK(memcmp(in, out, sizeof in) == 0);
    OK(MPI_Pack_external_size_c("external32", 6, MPI_INT, &need));
    CHECK(need == 24);
    at = 0;
    memset(in, 0, sizeof in);
    OK(MPI_Pack_external_c("external32", out, 6, MPI_INT, room, 200, &at));
    CHECK(at == 24 && room[3] == 1 && room[0] == 0);
    at = 0;
    OK(MPI_Unpack_external_c("external32", room, 24, &at, in, 6, MPI_INT));
    CHECK(memcmp(in, out, sizeof in) == 0 && at == 24);
    /* packed here, received there as elements; and the reverse */
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int position = 0, n = -1;
    MPI_Status status;
    out[0] = rank;
    OK(MPI_Pack(out, 6, MPI_INT, room, 200, &position, MPI_COMM_WORLD));
    OK(MPI_Sendrecv(room, position, MPI_PACKED, to, 0, in, 6, MPI_INT, from, 0,
                    MPI_COMM_WORLD, &status));
    CHECK(in[0] == from && in[5] == 6);
    OK(MPI_Sendrecv(out, 6, MPI_INT, to, 0, room, 200, MPI_PACKED, from, 0,
                    MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_PACKED, &n));
    position = 0;
    memset(in, 0, sizeof in);
    OK(MPI_Unpack(room, n, &position, in, 6, MPI_INT, MPI_COMM_WORLD));
    CHECK(in[0] == from && in[5] == 6);
}

/* Absolute addresses through every kind of call. */
static void test_bottom(void)
{
    int a = rank, b = 10 * rank, c = -1, d = -1, lengths[2] = {1, 1};
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Aint out[2], in[2];
    MPI_Datatype give, take;
    OK(MPI_Get_address(&a, &out[0]));
    OK(MPI_Get_address(&b, &out[1]));
    OK(MPI_Get_address(&d, &in[0]));
    OK(MPI_Get_address(&c, &in[1]));
    OK(MPI_Type_create_hindexed(2, lengths, out, MPI_INT, &give));
    OK(MPI_Type_create_hindexed(2, lengths, in, MPI_INT, &take));
    OK(MPI_Type_commit(&give));
    OK(MPI_Type_commit(&take));
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, give, to, 0, MPI_BOTTOM, 1, take, from, 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(d == from && c == 10 * from);
    MPI_Request requests[2];
    OK(MPI_Irecv(MPI_BOTTOM, 1, take, to, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(MPI_BOTTOM, 1, give, from, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(d == to && c == 10 * to);
    OK(MPI_Bcast(MPI_BOTTOM, 1, rank == 0 ? give : take, 0, MPI_COMM_WORLD));
    if (rank > 0) CHECK(d == 0 && c == 0);
    int *all = malloc(sizeof *all * 2 * (size_t)size);
    OK(MPI_Allgather(MPI_BOTTOM, 1, give, all, 2, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        CHECK(all[2 * r] == r && all[2 * r + 1] == 10 * r);
    OK(MPI_Scatter(all, 2, MPI_INT, MPI_BOTTOM, 1, take, size - 1,
                   MPI_COMM_WORLD));
    CHECK(d == rank && c == 10 * rank);
    free(all);
    OK(MPI_Type_free(&give));
    OK(MPI_Type_free(&take));
}

/* Types without data, and counts of zero. */
static void test_nothing(void)
{
    MPI_Datatype none;
    MPI_Status status;
    int n = -1, value = 5;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_Sendrecv(NULL, 7, none, to, 0, NULL, 7, none, from, 0,
                    MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, none, &n));
    CHECK(n == 0 && status.MPI_SOURCE == from);
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, to, 0, &value, 1, MPI_INT, from, 0,
                    MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 0 && value == 5);
    OK(MPI_Bcast(&value, 3, none, 0, MPI_COMM_WORLD));
    OK(MPI_Gather(&value, 0, MPI_INT, &value, 0, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Scan(&value, &n, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Exscan(&value, &n, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Reduce(&value, &n, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter_block(&value, &n, 0, MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD));
    CHECK(value == 5 && n == 0);
    OK(MPI_Type_free(&none));
}

#define WIDE(how, name, iname, ...)                                            \
    do {                                                                       \
        MPI_Request request_ = MPI_REQUEST_NULL;                               \
        if (how == 0) OK(MPI_##name##_c(__VA_ARGS__));                         \
        if (how == 1) OK(MPI_I##iname##_c(__VA_ARGS__, &request_));            \
        if (how == 2) {                                                        \
            OK(MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request_));    \
            OK(MPI_Start(&request_));                                          \
        }                                                                      \
        OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                            \
        if (how == 2) OK(MPI_Request_free(&request_));                         \
    } while (0)

/* On an open line: the previous and the next neighbour. */
static void test_neighbors(void)
{
    int wrap = 0, before, after;
    MPI_Comm line;
    MPI_Count counts[2] = {1, 1};
    MPI_Aint places[2] = {0, 1}, bytes[2] = {0, 4};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &wrap, 0, &line));
    OK(MPI_Cart_shift(line, 0, 1, &before, &after));
    for (int how = 0; how < 3; how++) {
        for (int kind = 0; kind < 5; kind++) {
            int out[2] = {100 + rank, 200 + rank}, in[2] = {-1, -1};
            if (kind == 0)
                WIDE(how, Neighbor_allgather, neighbor_allgather, out, 1,
                     MPI_INT, in, 1, MPI_INT, line);
            if (kind == 1)
                WIDE(how, Neighbor_allgatherv, neighbor_allgatherv, out, 1,
                     MPI_INT, in, counts, places, MPI_INT, line);
            if (kind == 2)
                WIDE(how, Neighbor_alltoall, neighbor_alltoall, out, 1, MPI_INT,
                     in, 1, MPI_INT, line);
            if (kind == 3)
                WIDE(how, Neighbor_alltoallv, neighbor_alltoallv, out, counts,
                     places, MPI_INT, in, counts, places, MPI_INT, line);
            if (kind == 4)
                WIDE(how, Neighbor_alltoallw, neighbor_alltoallw, out, counts,
                     bytes, types, in, counts, bytes, types, line);
            int up =
                kind < 2 ? 100 : 200; /* value sent to the next neighbour */
            CHECK(in[0] == (before < 0 ? -1 : up + before));
            CHECK(in[1] == (after < 0 ? -1 : 100 + after));
        }
    }
    /* MPICH 4.0.2 crashes in these */
    if (!mpich) {
        int out = rank, in = -1, both = rank;
        MPI_Request requests[2];
        OK(MPI_Isendrecv_c(&out, 1, MPI_INT, after, 0, &in, 1, MPI_INT, before,
                           0, line, &requests[0]));
        OK(MPI_Isendrecv_replace_c(&both, 1, MPI_INT, after, 1, before, 1, line,
                                   &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(in == (before < 0 ? -1 : before));
        CHECK(both == (before < 0 ? rank : before));
    }
    OK(MPI_Comm_free(&line));
}

static int copy_number(MPI_Datatype type, int key, void *extra, void *in,
                       void *out, int *flag)
{
    (void)type;
    (void)key;
    (void)extra;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int count_delete(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type;
    (void)key;
    (void)value;
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static void test_type_attributes(void)
{
    int key, deleted = 0, flag = 0, n;
    char name[MPI_MAX_OBJECT_NAME];
    void *value = NULL;
    MPI_Datatype a, b;
    OK(MPI_Type_create_keyval(copy_number, count_delete, &key, &deleted));
    OK(MPI_Type_contiguous(2, MPI_INT, &a));
    OK(MPI_Type_set_name(a, "two integers"));
    OK(MPI_Type_get_name(a, name, &n));
    CHECK(strcmp(name, "two integers") == 0 && n == 12);
    OK(MPI_Type_get_attr(a, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Type_set_attr(a, key, (void *)5));
    OK(MPI_Type_dup(a, &b));
    OK(MPI_Type_get_attr(b, key, &value, &flag));
    CHECK(flag && value == (void *)6);
    OK(MPI_Type_delete_attr(b, key));
    CHECK(deleted == 1);
    OK(MPI_Type_free(&b));
    OK(MPI_Type_free(&a));
    CHECK(deleted == 2);
    OK(MPI_Type_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
}

static void test_hints(void)
{
    MPI_Info info, given;
    MPI_Comm dup, other, parent = MPI_COMM_WORLD;
    MPI_Request request;
    int flag = 0, n = -1;
    char value[20];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "false"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &dup));
    OK(MPI_Comm_idup_with_info(dup, info, &other, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(other));
    OK(MPI_Comm_set_info(dup, info));
    OK(MPI_Comm_get_info(dup, &given));
    OK(MPI_Info_get_nkeys(given, &n));
    CHECK(n >= 0);
    OK(MPI_Info_free(&given));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_disconnect(&other));
    CHECK(other == MPI_COMM_NULL);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    OK(MPI_Info_get(MPI_INFO_ENV, "no such key", 19, value, &flag));
    CHECK(!flag);
    OK(MPI_Info_create_env(0, NULL, &info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n >= 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Pcontrol(1));
}

static void test_fortran_status(void)
{
    MPI_Fint numbers[MPI_F_STATUS_SIZE];
    MPI_Status a, b;
    int n = -1, flag = -1;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    a.MPI_SOURCE = 3;
    a.MPI_TAG = 4;
    a.MPI_ERROR = 5;
    OK(MPI_Status_set_elements_x(&a, MPI_INT, 6));
    OK(MPI_Status_set_cancelled(&a, 1));
    OK(MPI_Status_c2f(&a, numbers));
    CHECK(numbers[MPI_F_SOURCE] == 3 && numbers[MPI_F_TAG] == 4);
    OK(MPI_Status_f2c(numbers, &b));
    CHECK(b.MPI_ERROR == 5 && b.MPI_SOURCE == 3);
    OK(MPI_Get_count(&b, MPI_INT, &n));
    OK(MPI_Test_cancelled(&b, &flag));
    CHECK(n == 6 && flag == 1 && b.MPI_TAG == 4);
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    CHECK(conform_class(*code) == MPI_ERR_OTHER);
}

/* Names removed from MPI that programs still use. */
static void test_old_names(void)
{
#ifdef MPI_ABI_VERSION /* which has them no more */
    (void)on_error;
#else
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif
    MPI_Datatype a, b;
    MPI_Aint place = 0, extent = 0;
    int key, flag = 0, here = 0, lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Errhandler handler, found;
    void *value;
    OK(MPI_Address(&here, &place));
    CHECK(place == (MPI_Aint)(size_t)&here);
    OK(MPI_Type_hvector(2, 1, 12, MPI_INT, &a));
    OK(MPI_Type_create_hvector(2, 1, 12, MPI_INT, &b));
    same_type(a, b);
    OK(MPI_Type_hindexed(2, lengths, places, MPI_INT, &a));
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &b));
    same_type(a, b);
    OK(MPI_Type_struct(2, lengths, places, types, &a));
    OK(MPI_Type_extent(a, &extent));
    CHECK(extent == 16);
    OK(MPI_Type_lb(a, &extent));
    CHECK(extent == 0);
    OK(MPI_Type_ub(a, &extent));
    CHECK(extent == 16);
    OK(MPI_Type_free(&a));
    OK(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Attr_put(MPI_COMM_WORLD, key, &here));
    OK(MPI_Attr_get(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(flag && value == &here);
    OK(MPI_Attr_delete(MPI_COMM_WORLD, key));
    OK(MPI_Attr_get(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Keyval_free(&key));
    OK(MPI_Errhandler_create(on_error, &handler));
    OK(MPI_Errhandler_set(MPI_COMM_WORLD, handler));
    OK(MPI_Errhandler_get(MPI_COMM_WORLD, &found));
    CHECK(found == handler);
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER));
    OK(MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Errhandler_free(&handler));
    if (found != MPI_ERRHANDLER_NULL) OK(MPI_Errhandler_free(&found));
#endif
}

/* MPICH's own additions. */
static void test_extras(void)
{
    int first, code, flag = -1, n;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &flag));
    CHECK(flag == 0 || flag == 1);
    CHECK(MPIX_Query_cuda_support() == flag);
    CHECK(MPIX_Query_hip_support() == 0 && MPIX_Query_ze_support() == 0);
    if (mpich) return; /* 4.0.2 declares them only in the header */
    OK(MPI_Add_error_class(&first));
    OK(MPI_Add_error_code(first, &code));
    OK(MPI_Add_error_string(code, "gone soon"));
    OK(MPIX_Delete_error_string(code));
    OK(MPI_Error_string(code, text, &n));
    CHECK(n == 0);
    OK(MPIX_Delete_error_code(code));
    OK(MPIX_Delete_error_class(first));
}

static void test_predefined_attributes(void)
{
    int flag = 0, *value = NULL;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    int to = (rank + 1) % size, from = (rank + size - 1) % size, in = -1;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, *value, &in, 1, MPI_INT, from,
                    *value, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == from);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && (*value == 0 || *value == 1));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(!flag || *value == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(!flag || *value >= size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    MPI_Group all, rest;
    int n = -1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_excl(all, 1, &rank, &rest));
    OK(MPI_Group_size(rest, &n));
    CHECK(n == size - 1);
    OK(MPI_Group_free(&rest));
    OK(MPI_Group_free(&all));
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, &size, &flag, &n));
    CHECK(n == rank);
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    mpich = strncmp(version, "MPICH", 5) == 0;
    test_wide_types();
    test_packing();
    test_bottom();
    test_nothing();
    test_neighbors();
    test_type_attributes();
    test_hints();
    test_fortran_status();
    test_old_names();
    test_extras();
    test_predefined_attributes();
    return conform_end();
}
