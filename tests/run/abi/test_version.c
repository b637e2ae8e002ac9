/* test_version.c - the version that the headers state is that of the project,
 * from which the libraries, pkg-config and find_package have it. */
#include <pccl.h>
#ifdef TEST_MPI
#include <mpi_pccl.h> /* defines the same macros: the compiler compares them */
#endif

#include <stdio.h>
#include <string.h>

#define IS(macro, value) _Static_assert(macro == (value), #macro)

IS(PCCL_VERSION_MAJOR, PROJECT_MAJOR);
IS(PCCL_VERSION_MINOR, PROJECT_MINOR);
IS(PCCL_VERSION_PATCH, PROJECT_PATCH);
IS(PCCL_VERSION, PROJECT_MAJOR * 10000 + PROJECT_MINOR * 100 + PROJECT_PATCH);

#if PCCL_VERSION < PROJECT_MAJOR * 10000
#error "PCCL_VERSION is not for the preprocessor"
#endif

int main(void)
{
    if (strcmp(PCCL_VERSION_STRING, PROJECT_STRING) == 0) return 0;
    printf("the headers state %s, the project %s\n", PCCL_VERSION_STRING,
           PROJECT_STRING);
    return 1;
}
