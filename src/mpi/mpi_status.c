/* mpi_status.c - statuses: inquiry, changes, conversion for Fortran; and
 * generalized requests. */
#include "request.h"
#include "type.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The datatype of a call about a status; NULL, noted: an argument is wrong. */
static struct type *type_of(const MPI_Status *status, MPI_Datatype handle)
{
    struct type *type = type_find(handle);
    if (!type) error_note(MPI_ERR_TYPE, "invalid datatype");
    if (!type || (status && status != MPI_STATUS_IGNORE)) return type;
    note_argument("null status");
    return NULL;
}

static int type_error(MPI_Datatype handle)
{
    return type_find(handle) ? MPI_ERR_ARG : MPI_ERR_TYPE;
}

int mpi_Get_count(const MPI_Status *status, MPI_Datatype handle,
                  MPI_Count *count)
{
    const struct type *type = type_of(status, handle);
    if (!type) return type_error(handle);
    MPI_Count size = status_count(status);
    if (type->size == 0)
        *count = size == 0 ? 0 : MPI_UNDEFINED;
    else
        *count = size % type->size ? MPI_UNDEFINED : size / type->size;
    return MPI_SUCCESS;
}

int mpi_Get_elements(const MPI_Status *status, MPI_Datatype handle,
                     MPI_Count *count)
{
    const struct type *type = type_of(status, handle);
    if (!type) return type_error(handle);
    *count = type_elements_in(type, status_count(status));
    return MPI_SUCCESS;
}

int mpi_Status_set_elements(MPI_Status *status, MPI_Datatype handle,
                            MPI_Count count)
{
    const struct type *type = type_of(status, handle);
    if (!type) return type_error(handle);
    status_set_count(status, count * type->size);
    return MPI_SUCCESS;
}

/* The public fields, for languages that cannot read them. */
#define FIELD(name, field)                                                     \
    int mpi_Status_get_##name(const MPI_Status *status, int *value)            \
    {                                                                          \
        if (!status || status == MPI_STATUS_IGNORE)                            \
            return note_argument("null status");                               \
        *value = status->field;                                                \
        return MPI_SUCCESS;                                                    \
    }                                                                          \
    int mpi_Status_set_##name(MPI_Status *status, int value)                   \
    {                                                                          \
        if (!status || status == MPI_STATUS_IGNORE)                            \
            return note_argument("null status");                               \
        status->field = value;                                                 \
        return MPI_SUCCESS;                                                    \
    }
FIELD(source, MPI_SOURCE)
FIELD(tag, MPI_TAG)
FIELD(error, MPI_ERROR)

int mpi_Status_set_cancelled(MPI_Status *status, int flag)
{
    if (!status || status == MPI_STATUS_IGNORE)
        return note_argument("null status");
    STATUS_HIGH(status) = (STATUS_HIGH(status) & ~1) | (flag != 0);
    return MPI_SUCCESS;
}

int mpi_Test_cancelled(const MPI_Status *status, int *flag)
{
    if (!status || status == MPI_STATUS_IGNORE)
        return note_argument("null status");
    *flag = STATUS_HIGH(status) & 1;
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------------- Fortran
 */

_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint) &&
                   sizeof(MPI_F08_status) == sizeof(MPI_Status),
               "the three forms of a status have one layout");

static int status_convert(const void *from, void *to)
{
    if (!from || !to || from == MPI_STATUS_IGNORE)
        return note_argument("null status");
    memcpy(to, from, sizeof(MPI_Status));
    return MPI_SUCCESS;
}

#define CONVERSION(name, from_t, to_t)                                         \
    int mpi_Status_##name(const from_t *from, to_t *to)                        \
    {                                                                          \
        return status_convert(from, to);                                       \
    }
CONVERSION(c2f, MPI_Status, MPI_Fint)
CONVERSION(f2c, MPI_Fint, MPI_Status)
CONVERSION(f082c, MPI_F08_status, MPI_Status)
CONVERSION(c2f08, MPI_Status, MPI_F08_status)
CONVERSION(f082f, MPI_F08_status, MPI_Fint)
CONVERSION(f2f08, MPI_Fint, MPI_F08_status)

/* ------------------------------------------------------ generalized requests
 */

struct grequest {
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *release;
    MPI_Grequest_cancel_function *cancel;
    void *extra;
    atomic_bool complete;
};

static bool grequest_progress(struct request *request)
{
    struct grequest *state = request->state;
    if (!atomic_load(&state->complete)) return false;
    request->error = state->query(state->extra, &request->status);
    return true;
}

static int grequest_cancel(struct request *request)
{
    struct grequest *state = request->state;
    return state->cancel(state->extra, atomic_load(&state->complete));
}

static int grequest_finish(struct request *request)
{
    struct grequest *state = request->state;
    MPI_Grequest_free_function *release = state->release;
    state->release = NULL;
    return release ? release(state->extra) : MPI_SUCCESS;
}

static void grequest_release(struct request *request)
{
    (void)grequest_finish(request);
    free(request->state);
}

static const struct request_kind grequest_kind = {.progress = grequest_progress,
                                                  .cancel = grequest_cancel,
                                                  .finish = grequest_finish,
                                                  .release = grequest_release};

int mpi_Grequest_start(MPI_Grequest_query_function *query,
                       MPI_Grequest_free_function *release,
                       MPI_Grequest_cancel_function *cancel, void *extra,
                       MPI_Request *out)
{
    if (!query || !release || !cancel) return note_argument("null pointer");
    struct grequest *state = calloc(1, sizeof *state);
    struct request *request =
        state ? request_new(&grequest_kind, NULL, state) : NULL;
    if (!request) {
        free(state);
        return note_no_memory();
    }
    state->query = query;
    state->release = release;
    state->cancel = cancel;
    state->extra = extra;
    request->active = true;
    int result = request_publish(request, out);
    return result;
}

int mpi_Grequest_complete(MPI_Request handle)
{
    struct request *request =
        (struct request *)handle_find(HANDLE_REQUEST, handle);
    if (!request || request->kind != &grequest_kind)
        return error_note(MPI_ERR_REQUEST, "not a generalized request");
    struct grequest *state = request->state;
    atomic_store(&state->complete, true);
    return MPI_SUCCESS;
}
