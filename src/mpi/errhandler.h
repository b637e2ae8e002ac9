/* errhandler.h - error handlers of communicators, sessions, files and
 * windows. */
#ifndef ERRHANDLER_H
#define ERRHANDLER_H

#include "facade.h"

struct errhandler {
    struct object object;
    enum handle_kind owner; /* kind of object that it handles errors of */
    void (*function)(void); /* cast back to the owner's before the call */
    /* Of MPIX_X_create_errhandler_x: called instead, with `extra`. */
    MPIX_Comm_errhandler_function_x *function_x;
    MPIX_Destructor_function *destructor; /* of `extra`, or NULL */
    void *extra;
};

/* State in an object: a predefined handler in *kind, or 0 and the handler in
 * *slot, which facade_lock guards. */
typedef _Atomic(MPI_Errhandler) errhandler_kind;

/* False: not a handle, or for another kind of object. */
bool errhandler_set(errhandler_kind *kind, struct errhandler **slot,
                    MPI_Errhandler handle, enum handle_kind owner);
/* A handle with a reference of its own. */
MPI_Errhandler errhandler_get(errhandler_kind *kind, struct errhandler **slot);
/* Raises an error, whose text is noted, on an object that is no communicator;
 * `object` is the address of its handle. Returns the class if the handler
 * returns. */
int errhandler_call(errhandler_kind *kind, struct errhandler **slot,
                    void *object, int code, const char *function);
/* Returns a noted class. */
int errhandler_create(const struct errhandler *from, MPI_Errhandler *out);
/* NULL: not a session. */
struct mpi_session *mpi_session_find(MPI_Session handle);
/* Raises an error, whose text is noted, on the session. */
int mpi_session_raise(struct mpi_session *session, int error_class,
                      const char *function);

#endif
