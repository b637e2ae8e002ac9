/* p2p_api.c - sends, receives, and calls that do both: blocking, nonblocking
 * and persistent ones. */
#include "p2p.h"
#include "coll.h"
#include "rank_use.h"
#include "request.h"
#include "traced.h"
#include "transport.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

/* Starts and publishes a new request, or leaves the start to MPI_Start. NULL:
 * there was no memory for it. Returns a noted class. */
static int request_go(struct request *request, const struct mode *mode)
{
    if (!request) return note_no_memory();
    request->persistent = mode->how == MODE_PREPARED;
    int result = MPI_SUCCESS;
    if (request->persistent)
        rank_use_keep(mode->function);
    else
        result = request->kind->start(request);
    if (result != MPI_SUCCESS) {
        object_release(&request->object);
        return result;
    }
    request->active = !request->persistent;
    return request_publish(request, mode->request);
}

static void type_use(struct type *type, void (*change)(struct object *))
{
    if (!type->predefined) change(&type->object);
}

static int note_end(int error, bool sending)
{
    if (error == MPI_SUCCESS) return MPI_SUCCESS;
    return error_note(error, "%s", p2p_error_text(error, sending));
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
    progress_once();
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
    type_use(send->type, object_release);
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
    return note_end(request->error, true);
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

static int send_await(struct send *send, const char *function)
{
    struct call_wait w;
    waiting_begins(&w);
    while (!send_done(send)) {
        coll_progress_all();
        if (waiting_turn(&w)) waiting_send(&w, send, function);
    }
    waiting_over(&w);
    return note_end(send->error, true);
}

static int send(struct send *what, MPI_Datatype type, const struct mode *mode)
{
    int result = send_check(what, type);
    if (result != MPI_SUCCESS) return result;
    TRACED(what->comm, what->dest, what->count * what->type->size,
           mode->function);
    if (mode->how == MODE_NOW) {
        result = send_begin(what);
        return result == MPI_SUCCESS ? send_await(what, mode->function)
                                     : result;
    }
    if (mode->how == MODE_STARTED && send_at_once(what, &result)) {
        if (result == MPI_SUCCESS) *mode->request = request_over();
        return result;
    }
    struct request *request =
        request_with_state(&send_kind, what->comm, sizeof *what);
    if (request) {
        *(struct send *)request->state = *what;
        type_use(what->type, object_retain);
    }
    return request_go(request, mode);
}

#define SEND(name, how)                                                        \
    int mpi_##name(const void *buffer, MPI_Count count, MPI_Datatype type,     \
                   int dest, int tag, struct comm *comm,                       \
                   const struct mode *mode)                                    \
    {                                                                          \
        struct send what = {.buffer = buffer,                                  \
                            .count = count,                                    \
                            .comm = comm,                                      \
                            .dest = dest,                                      \
                            .tag = tag,                                        \
                            .mode = how};                                      \
        return send(&what, type, mode);                                        \
    }
SEND(Send, SEND_STANDARD)
SEND(Ssend, SEND_SYNCHRONOUS)
SEND(Rsend, SEND_READY)
SEND(Bsend, SEND_BUFFERED)

/* ------------------------------------------------------------------ receives
 */

/* State of a receive request; persistent requests keep `source`. */
struct pending {
    struct receive receive; /* first */
    int source, tag;
};

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
    progress_once();
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
    type_use(pending->receive.type, object_release);
}

static int receive_note(struct request *request)
{
    return note_end(request->error, false);
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

/* A request whose state is a struct pending, or begins with one; NULL: no
 * memory. */
static struct request *receive_request(const struct request_kind *kind,
                                       size_t size, const struct receive *from,
                                       int source, int tag)
{
    struct request *request = request_with_state(kind, from->comm, size);
    if (!request) return NULL;
    struct pending *pending = request->state;
    pending->receive = *from;
    pending->source = source;
    pending->tag = tag;
    type_use(from->type, object_retain);
    return request;
}

int p2p_request_taken(const struct receive *from, struct message *message,
                      MPI_Request *out)
{
    struct request *request =
        receive_request(&receive_kind, sizeof(struct pending), from,
                        MPI_ANY_SOURCE, MPI_ANY_TAG);
    if (!request) return note_no_memory();
    struct pending *pending = request->state;
    status_empty(&pending->receive.status);
    if (message)
        p2p_receive_taken(&pending->receive, message);
    else
        receive_begin(&pending->receive, MPI_PROC_NULL, MPI_ANY_TAG);
    request->active = true;
    return request_publish(request, out);
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
    status_give(status, &receive->status);
    return note_end(receive->error, false);
}

int mpi_Recv(void *buffer, MPI_Count count, MPI_Datatype type, int source,
             int tag, struct comm *comm, const struct mode *mode)
{
    struct receive what = {.buffer = buffer,
                           .count = count,
                           .comm = comm,
                           .blocking = mode->how == MODE_NOW};
    int result = receive_check(&what, type, source, tag);
    if (result != MPI_SUCCESS) return result;
    TRACED(comm, source, count * what.type->size, mode->function);
    if (mode->how != MODE_NOW)
        return request_go(receive_request(&receive_kind, sizeof(struct pending),
                                          &what, source, tag),
                          mode);
    receive_begin(&what, source, tag);
    return await(&what, mode->status, mode->function);
}

/* --------------------------------------------------------- send and receive */

struct both {
    struct pending in; /* first: its receive */
    struct send out;
};
_Static_assert(sizeof(struct both) <= REQUEST_STATE_MAX, "pooled");

static bool both_progress(struct request *request)
{
    struct both *both = request->state;
    if (!send_done(&both->out) || !atomic_load(&both->in.receive.done)) {
        progress_once();
    }
    if (!send_done(&both->out)) return false;
    if (!receive_progress(request)) return false;
    if (request->error == MPI_SUCCESS) request->error = both->out.error;
    return true;
}

static int both_start(struct request *request)
{
    struct both *both = request->state;
    int result = send_begin(&both->out);
    return result == MPI_SUCCESS ? receive_start(request) : result;
}

static void both_release(struct request *request)
{
    struct both *both = request->state;
    if (both->out.waiting) message_release(both->out.waiting);
    type_use(both->out.type, object_release);
    receive_release(request);
}

static const struct request_kind both_kind = {.progress = both_progress,
                                              .start = both_start,
                                              .finish = receive_note,
                                              .release = both_release};

int mpi_Sendrecv(const void *sendbuf, MPI_Count sendcount,
                 MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int source,
                 int recvtag, struct comm *comm, const struct mode *mode)
{
    struct send out = {.buffer = sendbuf,
                       .count = sendcount,
                       .comm = comm,
                       .dest = dest,
                       .tag = sendtag,
                       .copy = sendbuf == recvbuf};
    struct receive in = {.buffer = recvbuf,
                         .count = recvcount,
                         .comm = comm,
                         .blocking = mode->how == MODE_NOW};
    int result = send_check(&out, sendtype);
    if (result == MPI_SUCCESS)
        result = receive_check(&in, recvtype, source, recvtag);
    if (result != MPI_SUCCESS) return result;
    if (mode->how != MODE_NOW) {
        struct request *request = receive_request(
            &both_kind, sizeof(struct both), &in, source, recvtag);
        if (request) {
            ((struct both *)request->state)->out = out;
            type_use(out.type, object_retain);
        }
        return request_go(request, mode);
    }
    TRACED(comm, source, recvcount * in.type->size, mode->function);
    result = send_begin(&out);
    if (result != MPI_SUCCESS) return result;
    receive_begin(&in, source, recvtag);
    int sent = send_await(&out, mode->function);
    int received = await(&in, mode->status, mode->function);
    return sent != MPI_SUCCESS ? note_end(sent, true) : received;
}

int mpi_Sendrecv_replace(void *buffer, MPI_Count count, MPI_Datatype type,
                         int dest, int sendtag, int source, int recvtag,
                         struct comm *comm, const struct mode *mode)
{
    return mpi_Sendrecv(buffer, count, type, dest, sendtag, buffer, count, type,
                        source, recvtag, comm, mode);
}
