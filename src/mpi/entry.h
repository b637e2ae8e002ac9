/* entry.h - macros of the functions that entries.cmake makes. */
#ifndef ENTRY_H
#define ENTRY_H

#include "coll_check.h"
#include "errhandler.h"
#include "info.h"
#include "mpi_comm.h"
#include "numbers.h"
#include "tools.h"
#include "type.h"

#include <limits.h>

/* Finds the object that the call is about, on which its errors are raised. */
#define FIND(kind, handle, error_class, what)                                  \
    struct kind *const object_ = kind##_find(handle);                          \
    if (!object_)                                                              \
    return RAISE(NULL, error_class, "invalid " what " 0x%08x",                 \
                 HANDLE_BITS(handle))
#define FIND_comm(handle) FIND(comm, handle, MPI_ERR_COMM, "communicator")
#define FIND_group(handle) FIND(group, handle, MPI_ERR_GROUP, "group")
#define FIND_info(handle) FIND(info, handle, MPI_ERR_INFO, "info")
#define FIND_type(handle) FIND(type, handle, MPI_ERR_TYPE, "datatype")
#define FIND_mpi_session(handle)                                               \
    FIND(mpi_session, handle, MPI_ERR_SESSION, "session")

#define RAISE_comm(result) error_raise_noted(object_, result, __func__)
#define RAISE_mpi_session(result) mpi_session_raise(object_, result, __func__)
#define RAISE_none(result) error_raise_noted(NULL, result, __func__)
#define RAISE_group RAISE_none
#define RAISE_info RAISE_none
#define RAISE_type RAISE_none

#define NEED(kind, pointer)                                                    \
    if (!(pointer)) return RAISE_##kind(note_argument("null " #pointer))

/* A count that the caller gets as an int. */
static inline int narrow(MPI_Count wide)
{
    return wide > INT_MAX ? MPI_UNDEFINED : (int)wide;
}

#endif
