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
/* The arguments of a collective that moves blocks, by their names in MPI. */
struct coll_args {
    /* 0: blocks of equal size; 'v': each has a count and a displacement; 'w': a
     * datatype too */
    char vector;
    int root;
    const void *sendbuf;
    void *recvbuf;
    MPI_Count sendcount, recvcount;
    struct numbers sendcounts, recvcounts; /* of every member */
    struct numbers displs, sdispls, rdispls;
    MPI_Datatype sendtype, recvtype;
    const MPI_Datatype *sendtypes, *recvtypes;
};

/* Checks the blocks of one side, of that vector, and converts them to arrays of
 * the coll. */
int check_send(struct coll *coll, const struct coll_args *args, char vector);
int check_recv(struct coll *coll, const struct coll_args *args, char vector);
/* Error text for a class that a check returned. */
const char *check_text(int error_class);

/* Begins a function with a struct coll for the communicator. */
#define OPEN(comm, function)                                                   \
    struct coll coll;                                                          \
    coll_open(&coll, comm, function)
/* Likewise, unless a kept one does it; the rest is its struct coll_key. */
#define OPEN_OR_AGAIN(comm, sendbuf, recvbuf, mode, ...)                       \
    const struct coll_key key = {__VA_ARGS__};                                 \
    int again;                                                                 \
    if ((mode)->how == MODE_NOW &&                                             \
        coll_again(comm, &key, sendbuf, recvbuf, (mode)->function, &again))    \
        return again;                                                          \
    OPEN(comm, (mode)->function);                                              \
    coll.key = key
#define CHECK(call)                                                            \
    do {                                                                       \
        int check_result = (call);                                             \
        if (check_result != MPI_SUCCESS)                                       \
            return coll_refuse(&coll, check_result, check_text(check_result)); \
    } while (0)

#endif
