/* mpi_op.h - reduction operators. */
#ifndef MPI_OP_H
#define MPI_OP_H

#include "facade.h"
#include "type.h"

#include <pccl.h>

/* Both interfaces have these numbers: members compare them. */
enum op_number {
    OP_USER,
    OP_MAX,
    OP_MIN,
    OP_SUM,
    OP_PROD,
    OP_LAND,
    OP_BAND,
    OP_LOR,
    OP_BOR,
    OP_LXOR,
    OP_BXOR,
    OP_MINLOC,
    OP_MAXLOC,
    OP_REPLACE,
    OP_NO_OP,
    OP_NUMBERS
};

/* in[i] op inout[i] -> inout[i] for count elements */
typedef void op_kernel(const void *in, void *inout, size_t count);

struct mpi_op {
    struct object object;
    enum op_number number;
    bool predefined;
    bool commutative;
    MPI_User_function *function; /* user-defined operators set one */
    MPI_User_function_c *function_c;
    MPIX_User_function_x *function_x;
    MPIX_Destructor_function *destructor; /* of `extra`, or NULL */
    void *extra;
};

/* NULL: not an operator. */
struct mpi_op *op_find(MPI_Op handle);
const char *op_mpi_name(const struct mpi_op *op);
void op_start(void);
/* Whether the operator accepts the type, by MPICH's rules. */
bool op_takes(const struct mpi_op *op, const struct type *type);
/* The pccl operator with the same effect on this type's bits; false: none. */
bool op_to_pccl(const struct mpi_op *op, const struct type *type,
                pcclRedOp_t *out);
/* Applies the operator to elements in the type's own layout. */
void op_apply(const struct mpi_op *op, const struct type *type, const void *in,
              void *inout, MPI_Count count);
/* Table of the predefined operators on elements; NULL: not defined. */
op_kernel *op_kernel_find(enum op_number number, enum element element);

#endif
