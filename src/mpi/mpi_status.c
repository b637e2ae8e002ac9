/* mpi_status.c - statuses: inquiry, changes, conversion for Fortran; and
 * generalized requests. */
#include "request.h"
#include "type.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int count_of(const MPI_Status *status, MPI_Datatype handle,
                    MPI_Count *count, const char *function)
{
    struct type *type = type_find(handle);
    if (!type)
        return error_raise(NULL, MPI_ERR_TYPE, function, "invalid datatype");
    if (!status || status == MPI_STATUS_IGNORE || !count)
        return error_raise(NULL, MPI_ERR_ARG, function, "null pointer");
    MPI_Count size = status_count(status);
    if (type->size == 0)
        *count = size == 0 ? 0 : MPI_UNDEFINED;
    else
        *count = size % type->size ? MPI_UNDEFINED : size / type->size;
    return MPI_SUCCESS;
}

static int narrow(MPI_Count wide)
{
    return wide > INT_MAX ? MPI_UNDEFINED : (int)wide;
}

MPI_PUBLIC(Get_count);
int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
    MPI_Count wide = 0;
    int result = count_of(status, type, count ? &wide : NULL, __func__);
    if (result == MPI_SUCCESS) *count = narrow(wide);
    return result;
}

MPI_PUBLIC(Get_count_c);
int PMPI_Get_count_c(const MPI_Status *status, MPI_Datatype type,
                     MPI_Count *count)
{
    return count_of(status, type, count, __func__);
}

static int elements_of(const MPI_Status *status, MPI_Datatype handle,
                       MPI_Count *count, const char *function)
{
    struct type *type = type_find(handle);
    if (!type)
        return error_raise(NULL, MPI_ERR_TYPE, function, "invalid datatype");
    if (!status || status == MPI_STATUS_IGNORE || !count)
        return error_raise(NULL, MPI_ERR_ARG, function, "null pointer");
    *count = type_elements_in(type, status_count(status));
    return MPI_SUCCESS;
}

MPI_PUBLIC(Get_elements);
int PMPI_Get_elements(const MPI_Status *status, MPI_Datatype type, int *count)
{
    MPI_Count wide = 0;
    int result = elements_of(status, type, count ? &wide : NULL, __func__);
    if (result == MPI_SUCCESS) *count = narrow(wide);
    return result;
}

MPI_PUBLIC(Get_elements_x);
int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype type,
                        MPI_Count *count)
{
    return elements_of(status, type, count, __func__);
}

MPI_PUBLIC(Get_elements_c);
int PMPI_Get_elements_c(const MPI_Status *status, MPI_Datatype type,
                        MPI_Count *count)
{
    return elements_of(status, type, count, __func__);
}

static int elements_set(MPI_Status *status, MPI_Datatype handle,
                        MPI_Count count, const char *function)
{
    struct type *type = type_find(handle);
    if (!type)
        return error_raise(NULL, MPI_ERR_TYPE, function, "invalid datatype");
    if (!status || status == MPI_STATUS_IGNORE)
        return error_raise(NULL, MPI_ERR_ARG, function, "null status");
    status_set_count(status, count * type->size);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Status_set_elements);
int PMPI_Status_set_elements(MPI_Status *status, MPI_Datatype type, int count)
{
    return elements_set(status, type, count, __func__);
}

MPI_PUBLIC(Status_set_elements_x);
int PMPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype type,
                               MPI_Count count)
{
    return elements_set(status, type, count, __func__);
}

MPI_PUBLIC(Status_set_elements_c);
int PMPI_Status_set_elements_c(MPI_Status *status, MPI_Datatype type,
                               MPI_Count count)
{
    return elements_set(status, type, count, __func__);
}

/* The public fields, for languages that cannot read them. */
#define FIELD_VARIANT(name, field)                                             \
    MPI_PUBLIC(Status_get_##name);                                             \
    int PMPI_Status_get_##name(const MPI_Status *status, int *value)           \
    {                                                                          \
        if (!status || status == MPI_STATUS_IGNORE || !value)                  \
            return RAISE_ARG(NULL, "null pointer");                            \
        *value = status->field;                                                \
        return MPI_SUCCESS;                                                    \
    }                                                                          \
    MPI_PUBLIC(Status_set_##name);                                             \
    int PMPI_Status_set_##name(MPI_Status *status, int value)                  \
    {                                                                          \
        if (!status || status == MPI_STATUS_IGNORE)                            \
            return RAISE_ARG(NULL, "null status");                             \
        status->field = value;                                                 \
        return MPI_SUCCESS;                                                    \
    }
FIELD_VARIANT(source, MPI_SOURCE)
FIELD_VARIANT(tag, MPI_TAG)
FIELD_VARIANT(error, MPI_ERROR)

MPI_PUBLIC(Status_set_cancelled);
int PMPI_Status_set_cancelled(MPI_Status *status, int flag)
{
    if (!status || status == MPI_STATUS_IGNORE)
        return RAISE_ARG(NULL, "null status");
    STATUS_HIGH(status) = (STATUS_HIGH(status) & ~1) | (flag != 0);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Test_cancelled);
int PMPI_Test_cancelled(const MPI_Status *status, int *flag)
{
    if (!status || status == MPI_STATUS_IGNORE || !flag)
        return RAISE_ARG(NULL, "null pointer");
    *flag = STATUS_HIGH(status) & 1;
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------------- Fortran
 */

_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint) &&
                   sizeof(MPI_F08_status) == sizeof(MPI_Status),
               "the three forms of a status have one layout");

static int status_convert(const void *from, void *to, const char *function)
{
    if (!from || !to || from == MPI_STATUS_IGNORE)
        return error_raise(NULL, MPI_ERR_ARG, function, "null status");
    memcpy(to, from, sizeof(MPI_Status));
    return MPI_SUCCESS;
}

MPI_PUBLIC(Status_c2f);
int PMPI_Status_c2f(const MPI_Status *from, MPI_Fint *to)
{
    return status_convert(from, to, __func__);
}

MPI_PUBLIC(Status_f2c);
int PMPI_Status_f2c(const MPI_Fint *from, MPI_Status *to)
{
    return status_convert(from, to, __func__);
}

MPI_PUBLIC(Status_f082c);
int PMPI_Status_f082c(const MPI_F08_status *from, MPI_Status *to)
{
    return status_convert(from, to, __func__);
}

MPI_PUBLIC(Status_c2f08);
int PMPI_Status_c2f08(const MPI_Status *from, MPI_F08_status *to)
{
    return status_convert(from, to, __func__);
}

MPI_PUBLIC(Status_f082f);
int PMPI_Status_f082f(const MPI_F08_status *from, MPI_Fint *to)
{
    return status_convert(from, to, __func__);
}

MPI_PUBLIC(Status_f2f08);
int PMPI_Status_f2f08(const MPI_Fint *from, MPI_F08_status *to)
{
    return status_convert(from, to, __func__);
}

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

MPI_PUBLIC(Grequest_start);
int PMPI_Grequest_start(MPI_Grequest_query_function *query,
                        MPI_Grequest_free_function *release,
                        MPI_Grequest_cancel_function *cancel, void *extra,
                        MPI_Request *out)
{
    if (!query || !release || !cancel || !out)
        return RAISE_ARG(NULL, "null pointer");
    struct grequest *state = calloc(1, sizeof *state);
    struct request *request =
        state ? request_new(&grequest_kind, NULL, state) : NULL;
    if (!request) {
        free(state);
        return RAISE_NO_MEMORY(NULL);
    }
    state->query = query;
    state->release = release;
    state->cancel = cancel;
    state->extra = extra;
    request->active = true;
    int result = request_publish(request, out);
    return result == MPI_SUCCESS ? result
                                 : error_raise_noted(NULL, result, __func__);
}

MPI_PUBLIC(Grequest_complete);
int PMPI_Grequest_complete(MPI_Request handle)
{
    struct request *request =
        (struct request *)handle_find(HANDLE_REQUEST, handle);
    if (!request || request->kind != &grequest_kind)
        return RAISE(NULL, MPI_ERR_REQUEST, "not a generalized request");
    struct grequest *state = request->state;
    atomic_store(&state->complete, true);
    return MPI_SUCCESS;
}
