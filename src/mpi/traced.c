/* traced.c - see traced.h. */
#include "traced.h"

bool traced_begin(const struct comm *comm, int rank, MPI_Count bytes,
                  const char *function)
{
    uint64_t member = 0;
    if (comm && rank >= 0 && rank < comm_peers(comm)->size)
        member = comm_peers(comm)->ids[rank];
    uint64_t size = bytes < 0 ? UINT64_MAX : (uint64_t)bytes;
    return world.pccl && pcclTraceBegin(world.pccl, public_name(function),
                                        member, size) == pcclSuccess;
}

void traced_end(const bool *traced)
{
    if (*traced && world.pccl) (void)pcclTraceEnd(world.pccl);
}
