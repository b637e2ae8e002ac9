/* revoke.c - spreads and enforces revocations. */
#include "revoke.h"
#include "coll.h"
#include "p2p.h"
#include "transport.h"

#include <pthread.h>
#include <stdlib.h>

/* Revoked contexts. Taken after facade_lock and p2p's lock; no function is
 * called while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *contexts;
static atomic_uint context_count;
static unsigned context_room;

bool context_revoked(uint32_t context)
{
    bool found = false;
    if (atomic_load(&context_count) == 0) return false;
    pthread_mutex_lock(&lock);
    unsigned count = atomic_load(&context_count);
    for (unsigned i = 0; i < count && !found; i++)
        found = contexts[i] == (context & CONTEXT_MASK);
    pthread_mutex_unlock(&lock);
    return found;
}

bool comm_revoked(const struct comm *comm)
{
    return context_revoked(comm->context);
}

/* False: already known. */
static bool add(uint32_t context)
{
    bool known = false;
    pthread_mutex_lock(&lock);
    unsigned count = atomic_load(&context_count);
    for (unsigned i = 0; i < count && !known; i++)
        known = contexts[i] == context;
    if (!known && count == context_room) {
        unsigned room = 2 * context_room + 16;
        uint32_t *more = realloc(contexts, room * sizeof *more);
        if (!more) env_abort(MPI_ERR_NO_MEM, "out of memory for a revocation");
        contexts = more;
        context_room = room;
    }
    if (!known) {
        contexts[count] = context;
        atomic_store(&context_count, count + 1);
    }
    pthread_mutex_unlock(&lock);
    return !known;
}

/* ---------------------------------------------------------------- collectives
 */

enum { TAGS_AT_ONCE = 64 };

/* One search at a time; handle_each passes no arguments to its callback. */
static pthread_mutex_t searching = PTHREAD_MUTEX_INITIALIZER;
static uint64_t tags[TAGS_AT_ONCE];
static int tag_count;
static uint32_t wanted;
static struct comm *found;

static void collect_tag(struct object *object)
{
    const struct comm *comm = (struct comm *)object;
    uint64_t tag = atomic_load(&comm->running);
    if (tag != 0 && tag_count < TAGS_AT_ONCE && comm_revoked(comm))
        tags[tag_count++] = tag;
}

/* Fails blocking collectives: their callers wait in pccl (V3). */
static bool fail_blocking(void)
{
    pthread_mutex_lock(&searching);
    tag_count = 0;
    collect_tag(&comm_world.object);
    handle_each(HANDLE_COMM, collect_tag);
    int count = tag_count;
    for (int i = 0; i < count; i++)
        (void)pcclFailCollective(world.pccl, tags[i]);
    pthread_mutex_unlock(&searching);
    return count > 0;
}

bool revoke_enforce(void)
{
    unsigned count = atomic_load(&context_count);
    if (count == 0 || !world.pccl) return false;
    bool more = fail_blocking();
    for (unsigned i = 0; i < count; i++) {
        pthread_mutex_lock(&lock);
        uint32_t context = contexts[i];
        pthread_mutex_unlock(&lock);
        more = transport_drop(context, MPIX_ERR_REVOKED) || more;
    }
    return more;
}

/* ----------------------------------------------------------------- spreading
 */

static void match_context(struct object *object)
{
    struct comm *comm = (struct comm *)object;
    if (found || comm->context != wanted) return;
    found = comm;
    object_retain(object);
}

/* The communicator with a reference, or NULL. */
static struct comm *comm_of(uint32_t context)
{
    pthread_mutex_lock(&searching);
    found = NULL;
    wanted = context;
    match_context(&comm_world.object);
    handle_each(HANDLE_COMM, match_context);
    struct comm *comm = found;
    pthread_mutex_unlock(&searching);
    return comm;
}

/* Handles a revocation that is new here (V1, V2). */
static void apply(uint32_t context, const struct comm *comm)
{
    if (comm && !comm->local && world.pccl)
        transport_notify_revoked(comm_scope(comm), context);
    p2p_drop(context, MPIX_ERR_REVOKED);
    (void)revoke_enforce();
}

void revoke_received(uint32_t context)
{
    if (!add(context)) return;
    struct comm *comm = comm_of(context);
    apply(context, comm);
    if (comm) object_release(&comm->object);
}

void revoke_made(const struct comm *comm)
{
    if (comm_revoked(comm)) apply(comm->context, comm);
}

void revoke_stop(void)
{
    free(contexts);
    contexts = NULL;
    context_room = 0;
    atomic_store(&context_count, 0);
}

MPIX_PUBLIC(Comm_revoke);
int PMPIX_Comm_revoke(MPI_Comm handle)
{
    COMM_OR_RETURN(comm, handle);
    if (add(comm->context)) apply(comm->context, comm);
    return MPI_SUCCESS;
}
