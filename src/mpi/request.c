/* request.c - completion of requests, and statuses. */
#include "request.h"
#include "coll.h"
#include "mpi_comm.h"
#include "transport.h"
#include "waiting.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- statuses */

/* MPICH stores the low 32 bits of the byte count in the first word and the
 * rest, above the cancelled bit, in the second. */
void status_set_count(MPI_Status *status, MPI_Count size)
{
    STATUS_LOW(status) = (int)((uint64_t)size & 0xffffffffu);
    STATUS_HIGH(status) =
        (int)((uint64_t)size >> 32 << 1) | (STATUS_HIGH(status) & 1);
}

MPI_Count status_count(const MPI_Status *status)
{
    uint64_t low = (uint32_t)STATUS_LOW(status);
    uint64_t high = (uint32_t)STATUS_HIGH(status) >> 1;
    return (MPI_Count)(high << 32 | low);
}

void status_empty(MPI_Status *status)
{
    STATUS_LOW(status) = 0;
    STATUS_HIGH(status) = 0;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status->MPI_ERROR = MPI_SUCCESS;
}

void status_proc_null(MPI_Status *status)
{
    status_empty(status);
    status->MPI_SOURCE = MPI_PROC_NULL;
}

/* Single completions do not set MPI_ERROR, by the standard. */
void status_give(MPI_Status *to, const MPI_Status *from)
{
    if (to == MPI_STATUS_IGNORE) return;
    int error = to->MPI_ERROR;
    *to = *from;
    to->MPI_ERROR = error;
}

/* ----------------------------------------------------------------- requests */

static struct request *request_find(MPI_Request handle)
{
    if (env_forked()) return NULL; /* nobody completes it here */
    return (struct request *)handle_find(HANDLE_REQUEST, handle);
}

static struct request *dropped; /* guarded by facade_lock */

void request_drop(struct request *request)
{
    facade_lock();
    request->next = dropped;
    dropped = request;
    facade_unlock();
}

void requests_reap(void)
{
    facade_lock();
    struct request *list = dropped;
    dropped = NULL;
    facade_unlock();
    while (list) {
        struct request *request = list;
        list = request->next;
        if (request->kind->progress(request))
            object_release(&request->object);
        else
            request_drop(request);
    }
}

/* Reports a completion: frees the request or makes it inactive. Returns its
 * error without raising it. */
static int request_report(struct request *request, MPI_Request *handle,
                          MPI_Status *status)
{
    int error = request->error;
    status_give(status, &request->status);
    /* not complete: it continues once the loss is acknowledged */
    if (error == MPIX_ERR_PROC_FAILED_PENDING) return error;
    if (request->shared) {
        *handle = MPI_REQUEST_NULL;
        return error;
    }
    request->active = false;
    if (request->kind->finish) {
        int last = request->kind->finish(request);
        if (error == MPI_SUCCESS) error = last;
    }
    if (request->persistent) return error;
    *handle = MPI_REQUEST_NULL;
    request_close(request);
    object_release(&request->object);
    return error;
}

/* Raises on the communicator of the request, which may be freed by then. */
static int complete(struct request *request, MPI_Request *handle,
                    MPI_Status *status, const char *function)
{
    struct comm *comm = request->comm;
    if (comm) comm_hold(comm);
    int error = request_report(request, handle, status);
    if (error != MPI_SUCCESS) error = error_raise_noted(comm, error, function);
    if (comm) comm_unhold(comm);
    return error;
}

/* Null and inactive persistent requests complete at once, with an empty
 * status. */
static bool idle(const struct request *request)
{
    return !request || !request->active;
}

static void give_empty(MPI_Status *status)
{
    MPI_Status empty;
    status_empty(&empty);
    status_give(status, &empty);
}

static int note_invalid(MPI_Request handle)
{
    return error_note(MPI_ERR_REQUEST, "invalid request 0x%08x",
                      HANDLE_BITS(handle));
}

static bool is_none(const struct request *request, MPI_Request handle)
{
    return !request && handle != MPI_REQUEST_NULL;
}

/* MPI_Wait; with a flag MPI_Test. */
static int one(MPI_Request *handle, int *flag, MPI_Status *status,
               const char *function)
{
    struct request *request = request_find(*handle);
    if (is_none(request, *handle))
        return error_raise_noted(NULL, note_invalid(*handle), function);
    if (flag) *flag = 1;
    if (idle(request)) {
        give_empty(status);
        return MPI_SUCCESS;
    }
    if (flag) {
        *flag = request->kind->progress(request);
        if (!*flag) return MPI_SUCCESS;
        return complete(request, handle, status, function);
    }
    struct call_wait w;
    waiting_begins(&w);
    while (!request->kind->progress(request))
        if (waiting_turn(&w)) waiting_request(&w, request, function);
    waiting_over(&w);
    return complete(request, handle, status, function);
}

int mpi_Wait(MPI_Request *handle, MPI_Status *status, const char *function)
{
    return one(handle, NULL, status, function);
}

int mpi_Test(MPI_Request *handle, int *flag, MPI_Status *status,
             const char *function)
{
    return one(handle, flag, status, function);
}

int mpi_Request_get_status(MPI_Request handle, int *flag, MPI_Status *status)
{
    struct request *request = request_find(handle);
    if (is_none(request, handle)) return note_invalid(handle);
    *flag = idle(request) || request->kind->progress(request);
    if (idle(request))
        give_empty(status);
    else if (*flag)
        status_give(status, &request->status);
    return MPI_SUCCESS;
}

MPIX_PUBLIC(Request_is_complete);
int PMPIX_Request_is_complete(MPI_Request handle)
{
    struct request *request = request_find(handle);
    return idle(request) || request->kind->progress(request);
}

int mpi_Request_free(MPI_Request *handle)
{
    struct request *request = request_find(*handle);
    if (!request) return note_invalid(*handle);
    /* operations in flight end on their own; no caller waits for them */
    requests_reap();
    *handle = MPI_REQUEST_NULL;
    if (request->shared) return MPI_SUCCESS;
    request_close(request);
    if (request->active && !request->kind->progress(request))
        request_drop(request);
    else
        object_release(&request->object);
    return MPI_SUCCESS;
}

int mpi_Cancel(MPI_Request *handle, const char *function)
{
    struct request *request = request_find(*handle);
    if (is_none(request, *handle))
        return error_raise_noted(NULL, note_invalid(*handle), function);
    if (idle(request))
        return error_raise(NULL, MPI_ERR_REQUEST, function,
                           "the request is not active");
    int result = request->kind->cancel
                     ? request->kind->cancel(request)
                     : error_note(MPI_ERR_UNSUPPORTED_OPERATION,
                                  "this kind of request cannot be cancelled");
    if (result == MPI_SUCCESS) return result;
    return error_raise_noted(request->comm, result, function);
}

int mpi_Start(MPI_Request *handle, const char *function)
{
    struct request *request = request_find(*handle);
    if (!request || !request->persistent || request->active)
        return error_raise(NULL, MPI_ERR_REQUEST, function,
                           "not an inactive persistent request");
    status_empty(&request->status);
    request->error = MPI_SUCCESS;
    int result = request->kind->start(request);
    if (result != MPI_SUCCESS)
        return error_raise_noted(request->comm, result, function);
    request->active = true;
    return MPI_SUCCESS;
}

/* -------------------------------------------------------------------- lists */

static int list_check(int count, const MPI_Request handles[])
{
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    if (count > 0 && !handles) return note_argument("null requests");
    for (int i = 0; i < count; i++)
        if (handles[i] != MPI_REQUEST_NULL && !request_find(handles[i]))
            return error_note(MPI_ERR_REQUEST, "request %d is invalid", i);
    return MPI_SUCCESS;
}

int mpi_Startall(int count, MPI_Request handles[], const char *function)
{
    int result = list_check(count, handles);
    if (result != MPI_SUCCESS) return error_raise_noted(NULL, result, function);
    for (int i = 0; i < count && result == MPI_SUCCESS; i++)
        result = mpi_Start(&handles[i], function);
    return result;
}

/* In lists MPI_ERROR is set too, but only if a request failed. */
static void list_error(MPI_Status *statuses, int i, int error, bool *failed)
{
    if (statuses == MPI_STATUSES_IGNORE) statuses = NULL;
    if (error != MPI_SUCCESS && !*failed)
        for (int k = 0; statuses && k < i; k++)
            statuses[k].MPI_ERROR = MPI_SUCCESS;
    *failed = *failed || error != MPI_SUCCESS;
    if (statuses && *failed) statuses[i].MPI_ERROR = error;
}

static MPI_Status *list_status(MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* Reports requests that are complete: those of the indices, or all. */
static int list_complete(int count, MPI_Request handles[], const int *indices,
                         MPI_Status *statuses, const char *function)
{
    struct comm *comm = NULL;
    bool failed = false;
    for (int k = 0; k < count; k++) {
        MPI_Request *handle = &handles[indices ? indices[k] : k];
        struct request *request = request_find(*handle);
        MPI_Status *status = list_status(statuses, k);
        int error = MPI_SUCCESS;
        if (idle(request)) {
            give_empty(status);
        } else {
            if (request->error != MPI_SUCCESS && !comm && request->comm) {
                comm = request->comm;
                object_retain(&comm->object);
            }
            error = request_report(request, handle, status);
        }
        list_error(statuses, k, error, &failed);
    }
    if (!failed) return MPI_SUCCESS;
    int result =
        error_raise(comm, MPI_ERR_IN_STATUS, function, "a request failed");
    if (comm) object_release(&comm->object);
    return result;
}

/* For requests in a list: those with common progress are only checked, except
 * for the first unmatched message, which makes progress on all messages. */
static bool ended(struct request *request, bool *moved)
{
    if (!request->kind->ended) return request->kind->progress(request);
    if (request->kind->ended(request)) return true;
    if (!request->kind->messages || *moved) return false;
    *moved = true;
    return request->kind->progress(request);
}

/* Makes progress once for a whole list instead of for each request. */
static void move_together(void)
{
    if (!coll_any_pending()) return;
    progress_once();
}

/* Whether all are complete, after one poll of each. The first `*known` are
 * known to be complete. */
static bool list_progress(int count, MPI_Request handles[], int *known)
{
    bool all = true, moved = false;
    move_together();
    for (int i = *known; i < count; i++) {
        struct request *request = request_find(handles[i]);
        bool done = idle(request) || ended(request, &moved);
        all = all && done;
        if (all) *known = i + 1;
        /* any wait makes progress on all of its kind */
        if (!done && (request->kind->ended ||
                      (request->kind->messages && !coll_any_pending())))
            break;
    }
    return all;
}

/* MPI_Waitall; with a flag MPI_Testall. */
static int all(int count, MPI_Request handles[], int *flag,
               MPI_Status *statuses, const char *function)
{
    int result = list_check(count, handles), known = 0;
    if (result != MPI_SUCCESS) return error_raise_noted(NULL, result, function);
    struct call_wait w;
    bool done;
    waiting_begins(&w);
    while (!(done = list_progress(count, handles, &known)) && !flag)
        if (waiting_turn(&w))
            waiting_request(&w, request_find(handles[known]), function);
    waiting_over(&w);
    if (flag) *flag = done;
    return done ? list_complete(count, handles, NULL, statuses, function)
                : MPI_SUCCESS;
}

int mpi_Waitall(int count, MPI_Request handles[], MPI_Status *statuses,
                const char *function)
{
    return all(count, handles, NULL, statuses, function);
}

int mpi_Testall(int count, MPI_Request handles[], int *flag,
                MPI_Status *statuses, const char *function)
{
    return all(count, handles, flag, statuses, function);
}

/* The calls that free nothing: requests stay as they are. */

int mpi_Request_get_status_all(int count, const MPI_Request handles[],
                               int *flag, MPI_Status statuses[])
{
    int result = list_check(count, handles);
    if (result != MPI_SUCCESS) return result;
    *flag = 1;
    for (int i = 0; i < count; i++) {
        int done;
        (void)mpi_Request_get_status(handles[i], &done,
                                     list_status(statuses, i));
        *flag = *flag && done;
    }
    return MPI_SUCCESS;
}

int mpi_Request_get_status_any(int count, const MPI_Request handles[],
                               int *index, int *flag, MPI_Status *status)
{
    int result = list_check(count, handles);
    if (result != MPI_SUCCESS) return result;
    bool any = false;
    *index = MPI_UNDEFINED;
    *flag = 0;
    for (int i = 0; i < count && !*flag; i++) {
        if (idle(request_find(handles[i]))) continue;
        any = true;
        (void)mpi_Request_get_status(handles[i], flag, status);
        if (*flag) *index = i;
    }
    if (any) return MPI_SUCCESS;
    give_empty(status);
    *flag = 1;
    return MPI_SUCCESS;
}

int mpi_Request_get_status_some(int count, const MPI_Request handles[],
                                int *done, int indices[], MPI_Status statuses[])
{
    int result = list_check(count, handles);
    if (result != MPI_SUCCESS) return result;
    if (count > 0 && !indices) return note_argument("null indices");
    bool any = false;
    *done = 0;
    for (int i = 0; i < count; i++) {
        int ended_one;
        if (idle(request_find(handles[i]))) continue;
        any = true;
        (void)mpi_Request_get_status(handles[i], &ended_one,
                                     list_status(statuses, *done));
        if (ended_one) indices[(*done)++] = i;
    }
    if (!any) *done = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

enum { SOME_PENDING = -1, SOME_NONE = MPI_UNDEFINED };

/* The indices of complete requests, after one poll, and their number: at most
 * so many, or SOME_*. With `wait` not SOME_PENDING. */
static int some(int count, MPI_Request handles[], int indices[], int most,
                bool wait, const char *function)
{
    struct call_wait w;
    int found = 0;
    waiting_begins(&w);
    for (;;) {
        bool any = false, moved = false;
        move_together();
        for (int i = 0; i < count && found < most; i++) {
            struct request *request = request_find(handles[i]);
            if (idle(request)) continue;
            any = true;
            if (ended(request, &moved)) indices[found++] = i;
        }
        if (found == 0) found = any ? SOME_PENDING : SOME_NONE;
        if (found != SOME_PENDING || !wait) break;
        found = 0;
        if (waiting_turn(&w)) waiting_requests(&w, function);
    }
    waiting_over(&w);
    return found;
}

/* MPI_Waitany; with a flag MPI_Testany. */
static int any(int count, MPI_Request handles[], int *index, int *flag,
               MPI_Status *status, const char *function)
{
    int result = list_check(count, handles), at;
    if (result != MPI_SUCCESS) return error_raise_noted(NULL, result, function);
    int found = some(count, handles, &at, 1, !flag, function);
    if (flag) *flag = found != SOME_PENDING;
    *index = found > 0 ? at : MPI_UNDEFINED;
    if (found == SOME_NONE) give_empty(status);
    if (found < 0) return MPI_SUCCESS;
    return complete(request_find(handles[at]), &handles[at], status, function);
}

int mpi_Waitany(int count, MPI_Request handles[], int *index,
                MPI_Status *status, const char *function)
{
    return any(count, handles, index, NULL, status, function);
}

int mpi_Testany(int count, MPI_Request handles[], int *index, int *flag,
                MPI_Status *status, const char *function)
{
    return any(count, handles, index, flag, status, function);
}

/* MPI_Waitsome, or MPI_Testsome. */
static int several(int count, MPI_Request handles[], int *out_count,
                   int indices[], MPI_Status *statuses, bool wait,
                   const char *function)
{
    int result = list_check(count, handles);
    if (result == MPI_SUCCESS && count > 0 && !indices)
        result = note_argument("null indices");
    if (result != MPI_SUCCESS) return error_raise_noted(NULL, result, function);
    int found = some(count, handles, indices, count, wait, function);
    *out_count = found == SOME_PENDING ? 0 : found;
    if (found < 0) return MPI_SUCCESS;
    return list_complete(found, handles, indices, statuses, function);
}

int mpi_Waitsome(int count, MPI_Request handles[], int *out_count,
                 int indices[], MPI_Status *statuses, const char *function)
{
    return several(count, handles, out_count, indices, statuses, true,
                   function);
}

int mpi_Testsome(int count, MPI_Request handles[], int *out_count,
                 int indices[], MPI_Status *statuses, const char *function)
{
    return several(count, handles, out_count, indices, statuses, false,
                   function);
}
