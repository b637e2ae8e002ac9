/* type_make.c - constructors of datatypes, in both widths. Each yields a list
 * of parts and stores its arguments for MPI_Type_get_contents. */
#include "type_make.h"
#include "type.h"

#include <limits.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ envelopes
 */

struct envelope *envelope_new(int combiner, bool large, long numbers,
                              long types)
{
    size_t n = (size_t)numbers;
    struct envelope *envelope =
        calloc(1, sizeof *envelope +
                      n * (sizeof(MPI_Aint) + sizeof(MPI_Count) + sizeof(int)) +
                      (size_t)types * sizeof(MPI_Datatype));
    if (!envelope) return NULL;
    envelope->combiner = combiner;
    envelope->large = large;
    envelope->aints = (MPI_Aint *)(envelope + 1);
    envelope->counts = (MPI_Count *)(envelope->aints + n);
    envelope->types = (MPI_Datatype *)(envelope->counts + n);
    envelope->ints = (int *)(envelope->types + types);
    return envelope;
}

void envelope_int(struct envelope *envelope, int value)
{
    if (envelope) envelope->ints[envelope->int_count++] = value;
}

void envelope_count(struct envelope *envelope, MPI_Count value)
{
    if (!envelope) return;
    if (envelope->large)
        envelope->counts[envelope->count_count++] = value;
    else
        envelope_int(envelope, (int)value);
}

void envelope_aint(struct envelope *envelope, MPI_Aint value)
{
    if (!envelope) return;
    if (envelope->large)
        envelope->counts[envelope->count_count++] = value;
    else
        envelope->aints[envelope->aint_count++] = value;
}

void envelope_counts(struct envelope *envelope, struct numbers values, int n)
{
    for (int i = 0; i < n; i++) envelope_count(envelope, numbers_at(values, i));
}

void envelope_aints(struct envelope *envelope, struct numbers values, int n)
{
    for (int i = 0; i < n; i++) envelope_aint(envelope, numbers_at(values, i));
}

void envelope_type(struct envelope *envelope, MPI_Datatype type)
{
    if (envelope) envelope->types[envelope->type_count++] = type;
}

int type_publish(struct type *type, struct envelope *envelope,
                 MPI_Datatype *out)
{
    if (type) type->envelope = envelope;
    if (!type || !envelope || !handle_open(HANDLE_TYPE, &type->object)) {
        if (type)
            object_release(&type->object);
        else
            free(envelope);
        return note_no_memory();
    }
    *out = type->object.handle;
    return MPI_SUCCESS;
}

/* --------------------------------------------------- contiguous and vectors */

int mpi_Type_contiguous(MPI_Count count, struct type *child, MPI_Datatype *out,
                        bool large)
{
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    struct part part = {.count = 1, .block = count, .child = child};
    struct envelope *envelope =
        envelope_new(MPI_COMBINER_CONTIGUOUS, large, 1, 1);
    envelope_count(envelope, count);
    envelope_type(envelope, child->object.handle);
    return type_publish(type_build(&part, 1), envelope, out);
}

static int make_vector(int combiner, MPI_Count count, MPI_Count block,
                       MPI_Count stride, bool large, struct type *child,
                       MPI_Datatype *out)
{
    bool in_bytes = combiner == MPI_COMBINER_HVECTOR;
    if (count < 0 || block < 0)
        return error_note(MPI_ERR_COUNT, "negative count or blocklength");
    struct part part = {.count = count,
                        .block = block,
                        .stride = in_bytes ? stride : stride * child->extent,
                        .child = child};
    struct envelope *envelope = envelope_new(combiner, large, 3, 1);
    envelope_count(envelope, count);
    envelope_count(envelope, block);
    if (in_bytes)
        envelope_aint(envelope, stride);
    else
        envelope_count(envelope, stride);
    envelope_type(envelope, child->object.handle);
    return type_publish(type_build(&part, 1), envelope, out);
}

int mpi_Type_vector(MPI_Count count, MPI_Count block, MPI_Count stride,
                    struct type *child, MPI_Datatype *out, bool large)
{
    return make_vector(MPI_COMBINER_VECTOR, count, block, stride, large, child,
                       out);
}

int mpi_Type_create_hvector(MPI_Count count, MPI_Count block, MPI_Count stride,
                            struct type *child, MPI_Datatype *out, bool large)
{
    return make_vector(MPI_COMBINER_HVECTOR, count, block, stride, large, child,
                       out);
}

/* -------------------------------------------------------------------- indexed
 */

/* The four kinds of indexed types: lengths or one length, elements or bytes. */
struct indexed {
    int combiner;
    MPI_Count count;
    bool one_block, in_bytes;
    MPI_Count block;       /* length of all blocks, if one_block */
    struct numbers blocks; /* lengths otherwise */
    struct numbers disps;
    bool large;
};

static struct envelope *indexed_envelope(const struct indexed *in,
                                         const struct type *child)
{
    int n = (int)in->count;
    struct envelope *envelope =
        envelope_new(in->combiner, in->large, 2 * n + 2L, 1);
    envelope_count(envelope, n);
    if (in->one_block)
        envelope_count(envelope, in->block);
    else
        envelope_counts(envelope, in->blocks, n);
    if (in->in_bytes)
        envelope_aints(envelope, in->disps, n);
    else
        envelope_counts(envelope, in->disps, n);
    envelope_type(envelope, child->object.handle);
    return envelope;
}

static int indexed_check(const struct indexed *in)
{
    if (in->count < 0 || in->count >= INT_MAX / 2)
        return error_note(MPI_ERR_COUNT, "invalid count");
    bool blocks = in->one_block || !numbers_null(in->blocks);
    if (in->count > 0 && (!blocks || numbers_null(in->disps)))
        return error_note(MPI_ERR_ARG, "null pointer");
    return MPI_SUCCESS;
}

static int make_indexed(const struct indexed *in, struct type *child,
                        MPI_Datatype *out)
{
    int n = (int)in->count;
    int result = indexed_check(in);
    if (result != MPI_SUCCESS) return result;
    struct part *parts = calloc((size_t)n + 1, sizeof *parts);
    if (!parts) return note_no_memory();
    bool good = true;
    MPI_Aint unit = in->in_bytes ? 1 : child->extent;
    for (int i = 0; i < n; i++) {
        MPI_Count block = in->one_block ? in->block : numbers_at(in->blocks, i);
        good = good && block >= 0;
        parts[i].count = 1;
        parts[i].block = block;
        parts[i].disp = numbers_at(in->disps, i) * unit;
        parts[i].child = child;
    }
    result = good ? type_publish(type_build(parts, n),
                                 indexed_envelope(in, child), out)
                  : error_note(MPI_ERR_COUNT, "negative blocklength");
    free(parts);
    return result;
}

#define INDEXED(name, combiner_of, bytes)                                      \
    int mpi_Type_##name(MPI_Count count, struct numbers blocks,                \
                        struct numbers disps, struct type *child,              \
                        MPI_Datatype *out, bool large)                         \
    {                                                                          \
        struct indexed in = {.combiner = combiner_of,                          \
                             .count = count,                                   \
                             .in_bytes = bytes,                                \
                             .blocks = blocks,                                 \
                             .disps = disps,                                   \
                             .large = large};                                  \
        return make_indexed(&in, child, out);                                  \
    }
INDEXED(indexed, MPI_COMBINER_INDEXED, false)
INDEXED(create_hindexed, MPI_COMBINER_HINDEXED, true)

#define INDEXED_BLOCK(name, combiner_of, bytes)                                \
    int mpi_Type_##name(MPI_Count count, MPI_Count length,                     \
                        struct numbers disps, struct type *child,              \
                        MPI_Datatype *out, bool large)                         \
    {                                                                          \
        struct indexed in = {.combiner = combiner_of,                          \
                             .count = count,                                   \
                             .one_block = true,                                \
                             .in_bytes = bytes,                                \
                             .block = length,                                  \
                             .disps = disps,                                   \
                             .large = large};                                  \
        return make_indexed(&in, child, out);                                  \
    }
INDEXED_BLOCK(create_indexed_block, MPI_COMBINER_INDEXED_BLOCK, false)
INDEXED_BLOCK(create_hindexed_block, MPI_COMBINER_HINDEXED_BLOCK, true)

/* -------------------------------------------------------------------- structs
 */

/* Rounds a struct's extent up to its alignment, like a compiler. */
static void struct_round(struct type *type, bool marked)
{
    MPI_Aint over = type->align > 1 ? type->extent % type->align : 0;
    if (over != 0 && !marked)
        type_set_bounds(type, type->lb, type->extent + type->align - over);
}

static struct type *struct_build(int count, struct numbers blocks,
                                 struct numbers disps,
                                 const MPI_Datatype types[], int *error)
{
    struct part *parts = calloc((size_t)count + 1, sizeof *parts);
    bool marked = false;
    *error = parts ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int i = 0; parts && i < count; i++) {
        parts[i].count = 1;
        parts[i].block = numbers_at(blocks, i);
        parts[i].disp = numbers_at(disps, i);
        parts[i].child = type_find(types[i]);
        if (!parts[i].child) *error = MPI_ERR_TYPE;
        if (parts[i].block < 0) *error = MPI_ERR_COUNT;
        marked = marked || types[i] == MPI_LB || types[i] == MPI_UB;
    }
    struct type *type = *error == MPI_SUCCESS ? type_build(parts, count) : NULL;
    free(parts);
    if (type) struct_round(type, marked);
    return type;
}

int mpi_Type_create_struct(MPI_Count count, struct numbers blocks,
                           struct numbers disps, const MPI_Datatype types[],
                           MPI_Datatype *out, bool large)
{
    int n = (int)count, error;
    if (count < 0 || count >= INT_MAX / 2)
        return error_note(MPI_ERR_COUNT, "invalid count");
    if (n > 0 && (numbers_null(blocks) || numbers_null(disps) || !types))
        return error_note(MPI_ERR_ARG, "null pointer");
    struct type *type = struct_build(n, blocks, disps, types, &error);
    if (error != MPI_SUCCESS)
        return error_note(error, "invalid datatype or blocklength");
    struct envelope *envelope =
        envelope_new(MPI_COMBINER_STRUCT, large, 2L * n + 1, n);
    envelope_count(envelope, n);
    envelope_counts(envelope, blocks, n);
    envelope_aints(envelope, disps, n);
    for (int i = 0; i < n; i++) envelope_type(envelope, types[i]);
    return type_publish(type, envelope, out);
}

/* ---------------------------------------------------------- resized and copies
 */

int mpi_Type_create_resized(struct type *child, MPI_Count lb, MPI_Count extent,
                            MPI_Datatype *out, bool large)
{
    struct part part = {.count = 1, .block = 1, .child = child};
    struct type *type = type_build(&part, 1);
    if (type) type_set_bounds(type, lb, extent);
    struct envelope *envelope = envelope_new(MPI_COMBINER_RESIZED, large, 2, 1);
    envelope_aint(envelope, lb);
    envelope_aint(envelope, extent);
    envelope_type(envelope, child->object.handle);
    return type_publish(type, envelope, out);
}

int mpi_Type_dup(struct type *child, MPI_Datatype *out)
{
    struct part part = {.count = 1, .block = 1, .child = child};
    struct type *type = type_build(&part, 1);
    if (type) {
        type_set_bounds(type, child->lb, child->extent);
        type->committed = child->committed;
    }
    struct envelope *envelope = envelope_new(MPI_COMBINER_DUP, false, 0, 1);
    envelope_type(envelope, child->object.handle);
    int result = type_publish(type, envelope, out);
    if (result != MPI_SUCCESS) return result;
    result = attr_copy_all(child->object.handle, child->attributes,
                           &type->attributes, *out);
    if (result == MPI_SUCCESS) return result;
    handle_close(&type->object);
    object_release(&type->object);
    *out = MPI_DATATYPE_NULL;
    return error_note(result, "a copy callback failed");
}
