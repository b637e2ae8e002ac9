/* look.c - inside of each copy of the MPI library: what the checks look at. */
#include "../../../src/mpi/mpi_comm.h"

__attribute__((visibility("default"))) uint32_t look_context(MPI_Comm handle);
__attribute__((visibility("default"))) int
look_members(MPI_Comm handle, uint64_t *ids, int room);

uint32_t look_context(MPI_Comm handle)
{
    return comm_find(handle)->context;
}

int look_members(MPI_Comm handle, uint64_t *ids, int room)
{
    const struct group *members = comm_members(comm_find(handle));
    for (int i = 0; i < members->size && i < room; i++)
        ids[i] = members->ids[i];
    return members->size;
}
