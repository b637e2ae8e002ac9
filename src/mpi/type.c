/* type.c - predefined datatypes, and the engine of all datatypes: a tree of
 * strided parts, walked to move data. */
#include "type.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAR_ELEMENT ((char)-1 < 0 ? ELEMENT_I8 : ELEMENT_U8)

/* Handle, element, size, alignment; the name is the constant's. */
#define PREDEFINED(X)                                                          \
    X(MPI_CHAR, CHAR_ELEMENT, 1, 1)                                            \
    X(MPI_SIGNED_CHAR, ELEMENT_I8, 1, 1)                                       \
    X(MPI_UNSIGNED_CHAR, ELEMENT_U8, 1, 1)                                     \
    X(MPI_BYTE, ELEMENT_BYTE, 1, 1)                                            \
    X(MPI_WCHAR, ELEMENT_OTHER, 4, 4)                                          \
    X(MPI_SHORT, ELEMENT_I16, 2, 2)                                            \
    X(MPI_UNSIGNED_SHORT, ELEMENT_U16, 2, 2)                                   \
    X(MPI_INT, ELEMENT_I32, 4, 4)                                              \
    X(MPI_UNSIGNED, ELEMENT_U32, 4, 4)                                         \
    X(MPI_LONG, ELEMENT_I64, 8, 8)                                             \
    X(MPI_UNSIGNED_LONG, ELEMENT_U64, 8, 8)                                    \
    X(MPI_FLOAT, ELEMENT_FLOAT, 4, 4)                                          \
    X(MPI_DOUBLE, ELEMENT_DOUBLE, 8, 8)                                        \
    X(MPI_LONG_DOUBLE, ELEMENT_LONG_DOUBLE, 16, 16)                            \
    X(MPI_LONG_LONG_INT, ELEMENT_I64, 8, 8)                                    \
    X(MPI_UNSIGNED_LONG_LONG, ELEMENT_U64, 8, 8)                               \
    X(MPI_PACKED, ELEMENT_OTHER, 1, 1)                                         \
    X(MPI_2INT, ELEMENT_2INT, 8, 4)                                            \
    X(MPI_COMPLEX, ELEMENT_FLOAT_COMPLEX, 8, 4)                                \
    X(MPI_DOUBLE_COMPLEX, ELEMENT_DOUBLE_COMPLEX, 16, 8)                       \
    X(MPI_LOGICAL, ELEMENT_LOGICAL, 4, 4)                                      \
    X(MPI_REAL, ELEMENT_FLOAT, 4, 4)                                           \
    X(MPI_DOUBLE_PRECISION, ELEMENT_DOUBLE, 8, 8)                              \
    X(MPI_INTEGER, ELEMENT_I32, 4, 4)                                          \
    X(MPI_2INTEGER, ELEMENT_2INT, 8, 4)                                        \
    X(MPI_2REAL, ELEMENT_2FLOAT, 8, 4)                                         \
    X(MPI_2DOUBLE_PRECISION, ELEMENT_2DOUBLE, 16, 8)                           \
    X(MPI_CHARACTER, ELEMENT_CHARACTER, 1, 1)                                  \
    X(MPI_REAL4, ELEMENT_FLOAT, 4, 4)                                          \
    X(MPI_REAL8, ELEMENT_DOUBLE, 8, 8)                                         \
    X(MPI_REAL16, ELEMENT_OTHER, 16, 16)                                       \
    X(MPI_COMPLEX8, ELEMENT_FLOAT_COMPLEX, 8, 4)                               \
    X(MPI_COMPLEX16, ELEMENT_DOUBLE_COMPLEX, 16, 8)                            \
    X(MPI_COMPLEX32, ELEMENT_OTHER, 32, 16)                                    \
    X(MPI_INTEGER1, ELEMENT_I8, 1, 1)                                          \
    X(MPI_INTEGER2, ELEMENT_I16, 2, 2)                                         \
    X(MPI_INTEGER4, ELEMENT_I32, 4, 4)                                         \
    X(MPI_INTEGER8, ELEMENT_I64, 8, 8)                                         \
    X(MPI_INT8_T, ELEMENT_I8, 1, 1)                                            \
    X(MPI_INT16_T, ELEMENT_I16, 2, 2)                                          \
    X(MPI_INT32_T, ELEMENT_I32, 4, 4)                                          \
    X(MPI_INT64_T, ELEMENT_I64, 8, 8)                                          \
    X(MPI_UINT8_T, ELEMENT_U8, 1, 1)                                           \
    X(MPI_UINT16_T, ELEMENT_U16, 2, 2)                                         \
    X(MPI_UINT32_T, ELEMENT_U32, 4, 4)                                         \
    X(MPI_UINT64_T, ELEMENT_U64, 8, 8)                                         \
    X(MPI_C_BOOL, ELEMENT_BOOL, 1, 1)                                          \
    X(MPI_C_COMPLEX, ELEMENT_FLOAT_COMPLEX, 8, 4)                              \
    X(MPI_C_DOUBLE_COMPLEX, ELEMENT_DOUBLE_COMPLEX, 16, 8)                     \
    X(MPI_C_LONG_DOUBLE_COMPLEX, ELEMENT_LONG_DOUBLE_COMPLEX, 32, 16)          \
    X(MPI_AINT, ELEMENT_I64, 8, 8)                                             \
    X(MPI_OFFSET, ELEMENT_I64, 8, 8)                                           \
    X(MPI_COUNT, ELEMENT_I64, 8, 8)                                            \
    X(MPI_CXX_BOOL, ELEMENT_BOOL, 1, 1)                                        \
    X(MPI_CXX_FLOAT_COMPLEX, ELEMENT_FLOAT_COMPLEX, 8, 4)                      \
    X(MPI_CXX_DOUBLE_COMPLEX, ELEMENT_DOUBLE_COMPLEX, 16, 8)                   \
    X(MPI_CXX_LONG_DOUBLE_COMPLEX, ELEMENT_LONG_DOUBLE_COMPLEX, 32, 16)        \
    X(MPI_LOGICAL1, ELEMENT_BOOL, 1, 1)                                        \
    X(MPI_LOGICAL2, ELEMENT_LOGICAL2, 2, 2)                                    \
    X(MPI_LOGICAL4, ELEMENT_LOGICAL, 4, 4)                                     \
    X(MPI_LOGICAL8, ELEMENT_LOGICAL8, 8, 8)                                    \
    X(MPI_LOGICAL16, ELEMENT_OTHER, 16, 16)                                    \
    X(MPI_INTEGER16, ELEMENT_OTHER, 16, 16)                                    \
    X(MPI_REAL2, ELEMENT_OTHER, 2, 2)                                          \
    X(MPI_COMPLEX4, ELEMENT_OTHER, 4, 2)

#ifdef PCCL_MPI_FACE_MPICH
#define PREDEFINED_MPICH(X)                                                    \
    X(MPI_LB, ELEMENT_NONE, 0, 1)                                              \
    X(MPI_UB, ELEMENT_NONE, 0, 1)                                              \
    X(MPIX_C_FLOAT16, ELEMENT_OTHER, 2, 2)                                     \
    X(MPIX_BFLOAT16, ELEMENT_OTHER, 2, 2)
#else
#define PREDEFINED_MPICH(X)
#endif

/* By the low byte of the handle. Those of the struct `plain` are those without
 * parts. */
static struct type *predefined[256];
static struct type plain[256];

static void predefine(MPI_Datatype handle, enum element element, int size,
                      int align, const char *name)
{
    struct type *type = &plain[HANDLE_BITS(handle) & 0xff];
    assert(!predefined[HANDLE_BITS(handle) & 0xff]);
    predefined[HANDLE_BITS(handle) & 0xff] = type;
    object_init(&type->object, NULL);
    type->object.handle = handle;
    type->committed = type->predefined = type->dense = true;
    type->element = element;
    type->size = size;
    type->elements = element == ELEMENT_NONE ? 0 : 1;
    type->extent = type->true_extent = type->size;
    type->align = align;
    snprintf(type->name, sizeof type->name, "%s", name);
}

/* In MPICH's ABI pair types with a hole are in the table of dynamic handles,
 * and have the first five numbers. */
static bool pair_open(struct type *type, MPI_Datatype handle)
{
    if ((HANDLE_BITS(handle) & (unsigned)TYPE_MASK) == TYPE_PREFIX) {
        predefined[HANDLE_BITS(handle) & 0xff] = type;
        type->object.handle = handle;
        return true;
    }
    if (!handle_open(HANDLE_TYPE, &type->object)) return false;
    assert(type->object.handle == handle);
    return true;
}

static bool predefine_pair(MPI_Datatype handle, enum element element,
                           MPI_Datatype first, MPI_Aint disp, MPI_Aint extent,
                           const char *name)
{
    struct part parts[] = {
        {.count = 1, .block = 1, .child = type_find(first)},
        {.disp = disp, .count = 1, .block = 1, .child = type_find(MPI_INT)}};
    struct type *type = type_build(parts, 2);
    if (!type || !pair_open(type, handle)) return false;
    type_set_bounds(type, 0, extent);
    type->committed = type->predefined = true;
    type->element = element;
    snprintf(type->name, sizeof type->name, "%s", name);
    return true;
}

#define PAIR(handle, element, first, type)                                     \
    predefine_pair(handle, element, first,                                     \
                   offsetof(                                                   \
                       struct {                                                \
                           type value;                                         \
                           int index;                                          \
                       },                                                      \
                       index),                                                 \
                   sizeof(struct {                                             \
                       type value;                                             \
                       int index;                                              \
                   }),                                                         \
                   #handle)

bool type_start(void)
{
    if (predefined[HANDLE_BITS(MPI_INT) & 0xff]) return true;
#define X(handle, element, size, align)                                        \
    predefine(handle, element, size, align, #handle);
    PREDEFINED(X)
    PREDEFINED_MPICH(X)
#undef X
    return PAIR(MPI_FLOAT_INT, ELEMENT_FLOAT_INT, MPI_FLOAT, float) &&
           PAIR(MPI_DOUBLE_INT, ELEMENT_DOUBLE_INT, MPI_DOUBLE, double) &&
           PAIR(MPI_LONG_INT, ELEMENT_LONG_INT, MPI_LONG, long) &&
           PAIR(MPI_SHORT_INT, ELEMENT_SHORT_INT, MPI_SHORT, short) &&
           PAIR(MPI_LONG_DOUBLE_INT, ELEMENT_LONG_DOUBLE_INT, MPI_LONG_DOUBLE,
                long double);
}

struct type *type_find(MPI_Datatype handle)
{
    if ((HANDLE_BITS(handle) & (unsigned)TYPE_MASK) == TYPE_PREFIX) {
        struct type *type = predefined[HANDLE_BITS(handle) & 0xff];
        return type && type->object.handle == handle ? type : NULL;
    }
    return (struct type *)handle_find(HANDLE_TYPE, handle);
}

bool type_to_pccl(const struct type *type, pcclDataType_t *out, int *scale)
{
    *scale = 1;
    switch (type->element) {
    case ELEMENT_I8:
        *out = pcclInt8;
        return true;
    case ELEMENT_I16:
        *out = pcclInt16;
        return true;
    case ELEMENT_I32:
        *out = pcclInt32;
        return true;
    case ELEMENT_I64:
        *out = pcclInt64;
        return true;
    case ELEMENT_U8:
        *out = pcclUint8;
        return true;
    case ELEMENT_U16:
        *out = pcclUint16;
        return true;
    case ELEMENT_U32:
        *out = pcclUint32;
        return true;
    case ELEMENT_U64:
        *out = pcclUint64;
        return true;
    case ELEMENT_FLOAT:
        *out = pcclFloat;
        return true;
    case ELEMENT_DOUBLE:
        *out = pcclDouble;
        return true;
    case ELEMENT_FLOAT_COMPLEX:
        *out = pcclFloat;
        *scale = 2;
        return true;
    case ELEMENT_DOUBLE_COMPLEX:
        *out = pcclDouble;
        *scale = 2;
        return true;
    default:
        return false;
    }
}

/* ------------------------------------------------------------------ building
 */

static void type_destroy(struct object *object)
{
    struct type *type = (struct type *)object;
    for (int i = 0; i < type->part_count; i++)
        object_release(&type->parts[i].child->object);
    free(type->parts);
    free(type->envelope);
    free(type);
}

struct bounds {
    MPI_Aint low, high;
    bool any;
};

static void bounds_add(struct bounds *bounds, MPI_Aint low, MPI_Aint high)
{
    if (!bounds->any || low < bounds->low) bounds->low = low;
    if (!bounds->any || high > bounds->high) bounds->high = high;
    bounds->any = true;
}

/* Adds the range of a part whose children cover [low, high). */
static void bounds_add_part(struct bounds *bounds, const struct part *part,
                            MPI_Aint low, MPI_Aint high)
{
    MPI_Aint blocks = (part->count - 1) * part->stride;
    MPI_Aint block = (part->block - 1) * part->child->extent;
    MPI_Aint least = (blocks < 0 ? blocks : 0) + (block < 0 ? block : 0);
    MPI_Aint most = (blocks > 0 ? blocks : 0) + (block > 0 ? block : 0);
    bounds_add(bounds, part->disp + low + least, part->disp + high + most);
}

/* The obsolete markers (LB, UB) set a bound at any position. */
static void markers_apply(struct type *type)
{
    MPI_Aint lb = type->lb, ub = type->lb + type->extent;
    bool low = false, high = false;
    for (int i = 0; i < type->part_count; i++) {
        const struct part *part = &type->parts[i];
        if (part->child->object.handle == MPI_LB && (!low || part->disp < lb)) {
            lb = part->disp;
            low = true;
        }
        if (part->child->object.handle == MPI_UB &&
            (!high || part->disp > ub)) {
            ub = part->disp;
            high = true;
        }
    }
    if (low || high) type_set_bounds(type, lb, ub - lb);
}

static void type_measure(struct type *type)
{
    struct bounds all = {0}, real = {0};
    type->align = 1;
    for (int i = 0; i < type->part_count; i++) {
        const struct part *part = &type->parts[i];
        const struct type *child = part->child;
        if (part->count == 0 || part->block == 0) continue;
        MPI_Count n = part->count * part->block;
        type->size += n * child->size;
        type->elements += n * child->elements;
        if (child->element == ELEMENT_NONE && child->predefined) continue;
        bounds_add_part(&all, part, child->lb, child->lb + child->extent);
        if (child->size > 0)
            bounds_add_part(&real, part, child->true_lb,
                            child->true_lb + child->true_extent);
        if (child->align > type->align) type->align = child->align;
    }
    type->lb = all.low;
    type->extent = all.high - all.low;
    type->true_lb = real.low;
    type->true_extent = real.high - real.low;
    const struct part *only = type->parts;
    type->dense =
        type->size == 0 ||
        (type->part_count == 1 && only->child->dense && only->disp == 0 &&
         (only->count == 1 ||
          only->stride == only->block * only->child->extent) &&
         type->lb == 0 && type->extent == type->size);
    markers_apply(type);
}

struct type *type_build(const struct part *parts, int part_count)
{
    struct type *type = calloc(1, sizeof *type);
    if (!type) return NULL;
    object_init(&type->object, type_destroy);
    type->parts = calloc((size_t)part_count + 1, sizeof *type->parts);
    if (!type->parts) {
        free(type);
        return NULL;
    }
    type->part_count = part_count;
    for (int i = 0; i < part_count; i++) {
        type->parts[i] = parts[i];
        object_retain(&parts[i].child->object);
    }
    type_measure(type);
    return type;
}

void type_set_bounds(struct type *type, MPI_Aint lb, MPI_Aint extent)
{
    type->lb = lb;
    type->extent = extent;
    type->dense =
        type->dense && (type->size == 0 || (lb == 0 && extent == type->size));
}

MPI_Aint type_span(const struct type *type, MPI_Count count, MPI_Aint *low)
{
    MPI_Aint shift = count > 0 ? (count - 1) * type->extent : 0;
    *low = type->true_lb + (shift < 0 ? shift : 0);
    if (count == 0) return 0;
    return type->true_extent + (shift < 0 ? -shift : shift);
}

/* -------------------------------------------------------------------- moving
 */

/* A walk over bytes [skip, skip + left) of the packed form. */
struct mover {
    char *packed;
    MPI_Count skip, left;
    bool packing;
};

static void move_dense(struct mover *mover, char *memory, MPI_Count size)
{
    if (mover->skip >= size) {
        mover->skip -= size;
        return;
    }
    memory += mover->skip;
    size -= mover->skip;
    mover->skip = 0;
    if (size > mover->left) size = mover->left;
    if (mover->packing)
        memcpy(mover->packed, memory, (size_t)size);
    else
        memcpy(memory, mover->packed, (size_t)size);
    mover->packed += size;
    mover->left -= size;
}

static void move_run(struct mover *mover, char *memory, MPI_Count count,
                     const struct type *type);

static void move_part(struct mover *mover, char *memory,
                      const struct part *part)
{
    MPI_Count block_size = part->block * part->child->size;
    MPI_Count first = 0;
    if (block_size == 0) return;
    if (mover->skip >= block_size) {
        first = mover->skip / block_size;
        if (first > part->count) first = part->count;
        mover->skip -= first * block_size;
    }
    for (MPI_Count i = first; i < part->count && mover->left > 0; i++) {
        char *at = memory + part->disp + i * part->stride;
        if (part->child->dense)
            move_dense(mover, at, block_size);
        else
            move_run(mover, at, part->block, part->child);
    }
}

static void move_run(struct mover *mover, char *memory, MPI_Count count,
                     const struct type *type)
{
    if (type->size == 0) return;
    if (type->dense) {
        move_dense(mover, memory, count * type->size);
        return;
    }
    MPI_Count first = mover->skip / type->size;
    if (first > count) first = count;
    mover->skip -= first * type->size;
    for (MPI_Count i = first; i < count && mover->left > 0; i++)
        for (int p = 0; p < type->part_count && mover->left > 0; p++)
            move_part(mover, memory + i * type->extent, &type->parts[p]);
}

void type_pack(const void *buffer, MPI_Count count, const struct type *type,
               MPI_Count offset, void *packed, MPI_Count size)
{
    struct mover mover = {packed, offset, size, true};
    if (size > 0) move_run(&mover, (char *)(uintptr_t)buffer, count, type);
}

void type_unpack(void *buffer, MPI_Count count, const struct type *type,
                 MPI_Count offset, const void *packed, MPI_Count size)
{
    struct mover mover = {(char *)(uintptr_t)packed, offset, size, false};
    if (size > 0) move_run(&mover, buffer, count, type);
}

void type_walk(void *buffer, MPI_Count count, const struct type *type,
               type_visit *visit, void *context)
{
    char *memory = buffer;
    if (type->size == 0) return;
    if (type->part_count == 0) {
        visit(context, memory, type, count);
        return;
    }
    for (MPI_Count i = 0; i < count; i++) {
        for (int p = 0; p < type->part_count; p++) {
            const struct part *part = &type->parts[p];
            for (MPI_Count b = 0; b < part->count; b++)
                type_walk(memory + i * type->extent + part->disp +
                              b * part->stride,
                          part->block, part->child, visit, context);
        }
    }
}

MPI_Count type_elements_in(const struct type *type, MPI_Count size)
{
    if (type->size == 0) return 0;
    MPI_Count whole = size / type->size, rest = size % type->size;
    MPI_Count total = whole * type->elements;
    if (rest == 0) return total;
    for (int p = 0; rest > 0 && type->part_count > 0; p++) {
        assert(p < type->part_count);
        const struct part *part = &type->parts[p];
        MPI_Count part_size = part->count * part->block * part->child->size;
        MPI_Count here = part_size < rest ? part_size : rest;
        total += type_elements_in(part->child, here);
        rest -= here;
    }
    return total;
}
