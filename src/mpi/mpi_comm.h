/* mpi_comm.h - groups, communicators, and the world (the view of the
 * members). */
#ifndef MPI_COMM_H
#define MPI_COMM_H

#include "attr.h"
#include "errhandler.h"
#include "facade.h"

#include "../peer/hold_view.h"

/* An ordered list of members and this process's rank in it. Immutable. It is a
 * view of the world, the members of a communicator, or an MPI_Group. */
struct group {
    struct object object;
    int size;
    int rank;                /* MPI_UNDEFINED: not a member */
    _Atomic uint64_t chosen; /* the last answer of pccl about it (coll.c) */
    struct group *retired_next;
    struct session_room *session; /* see `session` of struct comm */
    /* Whose members these are, with a reference; NULL: it is a list of its
     * own. */
    const struct view *view;
    uint64_t *ids; /* the view's, or its own */
    uint64_t own[];
};

/* The members of a view, whose reference it takes over. NULL: no memory. */
struct group *group_of_view(const struct view *view);
/* A group with space for size ids, which the caller fills; rank is
 * MPI_UNDEFINED until group_place. NULL: no memory. */
struct group *group_new(int size);
/* Such a group, of the session that `from` is of. */
struct group *group_from(const struct group *from, int size);
/* The same members, of no session. */
struct group *group_copy(const struct group *from);
/* The members of a that are in b. */
struct group *group_common(const struct group *a, const struct group *b);
void group_place(struct group *group, uint64_t self);
int group_rank_of(const struct group *group, uint64_t id);
/* Keeps a replaced list, because other threads may read it, until 64 more are
 * replaced. A reader that needs it for longer than a few changes of membership
 * take has a reference (struct coll). The caller holds facade_lock. Takes the
 * reference over. */
void group_retire(struct group *group);
void groups_release_retired(void);
struct group *group_find(MPI_Group handle);
/* Shrinks a new group, which it takes over, to `size` members and assigns a
 * handle. Returns a noted class. */
int group_publish(struct group *group, int size, MPI_Group *out);

enum failure_policy { FAILURE_ABORT, FAILURE_SHRINK, FAILURE_RETURN };

struct coll;
struct flight;

struct cart;
struct graph;
struct info;
struct room;
struct session_room;
struct series;

/* Slots of a communicator's operations. Each slot is a tag. pccl numbers the
 * operations of a tag, so only one at a time may use it. */
enum {
    SLOTS_STARTED = 64, /* nonblocking ones use 0..63 in turn */
    SLOT_BLOCKING = SLOTS_STARTED,
    SLOT_AGREE = 0x1000, /* of ULFM, one per number of failed members */
    SLOTS_AGREE = 0x1000,
    SLOT_PREPARED = 0x2000, /* one per persistent collective */
    SLOTS_PREPARED = 0x3fc000,
    SLOT_FINISH = 0x3fffff
};

/* The arguments of a collective but for its buffers (coll_again.c). */
struct coll_key {
    int call; /* enum coll_call; 0: it is not kept */
    int root;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Count count;
};

struct comm {
    struct object object;
    /* The members. NULL for a communicator that follows the world: it always
     * has the members of the current view. */
    _Atomic(struct group *) members;
    /* Of an intercommunicator: the other group, and both groups, first the one
     * with the lower first id. Owned; NULL in an intracommunicator. */
    struct group *remote, *both;
    bool follows_world;
    bool local;          /* MPI_COMM_SELF and its copies: no communication */
    uint32_t context;    /* makes tags unique, see comm_tag_of */
    atomic_uint started; /* nonblocking collectives started, which use the slots
                            in turn */
    atomic_uint ended[SLOTS_STARTED]; /* of those, ended per slot */
    struct flight
        *last[SLOTS_STARTED];    /* the latest of each (coll_pending.c) */
    atomic_uint prepared;        /* persistent collectives */
    _Atomic(struct coll *) kept; /* a blocking one that is repeated, or NULL */
    struct coll_key last_key;    /* of the last that could be */
    atomic_uint votes;           /* agreements and shrinks */
    /* Tag of the blocking collective in which a thread waits, or 0. */
    _Atomic uint64_t running;
    atomic_bool revoked; /* revoke.c */
    atomic_uint lost;    /* members removed by PCCL_ON_FAILURE=shrink */
    struct group
        *failed; /* known failures, in the order in which this process learned
                    of them; owned, or NULL; guarded by facade_lock */
    int acknowledged; /* number of these acknowledged by MPIX_Comm_failure_ack
                       */
    errhandler_kind errhandler; /* predefined, or 0: see `handler` */
    struct errhandler *handler; /* guarded by facade_lock */
    struct attribute *attributes;
    struct info *info;     /* hints given by the user, or NULL */
    struct cart *cart;     /* topology, owned; NULL: not of this kind */
    struct graph *graph;   /* topology, owned, or NULL */
    struct series *series; /* of partitioned requests; owned */
    struct room *room;     /* of buffered sends (bsend.c), or NULL */
    /* The buffer of the session that it was made of, with a reference; NULL: of
     * none. */
    struct session_room *session;
    char name[MPI_MAX_OBJECT_NAME];
};

/* A message names its communicator by the context id. Higher bits are the kind
 * of message, so that the library's own messages match no receive of the
 * program. CHANNEL_NUMBER further distinguishes messages of one kind. */
#define CONTEXT_MASK 0x3fffffu
#define CHANNEL_NUMBER(n) ((uint32_t)(n) % 256 << 22)
#define CHANNEL_AGREE 0x40000000u
#define CHANNEL_PARTITIONED 0x80000000u
enum { AGREE_GROUP, AGREE_LEADERS, AGREE_UNION, AGREE_SESSION };

extern struct comm comm_world, comm_self;

/* A reference to a communicator; the predefined ones need none. */
static inline void comm_hold(struct comm *comm)
{
    if (comm != &comm_world && comm != &comm_self) object_retain(&comm->object);
}
static inline void comm_unhold(struct comm *comm)
{
    if (comm != &comm_world && comm != &comm_self)
        object_release(&comm->object);
}

/* NULL: not a valid communicator, or before MPI_Init. */
struct comm *comm_find(MPI_Comm handle);
/* The current members. Valid until MPI_Finalize, even after the view
 * changed. */
const struct group *comm_members(const struct comm *comm);
/* The group that ranks of messages and roots refer to: the other group, or the
 * members. */
const struct group *comm_peers(const struct comm *comm);
/* The participants of a collective: both groups, or the members. */
const struct group *comm_scope(const struct comm *comm);
/* Replaces the members after losses. The communicator does not follow the
 * world. Takes the reference over. */
void comm_members_replace(struct comm *comm, struct group *members);
/* The tag of a slot: equal on all members, unique among the operations in
 * flight at each of them.
 *
 * An agreed context id is the maximum of the first unused ids of the parent's
 * members, so it is new to each of them. Two communicators without a common
 * member may get the same id; the low bits of the first member's id still keep
 * their tags apart. */
uint64_t comm_tag_of(const struct comm *comm, uint32_t slot);

/* The context of the communicator that has the tag, by its low bits. */
uint32_t comm_context_of(uint64_t tag);

/* A communicator without handle; NULL: no memory. Takes members over. */
struct comm *comm_new(uint32_t context, struct group *members);
/* Copies only the error handler and the session. */
void comm_inherit(struct comm *to, struct comm *from);
/* Sets an intercommunicator's groups; takes both over. False: no memory. */
bool comm_set_groups(struct comm *comm, struct group *local,
                     struct group *remote);
/* For a communicator whose handle was assigned before the agreement on its
 * context. */
void comm_set_context(struct comm *comm, uint32_t context);
/* Opens the handle; on failure frees the communicator. */
int comm_publish(struct comm *comm, MPI_Comm *out);
/* Runs the delete callbacks and frees; on an error keeps the communicator. */
int comm_drop(struct comm *comm);
/* Initializes the predefined communicators from the world. */
bool comm_start(void);
void comm_stop(void);
/* First of `wanted` consecutive context ids that no member of the parent has
 * used. Collective over the parent. Returns an error class, noted. */
int comm_agree_context(struct comm *parent, int wanted, uint32_t *first_out);
/* First context id that this process has not used. */
uint32_t context_first_free(void);
/* Whether others may have agreed on [first, first + wanted). Beyond the limit,
 * ids would collide with others; the error says that it is reached. The same on
 * all members. */
bool context_can_be(uint32_t first, uint32_t wanted);
int context_none_left(void);
/* Claims [first, first + wanted), which can be, if none of it was used here. */
bool context_claim(uint32_t first, uint32_t wanted);
/* Makes a communicator of members (taken over) that inherits from the parent as
 * the standard defines, and its handle. Returns a noted class. */
int comm_make(struct comm *parent, uint32_t context, struct group *members,
              MPI_Comm *out);

/* Makes an intercommunicator; both groups are taken over. */
int comm_make_inter(struct comm *parent, uint32_t context, struct group *local,
                    struct group *remote, MPI_Comm *out);

#define COMM_OR_RETURN(variable, handle)                                       \
    struct comm *variable = comm_find(handle);                                 \
    if (!variable)                                                             \
    return RAISE(NULL, MPI_ERR_COMM, "invalid communicator 0x%08x",            \
                 HANDLE_BITS(handle))

/* --------------------------------------------------------------- world */

struct world {
    pcclComm_t *pccl; /* NULL: a single process; all calls are local */
    _Atomic(struct group *) view;
    uint64_t self; /* this process's member id */
    enum failure_policy policy;
    bool forced;   /* ranks change under any program (rank_use.h) */
    bool promotes; /* PCCL_LOST_ROOT=promote */
    bool traces;   /* PCCL_TRACE */
};

extern struct world world;

/* Connects according to the environment; blocks until admitted. False: text in
 * message. */
bool world_connect(char *message, size_t size);
void world_disconnect(void);
/* The world is the view that pccl reports, from now on. False: no memory or
 * evicted. */
bool world_refresh(void);
/* Call it after an operation among `scope` has failed with
 * pcclRankConnectionLost: has pccl report the lost members, which it does by
 * itself only when an operation of the whole view fails. False: none is. */
bool world_learn(const struct group *scope);
/* The members that pccl reports, which are those of the world, or of a later
 * one where ranks stay (E5). NULL: no memory or evicted. */
struct group *world_now(void);
/* Restarts the slots of all communicators that follow the world, after an
 * update that may have admitted newcomers. */
void world_restart_sequences(void);

#endif
