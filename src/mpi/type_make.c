/* type_make.c - constructors of datatypes. Each becomes a list of parts and
 * remembers its arguments for MPI_Type_get_contents. */
#include "type.h"
#include "type_make.h"

#include <stdlib.h>
#include <string.h>

#define TYPE_OR_RETURN(variable, handle)                                       \
    struct type *variable = type_find(handle);                                 \
    if (!variable)                                                             \
    return RAISE(NULL, MPI_ERR_TYPE, "invalid datatype 0x%08x",                \
                 (unsigned)(handle))

/* One allocation: the struct and its three arrays. */
struct envelope *envelope_new(int combiner, int ints, int aints, int types)
{
    size_t size = sizeof(struct envelope) + (size_t)aints * sizeof(MPI_Aint) +
                  (size_t)(ints + types) * sizeof(int);
    struct envelope *envelope = calloc(1, size);
    if (!envelope) return NULL;
    envelope->combiner = combiner;
    envelope->int_count = ints;
    envelope->aint_count = aints;
    envelope->type_count = types;
    envelope->aints = (MPI_Aint *)(envelope + 1);
    envelope->ints = (int *)(envelope->aints + aints);
    envelope->types = envelope->ints + ints;
    return envelope;
}

/* Gives a finished type its handle. Takes type and envelope over; either may
 * be NULL for want of memory. */
int type_publish(struct type *type, struct envelope *envelope,
                 MPI_Datatype *out, const char *function)
{
    if (type) type->envelope = envelope;
    if (!type || !envelope || !handle_open(HANDLE_TYPE, &type->object)) {
        if (type)
            object_release(&type->object);
        else
            free(envelope);
        return error_raise(NULL, MPI_ERR_NO_MEM, function, "out of memory");
    }
    *out = type->object.handle;
    return MPI_SUCCESS;
}

static void put_ints(int *to, const int *from, int count)
{
    if (count > 0) memcpy(to, from, (size_t)count * sizeof *to);
}

static void put_aints(MPI_Aint *to, const MPI_Aint *from, int count)
{
    if (count > 0) memcpy(to, from, (size_t)count * sizeof *to);
}

MPI_PUBLIC(Type_contiguous);
int PMPI_Type_contiguous(int count, MPI_Datatype old, MPI_Datatype *out)
{
    TYPE_OR_RETURN(child, old);
    if (count < 0) return RAISE(NULL, MPI_ERR_COUNT, "negative count");
    if (!out) return RAISE_ARG(NULL, "null datatype");
    struct part part = {.count = 1, .block = count, .child = child};
    struct envelope *envelope = envelope_new(MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
    if (envelope) {
        envelope->ints[0] = count;
        envelope->types[0] = old;
    }
    return type_publish(type_build(&part, 1), envelope, out, __func__);
}

static int make_vector(int combiner, int count, int block, MPI_Aint stride,
                       bool in_bytes, MPI_Datatype old, MPI_Datatype *out,
                       const char *function)
{
    struct type *child = type_find(old);
    if (!child)
        return error_raise(NULL, MPI_ERR_TYPE, function, "invalid datatype");
    if (count < 0 || block < 0)
        return error_raise(NULL, count < 0 ? MPI_ERR_COUNT : MPI_ERR_ARG,
                           function, "negative count or blocklength");
    if (!out) return error_raise(NULL, MPI_ERR_ARG, function, "null datatype");
    struct part part = {.count = count,
                        .block = block,
                        .stride = in_bytes ? stride : stride * child->extent,
                        .child = child};
    struct envelope *envelope =
        envelope_new(combiner, in_bytes ? 2 : 3, in_bytes, 1);
    if (envelope) {
        envelope->ints[0] = count;
        envelope->ints[1] = block;
        if (in_bytes)
            envelope->aints[0] = stride;
        else
            envelope->ints[2] = (int)stride;
        envelope->types[0] = old;
    }
    return type_publish(type_build(&part, 1), envelope, out, function);
}

MPI_PUBLIC(Type_vector);
int PMPI_Type_vector(int count, int block, int stride, MPI_Datatype old,
                     MPI_Datatype *out)
{
    return make_vector(MPI_COMBINER_VECTOR, count, block, stride, false, old,
                       out, __func__);
}

MPI_PUBLIC(Type_create_hvector);
int PMPI_Type_create_hvector(int count, int block, MPI_Aint stride,
                             MPI_Datatype old, MPI_Datatype *out)
{
    return make_vector(MPI_COMBINER_HVECTOR, count, block, stride, true, old,
                       out, __func__);
}

MPI_PUBLIC(Type_hvector);
int PMPI_Type_hvector(int count, int block, MPI_Aint stride, MPI_Datatype old,
                      MPI_Datatype *out)
{
    return make_vector(MPI_COMBINER_HVECTOR, count, block, stride, true, old,
                       out, __func__);
}

/* The four kinds of indexed: lengths or one length, ints or bytes. */
struct indexed {
    int combiner, count;
    const int *blocks; /* NULL: all have `block` */
    int block;
    const int *indices;    /* in extents of the child, or NULL: */
    const MPI_Aint *disps; /* in bytes */
};

static struct envelope *indexed_envelope(const struct indexed *in,
                                         MPI_Datatype old)
{
    int n = in->count, lengths = in->blocks ? n : 1;
    struct envelope *envelope =
        envelope_new(in->combiner, 1 + lengths + (in->indices ? n : 0),
                     in->disps ? n : 0, 1);
    if (!envelope) return NULL;
    envelope->ints[0] = n;
    put_ints(envelope->ints + 1, in->blocks ? in->blocks : &in->block, lengths);
    if (in->indices) put_ints(envelope->ints + 1 + lengths, in->indices, n);
    if (in->disps) put_aints(envelope->aints, in->disps, n);
    envelope->types[0] = old;
    return envelope;
}

static int make_indexed(const struct indexed *in, MPI_Datatype old,
                        MPI_Datatype *out, const char *function)
{
    struct type *child = type_find(old);
    int n = in->count;
    if (!child)
        return error_raise(NULL, MPI_ERR_TYPE, function, "invalid datatype");
    if (n < 0) return error_raise(NULL, MPI_ERR_COUNT, function, "negative "
                                                                 "count");
    if (!out || (n > 0 && !in->indices && !in->disps))
        return error_raise(NULL, MPI_ERR_ARG, function, "null pointer");
    struct part *parts = calloc((size_t)n + 1, sizeof *parts);
    if (!parts)
        return error_raise(NULL, MPI_ERR_NO_MEM, function, "out of memory");
    bool good = true;
    for (int i = 0; i < n; i++) {
        int block = in->blocks ? in->blocks[i] : in->block;
        good = good && block >= 0;
        parts[i].count = 1;
        parts[i].block = block;
        parts[i].disp =
            in->indices ? in->indices[i] * child->extent : in->disps[i];
        parts[i].child = child;
    }
    int result =
        good ? type_publish(type_build(parts, n), indexed_envelope(in, old),
                            out, function)
             : error_raise(NULL, MPI_ERR_ARG, function, "negative blocklength");
    free(parts);
    return result;
}

MPI_PUBLIC(Type_indexed);
int PMPI_Type_indexed(int count, const int blocks[], const int indices[],
                      MPI_Datatype old, MPI_Datatype *out)
{
    struct indexed in = {MPI_COMBINER_INDEXED, count, blocks, 0, indices, NULL};
    if (count > 0 && !blocks) return RAISE_ARG(NULL, "null blocklengths");
    return make_indexed(&in, old, out, __func__);
}

MPI_PUBLIC(Type_create_hindexed);
int PMPI_Type_create_hindexed(int count, const int blocks[],
                              const MPI_Aint disps[], MPI_Datatype old,
                              MPI_Datatype *out)
{
    struct indexed in = {MPI_COMBINER_HINDEXED, count, blocks, 0, NULL, disps};
    if (count > 0 && !blocks) return RAISE_ARG(NULL, "null blocklengths");
    return make_indexed(&in, old, out, __func__);
}

MPI_PUBLIC(Type_hindexed);
int PMPI_Type_hindexed(int count, int blocks[], MPI_Aint disps[],
                       MPI_Datatype old, MPI_Datatype *out)
{
    return PMPI_Type_create_hindexed(count, blocks, disps, old, out);
}

MPI_PUBLIC(Type_create_indexed_block);
int PMPI_Type_create_indexed_block(int count, int block, const int indices[],
                                   MPI_Datatype old, MPI_Datatype *out)
{
    struct indexed in = {
        MPI_COMBINER_INDEXED_BLOCK, count, NULL, block, indices, NULL};
    return make_indexed(&in, old, out, __func__);
}

MPI_PUBLIC(Type_create_hindexed_block);
int PMPI_Type_create_hindexed_block(int count, int block,
                                    const MPI_Aint disps[], MPI_Datatype old,
                                    MPI_Datatype *out)
{
    struct indexed in = {
        MPI_COMBINER_HINDEXED_BLOCK, count, NULL, block, NULL, disps};
    return make_indexed(&in, old, out, __func__);
}

/* A struct's extent is rounded up to its alignment, as a compiler does. */
static void struct_round(struct type *type, bool marked)
{
    MPI_Aint over = type->align > 1 ? type->extent % type->align : 0;
    if (over != 0 && !marked)
        type_set_bounds(type, type->lb, type->extent + type->align - over);
}

MPI_PUBLIC(Type_create_struct);
int PMPI_Type_create_struct(int count, const int blocks[],
                            const MPI_Aint disps[],
                            const MPI_Datatype types[], MPI_Datatype *out)
{
    if (count < 0) return RAISE(NULL, MPI_ERR_COUNT, "negative count");
    if (!out || (count > 0 && (!blocks || !disps || !types)))
        return RAISE_ARG(NULL, "null pointer");
    struct part *parts = calloc((size_t)count + 1, sizeof *parts);
    if (!parts) return RAISE_NO_MEMORY(NULL);
    bool marked = false;
    int bad = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        parts[i].count = 1;
        parts[i].block = blocks[i];
        parts[i].disp = disps[i];
        parts[i].child = type_find(types[i]);
        if (!parts[i].child) bad = MPI_ERR_TYPE;
        if (blocks[i] < 0) bad = MPI_ERR_ARG;
        marked = marked || types[i] == MPI_LB || types[i] == MPI_UB;
    }
    if (bad != MPI_SUCCESS) {
        free(parts);
        return RAISE(NULL, bad, "invalid datatype or blocklength");
    }
    struct type *type = type_build(parts, count);
    free(parts);
    if (type) struct_round(type, marked);
    struct envelope *envelope =
        envelope_new(MPI_COMBINER_STRUCT, 1 + count, count, count);
    if (envelope) {
        envelope->ints[0] = count;
        put_ints(envelope->ints + 1, blocks, count);
        put_aints(envelope->aints, disps, count);
        put_ints(envelope->types, types, count);
    }
    return type_publish(type, envelope, out, __func__);
}

MPI_PUBLIC(Type_struct);
int PMPI_Type_struct(int count, int blocks[], MPI_Aint disps[],
                     MPI_Datatype types[], MPI_Datatype *out)
{
    return PMPI_Type_create_struct(count, blocks, disps, types, out);
}

MPI_PUBLIC(Type_create_resized);
int PMPI_Type_create_resized(MPI_Datatype old, MPI_Aint lb, MPI_Aint extent,
                             MPI_Datatype *out)
{
    TYPE_OR_RETURN(child, old);
    if (!out) return RAISE_ARG(NULL, "null datatype");
    struct part part = {.count = 1, .block = 1, .child = child};
    struct type *type = type_build(&part, 1);
    if (type) type_set_bounds(type, lb, extent);
    struct envelope *envelope = envelope_new(MPI_COMBINER_RESIZED, 0, 2, 1);
    if (envelope) {
        envelope->aints[0] = lb;
        envelope->aints[1] = extent;
        envelope->types[0] = old;
    }
    return type_publish(type, envelope, out, __func__);
}

MPI_PUBLIC(Type_dup);
int PMPI_Type_dup(MPI_Datatype old, MPI_Datatype *out)
{
    TYPE_OR_RETURN(child, old);
    if (!out) return RAISE_ARG(NULL, "null datatype");
    struct part part = {.count = 1, .block = 1, .child = child};
    struct type *type = type_build(&part, 1);
    if (type) {
        type_set_bounds(type, child->lb, child->extent);
        type->committed = child->committed;
    }
    struct envelope *envelope = envelope_new(MPI_COMBINER_DUP, 0, 0, 1);
    if (envelope) envelope->types[0] = old;
    int result = type_publish(type, envelope, out, __func__);
    if (result != MPI_SUCCESS) return result;
    result = attr_copy_all(old, child->attributes, &type->attributes, *out);
    if (result == MPI_SUCCESS) return result;
    handle_close(&type->object);
    object_release(&type->object);
    *out = MPI_DATATYPE_NULL;
    return RAISE(NULL, result, "a copy callback failed");
}

/* ------------------------------------------------------------------ subarray */

static int subarray_check(int dims, const int sizes[], const int subsizes[],
                          const int starts[], int order)
{
    if (dims <= 0 || !sizes || !subsizes || !starts) return MPI_ERR_ARG;
    for (int i = 0; i < dims; i++) {
        if (sizes[i] < 1 || subsizes[i] < 1 || starts[i] < 0 ||
            starts[i] > sizes[i] - subsizes[i])
            return MPI_ERR_ARG;
    }
    bool known = order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN;
    return known ? MPI_SUCCESS : MPI_ERR_ARG;
}

/* Wraps one dimension after the other, the fastest first. */
static struct type *subarray_build(int dims, const int sizes[],
                                   const int subsizes[], const int starts[],
                                   int order, struct type *child)
{
    struct type *type = child;
    MPI_Aint step = child->extent, offset = 0;
    object_retain(&type->object);
    for (int k = 0; k < dims && type; k++) {
        int d = order == MPI_ORDER_C ? dims - 1 - k : k;
        struct part part = {.count = subsizes[d],
                            .block = 1,
                            .stride = step,
                            .child = type};
        if (k == 0) { /* one dense row, if the child is dense */
            part.count = 1;
            part.block = subsizes[d];
        }
        struct type *outer = type_build(&part, 1);
        object_release(&type->object);
        type = outer;
        offset += starts[d] * step;
        step *= sizes[d];
    }
    if (!type) return NULL;
    struct part whole = {
        .disp = offset, .count = 1, .block = 1, .child = type};
    struct type *outer = type_build(&whole, 1);
    object_release(&type->object);
    if (outer) type_set_bounds(outer, 0, step);
    return outer;
}

MPI_PUBLIC(Type_create_subarray);
int PMPI_Type_create_subarray(int dims, const int sizes[],
                              const int subsizes[], const int starts[],
                              int order, MPI_Datatype old, MPI_Datatype *out)
{
    TYPE_OR_RETURN(child, old);
    if (!out ||
        subarray_check(dims, sizes, subsizes, starts, order) != MPI_SUCCESS)
        return RAISE_ARG(NULL, "sizes, subsizes, starts or order");
    struct envelope *envelope =
        envelope_new(MPI_COMBINER_SUBARRAY, 3 * dims + 2, 0, 1);
    if (envelope) {
        envelope->ints[0] = dims;
        put_ints(envelope->ints + 1, sizes, dims);
        put_ints(envelope->ints + 1 + dims, subsizes, dims);
        put_ints(envelope->ints + 1 + 2 * dims, starts, dims);
        envelope->ints[1 + 3 * dims] = order;
        envelope->types[0] = old;
    }
    struct type *type =
        subarray_build(dims, sizes, subsizes, starts, order, child);
    return type_publish(type, envelope, out, __func__);
}
