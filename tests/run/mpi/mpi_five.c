/* mpi_five.c - the functions of MPI 4.1 and 5.0, and extensions of MPICH, in
 * both binary interfaces. Compiled with our mpicc and mpicc_abi. */
#include "conform.h"

#include <limits.h>
#include <mpi-ext.h>
#include <stdint.h>

static int rank, size;

static void test_statuses(void)
{
    MPI_Status status;
    MPI_Count count = 0;
    int value = -1;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_set_tag(&status, 77));
    OK(MPI_Status_set_error(&status, MPI_ERR_TRUNCATE));
    CHECK(status.MPI_SOURCE == 3 && status.MPI_TAG == 77);
    CHECK(status.MPI_ERROR == MPI_ERR_TRUNCATE);
    OK(MPI_Status_get_source(&status, &value));
    CHECK(value == 3);
    OK(MPI_Status_get_tag(&status, &value));
    CHECK(value == 77);
    OK(MPI_Status_get_error(&status, &value));
    CHECK(value == MPI_ERR_TRUNCATE);
    OK(MPI_Status_set_elements_c(&status, MPI_DOUBLE, (MPI_Count)1 << 33));
    OK(MPI_Get_elements_c(&status, MPI_DOUBLE, &count));
    CHECK(count == (MPI_Count)1 << 33);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &value));
    CHECK(value == MPI_UNDEFINED);
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Test_cancelled(&status, &value));
    CHECK(value == 1);
    FAILS(MPI_ERR_ARG, MPI_Status_set_tag(MPI_STATUS_IGNORE, 1));
    /* Fortran's form has every word of it. */
    MPI_Fint words[MPI_F_STATUS_SIZE];
    MPI_Status back;
    memset(&back, 0, sizeof back);
    OK(MPI_Status_c2f(&status, words));
    CHECK(words[MPI_F_SOURCE] == 3 && words[MPI_F_TAG] == 77);
    CHECK(words[MPI_F_ERROR] == MPI_ERR_TRUNCATE);
    OK(MPI_Status_f2c(words, &back));
    CHECK(memcmp(&status, &back, sizeof back) == 0);
}

static void test_requests(void)
{
    MPI_Request list[4];
    MPI_Status statuses[4], status;
    int in[2] = {-1, -1}, out = rank, flag = -1, index = -1, places[4];
    for (int i = 0; i < 4; i++) list[i] = MPI_REQUEST_NULL;
    OK(MPI_Request_get_status_all(4, list, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag == 1);
    OK(MPI_Request_get_status_any(4, list, &index, &flag, &status));
    CHECK(flag == 1 && index == MPI_UNDEFINED);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Request_get_status_some(4, list, &index, places, statuses));
    CHECK(index == MPI_UNDEFINED);

    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    OK(MPI_Irecv(&in[0], 1, MPI_INT, last, 5, MPI_COMM_WORLD, &list[1]));
    OK(MPI_Irecv(&in[1], 1, MPI_INT, last, 6, MPI_COMM_WORLD, &list[3]));
    OK(MPI_Request_get_status_all(4, list, &flag, statuses));
    CHECK(flag == 0);
    OK(MPI_Request_get_status_any(4, list, &index, &flag, &status));
    CHECK(flag == 0 && index == MPI_UNDEFINED);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(&out, 1, MPI_INT, next, 6, MPI_COMM_WORLD));
    do {
        OK(MPI_Request_get_status_any(4, list, &index, &flag, &status));
    } while (!flag);
    CHECK(index == 3 && status.MPI_SOURCE == last && status.MPI_TAG == 6);
    CHECK(list[3] != MPI_REQUEST_NULL); /* it frees nothing */
    OK(MPI_Request_get_status_some(4, list, &index, places, statuses));
    CHECK(index == 1 && places[0] == 3 && statuses[0].MPI_TAG == 6);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(&out, 1, MPI_INT, next, 5, MPI_COMM_WORLD));
    do {
        OK(MPI_Request_get_status_all(4, list, &flag, statuses));
    } while (!flag);
    CHECK(statuses[1].MPI_TAG == 5 && statuses[3].MPI_TAG == 6);
    OK(MPI_Waitall(4, list, statuses));
    CHECK(in[0] == last && in[1] == last);
}

static void test_buffers(void)
{
    static char room[2 * (1000 + MPI_BSEND_OVERHEAD)], other[4096];
    char data[1000] = "", got[1000];
    void *base = NULL;
    MPI_Comm dup;
    MPI_Request request;
    MPI_Count wide = -1;
    int bytes = -1;
    int next = rank, last = rank; /* others may take a message at once */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(data, sizeof data, MPI_BYTE, next, 1, dup));
    OK(MPI_Comm_attach_buffer(dup, room, sizeof room));
    FAILS(MPI_ERR_BUFFER, MPI_Comm_attach_buffer_c(dup, other, sizeof other));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, next, 1, dup));
    OK(MPI_Comm_flush_buffer(dup));
    for (int i = 0; i < 2; i++)
        OK(MPI_Bsend(data, sizeof data, MPI_BYTE, next, 1, dup));
    OK(MPI_Comm_iflush_buffer(dup, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, next, 1, dup));
    for (int i = 0; i < 4; i++)
        OK(MPI_Recv(got, sizeof got, MPI_BYTE, last, 1, dup,
                    MPI_STATUS_IGNORE));
    OK(MPI_Comm_detach_buffer(dup, &base, &bytes));
    CHECK(base == room && bytes == (int)sizeof room);
    OK(MPI_Comm_attach_buffer_c(dup, MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, next, 2, dup));
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, last, 2, dup, MPI_STATUS_IGNORE));
    OK(MPI_Comm_detach_buffer_c(dup, &base, &wide));
    CHECK(base == MPI_BUFFER_AUTOMATIC);
    OK(MPI_Buffer_attach(other, sizeof other));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, next, 3, dup));
    OK(MPI_Buffer_flush());
    OK(MPI_Buffer_iflush(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, last, 3, dup, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&base, &bytes));
    CHECK(base == other && bytes == (int)sizeof other);
    OK(MPI_Comm_free(&dup));
}

/* Every handle survives the way through an integer, in both spellings. */
#define ROUND(name, handle)                                                    \
    do {                                                                       \
        CHECK(MPI_##name##_fromint(MPI_##name##_toint(handle)) == (handle));   \
        CHECK(MPI_##name##_f2c(MPI_##name##_c2f(handle)) == (handle));         \
        CHECK(MPI_##name##_c2f(handle) == MPI_##name##_toint(handle));         \
    } while (0)

static void test_integers(void)
{
    MPI_Comm dup;
    MPI_Datatype type;
    MPI_Group group;
    MPI_Info info;
    MPI_Session session;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    ROUND(Comm, dup);
    ROUND(Comm, MPI_COMM_WORLD);
    ROUND(Comm, MPI_COMM_NULL);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    ROUND(Type, type);
    ROUND(Type, MPI_DOUBLE);
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    ROUND(Group, group);
    OK(MPI_Group_free(&group));
    OK(MPI_Info_create(&info));
    ROUND(Info, info);
    OK(MPI_Info_free(&info));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    ROUND(Session, session);
    OK(MPI_Session_finalize(&session));
    ROUND(Op, MPI_SUM);
    ROUND(Errhandler, MPI_ERRORS_RETURN);
    ROUND(Message, MPI_MESSAGE_NO_PROC);
    ROUND(Request, MPI_REQUEST_NULL);
    ROUND(Win, MPI_WIN_NULL);
    CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
}

static int info_is(MPI_Info info, const char *key, const char *value)
{
    char text[MPI_MAX_INFO_VAL];
    int flag = 0, length = sizeof text;
    OK(MPI_Info_get_string(info, key, &length, text, &flag));
    return flag && strcmp(text, value) == 0;
}

static void test_interface(void)
{
    int major = -2, minor = -2, set = -1, n = -1;
    int32_t yes = 1, no = 0, other = -1;
    MPI_Info info;
    OK(MPI_Abi_get_version(&major, &minor));
#ifdef MPI_ABI_VERSION
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
#else
    CHECK(major == -1 && minor == -1);
#endif
    OK(MPI_Abi_get_info(&info));
    CHECK(info_is(info, "mpi_aint_size", "8"));
    OK(MPI_Info_free(&info));
    OK(MPI_Abi_get_fortran_info(&info));
    CHECK(info_is(info, "mpi_double_precision_size", "8"));
    OK(MPI_Abi_set_fortran_info(info));
    OK(MPI_Info_set(info, "mpi_integer_size", "8"));
    FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    OK(MPI_Info_free(&info));
    OK(MPI_Abi_get_fortran_booleans(4, &other, &other, &set));
    CHECK(!set);
    OK(MPI_Abi_set_fortran_booleans(4, &yes, &no));
    FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_booleans(4, &other, &no));
    OK(MPI_Abi_get_fortran_booleans(4, &other, &no, &set));
    CHECK(set && other == 1 && no == 0);
    OK(MPI_Get_hw_resource_info(&info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 0);
    OK(MPI_Info_free(&info));
}

static void test_errors(void)
{
    int error_class, code;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Add_error_class(&error_class));
    OK(MPI_Add_error_code(error_class, &code));
    CHECK(error_class > MPI_ERR_LASTCODE && code > MPI_ERR_LASTCODE);
    OK(MPI_Add_error_string(code, "the text"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the text") == 0);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Error_string(code, text, &length));
    CHECK(length == 0);
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(error_class));
    FAILS(MPI_ERR_ARG, MPI_Remove_error_class(error_class));
}

static void test_types(void)
{
    MPI_Datatype pair = MPI_INT;
    OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair));
    CHECK(pair == MPI_DOUBLE_INT);
    OK(MPI_Type_get_value_index(MPI_INT, MPI_INT, &pair));
    CHECK(pair == MPI_2INT);
    OK(MPI_Type_get_value_index(MPI_INT, MPI_LONG, &pair));
    CHECK(pair == MPI_DATATYPE_NULL);
    FAILS(MPI_ERR_TYPE,
          MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &pair));
    OK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 16, &pair));
    CHECK(pair == MPI_INTEGER16);
    OK(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 4, &pair));
    CHECK(pair == MPI_COMPLEX4);
    FAILS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &pair));
    /* Logical operators work on all sizes of LOGICAL that C has. */
    int8_t one = rank == 0;
    int16_t two = rank == 0;
    int64_t eight = rank == 0;
    OK(MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_LOGICAL1, MPI_LOR,
                     MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, &two, 1, MPI_LOGICAL2, MPI_LOR,
                     MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, &eight, 1, MPI_LOGICAL8, MPI_LAND,
                     MPI_COMM_WORLD));
    CHECK(one == 1 && two == 1 && eight == (size == 1));
}

/* --------------------------------------------------- functions with a state */

static int calls, ends, last_code;

static void add(void *in, void *inout, MPI_Count count, MPI_Datatype type,
                void *extra)
{
    CHECK(type == MPI_INT && extra == &calls);
    for (MPI_Count i = 0; i < count; i++) ((int *)inout)[i] += ((int *)in)[i];
    calls++;
}

static void note(MPI_Comm comm, int code, void *extra)
{
    (void)comm;
    CHECK(extra == &last_code);
    last_code = conform_class(code);
}

static void note_session(MPI_Session session, int code, void *extra)
{
    CHECK(session != MPI_SESSION_NULL && extra == &last_code);
    last_code = conform_class(code);
}

static void end(void *extra)
{
    (void)extra;
    ends++;
}

static void test_state(void)
{
    MPI_Op op;
    MPI_Errhandler handler;
    MPI_Comm dup;
    MPI_Session session;
    int one = 1, two = 2;
    OK(MPIX_Op_create_x(add, end, 1, &calls, &op));
    OK(MPI_Reduce_local(&one, &two, 1, MPI_INT, op));
    CHECK(two == 3 && calls == 1 && ends == 0);
    OK(MPI_Op_free(&op));
    CHECK(ends == 1);

    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPIX_Comm_create_errhandler_x(note, end, &last_code, &handler));
    OK(MPI_Comm_set_errhandler(dup, handler));
    OK(MPI_Errhandler_free(&handler));
    CHECK(ends == 1); /* the communicator uses it */
    FAILS(MPI_ERR_RANK, MPI_Send(&one, 1, MPI_INT, size, 0, dup));
    CHECK(last_code == MPI_ERR_RANK);
    OK(MPI_Comm_free(&dup));
    CHECK(ends == 2);

    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPIX_Session_create_errhandler_x(note_session, end, &last_code,
                                        &handler));
    OK(MPI_Session_set_errhandler(session, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    CHECK(last_code == MPI_ERR_OTHER);
    OK(MPI_Session_finalize(&session));
    CHECK(ends == 3);
}

/* ---------------------------------------------- cases that MPICH's tests have
 */

static int free_again(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)value;
    (void)extra;
    calls++;
    return MPI_Comm_free_keyval(&key);
}

/* A delete callback frees its keyval again, while other attributes of it
 * live. */
static void test_keyval_freed_twice(void)
{
    MPI_Comm a, b;
    int key, copy;
    calls = 0;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &a));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &b));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_again, &key, NULL));
    copy = key;
    OK(MPI_Comm_set_attr(a, key, NULL));
    OK(MPI_Comm_set_attr(b, key, NULL));
    OK(MPI_Comm_free(&a));
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    key = copy;
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_free(&b));
    CHECK(calls == 2);
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&copy));
}

static void test_unknown_hint(void)
{
    MPI_Comm dup;
    MPI_Info in, out;
    char value[MPI_MAX_INFO_VAL + 1];
    int flag = -1;
    OK(MPI_Info_create(&in));
    OK(MPI_Info_set(in, "no such hint", "true"));
    OK(MPI_Info_set(in, "mpi_assert_exact_length", "true"));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_info(dup, in));
    OK(MPI_Comm_get_info(dup, &out));
    OK(MPI_Info_get(out, "no such hint", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!flag);
    CHECK(info_is(out, "mpi_assert_exact_length", "true"));
    CHECK(info_is(out, "mpi_assert_no_any_tag", "false"));
    OK(MPI_Info_free(&out));
    OK(MPI_Info_free(&in));
    OK(MPI_Comm_free(&dup));
}

/* The largest length that a program can name. */
static void test_info_length(void)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int flag = -1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "its value"));
    OK(MPI_Info_get(info, "key", INT_MAX, value, &flag));
    CHECK(flag && strcmp(value, "its value") == 0);
    OK(MPI_Info_get(info, "key", 3, value, &flag));
    CHECK(flag && strcmp(value, "its") == 0);
    OK(MPI_Info_free(&info));
}

/* A session's buffer is that of the communicators made of its groups. */
static void test_session_buffer(void)
{
    static char room[2 * (100 + MPI_BSEND_OVERHEAD)];
    char data[100] = "", got[100];
    void *base = NULL;
    int bytes = -1;
    MPI_Count wide = -1;
    MPI_Session session;
    MPI_Group group, self;
    MPI_Comm made, copy;
    MPI_Request request;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    OK(MPI_Group_incl(group, 1, (int[]){0}, &self));
    OK(MPI_Comm_create_from_group(self, "five", MPI_INFO_NULL,
                                  MPI_ERRORS_RETURN, &made));
    OK(MPI_Comm_dup(made, &copy));
    OK(MPI_Session_attach_buffer(session, room, sizeof room));
    FAILS(MPI_ERR_BUFFER, MPI_Session_attach_buffer_c(session, room, 1));
    FAILS(MPI_ERR_BUFFER,
          MPI_Bsend(data, sizeof data, MPI_BYTE, 0, 1, MPI_COMM_SELF));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, 0, 1, made));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, 0, 2, copy));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(data, sizeof data, MPI_BYTE, 0, 1, copy));
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_iflush_buffer(session, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Bsend(data, sizeof data, MPI_BYTE, 0, 3, copy));
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, 0, 1, made, MPI_STATUS_IGNORE));
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, 0, 2, copy, MPI_STATUS_IGNORE));
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, 0, 3, copy, MPI_STATUS_IGNORE));
    OK(MPI_Session_detach_buffer(session, &base, &bytes));
    CHECK(base == room && bytes == (int)sizeof room);
    OK(MPI_Session_attach_buffer_c(session, room, sizeof room));
    OK(MPI_Session_detach_buffer_c(session, &base, &wide));
    CHECK(base == room && wide == (MPI_Count)sizeof room);
    OK(MPI_Session_attach_buffer(session, room, sizeof room));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&self));
    OK(MPI_Comm_free(&made));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Comm_free(&copy));
}

static void test_split_by_resource(void)
{
    MPI_Comm part;
    MPI_Info info;
    int parts = -1;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0,
                           MPI_INFO_NULL, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0,
                           info, &part));
    OK(MPI_Info_free(&info));
    CHECK(part != MPI_COMM_NULL);
    OK(MPI_Comm_size(part, &parts));
    CHECK(parts == size);
    OK(MPI_Comm_free(&part));
}

static void test_null_name(void)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = -1;
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
    CHECK(strcmp(name, "MPI_COMM_NULL") == 0 && length == 13);
}

static void test_fault_tolerance(void)
{
    int *tolerant = NULL, flag = 0, agreed = 1;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &tolerant, &flag));
    CHECK(flag && *tolerant == 1);
    CHECK(MPI_ERR_PROC_FAILED == MPIX_ERR_PROC_FAILED);
    OK(MPI_Comm_agree(MPI_COMM_WORLD, &agreed));
    CHECK(agreed == 1);
    OK(MPI_Comm_is_revoked(MPI_COMM_WORLD, &flag));
    CHECK(!flag);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_statuses();
    test_requests();
    test_buffers();
    test_integers();
    test_interface();
    test_errors();
    test_types();
    test_state();
    test_keyval_freed_twice();
    test_unknown_hint();
    test_info_length();
    test_null_name();
    test_session_buffer();
    test_split_by_resource();
    test_fault_tolerance();
#ifdef PCCL_MPI_FACE_MPICH
    CHECK(MPIX_Request_is_complete(MPI_REQUEST_NULL));
#endif
    return conform_end();
}
