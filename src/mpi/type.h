/* type.h - datatypes: memory layouts, and moving data between a layout and its
 * packed form (the bytes in type-map order). */
#ifndef TYPE_H
#define TYPE_H

#include "attr.h"
#include "facade.h"

#include <pccl.h>

/* Kind of element, as operators see it. */
enum element {
    ELEMENT_NONE,      /* LB, UB: no data */
    ELEMENT_CHARACTER, /* text: only for the operators that MPICH allows */
    ELEMENT_BYTE,
    ELEMENT_I8,
    ELEMENT_I16,
    ELEMENT_I32,
    ELEMENT_I64,
    ELEMENT_U8,
    ELEMENT_U16,
    ELEMENT_U32,
    ELEMENT_U64,
    ELEMENT_FLOAT,
    ELEMENT_DOUBLE,
    ELEMENT_LONG_DOUBLE,
    ELEMENT_FLOAT_COMPLEX,
    ELEMENT_DOUBLE_COMPLEX,
    ELEMENT_LONG_DOUBLE_COMPLEX,
    ELEMENT_BOOL,    /* of C and C++, one byte */
    ELEMENT_LOGICAL, /* of Fortran, four bytes */
    ELEMENT_LOGICAL2,
    ELEMENT_LOGICAL8,
    ELEMENT_FLOAT_INT,
    ELEMENT_DOUBLE_INT,
    ELEMENT_LONG_INT,
    ELEMENT_SHORT_INT,
    ELEMENT_LONG_DOUBLE_INT,
    ELEMENT_2INT,
    ELEMENT_2FLOAT,
    ELEMENT_2DOUBLE,
    ELEMENT_OTHER, /* data without operators */
    ELEMENT_COUNT
};

/* `count` blocks of `block` consecutive children, the blocks `stride` bytes
 * apart, the first at `disp` bytes. Every constructor yields a list of
 * parts. */
struct part {
    MPI_Aint disp;
    MPI_Aint stride;
    MPI_Count count;
    MPI_Count block;
    struct type *child; /* holds a reference */
};

struct type {
    struct object object;
    bool committed;
    bool predefined;
    bool dense;           /* the packed form equals the memory for any count */
    enum element element; /* of predefined ones */
    MPI_Count size;       /* bytes of data */
    MPI_Count elements;   /* of predefined type */
    MPI_Aint lb, extent, true_lb, true_extent;
    int align; /* alignment of the strictest element */
    int part_count;
    struct part *parts;
    struct envelope *envelope; /* constructor arguments; NULL for predefined */
    struct attribute *attributes;
    char name[MPI_MAX_OBJECT_NAME];
};

/* NULL: not a datatype, or MPI_DATATYPE_NULL. */
struct type *type_find(MPI_Datatype handle);
bool type_start(void);

/* A type from parts (copied, children retained), without handle. Computes
 * sizes, bounds and alignment. NULL: no memory. */
struct type *type_build(const struct part *parts, int part_count);
void type_set_bounds(struct type *type, MPI_Aint lb, MPI_Aint extent);

/* The pccl type with the same bits and arithmetic; false: none. For complex
 * types *scale is 2 and the type is that of the parts. */
bool type_to_pccl(const struct type *type, pcclDataType_t *out, int *scale);

/* Copies bytes [offset, offset + size) of the packed form of count elements at
 * buffer, out of it or into it. */
void type_pack(const void *buffer, MPI_Count count, const struct type *type,
               MPI_Count offset, void *packed, MPI_Count size);
void type_unpack(void *buffer, MPI_Count count, const struct type *type,
                 MPI_Count offset, const void *packed, MPI_Count size);

/* Calls visit for every predefined element in type-map order. */
typedef void type_visit(void *context, char *address, const struct type *type,
                        MPI_Count count);
void type_walk(void *buffer, MPI_Count count, const struct type *type,
               type_visit *visit, void *context);

/* Whole predefined elements in the first `size` packed bytes. */
MPI_Count type_elements_in(const struct type *type, MPI_Count size);

/* Bytes from the lowest to the highest one touched by count elements; the
 * lowest is *low bytes from the buffer address. */
MPI_Aint type_span(const struct type *type, MPI_Count count, MPI_Aint *low);

#endif
