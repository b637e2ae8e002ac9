/* mpi_requests.c - tests requests of all kinds, in lists, null and inactive;
 * contents of statuses; messages that are truncated, cancelled, dropped or
 * buffered. Every rank sends to the next and receives from the previous one; a
 * single rank sends to itself. */
#include "conform.h"

enum { LARGE = 100000, UNTOUCHED = 4711 };

static int rank, size, to, from, mpich;

static void status_reset(MPI_Status *status, int n)
{
    memset(status, 0, (size_t)n * sizeof *status);
    for (int i = 0; i < n; i++) status[i].MPI_ERROR = UNTOUCHED;
}

static int is_empty(const MPI_Status *status)
{
    int count = -1, cancelled = -1;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    OK(MPI_Test_cancelled(status, &cancelled));
    return status->MPI_SOURCE == MPI_ANY_SOURCE &&
           status->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

/* Single completions never set MPI_ERROR; lists do so only after a failure. */
static void test_status(void)
{
    MPI_Status one, list[3];
    MPI_Request requests[3];
    int out = rank, in[2] = {-1, -1}, flag = 0;
    status_reset(&one, 1);
    status_reset(list, 3);
    OK(MPI_Irecv(&in[0], 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Wait(&requests[0], &one));
    CHECK(one.MPI_ERROR == UNTOUCHED && one.MPI_SOURCE == from);
    OK(MPI_Wait(&requests[1], &one));
    CHECK(one.MPI_ERROR == UNTOUCHED);
    OK(MPI_Test(&requests[1], &flag, &one));
    CHECK(flag && is_empty(&one));
    OK(MPI_Irecv(&in[0], 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Waitall(3, requests, list));
    CHECK(list[0].MPI_SOURCE == from && is_empty(&list[1]));
    if (!mpich)
        for (int i = 0; i < 3; i++) CHECK(list[i].MPI_ERROR == UNTOUCHED);
    status_reset(&one, 1);
    OK(MPI_Irecv(&in[0], 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Send(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
    while (!flag) OK(MPI_Request_get_status(requests[0], &flag, &one));
    for (flag = 0; !flag;) OK(MPI_Request_get_status(requests[0], &flag, &one));
    CHECK(requests[0] != MPI_REQUEST_NULL && one.MPI_TAG == 1);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &one));
    CHECK(flag && is_empty(&one));
    /* a receive from MPI_PROC_NULL */
    OK(MPI_Irecv(&in[0], 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD,
                 &requests[0]));
    OK(MPI_Wait(&requests[0], &one));
    /* MPICH 4.0.2 only does so for blocking receives */
    if (!mpich)
        CHECK(one.MPI_SOURCE == MPI_PROC_NULL && one.MPI_TAG == MPI_ANY_TAG);
}

/* Null, inactive and active requests side by side. */
static void test_lists(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4], status;
    int out = rank, in = -1, index = -5, flag = -1, count = -5, indices[4];
    for (int i = 0; i < 4; i++) requests[i] = MPI_REQUEST_NULL;
    OK(MPI_Recv_init(&in, 1, MPI_INT, from, 2, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Send_init(&out, 1, MPI_INT, to, 2, MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Waitany(4, requests, &index, &status));
    CHECK(index == MPI_UNDEFINED && is_empty(&status));
    OK(MPI_Testany(4, requests, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED && is_empty(&status));
    OK(MPI_Waitsome(4, requests, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Testsome(4, requests, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Testall(4, requests, &flag, statuses));
    CHECK(flag && is_empty(&statuses[0]) && is_empty(&statuses[3]));
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE));
    CHECK(index == MPI_UNDEFINED);
    for (int round = 0; round < 6; round++) {
        int left = 2;
        out = 10 * rank + round;
        in = -1;
        /* Restarted in either order. */
        OK(MPI_Start(&requests[round % 2 ? 1 : 3]));
        OK(MPI_Start(&requests[round % 2 ? 3 : 1]));
        while (left > 0 && round % 3 == 0) {
            OK(MPI_Waitsome(4, requests, &count, indices, statuses));
            CHECK(count > 0 && count <= left);
            for (int i = 0; i < count; i++)
                CHECK(indices[i] == 1 || indices[i] == 3);
            left -= count;
        }
        while (left > 0 && round % 3 == 1) {
            OK(MPI_Testsome(4, requests, &count, indices, statuses));
            CHECK(count >= 0 && count <= left);
            left -= count;
        }
        while (left > 0 && round % 3 == 2) {
            OK(MPI_Testany(4, requests, &index, &flag, &status));
            if (!flag) continue;
            CHECK(index == 1 || index == 3);
            left--;
        }
        CHECK(in == 10 * from + round);
        CHECK(requests[1] != MPI_REQUEST_NULL &&
              requests[0] == MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Request_free(&requests[3]));
}

/* All modes, with both kinds of counts. */
static void test_modes(void)
{
    static char room[4 * (LARGE + MPI_BSEND_OVERHEAD)];
    MPI_Request requests[8];
    int out[8], in[8], k = 0, n = -1;
    MPI_Count wide = -1, detached = -1;
    void *back = NULL;
    OK(MPI_Buffer_attach_c(room, sizeof room));
    for (int i = 0; i < 8; i++) {
        out[i] = 100 * rank + i;
        in[i] = -1;
        if (i % 2)
            OK(MPI_Irecv(&in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD,
                         &requests[i]));
        else
            OK(MPI_Recv_init_c(&in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD,
                               &requests[i]));
        if (i % 2 == 0) OK(MPI_Start(&requests[i]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* for the ready ones */
    MPI_Request sends[6];
    OK(MPI_Irsend(&out[0], 1, MPI_INT, to, 0, MPI_COMM_WORLD, &sends[k++]));
    OK(MPI_Rsend_init(&out[1], 1, MPI_INT, to, 1, MPI_COMM_WORLD, &sends[k++]));
    OK(MPI_Bsend_init(&out[2], 1, MPI_INT, to, 2, MPI_COMM_WORLD, &sends[k++]));
    OK(MPI_Ibsend_c(&out[3], 1, MPI_INT, to, 3, MPI_COMM_WORLD, &sends[k++]));
    OK(MPI_Irsend_c(&out[4], 1, MPI_INT, to, 4, MPI_COMM_WORLD, &sends[k++]));
    OK(MPI_Bsend_init_c(&out[5], 1, MPI_INT, to, 5, MPI_COMM_WORLD,
                        &sends[k++]));
    OK(MPI_Startall(2, &sends[1]));
    OK(MPI_Start(&sends[5]));
    OK(MPI_Rsend_c(&out[6], 1, MPI_INT, to, 6, MPI_COMM_WORLD));
    OK(MPI_Bsend_c(&out[7], 1, MPI_INT, to, 7, MPI_COMM_WORLD));
    OK(MPI_Waitall(k, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 8; i++) CHECK(in[i] == 100 * from + i);
    for (int i = 0; i < 8; i += 2) OK(MPI_Request_free(&requests[i]));
    OK(MPI_Request_free(&sends[1]));
    OK(MPI_Request_free(&sends[2]));
    OK(MPI_Request_free(&sends[5]));
    MPI_Status status;
    OK(MPI_Irecv_c(in, 2, MPI_INT, from, 9, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Send_c(out, 2, MPI_INT, to, 9, MPI_COMM_WORLD));
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Get_count_c(&status, MPI_INT, &wide));
    OK(MPI_Get_elements_x(&status, MPI_INT, &detached));
    CHECK(wide == 2 && detached == 2);
    OK(MPI_Get_elements_c(&status, MPI_SHORT, &wide));
    CHECK(wide == 4);
    OK(MPI_Sendrecv_c(out, 3, MPI_INT, to, 9, in, 3, MPI_INT, from, 9,
                      MPI_COMM_WORLD, &status));
    CHECK(in[2] == 100 * from + 2);
    OK(MPI_Sendrecv_replace_c(out, 3, MPI_INT, to, 9, from, 9, MPI_COMM_WORLD,
                              &status));
    CHECK(out[1] == 100 * from + 1);
    OK(MPI_Issend_c(out, 1, MPI_INT, to, 9, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv_c(in, 3, MPI_INT, from, 9, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 1);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Send_init_c(out, 1, MPI_INT, to, 9, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Ssend_init_c(out, 1, MPI_INT, to, 9, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Rsend_init_c(out, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD,
                        &requests[2]));
    OK(MPI_Startall(3, requests));
    for (int i = 0; i < 2; i++)
        OK(MPI_Recv(in, 3, MPI_INT, from, 9, MPI_COMM_WORLD, &status));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 3; i++) OK(MPI_Request_free(&requests[i]));
    OK(MPI_Irecv(in, 3, MPI_INT, from, 9, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Ssend_c(out, 1, MPI_INT, to, 9, MPI_COMM_WORLD));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach_c(&back, &detached));
    CHECK(back == room && detached == (MPI_Count)sizeof room);
}

/* A large message was matched: receiving it must not wait. */
static void test_matched(void)
{
    int *out = calloc(LARGE, sizeof *out), *in = calloc(LARGE, sizeof *in);
    MPI_Request sent, received;
    MPI_Message message;
    MPI_Status status;
    int n = -1;
    for (int i = 0; i < LARGE; i++) out[i] = rank + i;
    OK(MPI_Isend(out, LARGE, MPI_INT, to, 4, MPI_COMM_WORLD, &sent));
    OK(MPI_Mprobe(from, 4, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == LARGE);
    OK(MPI_Imrecv_c(in, LARGE, MPI_INT, &message, &received));
    CHECK(message == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&received, &status));
    CHECK(in[0] == from && in[LARGE - 1] == from + LARGE - 1);
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 4);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    /* Two messages, received in reverse order, one of them into too small a
     * buffer. */
    OK(MPI_Isend(out, LARGE, MPI_INT, to, 5, MPI_COMM_WORLD, &sent));
    MPI_Request other;
    MPI_Message last;
    OK(MPI_Isend(out, 10, MPI_INT, to, 5, MPI_COMM_WORLD, &other));
    OK(MPI_Mprobe(from, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    OK(MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &last, &status));
    OK(MPI_Mrecv_c(in, 10, MPI_INT, &last, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 10 && in[9] == from + 9);
    memset(in, 0, LARGE * sizeof *in);
    OK(MPI_Mrecv(in, LARGE, MPI_INT, &message, &status));
    CHECK(in[LARGE - 1] == from + LARGE - 1);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    OK(MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Imrecv(in, 1, MPI_INT, &message, &received));
    OK(MPI_Wait(&received, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    free(out);
    free(in);
}

/* Too long for the buffer: the class, the part that fits, the rest unchanged,
 * and other messages unaffected. Small and large. */
static void test_truncation(void)
{
    int *out = calloc(LARGE, sizeof *out), *in = calloc(LARGE + 5, sizeof *in);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* MPICH raises errors of lists there */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < LARGE; i++) out[i] = rank + i;
    for (int n = 20; n <= LARGE; n *= 5000) {
        MPI_Request sends[2], receives[2];
        MPI_Status statuses[2];
        for (int i = 0; i < LARGE; i++) in[i] = -1;
        OK(MPI_Irecv(in, n - 10, MPI_INT, from, 1, comm, &receives[0]));
        OK(MPI_Irecv(in + n, 5, MPI_INT, from, 2, comm, &receives[1]));
        OK(MPI_Isend(out, n, MPI_INT, to, 1, comm, &sends[0]));
        OK(MPI_Isend(out, 5, MPI_INT, to, 2, comm, &sends[1]));
        status_reset(statuses, 2);
        FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, receives, statuses));
        CHECK(conform_class(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
        int other = conform_class(statuses[1].MPI_ERROR);
        CHECK(other == MPI_SUCCESS || other == MPI_ERR_PENDING);
        OK(MPI_Wait(&receives[1], MPI_STATUS_IGNORE));
        CHECK(in[n - 10] == -1 && in[n - 1] == -1 && in[n + 4] == from + 4);
        CHECK(receives[0] == MPI_REQUEST_NULL);
        /* MPICH fails such a send too */
        int code = MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
        CHECK(mpich || code == MPI_SUCCESS);
        OK(MPI_Barrier(comm));
    }
    OK(MPI_Comm_free(&comm));
    free(out);
    free(in);
}

/* Receives cancelled in all states, and restarted afterwards. */
static void test_cancel(void)
{
    MPI_Request request;
    MPI_Status status;
    int in = -1, out = rank, flag = 0, n = -1;
    OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD,
                 &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag && request == MPI_REQUEST_NULL);
    OK(MPI_Recv_init(&in, 1, MPI_INT, from, 78, MPI_COMM_WORLD, &request));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Start(&request));
        if (round != 1) {
            OK(MPI_Cancel(&request));
        } else {
            OK(MPI_Send(&out, 1, MPI_INT, to, 78, MPI_COMM_WORLD));
        }
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag == (round != 1));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(in == from);
    OK(MPI_Request_free(&request));
    /* A complete one cannot be cancelled. */
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 79, MPI_COMM_WORLD, &request));
    OK(MPI_Sendrecv(&out, 1, MPI_INT, to, 79, NULL, 0, MPI_INT, MPI_PROC_NULL,
                    0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(!flag && n == 1 && in == from);
}

/* Reads memory that another thread may be writing, without synchronization. */
__attribute__((no_sanitize("thread"))) static int peek(const volatile int *late)
{
    return *late;
}

/* Dropped requests complete on their own; buffered messages arrive after the
 * buffer is detached. */
static void test_forgotten(void)
{
    static int out[LARGE], in[LARGE];
    MPI_Request request;
    for (int i = 0; i < LARGE; i++) out[i] = rank + i;
    OK(MPI_Isend(out, LARGE, MPI_INT, to, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Recv(in, LARGE, MPI_INT, from, 1, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE));
    CHECK(in[LARGE - 1] == from + LARGE - 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    volatile int *late = &in[7];
    *late = -1;
    OK(MPI_Irecv(&in[7], 1, MPI_INT, from, 2, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Send(out, 1, MPI_INT, to, 2, MPI_COMM_WORLD));
    for (int arrived = 0, flag; !arrived;) { /* and one probe behind it */
        arrived = peek(late) != -1;
        OK(MPI_Iprobe(from, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    }
    CHECK(*late == from);
    int bytes;
    OK(MPI_Pack_size(LARGE, MPI_INT, MPI_COMM_WORLD, &bytes));
    void *room = malloc((size_t)bytes + MPI_BSEND_OVERHEAD);
    OK(MPI_Buffer_attach(room, bytes + MPI_BSEND_OVERHEAD));
    memset(in, 0, sizeof in);
    OK(MPI_Bsend(out, LARGE, MPI_INT, to, 4, MPI_COMM_WORLD));
    out[0] = out[LARGE - 1] = -1;
    OK(MPI_Irecv(in, LARGE, MPI_INT, from, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Buffer_detach(&room, &bytes));
    memset(room, 0xee, (size_t)bytes);
    free(room);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in[0] == from && in[LARGE - 1] == from + LARGE - 1);
}

/* Exceeding the attached buffer is an error; no further memory is used. */
static void test_buffer_limit(void)
{
    static int out[LARGE], in[LARGE];
    MPI_Comm comm;
    int sent = 0, code = MPI_SUCCESS, bytes;
    void *room = malloc(3 * sizeof out);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Buffer_attach(room, 3 * sizeof out));
    while (sent < 100 && code == MPI_SUCCESS) {
        out[0] = sent;
        code = MPI_Bsend(out, LARGE, MPI_INT, to, 6, comm);
        sent += code == MPI_SUCCESS;
    }
    CHECK(conform_class(code) == MPI_ERR_BUFFER && sent >= 2 && sent < 4);
    int expected = -1;
    OK(MPI_Sendrecv(&sent, 1, MPI_INT, to, 7, &expected, 1, MPI_INT, from, 7,
                    comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < expected; i++) {
        OK(MPI_Recv(in, LARGE, MPI_INT, from, 6, comm, MPI_STATUS_IGNORE));
        CHECK(in[0] == i);
    }
    OK(MPI_Buffer_detach(&room, &bytes));
    free(room);
    OK(MPI_Comm_free(&comm));
}

/* Generalized requests together with others. */
static int query(void *extra, MPI_Status *status)
{
    OK(MPI_Status_set_elements(status, MPI_INT, *(int *)extra));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_ERROR = MPI_SUCCESS;
    status->MPI_SOURCE = 3;
    status->MPI_TAG = 4;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    *(int *)extra = -1;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static void test_null_list(void)
{
    MPI_Request none = MPI_REQUEST_NULL;
    if (conform_is_mpich()) return;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Startall(0, NULL));
    FAILS(MPI_ERR_ARG, MPI_Startall(1, NULL));
    FAILS(MPI_ERR_COUNT, MPI_Startall(-1, &none));
    FAILS(MPI_ERR_REQUEST, MPI_Startall(1, &none));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

static void test_generalized(void)
{
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int extra = 5, n = -1, flag = 1, out = rank, in = -1;
    memset(statuses, 0, sizeof statuses);
    OK(MPI_Grequest_start(query, release, cancel, &extra, &requests[0]));
    OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Isend(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Grequest_complete(requests[0]));
    OK(MPI_Waitall(3, requests, statuses));
    OK(MPI_Get_count(&statuses[0], MPI_INT, &n));
    CHECK(n == 5 && statuses[0].MPI_TAG == 4 && extra == -1 && in == from);
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
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    test_lists();
    test_generalized();
    test_null_list();
    /* a blocking send to itself hangs in MPICH */
    if (size > 1 || !mpich) {
        test_status();
        test_modes();
        test_cancel();
        test_forgotten();
        test_buffer_limit();
    }
    test_matched();
    test_truncation();
    return conform_end();
}
