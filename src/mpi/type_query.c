/* type_query.c - datatypes: commit, free and inquiry. */
#include "type.h"
#include "type_make.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

MPI_PUBLIC(Type_commit);
int PMPI_Type_commit(MPI_Datatype *handle)
{
    if (!handle) return RAISE_ARG(NULL, "null datatype");
    TYPE_OR_RETURN(type, *handle);
    type->committed = true;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Type_free);
int PMPI_Type_free(MPI_Datatype *handle)
{
    if (!handle) return RAISE_ARG(NULL, "null datatype");
    TYPE_OR_RETURN(type, *handle);
    if (type->predefined)
        return RAISE(NULL, MPI_ERR_TYPE, "a predefined datatype");
    int result = attr_delete_all(*handle, &type->attributes);
    if (result != MPI_SUCCESS)
        return RAISE(NULL, result, "a delete callback failed");
    /* the handle lives as long as any type made from this one */
    object_release(&type->object);
    *handle = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

static int size_get(MPI_Datatype handle, MPI_Count *size, const char *function)
{
    struct type *type = type_find(handle);
    if (!type)
        return error_raise(NULL, MPI_ERR_TYPE, function,
                           "invalid datatype 0x%08x", HANDLE_BITS(handle));
    if (!size) return error_raise(NULL, MPI_ERR_ARG, function, "null size");
    *size = type->size;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Type_size);
int PMPI_Type_size(MPI_Datatype handle, int *size)
{
    MPI_Count wide = 0;
    int result = size_get(handle, size ? &wide : NULL, __func__);
    if (result == MPI_SUCCESS)
        *size = wide > INT_MAX ? MPI_UNDEFINED : (int)wide;
    return result;
}

MPI_PUBLIC(Type_size_x);
int PMPI_Type_size_x(MPI_Datatype handle, MPI_Count *size)
{
    return size_get(handle, size, __func__);
}

MPI_PUBLIC(Type_size_c);
int PMPI_Type_size_c(MPI_Datatype handle, MPI_Count *size)
{
    return size_get(handle, size, __func__);
}

static int extent_get(MPI_Datatype handle, MPI_Aint *lb, MPI_Aint *extent,
                      bool real, const char *function)
{
    struct type *type = type_find(handle);
    if (!type)
        return error_raise(NULL, MPI_ERR_TYPE, function,
                           "invalid datatype 0x%08x", HANDLE_BITS(handle));
    if (!lb || !extent)
        return error_raise(NULL, MPI_ERR_ARG, function, "null pointer");
    *lb = real ? type->true_lb : type->lb;
    *extent = real ? type->true_extent : type->extent;
    return MPI_SUCCESS;
}

#define EXTENT_VARIANT(name, number, real)                                     \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(MPI_Datatype type, number *lb, number *extent)             \
    {                                                                          \
        return extent_get(type, lb, extent, real, __func__);                   \
    }
EXTENT_VARIANT(Type_get_extent, MPI_Aint, false)
EXTENT_VARIANT(Type_get_extent_x, MPI_Count, false)
EXTENT_VARIANT(Type_get_extent_c, MPI_Count, false)
EXTENT_VARIANT(Type_get_true_extent, MPI_Aint, true)
EXTENT_VARIANT(Type_get_true_extent_x, MPI_Count, true)
EXTENT_VARIANT(Type_get_true_extent_c, MPI_Count, true)

MPI_PUBLIC(Type_extent);
int PMPI_Type_extent(MPI_Datatype type, MPI_Aint *extent)
{
    MPI_Aint lb;
    return extent_get(type, &lb, extent, false, __func__);
}

MPI_PUBLIC(Type_lb);
int PMPI_Type_lb(MPI_Datatype type, MPI_Aint *lb)
{
    MPI_Aint extent;
    return extent_get(type, lb, &extent, false, __func__);
}

MPI_PUBLIC(Type_ub);
int PMPI_Type_ub(MPI_Datatype type, MPI_Aint *ub)
{
    MPI_Aint lb = 0, extent = 0;
    int result = extent_get(type, ub ? &lb : NULL, &extent, false, __func__);
    if (result == MPI_SUCCESS) *ub = lb + extent;
    return result;
}

MPI_PUBLIC(Type_set_name);
int PMPI_Type_set_name(MPI_Datatype handle, const char *name)
{
    TYPE_OR_RETURN(type, handle);
    if (!name) return RAISE_ARG(NULL, "null name");
    size_t length = strnlen(name, sizeof type->name - 1);
    facade_lock();
    memcpy(type->name, name, length);
    type->name[length] = 0;
    facade_unlock();
    return MPI_SUCCESS;
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

MPI_PUBLIC(Type_match_size);
int PMPI_Type_match_size(int class, int size, MPI_Datatype *out)
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
    if (!out) return RAISE_ARG(NULL, "null datatype");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].class != class || type_find(types[i].type)->size != size)
            continue;
        *out = types[i].type;
        return MPI_SUCCESS;
    }
    return RAISE_ARG(NULL, "no datatype of this class and size");
}

MPI_PUBLIC(Type_get_value_index);
int PMPI_Type_get_value_index(MPI_Datatype value, MPI_Datatype index,
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
    TYPE_OR_RETURN(first, value);
    TYPE_OR_RETURN(second, index);
    (void)first;
    (void)second;
    if (!out) return RAISE_ARG(NULL, "null datatype");
    *out = MPI_DATATYPE_NULL; /* there is no such pair */
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].value == value && pairs[i].index == index)
            *out = pairs[i].pair;
    return MPI_SUCCESS;
}

/* --------------------------------------------------------------- addresses */

MPI_PUBLIC(Get_address);
int PMPI_Get_address(const void *location, MPI_Aint *address)
{
    if (!address) return RAISE_ARG(NULL, "null address");
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Address);
int PMPI_Address(void *location, MPI_Aint *address)
{
    return PMPI_Get_address(location, address);
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
