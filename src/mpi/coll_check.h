/* coll_check.h - arguments of collectives: MPICH's checks. Each
 * returns an error class. */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H

#include "coll.h"
#include "numbers.h"

/* Count, datatype (out: its type) and buffer of one side. */
int check_data(const void *buffer, MPI_Count count, MPI_Datatype handle,
               struct type **type);
int check_root(const struct coll *coll, int root);
/* Operator against a type that has been checked. */
int check_op(MPI_Op handle, const struct type *type, struct mpi_op **op);
/* Counts and byte displacements (of units `unit`, NULL: dense blocks) of every
 * member into arrays for the coll. */
int check_counts(const struct coll *coll, struct numbers counts,
                 struct numbers displs, MPI_Aint unit, MPI_Count **counts_out,
                 MPI_Aint **displs_out);
/* All counts the same, blocks one after the other. */
int check_even(const struct coll *coll, MPI_Count count, MPI_Aint extent,
               MPI_Count **counts_out, MPI_Aint **displs_out);
/* A datatype for each. */
int check_types(const struct coll *coll, const MPI_Datatype handles[],
                struct type ***out);
/* Text for a class that a check found. */
const char *check_text(int error_class);

/* The parameters that a variant has more, and how it runs. */
#define REQUEST , MPI_Request *request
#define PREPARE , MPI_Info info, MPI_Request *request
#define NOW ((struct mode){MODE_NOW, NULL})
#define STARTED ((struct mode){MODE_STARTED, request})
#define PREPARED ((void)info, (struct mode){MODE_PREPARED, request})

/* Opens a function with a struct coll for the communicator. */
#define BEGIN(comm_handle)                                                     \
    struct comm *comm = comm_find(comm_handle);                                \
    if (!comm)                                                                 \
        return error_raise(NULL, MPI_ERR_COMM, function,                       \
                           "invalid communicator 0x%08x",                      \
                           (unsigned)(comm_handle));                           \
    struct coll coll = {.comm = comm, .function = function};                   \
    coll_begin(&coll)
#define CHECK(call)                                                            \
    do {                                                                       \
        int check_result = (call);                                             \
        if (check_result != MPI_SUCCESS)                                       \
            return coll_refuse(&coll, check_result, check_text(check_result)); \
    } while (0)

#endif
