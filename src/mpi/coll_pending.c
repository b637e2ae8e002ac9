/* coll_pending.c - collectives in flight: nonblocking, persistent, and blocking
 * ones beside them. Every waiting thread makes progress on all of them, because
 * other members may need one before another can complete. */
#include "coll.h"
#include "rank_use.h"
#include "transport.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
/* In the order of their starts, usually also that of their ends. */
static struct coll *pending_head, *pending_tail;
static struct coll *pending_turn; /* where the next round over all continues */
static atomic_int pending_count;
static atomic_uint attention; /* progress made by calls of the program */

bool coll_any_pending(void)
{
    return atomic_load(&pending_count) != 0;
}

/* The caller holds pending_lock. */
static void list_append(struct coll *coll)
{
    coll->next = NULL;
    coll->previous = pending_tail;
    if (pending_tail)
        pending_tail->next = coll;
    else
        pending_head = coll;
    pending_tail = coll;
}

/* The caller holds pending_lock. */
static void list_remove(struct coll *coll)
{
    if (pending_turn == coll) pending_turn = coll->next;
    if (coll->previous)
        coll->previous->next = coll->next;
    else
        pending_head = coll->next;
    if (coll->next)
        coll->next->previous = coll->previous;
    else
        pending_tail = coll->previous;
}

void coll_pending_add(struct coll *coll)
{
    pthread_mutex_lock(&pending_lock);
    list_append(coll);
    coll->listed = true;
    coll->after = NULL;
    if (coll->ordered) {
        struct coll **last = &coll->comm->last[coll->slot];
        if (*last) (*last)->after = coll;
        *last = coll;
    }
    pthread_mutex_unlock(&pending_lock);
    atomic_fetch_add(&pending_count, 1);
}

/* Removes it from the list. The caller holds pending_lock, so that its
 * successor in the slot cannot complete before it is returned, marked busy. */
static struct coll *unlist(struct coll *coll)
{
    struct coll *after = coll->after;
    struct comm *comm = coll->comm;
    list_remove(coll);
    coll->listed = false;
    atomic_fetch_sub(&pending_count, 1);
    if (coll->ordered) {
        atomic_fetch_add(&comm->ended[coll->slot], 1);
        if (comm->last[coll->slot] == coll) comm->last[coll->slot] = NULL;
    }
    if (!after || after->busy) return NULL;
    after->busy = true;
    return after;
}

/* Makes progress on one that the caller has marked busy. */
static bool move_one(struct coll *coll, enum coll_care care,
                     struct coll **after)
{
    struct comm *comm = coll->comm;
    *after = NULL;
    /* Predecessors of its slot go first. It waits here, because the call that
     * started it must not block. */
    bool turn =
        !coll->ordered || atomic_load(&comm->ended[coll->slot]) >= coll->turn;
    bool done = turn && coll_advance(coll, care);
    pthread_mutex_lock(&pending_lock);
    coll->busy = false;
    if (done) *after = unlist(coll);
    pthread_mutex_unlock(&pending_lock);
    /* last action: the owner may free it from here on */
    if (done) atomic_store(&coll->finished, true);
    return done;
}

/* Whether the background thread must not run it. */
static bool private(const struct coll *coll)
{
    return coll->reducer && !coll->reducer->predefined;
}

/* Likewise, and its successors in the slot. */
static bool move(struct coll *coll, enum coll_care care)
{
    struct coll *after;
    bool done = move_one(coll, care, &after);
    while (after) {
        struct coll *next = after;
        if (care == CARE_BACKGROUND && private(next)) {
            pthread_mutex_lock(&pending_lock);
            next->busy = false;
            pthread_mutex_unlock(&pending_lock);
            break;
        }
        (void)move_one(next, care, &after);
    }
    return done;
}

bool coll_attended(unsigned *seen)
{
    unsigned before = *seen;
    *seen = atomic_load(&attention);
    return *seen != before;
}

bool coll_progress(struct coll *coll)
{
    atomic_fetch_add_explicit(&attention, 1, memory_order_relaxed);
    if (atomic_load(&coll->finished)) return true;
    pthread_mutex_lock(&pending_lock);
    bool mine = coll->listed && !coll->busy;
    if (mine) coll->busy = true;
    pthread_mutex_unlock(&pending_lock);
    return mine ? move(coll, CARE_MOVE) : atomic_load(&coll->finished);
}

/* Makes progress on a few collectives in turn; several calls reach all. Skips
 * those that another thread works on. */
static void look_at_all(enum coll_care care)
{
    enum { BATCH = 64 };
    struct coll *batch[BATCH];
    int count = 0;
    pthread_mutex_lock(&pending_lock);
    struct coll *at = pending_turn ? pending_turn : pending_head;
    for (int i = 0; at && i < BATCH; i++, at = at->next) {
        if (at->busy || (care == CARE_BACKGROUND && private(at))) continue;
        at->busy = true;
        batch[count++] = at;
    }
    pending_turn = at;
    pthread_mutex_unlock(&pending_lock);
    for (int i = 0; i < count; i++) (void)move(batch[i], care);
}

/* The first that no thread works on, marked busy. */
static struct coll *take_first(bool launched)
{
    pthread_mutex_lock(&pending_lock);
    struct coll *first = pending_head;
    while (first && (first->busy || (launched && !first->launched)))
        first = first->next;
    if (first) first->busy = true;
    pthread_mutex_unlock(&pending_lock);
    return first;
}

void coll_progress_all(void)
{
    enum { ALL = 16 }; /* one in so many calls looks at more than the first */
    static atomic_uint calls;
    if (!coll_any_pending()) return;
    if (atomic_fetch_add(&calls, 1) % ALL == 0) look_at_all(CARE_LOOK);
    struct coll *first;
    do first = take_first(false);
    while (first && move(first, CARE_MOVE));
}

void coll_progress_background(void)
{
    if (coll_any_pending()) look_at_all(CARE_BACKGROUND);
}

bool coll_wait(void)
{
    enum { MOST_MS = 1 }; /* a revocation may arrive */
    struct coll *first = coll_any_pending() ? take_first(true) : NULL;
    if (!first) return false;
    bool done;
    (void)pcclWaitAsync(&first->handle, MOST_MS, &done);
    (void)move(first, CARE_LOOK);
    return true;
}

void backoff(unsigned *turn)
{
    if (transport_progress(coll_any_pending() ? 0 : 1)) return;
    if (coll_wait()) return;
    if ((*turn)++ < 200) {
        sched_yield();
        return;
    }
    struct timespec pause = {.tv_nsec = *turn < 1000 ? 20000 : 200000};
    nanosleep(&pause, NULL);
}

/* ------------------------------------------------------------------ requests
 */

static void references(struct coll *coll, void (*change)(struct object *))
{
    struct type *types[] = {coll->sendtype, coll->recvtype};
    for (int i = 0; i < 2; i++)
        if (types[i] && !types[i]->predefined) change(&types[i]->object);
    if (coll->reducer && !coll->reducer->predefined)
        change(&coll->reducer->object);
    /* NULL ends the array */
    for (int i = 0; coll->sendtypes && coll->sendtypes[i]; i++)
        change(&coll->sendtypes[i]->object);
    for (int i = 0; coll->recvtypes && coll->recvtypes[i]; i++)
        change(&coll->recvtypes[i]->object);
    change(&coll->comm->object);
}

static void coll_free(struct coll *coll)
{
    references(coll, object_release);
    coll_arguments_free(coll);
    free(coll);
}

static bool request_ended(struct request *request)
{
    struct coll *coll = request->state;
    if (!atomic_load(&coll->finished)) return false;
    if (coll->made && coll->error == MPI_SUCCESS)
        comm_set_context(coll->made, coll->candidate);
    request->error = coll->error;
    status_empty(&request->status);
    return true;
}

static bool request_progress(struct request *request)
{
    if (!coll_progress(request->state)) {
        coll_progress_all();
        (void)transport_progress(0);
    }
    return request_ended(request);
}

/* A persistent collective was prepared for the members at that time. It runs
 * among the remaining ones of them, without newcomers. */
static bool laid_out(struct coll *coll)
{
    coll_members_set(coll, comm_scope(coll->comm));
    for (int i = 0; i < coll->members->size; i++)
        if (group_rank_of(coll->called, coll->members->ids[i]) == MPI_UNDEFINED)
            return false;
    return true;
}

static int request_start(struct request *request)
{
    struct coll *coll = request->state;
    if (!laid_out(coll))
        return error_note(MPI_ERR_OTHER, "the communicator has grown since the "
                                         "request was made");
    coll->orphan = false;
    if (coll->rooted && coll_root_now(coll) == MPI_UNDEFINED)
        return error_note(MPIX_ERR_PROC_FAILED, "the root was lost");
    coll_stages_free(coll);
    free(coll->input);
    coll->input = NULL;
    coll->round = 0;
    coll->has_data = false;
    rank_use_collective(coll);
    atomic_store(&coll->finished, false);
    coll_pending_add(coll);
    (void)coll_progress(coll);
    return MPI_SUCCESS;
}

static void request_release(struct request *request)
{
    coll_free(request->state);
}

static const struct request_kind coll_kind = {.progress = request_progress,
                                              .ended = request_ended,
                                              .start = request_start,
                                              .release = request_release};

/* A copy on the heap in a request of its own. */
static struct request *request_make(const struct coll *from)
{
    struct coll *coll = malloc(sizeof *coll);
    if (!coll) return NULL;
    memcpy(coll, from, sizeof *coll);
    references(coll, object_retain);
    struct request *request = request_new(&coll_kind, coll->comm, coll);
    if (!request) {
        references(coll, object_release);
        free(coll);
    }
    return request;
}

/* Assigns a slot. The counters are equal on all members, because all start and
 * prepare their collectives in the same order. Prepared collectives may be
 * started in any order. */
static void slot_take(struct coll *coll, bool prepared)
{
    struct comm *comm = coll->comm;
    if (prepared) {
        unsigned number = atomic_fetch_add(&comm->prepared, 1);
        coll->slot = SLOT_PREPARED + number % SLOTS_PREPARED;
        return;
    }
    unsigned number = atomic_fetch_add(&comm->started, 1);
    coll->slot = number % SLOTS_STARTED;
    coll->turn = number / SLOTS_STARTED;
    coll->ordered = true;
}

int coll_go(struct coll *from, struct mode mode)
{
    if (mode.how == MODE_NOW) return coll_run(from);
    if (!mode.request) return coll_refuse(from, MPI_ERR_ARG, "null request");
    if (mode.how == MODE_STARTED)
        rank_use_collective(from);
    else if (from->uses == USES_RANKS)
        rank_use_keep(from->function);
    struct request *request = request_make(from);
    if (!request) return coll_refuse(from, MPI_ERR_NO_MEM, "out of memory");
    struct coll *coll = request->state;
    request->persistent = mode.how == MODE_PREPARED;
    slot_take(coll, request->persistent);
    if (!request->persistent) {
        coll_pending_add(coll);
        (void)coll_progress(coll);
        request->active = true;
    }
    int result = request_publish(request, mode.request);
    if (result == MPI_SUCCESS) return MPI_SUCCESS;
    return error_raise_noted(from->comm, result, from->function);
}
