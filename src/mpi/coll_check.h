/* coll_check.h - arguments of collectives: MPICH's checks, and the count
 * arrays in their two widths. Each check returns an error class. */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H

#include "coll.h"

/* An argument array of ints or of 64-bit numbers. */
struct numbers {
    const int *narrow;
    const long *wide;
};

static inline struct numbers numbers_int(const int *p)
{
    return (struct numbers){p, NULL};
}
static inline struct numbers numbers_MPI_Count(const MPI_Count *p)
{
    return (struct numbers){NULL, p};
}
static inline struct numbers numbers_MPI_Aint(const MPI_Aint *p)
{
    return (struct numbers){NULL, p};
}
static inline bool numbers_null(struct numbers n)
{
    return !n.narrow && !n.wide;
}
static inline long numbers_at(struct numbers n, int i)
{
    return n.narrow ? n.narrow[i] : n.wide[i];
}

/* Count, datatype (out: its type) and buffer of one side. */
int check_data(const void *buffer, MPI_Count count, MPI_Datatype handle,
               struct type **type);
int check_root(const struct coll *coll, int root);
/* Operator against a type that has been checked. */
int check_op(MPI_Op handle, const struct type *type, struct op **op);
/* Counts and byte displacements (of units `unit`, NULL: dense blocks) of every
 * member into arrays for the coll. */
int check_counts(const struct coll *coll, struct numbers counts,
                 struct numbers displs, MPI_Aint unit, MPI_Count **counts_out,
                 MPI_Aint **displs_out);
/* All counts the same, blocks one after the other. */
int check_even(const struct coll *coll, MPI_Count count, MPI_Aint extent,
               MPI_Count **counts_out, MPI_Aint **displs_out);
/* Text for a class that a check found. */
const char *check_text(int error_class);

/* The parameter that a nonblocking variant has more. */
#define REQUEST , MPI_Request *request

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
