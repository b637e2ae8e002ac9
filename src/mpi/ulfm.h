/* ulfm.h - ULFM calls that MPICH's header lacks; Open MPI (mpi-ext.h) and later
 * MPICH versions have them. */
#ifndef ULFM_H
#define ULFM_H

#include "facade.h"

/* Whether the member is among the acknowledged failures. */
bool comm_acknowledged(const struct comm *comm, uint64_t member);

#pragma GCC visibility push(default)
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed);
int MPIX_Comm_ack_failed(MPI_Comm comm, int wanted, int *acknowledged);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *out, MPI_Request *request);
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed);
int PMPIX_Comm_ack_failed(MPI_Comm comm, int wanted, int *acknowledged);
int PMPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int PMPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *out, MPI_Request *request);
#pragma GCC visibility pop

#endif
