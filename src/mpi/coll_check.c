/* coll_check.c - checks arguments of collectives. */
#include "coll_check.h"
#include "rank_use.h"

#include <stdlib.h>

/* MPI_BOTTOM is NULL too, so NULL is an error for predefined types only. */
static int check_buffer(const void *buffer, MPI_Count count,
                        const struct type *type)
{
    bool lacks = buffer == MPI_IN_PLACE ||
                 (!buffer && type->predefined && type->size > 0);
    return lacks && count > 0 ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

int check_data(const void *buffer, MPI_Count count, MPI_Datatype handle,
               struct type **type)
{
    if (count < 0) return MPI_ERR_COUNT;
    *type = type_find(handle);
    if (!*type || !(*type)->committed) return MPI_ERR_TYPE;
    return check_buffer(buffer, count, *type);
}

int check_root(const struct coll *coll, int root)
{
    if (coll->comm->remote && (root == MPI_ROOT || root == MPI_PROC_NULL))
        return MPI_SUCCESS;
    if (root >= 0 && root < coll->layout.entries) return MPI_SUCCESS;
    bool left = root > 0 && rank_use_has_changed();
    return left ? MPIX_ERR_PROC_FAILED : MPI_ERR_ROOT;
}

int check_op(MPI_Op handle, const struct type *type, struct mpi_op **op)
{
    *op = op_find(handle);
    return *op && op_takes(*op, type) ? MPI_SUCCESS : MPI_ERR_OP;
}

static int arrays_new(const struct coll *coll, MPI_Count **counts,
                      MPI_Aint **displs)
{
    size_t n = (size_t)coll->layout.entries + 1;
    *counts = calloc(n, sizeof **counts);
    *displs = calloc(n, sizeof **displs);
    return *counts && *displs ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* The arguments of one side, and where they go. */
struct side {
    const void *buffer;
    MPI_Count count;
    struct numbers counts, displs;
    MPI_Datatype handle;
    const MPI_Datatype *handles;
    struct type **type, ***types;
    MPI_Count **into_counts;
    MPI_Aint **into_displs; /* in bytes */
};

/* Without displacements blocks are dense; without members the counts may be
 * missing. */
static int check_counts(const struct coll *coll, const struct side *side,
                        MPI_Aint unit)
{
    MPI_Aint next = 0;
    int n = coll->layout.entries;
    if (numbers_null(side->counts) && n > 0) return MPI_ERR_ARG;
    int result = arrays_new(coll, side->into_counts, side->into_displs);
    for (int i = 0; result == MPI_SUCCESS && i < n; i++) {
        MPI_Count count = numbers_at(side->counts, i);
        if (count < 0)
            result = MPI_ERR_COUNT;
        else if (side->buffer || !side->handles) /* 'w' may have addresses */
            result =
                check_buffer(side->buffer, count,
                             side->handles ? (*side->types)[i] : *side->type);
        (*side->into_counts)[i] = count;
        (*side->into_displs)[i] = numbers_null(side->displs)
                                      ? next
                                      : numbers_at(side->displs, i) * unit;
        next += count * unit;
    }
    return result;
}

/* Equal counts, blocks one after the other. */
static int check_even(const struct coll *coll, const struct side *side,
                      MPI_Aint extent)
{
    int result = arrays_new(coll, side->into_counts, side->into_displs);
    for (int i = 0; result == MPI_SUCCESS && i < coll->layout.entries; i++) {
        (*side->into_counts)[i] = side->count;
        (*side->into_displs)[i] = i * side->count * extent;
    }
    return result;
}

static int check_types(const struct coll *coll, const struct side *side)
{
    int n = coll->layout.entries;
    if (!side->handles && n > 0) return MPI_ERR_TYPE;
    struct type **types = calloc((size_t)n + 1, sizeof *types);
    *side->types = types;
    if (!types) return MPI_ERR_NO_MEM;
    for (int i = 0; i < n; i++) {
        types[i] = type_find(side->handles[i]);
        if (!types[i] || !types[i]->committed) return MPI_ERR_TYPE;
    }
    return MPI_SUCCESS;
}

static int check_side(const struct coll *coll, const struct side *side,
                      char vector)
{
    MPI_Aint unit = 1; /* displacements of 'w' are in bytes */
    int result;
    if (vector == 'w') {
        result = check_types(coll, side);
    } else {
        result = check_data(side->buffer, vector ? 0 : side->count,
                            side->handle, side->type);
        if (result == MPI_SUCCESS) unit = (*side->type)->extent;
    }
    if (result != MPI_SUCCESS) return result;
    return vector ? check_counts(coll, side, unit)
                  : check_even(coll, side, unit);
}

static struct numbers given(struct numbers displs, const struct coll_args *args)
{
    return numbers_null(displs) ? args->displs : displs;
}

int check_send(struct coll *coll, const struct coll_args *args, char vector)
{
    struct side side = {.buffer = args->sendbuf,
                        .count = args->sendcount,
                        .counts = args->sendcounts,
                        .displs = given(args->sdispls, args),
                        .handle = args->sendtype,
                        .handles = args->sendtypes,
                        .type = &coll->sendtype,
                        .types = &coll->layout.sendtypes,
                        .into_counts = &coll->layout.sendcounts,
                        .into_displs = &coll->layout.senddispls};
    return check_side(coll, &side, vector);
}

int check_recv(struct coll *coll, const struct coll_args *args, char vector)
{
    struct side side = {.buffer = args->recvbuf,
                        .count = args->recvcount,
                        .counts = args->recvcounts,
                        .displs = given(args->rdispls, args),
                        .handle = args->recvtype,
                        .handles = args->recvtypes,
                        .type = &coll->recvtype,
                        .types = &coll->layout.recvtypes,
                        .into_counts = &coll->layout.recvcounts,
                        .into_displs = &coll->layout.recvdispls};
    return check_side(coll, &side, vector);
}

const char *check_text(int error_class)
{
    switch (error_class) {
    case MPI_ERR_COUNT:
        return "negative count";
    case MPI_ERR_TYPE:
        return "invalid or uncommitted datatype";
    case MPI_ERR_OP:
        return "invalid operator, or not defined for the datatype";
    case MPI_ERR_ROOT:
        return "the root is not a member";
    case MPI_ERR_BUFFER:
        return "null buffer, or buffers must not be the same";
    case MPI_ERR_NO_MEM:
        return "out of memory";
    case MPI_ERR_TOPOLOGY:
        return "the communicator has no topology";
    case MPIX_ERR_PROC_FAILED:
        return "a process that it needs was lost";
    case MPI_ERR_COMM:
        return "not defined for intercommunicators";
    default:
        return "invalid argument";
    }
}
