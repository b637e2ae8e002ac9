/* elastic.h - the list of shared state of mpi_pccl.h. */
#ifndef ELASTIC_H
#define ELASTIC_H

#include <mpi_pccl.h>
#include <pccl.h>
#include <stdbool.h>

struct PCCL_Shared_state {
    uint64_t revision;
    bool synced; /* the next synchronization has the next revision */
    int count, room;
    pcclTensorInfo_t *infos; /* names are owned */
};

#endif
