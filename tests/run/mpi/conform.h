/* conform.h - checks for the conformance programs. They use plain MPI without a
 * framework, so they run with any MPI library and any number of ranks. */
#ifndef CONFORM_H
#define CONFORM_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int conform_failures;

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,       \
                    #condition);                                               \
            conform_failures++;                                                \
        }                                                                      \
    } while (0)

/* The error class of a result code. */
static inline int conform_class(int code)
{
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

#define OK(call) CHECK((call) == MPI_SUCCESS)
#define FAILS(error_class, call) CHECK(conform_class(call) == (error_class))

/* True for MPICH: programs avoid errors of MPICH 4.0.2. */
static inline int conform_is_mpich(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strncmp(version, "MPICH", 5) == 0;
}

/* All ranks end with the same status: a failure of one rank fails all. */
static inline int conform_end(void)
{
    int worst = conform_failures;
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return worst ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
