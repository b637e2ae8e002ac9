/* comm_split.h - makes communicators of parts of another. */
#ifndef COMM_SPLIT_H
#define COMM_SPLIT_H

#include "mpi_comm.h"

/* MPI_Comm_split. Returns a noted class. */
int split_run(struct comm *parent, int color, int key, MPI_Comm *out);

#endif
