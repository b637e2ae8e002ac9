/* coll_check.c - checks arguments of collectives. */
#include "coll_check.h"
#include "rank_use.h"

#include <stdlib.h>

int check_data(const void *buffer, MPI_Count count, MPI_Datatype handle,
               struct type **type)
{
    if (count < 0) return MPI_ERR_COUNT;
    *type = type_find(handle);
    if (!*type || !(*type)->committed) return MPI_ERR_TYPE;
    if (buffer == MPI_IN_PLACE && count > 0) return MPI_ERR_BUFFER;
    /* MPI_BOTTOM is NULL too, so NULL is an error for predefined types only. */
    if (!buffer && count > 0 && (*type)->predefined && (*type)->size > 0)
        return MPI_ERR_BUFFER;
    return MPI_SUCCESS;
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

int check_counts(const struct coll *coll, struct numbers counts,
                 struct numbers displs, MPI_Aint unit, MPI_Count **counts_out,
                 MPI_Aint **displs_out)
{
    MPI_Aint next = 0;
    if (numbers_null(counts)) return MPI_ERR_ARG;
    int result = arrays_new(coll, counts_out, displs_out);
    for (int i = 0; result == MPI_SUCCESS && i < coll->layout.entries; i++) {
        MPI_Count count = numbers_at(counts, i);
        if (count < 0) result = MPI_ERR_COUNT;
        (*counts_out)[i] = count;
        (*displs_out)[i] =
            numbers_null(displs) ? next : numbers_at(displs, i) * unit;
        next += count * unit;
    }
    return result;
}

int check_even(const struct coll *coll, MPI_Count count, MPI_Aint extent,
               MPI_Count **counts_out, MPI_Aint **displs_out)
{
    int result = arrays_new(coll, counts_out, displs_out);
    for (int i = 0; result == MPI_SUCCESS && i < coll->layout.entries; i++) {
        (*counts_out)[i] = count;
        (*displs_out)[i] = i * count * extent;
    }
    return result;
}

int check_types(const struct coll *coll, const MPI_Datatype handles[],
                struct type ***out)
{
    int n = coll->layout.entries;
    if (!handles && n > 0) return MPI_ERR_TYPE;
    struct type **types = calloc((size_t)n + 1, sizeof *types);
    *out = types;
    if (!types) return MPI_ERR_NO_MEM;
    for (int i = 0; i < n; i++) {
        types[i] = type_find(handles[i]);
        if (!types[i] || !types[i]->committed) return MPI_ERR_TYPE;
    }
    return MPI_SUCCESS;
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
