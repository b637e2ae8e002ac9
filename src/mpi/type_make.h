/* type_make.h - shared by the constructors of datatypes. */
#ifndef TYPE_MAKE_H
#define TYPE_MAKE_H

#include "numbers.h"
#include "type.h"

/* The arguments of a constructor, in the standard's order. A constructor with
 * large counts (_c) stores counts and displacements in a separate list. */
struct envelope {
    int combiner;
    bool large;
    int int_count, aint_count, count_count, type_count;
    int *ints;
    MPI_Aint *aints;
    MPI_Count *counts;
    MPI_Datatype *types;
};

/* An envelope for so many numbers and datatypes; the calls below fill it and do
 * nothing for NULL. NULL: no memory. */
struct envelope *envelope_new(int combiner, bool large, long numbers,
                              long types);
void envelope_int(struct envelope *envelope, int value);
void envelope_count(struct envelope *envelope, MPI_Count value);
void envelope_aint(struct envelope *envelope, MPI_Aint value);
void envelope_counts(struct envelope *envelope, struct numbers values, int n);
void envelope_aints(struct envelope *envelope, struct numbers values, int n);
void envelope_type(struct envelope *envelope, MPI_Datatype type);

/* Assigns a handle to a finished type. Takes type and envelope over; either may
 * be NULL for lack of memory. Returns a noted class. */
int type_publish(struct type *type, struct envelope *envelope,
                 MPI_Datatype *out);

#endif
