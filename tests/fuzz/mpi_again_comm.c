/* mpi_again_comm.c - mpi_comm.c, and what sets its statics to
 * what they are when a process starts: fuzz_mpi has many lives in one. */
#include "../../src/mpi/mpi_comm.c"

#include "mpi_run.h"

/* The predefined communicators are as at the start, too. */
void again_comm(void)
{
    static struct comm world_first, self_first;
    static bool known;
    if (!known) {
        memcpy(&world_first, &comm_world, sizeof comm_world);
        memcpy(&self_first, &comm_self, sizeof comm_self);
        known = true;
    }
    memcpy(&comm_world, &world_first, sizeof comm_world);
    memcpy(&comm_self, &self_first, sizeof comm_self);
    atomic_store(&context_next, CONTEXT_FIRST);
}
