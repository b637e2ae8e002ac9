/* mpi_progress.h - a thread that keeps communication going while the program
 * computes: it takes what has arrived, answers those who announce data, starts
 * the next steps of nonblocking collectives and hears of revocations. It takes
 * turns a thousand times a second while something is under way, and a hundred
 * times else; a program's thread that waits in a call does the same at once.
 * It never calls a function of the program, and never changes what the program
 * sees of the membership. */
#ifndef PCCL_MPI_PROGRESS_H
#define PCCL_MPI_PROGRESS_H

#include <stdbool.h>

/* False: no thread can be had; communication then goes on in calls only. */
bool mpi_progress_start(void);
void mpi_progress_stop(void);

#endif
