/* p2p.c - the point-to-point engine: packing, matching, completion. */
#include "p2p.h"
#include "coll.h"
#include "partner.h"
#include "rank_use.h"
#include "request.h"
#include "revoke.h"
#include "transport.h"
#include "ulfm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_LIMIT = 268435455 }; /* MPI_TAG_UB */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct match_queues queues;

void message_release(struct message *message)
{
    if (atomic_fetch_sub(&message->references, 1) != 1) return;
    if (message->roomed > 0) bsend_discharge(message);
    free(message);
}

struct message *message_new(MPI_Count size)
{
    struct message *message = malloc(sizeof *message + (size_t)size);
    if (!message) return NULL;
    memset(message, 0, sizeof *message);
    atomic_init(&message->references, 1);
    atomic_init(&message->matched, false);
    message->size = size;
    message->payload = message->data;
    return message;
}

/* The caller holds the lock. The receive may be freed as soon as it is done. */
static void finish(struct receive *receive, const struct match_key *key,
                   const char *payload, MPI_Count whole)
{
    const struct type *type = receive->type;
    MPI_Count room = receive->count * type->size;
    MPI_Count size = whole < room ? whole : room;
    type_unpack(receive->buffer, receive->count, type, 0, payload, size);
    const struct group *peers = comm_peers(receive->comm);
    receive->status.MPI_SOURCE = group_rank_of(peers, key->source);
    receive->status.MPI_TAG = key->tag;
    status_set_count(&receive->status, size);
    receive->error = whole > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    receive->status.MPI_ERROR = receive->error;
    atomic_store(&receive->done, true);
}

/* The caller holds the lock. */
static void fail(struct receive *receive, int error)
{
    receive->error = receive->status.MPI_ERROR = error;
    atomic_store(&receive->done, true);
}

/* The caller holds the lock. */
static void matched(const struct message *message)
{
    struct partner *partner = partner_of(message->entry.key.source);
    if (!partner) return;
    transport_matched(partner, message->cookie, message->charged,
                      message->wants_ack);
}

/* The caller holds the lock. Joins a message with its receive; takes the
 * message over. */
static void join(struct receive *receive, struct message *message)
{
    atomic_store(&message->matched, true);
    if (message->remote) matched(message);
    if (message->payload) {
        finish(receive, &message->entry.key, message->payload, message->size);
        message_release(message);
        return;
    }
    const struct type *type = receive->type;
    char *to = receive->buffer;
    message->receive = receive;
    if (!type->dense || receive->count * type->size < message->size)
        to = message->pulled = malloc((size_t)message->size);
    int error = transport_pull(message, to);
    if (error == MPI_SUCCESS) return;
    fail(receive, error);
    free(message->pulled);
    message_release(message);
}

void p2p_pulled(struct message *message, int error)
{
    pthread_mutex_lock(&lock);
    struct receive *receive = message->receive;
    message->payload = message->pulled ? message->pulled : receive->buffer;
    if (error == MPI_SUCCESS)
        finish(receive, &message->entry.key, message->payload, message->size);
    else
        fail(receive, error);
    pthread_mutex_unlock(&lock);
    free(message->pulled);
    message_release(message);
}

const char *p2p_error_text(int error, bool sending)
{
    const char *gone = transport_gone();
    if (gone && error != MPI_ERR_TRUNCATE && error != MPIX_ERR_REVOKED)
        return gone;
    switch (error) {
    case MPI_ERR_TRUNCATE:
        return "the message is longer than the buffer";
    case MPIX_ERR_REVOKED:
        return "the communicator was revoked";
    case MPI_ERR_NO_MEM:
        return sending ? "the receiver has no memory for the message"
                       : "no memory to receive the message into";
    case MPIX_ERR_PROC_FAILED:
    case MPIX_ERR_PROC_FAILED_PENDING:
        return sending ? "the receiver was lost"
                       : "the sender, or one that may be it, was lost";
    default:
        return "the transfer failed";
    }
}

static bool any_lost(const struct comm *comm)
{
    const struct group *peers = comm_peers(comm);
    for (int i = 0; i < peers->size; i++)
        if (transport_lost(peers->ids[i]) &&
            !comm_acknowledged(comm, peers->ids[i]))
            return true;
    return false;
}

static bool others_lost(const struct comm *comm)
{
    const struct group *peers = comm_peers(comm);
    for (int i = 0; i < peers->size; i++)
        if (peers->ids[i] != world.self && !transport_lost(peers->ids[i]))
            return false;
    return true;
}

int p2p_pending_error(const struct receive *receive)
{
    if (receive->entry.key.source != MATCH_ANY_SOURCE) return MPI_SUCCESS;
    /* Nobody comes any more, whatever the program opted for. */
    if (transport_gone()) return MPIX_ERR_PROC_FAILED_PENDING;
    if (!transport_lost(0) || !any_lost(receive->comm)) return MPI_SUCCESS;
    bool waits = rank_use_has_opted_in() && !others_lost(receive->comm);
    return waits ? MPI_SUCCESS : MPIX_ERR_PROC_FAILED_PENDING;
}

/* The error of a receive without message, from the losses and revocations so
 * far. A nonblocking receive from any source stays pending: the program may
 * acknowledge a loss. */
static int receive_error(const struct receive *receive)
{
    uint64_t source = receive->entry.key.source;
    if (context_revoked(receive->entry.key.context)) return MPIX_ERR_REVOKED;
    if (source != MATCH_ANY_SOURCE)
        return transport_lost(source) ? MPIX_ERR_PROC_FAILED : MPI_SUCCESS;
    return receive->blocking ? p2p_pending_error(receive) : MPI_SUCCESS;
}

void p2p_post(struct receive *receive)
{
    pthread_mutex_lock(&lock);
    struct match_entry *entry = match_post(&queues, &receive->entry);
    int error = entry ? MPI_SUCCESS : receive_error(receive);
    if (entry) {
        join(receive, (struct message *)entry);
    } else if (error != MPI_SUCCESS) {
        (void)match_remove(&receive->entry);
        fail(receive, error);
    } else {
        transport_want(receive->entry.key.source);
    }
    pthread_mutex_unlock(&lock);
}

void p2p_held(struct partner *partner)
{
    const struct match_list *posted = &queues.posted;
    bool wanted = false;
    pthread_mutex_lock(&lock);
    partner_holds(partner);
    for (const struct match_entry *at = posted->first; at && !wanted;
         at = at->next)
        wanted =
            at->key.source == MATCH_ANY_SOURCE || at->key.source == partner->id;
    if (wanted) transport_want(partner->id);
    pthread_mutex_unlock(&lock);
}

/* Discards a message; the sender gets its credit back. */
static void discard(struct message *message)
{
    message->wants_ack = false;
    atomic_store(&message->matched, true);
    if (message->remote) matched(message);
    message_release(message);
}

void p2p_deliver(struct message *message)
{
    pthread_mutex_lock(&lock);
    if (context_revoked(message->entry.key.context)) {
        discard(message);
    } else {
        struct match_entry *entry = match_arrive(&queues, &message->entry);
        if (entry) join((struct receive *)entry, message);
    }
    pthread_mutex_unlock(&lock);
}

void p2p_lock(void)
{
    pthread_mutex_lock(&lock);
}

void p2p_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* No receive was posted for it. */
static bool keep(const struct arrival *arrival)
{
    struct message *kept = message_new(arrival->size);
    if (!kept) return false;
    kept->entry.key = arrival->key;
    kept->remote = true;
    kept->wants_ack = arrival->wants_ack;
    kept->cookie = arrival->cookie;
    kept->charged = arrival->charged;
    if (arrival->size > 0)
        memcpy(kept->data, arrival->payload, (size_t)arrival->size);
    (void)match_arrive(&queues, &kept->entry);
    return true;
}

bool p2p_deliver_borrowed(const struct arrival *arrival)
{
    bool revoked = context_revoked(arrival->key.context);
    struct receive *receive =
        revoked ? NULL : (struct receive *)match_take(&queues, &arrival->key);
    if (!receive && !revoked) return keep(arrival);
    transport_matched(arrival->partner, arrival->cookie, arrival->charged,
                      arrival->wants_ack && !revoked);
    if (receive)
        finish(receive, &arrival->key, arrival->payload, arrival->size);
    return true;
}

void p2p_drop(uint32_t context, int error)
{
    pthread_mutex_lock(&lock);
    for (struct match_entry *at = queues.posted.first, *next; at; at = next) {
        next = at->next;
        if ((at->key.context & CONTEXT_MASK) != context) continue;
        (void)match_remove(at);
        fail((struct receive *)at, error);
    }
    for (struct match_entry *at = queues.unexpected.first, *next; at;
         at = next) {
        next = at->next;
        if ((at->key.context & CONTEXT_MASK) != context) continue;
        (void)match_remove(at);
        discard((struct message *)at);
    }
    pthread_mutex_unlock(&lock);
}

void p2p_member_lost(uint64_t member)
{
    (void)member;
    pthread_mutex_lock(&lock);
    for (struct match_entry *at = queues.posted.first, *next; at; at = next) {
        next = at->next;
        int error = receive_error((struct receive *)at);
        if (error == MPI_SUCCESS) continue;
        (void)match_remove(at);
        fail((struct receive *)at, error);
    }
    pthread_mutex_unlock(&lock);
}

bool p2p_busy(void)
{
    return count_any(&queues.posted.count);
}

void p2p_stop(void)
{
    pthread_mutex_lock(&lock);
    while (queues.unexpected.first) {
        struct match_entry *entry = queues.unexpected.first;
        (void)match_remove(entry);
        message_release((struct message *)entry);
    }
    if (!queues.posted.first) match_free(&queues);
    pthread_mutex_unlock(&lock);
}

bool p2p_cancel(struct receive *receive)
{
    pthread_mutex_lock(&lock);
    bool removed = match_remove(&receive->entry);
    pthread_mutex_unlock(&lock);
    if (!removed) return false;
    STATUS_HIGH(&receive->status) |= 1;
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
        status->MPI_SOURCE = group_rank_of(comm_peers(comm), entry->key.source);
        status->MPI_TAG = entry->key.tag;
        status_set_count(status, message->size);
        if (take) {
            (void)match_remove(entry);
            *take = message;
        }
    } else {
        transport_want(key->source);
    }
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

void p2p_receive_taken(struct receive *receive, struct message *message)
{
    pthread_mutex_lock(&lock);
    receive->entry.key = message->entry.key;
    join(receive, message);
    pthread_mutex_unlock(&lock);
}

/* -------------------------------------------------------------------- sends */

static int data_check(const void *buffer, MPI_Count count, MPI_Datatype handle,
                      struct type **type)
{
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    *type = type_find(handle);
    if (!*type || !(*type)->committed)
        return error_note(MPI_ERR_TYPE, "invalid or uncommitted datatype");
    bool missing = !buffer && (*type)->predefined && (*type)->size > 0;
    if (count > 0 && (missing || buffer == MPI_IN_PLACE))
        return error_note(MPI_ERR_BUFFER, "null buffer, or MPI_IN_PLACE");
    return MPI_SUCCESS;
}

static int rank_check(const struct comm *comm, int rank, bool any)
{
    int result = rank_use_name(comm, "point-to-point");
    if (result != MPI_SUCCESS) return result;
    if (rank == MPI_PROC_NULL || (any && rank == MPI_ANY_SOURCE))
        return MPI_SUCCESS;
    if (rank >= 0 && rank < comm_peers(comm)->size) return MPI_SUCCESS;
    bool left = rank > 0 && comm->follows_world && rank_use_has_changed();
    return error_note(left ? MPIX_ERR_PROC_FAILED : MPI_ERR_RANK,
                      "rank %d is not in the communicator%s", rank,
                      left ? " any more" : "");
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

bool send_at_once(const struct send *send, int *result)
{
    *result = MPI_SUCCESS;
    if (send->dest == MPI_PROC_NULL) return true;
    if (comm_revoked(send->comm)) {
        *result = error_note(MPIX_ERR_REVOKED, "the communicator was revoked");
        return true;
    }
    uint64_t to = comm_peers(send->comm)->ids[send->dest];
    return to != world.self && send->mode != SEND_SYNCHRONOUS &&
           send->type->dense &&
           transport_send_now(to, send->comm->context | send->channel,
                              send->tag, send->buffer,
                              send->count * send->type->size, result);
}

int send_begin(struct send *send)
{
    int sent;
    if (send_at_once(send, &sent)) return sent;
    MPI_Count size = send->count * send->type->size;
    uint64_t to = comm_peers(send->comm)->ids[send->dest];
    uint32_t context = send->comm->context | send->channel;
    bool large = to != world.self && transport_is_large(to, size);
    bool wait = send->mode == SEND_SYNCHRONOUS ||
                (large && send->mode != SEND_BUFFERED);
    /* large contiguous data are sent without a copy */
    bool in_place = large && wait && send->type->dense && !send->copy;
    struct message *message = message_new(in_place ? 0 : size);
    if (!message) return error_note(MPI_ERR_NO_MEM, "out of memory");
    if (send->mode == SEND_BUFFERED &&
        !bsend_charge(message, send->comm, size)) {
        message_release(message);
        return error_note(MPI_ERR_BUFFER,
                          "the attached buffer has no room for %ld bytes",
                          (long)size);
    }
    if (wait) atomic_store(&message->references, 2);
    message->size = size;
    message->entry.key = (struct match_key){world.self, context, send->tag};
    if (in_place)
        message->payload = send->buffer;
    else
        type_pack(send->buffer, send->count, send->type, 0, message->data,
                  size);
    int result = transport_send(to, message, large, wait);
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
    send->error = send->waiting->error;
    message_release(send->waiting);
    send->waiting = NULL;
    return true;
}
