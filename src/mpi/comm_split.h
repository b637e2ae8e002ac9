/* comm_split.h - makes communicators of parts of another. */
#ifndef COMM_SPLIT_H
#define COMM_SPLIT_H

#include "mpi_comm.h"

/* MPI_Comm_split. Returns a noted class. */
int split_run(struct comm *parent, int color, int key, MPI_Comm *out);

/* A topology of so many members is to be that of the new communicator. Who was
 * lost while it was made, in shrink mode, has been lost as if afterwards. */
void split_lacks(struct comm *made, int members);

#endif
