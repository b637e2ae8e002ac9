/* mpi_op.c - MPI_Op: predefined and user-defined operators. */
#include "mpi_op.h"
#include "mpi_comm.h"
#include "../base/float_env.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { OPS = 15 }; /* 0x58000001 .. 0x5800000e */

static struct mpi_op predefined[OPS];

struct mpi_op *op_find(MPI_Op handle)
{
    if (handle > (MPI_Op)0x58000000 && handle < (MPI_Op)0x58000000 + OPS) {
        struct mpi_op *op = &predefined[handle & 0xff];
        return op->object.handle ? op : NULL;
    }
    return (struct mpi_op *)handle_find(HANDLE_OP, handle);
}

const char *op_mpi_name(const struct mpi_op *op)
{
    static const char *const names[OPS] = {
        NULL,       "MPI_MAX",    "MPI_MIN",    "MPI_SUM",     "MPI_PROD",
        "MPI_LAND", "MPI_BAND",   "MPI_LOR",    "MPI_BOR",     "MPI_LXOR",
        "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP"};
    return op->predefined ? names[op->object.handle & 0xff] : "of the program";
}

void op_start(void)
{
    for (int i = 1; i < OPS; i++) {
        predefined[i].object.handle = 0x58000000 + i;
        atomic_store(&predefined[i].object.references, 1);
        predefined[i].predefined = true;
        predefined[i].commutative = true;
    }
    /* REPLACE takes the later operand, NO_OP the earlier; order matters */
    predefined[MPI_REPLACE & 0xff].commutative = false;
    predefined[MPI_NO_OP & 0xff].commutative = false;
}

bool op_takes(const struct mpi_op *op, const struct type *type)
{
    if (!op->predefined) return true;
    return op_kernel_find(op->object.handle, type->element) != NULL;
}

bool op_to_pccl(const struct mpi_op *op, const struct type *type,
                pcclRedOp_t *out)
{
    bool complex_type = type->element == ELEMENT_FLOAT_COMPLEX ||
                        type->element == ELEMENT_DOUBLE_COMPLEX;
    switch (op->object.handle) {
    case MPI_SUM:
        *out = pcclSum;
        return true;
    case MPI_PROD:
        *out = pcclProd;
        return !complex_type;
    case MPI_MAX:
        *out = pcclMax;
        return !complex_type;
    case MPI_MIN:
        *out = pcclMin;
        return !complex_type;
    default:
        return false;
    }
}

void op_apply(const struct mpi_op *op, const struct type *type, const void *in,
              void *inout, MPI_Count count)
{
    void *input = (void *)(uintptr_t)in;
    MPI_Datatype handle = type->object.handle;
    if (op->predefined) {
        op_kernel *kernel = op_kernel_find(op->object.handle, type->element);
        struct float_env env = float_env_enter();
        if (kernel) kernel(in, inout, (size_t)count);
        float_env_leave(&env);
    } else if (op->function_c) {
        op->function_c(input, inout, &count, &handle);
    } else {
        for (MPI_Count done = 0; done < count;) {
            MPI_Count rest = count - done;
            int n = rest > INT_MAX ? INT_MAX : (int)rest;
            op->function((char *)input + done * type->extent,
                         (char *)inout + done * type->extent, &n, &handle);
            done += n;
        }
    }
}

static void op_destroy(struct object *object)
{
    if (object->handle) handle_close(object);
    free(object);
}

static int op_create(MPI_User_function *function,
                     MPI_User_function_c *function_c, int commute, MPI_Op *out,
                     const char *name)
{
    if (!out || (!function && !function_c))
        return error_raise(NULL, MPI_ERR_ARG, name, "null pointer");
    struct mpi_op *op = calloc(1, sizeof *op);
    if (!op) return error_raise(NULL, MPI_ERR_NO_MEM, name, "out of memory");
    object_init(&op->object, op_destroy);
    op->function = function;
    op->function_c = function_c;
    op->commutative = commute != 0;
    if (!handle_open(HANDLE_OP, &op->object)) {
        free(op);
        return error_raise(NULL, MPI_ERR_NO_MEM, name, "out of memory");
    }
    *out = op->object.handle;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Op_create);
int PMPI_Op_create(MPI_User_function *function, int commute, MPI_Op *out)
{
    return op_create(function, NULL, commute, out, __func__);
}

MPI_PUBLIC(Op_create_c);
int PMPI_Op_create_c(MPI_User_function_c *function, int commute, MPI_Op *out)
{
    return op_create(NULL, function, commute, out, __func__);
}

#define OP_OR_RETURN(variable, handle)                                         \
    struct mpi_op *variable = op_find(handle);                                 \
    if (!variable)                                                             \
    return RAISE(NULL, MPI_ERR_OP, "invalid operator 0x%08x",                  \
                 (unsigned)(handle))

MPI_PUBLIC(Op_free);
int PMPI_Op_free(MPI_Op *handle)
{
    if (!handle) return RAISE_ARG(NULL, "null operator");
    OP_OR_RETURN(op, *handle);
    if (op->predefined)
        return RAISE(NULL, MPI_ERR_OP, "a predefined operator cannot be freed");
    object_release(&op->object);
    *handle = MPI_OP_NULL;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Op_commutative);
int PMPI_Op_commutative(MPI_Op handle, int *commute)
{
    OP_OR_RETURN(op, handle);
    if (!commute) return RAISE_ARG(NULL, "null flag");
    *commute = op->commutative;
    return MPI_SUCCESS;
}

static int reduce_local(const void *in, void *inout, MPI_Count count,
                        MPI_Datatype type_handle, MPI_Op handle,
                        const char *function)
{
    struct type *type = type_find(type_handle);
    struct mpi_op *op = op_find(handle);
    if (count < 0)
        return error_raise(NULL, MPI_ERR_COUNT, function, "negative count");
    if (!type)
        return error_raise(NULL, MPI_ERR_TYPE, function, "invalid datatype");
    if (!op || !op_takes(op, type))
        return error_raise(NULL, MPI_ERR_OP, function, "invalid operator");
    if (in == MPI_IN_PLACE || inout == MPI_IN_PLACE ||
        (count > 0 && in == inout))
        return error_raise(NULL, MPI_ERR_BUFFER, function, "invalid buffer");
    if (count > 0) op_apply(op, type, in, inout, count);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Reduce_local);
int PMPI_Reduce_local(const void *in, void *inout, int count, MPI_Datatype type,
                      MPI_Op op)
{
    return reduce_local(in, inout, count, type, op, __func__);
}

MPI_PUBLIC(Reduce_local_c);
int PMPI_Reduce_local_c(const void *in, void *inout, MPI_Count count,
                        MPI_Datatype type, MPI_Op op)
{
    return reduce_local(in, inout, count, type, op, __func__);
}
