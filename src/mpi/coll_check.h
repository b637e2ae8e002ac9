/* coll_check.h - checks of collectives' arguments, the same as MPICH's. Each
 * returns an error class. */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H

#include "coll.h"
#include "numbers.h"

/* Checks count, datatype (out: its type) and buffer of one side. */
int check_data(const void *buffer, MPI_Count count, MPI_Datatype handle,
               struct type **type);
int check_root(const struct coll *coll, int root);
/* Checks the operator for a type that was checked before. */
int check_op(MPI_Op handle, const struct type *type, struct mpi_op **op);
/* Converts counts and byte displacements (in units of `unit`, NULL: dense
 * blocks) of every member to arrays of the coll. */
int check_counts(const struct coll *coll, struct numbers counts,
                 struct numbers displs, MPI_Aint unit, MPI_Count **counts_out,
                 MPI_Aint **displs_out);
/* Equal counts, blocks one after the other. */
int check_even(const struct coll *coll, MPI_Count count, MPI_Aint extent,
               MPI_Count **counts_out, MPI_Aint **displs_out);
/* A datatype per member. */
int check_types(const struct coll *coll, const MPI_Datatype handles[],
                struct type ***out);
/* Error text for a class that a check returned. */
const char *check_text(int error_class);

/* Additional parameters of a variant, and its mode. */
#define REQUEST , MPI_Request *request
#define PREPARE , MPI_Info info, MPI_Request *request
#define NOW ((struct mode){.how = MODE_NOW})
#define STARTED ((struct mode){.how = MODE_STARTED, .request = request})
#define PREPARED                                                               \
    ((void)info, (struct mode){.how = MODE_PREPARED, .request = request})

#define FIND(comm_handle)                                                      \
    struct comm *comm = comm_find(comm_handle);                                \
    if (!comm)                                                                 \
    return error_raise(NULL, MPI_ERR_COMM, function,                           \
                       "invalid communicator 0x%08x",                          \
                       HANDLE_BITS(comm_handle))
#define OPEN                                                                   \
    struct coll coll;                                                          \
    coll_open(&coll, comm, function)
/* Begins a function with a struct coll for the communicator. */
#define BEGIN(comm_handle)                                                     \
    FIND(comm_handle);                                                         \
    OPEN
/* Likewise, unless a kept one does it; the rest is its struct coll_key. */
#define BEGIN_OR_AGAIN(comm_handle, sendbuf, recvbuf, ...)                     \
    FIND(comm_handle);                                                         \
    const struct coll_key key = {__VA_ARGS__};                                 \
    int again;                                                                 \
    if (mode.how == MODE_NOW &&                                                \
        coll_again(comm, &key, sendbuf, recvbuf, function, &again))            \
        return again;                                                          \
    OPEN;                                                                      \
    coll.key = key
#define CHECK(call)                                                            \
    do {                                                                       \
        int check_result = (call);                                             \
        if (check_result != MPI_SUCCESS)                                       \
            return coll_refuse(&coll, check_result, check_text(check_result)); \
    } while (0)

#endif
