/* mpi_op.c - MPI_Op: predefined and user-defined operators. */
#include "mpi_op.h"
#include "mpi_comm.h"
#include "../base/float_env.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    MPI_Op handle;
    const char *name;
} table[OP_NUMBERS] = {
#define ROW(number, handle) [number] = {handle, #handle}
    [OP_USER] = {MPI_OP_NULL, "of the program"},
    ROW(OP_MAX, MPI_MAX),
    ROW(OP_MIN, MPI_MIN),
    ROW(OP_SUM, MPI_SUM),
    ROW(OP_PROD, MPI_PROD),
    ROW(OP_LAND, MPI_LAND),
    ROW(OP_BAND, MPI_BAND),
    ROW(OP_LOR, MPI_LOR),
    ROW(OP_BOR, MPI_BOR),
    ROW(OP_LXOR, MPI_LXOR),
    ROW(OP_BXOR, MPI_BXOR),
    ROW(OP_MINLOC, MPI_MINLOC),
    ROW(OP_MAXLOC, MPI_MAXLOC),
    ROW(OP_REPLACE, MPI_REPLACE),
    ROW(OP_NO_OP, MPI_NO_OP)
#undef ROW
};

/* By the low bits of the handle. */
static struct mpi_op predefined[~OP_MASK + 1];

static struct mpi_op *slot_of(MPI_Op handle)
{
    return &predefined[HANDLE_BITS(handle) & ~(unsigned)OP_MASK];
}

struct mpi_op *op_find(MPI_Op handle)
{
    if ((HANDLE_BITS(handle) & (unsigned)OP_MASK) == OP_PREFIX) {
        struct mpi_op *op = slot_of(handle);
        return op->predefined && op->object.handle == handle ? op : NULL;
    }
    return (struct mpi_op *)handle_find(HANDLE_OP, handle);
}

const char *op_mpi_name(const struct mpi_op *op)
{
    return table[op->number].name;
}

void op_start(void)
{
    for (int i = OP_USER + 1; i < OP_NUMBERS; i++) {
        struct mpi_op *op = slot_of(table[i].handle);
        op->object.handle = table[i].handle;
        atomic_store(&op->object.references, 1);
        op->number = (enum op_number)i;
        op->predefined = true;
        /* REPLACE takes the later operand, NO_OP the earlier; order matters */
        op->commutative = i != OP_REPLACE && i != OP_NO_OP;
    }
}

bool op_takes(const struct mpi_op *op, const struct type *type)
{
    if (!op->predefined) return true;
    return op_kernel_find(op->number, type->element) != NULL;
}

bool op_to_pccl(const struct mpi_op *op, const struct type *type,
                pcclRedOp_t *out)
{
    bool complex_type = type->element == ELEMENT_FLOAT_COMPLEX ||
                        type->element == ELEMENT_DOUBLE_COMPLEX;
    switch (op->number) {
    case OP_SUM:
        *out = pcclSum;
        return true;
    case OP_PROD:
        *out = pcclProd;
        return !complex_type;
    case OP_MAX:
        *out = pcclMax;
        return !complex_type;
    case OP_MIN:
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
        op_kernel *kernel = op_kernel_find(op->number, type->element);
        struct float_env env = float_env_enter();
        if (kernel) kernel(in, inout, (size_t)count);
        float_env_leave(&env);
    } else if (op->function_x) {
        op->function_x(input, inout, count, handle, op->extra);
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
    struct mpi_op *op = (struct mpi_op *)object;
    if (object->handle) handle_close(object);
    if (op->destructor) op->destructor(op->extra);
    free(op);
}

static int op_create(const struct mpi_op *from, int commute, MPI_Op *out)
{
    if (!from->function && !from->function_c && !from->function_x)
        return note_argument("null function");
    struct mpi_op *op = malloc(sizeof *op);
    if (!op) return note_no_memory();
    *op = *from;
    object_init(&op->object, op_destroy);
    op->commutative = commute != 0;
    if (!handle_open(HANDLE_OP, &op->object)) {
        free(op);
        return note_no_memory();
    }
    *out = op->object.handle;
    return MPI_SUCCESS;
}

int mpi_Op_create_int(MPI_User_function *function, int commute, MPI_Op *out)
{
    struct mpi_op op = {.function = function};
    return op_create(&op, commute, out);
}

int mpi_Op_create_large(MPI_User_function_c *function, int commute, MPI_Op *out)
{
    struct mpi_op op = {.function_c = function};
    return op_create(&op, commute, out);
}

int mpi_Op_create_x(MPIX_User_function_x *function,
                    MPIX_Destructor_function *destructor, int commute,
                    void *extra, MPI_Op *out)
{
    struct mpi_op op = {
        .function_x = function, .destructor = destructor, .extra = extra};
    return op_create(&op, commute, out);
}

static struct mpi_op *op_find_noted(MPI_Op handle)
{
    struct mpi_op *op = op_find(handle);
    if (!op)
        error_note(MPI_ERR_OP, "invalid operator 0x%08x", HANDLE_BITS(handle));
    return op;
}

int mpi_Op_free(MPI_Op *handle)
{
    struct mpi_op *op = op_find_noted(*handle);
    if (!op) return MPI_ERR_OP;
    if (op->predefined)
        return error_note(MPI_ERR_OP, "a predefined operator cannot be freed");
    object_release(&op->object);
    *handle = MPI_OP_NULL;
    return MPI_SUCCESS;
}

int mpi_Op_commutative(MPI_Op handle, int *commute)
{
    struct mpi_op *op = op_find_noted(handle);
    if (!op) return MPI_ERR_OP;
    *commute = op->commutative;
    return MPI_SUCCESS;
}

int mpi_Reduce_local(const void *in, void *inout, MPI_Count count,
                     MPI_Datatype type_handle, MPI_Op handle)
{
    struct type *type = type_find(type_handle);
    struct mpi_op *op = op_find(handle);
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    if (!type) return error_note(MPI_ERR_TYPE, "invalid datatype");
    if (!op || !op_takes(op, type))
        return error_note(MPI_ERR_OP, "invalid operator");
    if (in == MPI_IN_PLACE || inout == MPI_IN_PLACE ||
        (count > 0 && in == inout))
        return error_note(MPI_ERR_BUFFER, "invalid buffer");
    if (count > 0) op_apply(op, type, in, inout, count);
    return MPI_SUCCESS;
}
