/* tools.c - the tools interface (MPI_T): initialization, and the one category,
 * which has all performance variables and events. There are no control
 * variables and no enumerations, which MPI allows. */
#include "tools.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static atomic_int users; /* init_thread calls not finalized yet */

bool tools_active(void)
{
    return atomic_load(&users) > 0;
}

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

void tools_give(const char *text, char *to, int *size)
{
    if (!size) return;
    int whole = (int)strlen(text) + 1;
    if (to && *size > 0) {
        size_t part = (size_t)(*size < whole ? *size : whole) - 1;
        memcpy(to, text, part);
        to[part] = '\0';
    }
    *size = whole;
}

void tools_give_number(int number, int *to)
{
    if (to) *to = number;
}

/* A function with a constant result. */
#define REFUSE(name, parameters, answer)                                       \
    int mpi_##name parameters                                                  \
    {                                                                          \
        return answer;                                                         \
    }

/* A query for a number of objects. */
#define COUNT(name, number)                                                    \
    int mpi_##name(int *count)                                                 \
    {                                                                          \
        if (!count) return MPI_T_ERR_INVALID;                                  \
        *count = number;                                                       \
        return MPI_SUCCESS;                                                    \
    }

COUNT(T_cvar_get_num, 0)
COUNT(T_pvar_get_num, tools_pvar_count())
COUNT(T_category_get_num, 1)
COUNT(T_category_changed, 0)
COUNT(T_event_get_num, TOOLS_EVENTS)
COUNT(T_source_get_num, 1)

/* --------------------------------------------------------- no such objects */

#define NO_INDEX MPI_T_ERR_INVALID_INDEX
REFUSE(T_cvar_get_info,
       (int index, char *name, int *name_length, int *verbosity,
        MPI_Datatype *type, MPI_T_enum *enumeration, char *text,
        int *text_length, int *bind, int *scope),
       NO_INDEX)
REFUSE(T_cvar_handle_alloc,
       (int index, void *object, MPI_T_cvar_handle *handle, int *count),
       NO_INDEX)
REFUSE(T_cvar_get_index, (const char *name, int *index), MPI_T_ERR_INVALID_NAME)

#define NO_HANDLE MPI_T_ERR_INVALID_HANDLE
REFUSE(T_cvar_handle_free, (MPI_T_cvar_handle * handle), NO_HANDLE)
REFUSE(T_cvar_read, (MPI_T_cvar_handle handle, void *buffer), NO_HANDLE)
REFUSE(T_cvar_write, (MPI_T_cvar_handle handle, const void *buffer), NO_HANDLE)
REFUSE(T_enum_get_info,
       (MPI_T_enum enumeration, int *count, char *name, int *name_length),
       NO_HANDLE)
REFUSE(T_enum_get_item,
       (MPI_T_enum enumeration, int index, int *value, char *name,
        int *name_length),
       NO_HANDLE)

/* ---------------------------------------------------------- the category */

static const char category[] = "pccl";

int mpi_T_category_get_info(int index, char *name, int *name_length, char *text,
                            int *text_length, int *cvars, int *pvars,
                            int *categories)
{
    if (index != 0) return NO_INDEX;
    tools_give(category, name, name_length);
    tools_give("operations, bytes, and changes of the membership", text,
               text_length);
    tools_give_number(0, cvars);
    tools_give_number(tools_pvar_count(), pvars);
    tools_give_number(0, categories);
    return MPI_SUCCESS;
}

int mpi_T_category_get_index(const char *name, int *index)
{
    if (!name || !index) return MPI_T_ERR_INVALID;
    if (strcmp(name, category) != 0) return MPI_T_ERR_INVALID_NAME;
    *index = 0;
    return MPI_SUCCESS;
}

int mpi_T_category_get_num_events(int index, int *count)
{
    if (index != 0) return NO_INDEX;
    tools_give_number(TOOLS_EVENTS, count);
    return MPI_SUCCESS;
}

/* Writes the numbers 0, 1, ... as far as there is room. */
static int list_all(int index, int count, int length, int list[])
{
    if (index != 0) return NO_INDEX;
    for (int i = 0; list && i < length && i < count; i++) list[i] = i;
    return MPI_SUCCESS;
}

#define LIST(name, count)                                                      \
    int mpi_##name(int index, int length, int list[])                          \
    {                                                                          \
        return list_all(index, count, length, list);                           \
    }
LIST(T_category_get_cvars, 0)
LIST(T_category_get_pvars, tools_pvar_count())
LIST(T_category_get_categories, 0)
LIST(T_category_get_events, TOOLS_EVENTS)
