/* tools.c - the tools interface (MPI_T) without any variables, categories,
 * events or sources, which MPI allows. Queries by number or handle fail. */
#include "facade.h"

#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static atomic_int users; /* init_thread calls not finalized yet */

MPI_PUBLIC(T_init_thread);
int PMPI_T_init_thread(int required, int *provided)
{
    if (!provided) return MPI_T_ERR_INVALID;
    *provided = required < MPI_THREAD_SINGLE     ? MPI_THREAD_SINGLE
                : required > MPI_THREAD_MULTIPLE ? MPI_THREAD_MULTIPLE
                                                 : required;
    atomic_fetch_add(&users, 1);
    return MPI_SUCCESS;
}

MPI_PUBLIC(T_finalize);
int PMPI_T_finalize(void)
{
    int now = atomic_load(&users);
    while (now > 0)
        if (atomic_compare_exchange_weak(&users, &now, now - 1))
            return MPI_SUCCESS;
    return MPI_T_ERR_NOT_INITIALIZED;
}

/* A function with a constant result once the interface is initialized. */
#define REFUSE_VARIANT(name, parameters, answer)                               \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name parameters                                                 \
    {                                                                          \
        return atomic_load(&users) > 0 ? answer : MPI_T_ERR_NOT_INITIALIZED;   \
    }

/* A query for a number of objects: zero. */
#define NONE_VARIANT(name)                                                     \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(int *count)                                                \
    {                                                                          \
        if (atomic_load(&users) < 1) return MPI_T_ERR_NOT_INITIALIZED;         \
        if (!count) return MPI_T_ERR_INVALID;                                  \
        *count = 0;                                                            \
        return MPI_SUCCESS;                                                    \
    }

NONE_VARIANT(T_cvar_get_num)
NONE_VARIANT(T_pvar_get_num)
NONE_VARIANT(T_category_get_num)
NONE_VARIANT(T_category_changed)
NONE_VARIANT(T_event_get_num)
NONE_VARIANT(T_source_get_num)

/* By number. */
#define NO_INDEX MPI_T_ERR_INVALID_INDEX
REFUSE_VARIANT(T_cvar_get_info,
               (int index, char *name, int *name_length, int *verbosity,
                MPI_Datatype *type, MPI_T_enum *enumeration, char *text,
                int *text_length, int *bind, int *scope),
               NO_INDEX)
REFUSE_VARIANT(T_cvar_handle_alloc,
               (int index, void *object, MPI_T_cvar_handle *handle, int *count),
               NO_INDEX)
REFUSE_VARIANT(T_pvar_get_info,
               (int index, char *name, int *name_length, int *verbosity,
                int *class, MPI_Datatype *type, MPI_T_enum *enumeration,
                char *text, int *text_length, int *bind, int *readonly,
                int *continuous, int *atomic),
               NO_INDEX)
REFUSE_VARIANT(T_category_get_info,
               (int index, char *name, int *name_length, char *text,
                int *text_length, int *cvars, int *pvars, int *categories),
               NO_INDEX)
REFUSE_VARIANT(T_category_get_cvars, (int index, int length, int list[]),
               NO_INDEX)
REFUSE_VARIANT(T_category_get_pvars, (int index, int length, int list[]),
               NO_INDEX)
REFUSE_VARIANT(T_category_get_categories, (int index, int length, int list[]),
               NO_INDEX)
REFUSE_VARIANT(T_category_get_events, (int index, int length, int list[]),
               NO_INDEX)
REFUSE_VARIANT(T_category_get_num_events, (int index, int *count), NO_INDEX)
REFUSE_VARIANT(T_event_get_info,
               (int index, char *name, int *name_length, int *verbosity,
                MPI_Datatype types[], MPI_Aint displs[], int *elements,
                MPI_T_enum *enumeration, MPI_Info *info, char *text,
                int *text_length, int *bind),
               NO_INDEX)
REFUSE_VARIANT(T_event_handle_alloc,
               (int index, void *object, MPI_Info info,
                MPI_T_event_registration *handle),
               NO_INDEX)
REFUSE_VARIANT(T_source_get_info,
               (int index, char *name, int *name_length, char *text,
                int *text_length, MPI_T_source_order *order,
                MPI_Count *ticks_per_second, MPI_Count *max_ticks,
                MPI_Info *info),
               NO_INDEX)
REFUSE_VARIANT(T_source_get_timestamp, (int index, MPI_Count *time), NO_INDEX)

/* By name. */
REFUSE_VARIANT(T_cvar_get_index, (const char *name, int *index),
               MPI_T_ERR_INVALID_NAME)
REFUSE_VARIANT(T_pvar_get_index, (const char *name, int class, int *index),
               MPI_T_ERR_INVALID_NAME)
REFUSE_VARIANT(T_category_get_index, (const char *name, int *index),
               MPI_T_ERR_INVALID_NAME)
REFUSE_VARIANT(T_event_get_index, (const char *name, int *index),
               MPI_T_ERR_INVALID_NAME)

/* By handle. */
#define NO_HANDLE MPI_T_ERR_INVALID_HANDLE
REFUSE_VARIANT(T_cvar_handle_free, (MPI_T_cvar_handle * handle), NO_HANDLE)
REFUSE_VARIANT(T_cvar_read, (MPI_T_cvar_handle handle, void *buffer), NO_HANDLE)
REFUSE_VARIANT(T_cvar_write, (MPI_T_cvar_handle handle, const void *buffer),
               NO_HANDLE)
REFUSE_VARIANT(T_enum_get_info,
               (MPI_T_enum enumeration, int *count, char *name,
                int *name_length),
               NO_HANDLE)
REFUSE_VARIANT(T_enum_get_item,
               (MPI_T_enum enumeration, int index, int *value, char *name,
                int *name_length),
               NO_HANDLE)
REFUSE_VARIANT(T_event_callback_get_info,
               (MPI_T_event_registration handle, MPI_T_cb_safety safety,
                MPI_Info *info),
               NO_HANDLE)
REFUSE_VARIANT(T_event_callback_set_info,
               (MPI_T_event_registration handle, MPI_T_cb_safety safety,
                MPI_Info info),
               NO_HANDLE)
REFUSE_VARIANT(T_event_copy, (MPI_T_event_instance event, void *buffer),
               NO_HANDLE)
REFUSE_VARIANT(T_event_get_source, (MPI_T_event_instance event, int *source),
               NO_HANDLE)
REFUSE_VARIANT(T_event_get_timestamp,
               (MPI_T_event_instance event, MPI_Count *time), NO_HANDLE)
REFUSE_VARIANT(T_event_handle_free,
               (MPI_T_event_registration handle, void *data,
                MPI_T_event_free_cb_function function),
               NO_HANDLE)
REFUSE_VARIANT(T_event_handle_get_info,
               (MPI_T_event_registration handle, MPI_Info *info), NO_HANDLE)
REFUSE_VARIANT(T_event_handle_set_info,
               (MPI_T_event_registration handle, MPI_Info info), NO_HANDLE)
REFUSE_VARIANT(T_event_read,
               (MPI_T_event_instance event, int element, void *buffer),
               NO_HANDLE)
REFUSE_VARIANT(T_event_register_callback,
               (MPI_T_event_registration handle, MPI_T_cb_safety safety,
                MPI_Info info, void *data, MPI_T_event_cb_function function),
               NO_HANDLE)
REFUSE_VARIANT(T_event_set_dropped_handler,
               (MPI_T_event_registration handle,
                MPI_T_event_dropped_cb_function function),
               NO_HANDLE)

/* Sessions of performance variables, which are always empty. */
struct PVAR_SESSION {
    int magic;
};
enum { SESSION_MAGIC = 0x7075 };

static bool session_valid(MPI_T_pvar_session session)
{
    return session && session->magic == SESSION_MAGIC;
}

MPI_PUBLIC(T_pvar_session_create);
int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
    if (atomic_load(&users) < 1) return MPI_T_ERR_NOT_INITIALIZED;
    if (!session) return MPI_T_ERR_INVALID;
    *session = calloc(1, sizeof **session);
    if (!*session) return MPI_T_ERR_OUT_OF_SESSIONS;
    (*session)->magic = SESSION_MAGIC;
    return MPI_SUCCESS;
}

MPI_PUBLIC(T_pvar_session_free);
int PMPI_T_pvar_session_free(MPI_T_pvar_session *session)
{
    if (atomic_load(&users) < 1) return MPI_T_ERR_NOT_INITIALIZED;
    if (!session || !session_valid(*session)) return MPI_T_ERR_INVALID_SESSION;
    free(*session);
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

#define NO_PVAR                                                                \
    (session_valid(session) ? MPI_T_ERR_INVALID_HANDLE                         \
                            : MPI_T_ERR_INVALID_SESSION)
/* The handle for all variables. */
#define ALL_PVARS                                                              \
    (!session_valid(session)            ? MPI_T_ERR_INVALID_SESSION            \
     : handle == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS                          \
                                        : MPI_T_ERR_INVALID_HANDLE)
REFUSE_VARIANT(T_pvar_handle_alloc,
               (MPI_T_pvar_session session, int index, void *object,
                MPI_T_pvar_handle *handle, int *count),
               NO_INDEX)
REFUSE_VARIANT(T_pvar_handle_free,
               (MPI_T_pvar_session session, MPI_T_pvar_handle *handle), NO_PVAR)
REFUSE_VARIANT(T_pvar_read,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                void *buffer),
               NO_PVAR)
REFUSE_VARIANT(T_pvar_readreset,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                void *buffer),
               NO_PVAR)
REFUSE_VARIANT(T_pvar_write,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                const void *buffer),
               NO_PVAR)
REFUSE_VARIANT(T_pvar_reset,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle),
               ALL_PVARS)
REFUSE_VARIANT(T_pvar_start,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle),
               ALL_PVARS)
REFUSE_VARIANT(T_pvar_stop,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle),
               ALL_PVARS)
