/* p2p.c - the engine of point-to-point: packing, matching, completing. */
#include "p2p.h"
#include "request.h"
#include "transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_LIMIT = 268435455 }; /* MPI_TAG_UB */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct match_queues queues;

void message_release(struct message *message)
{
    if (atomic_fetch_sub(&message->references, 1) == 1) free(message);
}

/* With the lock. The receive may be gone as soon as it is done. */
static void finish(struct receive *receive, const struct message *message)
{
    const struct type *type = receive->type;
    MPI_Count room = receive->count * type->size;
    MPI_Count size = message->size < room ? message->size : room;
    type_unpack(receive->buffer, receive->count, type, 0, message->data, size);
    const struct group *members = comm_members(receive->comm);
    receive->status.MPI_SOURCE =
        group_rank_of(members, message->entry.key.source);
    receive->status.MPI_TAG = message->entry.key.tag;
    status_set_count(&receive->status, size);
    receive->error =
        message->size > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    receive->status.MPI_ERROR = receive->error;
    atomic_store(&receive->done, true);
}

void p2p_post(struct receive *receive)
{
    pthread_mutex_lock(&lock);
    struct match_entry *entry = match_post(&queues, &receive->entry);
    struct message *message = (struct message *)entry;
    if (message) {
        atomic_store(&message->matched, true);
        finish(receive, message);
    }
    pthread_mutex_unlock(&lock);
    if (message) message_release(message);
}

void p2p_deliver(struct message *message)
{
    pthread_mutex_lock(&lock);
    struct match_entry *entry = match_arrive(&queues, &message->entry);
    if (entry) {
        atomic_store(&message->matched, true);
        finish((struct receive *)entry, message);
    }
    pthread_mutex_unlock(&lock);
    if (entry) message_release(message);
}

void p2p_stop(void)
{
    pthread_mutex_lock(&lock);
    while (queues.unexpected.first) {
        struct match_entry *entry = queues.unexpected.first;
        (void)match_remove(entry);
        message_release((struct message *)entry);
    }
    pthread_mutex_unlock(&lock);
}

bool p2p_cancel(struct receive *receive)
{
    pthread_mutex_lock(&lock);
    bool removed = match_remove(&receive->entry);
    pthread_mutex_unlock(&lock);
    if (!removed) return false;
    receive->status.count_hi_and_cancelled |= 1;
    atomic_store(&receive->done, true);
    return true;
}

bool p2p_probe(const struct match_key *key, struct comm *comm,
               struct message **take, MPI_Status *status)
{
    pthread_mutex_lock(&lock);
    struct match_entry *entry = match_peek(&queues, key);
    if (entry) {
        struct message *message = (struct message *)entry;
        status_empty(status);
        status->MPI_SOURCE =
            group_rank_of(comm_members(comm), entry->key.source);
        status->MPI_TAG = entry->key.tag;
        status_set_count(status, message->size);
        if (take) {
            (void)match_remove(entry);
            *take = message;
        }
    }
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

void p2p_receive_taken(struct receive *receive, struct message *message)
{
    atomic_store(&message->matched, true);
    finish(receive, message);
    message_release(message);
}

/* -------------------------------------------------------------------- sends */

static int data_check(const void *buffer, MPI_Count count, MPI_Datatype handle,
                      struct type **type)
{
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    *type = type_find(handle);
    if (!*type || !(*type)->committed)
        return error_note(MPI_ERR_TYPE, "invalid or uncommitted datatype");
    if (!buffer && count > 0 && (*type)->predefined && (*type)->size > 0)
        return error_note(MPI_ERR_BUFFER, "null buffer");
    return MPI_SUCCESS;
}

static int rank_check(const struct comm *comm, int rank, bool any)
{
    if (rank == MPI_PROC_NULL || (any && rank == MPI_ANY_SOURCE))
        return MPI_SUCCESS;
    if (rank >= 0 && rank < comm_members(comm)->size) return MPI_SUCCESS;
    return error_note(MPI_ERR_RANK, "rank %d is not in the communicator", rank);
}

int send_check(struct send *send, MPI_Datatype type)
{
    int result = rank_check(send->comm, send->dest, false);
    if (result != MPI_SUCCESS) return result;
    if (send->tag < 0 || send->tag > TAG_LIMIT)
        return error_note(MPI_ERR_TAG, "tag %d", send->tag);
    return data_check(send->buffer, send->count, type, &send->type);
}

int receive_check(struct receive *receive, MPI_Datatype type, int source,
                  int tag)
{
    int result = rank_check(receive->comm, source, true);
    if (result != MPI_SUCCESS) return result;
    if (tag != MPI_ANY_TAG && (tag < 0 || tag > TAG_LIMIT))
        return error_note(MPI_ERR_TAG, "tag %d", tag);
    return data_check(receive->buffer, receive->count, type, &receive->type);
}

int send_begin(struct send *send)
{
    MPI_Count size = send->count * send->type->size;
    if (send->dest == MPI_PROC_NULL) return MPI_SUCCESS;
    if (send->mode == SEND_BUFFERED &&
        size + MPI_BSEND_OVERHEAD > bsend_room())
        return error_note(MPI_ERR_BUFFER,
                          "the attached buffer has no room for %ld bytes",
                          (long)size);
    struct message *message = malloc(sizeof *message + (size_t)size);
    if (!message) return error_note(MPI_ERR_NO_MEM, "out of memory");
    memset(message, 0, sizeof *message);
    bool wait = send->mode == SEND_SYNCHRONOUS;
    atomic_init(&message->references, wait ? 2 : 1);
    atomic_init(&message->matched, false);
    message->size = size;
    message->entry.key = (struct match_key){
        world.self, send->comm->context, send->tag};
    type_pack(send->buffer, send->count, send->type, 0, message->data, size);
    uint64_t to = comm_members(send->comm)->ids[send->dest];
    int result = transport_send(to, message, wait);
    if (!wait) return result;
    if (result == MPI_SUCCESS)
        send->waiting = message;
    else
        message_release(message);
    return result;
}

bool send_done(struct send *send)
{
    if (!send->waiting) return true;
    if (!atomic_load(&send->waiting->matched)) return false;
    message_release(send->waiting);
    send->waiting = NULL;
    return true;
}
