/* coll.h - how every collective runs: as steps, each one pccl operation.
 *
 * A collective is a struct coll whose step function prepares the next pccl
 * operation or says that it is done. The engine launches it, blocking or not,
 * and applies PCCL_ON_FAILURE when a member is lost; with `shrink` it starts
 * the steps again among the survivors. A step function therefore computes all
 * that depends on the members in round 0, and leaves the user's input intact
 * until the last operation has succeeded. */
#ifndef COLL_H
#define COLL_H

#include "mpi_comm.h"
#include "mpi_op.h"
#include "request.h"
#include "type.h"

/* What a step function returns; any other value is an error class, noted. */
enum { COLL_DONE = 0, COLL_RUN = -1 };

enum { COLL_STAGES = 4 };

/* How a call runs: to its end, as a request, or as a persistent request. */
struct mode {
    enum { MODE_NOW, MODE_STARTED, MODE_PREPARED } how;
    MPI_Request *request;
};

/* One peer's part of an exchange. */
struct block {
    char *address;
    MPI_Count count;
    const struct type *type;
};

struct coll {
    struct comm *comm; /* one reference while the collective is nonblocking */
    const char *function;
    int (*step)(struct coll *);
    uint32_t slot; /* of the communicator, see comm.h */
    uint32_t turn; /* in the slot, if ordered: how many went before */
    bool ordered;
    const struct group *called;  /* members at the call */
    const struct group *members; /* members it runs among now */
    int round;                   /* operations that succeeded since round 0 */
    pcclCollective_t op;
    size_t *exchange;          /* the four arrays of an all-to-all, or NULL */
    void *stages[COLL_STAGES]; /* memory until the restart or the end */
    struct block *blocks; /* of the exchange: world to send, world to receive */

    /* Arguments; which ones are in use depends on the step function. */
    const void *sendbuf;
    void *recvbuf;
    MPI_Count sendcount, recvcount;
    struct type *sendtype, *recvtype;
    struct mpi_op *reducer;
    bool rooted; /* the loss of the root ends it */
    int root;    /* in `called` */
    char *input; /* copy of an in-place input, restored on failure; owned */
    bool in_place;
    bool even; /* blocks have one size and stand in rank order */
    /* Per peer, or per neighbour; owned, the types ended by NULL: */
    int entries;
    MPI_Count *sendcounts, *recvcounts;
    MPI_Aint *senddispls, *recvdispls; /* in bytes */
    struct type **sendtypes, **recvtypes;
    void (*describe)(struct coll *, struct block *send, struct block *recv);
    /* Of a reduction: which members are folded, and what this one keeps. */
    enum { FOLD_ALL, FOLD_BEFORE, FOLD_UP_TO } fold;
    MPI_Count keep_first, keep_count, block_count;
    bool keep;
    bool everyone; /* between groups: all of both get a result */
    /* Of a search for context ids, see step_context: */
    uint32_t wanted, candidate, mine, all;
    struct comm *made; /* gets the context at the end, or NULL */

    /* Nonblocking: */
    bool launched;
    pcclResult_t failed; /* found in the background, for a call to treat */
    pcclAsyncReduceOp_t handle;
    int error;
    struct coll *next, *previous;
    struct coll *after; /* waits for this one, if it is there: of its slot */
    bool listed, busy;
    atomic_bool finished;
};

#define COLL_OR_RETURN(handle)                                                 \
    COMM_OR_RETURN(comm, handle);                                              \
    struct coll coll = {.comm = comm, .function = __func__}

/* Fills in the members; root is a rank at this point. */
void coll_begin(struct coll *coll);
/* Runs to the end, raises an error if there is one, frees what it owns. */
int coll_run(struct coll *coll);
/* Runs it, or starts or keeps a copy. Takes over what coll owns. */
int coll_go(struct coll *coll, struct mode mode);
/* Runs to the end and returns a noted class; frees nothing. */
int coll_settle(struct coll *coll);
/* Raises the error and frees what the coll owns. */
int coll_refuse(struct coll *coll, int error_class, const char *text);

int coll_root_now(const struct coll *coll);
/* In an intercommunicator a root is a rank of the other group, MPI_ROOT or
 * MPI_PROC_NULL. Is it this process? */
bool coll_is_root(const struct coll *coll);
/* Its rank in `members`; negative where this process has no part. */
int coll_root_place(const struct coll *coll);
/* The rank in `members` of a rank of the peers. */
int coll_place(const struct coll *coll, int rank);
/* Rank in `called` of a member of `members`. */
int coll_old_rank(const struct coll *coll, int rank);
/* Memory that lives until the collective ends or starts again; NULL: none,
 * noted. */
void *coll_stage(struct coll *coll, int index, size_t size);

/* Drives nonblocking collectives; true when this one is finished. */
bool coll_progress(struct coll *coll);
void coll_progress_all(void);
/* Waits a moment for the operation of one of them, moving the data of all;
 * a message ends it. False: none of them has one to wait for. */
bool coll_wait(void);
bool coll_any_pending(void);
/* For the thread that no call waits in: runs no function of the program and
 * leaves failures, which may change the membership, to calls. */
void coll_progress_background(void);
/* Whether calls of the program have moved any since *seen, which is set. */
bool coll_attended(unsigned *seen);

/* Between the parts of the engine. */
void coll_stages_free(struct coll *coll);
void coll_arguments_free(struct coll *coll);
/* Polls the operation in flight and launches the next; true when done. */
enum coll_care {
    CARE_MOVE,       /* moves data as well */
    CARE_LOOK,       /* somebody else does */
    CARE_BACKGROUND, /* the same, and see coll_progress_background() */
};
bool coll_advance(struct coll *coll, enum coll_care care);
void coll_pending_add(struct coll *coll);
/* What PCCL_ON_FAILURE says about a failed operation. MPI_SUCCESS: start the
 * steps again. */
int coll_failed(struct coll *coll, pcclResult_t result);

/* Small collectives for the facade's own use; they return a noted class. */
int coll_gather_bytes(struct comm *comm, const void *mine, size_t size,
                      void *all);
int coll_barrier(struct comm *comm);
int coll_finish(void);

/* Waits between polls: yields at first, then sleeps a little. */
void backoff(unsigned *turn);

/* Step functions, by file. */
int step_barrier(struct coll *coll);
int step_context(struct coll *coll);
int step_broadcast(struct coll *coll);
int step_allgather(struct coll *coll);
int step_exchange(struct coll *coll);
int step_reduce_direct(struct coll *coll);
int step_reduce_fold(struct coll *coll);
int step_reduce_inter(struct coll *coll);

#endif
