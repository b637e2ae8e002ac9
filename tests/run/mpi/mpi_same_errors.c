/* mpi_same_errors.c - prints the result of calls with wrong arguments, a line
 * per call; same.sh compares the lines of two MPI libraries. It sends no
 * messages, so it works with any number of ranks. */
#include "conform.h"

static int rank, size;

#define TRY(call)                                                              \
    do {                                                                       \
        int code_ = call;                                                      \
        if (rank == 0) printf("%s: %d\n", #call, conform_class(code_));        \
    } while (0)

#define W MPI_COMM_WORLD

static int out[64], in[64], flag, number;
static MPI_Request request = MPI_REQUEST_NULL;
static MPI_Status status;
static MPI_Datatype fresh; /* not committed */

static void user_op(void *a, void *b, int *n, MPI_Datatype *type)
{
    (void)a;
    (void)b;
    (void)n;
    (void)type;
}

static void test_messages(void)
{
    TRY(MPI_Send(out, -1, MPI_INT, 0, 0, W));
    TRY(MPI_Send(NULL, 1, MPI_INT, 0, 0, W));
    TRY(MPI_Send(out, 1, MPI_DATATYPE_NULL, 0, 0, W));
    TRY(MPI_Send(out, 1, fresh, 0, 0, W));
    TRY(MPI_Send(out, 1, MPI_INT, size, 0, W));
    TRY(MPI_Send(out, 1, MPI_INT, -7, 0, W));
    TRY(MPI_Send(out, 1, MPI_INT, MPI_ANY_SOURCE, 0, W));
    TRY(MPI_Send(out, 1, MPI_INT, 0, -1, W));
    TRY(MPI_Send(out, 1, MPI_INT, 0, MPI_ANY_TAG, W));
    TRY(MPI_Send(out, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    TRY(MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 0, W));
    TRY(MPI_Ssend(out, -1, MPI_INT, 0, 0, W));
    TRY(MPI_Rsend(out, 1, MPI_INT, size, 0, W));
    TRY(MPI_Bsend(out, 1, MPI_INT, 0, -5, W));
    TRY(MPI_Isend(out, -1, MPI_INT, 0, 0, W, &request));
    TRY(MPI_Isend(out, 1, MPI_INT, size, 0, W, &request));
    TRY(MPI_Isend(out, 1, MPI_INT, 0, 0, W, NULL));
    TRY(MPI_Issend(out, 1, MPI_INT, 0, -1, W, &request));
    TRY(MPI_Irsend(out, 1, MPI_DATATYPE_NULL, 0, 0, W, &request));
    TRY(MPI_Ibsend(out, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &request));
    TRY(MPI_Send_init(out, -1, MPI_INT, 0, 0, W, &request));
    TRY(MPI_Recv_init(in, 1, MPI_INT, size, 0, W, &request));
    TRY(MPI_Recv(in, -1, MPI_INT, 0, 0, W, &status));
    TRY(MPI_Recv(NULL, 1, MPI_INT, 0, 0, W, &status));
    TRY(MPI_Recv(in, 1, MPI_DATATYPE_NULL, 0, 0, W, &status));
    TRY(MPI_Recv(in, 1, fresh, 0, 0, W, &status));
    TRY(MPI_Recv(in, 1, MPI_INT, size, 0, W, &status));
    TRY(MPI_Recv(in, 1, MPI_INT, -9, 0, W, &status));
    TRY(MPI_Recv(in, 1, MPI_INT, 0, -7, W, &status));
    TRY(MPI_Recv(in, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &status));
    TRY(MPI_Irecv(in, 1, MPI_INT, size, 0, W, &request));
    TRY(MPI_Irecv(in, 1, MPI_INT, 0, 0, W, NULL));
    TRY(MPI_Sendrecv(out, 1, MPI_INT, size, 0, in, 1, MPI_INT, 0, 0, W,
                     &status));
    TRY(MPI_Sendrecv(out, 1, MPI_INT, 0, 0, in, -1, MPI_INT, 0, 0, W, &status));
    TRY(MPI_Sendrecv_replace(out, 1, MPI_INT, 0, -1, 0, 0, W, &status));
    TRY(MPI_Probe(size, 0, W, &status));
    TRY(MPI_Probe(0, -5, W, &status));
    TRY(MPI_Iprobe(0, 0, MPI_COMM_NULL, &flag, &status));
    TRY(MPI_Iprobe(0, 0, W, NULL, &status));
    MPI_Message message = MPI_MESSAGE_NULL;
    TRY(MPI_Mprobe(size, 0, W, &message, &status));
    TRY(MPI_Mrecv(in, 1, MPI_INT, &message, &status));
    TRY(MPI_Imrecv(in, 1, MPI_INT, &message, &request));
    TRY(MPI_Buffer_attach(out, -1));
}

static void test_requests(void)
{
    MPI_Request null = MPI_REQUEST_NULL, bad = (MPI_Request)MPI_COMM_WORLD,
                two[2];
    int indices[2];
    two[0] = two[1] = MPI_REQUEST_NULL;
    TRY(MPI_Wait(&null, &status));
    TRY(MPI_Wait(&bad, &status));
    TRY(MPI_Wait(NULL, &status));
    TRY(MPI_Test(&bad, &flag, &status));
    TRY(MPI_Test(&null, NULL, &status));
    TRY(MPI_Waitall(-1, two, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitall(1, &bad, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitany(-1, two, &number, &status));
    TRY(MPI_Waitany(1, &bad, &number, &status));
    TRY(MPI_Waitany(2, two, NULL, &status));
    TRY(MPI_Testany(2, two, &number, NULL, &status));
    TRY(MPI_Testall(2, two, NULL, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitsome(-1, two, &number, indices, MPI_STATUSES_IGNORE));
    TRY(MPI_Testsome(2, two, NULL, indices, MPI_STATUSES_IGNORE));
    TRY(MPI_Testsome(1, &bad, &number, indices, MPI_STATUSES_IGNORE));
    TRY(MPI_Start(&null));
    TRY(MPI_Start(&bad));
    TRY(MPI_Startall(-1, two));
    TRY(MPI_Startall(1, &null));
    TRY(MPI_Cancel(&null));
    TRY(MPI_Cancel(&bad));
    TRY(MPI_Request_free(&null));
    TRY(MPI_Request_free(&bad));
    TRY(MPI_Request_get_status(bad, &flag, &status));
    TRY(MPI_Request_get_status(null, &flag, &status));
    TRY(MPI_Get_count(&status, MPI_DATATYPE_NULL, &number));
    TRY(MPI_Get_count(&status, MPI_INT, NULL));
    TRY(MPI_Get_elements(&status, MPI_DATATYPE_NULL, &number));
    TRY(MPI_Test_cancelled(&status, NULL));
}

static void test_collectives(void)
{
    int counts[64], displs[64];
    MPI_Op op;
    for (int i = 0; i < 64; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    TRY(MPI_Barrier(MPI_COMM_NULL));
    TRY(MPI_Bcast(out, -1, MPI_INT, 0, W));
    TRY(MPI_Bcast(out, 1, MPI_DATATYPE_NULL, 0, W));
    TRY(MPI_Bcast(out, 1, fresh, 0, W));
    TRY(MPI_Bcast(out, 1, MPI_INT, size, W));
    TRY(MPI_Bcast(out, 1, MPI_INT, -1, W));
    TRY(MPI_Bcast(out, 1, MPI_INT, 0, MPI_COMM_NULL));
    TRY(MPI_Bcast(NULL, 1, MPI_INT, 0, W));
    TRY(MPI_Ibcast(out, 1, MPI_INT, size, W, &request));
    TRY(MPI_Allreduce(out, in, 1, MPI_INT, MPI_OP_NULL, W));
    TRY(MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_BAND, W));
    TRY(MPI_Allreduce(out, in, 1, MPI_INT, MPI_MAXLOC, W));
    TRY(MPI_Allreduce(out, in, 1, MPI_DOUBLE_INT, MPI_SUM, W));
    TRY(MPI_Allreduce(out, in, 1, MPI_CHAR, MPI_SUM, W));
    TRY(MPI_Allreduce(out, in, 1, MPI_BYTE, MPI_SUM, W));
    TRY(MPI_Allreduce(out, in, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, W));
    TRY(MPI_Allreduce(out, out, 1, MPI_INT, MPI_SUM, W));
    TRY(MPI_Allreduce(NULL, in, 1, MPI_INT, MPI_SUM, W));
    TRY(MPI_Allreduce(out, NULL, 1, MPI_INT, MPI_SUM, W));
    TRY(MPI_Allreduce(out, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, W));
    TRY(MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL));
    TRY(MPI_Iallreduce(out, in, 1, MPI_INT, MPI_OP_NULL, W, &request));
    TRY(MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, size, W));
    TRY(MPI_Reduce(out, in, 1, MPI_INT, MPI_OP_NULL, 0, W));
    TRY(MPI_Scan(out, out, 1, MPI_INT, MPI_SUM, W));
    TRY(MPI_Exscan(out, in, 1, MPI_INT, MPI_OP_NULL, W));
    counts[0] = -1;
    TRY(MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, W));
    counts[0] = 1;
    TRY(MPI_Gather(out, -1, MPI_INT, in, 1, MPI_INT, 0, W));
    TRY(MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, size, W));
    TRY(MPI_Gather(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, 0, W));
    TRY(MPI_Scatter(out, 1, MPI_INT, in, -1, MPI_INT, 0, W));
    TRY(MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, -3, W));
    TRY(MPI_Allgather(out, -1, MPI_INT, in, 1, MPI_INT, W));
    TRY(MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_DATATYPE_NULL, W));
    TRY(MPI_Allgather(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, W));
    counts[0] = -1;
    TRY(MPI_Allgatherv(out, 1, MPI_INT, in, counts, displs, MPI_INT, W));
    TRY(MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT,
                      W));
    counts[0] = 1;
    TRY(MPI_Alltoall(out, -1, MPI_INT, in, 1, MPI_INT, W));
    TRY(MPI_Alltoall(out, 1, MPI_INT, in, 1, fresh, W));
    TRY(MPI_Op_create(NULL, 1, &op));
    TRY(MPI_Op_create(user_op, 1, NULL));
    op = MPI_SUM;
    TRY(MPI_Op_free(&op));
    op = MPI_OP_NULL;
    TRY(MPI_Op_free(&op));
    TRY(MPI_Op_commutative(MPI_OP_NULL, &flag));
    TRY(MPI_Op_commutative(MPI_SUM, NULL));
    TRY(MPI_Reduce_local(out, in, 1, MPI_INT, MPI_OP_NULL));
    TRY(MPI_Reduce_local(out, in, 1, MPI_DOUBLE, MPI_BOR));
    TRY(MPI_Reduce_local(out, out, 1, MPI_INT, MPI_SUM));
}

static void test_types(void)
{
    MPI_Datatype t = MPI_INT, null = MPI_DATATYPE_NULL;
    int ints[4] = {1, 1, 1, 1}, bad[4] = {-1, 1, 1, 1}, zero[4] = {0}, five[2];
    MPI_Aint aints[4] = {0}, lb, extent;
    MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL};
    five[0] = five[1] = 5;
    TRY(MPI_Type_contiguous(-1, MPI_INT, &t));
    TRY(MPI_Type_contiguous(1, null, &t));
    TRY(MPI_Type_contiguous(1, MPI_INT, NULL));
    TRY(MPI_Type_vector(-1, 1, 1, MPI_INT, &t));
    TRY(MPI_Type_vector(1, -1, 1, MPI_INT, &t));
    TRY(MPI_Type_create_hvector(1, -1, 1, MPI_INT, &t));
    TRY(MPI_Type_indexed(-1, ints, ints, MPI_INT, &t));
    TRY(MPI_Type_indexed(1, bad, ints, MPI_INT, &t));
    TRY(MPI_Type_indexed(1, NULL, ints, MPI_INT, &t));
    TRY(MPI_Type_create_hindexed(1, bad, aints, MPI_INT, &t));
    TRY(MPI_Type_create_indexed_block(1, -1, ints, MPI_INT, &t));
    TRY(MPI_Type_create_hindexed_block(-1, 1, aints, MPI_INT, &t));
    TRY(MPI_Type_create_struct(-1, ints, aints, types, &t));
    TRY(MPI_Type_create_struct(1, bad, aints, types, &t));
    TRY(MPI_Type_create_struct(2, ints, aints, types, &t));
    TRY(MPI_Type_create_subarray(1, five, ints, zero, 77, MPI_INT, &t));
    TRY(MPI_Type_create_resized(null, 0, 4, &t));
    TRY(MPI_Type_dup(null, &t));
    TRY(MPI_Type_commit(&null));
    TRY(MPI_Type_free(&null));
    t = MPI_INT;
    TRY(MPI_Type_free(&t));
    t = MPI_DOUBLE_INT;
    TRY(MPI_Type_free(&t));
    t = MPI_INT;
    TRY(MPI_Type_commit(&t));
    TRY(MPI_Type_size(null, &number));
    TRY(MPI_Type_size(MPI_INT, NULL));
    TRY(MPI_Type_get_extent(null, &lb, &extent));
    TRY(MPI_Type_get_true_extent(null, &lb, &extent));
    TRY(MPI_Type_get_contents(MPI_INT, 1, 1, 1, ints, aints, types));
    TRY(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &t));
    TRY(MPI_Type_match_size(77, 4, &t));
    TRY(MPI_Type_set_name(null, "name"));
    number = 0;
    TRY(MPI_Pack(out, -1, MPI_INT, in, 2, &number, W));
    TRY(MPI_Pack(out, 1, null, in, 9, &number, W));
    TRY(MPI_Pack(out, 1, MPI_INT, in, 9, &number, MPI_COMM_NULL));
    TRY(MPI_Pack_size(-1, MPI_INT, W, &number));
    TRY(MPI_Pack_size(1, null, W, &number));
    TRY(MPI_Get_address(out, NULL));
    TRY(MPI_Status_set_elements(&status, null, 1));
}

static void test_groups(void)
{
    MPI_Group all, g = MPI_GROUP_NULL;
    int ranks[3] = {0, 0, 99}, result;
    OK(MPI_Comm_group(W, &all));
    TRY(MPI_Comm_group(MPI_COMM_NULL, &g));
    TRY(MPI_Group_size(MPI_GROUP_NULL, &number));
    TRY(MPI_Group_rank(MPI_GROUP_NULL, &number));
    TRY(MPI_Group_size(all, NULL));
    TRY(MPI_Group_incl(all, -1, ranks, &g));
    TRY(MPI_Group_incl(all, 1, ranks + 2, &g));
    TRY(MPI_Group_excl(all, 1, ranks + 2, &g));
    TRY(MPI_Group_translate_ranks(all, 1, ranks + 2, all, &result));
    TRY(MPI_Group_translate_ranks(all, -1, ranks, all, &result));
    TRY(MPI_Group_translate_ranks(all, 1, ranks, MPI_GROUP_NULL, &result));
    TRY(MPI_Group_compare(all, MPI_GROUP_NULL, &result));
    TRY(MPI_Group_union(all, MPI_GROUP_NULL, &g));
    TRY(MPI_Group_free(NULL));
    g = MPI_GROUP_NULL;
    TRY(MPI_Group_free(&g));
    OK(MPI_Group_free(&all));
}

static void test_communicators(void)
{
    MPI_Comm c = MPI_COMM_NULL, world = W;
    MPI_Group all;
    int result;
    OK(MPI_Comm_group(W, &all));
    TRY(MPI_Comm_size(MPI_COMM_NULL, &number));
    TRY(MPI_Comm_size(W, NULL));
    TRY(MPI_Comm_rank(MPI_COMM_NULL, &number));
    TRY(MPI_Comm_rank((MPI_Comm)MPI_INT, &number));
    TRY(MPI_Comm_compare(W, MPI_COMM_NULL, &result));
    TRY(MPI_Comm_dup(MPI_COMM_NULL, &c));
    TRY(MPI_Comm_idup(MPI_COMM_NULL, &c, &request));
    TRY(MPI_Comm_split(MPI_COMM_NULL, 0, 0, &c));
    TRY(MPI_Comm_create(W, MPI_GROUP_NULL, &c));
    TRY(MPI_Comm_create_group(W, MPI_GROUP_NULL, 0, &c));
    TRY(MPI_Comm_create_group(W, all, -1, &c));
    TRY(MPI_Comm_free(&world));
    TRY(MPI_Comm_set_name(MPI_COMM_NULL, "x"));
    TRY(MPI_Comm_get_name(W, NULL, &number));
    TRY(MPI_Comm_test_inter(MPI_COMM_NULL, &flag));
    TRY(MPI_Comm_set_errhandler(W, MPI_ERRHANDLER_NULL));
    TRY(MPI_Comm_call_errhandler(MPI_COMM_NULL, MPI_ERR_OTHER));
    TRY(MPI_Comm_call_errhandler(W, MPI_ERR_OTHER));
    TRY(MPI_Errhandler_free(NULL));
    MPI_Errhandler none = MPI_ERRHANDLER_NULL;
    TRY(MPI_Errhandler_free(&none));
    TRY(MPI_Error_class(-3, &number));
    TRY(MPI_Error_class(0x3ffffff0, &number));
    TRY(MPI_Add_error_string(MPI_ERR_OTHER, "no"));
    TRY(MPI_Add_error_code(0x3ffffff0, &number));
    OK(MPI_Group_free(&all));
}

static void test_cart(void)
{
    MPI_Comm c = MPI_COMM_NULL, line;
    int dims[2] = {1, 1}, big[2] = {1000, 1000}, zero[2] = {0, 0};
    int minus[2] = {-1, 1}, periods[2] = {0, 0}, coords[2] = {0, 0}, a, b;
    TRY(MPI_Cart_create(W, 2, big, periods, 0, &c));
    TRY(MPI_Cart_create(W, 2, NULL, periods, 0, &c));
    TRY(MPI_Cart_create(MPI_COMM_NULL, 2, dims, periods, 0, &c));
    TRY(MPI_Dims_create(6, 2, minus));
    dims[0] = 4;
    dims[1] = 0;
    TRY(MPI_Dims_create(6, 2, dims));
    TRY(MPI_Dims_create(-1, 2, zero));
    TRY(MPI_Cart_coords(W, 0, 2, coords));
    TRY(MPI_Cart_rank(W, coords, &number));
    TRY(MPI_Cart_shift(W, 0, 1, &a, &b));
    TRY(MPI_Cartdim_get(W, &number));
    TRY(MPI_Cart_sub(W, periods, &c));
    TRY(MPI_Topo_test(MPI_COMM_NULL, &number));
    TRY(MPI_Cart_map(W, 1, big, periods, &number));
    OK(MPI_Cart_create(W, 1, &size, periods, 0, &line));
    OK(MPI_Comm_set_errhandler(line, MPI_ERRORS_RETURN));
    TRY(MPI_Cart_coords(line, size, 1, coords));
    TRY(MPI_Cart_coords(line, -1, 1, coords));
    TRY(MPI_Cart_coords(line, 0, 0, coords));
    coords[0] = size;
    TRY(MPI_Cart_rank(line, coords, &number));
    coords[0] = -1;
    TRY(MPI_Cart_rank(line, coords, &number));
    TRY(MPI_Cart_shift(line, 1, 1, &a, &b));
    TRY(MPI_Cart_shift(line, -1, 1, &a, &b));
    TRY(MPI_Cart_sub(line, NULL, &c));
    OK(MPI_Comm_free(&line));
}

static void test_attributes(void)
{
    int key = MPI_KEYVAL_INVALID, *value;
    TRY(MPI_Comm_get_attr(W, MPI_KEYVAL_INVALID, &value, &flag));
    TRY(MPI_Comm_set_attr(W, MPI_KEYVAL_INVALID, &value));
    TRY(MPI_Comm_set_attr(W, MPI_TAG_UB, &value));
    TRY(MPI_Comm_delete_attr(W, MPI_KEYVAL_INVALID));
    TRY(MPI_Comm_delete_attr(W, MPI_TAG_UB));
    TRY(MPI_Comm_free_keyval(&key));
    TRY(MPI_Type_free_keyval(&key));
    TRY(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
                               NULL, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
                              &key, NULL));
    TRY(MPI_Comm_get_attr(MPI_COMM_NULL, key, &value, &flag));
    TRY(MPI_Comm_get_attr(W, key, &value, NULL));
    TRY(MPI_Type_set_attr(MPI_INT, key, &value));
    TRY(MPI_Comm_delete_attr(W, key));
    OK(MPI_Comm_free_keyval(&key));
}

static void test_info(void)
{
    MPI_Info info;
    char key[MPI_MAX_INFO_KEY + 8], value[MPI_MAX_INFO_VAL + 8], text[8];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    memset(value, 'v', sizeof value);
    value[sizeof value - 1] = 0;
    OK(MPI_Info_create(&info));
    TRY(MPI_Info_create(NULL));
    TRY(MPI_Info_set(info, NULL, "b"));
    TRY(MPI_Info_set(info, "", "b"));
    TRY(MPI_Info_set(info, "a", ""));
    TRY(MPI_Info_set(info, key, "b"));
    TRY(MPI_Info_set(info, "c", value));
    TRY(MPI_Info_delete(info, "none"));
    TRY(MPI_Info_delete(info, key));
    TRY(MPI_Info_get(info, "none", 7, text, &flag));
    TRY(MPI_Info_get(info, "a", -1, text, &flag));
    TRY(MPI_Info_get(info, key, 7, text, &flag));
    TRY(MPI_Info_get(info, "a", 7, NULL, &flag));
    TRY(MPI_Info_get_nthkey(info, 9, key));
    TRY(MPI_Info_get_nthkey(info, -1, key));
    TRY(MPI_Info_get_valuelen(info, "none", &number, &flag));
    TRY(MPI_Info_get_valuelen(info, key, &number, &flag));
    TRY(MPI_Info_free(NULL));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(W, &rank);
    MPI_Comm_size(W, &size);
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_INT, &fresh);
    test_messages();
    test_requests();
    test_collectives();
    test_types();
    test_groups();
    test_communicators();
    test_cart();
    test_attributes();
    test_info();
    MPI_Type_free(&fresh);
    return conform_end();
}
