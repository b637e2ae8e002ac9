/* extension.c - extensions of MPICH that programs ask for. */
#include "facade.h"

/* MPI calls do not accept accelerator memory. */
MPIX_PUBLIC(Query_cuda_support);
int PMPIX_Query_cuda_support(void)
{
    return 0;
}

MPIX_PUBLIC(Query_ze_support);
int PMPIX_Query_ze_support(void)
{
    return 0;
}

MPIX_PUBLIC(Query_hip_support);
int PMPIX_Query_hip_support(void)
{
    return 0;
}

int mpi_GPU_query_support(int type, int *is_supported)
{
    (void)type;
    *is_supported = 0;
    return MPI_SUCCESS;
}
