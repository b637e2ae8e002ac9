/* request.h - requests: one type for nonblocking, persistent and generalized
 * operations. */
#ifndef REQUEST_H
#define REQUEST_H

#include "facade.h"

struct coll;
struct comm;
struct request;
struct call_wait;

struct request_kind {
    /* Makes progress; true when complete, with status and error set. */
    bool (*progress)(struct request *request);
    /* Makes an inactive persistent request active. Returns a noted class. */
    int (*start)(struct request *request);
    /* Best effort; NULL: not supported. */
    int (*cancel)(struct request *request);
    /* Called once when the completion is reported. Its error becomes the
     * request's if there was none. NULL: nothing to do. */
    int (*finish)(struct request *request);
    /* Whether it is complete, with status and error set; makes no progress. All
     * requests of a kind with `ended` make progress by coll_progress_all(), or
     * by the progress of one of them (messages). Or NULL. */
    bool (*ended)(struct request *request);
    bool messages; /* its progress moves the messages of all requests */
    /* A call waits for it: tells what for. NULL: nothing in particular. */
    void (*tell)(struct request *request, struct call_wait *w,
                 const char *function);
    /* Releases the memory of the kind; the request is inactive or complete. */
    void (*release)(struct request *request);
};

struct request {
    struct object object;
    const struct request_kind *kind;
    struct comm *comm; /* holds a reference, for its error handler; or NULL */
    bool persistent;
    bool active;          /* started and not yet reported complete */
    bool pooled;          /* its memory and its handle are used again */
    bool shared;          /* see request_over() */
    struct request *next; /* in the list of dropped requests */
    int error;
    MPI_Status status;
    void *state; /* of the kind */
};

enum { REQUEST_STATE_MAX = 288 };

/* NULL: no memory. Retains the communicator. */
struct request *request_new(const struct request_kind *kind, struct comm *comm,
                            void *state);
/* A request from a pool; its state is `size` zeros, which end with it. */
struct request *request_with_state(const struct request_kind *kind,
                                   struct comm *comm, size_t size);
/* Whether the object behind a handle is a request of this kind. */
bool request_is(const struct request *request, const struct request_kind *kind);
int request_publish(struct request *request, MPI_Request *out);
/* The program's handle is no more. */
void request_close(struct request *request);
/* The request of all sends that are complete when they begin: one handle, which
 * nothing changes. */
MPI_Request request_over(void);
bool requests_start(void); /* false: no memory */

/* Lets an active request complete on its own; it is freed then. */
void request_drop(struct request *request);
/* Frees dropped requests that are complete. */
void requests_reap(void);

void status_empty(MPI_Status *status);
/* From MPI_PROC_NULL. */
void status_proc_null(MPI_Status *status);
/* To the caller, who may ignore it; leaves MPI_ERROR as it is. */
void status_give(MPI_Status *to, const MPI_Status *from);
void status_set_count(MPI_Status *status, MPI_Count size);
MPI_Count status_count(const MPI_Status *status);

#endif
