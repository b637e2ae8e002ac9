/* mpi_progress.h - the progress thread of the facade: it makes progress while
 * the program computes. It receives messages, replies to announcements, starts
 * the next steps of nonblocking collectives, and receives revocations. It polls
 * a thousand times per second while an operation is in flight, otherwise a
 * hundred times, and less often where many ranks share a processor; a program's
 * thread that waits in a call polls continuously. It never calls a function of
 * the program, and never changes the membership that the program sees. */
#ifndef PCCL_MPI_PROGRESS_H
#define PCCL_MPI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* False: no thread is available; then only calls make progress. */
bool mpi_progress_start(void);
void mpi_progress_stop(void);
/* Of this host; processors 0: unknown. */
void mpi_progress_crowd(uint32_t members, uint32_t processors);

#endif
