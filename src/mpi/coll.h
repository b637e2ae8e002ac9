/* coll.h - the collective engine: a collective is a series of pccl operations.
 *
 * The step function of a struct coll prepares the next pccl operation, or
 * returns MPI_SUCCESS. The engine launches the operation, blocking or not, and
 * applies PCCL_ON_FAILURE when a member is lost; with `shrink` it restarts the
 * steps among the survivors. A step function therefore computes all that
 * depends on the members in round 0, and keeps the user's input intact until
 * the last operation has succeeded. */
#ifndef COLL_H
#define COLL_H

#include "mpi_comm.h"
#include "mpi_op.h"
#include "request.h"
#include "type.h"

/* Result of a step function that has prepared an operation; MPI_SUCCESS: it is
 * over; any other value is a noted error class. */
enum { COLL_RUN = -1 };

struct coll;

enum { COLL_STAGES = 4, COLL_NAMED = 6 };

/* Form of a call: blocking, a request, or a persistent request. */
struct mode {
    enum { MODE_NOW, MODE_STARTED, MODE_PREPARED } how;
    MPI_Request *request;
    MPI_Status *status; /* of a blocking one */
    const char *function;
};

/* The block of an exchange with one peer. */
struct block {
    char *address;
    MPI_Count count;
    const struct type *type;
};

/* The function that was called, in any of its forms. */
enum coll_call {
    CALL_INTERNAL,
    CALL_BARRIER,
    CALL_BCAST,
    CALL_GATHER,
    CALL_SCATTER,
    CALL_ALLGATHER,
    CALL_ALLTOALL,
    CALL_REDUCE,
    CALL_ALLREDUCE,
    CALL_REDUCE_SCATTER,
    CALL_REDUCE_SCATTER_BLOCK,
    CALL_SCAN,
    CALL_EXSCAN,
    CALL_NEIGHBOR_ALLGATHER,
    CALL_NEIGHBOR_ALLTOALL
};

/* What goes between each two members (step_exchange). */
struct layout {
    bool even;   /* blocks of equal size, in rank order */
    int entries; /* peers or neighbours */
    /* Of each; owned, the types end with NULL: */
    MPI_Count *sendcounts, *recvcounts;
    MPI_Aint *senddispls, *recvdispls; /* in bytes */
    struct type **sendtypes, **recvtypes;
    void (*describe)(struct coll *, struct block *send, struct block *recv);
    /* Until the restart or the end: the four arrays of an all-to-all, and the
     * blocks, `world` to send, then `world` to receive. */
    size_t *exchange;
    struct block *blocks;
};

/* Of a reduction: the members to fold, and the elements that this one keeps. */
struct reduction {
    enum { FOLD_ALL, FOLD_BEFORE, FOLD_UP_TO } fold;
    bool keep;
    bool everyone; /* between groups: all members of both get a result */
    MPI_Count keep_first, keep_count, block_count;
    uint64_t *split; /* the count that each member keeps, or NULL; owned */
};

/* One word of each member: for context ids (step_context), or who has the data
 * of a lost root. */
struct agreement {
    uint32_t wanted, candidate, mine, all;
    struct comm *made; /* gets the context at the end, or NULL */
};

/* A collective that runs. */
struct coll {
    struct comm
        *comm; /* holds a reference while the collective is nonblocking */
    const char *function;
    enum coll_call call;
    struct coll_key key; /* of those that are kept */
    bool ready;          /* round 0 is prepared, as it was the last time */
    int (*step)(struct coll *);
    uint32_t slot; /* of the communicator, see comm.h */
    /* Members at the time of the call, and those that take part now; with a
     * reference each, or one if they are the same. */
    struct group *called, *members;
    int round; /* operations that succeeded since round 0 */
    pcclCollective_t op;
    void *stages[COLL_STAGES]; /* buffers until the restart or the end */

    /* Arguments; each step function uses some of them. */
    const void *sendbuf;
    void *recvbuf;
    MPI_Count sendcount, recvcount;
    struct type *sendtype, *recvtype;
    struct mpi_op *reducer;
    int scale; /* elements of op.datatype in one of recvtype */
    bool in_place;
    bool rooted;
    int root; /* in `called` */
    /* What it needs ranks for (rank_use.h): the default is safe. */
    enum {
        USES_RANKS,
        USES_NOTHING,
        USES_ROOT,     /* for the result */
        USES_ROOT_DATA /* a broadcast */
    } uses;
    unsigned long number; /* among the collectives of the world */
    bool unaware;         /* it must fail: this process may not know its rank */
    bool orphan;          /* the root was lost: `root` is its number alone */
    bool has_data;        /* of a lost root, in recvbuf */
    /* This process takes the place of a lost root; NULL: none can. */
    void (*to_root)(struct coll *);
    struct layout layout;
    struct reduction reduction;
    struct agreement agreement;

    /* What pccl is to name where the members disagree; coll_sign() writes it.
     * Last, because coll_open() leaves it as it is. */
    pcclArgument_t named[COLL_NAMED];
    uint64_t numbers[COLL_NAMED];
};

/* A collective that waits for its turn or for an operation while its caller
 * does something else: of a request, or blocking beside others
 * (coll_pending.c). */
struct flight {
    struct coll *coll;
    bool ordered;
    uint32_t turn; /* number of predecessors in the slot, if ordered */
    bool launched;
    pcclResult_t failed; /* found in the background; a call handles it */
    pcclAsyncReduceOp_t handle;
    int error;
    struct flight *next, *previous;
    struct flight *after; /* the next of its slot, which waits for this one */
    bool listed, busy;
    atomic_bool finished;
};

/* Sets the members; root is a rank at this point. The coll owns what is set
 * here and by its user, until coll_run, coll_go, coll_refuse or
 * coll_arguments_free. */
void coll_begin(struct coll *coll);
/* Clears it, sets communicator and function, and begins. */
void coll_open(struct coll *coll, struct comm *comm, const char *function);
/* Runs to the end, raises any error, and frees all that it owns. */
int coll_run(struct coll *coll);
/* Runs the same collective of the communicator again, with other buffers, if it
 * is kept: true, and its result. */
bool coll_again(struct comm *comm, const struct coll_key *key,
                const void *sendbuf, void *recvbuf, const char *function,
                int *result);
/* Keeps a collective that has succeeded, or frees all that it owns. */
void coll_end(struct coll *coll);
void coll_forget(struct comm *comm);
/* Runs it, or starts or stores a copy. Takes over all that coll owns. */
int coll_go(struct coll *coll, const struct mode *mode);
/* Runs to the end and returns a noted class; frees nothing. */
int coll_settle(struct coll *coll);
/* Raises the error and frees all that coll owns. */
int coll_refuse(struct coll *coll, int error_class, const char *text);

/* Makes pccl compare the function and the root, beside the arguments of the
 * operation, and name them where the members disagree. */
void coll_sign(struct coll *coll);
/* ... and further arguments: a text, whose number is compared; or numbers. */
void coll_sign_text(struct coll *coll, const char *name, const char *text,
                    uint64_t number);
void coll_sign_number(struct coll *coll, const char *name, uint64_t number);
void coll_sign_numbers(struct coll *coll, const char *name,
                       const uint64_t *numbers, int count);

int coll_root_now(const struct coll *coll);
/* Sets kind and flow of the operation to those that pccl chooses for vectors or
 * blocks of so many bytes: pcclChooseCollective(). A group of one keeps what is
 * given. */
void coll_choose(struct coll *coll, pcclCollectiveKind_t kind, pcclFlow_t flow,
                 MPI_Count bytes);
/* Whether this process is the root. In an intercommunicator a root is a rank of
 * the other group, MPI_ROOT or MPI_PROC_NULL. */
bool coll_is_root(const struct coll *coll);
/* The root's rank in `members`; negative where this process takes no part. */
int coll_root_place(const struct coll *coll);
/* The rank in `members` of a rank of the peers. */
int coll_place(const struct coll *coll, int rank);
/* Rank in `called` of a member of `members`. */
int coll_old_rank(const struct coll *coll, int rank);
/* Memory until the collective ends or restarts; NULL: no memory, noted. */
void *coll_stage(struct coll *coll, int index, size_t size);

/* Makes progress on nonblocking collectives; true when this one is finished. */
bool coll_progress(struct flight *flight);
void coll_progress_all(void);
/* Waits a moment for the operation of one collective while the data of all make
 * progress; a message ends the wait. False: no operation to wait for. */
bool coll_wait(void);
bool coll_any_pending(void);
/* For the progress thread: calls no function of the program, and leaves
 * failures, which may change the membership, to calls of the program. */
void coll_progress_background(void);
/* Whether calls of the program have made progress since *seen, which is
 * updated. */
bool coll_attended(unsigned *seen);

/* Internal to the coll_*.c files. */
void coll_members_set(struct coll *coll, const struct group *members);
void coll_stages_free(struct coll *coll);
void coll_arguments_free(struct coll *coll);
/* Polls the operation in flight and launches the next; true when done. */
enum coll_care {
    CARE_MOVE,       /* makes progress on data as well */
    CARE_LOOK,       /* another thread makes progress */
    CARE_BACKGROUND, /* likewise, see coll_progress_background() */
};
bool coll_advance(struct flight *flight, enum coll_care care);
void coll_pending_add(struct flight *flight);
/* Applies PCCL_ON_FAILURE to a failed operation. MPI_SUCCESS: restart the
 * steps. */
int coll_failed(struct coll *coll, pcclResult_t result);
/* Why a broadcast fails whose data were lost with the root. */
extern const char lost_root_text[];

/* Small collectives for internal use; they return a noted class. */
int coll_gather_bytes(struct comm *comm, const void *mine, size_t size,
                      void *all);
int coll_finish(void);

/* Moves collectives and messages once. */
void progress_once(void);
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
int step_scan(struct coll *coll);

/* Signs operation, datatype and counts of a reduction; see coll_sign(). */
void coll_sign_reduction(struct coll *coll);

/* Where packed elements lie in the type's layout while they are folded. A dense
 * type needs none. */
struct fold_room {
    char *in, *inout;
    void *memory[2]; /* owned */
};

/* Room for `count` elements; false: no memory. */
bool fold_room_make(const struct coll *coll, MPI_Count count,
                    struct fold_room *room);
void fold_room_free(struct fold_room *room);
/* inout = in op inout, of `count` packed elements each. */
void fold_packed(const struct coll *coll, const struct fold_room *room,
                 char *in, char *inout, MPI_Count count);

#endif
