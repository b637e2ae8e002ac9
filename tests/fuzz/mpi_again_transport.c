/* mpi_again_transport.c - transport.c, and what sets its statics to
 * what they are when a process starts: fuzz_mpi has many lives in one. */
#include "../../src/mpi/transport.c"

#include "mpi_run.h"

void again_transport(void)
{
    atomic_store(&gone, false);
}
