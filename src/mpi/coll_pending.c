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
static struct flight *pending_head, *pending_tail;
static struct flight
    *pending_turn; /* where the next round over all continues */
static atomic_int pending_count;
static atomic_uint attention; /* progress made by calls of the program */

bool coll_any_pending(void)
{
    return atomic_load(&pending_count) != 0;
}

/* The caller holds pending_lock. */
static void list_append(struct flight *f)
{
    f->next = NULL;
    f->previous = pending_tail;
    if (pending_tail)
        pending_tail->next = f;
    else
        pending_head = f;
    pending_tail = f;
}

/* The caller holds pending_lock. */
static void list_remove(struct flight *f)
{
    if (pending_turn == f) pending_turn = f->next;
    if (f->previous)
        f->previous->next = f->next;
    else
        pending_head = f->next;
    if (f->next)
        f->next->previous = f->previous;
    else
        pending_tail = f->previous;
}

void coll_pending_add(struct flight *f)
{
    pthread_mutex_lock(&pending_lock);
    list_append(f);
    f->listed = true;
    f->after = NULL;
    if (f->ordered) {
        struct flight **last = &f->coll->comm->last[f->coll->slot];
        if (*last) (*last)->after = f;
        *last = f;
    }
    pthread_mutex_unlock(&pending_lock);
    atomic_fetch_add(&pending_count, 1);
}

/* Removes it from the list. The caller holds pending_lock, so that its
 * successor in the slot cannot complete before it is returned, marked busy. */
static struct flight *unlist(struct flight *f)
{
    struct flight *after = f->after;
    struct comm *comm = f->coll->comm;
    list_remove(f);
    f->listed = false;
    atomic_fetch_sub(&pending_count, 1);
    if (f->ordered) {
        atomic_fetch_add(&comm->ended[f->coll->slot], 1);
        if (comm->last[f->coll->slot] == f) comm->last[f->coll->slot] = NULL;
    }
    if (!after || after->busy) return NULL;
    after->busy = true;
    return after;
}

/* Makes progress on one that the caller has marked busy. */
static bool move_one(struct flight *f, enum coll_care care,
                     struct flight **after)
{
    struct comm *comm = f->coll->comm;
    *after = NULL;
    /* Predecessors of its slot go first. It waits here, because the call that
     * started it must not block. */
    bool turn =
        !f->ordered || atomic_load(&comm->ended[f->coll->slot]) >= f->turn;
    bool done = turn && coll_advance(f, care);
    pthread_mutex_lock(&pending_lock);
    f->busy = false;
    if (done) *after = unlist(f);
    pthread_mutex_unlock(&pending_lock);
    /* last action: the owner may free it from here on */
    if (done) atomic_store(&f->finished, true);
    return done;
}

/* Whether the background thread must not run it. */
static bool private(const struct flight *f)
{
    return f->coll->reducer && !f->coll->reducer->predefined;
}

/* Moves it, and its successors in the slot. */
static bool move(struct flight *f, enum coll_care care)
{
    struct flight *after;
    bool done = move_one(f, care, &after);
    while (after) {
        struct flight *next = after;
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

bool coll_progress(struct flight *f)
{
    atomic_fetch_add_explicit(&attention, 1, memory_order_relaxed);
    if (atomic_load(&f->finished)) return true;
    pthread_mutex_lock(&pending_lock);
    bool mine = f->listed && !f->busy;
    if (mine) f->busy = true;
    pthread_mutex_unlock(&pending_lock);
    return mine ? move(f, CARE_MOVE) : atomic_load(&f->finished);
}

/* Makes progress on a few collectives in turn; several calls reach all. Skips
 * those that another thread works on. */
static void look_at_all(enum coll_care care)
{
    enum { BATCH = 64 };
    struct flight *batch[BATCH];
    int count = 0;
    pthread_mutex_lock(&pending_lock);
    struct flight *at = pending_turn ? pending_turn : pending_head;
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
static struct flight *take_first(bool launched)
{
    pthread_mutex_lock(&pending_lock);
    struct flight *first = pending_head;
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
    struct flight *first;
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
    struct flight *first = coll_any_pending() ? take_first(true) : NULL;
    if (!first) return false;
    bool done;
    (void)pcclWaitAsync(&first->handle, MOST_MS, &done);
    (void)move(first, CARE_LOOK);
    return true;
}

void progress_once(void)
{
    coll_progress_all();
    (void)transport_progress(0);
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
    for (int i = 0; coll->layout.sendtypes && coll->layout.sendtypes[i]; i++)
        change(&coll->layout.sendtypes[i]->object);
    for (int i = 0; coll->layout.recvtypes && coll->layout.recvtypes[i]; i++)
        change(&coll->layout.recvtypes[i]->object);
    change(&coll->comm->object);
}

/* In one piece of memory. */
struct started {
    struct coll coll;
    struct flight flight;
};

static void started_free(struct started *started)
{
    references(&started->coll, object_release);
    coll_arguments_free(&started->coll);
    free(started);
}

static bool request_ended(struct request *request)
{
    struct started *s = request->state;
    const struct agreement *agreed = &s->coll.agreement;
    if (!atomic_load(&s->flight.finished)) return false;
    if (agreed->made && s->flight.error == MPI_SUCCESS)
        comm_set_context(agreed->made, agreed->candidate);
    request->error = s->flight.error;
    status_empty(&request->status);
    return true;
}

static bool request_progress(struct request *request)
{
    struct started *s = request->state;
    if (!coll_progress(&s->flight)) {
        progress_once();
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
    struct started *s = request->state;
    struct coll *coll = &s->coll;
    if (!laid_out(coll))
        return error_note(MPI_ERR_OTHER, "the communicator has grown since the "
                                         "request was made");
    coll->orphan = false;
    if (coll->rooted && coll_root_now(coll) == MPI_UNDEFINED)
        return error_note(MPIX_ERR_PROC_FAILED, "the root was lost");
    coll_stages_free(coll);
    coll->round = 0;
    coll->has_data = false;
    rank_use_collective(coll);
    atomic_store(&s->flight.finished, false);
    coll_pending_add(&s->flight);
    (void)coll_progress(&s->flight);
    return MPI_SUCCESS;
}

static void request_release(struct request *request)
{
    started_free(request->state);
}

static const struct request_kind coll_kind = {.progress = request_progress,
                                              .ended = request_ended,
                                              .start = request_start,
                                              .release = request_release};

/* A copy on the heap in a request of its own. */
static struct request *request_make(const struct coll *from)
{
    struct started *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    memcpy(&s->coll, from, sizeof s->coll);
    s->flight.coll = &s->coll;
    references(&s->coll, object_retain);
    struct request *request = request_new(&coll_kind, from->comm, s);
    if (!request) {
        references(&s->coll, object_release);
        free(s);
    }
    return request;
}

/* Assigns a slot. The counters are equal on all members, because all start and
 * prepare their collectives in the same order. Prepared collectives may be
 * started in any order. */
static void slot_take(struct started *s, bool prepared)
{
    struct coll *coll = &s->coll;
    struct comm *comm = coll->comm;
    if (prepared) {
        unsigned number = atomic_fetch_add(&comm->prepared, 1);
        coll->slot = SLOT_PREPARED + number % SLOTS_PREPARED;
        return;
    }
    unsigned number = atomic_fetch_add(&comm->started, 1);
    coll->slot = number % SLOTS_STARTED;
    s->flight.turn = number / SLOTS_STARTED;
    s->flight.ordered = true;
}

int coll_go(struct coll *from, const struct mode *mode)
{
    if (mode->how == MODE_NOW) return coll_run(from);
    if (mode->how == MODE_STARTED)
        rank_use_collective(from);
    else if (from->uses == USES_RANKS)
        rank_use_keep(from->function);
    struct request *request = request_make(from);
    if (!request) return coll_refuse(from, MPI_ERR_NO_MEM, "out of memory");
    struct started *s = request->state;
    request->persistent = mode->how == MODE_PREPARED;
    slot_take(s, request->persistent);
    if (!request->persistent) {
        coll_pending_add(&s->flight);
        (void)coll_progress(&s->flight);
        request->active = true;
    }
    int result = request_publish(request, mode->request);
    if (result == MPI_SUCCESS) return MPI_SUCCESS;
    return error_raise_noted(from->comm, result, from->function);
}
