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

#define REQUEST_OR_RETURN(variable, handle)                                    \
    if (!(handle)) return RAISE_ARG(NULL, "null request");                     \
    struct request *variable = request_find(*(handle));                        \
    if (!variable && *(handle) != MPI_REQUEST_NULL)                            \
    return RAISE(NULL, MPI_ERR_REQUEST, "invalid request 0x%08x",              \
                 HANDLE_BITS(*(handle)))

MPI_PUBLIC(Wait);
int PMPI_Wait(MPI_Request *handle, MPI_Status *status)
{
    REQUEST_OR_RETURN(request, handle);
    if (idle(request)) {
        give_empty(status);
        return MPI_SUCCESS;
    }
    struct call_wait w;
    waiting_begins(&w);
    while (!request->kind->progress(request))
        if (waiting_turn(&w)) waiting_request(&w, request, __func__);
    waiting_over(&w);
    return complete(request, handle, status, __func__);
}

MPI_PUBLIC(Test);
int PMPI_Test(MPI_Request *handle, int *flag, MPI_Status *status)
{
    REQUEST_OR_RETURN(request, handle);
    if (!flag) return RAISE_ARG(NULL, "null flag");
    *flag = 1;
    if (idle(request)) {
        give_empty(status);
        return MPI_SUCCESS;
    }
    *flag = request->kind->progress(request);
    if (!*flag) return MPI_SUCCESS;
    return complete(request, handle, status, __func__);
}

MPI_PUBLIC(Request_get_status);
int PMPI_Request_get_status(MPI_Request handle, int *flag, MPI_Status *status)
{
    struct request *request = request_find(handle);
    if (!request && handle != MPI_REQUEST_NULL)
        return RAISE(NULL, MPI_ERR_REQUEST, "invalid request 0x%08x",
                     HANDLE_BITS(handle));
    if (!flag) return RAISE_ARG(NULL, "null flag");
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

MPI_PUBLIC(Request_free);
int PMPI_Request_free(MPI_Request *handle)
{
    REQUEST_OR_RETURN(request, handle);
    if (!request) return RAISE(NULL, MPI_ERR_REQUEST, "null request");
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

MPI_PUBLIC(Cancel);
int PMPI_Cancel(MPI_Request *handle)
{
    REQUEST_OR_RETURN(request, handle);
    if (idle(request))
        return RAISE(NULL, MPI_ERR_REQUEST, "the request is not active");
    if (!request->kind->cancel)
        return RAISE(request->comm, MPI_ERR_UNSUPPORTED_OPERATION,
                     "this kind of request cannot be cancelled");
    int result = request->kind->cancel(request);
    if (result != MPI_SUCCESS)
        return error_raise_noted(request->comm, result, __func__);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Start);
int PMPI_Start(MPI_Request *handle)
{
    REQUEST_OR_RETURN(request, handle);
    if (!request || !request->persistent || request->active)
        return RAISE(NULL, MPI_ERR_REQUEST,
                     "not an inactive persistent request");
    status_empty(&request->status);
    request->error = MPI_SUCCESS;
    int result = request->kind->start(request);
    if (result != MPI_SUCCESS)
        return error_raise_noted(request->comm, result, __func__);
    request->active = true;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Startall);
int PMPI_Startall(int count, MPI_Request handles[])
{
    if (count < 0) return RAISE(NULL, MPI_ERR_COUNT, "negative count");
    for (int i = 0; i < count; i++) {
        int result = PMPI_Start(&handles[i]);
        if (result != MPI_SUCCESS) return result;
    }
    return MPI_SUCCESS;
}

/* -------------------------------------------------------------------- lists */

static int list_check(int count, const MPI_Request handles[],
                      const char *function)
{
    if (count < 0)
        return error_raise(NULL, MPI_ERR_COUNT, function, "negative count");
    if (count > 0 && !handles)
        return error_raise(NULL, MPI_ERR_ARG, function, "null requests");
    for (int i = 0; i < count; i++)
        if (handles[i] != MPI_REQUEST_NULL && !request_find(handles[i]))
            return error_raise(NULL, MPI_ERR_REQUEST, function,
                               "request %d is invalid", i);
    return MPI_SUCCESS;
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

/* Reports requests that are complete. */
static int list_complete(int count, MPI_Request handles[], MPI_Status *statuses,
                         const char *function)
{
    struct comm *comm = NULL;
    bool failed = false;
    for (int i = 0; i < count; i++) {
        struct request *request = request_find(handles[i]);
        int error = MPI_SUCCESS;
        if (idle(request)) {
            give_empty(list_status(statuses, i));
        } else {
            if (request->error != MPI_SUCCESS && !comm && request->comm) {
                comm = request->comm;
                object_retain(&comm->object);
            }
            error =
                request_report(request, &handles[i], list_status(statuses, i));
        }
        list_error(statuses, i, error, &failed);
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
    coll_progress_all();
    (void)transport_progress(0);
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

MPI_PUBLIC(Waitall);
int PMPI_Waitall(int count, MPI_Request handles[], MPI_Status *statuses)
{
    int result = list_check(count, handles, __func__);
    int known = 0;
    struct call_wait w;
    if (result != MPI_SUCCESS) return result;
    waiting_begins(&w);
    while (!list_progress(count, handles, &known))
        if (waiting_turn(&w))
            waiting_request(&w, request_find(handles[known]), __func__);
    waiting_over(&w);
    return list_complete(count, handles, statuses, __func__);
}

MPI_PUBLIC(Testall);
int PMPI_Testall(int count, MPI_Request handles[], int *flag,
                 MPI_Status *statuses)
{
    int result = list_check(count, handles, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!flag) return RAISE_ARG(NULL, "null flag");
    int known = 0;
    *flag = list_progress(count, handles, &known);
    if (!*flag) return MPI_SUCCESS;
    return list_complete(count, handles, statuses, __func__);
}

/* The calls that free nothing: requests stay as they are. */

MPI_PUBLIC(Request_get_status_all);
int PMPI_Request_get_status_all(int count, const MPI_Request handles[],
                                int *flag, MPI_Status statuses[])
{
    int result = list_check(count, handles, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!flag) return RAISE_ARG(NULL, "null flag");
    *flag = 1;
    for (int i = 0; i < count; i++) {
        int done;
        (void)PMPI_Request_get_status(handles[i], &done,
                                      list_status(statuses, i));
        *flag = *flag && done;
    }
    return MPI_SUCCESS;
}

MPI_PUBLIC(Request_get_status_any);
int PMPI_Request_get_status_any(int count, const MPI_Request handles[],
                                int *index, int *flag, MPI_Status *status)
{
    int result = list_check(count, handles, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!index || !flag) return RAISE_ARG(NULL, "null pointer");
    bool any = false;
    *index = MPI_UNDEFINED;
    *flag = 0;
    for (int i = 0; i < count && !*flag; i++) {
        if (idle(request_find(handles[i]))) continue;
        any = true;
        (void)PMPI_Request_get_status(handles[i], flag, status);
        if (*flag) *index = i;
    }
    if (any) return MPI_SUCCESS;
    give_empty(status);
    *flag = 1;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Request_get_status_some);
int PMPI_Request_get_status_some(int count, const MPI_Request handles[],
                                 int *done, int indices[],
                                 MPI_Status statuses[])
{
    int result = list_check(count, handles, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!done || (count > 0 && !indices))
        return RAISE_ARG(NULL, "null pointer");
    bool any = false;
    *done = 0;
    for (int i = 0; i < count; i++) {
        int ended_one;
        if (idle(request_find(handles[i]))) continue;
        any = true;
        (void)PMPI_Request_get_status(handles[i], &ended_one,
                                      list_status(statuses, *done));
        if (ended_one) indices[(*done)++] = i;
    }
    if (!any) *done = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

enum { ANY_PENDING = -1, ANY_NONE = MPI_UNDEFINED };

/* Index of a complete request, after one poll. */
static int any_progress(int count, MPI_Request handles[])
{
    bool some = false, moved = false;
    move_together();
    for (int i = 0; i < count; i++) {
        struct request *request = request_find(handles[i]);
        if (idle(request)) continue;
        some = true;
        if (ended(request, &moved)) return i;
    }
    return some ? ANY_PENDING : ANY_NONE;
}

MPI_PUBLIC(Waitany);
int PMPI_Waitany(int count, MPI_Request handles[], int *index,
                 MPI_Status *status)
{
    int result = list_check(count, handles, __func__);
    struct call_wait w;
    if (result != MPI_SUCCESS) return result;
    if (!index) return RAISE_ARG(NULL, "null index");
    waiting_begins(&w);
    while ((*index = any_progress(count, handles)) == ANY_PENDING)
        if (waiting_turn(&w)) waiting_requests(&w, __func__);
    waiting_over(&w);
    if (*index == ANY_NONE) {
        give_empty(status);
        return MPI_SUCCESS;
    }
    return complete(request_find(handles[*index]), &handles[*index], status,
                    __func__);
}

MPI_PUBLIC(Testany);
int PMPI_Testany(int count, MPI_Request handles[], int *index, int *flag,
                 MPI_Status *status)
{
    int result = list_check(count, handles, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!index || !flag) return RAISE_ARG(NULL, "null index or flag");
    int found = any_progress(count, handles);
    *flag = found != ANY_PENDING;
    *index = found < 0 ? MPI_UNDEFINED : found;
    if (found == ANY_NONE) give_empty(status);
    if (found < 0) return MPI_SUCCESS;
    return complete(request_find(handles[found]), &handles[found], status,
                    __func__);
}

/* Reports all complete requests. Returns their number, or ANY_*. */
static int some_progress(int count, MPI_Request handles[], int indices[])
{
    int found = 0;
    bool some = false, moved = false;
    move_together();
    for (int i = 0; i < count; i++) {
        struct request *request = request_find(handles[i]);
        if (idle(request)) continue;
        some = true;
        if (ended(request, &moved)) indices[found++] = i;
    }
    return found > 0 ? found : some ? ANY_PENDING : ANY_NONE;
}

static int some_complete(int found, MPI_Request handles[], int indices[],
                         MPI_Status *statuses, const char *function)
{
    bool failed = false;
    struct comm *comm = NULL;
    for (int k = 0; k < found; k++) {
        struct request *request = request_find(handles[indices[k]]);
        if (request->error != MPI_SUCCESS && !comm && request->comm) {
            comm = request->comm;
            object_retain(&comm->object);
        }
        int error = request_report(request, &handles[indices[k]],
                                   list_status(statuses, k));
        list_error(statuses, k, error, &failed);
    }
    if (!failed) return MPI_SUCCESS;
    int result =
        error_raise(comm, MPI_ERR_IN_STATUS, function, "a request failed");
    if (comm) object_release(&comm->object);
    return result;
}

MPI_PUBLIC(Waitsome);
int PMPI_Waitsome(int count, MPI_Request handles[], int *out_count,
                  int indices[], MPI_Status *statuses)
{
    int result = list_check(count, handles, __func__);
    struct call_wait w;
    if (result != MPI_SUCCESS) return result;
    if (!out_count || (count > 0 && !indices))
        return RAISE_ARG(NULL, "null count or indices");
    int found;
    waiting_begins(&w);
    while ((found = some_progress(count, handles, indices)) == ANY_PENDING)
        if (waiting_turn(&w)) waiting_requests(&w, __func__);
    waiting_over(&w);
    *out_count = found;
    if (found == ANY_NONE) return MPI_SUCCESS;
    return some_complete(found, handles, indices, statuses, __func__);
}

MPI_PUBLIC(Testsome);
int PMPI_Testsome(int count, MPI_Request handles[], int *out_count,
                  int indices[], MPI_Status *statuses)
{
    int result = list_check(count, handles, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!out_count || (count > 0 && !indices))
        return RAISE_ARG(NULL, "null count or indices");
    int found = some_progress(count, handles, indices);
    *out_count = found == ANY_PENDING ? 0 : found;
    if (found < 0) return MPI_SUCCESS;
    return some_complete(found, handles, indices, statuses, __func__);
}
