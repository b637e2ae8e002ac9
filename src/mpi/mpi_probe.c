/* mpi_probe.c - probes, and matched receives. */
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

/* Looks once, or until a message arrives. */
static int probe(int source, int tag, struct comm *comm, int *flag,
                 struct message **take, MPI_Status *status,
                 const char *function)
{
    struct receive check = {.comm = comm};
    MPI_Status found;
    int result = receive_check(&check, MPI_BYTE, source, tag);
    if (result != MPI_SUCCESS) return result;
    if (source == MPI_PROC_NULL) {
        status_proc_null(&found);
        status_give(status, &found);
        if (flag) *flag = 1;
        return MPI_SUCCESS;
    }
    struct call_wait w;
    waiting_begins(&w);
    for (;;) {
        struct match_key key = p2p_key(comm, source, tag);
        bool there = p2p_probe(&key, comm, take, &found);
        if (!there && flag) {
            progress_once();
            there = p2p_probe(&key, comm, take, &found);
        }
        bool revoked = comm_revoked(comm);
        check.entry.key = key;
        bool lost = source == MPI_ANY_SOURCE ? p2p_pending_error(&check) != 0
                                             : transport_lost(key.source);
        if (revoked || lost || there) waiting_over(&w);
        if (revoked)
            return error_note(MPIX_ERR_REVOKED, "the communicator was revoked");
        if (!there && lost)
            return error_note(MPIX_ERR_PROC_FAILED, "%s",
                              p2p_error_text(MPIX_ERR_PROC_FAILED, false));
        if (there) status_give(status, &found);
        if (flag) *flag = there;
        if (there || flag) return MPI_SUCCESS;
        if (waiting_turn(&w))
            waiting_probe(&w, comm, key.source, tag, function);
        coll_progress_all();
    }
}

int mpi_Probe(int source, int tag, struct comm *comm, MPI_Status *status)
{
    return probe(source, tag, comm, NULL, NULL, status, "MPI_Probe");
}

int mpi_Iprobe(int source, int tag, struct comm *comm, int *flag,
               MPI_Status *status)
{
    return probe(source, tag, comm, flag, NULL, status, NULL);
}

static int take(int source, int tag, struct comm *comm, int *flag,
                MPI_Message *out, MPI_Status *status, const char *function)
{
    struct message *message = NULL;
    *out = MPI_MESSAGE_NULL;
    int result = probe(source, tag, comm, flag, &message, status, function);
    if (result != MPI_SUCCESS || (flag && !*flag)) return result;
    if (!message) {
        *out = MPI_MESSAGE_NO_PROC;
        return MPI_SUCCESS;
    }
    struct taken *taken = calloc(1, sizeof *taken);
    if (!taken) return note_no_memory();
    object_init(&taken->object, taken_destroy);
    taken->message = message;
    taken->comm = comm;
    object_retain(&comm->object);
    if (!handle_open(HANDLE_REQUEST, &taken->object)) {
        object_release(&taken->object);
        return note_no_memory();
    }
    *out = taken->object.handle;
    return MPI_SUCCESS;
}

int mpi_Mprobe(int source, int tag, struct comm *comm, MPI_Message *message,
               MPI_Status *status)
{
    return take(source, tag, comm, NULL, message, status, "MPI_Mprobe");
}

int mpi_Improbe(int source, int tag, struct comm *comm, int *flag,
                MPI_Message *message, MPI_Status *status)
{
    return take(source, tag, comm, flag, message, status, NULL);
}

/* Looks up the message of a handle, and its receive; *taken is NULL for
 * MPI_MESSAGE_NO_PROC, which delivers nothing. Raises errors. */
static int taken_find(struct receive *receive, MPI_Datatype type,
                      MPI_Message handle, struct taken **taken,
                      const char *function)
{
    struct object *object = handle_find(HANDLE_REQUEST, handle);
    bool nothing = handle == MPI_MESSAGE_NO_PROC;
    if (!nothing && (!object || object->destroy != taken_destroy))
        return error_raise(NULL, MPI_ERR_REQUEST, function, "invalid message");
    *taken = (struct taken *)object;
    receive->comm = nothing ? &comm_self : (*taken)->comm;
    int result = receive_check(receive, type, MPI_ANY_SOURCE, MPI_ANY_TAG);
    if (result == MPI_SUCCESS) return result;
    return error_raise_noted(receive->comm, result, function);
}

/* Moves the message out of its handle; NULL: there is none. */
static struct message *taken_open(struct taken *taken, MPI_Message *handle)
{
    struct message *message = taken ? taken->message : NULL;
    *handle = MPI_MESSAGE_NULL;
    if (!taken) return NULL;
    taken->message = NULL;
    handle_close(&taken->object);
    return message;
}

int mpi_Mrecv(void *buffer, MPI_Count count, MPI_Datatype type,
              MPI_Message *handle, MPI_Status *status, const char *function)
{
    struct receive receive = {.buffer = buffer, .count = count};
    struct taken *taken = NULL;
    int result = taken_find(&receive, type, *handle, &taken, function);
    if (result != MPI_SUCCESS) return result;
    struct message *message = taken_open(taken, handle);
    status_proc_null(&receive.status);
    if (message) p2p_receive_taken(&receive, message);
    for (unsigned turn = 0; message && !atomic_load(&receive.done);
         backoff(&turn))
        coll_progress_all();
    status_give(status, &receive.status);
    if (receive.error != MPI_SUCCESS)
        result = error_raise(receive.comm, receive.error, function, "%s",
                             p2p_error_text(receive.error, false));
    if (taken) object_release(&taken->object);
    return result;
}

int mpi_Imrecv(void *buffer, MPI_Count count, MPI_Datatype type,
               MPI_Message *handle, MPI_Request *out, const char *function)
{
    struct receive receive = {.buffer = buffer, .count = count};
    struct taken *taken = NULL;
    int result = taken_find(&receive, type, *handle, &taken, function);
    if (result != MPI_SUCCESS) return result;
    result = p2p_request_taken(&receive, taken_open(taken, handle), out);
    if (result != MPI_SUCCESS)
        result = error_raise_noted(receive.comm, result, function);
    if (taken) object_release(&taken->object);
    return result;
}
