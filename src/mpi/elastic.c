/* elastic.c - the calls of mpi_pccl.h. */
#include "coll.h"
#include "comm.h"

#include <mpi_pccl.h>

static int elastic_error(struct comm *comm, pcclResult_t result,
                         const char *function)
{
    char detail[256] = "";
    (void)pcclGetLastError(world.pccl, detail, sizeof detail);
    int error_class = result == pcclPendingAsyncOps ? MPI_ERR_PENDING
                      : result == pcclInvalidUsage  ? MPI_ERR_OTHER
                      : result == pcclRankConnectionLost
                          ? MPIX_ERR_PROC_FAILED
                          : MPI_ERR_OTHER;
    return error_raise(comm, error_class, function, "%s%s%s",
                       pcclGetErrorString(result), *detail ? ": " : "", detail);
}

int PCCL_Update_topology(MPI_Comm handle)
{
    COMM_OR_RETURN(comm, handle);
    if (!comm->follows_world)
        return RAISE(comm, MPI_ERR_COMM,
                     "not MPI_COMM_WORLD or a duplicate of it");
    if (!world.pccl) return MPI_SUCCESS;
    pcclResult_t result = pcclUpdateTopology(world.pccl);
    if (result != pcclSuccess) return elastic_error(comm, result, __func__);
    if (!world_refresh()) return RAISE_NO_MEMORY(comm);
    world_restart_sequences();
    return MPI_SUCCESS;
}

int PCCL_Are_peers_pending(MPI_Comm handle, int *flag)
{
    COMM_OR_RETURN(comm, handle);
    bool pending = false;
    if (!flag) return RAISE_ARG(comm, "null flag");
    if (!comm->follows_world)
        return RAISE(comm, MPI_ERR_COMM,
                     "not MPI_COMM_WORLD or a duplicate of it");
    if (world.pccl) {
        pcclResult_t result = pcclArePeersPending(world.pccl, &pending);
        if (result != pcclSuccess) return elastic_error(comm, result, __func__);
    }
    *flag = pending;
    return MPI_SUCCESS;
}
