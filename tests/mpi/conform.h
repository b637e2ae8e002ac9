/* conform.h - checks for the conformance programs: plain MPI, no framework, so
 * the same source runs with any MPI library and any number of ranks. */
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

/* The class of what an MPI call returned. */
static inline int conform_class(int code)
{
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

#define OK(call) CHECK((call) == MPI_SUCCESS)
#define FAILS(error_class, call) CHECK(conform_class(call) == (error_class))

/* Where a program avoids what MPICH 4.0.2 does wrong. */
static inline int conform_is_mpich(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strncmp(version, "MPICH", 5) == 0;
}

/* All ranks end alike: one that failed makes all fail. */
static inline int conform_end(void)
{
    int worst = conform_failures;
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return worst ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
