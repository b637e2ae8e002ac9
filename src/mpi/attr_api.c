/* attr_api.c - attribute calls for communicators and types, in C and for
 * Fortran's wrappers (MPII_*). */
#include "attr_list.h"
#include "mpi_comm.h"
#include "slurm.h"
#include "type.h"

/* ------------------------------------------------------------ communicators */

static int *predefined(int keyval)
{
    static int tag_ub = 268435455, host = MPI_PROC_NULL, io = MPI_ANY_SOURCE;
    static int wtime_is_global = 0, appnum = 0, universe, tolerant = 1;
    switch (KEY_OF(keyval)) {
    case MPI_TAG_UB:
        return &tag_ub;
    case MPI_HOST:
        return &host;
    case MPI_IO:
        return &io;
    case MPI_WTIME_IS_GLOBAL:
        return &wtime_is_global;
    case MPI_LASTUSEDCODE:
        return error_last_used_code();
    case MPIX_FT: /* of Open MPI: failures can be survived */
        return &tolerant;
    case MPI_APPNUM:
        (void)launcher_number("PMI_APPNUM", &appnum);
        return &appnum;
    case MPI_UNIVERSE_SIZE:
        return launcher_number("PMI_UNIVERSE_SIZE", &universe) ? &universe
                                                               : NULL;
    default:
        return NULL;
    }
}

static bool predefined_key(int keyval)
{
    return keyval >= KEY_FIRST && keyval <= KEY_LAST;
}

/* The attributes of an object; `handle` is given to the callbacks. */
struct attributed {
    enum attr_owner kind;
    any_handle handle;
    struct attribute **list;
};

static struct attributed of_comm(struct comm *comm)
{
    return (struct attributed){ATTR_COMM, comm->object.handle,
                               &comm->attributes};
}

static struct attributed of_type(struct type *type)
{
    return (struct attributed){ATTR_TYPE, type->object.handle,
                               &type->attributes};
}

static struct keyval *key_find(const struct attributed *owner, int key)
{
    struct keyval *keyval = keyval_find(key);
    if (keyval && keyval->owner == owner->kind) return keyval;
    error_note(MPI_ERR_KEYVAL, "invalid keyval");
    return NULL;
}

static int set(struct attributed owner, int key, void *value, int type)
{
    struct keyval *keyval = key_find(&owner, key);
    if (!keyval) return MPI_ERR_KEYVAL;
    int result = attr_set(owner.handle, owner.list, keyval, value, type);
    if (result == MPI_SUCCESS) return result;
    return error_note(result, "a delete callback failed");
}

static int get(struct attributed owner, int key, struct attribute *found,
               int *flag)
{
    if (owner.kind == ATTR_COMM && predefined_key(key)) {
        found->value = predefined(key);
        found->type = VALUE_POINTER;
        *flag = found->value != NULL;
        return MPI_SUCCESS;
    }
    struct keyval *keyval = key_find(&owner, key);
    if (!keyval) return MPI_ERR_KEYVAL;
    *flag = attr_get(owner.list, keyval, found);
    return MPI_SUCCESS;
}

static int get_pointer(struct attributed owner, int key, void *value, int *flag)
{
    struct attribute found = {0};
    int result = get(owner, key, &found, flag);
    if (result == MPI_SUCCESS && *flag && value) *(void **)value = found.value;
    return result;
}

static int delete (struct attributed owner, int key)
{
    struct keyval *keyval = key_find(&owner, key);
    if (!keyval) return MPI_ERR_KEYVAL;
    int result = attr_delete(owner.handle, owner.list, keyval);
    if (result == MPI_SUCCESS) return result;
    return error_note(result, "the delete callback failed");
}

/* The calls for a kind of object. */
#define ATTRIBUTES(name, kind, find)                                           \
    int mpi_##name##_create_keyval(MPI_##name##_copy_attr_function *copy,      \
                                   MPI_##name##_delete_attr_function *drop,    \
                                   int *keyval, void *extra)                   \
    {                                                                          \
        return keyval_create(kind, (callback *)copy, (callback *)drop, keyval, \
                             extra);                                           \
    }                                                                          \
    int mpi_##name##_free_keyval(int *keyval)                                  \
    {                                                                          \
        return keyval_free(kind, keyval);                                      \
    }                                                                          \
    int mpi_##name##_set_attr(struct find *object, int key, void *value)       \
    {                                                                          \
        return set(of_##find(object), key, value, VALUE_POINTER);              \
    }                                                                          \
    int mpi_##name##_get_attr(struct find *object, int key, void *value,       \
                              int *flag)                                       \
    {                                                                          \
        return get_pointer(of_##find(object), key, value, flag);               \
    }                                                                          \
    int mpi_##name##_delete_attr(struct find *object, int key)                 \
    {                                                                          \
        return delete (of_##find(object), key);                                \
    }
ATTRIBUTES(Comm, ATTR_COMM, comm)
ATTRIBUTES(Type, ATTR_TYPE, type)

/* ------------------------------------------------------------------ Fortran */

#define EXPORT __attribute__((visibility("default")))

EXPORT void MPII_Keyval_set_proxy(int key, copy_proxy *copy, drop_proxy *drop);
EXPORT int MPII_Comm_set_attr(MPI_Comm comm, int key, void *value, int type);
EXPORT int MPII_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag,
                              int type);
EXPORT int MPII_Type_set_attr(MPI_Datatype comm, int key, void *value,
                              int type);
EXPORT int MPII_Type_get_attr(MPI_Datatype comm, int key, void *value,
                              int *flag, int type);
EXPORT int MPII_Win_set_attr(MPI_Win win, int key, void *value, int type);
EXPORT int MPII_Win_get_attr(MPI_Win win, int key, void *value, int *flag,
                             int type);

void MPII_Keyval_set_proxy(int key, copy_proxy *copy, drop_proxy *drop)
{
    struct keyval *keyval = keyval_find(key);
    if (!keyval) return;
    keyval->copy_by = copy;
    keyval->drop_by = drop;
}

/* Converts a value for a reader of the given kind (MPI-4 §19.3.7): the value
 * itself, or for predefined attributes set in C the value at the pointer. */
static void value_deliver(const struct attribute *found, bool builtin, int key,
                          int type, void *out)
{
    intptr_t bits = (intptr_t)found->value;
    bool fortran_key = builtin && KEY_OF_FORTRAN(key);
    if (fortran_key) bits = *(const int *)found->value;
    if (type == VALUE_FINT)
        *(MPI_Fint *)out = (MPI_Fint)bits;
    else
        *(intptr_t *)out = bits;
}

static int raise(struct comm *comm, int result, const char *function)
{
    if (result == MPI_SUCCESS) return result;
    return error_raise_noted(comm, result, function);
}

/* The names of functions are those of C. */
#define FORTRAN(name, handle_t, find, error_class, comm)                       \
    int MPII_##name##_set_attr(handle_t handle, int key, void *value,          \
                               int type)                                       \
    {                                                                          \
        struct find *object = find##_find(handle);                             \
        int result = object ? set(of_##find(object), key, value, type)         \
                            : error_note(error_class, "invalid handle");       \
        return raise(comm, result, "MPI_" #name "_set_attr");                  \
    }                                                                          \
    int MPII_##name##_get_attr(handle_t handle, int key, void *value,          \
                               int *flag, int type)                            \
    {                                                                          \
        struct attribute found = {0};                                          \
        struct find *object = find##_find(handle);                             \
        int result = object ? get(of_##find(object), key, &found, flag)        \
                            : error_note(error_class, "invalid handle");       \
        if (result == MPI_SUCCESS && *flag)                                    \
            value_deliver(&found, predefined_key(key), key, type, value);      \
        return raise(comm, result, "MPI_" #name "_get_attr");                  \
    }
FORTRAN(Comm, MPI_Comm, comm, MPI_ERR_COMM, object)
FORTRAN(Type, MPI_Datatype, type, MPI_ERR_TYPE, NULL)

int MPII_Win_set_attr(MPI_Win win, int key, void *value, int type)
{
    (void)win;
    (void)key;
    (void)value;
    (void)type;
    return unsupported("MPI_Win_set_attr");
}

int MPII_Win_get_attr(MPI_Win win, int key, void *value, int *flag, int type)
{
    (void)win;
    (void)key;
    (void)value;
    (void)flag;
    (void)type;
    return unsupported("MPI_Win_get_attr");
}
