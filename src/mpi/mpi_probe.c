/* mpi_probe.c - probes, matched receives, and the buffer of buffered sends. */
#include "coll.h"
#include "p2p.h"
#include "request.h"
#include "revoke.h"
#include "transport.h"
#include "waiting.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* A message that a matched probe has removed from the queues. */
struct taken {
    struct object object; /* its handle is of the kind of requests */
    struct message *message;
    struct comm *comm;
};

static void taken_destroy(struct object *object)
{
    struct taken *taken = (struct taken *)object;
    if (taken->message) message_release(taken->message);
    object_release(&taken->comm->object);
    free(taken);
}

static void status_copy(MPI_Status *to, const MPI_Status *from)
{
    if (to == MPI_STATUS_IGNORE) return;
    int error = to->MPI_ERROR;
    *to = *from;
    to->MPI_ERROR = error;
}

/* Looks once, or until a message arrives. */
static int probe(int source, int tag, MPI_Comm handle, int *flag,
                 struct message **take, struct comm **comm_out,
                 MPI_Status *status, const char *function)
{
    struct comm *comm = comm_find(handle);
    struct receive check = {.comm = comm};
    MPI_Status found;
    if (!comm)
        return error_raise(NULL, MPI_ERR_COMM, function,
                           "invalid communicator 0x%08x", HANDLE_BITS(handle));
    *comm_out = comm;
    int result = receive_check(&check, MPI_BYTE, source, tag);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, function);
    if (source == MPI_PROC_NULL) {
        status_empty(&found);
        found.MPI_SOURCE = MPI_PROC_NULL;
        status_copy(status, &found);
        if (flag) *flag = 1;
        return MPI_SUCCESS;
    }
    struct call_wait w;
    waiting_begins(&w);
    for (;;) {
        struct match_key key = p2p_key(comm, source, tag);
        bool there = p2p_probe(&key, comm, take, &found);
        if (!there && flag) {
            coll_progress_all();
            (void)transport_progress(0);
            there = p2p_probe(&key, comm, take, &found);
        }
        bool revoked = comm_revoked(comm);
        check.entry.key = key;
        bool lost = source == MPI_ANY_SOURCE ? p2p_pending_error(&check) != 0
                                             : transport_lost(key.source);
        if (revoked || lost || there) waiting_over(&w);
        if (revoked)
            return error_raise(comm, MPIX_ERR_REVOKED, function,
                               "the communicator was revoked");
        if (!there && lost)
            return error_raise(comm, MPIX_ERR_PROC_FAILED, function, "%s",
                               p2p_error_text(MPIX_ERR_PROC_FAILED, false));
        if (there) status_copy(status, &found);
        if (flag) *flag = there;
        if (there || flag) return MPI_SUCCESS;
        if (waiting_turn(&w))
            waiting_probe(&w, comm, key.source, tag, function);
        coll_progress_all();
    }
}

MPI_PUBLIC(Probe);
int PMPI_Probe(int source, int tag, MPI_Comm handle, MPI_Status *status)
{
    struct comm *comm;
    return probe(source, tag, handle, NULL, NULL, &comm, status, __func__);
}

MPI_PUBLIC(Iprobe);
int PMPI_Iprobe(int source, int tag, MPI_Comm handle, int *flag,
                MPI_Status *status)
{
    struct comm *comm;
    if (!flag) return RAISE_ARG(NULL, "null flag");
    return probe(source, tag, handle, flag, NULL, &comm, status, __func__);
}

static int take(int source, int tag, MPI_Comm handle, int *flag,
                MPI_Message *out, MPI_Status *status, const char *function)
{
    struct message *message = NULL;
    struct comm *comm;
    if (!out) return error_raise(NULL, MPI_ERR_ARG, function, "null message");
    *out = MPI_MESSAGE_NULL;
    int result =
        probe(source, tag, handle, flag, &message, &comm, status, function);
    if (result != MPI_SUCCESS || (flag && !*flag)) return result;
    if (!message) {
        *out = MPI_MESSAGE_NO_PROC;
        return MPI_SUCCESS;
    }
    struct taken *taken = calloc(1, sizeof *taken);
    if (!taken) return RAISE_NO_MEMORY(comm);
    object_init(&taken->object, taken_destroy);
    taken->message = message;
    taken->comm = comm;
    object_retain(&comm->object);
    if (!handle_open(HANDLE_REQUEST, &taken->object)) {
        object_release(&taken->object);
        return RAISE_NO_MEMORY(comm);
    }
    *out = taken->object.handle;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Mprobe);
int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message,
                MPI_Status *status)
{
    return take(source, tag, comm, NULL, message, status, __func__);
}

MPI_PUBLIC(Improbe);
int PMPI_Improbe(int source, int tag, MPI_Comm comm, int *flag,
                 MPI_Message *message, MPI_Status *status)
{
    if (!flag) return RAISE_ARG(NULL, "null flag");
    return take(source, tag, comm, flag, message, status, __func__);
}

/* Looks up the message of a handle, and its receive; *taken is NULL for
 * MPI_MESSAGE_NO_PROC, which delivers nothing. Raises errors. */
static int taken_find(struct receive *receive, MPI_Datatype type,
                      const MPI_Message *handle, struct taken **taken,
                      const char *function)
{
    struct object *object =
        handle ? handle_find(HANDLE_REQUEST, *handle) : NULL;
    bool nothing = handle && *handle == MPI_MESSAGE_NO_PROC;
    if (!nothing && (!object || object->destroy != taken_destroy))
        return error_raise(NULL, MPI_ERR_REQUEST, function, "invalid message");
    *taken = (struct taken *)object;
    receive->comm = nothing ? &comm_self : (*taken)->comm;
    int result = receive_check(receive, type, MPI_ANY_SOURCE, MPI_ANY_TAG);
    if (result == MPI_SUCCESS) return result;
    return error_raise_noted(receive->comm, result, function);
}

/* Moves the message out of its handle. */
static struct message *taken_open(struct taken *taken, MPI_Message *handle)
{
    struct message *message = taken->message;
    taken->message = NULL;
    handle_close(&taken->object);
    *handle = MPI_MESSAGE_NULL;
    return message;
}

static void status_no_proc(MPI_Status *status)
{
    status_empty(status);
    status->MPI_SOURCE = MPI_PROC_NULL;
}

static int mrecv(void *buffer, MPI_Count count, MPI_Datatype type,
                 MPI_Message *handle, MPI_Status *status, const char *function)
{
    struct receive receive = {.buffer = buffer, .count = count};
    struct taken *taken = NULL;
    int result = taken_find(&receive, type, handle, &taken, function);
    if (result != MPI_SUCCESS) return result;
    status_no_proc(&receive.status);
    if (!taken) {
        *handle = MPI_MESSAGE_NULL;
        status_copy(status, &receive.status);
        return MPI_SUCCESS;
    }
    p2p_receive_taken(&receive, taken_open(taken, handle));
    for (unsigned turn = 0; !atomic_load(&receive.done); backoff(&turn))
        coll_progress_all();
    status_copy(status, &receive.status);
    if (receive.error != MPI_SUCCESS)
        result = error_raise(taken->comm, receive.error, function, "%s",
                             p2p_error_text(receive.error, false));
    object_release(&taken->object);
    return result;
}

#define MRECV_VARIANT(name, count_t)                                           \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type,            \
                    MPI_Message *message, MPI_Status *status)                  \
    {                                                                          \
        return mrecv(buffer, count, type, message, status, __func__);          \
    }
MRECV_VARIANT(Mrecv, int)
MRECV_VARIANT(Mrecv_c, MPI_Count)

static bool complete_already(struct request *request)
{
    (void)request;
    return true;
}

static const struct request_kind complete_kind = {.progress = complete_already};

static int imrecv(void *buffer, MPI_Count count, MPI_Datatype type,
                  MPI_Message *handle, MPI_Request *out, const char *function)
{
    struct receive receive = {.buffer = buffer, .count = count};
    struct taken *taken = NULL;
    if (!out) return error_raise(NULL, MPI_ERR_ARG, function, "null request");
    int result = taken_find(&receive, type, handle, &taken, function);
    if (result != MPI_SUCCESS) return result;
    if (taken) {
        struct message *message = taken_open(taken, handle);
        result = p2p_request_taken(&receive, message, out, function);
        object_release(&taken->object);
        return result;
    }
    struct request *request = request_new(&complete_kind, receive.comm, NULL);
    if (!request)
        return error_raise(NULL, MPI_ERR_NO_MEM, function, "out of memory");
    *handle = MPI_MESSAGE_NULL;
    status_no_proc(&request->status);
    request->active = true;
    result = request_publish(request, out);
    return result == MPI_SUCCESS ? result
                                 : error_raise_noted(NULL, result, function);
}

#define IMRECV_VARIANT(name, count_t)                                          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *buffer, count_t count, MPI_Datatype type,            \
                    MPI_Message *message, MPI_Request *request)                \
    {                                                                          \
        return imrecv(buffer, count, type, message, request, __func__);        \
    }
IMRECV_VARIANT(Imrecv, int)
IMRECV_VARIANT(Imrecv_c, MPI_Count)
