/* elastic.h - the list of shared state of mpi_pccl.h. */
#ifndef ELASTIC_H
#define ELASTIC_H

#include "mpi_comm.h"

#include <mpi_pccl.h>
#include <pccl.h>
#include <stdbool.h>

/* A call for MPI_COMM_WORLD or a duplicate of it. */
#define WORLD_OR_RETURN(comm, handle)                                          \
    COMM_OR_RETURN(comm, handle);                                              \
    if (!(comm)->follows_world)                                                \
    return RAISE(comm, MPI_ERR_COMM, "not MPI_COMM_WORLD or a duplicate of it")

/* Notes why a call of pccl has failed; returns the class. */
int elastic_note(pcclComm_t *pccl, int error_class, pcclResult_t result);

struct PCCL_Shared_state {
    uint64_t revision;
    bool synced; /* the next synchronization has the next revision */
    int count, room;
    pcclTensorInfo_t *infos; /* names are owned */
};

#endif
