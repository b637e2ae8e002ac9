/* mpi_p2p.c - tests point-to-point messages. No blocking send relies on
 * buffering, because MPICH then hangs when a rank sends to itself. With the
 * argument `remote` among all ranks, otherwise of every rank with itself. */
#include "conform.h"

static int rank, size, to, from;
static MPI_Comm comm;

static void test_basic(void)
{
    int out[4] = {rank, 1, 2, 3}, in[8] = {0}, count = -1, flag = -1;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_Irecv(in, 8, MPI_INT, from, 5, comm, &request));
    OK(MPI_Send(out, 4, MPI_INT, to, 5, comm));
    OK(MPI_Wait(&request, &status));
    CHECK(in[0] == from && in[3] == 3 && in[4] == 0);
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 5);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 4);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == 2);
    OK(MPI_Get_elements(&status, MPI_INT, &count));
    CHECK(count == 4);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag == 0);
    /* unexpected messages, wildcards */
    OK(MPI_Isend(out, 3, MPI_INT, to, 9, comm, &request));
    OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 9);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3);
    OK(MPI_Recv(in, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
    CHECK(in[1] == 1 && status.MPI_TAG == 9);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status));
    CHECK(flag == 0);
    OK(MPI_Barrier(comm)); /* the next sends come after all checks */
    /* MPI_PROC_NULL */
    OK(MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 0, comm));
    OK(MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 0);
}

static void test_order(void)
{
    MPI_Request requests[10];
    int values[10], in[10];
    for (int i = 0; i < 10; i++) {
        values[i] = i;
        OK(MPI_Isend(&values[i], 1, MPI_INT, to, i % 2, comm, &requests[i]));
    }
    for (int i = 0; i < 5; i++)
        OK(MPI_Recv(&in[i], 1, MPI_INT, from, 1, comm, MPI_STATUS_IGNORE));
    for (int i = 5; i < 10; i++)
        OK(MPI_Recv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                    MPI_STATUS_IGNORE));
    OK(MPI_Waitall(10, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 5; i++) CHECK(in[i] == 2 * i + 1 && in[5 + i] == 2 * i);
}

static void test_modes(void)
{
    int out = rank + 3, in = 0, flag = 1, size_out = 0;
    MPI_Request request, other;
    char *buffer = malloc(1000 + MPI_BSEND_OVERHEAD);
    OK(MPI_Issend(&out, 1, MPI_INT, to, 1, comm, &request));
    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(comm));
    OK(MPI_Recv(&in, 1, MPI_INT, from, 1, comm, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in == from + 3);
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 2, comm, &other));
    OK(MPI_Barrier(comm));
    OK(MPI_Rsend(&out, 1, MPI_INT, to, 2, comm));
    OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_attach(buffer, 1000 + MPI_BSEND_OVERHEAD));
    OK(MPI_Bsend(&out, 1, MPI_INT, to, 3, comm));
    OK(MPI_Recv(&in, 1, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE));
    void *back = NULL;
    OK(MPI_Buffer_detach(&back, &size_out));
    CHECK(back == buffer && size_out == 1000 + MPI_BSEND_OVERHEAD);
    free(buffer);
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 4, comm, &request));
    OK(MPI_Ssend(&out, 1, MPI_INT, to, 4, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in == from + 3);
}

static void test_sendrecv(void)
{
    int out[2] = {rank, 7}, in[2] = {-1, -1};
    MPI_Status status;
    OK(MPI_Sendrecv(out, 2, MPI_INT, to, 1, in, 2, MPI_INT, from, 1, comm,
                    &status));
    CHECK(in[0] == from && in[1] == 7 && status.MPI_TAG == 1);
    OK(MPI_Sendrecv_replace(out, 2, MPI_INT, to, 2, from, 2, comm, &status));
    CHECK(out[0] == from && out[1] == 7);
}

static void test_persistent(void)
{
    int out = 0, in = -1;
    MPI_Request requests[2];
    OK(MPI_Send_init(&out, 1, MPI_INT, to, 1, comm, &requests[0]));
    OK(MPI_Recv_init(&in, 1, MPI_INT, from, 1, comm, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)); /* inactive */
    for (int i = 0; i < 5; i++) {
        out = 100 * rank + i;
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(in == 100 * from + i && requests[1] != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    CHECK(requests[0] == MPI_REQUEST_NULL);
}

static void test_matched_probe(void)
{
    int out = 11, in = 0, flag = 0, count = 0;
    MPI_Message message;
    MPI_Status status;
    MPI_Request request, sent;
    OK(MPI_Isend(&out, 1, MPI_INT, to, 1, comm, &sent));
    OK(MPI_Mprobe(from, 1, comm, &message, &status));
    OK(MPI_Iprobe(from, 1, comm, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    OK(MPI_Mrecv(&in, 1, MPI_INT, &message, &status));
    CHECK(in == 11 && message == MPI_MESSAGE_NULL && status.MPI_TAG == 1);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    OK(MPI_Improbe(from, 1, comm, &flag, &message, &status));
    CHECK(!flag);
    OK(MPI_Isend(&out, 1, MPI_INT, to, 2, comm, &sent));
    while (!flag) OK(MPI_Improbe(from, 2, comm, &flag, &message, &status));
    OK(MPI_Imrecv(&in, 1, MPI_INT, &message, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 1);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    OK(MPI_Mprobe(MPI_PROC_NULL, 2, comm, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv(&in, 1, MPI_INT, &message, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

static void test_cancel_and_truncate(void)
{
    int out[3] = {1, 2, 3}, in[3] = {0}, flag = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(in, 1, MPI_INT, from, 77, comm, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Isend(out, 3, MPI_INT, to, 6, comm, &request));
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(in, 2, MPI_INT, from, 6, comm, &status));
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE); /* MPICH fails too */
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
}

static void test_derived(void)
{
    struct {
        double value;
        char tag;
        int number;
    } out = {1.5, 'x', rank}, in = {0, 0, 0};
    MPI_Datatype type;
    MPI_Aint places[3] = {(char *)&out.value - (char *)&out,
                          (char *)&out.tag - (char *)&out,
                          (char *)&out.number - (char *)&out};
    int lengths[3] = {1, 1, 1};
    MPI_Datatype types[3] = {MPI_DOUBLE, MPI_CHAR, MPI_INT};
    OK(MPI_Type_create_struct(3, lengths, places, types, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv(&out, 1, type, to, 0, &in, 1, type, from, 0, comm,
                    MPI_STATUS_IGNORE));
    CHECK(in.value == 1.5 && in.tag == 'x' && in.number == from);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comm = argc > 1 ? MPI_COMM_WORLD : MPI_COMM_SELF;
    if (argc == 1) rank = 0, size = 1;
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    test_basic();
    test_order();
    test_modes();
    test_sendrecv();
    test_persistent();
    test_matched_probe();
    test_cancel_and_truncate();
    test_derived();
    return conform_end();
}
