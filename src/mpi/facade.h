/* facade.h - handles, errors and locks, shared by all files of the MPI facade.
 *
 * The facade is MPI over the public calls of pccl.h, in two binary interfaces
 * (face.h). Of the library beneath it, it includes only the view of the members
 * (peer/hold_view.h).
 *
 * Names. Each function is defined as PMPI_X; MPI_PUBLIC(X) adds MPI_X as a weak
 * alias of the same address, so a profiling tool can take MPI_X over. Most are
 * made of table/functions.txt (entries.cmake), which says what mpi_X is called
 * with: it notes its error and returns the class, and PMPI_X raises it.
 *
 * Locks. facade_lock() guards the lists of handles, attributes and requests. It
 * is never held while a pccl call may block or a function of the user runs. */
#ifndef FACADE_H
#define FACADE_H

#include "face.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define MPI_PUBLIC(name)                                                       \
    extern __typeof__(PMPI_##name) MPI_##name                                  \
        __attribute__((weak, alias("PMPI_" #name)))
#define MPIX_PUBLIC(name)                                                      \
    extern __typeof__(PMPIX_##name) MPIX_##name                                \
        __attribute__((weak, alias("PMPIX_" #name)))

struct comm;
struct group;

void facade_lock(void);
void facade_unlock(void);

/* ------------------------------------------------------------- handles */

enum handle_kind {
    HANDLE_COMM = 1,
    HANDLE_GROUP = 2,
    HANDLE_TYPE = 3,
    HANDLE_FILE = 4,
    HANDLE_ERRHANDLER = 5,
    HANDLE_OP = 6,
    HANDLE_INFO = 7,
    HANDLE_KEYVAL = 9,
    HANDLE_REQUEST = 11,
    HANDLE_SESSION = 14,
    HANDLE_KINDS = 15
};

/* First member of every object that has a handle. The handle owns one
 * reference; every use that outlives a call owns another. */
struct object {
    any_handle handle; /* 0: none yet */
    atomic_int references;
    void (*destroy)(struct object *object);
};

/* Sets references to 1; the object has no handle yet. */
void object_init(struct object *object, void (*destroy)(struct object *));
void object_retain(struct object *object);
void object_release(struct object *object);

/* Assigns a handle of the kind; false: no memory or table full. */
bool handle_open(enum handle_kind kind, struct object *object);
/* Closes the handle; its reference remains. */
void handle_close(struct object *object);
/* Closes it, but no other object gets the handle until this one shows it again.
 * Neither takes a lock. */
void handle_hide(struct object *object);
void handle_show(struct object *object);
/* NULL unless the handle is an open dynamic one of this kind. Safe from any
 * thread, without lock. */
struct object *handle_find(enum handle_kind kind, any_handle handle);

/* Calls visit for every open handle of the kind, with facade_lock held. */
void handle_each(enum handle_kind kind, void (*visit)(struct object *object));

/* The name of an object, guarded by facade_lock. Returns a noted class. */
int object_set_name(char name[MPI_MAX_OBJECT_NAME], const char *to);

/* -------------------------------------------------------------- errors */

/* Records the text for MPI_Error_string and calls the error handler of the
 * communicator (NULL: MPI_COMM_WORLD's, like MPICH). Returns the class if the
 * handler returns. */
int error_raise(struct comm *comm, int error_class, const char *function,
                const char *format, ...) __attribute__((format(printf, 4, 5)));
#define RAISE(comm, error_class, ...)                                          \
    error_raise(comm, error_class, __func__, __VA_ARGS__)
#define RAISE_NO_MEMORY(comm) RAISE(comm, MPI_ERR_NO_MEM, "out of memory")
#define RAISE_ARG(comm, what)                                                  \
    RAISE(comm, MPI_ERR_ARG, "invalid argument: " what)

/* Address of MPI_LASTUSEDCODE's value. */
int *error_last_used_code(void);

/* For the functions that faces.cmake makes. */
int unsupported_comm(MPI_Comm comm, const char *function);
int unsupported(const char *function);

/* MPI_X, of the __func__ of PMPI_X; other names as they are. */
static inline const char *public_name(const char *function)
{
    return function[0] == 'P' && function[1] == 'M' ? function + 1 : function;
}

/* Only records the text, for an error that is raised later. */
int error_note(int error_class, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define note_argument(what) error_note(MPI_ERR_ARG, "invalid argument: " what)
#define note_no_memory() error_note(MPI_ERR_NO_MEM, "out of memory")
/* Raises an error whose text this thread has recorded by error_note. */
int error_raise_noted(struct comm *comm, int error_class, const char *function);

/* Ends the job with the message on stderr. Does not return. */
_Noreturn void env_abort(int code, const char *message);
/* Leaves the run, which goes on without this rank, and ends the process with
 * status 0. Nothing may be under way. */
_Noreturn void env_leave(void);

/* Whether a call is between MPI_Init and MPI_Finalize, or a session exists. */
bool env_active(void);
/* This process was forked from a rank: no call may touch the rank's run. */
bool env_forked(void);
/* Why no call can work now, for the end of an error's text; or "". */
const char *env_outside(void);
/* Only between MPI_Init and MPI_Finalize: MPI_COMM_WORLD and _SELF exist. */
bool env_world_active(void);
/* For sessions. Connects to the run if needed; errors end the process. */
void env_session_begin(int thread_level, const char *function);
void env_session_end(void);
int env_thread_level(void);

/* The bodies of the functions that entries.cmake makes. */
struct coll_args;
struct info;
struct mode;
struct mpi_session;
struct numbers;
struct type;
#include "bodies.h"

#endif
