/* errhandler.h - error handlers of communicators, sessions, files and
 * windows. */
#ifndef ERRHANDLER_H
#define ERRHANDLER_H

#include "facade.h"

struct errhandler {
    struct object object;
    enum handle_kind owner; /* kind of object that it handles errors of */
    void (*function)(void); /* cast back to the owner's before the call */
};

/* State in an object: a predefined handler in *kind, or 0 and the handler in
 * *slot, which facade_lock guards. */

/* False: not a handle, or for another kind of object. */
bool errhandler_set(atomic_int *kind, struct errhandler **slot,
                    MPI_Errhandler handle, enum handle_kind owner);
/* A handle with a reference of its own. */
MPI_Errhandler errhandler_get(atomic_int *kind, struct errhandler **slot);
/* Raises an error, whose text is noted, on an object that is no communicator;
 * `object` is the address of its handle. Returns the class if the handler
 * returns. */
int errhandler_call(atomic_int *kind, struct errhandler **slot, void *object,
                    int code, const char *function);
int errhandler_create(enum handle_kind owner, void (*function)(void),
                      MPI_Errhandler *out, const char *name);

#endif
