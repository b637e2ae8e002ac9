/* request_pool.c - the memory and the handles of requests. See request.h. */
#include "mpi_comm.h"
#include "request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 4096 };

/* A request of the pool has the state of its kind behind it. It retains its
 * handle, hidden, for its next turn. */
struct pooled {
    struct request request;
    _Alignas(16) char state[REQUEST_STATE_MAX];
};

/* Guarded by facade_lock. */
static struct request *kept;
static unsigned kept_count;

static bool keep(struct request *request)
{
    facade_lock();
    bool room = kept_count < KEPT_MAX;
    if (room) {
        request->next = kept;
        kept = request;
        kept_count++;
    }
    facade_unlock();
    return room;
}

static struct request *take_kept(void)
{
    facade_lock();
    struct request *request = kept;
    if (request) {
        kept = request->next;
        kept_count--;
    }
    facade_unlock();
    return request;
}

static void request_destroy(struct object *object)
{
    struct request *request = (struct request *)object;
    if (request->kind->release) request->kind->release(request);
    if (request->comm) comm_unhold(request->comm);
    if (request->pooled && keep(request)) return;
    if (object->handle != HANDLE_OF(0)) handle_close(object);
    free(request);
}

static void begin(struct request *request, const struct request_kind *kind,
                  struct comm *comm, void *state)
{
    any_handle handle = request->object.handle;
    object_init(&request->object, request_destroy);
    request->object.handle = handle;
    request->kind = kind;
    request->comm = comm;
    if (comm) comm_hold(comm);
    request->persistent = request->active = false;
    request->error = MPI_SUCCESS;
    request->state = state;
    status_empty(&request->status);
}

struct request *request_new(const struct request_kind *kind, struct comm *comm,
                            void *state)
{
    struct request *request = calloc(1, sizeof *request);
    if (request) begin(request, kind, comm, state);
    return request;
}

struct request *request_with_state(const struct request_kind *kind,
                                   struct comm *comm, size_t size)
{
    assert(size <= REQUEST_STATE_MAX);
    struct request *request = take_kept();
    if (!request) request = calloc(1, sizeof(struct pooled));
    if (!request) return NULL;
    struct pooled *pooled = (struct pooled *)request;
    memset(pooled->state, 0, size);
    request->pooled = true;
    begin(request, kind, comm, pooled->state);
    return request;
}

bool request_is(const struct request *request, const struct request_kind *kind)
{
    return request->object.destroy == request_destroy && request->kind == kind;
}

int request_publish(struct request *request, MPI_Request *out)
{
    if (request->object.handle != HANDLE_OF(0)) {
        handle_show(&request->object);
    } else if (!handle_open(HANDLE_REQUEST, &request->object)) {
        object_release(&request->object);
        return error_note(MPI_ERR_NO_MEM, "no room for another request");
    }
    *out = request->object.handle;
    return MPI_SUCCESS;
}

void request_close(struct request *request)
{
    if (request->pooled)
        handle_hide(&request->object);
    else
        handle_close(&request->object);
}

/* ---------------------------------------------- sends that are complete */

static bool is_over(struct request *request)
{
    (void)request;
    return true;
}

static int has_no_effect(struct request *request)
{
    (void)request;
    return MPI_SUCCESS;
}

static const struct request_kind over_kind = {
    .progress = is_over, .ended = is_over, .cancel = has_no_effect};

static struct request over = {.object = {.references = 1},
                              .kind = &over_kind,
                              .active = true,
                              .shared = true};

bool requests_start(void)
{
    status_empty(&over.status);
    return over.object.handle != HANDLE_OF(0) ||
           handle_open(HANDLE_REQUEST, &over.object);
}

MPI_Request request_over(void)
{
    return over.object.handle;
}
