/* partitioned.c - partitioned messages. All parts travel together when the last
 * one is ready, which MPI allows; a part has arrived when all have. */
#include "partitioned.h"
#include "coll.h"
#include "p2p.h"
#include "rank_use.h"
#include "request.h"
#include "transport.h"

#include <stdlib.h>

struct series {
    struct series *next;
    uint64_t peer;
    int tag;
    bool sends;
    unsigned count;
};

void series_release(struct series *series)
{
    while (series) {
        struct series *next = series->next;
        free(series);
        series = next;
    }
}

/* The channel of the next request of the pair. False: no memory. */
static bool series_next(struct comm *comm, uint64_t peer, int tag, bool sends,
                        uint32_t *channel)
{
    facade_lock();
    struct series *at = comm->series;
    while (at && (at->peer != peer || at->tag != tag || at->sends != sends))
        at = at->next;
    if (!at && (at = calloc(1, sizeof *at)) != NULL) {
        at->peer = peer;
        at->tag = tag;
        at->sends = sends;
        at->next = comm->series;
        comm->series = at;
    }
    if (at) *channel = CHANNEL_PARTITIONED | CHANNEL_NUMBER(at->count++);
    facade_unlock();
    return at != NULL;
}

struct parts {
    struct receive in; /* first; only one of the two is in use */
    struct send out;
    bool sends;
    int source, count;
    uint32_t channel;
    atomic_int missing; /* parts that are not ready */
    atomic_bool begun;  /* all are ready, and the message was sent */
    atomic_uchar *ready;
};

static struct type *type_of(const struct parts *parts)
{
    return parts->sends ? parts->out.type : parts->in.type;
}

static bool parts_progress(struct request *request)
{
    struct parts *parts = request->state;
    if (parts->sends) {
        if (!atomic_load(&parts->begun) || !send_done(&parts->out))
            progress_once();
        if (!atomic_load(&parts->begun) || !send_done(&parts->out))
            return false;
        request->error = parts->out.error;
        return true;
    }
    if (!atomic_load(&parts->in.done)) progress_once();
    if (!atomic_load(&parts->in.done)) return false;
    request->status = parts->in.status;
    request->error = parts->in.error;
    return true;
}

static int parts_start(struct request *request)
{
    struct parts *parts = request->state;
    for (int i = 0; i < parts->count; i++) atomic_store(&parts->ready[i], 0);
    if (parts->sends) {
        parts->out.error = MPI_SUCCESS;
        atomic_store(&parts->begun, false);
        atomic_store(&parts->missing, parts->count);
        return MPI_SUCCESS;
    }
    struct receive *in = &parts->in;
    status_empty(&in->status);
    in->error = MPI_SUCCESS;
    atomic_store(&in->done, false);
    if (parts->source == MPI_PROC_NULL) {
        in->status.MPI_SOURCE = MPI_PROC_NULL;
        atomic_store(&in->done, true);
        return MPI_SUCCESS;
    }
    in->entry.key = p2p_key(in->comm, parts->source, in->entry.key.tag);
    in->entry.key.context |= parts->channel;
    p2p_post(in);
    return MPI_SUCCESS;
}

static void parts_release(struct request *request)
{
    struct parts *parts = request->state;
    struct type *type = type_of(parts);
    if (!parts->sends) (void)p2p_cancel(&parts->in);
    if (parts->out.waiting) message_release(parts->out.waiting);
    if (type && !type->predefined) object_release(&type->object);
    free(parts->ready);
    free(parts);
}

static const struct request_kind parts_kind = {
    .progress = parts_progress, .start = parts_start, .release = parts_release};

/* Publishes a request for parts that are laid out and checked; takes them
 * over. */
static int parts_publish(struct parts *parts, struct comm *comm, int peer,
                         int tag, MPI_Request *out)
{
    struct type *type = type_of(parts);
    struct request *request = request_new(&parts_kind, comm, parts);
    bool good = request != NULL;
    parts->ready = calloc((size_t)parts->count, sizeof *parts->ready);
    if (!type->predefined) object_retain(&type->object);
    if (peer != MPI_PROC_NULL)
        good = good && series_next(comm, comm_peers(comm)->ids[peer], tag,
                                   parts->sends, &parts->channel);
    if (!good || !parts->ready) {
        struct request none = {.state = parts};
        if (request)
            object_release(&request->object);
        else
            parts_release(&none);
        return note_no_memory();
    }
    parts->out.channel = parts->channel;
    rank_use_keep("a partitioned message");
    request->persistent = true;
    return request_publish(request, out);
}

static int parts_make(void *buffer, int partitions, MPI_Count count,
                      MPI_Datatype type, int peer, int tag, struct comm *comm,
                      bool sends, MPI_Request *out)
{
    if (partitions < 1)
        return error_note(MPI_ERR_ARG, "%d partitions", partitions);
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    if (!sends && peer == MPI_ANY_SOURCE)
        return error_note(MPI_ERR_RANK, "a partitioned receive has one source");
    if (!sends && tag == MPI_ANY_TAG)
        return error_note(MPI_ERR_TAG, "a partitioned receive has one tag");
    struct parts *parts = calloc(1, sizeof *parts);
    if (!parts) return note_no_memory();
    parts->sends = sends;
    parts->count = partitions;
    parts->source = peer;
    parts->out = (struct send){.buffer = buffer,
                               .count = count * partitions,
                               .comm = comm,
                               .dest = peer,
                               .tag = tag};
    parts->in.buffer = buffer;
    parts->in.count = count * partitions;
    parts->in.comm = comm;
    parts->in.entry.key.tag = tag;
    int result = sends ? send_check(&parts->out, type)
                       : receive_check(&parts->in, type, peer, tag);
    if (result == MPI_SUCCESS)
        return parts_publish(parts, comm, peer, tag, out);
    free(parts);
    return result;
}

int mpi_Psend_init(const void *buffer, int partitions, MPI_Count count,
                   MPI_Datatype type, int dest, int tag, struct comm *comm,
                   MPI_Info info, MPI_Request *request)
{
    (void)info;
    return parts_make((void *)(uintptr_t)buffer, partitions, count, type, dest,
                      tag, comm, true, request);
}

int mpi_Precv_init(void *buffer, int partitions, MPI_Count count,
                   MPI_Datatype type, int source, int tag, struct comm *comm,
                   MPI_Info info, MPI_Request *request)
{
    (void)info;
    return parts_make(buffer, partitions, count, type, source, tag, comm, false,
                      request);
}

/* The request's parts; NULL, raised: it is not partitioned. */
static struct parts *parts_find(MPI_Request handle, bool sends,
                                struct request **request, int *result,
                                const char *function)
{
    *request = (struct request *)handle_find(HANDLE_REQUEST, handle);
    struct parts *parts = NULL;
    if (*request && request_is(*request, &parts_kind))
        parts = (*request)->state;
    if (parts && parts->sends == sends) return parts;
    *result = error_raise(NULL, MPI_ERR_REQUEST, function,
                          "not a request of a partitioned %s",
                          sends ? "send" : "receive");
    return NULL;
}

/* Callable from any thread. The thread that makes the last part ready sends the
 * message. */
static int ready(MPI_Request handle, int first, int last, const char *function)
{
    struct request *request;
    int result = MPI_SUCCESS;
    struct parts *parts = parts_find(handle, true, &request, &result, function);
    if (!parts) return result;
    if (!request->active)
        return error_raise(request->comm, MPI_ERR_REQUEST, function,
                           "the request is not started");
    for (int i = first; i <= last; i++) {
        if (i < 0 || i >= parts->count)
            return error_raise(request->comm, MPI_ERR_ARG, function,
                               "partition %d of %d", i, parts->count);
        if (atomic_exchange(&parts->ready[i], 1))
            return error_raise(request->comm, MPI_ERR_ARG, function,
                               "partition %d is ready already", i);
        if (atomic_fetch_sub(&parts->missing, 1) > 1) continue;
        result = send_begin(&parts->out);
        if (result != MPI_SUCCESS) parts->out.error = result;
        atomic_store(&parts->begun, true);
    }
    return result == MPI_SUCCESS
               ? result
               : error_raise_noted(request->comm, result, function);
}

int mpi_Pready(int partition, MPI_Request request, const char *function)
{
    return ready(request, partition, partition, function);
}

int mpi_Pready_range(int low, int high, MPI_Request request,
                     const char *function)
{
    if (low > high)
        return error_raise(NULL, MPI_ERR_ARG, function, "an empty range");
    return ready(request, low, high, function);
}

int mpi_Pready_list(int length, const int partitions[], MPI_Request request,
                    const char *function)
{
    if (length < 0 || (length > 0 && !partitions))
        return error_raise(NULL, MPI_ERR_ARG, function,
                           "negative length or null list");
    for (int i = 0; i < length; i++) {
        int result = ready(request, partitions[i], partitions[i], function);
        if (result != MPI_SUCCESS) return result;
    }
    return MPI_SUCCESS;
}

int mpi_Parrived(MPI_Request handle, int partition, int *flag,
                 const char *function)
{
    struct request *request;
    int result = MPI_SUCCESS;
    struct parts *parts =
        parts_find(handle, false, &request, &result, function);
    if (!parts) return result;
    if (partition < 0 || partition >= parts->count)
        return error_raise(request->comm, MPI_ERR_ARG, function,
                           "partition %d of %d", partition, parts->count);
    if (request->active && !atomic_load(&parts->in.done)) progress_once();
    *flag = !request->active || atomic_load(&parts->in.done);
    return MPI_SUCCESS;
}
