/* stubs_mpich.c - made by generate.py; do not edit.
 * Functions that are not offered, of MPICH's ABI alone. */
#include "facade.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

MPIX_PUBLIC(Allreduce_enqueue);
int PMPIX_Allreduce_enqueue(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return unsupported_comm(comm, "MPIX_Allreduce_enqueue");
}

MPIX_PUBLIC(Allreduce_enqueue_c);
int PMPIX_Allreduce_enqueue_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return unsupported_comm(comm, "MPIX_Allreduce_enqueue_c");
}

MPIX_PUBLIC(Async_get_state);
void *PMPIX_Async_get_state(MPIX_Async_thing async_thing)
{
    return NULL;
}

MPIX_PUBLIC(Async_spawn);
int PMPIX_Async_spawn(MPIX_Async_thing async_thing, MPIX_Async_poll_function *poll_fn, void *extra_state, MPIX_Stream stream)
{
    return unsupported("MPIX_Async_spawn");
}

MPIX_PUBLIC(Async_start);
int PMPIX_Async_start(MPIX_Async_poll_function *poll_fn, void *extra_state, MPIX_Stream stream)
{
    return unsupported("MPIX_Async_start");
}

MPIX_PUBLIC(Comm_get_stream);
int PMPIX_Comm_get_stream(MPI_Comm comm, int idx, MPIX_Stream *stream)
{
    return unsupported_comm(comm, "MPIX_Comm_get_stream");
}

MPIX_PUBLIC(Comm_test_threadcomm);
int PMPIX_Comm_test_threadcomm(MPI_Comm comm, int *flag)
{
    return unsupported_comm(comm, "MPIX_Comm_test_threadcomm");
}

MPIX_PUBLIC(Grequest_class_allocate);
int PMPIX_Grequest_class_allocate(MPIX_Grequest_class greq_class, void *extra_state, MPI_Request *request)
{
    return unsupported("MPIX_Grequest_class_allocate");
}

MPIX_PUBLIC(Grequest_class_create);
int PMPIX_Grequest_class_create(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn, MPI_Grequest_cancel_function *cancel_fn, MPIX_Grequest_poll_function *poll_fn, MPIX_Grequest_wait_function *wait_fn, MPIX_Grequest_class *greq_class)
{
    return unsupported("MPIX_Grequest_class_create");
}

MPIX_PUBLIC(Grequest_start);
int PMPIX_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn, MPI_Grequest_cancel_function *cancel_fn, MPIX_Grequest_poll_function *poll_fn, MPIX_Grequest_wait_function *wait_fn, void *extra_state, MPI_Request *request)
{
    return unsupported("MPIX_Grequest_start");
}

MPIX_PUBLIC(Info_set_hex);
int PMPIX_Info_set_hex(MPI_Info info, const char *key, const void *value, int value_size)
{
    return unsupported("MPIX_Info_set_hex");
}

MPIX_PUBLIC(Irecv_enqueue);
int PMPIX_Irecv_enqueue(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Irecv_enqueue");
}

MPIX_PUBLIC(Irecv_enqueue_c);
int PMPIX_Irecv_enqueue_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Irecv_enqueue_c");
}

MPIX_PUBLIC(Isend_enqueue);
int PMPIX_Isend_enqueue(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Isend_enqueue");
}

MPIX_PUBLIC(Isend_enqueue_c);
int PMPIX_Isend_enqueue_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Isend_enqueue_c");
}

MPIX_PUBLIC(Recv_enqueue);
int PMPIX_Recv_enqueue(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    return unsupported_comm(comm, "MPIX_Recv_enqueue");
}

MPIX_PUBLIC(Recv_enqueue_c);
int PMPIX_Recv_enqueue_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    return unsupported_comm(comm, "MPIX_Recv_enqueue_c");
}

MPIX_PUBLIC(Send_enqueue);
int PMPIX_Send_enqueue(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return unsupported_comm(comm, "MPIX_Send_enqueue");
}

MPIX_PUBLIC(Send_enqueue_c);
int PMPIX_Send_enqueue_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return unsupported_comm(comm, "MPIX_Send_enqueue_c");
}

MPIX_PUBLIC(Start_progress_thread);
int PMPIX_Start_progress_thread(MPIX_Stream stream)
{
    return unsupported("MPIX_Start_progress_thread");
}

MPIX_PUBLIC(Stop_progress_thread);
int PMPIX_Stop_progress_thread(MPIX_Stream stream)
{
    return unsupported("MPIX_Stop_progress_thread");
}

MPIX_PUBLIC(Stream_comm_create);
int PMPIX_Stream_comm_create(MPI_Comm comm, MPIX_Stream stream, MPI_Comm *newcomm)
{
    return unsupported_comm(comm, "MPIX_Stream_comm_create");
}

MPIX_PUBLIC(Stream_comm_create_multiplex);
int PMPIX_Stream_comm_create_multiplex(MPI_Comm comm, int count, MPIX_Stream array_of_streams[], MPI_Comm *newcomm)
{
    return unsupported_comm(comm, "MPIX_Stream_comm_create_multiplex");
}

MPIX_PUBLIC(Stream_create);
int PMPIX_Stream_create(MPI_Info info, MPIX_Stream *stream)
{
    return unsupported("MPIX_Stream_create");
}

MPIX_PUBLIC(Stream_free);
int PMPIX_Stream_free(MPIX_Stream *stream)
{
    return unsupported("MPIX_Stream_free");
}

MPIX_PUBLIC(Stream_irecv);
int PMPIX_Stream_irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Stream_irecv");
}

MPIX_PUBLIC(Stream_irecv_c);
int PMPIX_Stream_irecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Stream_irecv_c");
}

MPIX_PUBLIC(Stream_isend);
int PMPIX_Stream_isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Stream_isend");
}

MPIX_PUBLIC(Stream_isend_c);
int PMPIX_Stream_isend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index, MPI_Request *request)
{
    return unsupported_comm(comm, "MPIX_Stream_isend_c");
}

MPIX_PUBLIC(Stream_progress);
int PMPIX_Stream_progress(MPIX_Stream stream)
{
    return unsupported("MPIX_Stream_progress");
}

MPIX_PUBLIC(Stream_recv);
int PMPIX_Stream_recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index, MPI_Status *status)
{
    return unsupported_comm(comm, "MPIX_Stream_recv");
}

MPIX_PUBLIC(Stream_recv_c);
int PMPIX_Stream_recv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index, MPI_Status *status)
{
    return unsupported_comm(comm, "MPIX_Stream_recv_c");
}

MPIX_PUBLIC(Stream_send);
int PMPIX_Stream_send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index)
{
    return unsupported_comm(comm, "MPIX_Stream_send");
}

MPIX_PUBLIC(Stream_send_c);
int PMPIX_Stream_send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, int source_stream_index, int dest_stream_index)
{
    return unsupported_comm(comm, "MPIX_Stream_send_c");
}

MPIX_PUBLIC(Threadcomm_finish);
int PMPIX_Threadcomm_finish(MPI_Comm threadcomm)
{
    return unsupported_comm(threadcomm, "MPIX_Threadcomm_finish");
}

MPIX_PUBLIC(Threadcomm_free);
int PMPIX_Threadcomm_free(MPI_Comm *threadcomm)
{
    return unsupported("MPIX_Threadcomm_free");
}

MPIX_PUBLIC(Threadcomm_init);
int PMPIX_Threadcomm_init(MPI_Comm comm, int num_threads, MPI_Comm *newthreadcomm)
{
    return unsupported_comm(comm, "MPIX_Threadcomm_init");
}

MPIX_PUBLIC(Threadcomm_start);
int PMPIX_Threadcomm_start(MPI_Comm threadcomm)
{
    return unsupported_comm(threadcomm, "MPIX_Threadcomm_start");
}

MPIX_PUBLIC(Type_iov);
int PMPIX_Type_iov(MPI_Datatype datatype, MPI_Count iov_offset, MPIX_Iov *iov, MPI_Count max_iov_len, MPI_Count *actual_iov_len)
{
    return unsupported("MPIX_Type_iov");
}

MPIX_PUBLIC(Type_iov_len);
int PMPIX_Type_iov_len(MPI_Datatype datatype, MPI_Count max_iov_bytes, MPI_Count *iov_len, MPI_Count *actual_iov_bytes)
{
    return unsupported("MPIX_Type_iov_len");
}

MPIX_PUBLIC(Wait_enqueue);
int PMPIX_Wait_enqueue(MPI_Request *request, MPI_Status *status)
{
    return unsupported("MPIX_Wait_enqueue");
}

MPIX_PUBLIC(Waitall_enqueue);
int PMPIX_Waitall_enqueue(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
    return unsupported("MPIX_Waitall_enqueue");
}

int QMPI_Get_calling_address(QMPI_Context context, void **address)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

int QMPI_Get_function(int calling_tool_id, int function_enum, void (**function_ptr) (void), int *next_tool_id)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

int QMPI_Get_tool_storage(QMPI_Context context, int tool_id, void **storage)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

int QMPI_Register_function(int calling_tool_id, int function_enum, void (*function_ptr) (void))
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

int QMPI_Register_tool_name(const char *tool_name, void (*init_function_ptr) (int tool_id))
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

int QMPI_Register_tool_storage(int tool_id, void *tool_storage)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}
