/* p2p_api.c - point-to-point calls: blocking, nonblocking, persistent, and
 * probes, with narrow and wide counts. */
#include "p2p.h"
#include "coll.h"
#include "rank_use.h"
#include "request.h"
#include "traced.h"
#include "transport.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

#define COMM_OF(handle)                                                        \
    struct comm *comm = comm_find(handle);                                     \
    if (!comm)                                                                 \
    return error_raise(NULL, MPI_ERR_COMM, function,                           \
                       "invalid communicator 0x%08x", HANDLE_BITS(handle))
#define CHECK(comm, call)                                                      \
    do {                                                                       \
        int check_result = (call);                                             \
        if (check_result != MPI_SUCCESS)                                       \
            return error_raise_noted(comm, check_result, function);            \
    } while (0)

_Static_assert(sizeof(struct send) <= REQUEST_STATE_MAX, "pooled");

#define REQUEST , MPI_Request *request
/* Internally, NULL means a blocking call. */
static MPI_Request forgotten;
#define GIVEN (request ? request : &forgotten)

static void type_use(struct type *type, bool begin)
{
    if (type->predefined) return;
    if (begin)
        object_retain(&type->object);
    else
        object_release(&type->object);
}

/* -------------------------------------------------------------------- sends */

static bool send_ended(struct request *request)
{
    struct send *send = request->state;
    if (!send_done(send)) return false;
    request->error = send->error;
    return true;
}

static bool send_progress(struct request *request)
{
    if (send_ended(request)) return true;
    coll_progress_all();
    (void)transport_progress(0);
    return send_ended(request);
}

static int send_start(struct request *request)
{
    ((struct send *)request->state)->error = MPI_SUCCESS;
    return send_begin(request->state);
}

static void send_release(struct request *request)
{
    struct send *send = request->state;
    if (send->waiting) message_release(send->waiting);
    type_use(send->type, false);
}

/* A send copies its data when it begins, so it cannot be cancelled; the
 * standard allows a cancel without effect. */
static int send_cancel(struct request *request)
{
    (void)request;
    return MPI_SUCCESS;
}

static int send_note(struct request *request)
{
    if (request->error == MPI_SUCCESS) return MPI_SUCCESS;
    return error_note(request->error, "%s",
                      p2p_error_text(request->error, true));
}

static void send_tell(struct request *request, struct call_wait *w,
                      const char *function)
{
    waiting_send(w, request->state, function);
}

static const struct request_kind send_kind = {.progress = send_progress,
                                              .tell = send_tell,
                                              .finish = send_note,
                                              .ended = send_ended,
                                              .messages = true,
                                              .start = send_start,
                                              .cancel = send_cancel,
                                              .release = send_release};

static int send_request(const struct send *from, bool persistent,
                        MPI_Request *out, const char *function)
{
    int now;
    if (!persistent && send_at_once(from, &now)) {
        CHECK(from->comm, now);
        *out = request_over();
        return MPI_SUCCESS;
    }
    struct request *request =
        request_with_state(&send_kind, from->comm, sizeof(struct send));
    if (!request)
        return error_raise(from->comm, MPI_ERR_NO_MEM, function,
                           "out of memory");
    struct send *send = request->state;
    *send = *from;
    type_use(send->type, true);
    if (persistent) rank_use_keep(function);
    request->persistent = persistent;
    int result = persistent ? MPI_SUCCESS : send_begin(send);
    if (result != MPI_SUCCESS) {
        object_release(&request->object);
        return error_raise_noted(from->comm, result, function);
    }
    request->active = !persistent;
    CHECK(from->comm, request_publish(request, out));
    return MPI_SUCCESS;
}

static int send_await(struct send *send, const char *function)
{
    struct call_wait w;
    waiting_begins(&w);
    while (!send_done(send)) {
        coll_progress_all();
        if (waiting_turn(&w)) waiting_send(&w, send, function);
    }
    waiting_over(&w);
    if (send->error == MPI_SUCCESS) return MPI_SUCCESS;
    return error_raise(send->comm, send->error, function, "%s",
                       p2p_error_text(send->error, true));
}

static int send(const void *buffer, MPI_Count count, MPI_Datatype type,
                int dest, int tag, MPI_Comm handle, enum send_mode mode,
                bool persistent, MPI_Request *request, const char *function)
{
    COMM_OF(handle);
    struct send what = {.buffer = buffer,
                        .count = count,
                        .comm = comm,
                        .dest = dest,
                        .tag = tag,
                        .mode = mode};
    CHECK(comm, send_check(&what, type));
    if (request == &forgotten)
        return error_raise(comm, MPI_ERR_ARG, function, "null request");
    TRACED(comm, dest, count * what.type->size);
    if (request) return send_request(&what, persistent, request, function);
    CHECK(comm, send_begin(&what));
    return send_await(&what, function);
}

#define SEND_VARIANT(name, count_t, mode, persistent, extra, request)          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *buffer, count_t count, MPI_Datatype type,      \
                    int dest, int tag, MPI_Comm comm extra)                    \
    {                                                                          \
        return send(buffer, count, type, dest, tag, comm, mode, persistent,    \
                    request, __func__);                                        \
    }
SEND_VARIANT(Send, int, SEND_STANDARD, false, , NULL)
SEND_VARIANT(Send_c, MPI_Count, SEND_STANDARD, false, , NULL)
SEND_VARIANT(Ssend, int, SEND_SYNCHRONOUS, false, , NULL)
SEND_VARIANT(Ssend_c, MPI_Count, SEND_SYNCHRONOUS, false, , NULL)
SEND_VARIANT(Rsend, int, SEND_READY, false, , NULL)
SEND_VARIANT(Rsend_c, MPI_Count, SEND_READY, false, , NULL)
SEND_VARIANT(Bsend, int, SEND_BUFFERED, false, , NULL)
SEND_VARIANT(Bsend_c, MPI_Count, SEND_BUFFERED, false, , NULL)
SEND_VARIANT(Isend, int, SEND_STANDARD, false, REQUEST, GIVEN)
SEND_VARIANT(Isend_c, MPI_Count, SEND_STANDARD, false, REQUEST, GIVEN)
SEND_VARIANT(Issend, int, SEND_SYNCHRONOUS, false, REQUEST, GIVEN)
SEND_VARIANT(Issend_c, MPI_Count, SEND_SYNCHRONOUS, false, REQUEST, GIVEN)
SEND_VARIANT(Irsend, int, SEND_READY, false, REQUEST, GIVEN)
SEND_VARIANT(Irsend_c, MPI_Count, SEND_READY, false, REQUEST, GIVEN)
SEND_VARIANT(Ibsend, int, SEND_BUFFERED, false, REQUEST, GIVEN)
SEND_VARIANT(Ibsend_c, MPI_Count, SEND_BUFFERED, false, REQUEST, GIVEN)
SEND_VARIANT(Send_init, int, SEND_STANDARD, true, REQUEST, GIVEN)
SEND_VARIANT(Send_init_c, MPI_Count, SEND_STANDARD, true, REQUEST, GIVEN)
SEND_VARIANT(Ssend_init, int, SEND_SYNCHRONOUS, true, REQUEST, GIVEN)
SEND_VARIANT(Ssend_init_c, MPI_Count, SEND_SYNCHRONOUS, true, REQUEST, GIVEN)
SEND_VARIANT(Rsend_init, int, SEND_READY, true, REQUEST, GIVEN)
SEND_VARIANT(Rsend_init_c, MPI_Count, SEND_READY, true, REQUEST, GIVEN)
SEND_VARIANT(Bsend_init, int, SEND_BUFFERED, true, REQUEST, GIVEN)
SEND_VARIANT(Bsend_init_c, MPI_Count, SEND_BUFFERED, true, REQUEST, GIVEN)

/* ------------------------------------------------------------------ receives
 */

/* State of a receive request; persistent requests keep `source`. */
struct pending {
    struct receive receive; /* first */
    int source, tag;
};
_Static_assert(sizeof(struct pending) <= REQUEST_STATE_MAX, "pooled");

static void status_proc_null(MPI_Status *status)
{
    status_empty(status);
    status->MPI_SOURCE = MPI_PROC_NULL;
}

static void receive_begin(struct receive *receive, int source, int tag)
{
    status_empty(&receive->status);
    receive->error = MPI_SUCCESS;
    atomic_store(&receive->done, false);
    if (source == MPI_PROC_NULL) {
        status_proc_null(&receive->status);
        atomic_store(&receive->done, true);
        return;
    }
    receive->entry.key = p2p_key(receive->comm, source, tag);
    p2p_post(receive);
}

struct match_key p2p_key(const struct comm *comm, int source, int tag)
{
    bool any = source == MPI_ANY_SOURCE;
    return (struct match_key){
        any ? MATCH_ANY_SOURCE : comm_peers(comm)->ids[source], comm->context,
        tag == MPI_ANY_TAG ? MATCH_ANY_TAG : tag};
}

static bool receive_ended(struct request *request)
{
    struct receive *receive = request->state;
    if (!atomic_load(&receive->done)) {
        request->error = p2p_pending_error(receive);
        return request->error != MPI_SUCCESS;
    }
    request->status = receive->status;
    request->error = receive->error;
    return true;
}

static bool receive_progress(struct request *request)
{
    if (receive_ended(request)) return true;
    coll_progress_all();
    (void)transport_progress(0);
    return receive_ended(request);
}

static int receive_start(struct request *request)
{
    struct pending *pending = request->state;
    receive_begin(&pending->receive, pending->source, pending->tag);
    return MPI_SUCCESS;
}

static int receive_cancel(struct request *request)
{
    (void)p2p_cancel(request->state);
    return MPI_SUCCESS;
}

static void receive_release(struct request *request)
{
    struct pending *pending = request->state;
    if (!atomic_load(&pending->receive.done))
        (void)p2p_cancel(&pending->receive);
    type_use(pending->receive.type, false);
}

static int receive_note(struct request *request)
{
    if (request->error == MPI_SUCCESS) return MPI_SUCCESS;
    return error_note(request->error, "%s",
                      p2p_error_text(request->error, false));
}

static void receive_tell(struct request *request, struct call_wait *w,
                         const char *function)
{
    waiting_receive(w, request->state, function);
}

static const struct request_kind receive_kind = {.tell = receive_tell,
                                                 .progress = receive_progress,
                                                 .finish = receive_note,
                                                 .ended = receive_ended,
                                                 .messages = true,
                                                 .start = receive_start,
                                                 .cancel = receive_cancel,
                                                 .release = receive_release};

/* An inactive request for the receive; NULL: no memory. */
static struct request *receive_request_new(const struct receive *from,
                                           int source, int tag)
{
    struct request *request =
        request_with_state(&receive_kind, from->comm, sizeof(struct pending));
    if (!request) return NULL;
    struct pending *pending = request->state;
    pending->receive.buffer = from->buffer;
    pending->receive.count = from->count;
    pending->receive.type = from->type;
    pending->receive.comm = from->comm;
    pending->source = source;
    pending->tag = tag;
    type_use(from->type, true);
    return request;
}

static int receive_request(const struct receive *from, int source, int tag,
                           bool persistent, MPI_Request *out,
                           const char *function)
{
    struct request *request = receive_request_new(from, source, tag);
    if (!request)
        return error_raise(from->comm, MPI_ERR_NO_MEM, function,
                           "out of memory");
    if (persistent) rank_use_keep(function);
    request->persistent = persistent;
    if (!persistent) (void)receive_start(request);
    request->active = !persistent;
    CHECK(from->comm, request_publish(request, out));
    return MPI_SUCCESS;
}

int p2p_request_taken(const struct receive *from, struct message *message,
                      MPI_Request *out, const char *function)
{
    struct request *request =
        receive_request_new(from, MPI_ANY_SOURCE, MPI_ANY_TAG);
    if (!request)
        return error_raise(from->comm, MPI_ERR_NO_MEM, function,
                           "out of memory");
    struct pending *pending = request->state;
    status_empty(&pending->receive.status);
    p2p_receive_taken(&pending->receive, message);
    request->active = true;
    CHECK(from->comm, request_publish(request, out));
    return MPI_SUCCESS;
}

static int await(struct receive *receive, MPI_Status *status,
                 const char *function)
{
    struct call_wait w;
    waiting_begins(&w);
    while (!atomic_load(&receive->done)) {
        coll_progress_all();
        if (waiting_turn(&w)) waiting_receive(&w, receive, function);
    }
    waiting_over(&w);
    /* a blocking call leaves no pending receive */
    if (receive->error == MPIX_ERR_PROC_FAILED_PENDING)
        receive->error = MPIX_ERR_PROC_FAILED;
    if (status != MPI_STATUS_IGNORE) {
        int error = status->MPI_ERROR;
        *status = receive->status;
        status->MPI_ERROR = error;
    }
    if (receive->error == MPI_SUCCESS) return MPI_SUCCESS;
    return error_raise(receive->comm, receive->error, function, "%s",
                       p2p_error_text(receive->error, false));
}

static int recv(void *buffer, MPI_Count count, MPI_Datatype type, int source,
                int tag, MPI_Comm handle, bool persistent, MPI_Status *status,
                MPI_Request *request, const char *function)
{
    COMM_OF(handle);
    struct receive what = {.buffer = buffer,
                           .count = count,
                           .comm = comm,
                           .blocking = request == NULL};
    CHECK(comm, receive_check(&what, type, source, tag));
    if (request == &forgotten)
        return error_raise(comm, MPI_ERR_ARG, function, "null request");
    TRACED(comm, source, count * what.type->size);
    if (request)
        return receive_request(&what, source, tag, persistent, request,
                               function);
    receive_begin(&what, source, tag);
    return await(&what, status, function);
}

#define RECV_VARIANT(name, count_t)                                            \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type,            \
                    int source, int tag, MPI_Comm comm, MPI_Status *status)    \
    {                                                                          \
        return recv(buffer, count, type, source, tag, comm, false, status,     \
                    NULL, __func__);                                           \
    }
RECV_VARIANT(Recv, int)
RECV_VARIANT(Recv_c, MPI_Count)

#define IRECV_VARIANT(name, count_t, persistent)                               \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type,            \
                    int source, int tag, MPI_Comm comm, MPI_Request *request)  \
    {                                                                          \
        return recv(buffer, count, type, source, tag, comm, persistent,        \
                    MPI_STATUS_IGNORE, GIVEN, __func__);                       \
    }
IRECV_VARIANT(Irecv, int, false)
IRECV_VARIANT(Irecv_c, MPI_Count, false)
IRECV_VARIANT(Recv_init, int, true)
IRECV_VARIANT(Recv_init_c, MPI_Count, true)

/* --------------------------------------------------------- send and receive */

static int sendrecv(const void *sendbuf, MPI_Count sendcount,
                    MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int source,
                    int recvtag, MPI_Comm handle, MPI_Status *status,
                    const char *function)
{
    COMM_OF(handle);
    struct send out = {.buffer = sendbuf,
                       .count = sendcount,
                       .comm = comm,
                       .dest = dest,
                       .tag = sendtag,
                       .copy = sendbuf == recvbuf};
    struct receive in = {
        .buffer = recvbuf, .count = recvcount, .comm = comm, .blocking = true};
    CHECK(comm, send_check(&out, sendtype));
    CHECK(comm, receive_check(&in, recvtype, source, recvtag));
    TRACED(comm, source, recvcount * in.type->size);
    CHECK(comm, send_begin(&out));
    receive_begin(&in, source, recvtag);
    int sent = send_await(&out, function);
    int received = await(&in, status, function);
    return sent != MPI_SUCCESS ? sent : received;
}

#define SENDRECV_VARIANT(name, count_t)                                        \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, int dest, int sendtag,              \
                    void *recvbuf, count_t recvcount, MPI_Datatype recvtype,   \
                    int source, int recvtag, MPI_Comm comm,                    \
                    MPI_Status *status)                                        \
    {                                                                          \
        return sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf,  \
                        recvcount, recvtype, source, recvtag, comm, status,    \
                        __func__);                                             \
    }
SENDRECV_VARIANT(Sendrecv, int)
SENDRECV_VARIANT(Sendrecv_c, MPI_Count)

#define SENDRECV_REPLACE_VARIANT(name, count_t)                                \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type, int dest,  \
                    int sendtag, int source, int recvtag, MPI_Comm comm,       \
                    MPI_Status *status)                                        \
    {                                                                          \
        return sendrecv(buffer, count, type, dest, sendtag, buffer, count,     \
                        type, source, recvtag, comm, status, __func__);        \
    }
SENDRECV_REPLACE_VARIANT(Sendrecv_replace, int)
SENDRECV_REPLACE_VARIANT(Sendrecv_replace_c, MPI_Count)

/* ------------------------------------------- send and receive, nonblocking */

struct both {
    struct pending in; /* first: its receive */
    struct send out;
};

static bool both_progress(struct request *request)
{
    struct both *both = request->state;
    if (!send_done(&both->out) || !atomic_load(&both->in.receive.done)) {
        coll_progress_all();
        (void)transport_progress(0);
    }
    if (!send_done(&both->out)) return false;
    if (!receive_progress(request)) return false;
    if (request->error == MPI_SUCCESS) request->error = both->out.error;
    return true;
}

static void both_release(struct request *request)
{
    struct both *both = request->state;
    if (both->out.waiting) message_release(both->out.waiting);
    type_use(both->out.type, false);
    receive_release(request);
    free(both);
}

static const struct request_kind both_kind = {.progress = both_progress,
                                              .release = both_release};

static int isendrecv(const void *sendbuf, MPI_Count sendcount,
                     MPI_Datatype sendtype, int dest, int sendtag,
                     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                     int source, int recvtag, MPI_Comm handle, MPI_Request *out,
                     const char *function)
{
    COMM_OF(handle);
    struct send send = {.buffer = sendbuf,
                        .count = sendcount,
                        .comm = comm,
                        .dest = dest,
                        .tag = sendtag,
                        .copy = sendbuf == recvbuf};
    struct receive in = {.buffer = recvbuf, .count = recvcount, .comm = comm};
    if (!out) return error_raise(comm, MPI_ERR_ARG, function, "null request");
    CHECK(comm, send_check(&send, sendtype));
    CHECK(comm, receive_check(&in, recvtype, source, recvtag));
    struct both *both = calloc(1, sizeof *both);
    struct request *request = both ? request_new(&both_kind, comm, both) : NULL;
    if (!request) {
        free(both);
        return error_raise(comm, MPI_ERR_NO_MEM, function, "out of memory");
    }
    both->out = send;
    both->in.receive.buffer = in.buffer;
    both->in.receive.count = in.count;
    both->in.receive.type = in.type;
    both->in.receive.comm = comm;
    type_use(send.type, true);
    type_use(in.type, true);
    int result = send_begin(&both->out);
    if (result != MPI_SUCCESS) {
        object_release(&request->object);
        return error_raise_noted(comm, result, function);
    }
    receive_begin(&both->in.receive, source, recvtag);
    request->active = true;
    CHECK(comm, request_publish(request, out));
    return MPI_SUCCESS;
}

#define ISENDRECV_VARIANT(name, count_t)                                       \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(const void *sendbuf, count_t sendcount,                    \
                    MPI_Datatype sendtype, int dest, int sendtag,              \
                    void *recvbuf, count_t recvcount, MPI_Datatype recvtype,   \
                    int source, int recvtag, MPI_Comm comm,                    \
                    MPI_Request *request)                                      \
    {                                                                          \
        return isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, \
                         recvcount, recvtype, source, recvtag, comm, request,  \
                         __func__);                                            \
    }
ISENDRECV_VARIANT(Isendrecv, int)
ISENDRECV_VARIANT(Isendrecv_c, MPI_Count)

#define ISENDRECV_REPLACE_VARIANT(name, count_t)                               \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type, int dest,  \
                    int sendtag, int source, int recvtag, MPI_Comm comm,       \
                    MPI_Request *request)                                      \
    {                                                                          \
        return isendrecv(buffer, count, type, dest, sendtag, buffer, count,    \
                         type, source, recvtag, comm, request, __func__);      \
    }
ISENDRECV_REPLACE_VARIANT(Isendrecv_replace, int)
ISENDRECV_REPLACE_VARIANT(Isendrecv_replace_c, MPI_Count)
