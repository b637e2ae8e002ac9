/* mpi-ext.h - fault tolerance (ULFM) under the names that its programs use.
 *
 * Open MPI has the functions MPIX_Comm_revoke and the others in a header of
 * this name. Here <mpi.h> and mpi_pccl.h declare them; this header gives both,
 * and also each name without X, as MPI's proposal spells it. Works with mpicc
 * and mpicc_abi. Their behaviour is that of mpi_pccl.h. */
#ifndef PCCL_MPI_EXT_H
#define PCCL_MPI_EXT_H

#include <mpi.h>

/* Feature macros of Open MPI. */
#define OMPI_HAVE_MPI_EXT 1
#define OMPI_HAVE_MPI_EXT_FTMPI 1
#define MPIX_HAVE_FTMPI 1
#define OMPI_HAVE_MPIX_COMM_ISHRINK 1

#define MPI_FT MPIX_FT
#define MPI_ERR_PROC_FAILED MPIX_ERR_PROC_FAILED
#define MPI_ERR_PROC_FAILED_PENDING MPIX_ERR_PROC_FAILED_PENDING
#define MPI_ERR_PENDING_PROC_FAILED MPIX_ERR_PROC_FAILED_PENDING
#define MPI_ERR_REVOKED MPIX_ERR_REVOKED

#define MPI_Comm_revoke MPIX_Comm_revoke
#define MPI_Comm_is_revoked MPIX_Comm_is_revoked
#define MPI_Comm_failure_ack MPIX_Comm_failure_ack
#define MPI_Comm_failure_get_acked MPIX_Comm_failure_get_acked
#define MPI_Comm_get_failed MPIX_Comm_get_failed
#define MPI_Comm_ack_failed MPIX_Comm_ack_failed
#define MPI_Comm_shrink MPIX_Comm_shrink
#define MPI_Comm_ishrink MPIX_Comm_ishrink
#define MPI_Comm_agree MPIX_Comm_agree
#define MPI_Comm_iagree MPIX_Comm_iagree

#endif
