/* revoke.c - spreads and enforces revocations. */
#include "revoke.h"
#include "coll.h"
#include "p2p.h"
#include "rank_use.h"
#include "transport.h"

#include <pthread.h>
#include <stdlib.h>

/* Revoked contexts. Taken after facade_lock and p2p's lock; no function
 * that takes a lock is called while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those with a communicator here. */
static uint32_t *live;
static unsigned live_room;
static atomic_uint live_count;
/* The last of the others (U5): freed or given up here (`sender` is this
 * process), or not made here yet. `left`: some of their messages could not be
 * ended yet. */
enum { RECENT_MAX = 1024, NO_CONTEXT = CONTEXT_MASK + 1 };
static struct {
    uint32_t context;
    uint64_t sender;
    bool left;
} recent[RECENT_MAX];
static unsigned recent_next; /* where the next one goes */
static atomic_uint recent_count;

/* The caller holds the lock. The count: not there. */
static unsigned find_live(uint32_t context)
{
    unsigned count = atomic_load(&live_count), i = 0;
    while (i < count && live[i] != context) i++;
    return i;
}

/* The caller holds the lock. */
static bool remembered(uint32_t context, uint64_t sender)
{
    for (unsigned i = 0; i < atomic_load(&recent_count); i++)
        if (recent[i].context == context && recent[i].sender == sender)
            return true;
    return false;
}

bool context_revoked(uint32_t context)
{
    if (atomic_load(&live_count) == 0 && atomic_load(&recent_count) == 0)
        return false;
    context &= CONTEXT_MASK;
    pthread_mutex_lock(&lock);
    bool found = find_live(context) < atomic_load(&live_count) ||
                 remembered(context, world.self);
    pthread_mutex_unlock(&lock);
    return found;
}

bool comm_revoked(const struct comm *comm)
{
    return atomic_load(&comm->revoked);
}

/* The caller holds the lock. */
static void add_recent(uint32_t context, uint64_t sender)
{
    unsigned count = atomic_load(&recent_count);
    recent[recent_next].context = context;
    recent[recent_next].sender = sender;
    recent[recent_next].left = sender == world.self;
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
static bool add(uint32_t context, uint64_t sender, struct comm *comm)
{
    pthread_mutex_lock(&lock);
    bool known = find_live(context) < atomic_load(&live_count);
    bool early = remembered(context, sender);
    if (comm && !known) {
        add_live(context);
        atomic_store(&comm->revoked, true);
    } else if (!known && !early) {
        add_recent(context, sender);
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
        if (!remembered(comm->context, world.self))
            add_recent(comm->context, world.self);
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

/* Fails blocking collectives: their callers wait in pccl (U3). */
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

/* Ends what is in flight there (U2). */
static void end_context(uint32_t context)
{
    p2p_drop(context, MPIX_ERR_REVOKED);
    (void)revoke_enforce();
}

/* Handles a revocation that is new here (U1). */
static void apply(struct comm *comm)
{
    if (!comm->local && world.pccl)
        transport_notify_revoked(comm_scope(comm), comm->context);
    end_context(comm->context);
}

/* Newcomers of a world may revoke it before their view is here. */
static bool is_member(const struct comm *comm, uint64_t id)
{
    return comm->follows_world ||
           group_rank_of(comm_scope(comm), id) != MPI_UNDEFINED;
}

void revoke_received(uint64_t sender, uint32_t context)
{
    struct comm *comm = comm_of(context);
    if (comm) {
        if (is_member(comm, sender)) revoke_learned(comm);
    } else {
        (void)add(context, sender, NULL);
        comm = comm_of(context);
        if (comm) revoke_made(comm); /* in between */
    }
    if (comm) object_release(&comm->object);
}

void revoke_learned(struct comm *comm)
{
    if (add(comm->context, world.self, comm)) apply(comm);
}

void revoke_unmade(const struct group *group, uint32_t context)
{
    if (world.pccl) transport_notify_revoked(group, context);
    if (add(context, world.self, NULL)) end_context(context);
}

void revoke_made(struct comm *comm)
{
    bool counts = false;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < atomic_load(&recent_count); i++) {
        if (recent[i].context != comm->context) continue;
        counts = counts || is_member(comm, recent[i].sender);
        recent[i].context = NO_CONTEXT;
    }
    pthread_mutex_unlock(&lock);
    if (counts) revoke_learned(comm);
}

void revoke_stop(void)
{
    free(live);
    live = NULL;
    live_room = recent_next = 0;
    atomic_store(&live_count, 0);
    atomic_store(&recent_count, 0);
}

int mpi_Comm_revoke(struct comm *comm)
{
    rank_use_opt_in();
    revoke_learned(comm);
    return MPI_SUCCESS;
}
