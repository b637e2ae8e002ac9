/* ulfm.h - calls of User-Level Failure Mitigation that MPICH's header does not
 * have; Open MPI's do (mpi-ext.h), and later MPICH's some. */
#ifndef ULFM_H
#define ULFM_H

#include "facade.h"

#pragma GCC visibility push(default)
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed);
int MPIX_Comm_ack_failed(MPI_Comm comm, int wanted, int *acknowledged);
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed);
int PMPIX_Comm_ack_failed(MPI_Comm comm, int wanted, int *acknowledged);
#pragma GCC visibility pop

#endif
