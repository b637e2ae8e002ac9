/* type_array.c - datatypes for parts of arrays, and for Fortran's
 * precisions. */
#include "type.h"
#include "type_make.h"

#include <stdlib.h>

/* A dimension of an array and its selected elements: `count` runs of `block`
 * elements, `stride` apart, and a shorter last run. */
struct slice {
    MPI_Count size;
    MPI_Count start, block, stride, count;
    MPI_Count rest; /* length of that last run; 0: none */
};

/* Applies one dimension after the other to the child, the fastest first. */
static struct type *array_build(int dims, const struct slice slices[],
                                int order, struct type *child)
{
    struct type *type = child;
    MPI_Aint step = child->extent;
    object_retain(&type->object);
    for (int k = 0; k < dims && type; k++) {
        const struct slice *slice =
            &slices[order == MPI_ORDER_C ? dims - 1 - k : k];
        struct part parts[2] = {
            {.disp = slice->start * step,
             .stride = slice->stride * step,
             .count = slice->count,
             .block = slice->block,
             .child = type},
            {.disp = (slice->start + slice->count * slice->stride) * step,
             .count = 1,
             .block = slice->rest,
             .child = type}};
        struct type *outer = type_build(parts, slice->rest > 0 ? 2 : 1);
        object_release(&type->object);
        step *= slice->size;
        if (outer) type_set_bounds(outer, 0, step);
        type = outer;
    }
    return type;
}

static bool order_known(int order)
{
    return order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN;
}

/* ------------------------------------------------------------------- subarray
 */

int mpi_Type_create_subarray(int dims, struct numbers sizes,
                             struct numbers subsizes, struct numbers starts,
                             int order, struct type *child, MPI_Datatype *out,
                             bool large)
{
    bool good = dims > 0 && !numbers_null(sizes) && !numbers_null(subsizes) &&
                !numbers_null(starts) && order_known(order);
    struct slice *slices = good ? calloc((size_t)dims, sizeof *slices) : NULL;
    if (good && !slices) return note_no_memory();
    for (int i = 0; good && i < dims; i++) {
        struct slice *slice = &slices[i];
        slice->size = numbers_at(sizes, i);
        slice->start = numbers_at(starts, i);
        slice->block = numbers_at(subsizes, i);
        slice->count = 1;
        good = slice->size >= 1 && slice->block >= 1 && slice->start >= 0 &&
               slice->start <= slice->size - slice->block;
    }
    struct type *type = good ? array_build(dims, slices, order, child) : NULL;
    free(slices);
    if (!good)
        return error_note(MPI_ERR_ARG, "sizes, subsizes, starts or order");
    struct envelope *envelope =
        envelope_new(MPI_COMBINER_SUBARRAY, large, 3L * dims + 2, 1);
    envelope_int(envelope, dims);
    envelope_counts(envelope, sizes, dims);
    envelope_counts(envelope, subsizes, dims);
    envelope_counts(envelope, starts, dims);
    envelope_int(envelope, order);
    envelope_type(envelope, child->object.handle);
    return type_publish(type, envelope, out);
}

/* ---------------------------------------------------------- distributed arrays
 */

/* The part of a dimension that the process at `place` of `places` owns. False:
 * the distribution does not fit. */
static bool slice_distribute(struct slice *slice, int how, int argument,
                             int place, int places)
{
    MPI_Count size = slice->size, block = argument;
    bool chosen = argument == MPI_DISTRIBUTE_DFLT_DARG;
    switch (how) {
    case MPI_DISTRIBUTE_BLOCK:
        if (chosen) block = (size + places - 1) / places;
        if (block < 1 || block * places < size) return false;
        break;
    case MPI_DISTRIBUTE_CYCLIC:
        if (chosen) block = 1;
        if (block < 1) return false;
        break;
    case MPI_DISTRIBUTE_NONE:
        if (places != 1) return false;
        block = size;
        break;
    default:
        return false;
    }
    slice->block = block;
    slice->stride = block * places;
    slice->start = place * block;
    MPI_Count left = size - slice->start;
    if (left <= 0) {
        slice->start = 0;
        return true;
    }
    slice->count = left / slice->stride;
    MPI_Count over = left - slice->count * slice->stride;
    if (over >= block)
        slice->count++;
    else
        slice->rest = over;
    return true;
}

struct darray {
    int size, rank, dims;
    struct numbers sizes;
    const int *how, *arguments, *places;
    int order;
};

/* Processes are numbered in C order for any order of the array. */
static bool darray_slices(const struct darray *in, struct slice slices[])
{
    int rank = in->rank, processes = 1;
    for (int i = in->dims; i-- > 0;) {
        if (in->places[i] < 1) return false;
        slices[i].size = numbers_at(in->sizes, i);
        if (slices[i].size < 1 ||
            !slice_distribute(&slices[i], in->how[i], in->arguments[i],
                              rank % in->places[i], in->places[i]))
            return false;
        rank /= in->places[i];
        processes *= in->places[i];
    }
    return processes == in->size;
}

static struct envelope *darray_envelope(const struct darray *in, bool large,
                                        const struct type *child)
{
    struct envelope *envelope =
        envelope_new(MPI_COMBINER_DARRAY, large, 4L * in->dims + 4, 1);
    envelope_int(envelope, in->size);
    envelope_int(envelope, in->rank);
    envelope_int(envelope, in->dims);
    envelope_counts(envelope, in->sizes, in->dims);
    for (int i = 0; i < in->dims; i++) envelope_int(envelope, in->how[i]);
    for (int i = 0; i < in->dims; i++) envelope_int(envelope, in->arguments[i]);
    for (int i = 0; i < in->dims; i++) envelope_int(envelope, in->places[i]);
    envelope_int(envelope, in->order);
    envelope_type(envelope, child->object.handle);
    return envelope;
}

int mpi_Type_create_darray(int size, int rank, int dims, struct numbers sizes,
                           const int how[], const int arguments[],
                           const int places[], int order, struct type *child,
                           MPI_Datatype *out, bool large)
{
    const struct darray of = {size, rank,      dims,   sizes,
                              how,  arguments, places, order};
    const struct darray *in = &of;
    bool good = in->dims > 0 && in->size > 0 && in->rank >= 0 &&
                in->rank < in->size && !numbers_null(in->sizes) && in->how &&
                in->arguments && in->places && order_known(in->order);
    struct slice *slices =
        good ? calloc((size_t)in->dims, sizeof *slices) : NULL;
    if (good && !slices) return note_no_memory();
    good = good && darray_slices(in, slices);
    struct type *type =
        good ? array_build(in->dims, slices, in->order, child) : NULL;
    free(slices);
    if (!good)
        return error_note(MPI_ERR_ARG,
                          "sizes, distribution, processes or order");
    return type_publish(type, darray_envelope(in, large, child), out);
}

/* --------------------------------------------------------------- Fortran kinds
 */

/* Predefined in the standard's sense: equal for equal arguments, and never
 * freed. */
enum { KINDS_LIMIT = 256 };
static struct {
    int combiner, precision, range;
    MPI_Datatype type;
} kinds[KINDS_LIMIT]; /* guarded by facade_lock */
static int kind_count;

static MPI_Datatype kind_find(int combiner, int precision, int range)
{
    MPI_Datatype found = MPI_DATATYPE_NULL;
    facade_lock();
    for (int i = 0; i < kind_count; i++)
        if (kinds[i].combiner == combiner && kinds[i].precision == precision &&
            kinds[i].range == range)
            found = kinds[i].type;
    facade_unlock();
    return found;
}

static int kind_make(int combiner, int precision, int range, MPI_Datatype base,
                     MPI_Datatype *out)
{
    *out = kind_find(combiner, precision, range);
    if (*out != MPI_DATATYPE_NULL) return MPI_SUCCESS;
    struct type *child = type_find(base);
    if (!child)
        return error_note(MPI_ERR_ARG,
                          "no datatype of this precision and range");
    struct part part = {.count = 1, .block = 1, .child = child};
    struct type *type = type_build(&part, 1);
    if (type) {
        type->committed = type->predefined = true;
        type->element = child->element;
    }
    struct envelope *envelope = envelope_new(combiner, false, 2, 0);
    if (combiner != MPI_COMBINER_F90_INTEGER) envelope_int(envelope, precision);
    envelope_int(envelope, range);
    int result = type_publish(type, envelope, out);
    if (result != MPI_SUCCESS) return result;
    facade_lock();
    if (kind_count < KINDS_LIMIT) {
        kinds[kind_count].combiner = combiner;
        kinds[kind_count].precision = precision;
        kinds[kind_count].range = range;
        kinds[kind_count++].type = *out;
    }
    facade_unlock();
    return MPI_SUCCESS;
}

/* Decimal digits and exponents of the IEEE formats. */
static MPI_Datatype real_choose(int precision, int range, MPI_Datatype single,
                                MPI_Datatype twice, MPI_Datatype quad)
{
    if (precision == MPI_UNDEFINED) precision = 0;
    if (range == MPI_UNDEFINED) range = 0;
    if (precision <= 6 && range <= 37) return single;
    if (precision <= 15 && range <= 307) return twice;
    return precision <= 33 && range <= 4931 ? quad : MPI_DATATYPE_NULL;
}

int mpi_Type_create_f90_real(int precision, int range, MPI_Datatype *out)
{
    return kind_make(
        MPI_COMBINER_F90_REAL, precision, range,
        real_choose(precision, range, MPI_REAL4, MPI_REAL8, MPI_REAL16), out);
}

int mpi_Type_create_f90_complex(int precision, int range, MPI_Datatype *out)
{
    return kind_make(MPI_COMBINER_F90_COMPLEX, precision, range,
                     real_choose(precision, range, MPI_COMPLEX8, MPI_COMPLEX16,
                                 MPI_COMPLEX32),
                     out);
}

int mpi_Type_create_f90_integer(int range, MPI_Datatype *out)
{
    MPI_Datatype base = range <= 2    ? MPI_INTEGER1
                        : range <= 4  ? MPI_INTEGER2
                        : range <= 9  ? MPI_INTEGER4
                        : range <= 18 ? MPI_INTEGER8
                                      : MPI_DATATYPE_NULL;
    return kind_make(MPI_COMBINER_F90_INTEGER, 0, range, base, out);
}
