/* random_layout.h - random numbers that are equal on all ranks, and random
 * datatypes with a known layout: the program computes the place of every
 * element itself and compares the library's bounds and bytes to it. */
#ifndef RANDOM_LAYOUT_H
#define RANDOM_LAYOUT_H

#include "conform.h"

#include <stdint.h>

/* --------------------------------------------------------------- numbers */

struct dice {
    uint64_t state;
};

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* A number from 0 to n-1. */
static inline int roll(struct dice *dice, int n)
{
    dice->state = mix(dice->state, 1);
    return (int)(dice->state >> 8 & 0x7fffffff) % n;
}

/* --------------------------------------------------------------- layouts */

enum { PLACES_MAX = 48 };

struct layout {
    MPI_Datatype type;
    int unit;                    /* bytes of an element */
    int count;                   /* elements */
    MPI_Aint places[PLACES_MAX]; /* of each element, in type-map order */
    MPI_Aint low, extent;
};

static inline MPI_Datatype base_type(int unit)
{
    return unit == 1   ? MPI_BYTE
           : unit == 2 ? MPI_SHORT
           : unit == 4 ? MPI_INT
                       : MPI_DOUBLE;
}

static inline void layout_plain(struct layout *l, int unit)
{
    *l = (struct layout){base_type(unit), unit, 1, {0}, 0, unit};
}

/* Blocks of `lengths` old ones at `displs` bytes; false: too many elements. */
static inline int layout_blocks(struct layout *l, int blocks,
                                const int *lengths, const MPI_Aint *displs)
{
    struct layout old = *l;
    MPI_Aint low = 0, high = 0;
    int any = 0;
    l->count = 0;
    for (int b = 0; b < blocks; b++) {
        for (int j = 0; j < lengths[b]; j++) {
            MPI_Aint at = displs[b] + j * old.extent;
            if (l->count + old.count > PLACES_MAX) {
                *l = old;
                return 0;
            }
            for (int p = 0; p < old.count; p++)
                l->places[l->count++] = at + old.places[p];
            if (!any || at + old.low < low) low = at + old.low;
            if (!any || at + old.low + old.extent > high)
                high = at + old.low + old.extent;
            any = 1;
        }
    }
    if (!any) {
        *l = old;
        return 0;
    }
    l->low = low;
    l->extent = high - low;
    return 1;
}

static inline void layout_indexed(struct dice *dice, struct layout *l, int how)
{
    int blocks = 1 + roll(dice, 3), lengths[3], steps[3], next = 0;
    int same = 1 + roll(dice, 2), mirrored = roll(dice, 2);
    MPI_Aint displs[3];
    MPI_Datatype types[3], old = l->type;
    for (int b = 0; b < blocks; b++) {
        lengths[b] = how >= 2 ? same : roll(dice, 3);
        next += roll(dice, 3);
        steps[b] = next;
        next += lengths[b];
        types[b] = old;
    }
    if (mirrored) { /* later blocks have lower addresses */
        for (int b = 0; b < blocks; b++) steps[b] = -steps[b] - lengths[b];
    }
    for (int b = 0; b < blocks; b++) displs[b] = steps[b] * l->extent;
    if (!layout_blocks(l, blocks, lengths, displs)) return;
    if (how == 0) OK(MPI_Type_indexed(blocks, lengths, steps, old, &l->type));
    if (how == 1)
        OK(MPI_Type_create_hindexed(blocks, lengths, displs, old, &l->type));
    if (how == 2)
        OK(MPI_Type_create_indexed_block(blocks, same, steps, old, &l->type));
    if (how == 3)
        OK(MPI_Type_create_hindexed_block(blocks, same, displs, old, &l->type));
    if (how == 4)
        OK(MPI_Type_create_struct(blocks, lengths, displs, types, &l->type));
    if (old != base_type(l->unit)) OK(MPI_Type_free(&old));
}

static inline void layout_strided(struct dice *dice, struct layout *l, int how)
{
    int count = 1 + roll(dice, 3), block = 1 + roll(dice, 2);
    int stride = block + roll(dice, 3), lengths[3];
    MPI_Aint displs[3], bytes = 0;
    MPI_Datatype old = l->type;
    if (how == 0) block = stride = 1;
    if (how > 0 && roll(dice, 3) == 0) stride = -stride;
    bytes = stride * l->extent;
    if (how == 2) bytes += (stride < 0 ? -1 : 1) * l->unit * roll(dice, 3);
    for (int b = 0; b < count; b++) {
        lengths[b] = block;
        displs[b] = b * bytes;
    }
    if (!layout_blocks(l, count, lengths, displs)) return;
    if (how == 0) OK(MPI_Type_contiguous(count, old, &l->type));
    if (how == 1) OK(MPI_Type_vector(count, block, stride, old, &l->type));
    if (how == 2)
        OK(MPI_Type_create_hvector(count, block, bytes, old, &l->type));
    if (old != base_type(l->unit)) OK(MPI_Type_free(&old));
}

static inline void layout_subarray(struct dice *dice, struct layout *l)
{
    int c_order = roll(dice, 2), sizes[2], subs[2], starts[2], lengths[16];
    MPI_Aint displs[16];
    MPI_Datatype old = l->type;
    int n = 0;
    if (l->low != 0) return;
    for (int d = 0; d < 2; d++) {
        sizes[d] = 1 + roll(dice, 4);
        subs[d] = 1 + roll(dice, sizes[d]);
        starts[d] = roll(dice, sizes[d] - subs[d] + 1);
    }
    int slow = c_order ? 0 : 1, fast = 1 - slow;
    for (int i = 0; i < subs[slow]; i++)
        for (int j = 0; j < subs[fast]; j++) {
            lengths[n] = 1;
            displs[n++] =
                ((starts[slow] + i) * sizes[fast] + starts[fast] + j) *
                l->extent;
        }
    MPI_Aint whole = sizes[0] * sizes[1] * l->extent;
    if (!layout_blocks(l, n, lengths, displs)) return;
    l->low = 0;
    l->extent = whole;
    OK(MPI_Type_create_subarray(2, sizes, subs, starts,
                                c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old,
                                &l->type));
    if (old != base_type(l->unit)) OK(MPI_Type_free(&old));
}

static inline void layout_wrap(struct dice *dice, struct layout *l)
{
    MPI_Datatype old = l->type;
    if (roll(dice, 3) == 0) {
        OK(MPI_Type_dup(old, &l->type));
    } else {
        MPI_Aint front = roll(dice, 3) * l->unit,
                 back = roll(dice, 3) * l->unit;
        l->low -= front;
        l->extent += front + back;
        OK(MPI_Type_create_resized(old, l->low, l->extent, &l->type));
    }
    if (old != base_type(l->unit)) OK(MPI_Type_free(&old));
}

static inline void layout_check(const struct layout *l)
{
    MPI_Aint low, extent, true_low = l->places[0], true_high = true_low;
    int size;
    for (int p = 0; p < l->count; p++) {
        if (l->places[p] < true_low) true_low = l->places[p];
        if (l->places[p] > true_high) true_high = l->places[p];
    }
    OK(MPI_Type_size(l->type, &size));
    CHECK(size == l->count * l->unit);
    OK(MPI_Type_get_extent(l->type, &low, &extent));
    CHECK(low == l->low && extent == l->extent);
    OK(MPI_Type_get_true_extent(l->type, &low, &extent));
    CHECK(low == true_low && extent == true_high + l->unit - true_low);
}

static inline void layout_free(struct layout *l)
{
    int integers, addresses, types, combiner;
    OK(MPI_Type_get_envelope(l->type, &integers, &addresses, &types,
                             &combiner));
    if (combiner != MPI_COMBINER_NAMED) OK(MPI_Type_free(&l->type));
}

/* A committed type whose number of elements divides `divides`. */
static inline void layout_roll(struct dice *dice, struct layout *l, int unit,
                               int divides)
{
    layout_plain(l, unit);
    for (int depth = roll(dice, 4); depth > 0; depth--) {
        int kind = roll(dice, 10);
        if (kind < 3) layout_strided(dice, l, kind);
        if (kind >= 3 && kind < 8) layout_indexed(dice, l, kind - 3);
        if (kind == 8) layout_subarray(dice, l);
        if (kind == 9) layout_wrap(dice, l);
    }
    if (divides % l->count != 0) {
        layout_free(l);
        layout_plain(l, unit);
    }
    if (l->type != base_type(unit)) OK(MPI_Type_commit(&l->type));
    layout_check(l);
}

/* ------------------------------------------------------------------ areas */

/* Memory that a call may read or write: its contents before the call, and the
 * expected contents afterwards, byte for byte, including holes and
 * surroundings. */
struct area {
    struct layout layout;
    size_t size;
    unsigned char *memory, *before, *after;
    MPI_Aint
        shift; /* of the address passed to MPI, from the start of the memory */
    int valid; /* not 0: only this many elements are defined afterwards */
    int borrowed; /* another area owns the type */
};

enum { AREA_MARGIN = 64 };

/* Space for elements of the layout's type at each of the places [0, units). */
static inline void area_new(struct area *a, const struct layout *l,
                            MPI_Aint units)
{
    MPI_Aint low = l->low < 0 ? l->low : 0;
    MPI_Aint high = l->low + l->extent;
    if (units > 0) high += (units - 1) * l->extent;
    if (high < 0) high = 0;
    a->layout = *l;
    a->size = (size_t)(high - low) + 2 * AREA_MARGIN;
    a->shift = (AREA_MARGIN - low + 15) / 16 * 16;
    a->size += 32;
    a->memory = malloc(a->size);
    a->before = malloc(a->size);
    a->after = malloc(a->size);
    for (size_t i = 0; i < a->size; i++)
        a->before[i] = a->after[i] = (unsigned char)(0xa0 + i % 31);
}

static inline void *area_base(const struct area *a)
{
    return a->memory + a->shift;
}

/* Position of element e, counted over elements of the type, from `origin` types
 * on. */
static inline size_t area_at(const struct area *a, MPI_Aint origin, int e)
{
    const struct layout *l = &a->layout;
    return (size_t)(a->shift + (origin + e / l->count) * l->extent +
                    l->places[e % l->count]);
}

static inline void area_put(unsigned char *image, const struct area *a,
                            MPI_Aint origin, int e, uint64_t value)
{
    memcpy(image + area_at(a, origin, e), &value, (size_t)a->layout.unit);
}

/* Input: the same before and after. */
static inline void area_input(struct area *a, MPI_Aint origin, int e,
                              uint64_t value)
{
    area_put(a->before, a, origin, e, value);
    area_put(a->after, a, origin, e, value);
}

static inline void area_fill(struct area *a)
{
    memcpy(a->memory, a->before, a->size);
}

static inline int area_good(const struct area *a)
{
    for (int e = 0; e < a->valid; e++)
        if (memcmp(a->memory + area_at(a, 0, e), a->after + area_at(a, 0, e),
                   (size_t)a->layout.unit) != 0)
            return 0;
    if (a->valid > 0) return 1;
    return memcmp(a->memory, a->after, a->size) == 0;
}

static inline void area_free(struct area *a)
{
    if (!a->memory) return;
    free(a->memory);
    free(a->before);
    free(a->after);
    if (!a->borrowed) layout_free(&a->layout);
    a->memory = NULL;
}

#endif
