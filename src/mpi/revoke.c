/* revoke.c - spreads and enforces revocations. */
#include "revoke.h"
#include "coll.h"
#include "p2p.h"
#include "rank_use.h"
#include "transport.h"

#include <pthread.h>
#include <stdlib.h>

/* Revoked contexts. Taken after facade_lock and p2p's lock; no function is
 * called while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those with a communicator here. */
static uint32_t *live;
static unsigned live_room;
static atomic_uint live_count;
/* The last of the others (V5): not made here yet, or freed. `left`: some of
 * their messages could not be ended yet. */
enum { RECENT_MAX = 1024 };
static struct {
    uint32_t context;
    bool left;
} recent[RECENT_MAX];
static unsigned recent_next; /* where the next one goes */
static atomic_uint recent_count;

/* The caller holds the lock. Each returns an index, or the count. */
static unsigned find_live(uint32_t context)
{
    unsigned count = atomic_load(&live_count), i = 0;
    while (i < count && live[i] != context) i++;
    return i;
}

static unsigned find_recent(uint32_t context)
{
    unsigned count = atomic_load(&recent_count), i = 0;
    while (i < count && recent[i].context != context) i++;
    return i;
}

bool context_revoked(uint32_t context)
{
    if (atomic_load(&live_count) == 0 && atomic_load(&recent_count) == 0)
        return false;
    context &= CONTEXT_MASK;
    pthread_mutex_lock(&lock);
    bool found = find_live(context) < atomic_load(&live_count) ||
                 find_recent(context) < atomic_load(&recent_count);
    pthread_mutex_unlock(&lock);
    return found;
}

bool comm_revoked(const struct comm *comm)
{
    return atomic_load(&comm->revoked);
}

/* The caller holds the lock. */
static void add_recent(uint32_t context)
{
    unsigned count = atomic_load(&recent_count);
    recent[recent_next].context = context;
    recent[recent_next].left = true;
    recent_next = (recent_next + 1) % RECENT_MAX;
    if (count < RECENT_MAX) atomic_store(&recent_count, count + 1);
}

/* The caller holds the lock. */
static void add_live(uint32_t context)
{
    unsigned count = atomic_load(&live_count);
    if (count == live_room) {
        unsigned room = 2 * live_room + 16;
        uint32_t *more = realloc(live, room * sizeof *more);
        if (!more) env_abort(MPI_ERR_NO_MEM, "out of memory for a revocation");
        live = more;
        live_room = room;
    }
    live[count] = context;
    atomic_store(&live_count, count + 1);
}

/* False: already known. */
static bool add(uint32_t context, struct comm *comm)
{
    pthread_mutex_lock(&lock);
    bool known = find_live(context) < atomic_load(&live_count);
    bool early = find_recent(context) < atomic_load(&recent_count);
    if (comm && !known) {
        add_live(context);
        atomic_store(&comm->revoked, true);
    } else if (!known && !early) {
        add_recent(context);
    }
    pthread_mutex_unlock(&lock);
    return !known && (comm || !early);
}

void revoke_forget(const struct comm *comm)
{
    if (!comm_revoked(comm)) return;
    pthread_mutex_lock(&lock);
    unsigned at = find_live(comm->context), count = atomic_load(&live_count);
    if (at < count) {
        live[at] = live[count - 1];
        atomic_store(&live_count, count - 1);
        if (find_recent(comm->context) == atomic_load(&recent_count))
            add_recent(comm->context);
    }
    pthread_mutex_unlock(&lock);
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

/* Ends messages of recent contexts; true: some are left. */
static bool drop_recent(void)
{
    bool more = false;
    unsigned count = atomic_load(&recent_count);
    for (unsigned i = 0; i < count; i++) {
        pthread_mutex_lock(&lock);
        uint32_t context = recent[i].context;
        bool left = recent[i].left;
        pthread_mutex_unlock(&lock);
        if (!left) continue;
        left = transport_drop(context, MPIX_ERR_REVOKED);
        more = more || left;
        pthread_mutex_lock(&lock);
        if (!left && recent[i].context == context) recent[i].left = false;
        pthread_mutex_unlock(&lock);
    }
    return more;
}

/* The i-th live context; false: there is none. */
static bool live_at(unsigned i, uint32_t *context)
{
    pthread_mutex_lock(&lock);
    bool there = i < atomic_load(&live_count);
    if (there) *context = live[i];
    pthread_mutex_unlock(&lock);
    return there;
}

bool revoke_enforce(void)
{
    uint32_t context;
    if (!world.pccl ||
        (atomic_load(&live_count) == 0 && atomic_load(&recent_count) == 0))
        return false;
    bool more = atomic_load(&live_count) > 0 && fail_blocking();
    for (unsigned i = 0; live_at(i, &context); i++)
        more = transport_drop(context, MPIX_ERR_REVOKED) || more;
    return drop_recent() || more;
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
    struct comm *comm = comm_of(context);
    if (add(context, comm)) apply(context, comm);
    if (comm) object_release(&comm->object);
}

void revoke_learned(struct comm *comm)
{
    if (add(comm->context, comm)) apply(comm->context, comm);
}

void revoke_made(struct comm *comm)
{
    if (context_revoked(comm->context)) revoke_learned(comm);
}

void revoke_stop(void)
{
    free(live);
    live = NULL;
    live_room = recent_next = 0;
    atomic_store(&live_count, 0);
    atomic_store(&recent_count, 0);
}

MPIX_PUBLIC(Comm_revoke);
int PMPIX_Comm_revoke(MPI_Comm handle)
{
    COMM_OR_RETURN(comm, handle);
    rank_use_opt_in();
    revoke_learned(comm);
    return MPI_SUCCESS;
}
