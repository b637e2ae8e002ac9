/* mpi_pccl.h - what an MPI program may ask of PCCL/MPI beyond MPI.
 *
 * Include it after or instead of <mpi.h>, link -lmpi_pccl. An MPI program
 * needs none of this to run, nor to survive the death of a rank
 * (PCCL_ON_FAILURE, README.md); it needs the first call to let new ranks in
 * while it runs.
 *
 * The world changes only where the program lets it: MPI_Comm_size and
 * MPI_Comm_rank of MPI_COMM_WORLD and of its duplicates give new values after
 * PCCL_Update_topology, and with PCCL_ON_FAILURE=shrink after a collective that
 * was repeated by the survivors; never in between. Survivors keep their order,
 * newcomers come last. Communicators made by MPI_Comm_split and the like keep
 * the members they were made of.
 *
 * Errors are raised as in MPI: through the error handler of the communicator,
 * which by default ends the job. */
#ifndef MPI_PCCL_H
#define MPI_PCCL_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PCCL_EXPORT
#if defined(_WIN32)
#define PCCL_EXPORT
#else
#define PCCL_EXPORT __attribute__((visibility("default")))
#endif
#endif

/* Lets waiting newcomers in and takes losses into account. Collective over all
 * ranks of the run: blocks until each of them has called. `comm` must be
 * MPI_COMM_WORLD or a duplicate of it; all of them change together.
 *
 * A newcomer is inside MPI_Init until then. Newcomers have made no collective
 * and no communicator: what they must know comes to them by collectives that
 * the program makes after the update, for instance a broadcast from rank 0.
 *
 * Started by mpiexec -n 1 or without launcher it does nothing.
 *
 * MPI_SUCCESS          the new view is in force.
 * MPI_ERR_COMM         not the world or a duplicate of it.
 * MPI_ERR_PENDING      a nonblocking collective of this rank is not complete.
 * MPI_ERR_OTHER        this rank was evicted, the run is over, or another rank
 *                      is inside a collective that this one never called. */
PCCL_EXPORT int PCCL_Update_topology(MPI_Comm comm);

/* Sets *flag to 1 if newcomers wait for PCCL_Update_topology, else to 0.
 * Collective over all ranks of the run, who all get the same answer, so a
 * program may call it in each step and update only when needed. May run beside
 * collectives, from another thread.
 *
 * MPI_SUCCESS          *flag is set.
 * MPI_ERR_COMM         not the world or a duplicate of it.
 * MPI_ERR_OTHER        this rank was evicted or the run is over. */
PCCL_EXPORT int PCCL_Are_peers_pending(MPI_Comm comm, int *flag);

#ifdef __cplusplus
}
#endif

#endif
