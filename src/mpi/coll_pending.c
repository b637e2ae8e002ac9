/* coll_pending.c - collectives under way: nonblocking and persistent ones, and
 * blocking ones beside them. Any waiting thread moves all of them: a member
 * that waits for one may be needed for another. */
#include "coll.h"
#include "transport.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
static struct coll *pending_head,
    *pending_tail; /* least recently moved first */
static atomic_int pending_count;

bool coll_any_pending(void)
{
    return atomic_load(&pending_count) != 0;
}

/* With pending_lock. */
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

/* With pending_lock. */
static void list_remove(struct coll *coll)
{
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
    pthread_mutex_unlock(&pending_lock);
    atomic_fetch_add(&pending_count, 1);
}

/* Moves one that the caller has marked busy. */
static bool move(struct coll *coll, bool background)
{
    struct comm *comm = coll->comm;
    /* Earlier ones of its slot go first. It waits here and not in the call
     * that started it: that must not block. */
    bool turn =
        !coll->ordered || atomic_load(&comm->ended[coll->slot]) >= coll->turn;
    bool done = turn && coll_advance(coll, background);
    if (done && coll->ordered) atomic_fetch_add(&comm->ended[coll->slot], 1);
    pthread_mutex_lock(&pending_lock);
    coll->busy = false;
    if (done) {
        list_remove(coll);
        coll->listed = false;
        atomic_fetch_sub(&pending_count, 1);
    }
    pthread_mutex_unlock(&pending_lock);
    /* Last: the owner may free it from here on. */
    if (done) atomic_store(&coll->finished, true);
    return done;
}

bool coll_progress(struct coll *coll)
{
    if (atomic_load(&coll->finished)) return true;
    pthread_mutex_lock(&pending_lock);
    bool mine = coll->listed && !coll->busy;
    if (mine) coll->busy = true;
    pthread_mutex_unlock(&pending_lock);
    return mine ? move(coll, false) : atomic_load(&coll->finished);
}

/* What the background thread must not run. */
static bool private(const struct coll *coll)
{
    return coll->reducer && !coll->reducer->predefined;
}

static void progress_all(bool background)
{
    /* A coll that another thread moves is left to it. Those taken go to the
     * end, so that a few calls reach all. */
    enum { BATCH = 64 };
    struct coll *batch[BATCH];
    int count = 0;
    if (!coll_any_pending()) return;
    pthread_mutex_lock(&pending_lock);
    for (struct coll *at = pending_head; at && count < BATCH; at = at->next) {
        if (at->busy || (background && private(at))) continue;
        at->busy = true;
        batch[count++] = at;
    }
    for (int i = 0; i < count; i++) {
        list_remove(batch[i]);
        list_append(batch[i]);
    }
    pthread_mutex_unlock(&pending_lock);
    for (int i = 0; i < count; i++) (void)move(batch[i], background);
}

void coll_progress_all(void)
{
    progress_all(false);
}

void coll_progress_background(void)
{
    progress_all(true);
}

void backoff(unsigned *turn)
{
    if (transport_progress(coll_any_pending() ? 0 : 1)) return;
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
    /* A NULL ends them. */
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

static bool request_progress(struct request *request)
{
    struct coll *coll = request->state;
    if (!coll_progress(coll)) {
        coll_progress_all();
        (void)transport_progress(0);
        if (!atomic_load(&coll->finished)) return false;
    }
    if (coll->made && coll->error == MPI_SUCCESS)
        comm_set_context(coll->made, coll->candidate);
    request->error = coll->error;
    status_empty(&request->status);
    return true;
}

/* A persistent collective was laid out for the members of its making: it runs
 * among those of them who are left, and not with newcomers. */
static bool laid_out(struct coll *coll)
{
    coll->members = comm_scope(coll->comm);
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
    if (coll->rooted && coll_root_now(coll) == MPI_UNDEFINED)
        return error_note(MPIX_ERR_PROC_FAILED, "the root was lost");
    coll_stages_free(coll);
    free(coll->input);
    coll->input = NULL;
    coll->round = 0;
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

/* Gives it a slot. The counters are equal on all members, because all start
 * and prepare their collectives in the same order; they may start prepared ones
 * in any. */
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
