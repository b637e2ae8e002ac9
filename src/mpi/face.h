/* face.h - what the two binary interfaces differ in beyond the values of
 * <mpi.h>. The sources are compiled once against each header: MPICH's ABI,
 * where a handle is an int, and the standard ABI, where it is a pointer to an
 * incomplete type. No call converts anything. */
#ifndef FACE_H
#define FACE_H

/* Makes <mpi.h> give its prototypes default visibility, and leave the
 * conversions of handles functions. */
#define PCCL_MPI_BUILD 1
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef PCCL_MPI_FACE_ABI

#include "face_abi.h"

/* A handle of any kind; converts to and from MPI_Comm and the others. */
typedef void *any_handle;
/* Predefined datatypes and operators differ in the low byte. */
enum { TYPE_PREFIX = 0x200, TYPE_MASK = ~0xff, OP_PREFIX = 0, OP_MASK = ~0x3f };
#define STATUS_LOW(status) (status)->MPI_internal[0]
#define STATUS_HIGH(status) (status)->MPI_internal[1]
/* Predefined keyvals, from the first to the last one. */
#define KEY_FIRST MPI_TAG_UB
#define KEY_LAST MPIX_FT
#define KEY_OF(key) (key)
#define KEY_OF_FORTRAN(key) ((void)(key), false)
#define PVAR_SESSION MPI_T_pvar_session_t
#define PVAR_HANDLE MPI_T_pvar_handle_t
#define EVENT_REGISTRATION MPI_T_event_registration_t
#define EVENT_INSTANCE MPI_T_event_instance_t
#define FACE_NAME "the standard ABI of MPI 5.0"

#else

typedef int any_handle;
enum {
    TYPE_PREFIX = 0x4c000000,
    TYPE_MASK = ~0xffff,
    OP_PREFIX = 0x58000000,
    OP_MASK = ~0x3f
};
#define STATUS_LOW(status) (status)->count_lo
#define STATUS_HIGH(status) (status)->count_hi_and_cancelled
/* Even numbers are Fortran's names for the odd ones. */
#define KEY_FIRST MPI_TAG_UB
#define KEY_LAST (MPIX_FT + 1)
#define KEY_OF(key) (((key)-1) | 1)
#define KEY_OF_FORTRAN(key) ((key) % 2 == 0)
#define PVAR_SESSION MPIR_T_pvar_session_s
#define PVAR_HANDLE MPIR_T_pvar_handle_s
#define EVENT_REGISTRATION MPIR_T_event_registration_s
#define EVENT_INSTANCE MPIR_T_event_instance_s
#define FACE_NAME "the ABI of MPICH " MPICH_VERSION

#endif

/* All handles that this library makes, and the predefined ones, fit. */
#define HANDLE_BITS(handle) ((unsigned)(uintptr_t)(handle))
#define HANDLE_OF(bits) ((any_handle)(uintptr_t)(unsigned)(bits))

/* Whether a handle from the program can be one of ours at all. */
static inline int handle_fits(any_handle handle)
{
    return (uintptr_t)handle == (uintptr_t)HANDLE_OF(HANDLE_BITS(handle));
}

#endif
