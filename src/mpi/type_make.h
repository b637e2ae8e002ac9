/* type_make.h - what constructors of datatypes share. */
#ifndef TYPE_MAKE_H
#define TYPE_MAKE_H

#include "type.h"

/* The arguments a type was made from, in the standard's order. */
struct envelope {
    int combiner;
    int int_count, aint_count, type_count;
    int *ints;
    MPI_Aint *aints;
    MPI_Datatype *types;
};

struct envelope *envelope_new(int combiner, int ints, int aints, int types);
int type_publish(struct type *type, struct envelope *envelope,
                 MPI_Datatype *out, const char *function);

#endif
