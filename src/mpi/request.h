/* request.h - requests: one object for nonblocking, persistent and
 * generalized operations. */
#ifndef REQUEST_H
#define REQUEST_H

#include "facade.h"

struct coll;
struct comm;
struct request;

struct request_kind {
    /* Tries to complete; true when complete, with status and error filled. */
    bool (*progress)(struct request *request);
    /* Makes an inactive persistent request active. Returns a noted class. */
    int (*start)(struct request *request);
    /* Best effort; NULL: cannot be cancelled. */
    int (*cancel)(struct request *request);
    /* Called once when the completion is reported; an error that it returns is
     * the request's if there was none. NULL: nothing to do. */
    int (*finish)(struct request *request);
    /* Whether it is complete, with status and error filled; moves nothing. All
     * of a kind that has it are moved by coll_progress_all(), or by the
     * progress of one of them (messages). Or NULL. */
    bool (*ended)(struct request *request);
    bool messages; /* its progress moves the messages of all requests */
    /* Releases what the kind owns; the request is inactive or complete. */
    void (*release)(struct request *request);
};

struct request {
    struct object object;
    const struct request_kind *kind;
    struct comm *comm; /* for its error handler, one reference; or NULL */
    bool persistent;
    bool active;          /* started and not yet reported complete */
    struct request *next; /* in the list of dropped ones */
    int error;
    MPI_Status status;
    void *state; /* of the kind */
};

/* NULL: no memory. The communicator is retained. */
struct request *request_new(const struct request_kind *kind, struct comm *comm,
                            void *state);
/* Whether the object behind a handle is a request of this kind. */
bool request_is(const struct request *request, const struct request_kind *kind);
int request_publish(struct request *request, MPI_Request *out);
/* Blocks until the request is complete; leaves the error in it. */
void request_await(struct request *request);

/* Lets an active request end on its own and be freed then. */
void request_drop(struct request *request);
/* Frees dropped requests that have ended. */
void requests_reap(void);

void status_empty(MPI_Status *status);
void status_set_count(MPI_Status *status, MPI_Count size);
MPI_Count status_count(const MPI_Status *status);

#endif
