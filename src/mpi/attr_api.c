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

MPI_PUBLIC(Comm_create_keyval);
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy,
                            MPI_Comm_delete_attr_function *drop, int *keyval,
                            void *extra)
{
    if (!keyval) return RAISE_ARG(NULL, "null keyval");
    int result = keyval_create(ATTR_COMM, (callback *)copy, (callback *)drop,
                               keyval, extra);
    return result == MPI_SUCCESS ? result : RAISE_NO_MEMORY(NULL);
}

MPI_PUBLIC(Keyval_create);
int PMPI_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *drop,
                       int *keyval, void *extra)
{
    return PMPI_Comm_create_keyval(copy, drop, keyval, extra);
}

MPI_PUBLIC(Comm_free_keyval);
int PMPI_Comm_free_keyval(int *keyval)
{
    return keyval_free(ATTR_COMM, keyval, __func__);
}

MPI_PUBLIC(Keyval_free);
int PMPI_Keyval_free(int *keyval)
{
    return keyval_free(ATTR_COMM, keyval, __func__);
}

static int comm_set(MPI_Comm handle, int key, void *value, int type,
                    const char *function)
{
    struct comm *comm = comm_find(handle);
    struct keyval *keyval = keyval_find(key);
    if (!comm)
        return error_raise(NULL, MPI_ERR_COMM, function,
                           "invalid communicator");
    if (!keyval || keyval->owner != ATTR_COMM)
        return error_raise(comm, MPI_ERR_KEYVAL, function, "invalid keyval");
    int result = attr_set(handle, &comm->attributes, keyval, value, type);
    if (result == MPI_SUCCESS) return result;
    return error_raise(comm, result, function, "a delete callback failed");
}

static int comm_get(MPI_Comm handle, int key, struct attribute *found,
                    int *flag, const char *function)
{
    struct comm *comm = comm_find(handle);
    if (!comm)
        return error_raise(NULL, MPI_ERR_COMM, function,
                           "invalid communicator");
    if (!flag) return error_raise(comm, MPI_ERR_ARG, function, "null flag");
    if (predefined_key(key)) {
        found->value = predefined(key);
        found->type = VALUE_POINTER;
        *flag = found->value != NULL;
        return MPI_SUCCESS;
    }
    struct keyval *keyval = keyval_find(key);
    if (!keyval || keyval->owner != ATTR_COMM)
        return error_raise(comm, MPI_ERR_KEYVAL, function, "invalid keyval");
    *flag = attr_get(&comm->attributes, keyval, found);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_set_attr);
int PMPI_Comm_set_attr(MPI_Comm handle, int key, void *value)
{
    return comm_set(handle, key, value, VALUE_POINTER, __func__);
}

MPI_PUBLIC(Attr_put);
int PMPI_Attr_put(MPI_Comm handle, int key, void *value)
{
    return comm_set(handle, key, value, VALUE_POINTER, __func__);
}

MPI_PUBLIC(Comm_get_attr);
int PMPI_Comm_get_attr(MPI_Comm handle, int key, void *value, int *flag)
{
    struct attribute found = {0};
    int result = comm_get(handle, key, &found, flag, __func__);
    if (result == MPI_SUCCESS && *flag && value) *(void **)value = found.value;
    return result;
}

MPI_PUBLIC(Attr_get);
int PMPI_Attr_get(MPI_Comm handle, int key, void *value, int *flag)
{
    return PMPI_Comm_get_attr(handle, key, value, flag);
}

MPI_PUBLIC(Comm_delete_attr);
int PMPI_Comm_delete_attr(MPI_Comm handle, int key)
{
    COMM_OR_RETURN(comm, handle);
    struct keyval *keyval = keyval_find(key);
    if (!keyval || keyval->owner != ATTR_COMM)
        return RAISE(comm, MPI_ERR_KEYVAL, "invalid keyval");
    int result = attr_delete(handle, &comm->attributes, keyval);
    if (result == MPI_SUCCESS) return result;
    return RAISE(comm, result, "the delete callback failed");
}

MPI_PUBLIC(Attr_delete);
int PMPI_Attr_delete(MPI_Comm handle, int key)
{
    return PMPI_Comm_delete_attr(handle, key);
}

/* -------------------------------------------------------------------- types */

MPI_PUBLIC(Type_create_keyval);
int PMPI_Type_create_keyval(MPI_Type_copy_attr_function *copy,
                            MPI_Type_delete_attr_function *drop, int *keyval,
                            void *extra)
{
    if (!keyval) return RAISE_ARG(NULL, "null keyval");
    int result = keyval_create(ATTR_TYPE, (callback *)copy, (callback *)drop,
                               keyval, extra);
    return result == MPI_SUCCESS ? result : RAISE_NO_MEMORY(NULL);
}

MPI_PUBLIC(Type_free_keyval);
int PMPI_Type_free_keyval(int *keyval)
{
    return keyval_free(ATTR_TYPE, keyval, __func__);
}

static int type_lookup(MPI_Datatype handle, int key, struct type **type,
                       struct keyval **keyval, const char *function)
{
    *type = type_find(handle);
    if (!*type)
        return error_raise(NULL, MPI_ERR_TYPE, function, "invalid datatype");
    *keyval = keyval_find(key);
    if (!*keyval || (*keyval)->owner != ATTR_TYPE)
        return error_raise(NULL, MPI_ERR_KEYVAL, function, "invalid keyval");
    return MPI_SUCCESS;
}

static int type_set(MPI_Datatype handle, int key, void *value, int how,
                    const char *function)
{
    struct type *type = NULL;
    struct keyval *keyval = NULL;
    int result = type_lookup(handle, key, &type, &keyval, function);
    if (result != MPI_SUCCESS) return result;
    result = attr_set(handle, &type->attributes, keyval, value, how);
    if (result == MPI_SUCCESS) return result;
    return error_raise(NULL, result, function, "a delete callback failed");
}

static int type_get(MPI_Datatype handle, int key, struct attribute *found,
                    int *flag, const char *function)
{
    struct type *type = NULL;
    struct keyval *keyval = NULL;
    int result = type_lookup(handle, key, &type, &keyval, function);
    if (result != MPI_SUCCESS) return result;
    if (!flag) return error_raise(NULL, MPI_ERR_ARG, function, "null flag");
    *flag = attr_get(&type->attributes, keyval, found);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Type_set_attr);
int PMPI_Type_set_attr(MPI_Datatype handle, int key, void *value)
{
    return type_set(handle, key, value, VALUE_POINTER, __func__);
}

MPI_PUBLIC(Type_get_attr);
int PMPI_Type_get_attr(MPI_Datatype handle, int key, void *value, int *flag)
{
    struct attribute found = {0};
    int result = type_get(handle, key, &found, flag, __func__);
    if (result == MPI_SUCCESS && *flag && value) *(void **)value = found.value;
    return result;
}

MPI_PUBLIC(Type_delete_attr);
int PMPI_Type_delete_attr(MPI_Datatype handle, int key)
{
    struct type *type = NULL;
    struct keyval *keyval = NULL;
    int result = type_lookup(handle, key, &type, &keyval, __func__);
    if (result != MPI_SUCCESS) return result;
    result = attr_delete(handle, &type->attributes, keyval);
    if (result == MPI_SUCCESS) return result;
    return RAISE(NULL, result, "the delete callback failed");
}

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

int MPII_Comm_set_attr(MPI_Comm comm, int key, void *value, int type)
{
    return comm_set(comm, key, value, type, "MPI_Comm_set_attr");
}

int MPII_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag, int type)
{
    struct attribute found = {0};
    int result = comm_get(comm, key, &found, flag, "MPI_Comm_get_attr");
    if (result == MPI_SUCCESS && *flag)
        value_deliver(&found, predefined_key(key), key, type, value);
    return result;
}

int MPII_Type_set_attr(MPI_Datatype handle, int key, void *value, int type)
{
    return type_set(handle, key, value, type, "MPI_Type_set_attr");
}

int MPII_Type_get_attr(MPI_Datatype handle, int key, void *value, int *flag,
                       int type)
{
    struct attribute found = {0};
    int result = type_get(handle, key, &found, flag, "MPI_Type_get_attr");
    if (result == MPI_SUCCESS && *flag)
        value_deliver(&found, false, key, type, value);
    return result;
}

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
