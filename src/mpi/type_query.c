/* type_query.c - datatypes: commit, free and inquiry. */
#include "type.h"
#include "type_make.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int note_invalid(MPI_Datatype handle)
{
    return error_note(MPI_ERR_TYPE, "invalid datatype 0x%08x",
                      HANDLE_BITS(handle));
}

int mpi_Type_commit(MPI_Datatype *handle)
{
    struct type *type = type_find(*handle);
    if (!type) return note_invalid(*handle);
    type->committed = true;
    return MPI_SUCCESS;
}

int mpi_Type_free(MPI_Datatype *handle)
{
    struct type *type = type_find(*handle);
    if (!type) return note_invalid(*handle);
    if (type->predefined)
        return error_note(MPI_ERR_TYPE, "a predefined datatype");
    int result = attr_delete_all(*handle, &type->attributes);
    if (result != MPI_SUCCESS)
        return error_note(result, "a delete callback failed");
    /* the handle lives as long as any type made from this one */
    object_release(&type->object);
    *handle = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int mpi_Type_size(struct type *type, MPI_Count *size)
{
    *size = type->size;
    return MPI_SUCCESS;
}

int mpi_Type_get_extent(struct type *type, MPI_Count *lb, MPI_Count *extent)
{
    *lb = type->lb;
    *extent = type->extent;
    return MPI_SUCCESS;
}

int mpi_Type_get_true_extent(struct type *type, MPI_Count *lb,
                             MPI_Count *extent)
{
    *lb = type->true_lb;
    *extent = type->true_extent;
    return MPI_SUCCESS;
}

int mpi_Type_extent(struct type *type, MPI_Aint *extent)
{
    *extent = type->extent;
    return MPI_SUCCESS;
}

int mpi_Type_lb(struct type *type, MPI_Aint *lb)
{
    *lb = type->lb;
    return MPI_SUCCESS;
}

int mpi_Type_ub(struct type *type, MPI_Aint *ub)
{
    *ub = type->lb + type->extent;
    return MPI_SUCCESS;
}

int mpi_Type_set_name(struct type *type, const char *name)
{
    return object_set_name(type->name, name);
}

MPI_PUBLIC(Type_get_name);
int PMPI_Type_get_name(MPI_Datatype handle, char *name, int *length)
{
    if (!name || !length) return RAISE_ARG(NULL, "null name");
    struct type *type = type_find(handle);
    if (!type && handle != MPI_DATATYPE_NULL)
        return RAISE(NULL, MPI_ERR_TYPE, "invalid datatype 0x%08x",
                     HANDLE_BITS(handle));
    facade_lock();
    snprintf(name, MPI_MAX_OBJECT_NAME, "%s",
             type ? type->name : "MPI_DATATYPE_NULL");
    facade_unlock();
    *length = (int)strlen(name);
    return MPI_SUCCESS;
}

/* Calls without _c cannot show a type made with large counts. */
static int envelope_get(MPI_Datatype handle, bool large,
                        const struct envelope **out, const char *function)
{
    static const struct envelope named = {.combiner = MPI_COMBINER_NAMED};
    struct type *type = type_find(handle);
    if (!type)
        return error_raise(NULL, MPI_ERR_TYPE, function,
                           "invalid datatype 0x%08x", HANDLE_BITS(handle));
    *out = type->envelope ? type->envelope : &named;
    if (large || !(*out)->large) return MPI_SUCCESS;
    return error_raise(NULL, MPI_ERR_TYPE, function,
                       "the datatype was made with large counts");
}

MPI_PUBLIC(Type_get_envelope);
int PMPI_Type_get_envelope(MPI_Datatype handle, int *ints, int *aints,
                           int *types, int *combiner)
{
    const struct envelope *made = NULL;
    int result = envelope_get(handle, false, &made, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!ints || !aints || !types || !combiner)
        return RAISE_ARG(NULL, "null pointer");
    *ints = made->int_count;
    *aints = made->aint_count;
    *types = made->type_count;
    *combiner = made->combiner;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Type_get_envelope_c);
int PMPI_Type_get_envelope_c(MPI_Datatype handle, MPI_Count *ints,
                             MPI_Count *aints, MPI_Count *counts,
                             MPI_Count *types, int *combiner)
{
    const struct envelope *made = NULL;
    int result = envelope_get(handle, true, &made, __func__);
    if (result != MPI_SUCCESS) return result;
    if (!ints || !aints || !counts || !types || !combiner)
        return RAISE_ARG(NULL, "null pointer");
    *ints = made->int_count;
    *aints = made->aint_count;
    *counts = made->count_count;
    *types = made->type_count;
    *combiner = made->combiner;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Type_get_contents_c);
int PMPI_Type_get_contents_c(MPI_Datatype handle, MPI_Count ints,
                             MPI_Count aints, MPI_Count counts, MPI_Count types,
                             int int_list[], MPI_Aint aint_list[],
                             MPI_Count count_list[], MPI_Datatype type_list[])
{
    const struct envelope *made = NULL;
    int result = envelope_get(handle, true, &made, __func__);
    if (result != MPI_SUCCESS) return result;
    if (made->combiner == MPI_COMBINER_NAMED)
        return RAISE(NULL, MPI_ERR_TYPE,
                     "a predefined datatype has no "
                     "contents");
    if (ints < made->int_count || aints < made->aint_count ||
        counts < made->count_count || types < made->type_count)
        return RAISE_ARG(NULL, "an array is too short");
    for (int i = 0; i < made->int_count; i++) int_list[i] = made->ints[i];
    for (int i = 0; i < made->aint_count; i++) aint_list[i] = made->aints[i];
    for (int i = 0; i < made->count_count; i++) count_list[i] = made->counts[i];
    for (int i = 0; i < made->type_count; i++) {
        struct type *child = type_find(made->types[i]);
        if (child && !child->predefined) object_retain(&child->object);
        type_list[i] = made->types[i];
    }
    return MPI_SUCCESS;
}

MPI_PUBLIC(Type_get_contents);
int PMPI_Type_get_contents(MPI_Datatype handle, int ints, int aints, int types,
                           int int_list[], MPI_Aint aint_list[],
                           MPI_Datatype type_list[])
{
    const struct envelope *made = NULL;
    int result = envelope_get(handle, false, &made, __func__);
    if (result != MPI_SUCCESS) return result;
    return PMPI_Type_get_contents_c(handle, ints, aints, 0, types, int_list,
                                    aint_list, NULL, type_list);
}

int mpi_Type_match_size(int class, int size, MPI_Datatype *out)
{
    static const struct {
        int class;
        MPI_Datatype type;
    } types[] = {
        {MPI_TYPECLASS_REAL, MPI_REAL2},
        {MPI_TYPECLASS_REAL, MPI_REAL4},
        {MPI_TYPECLASS_REAL, MPI_REAL8},
        {MPI_TYPECLASS_REAL, MPI_REAL16},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER1},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER2},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER4},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER8},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER16},
        {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX4},
        {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX8},
        {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX16},
        {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX32},
#ifdef MPIX_TYPECLASS_LOGICAL
        {MPIX_TYPECLASS_LOGICAL, MPI_LOGICAL1},
        {MPIX_TYPECLASS_LOGICAL, MPI_LOGICAL2},
        {MPIX_TYPECLASS_LOGICAL, MPI_LOGICAL4},
        {MPIX_TYPECLASS_LOGICAL, MPI_LOGICAL8},
        {MPIX_TYPECLASS_LOGICAL, MPI_LOGICAL16},
#endif
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].class != class || type_find(types[i].type)->size != size)
            continue;
        *out = types[i].type;
        return MPI_SUCCESS;
    }
    return note_argument("no datatype of this class and size");
}

int mpi_Type_get_value_index(struct type *value, MPI_Datatype index,
                             MPI_Datatype *out)
{
    static const struct {
        MPI_Datatype value, index, pair;
    } pairs[] = {
        {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
        {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
        {MPI_LONG, MPI_INT, MPI_LONG_INT},
        {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
        {MPI_INT, MPI_INT, MPI_2INT},
        {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
        {MPI_REAL, MPI_REAL, MPI_2REAL},
        {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
        {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER}};
    if (!type_find(index)) return note_invalid(index);
    *out = MPI_DATATYPE_NULL; /* there is no such pair */
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].value == value->object.handle && pairs[i].index == index)
            *out = pairs[i].pair;
    return MPI_SUCCESS;
}

/* --------------------------------------------------------------- addresses */

int mpi_Get_address(const void *location, MPI_Aint *address)
{
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

/* Addresses are computed as unsigned, so overflow is defined. */
MPI_PUBLIC(Aint_add);
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((unsigned long)base + (unsigned long)disp);
}

MPI_PUBLIC(Aint_diff);
MPI_Aint PMPI_Aint_diff(MPI_Aint a, MPI_Aint b)
{
    return (MPI_Aint)((unsigned long)a - (unsigned long)b);
}
