/* mpi_comm.h - groups, communicators and the world they live in. */
#ifndef COMM_H
#define COMM_H

#include "attr.h"
#include "facade.h"

#include <pccl.h>

/* An ordered list of members and this process's place in it. Immutable. Both a
 * view of the world, a communicator's members and an MPI_Group are this. */
struct group {
    struct object object;
    uint64_t epoch; /* of the view this list was taken from; 0: none */
    int size;
    int rank; /* MPI_UNDEFINED: not a member */
    struct group *retired_next;
    uint64_t ids[];
};

/* Room for size ids, to be filled by the caller; rank is MPI_UNDEFINED until
 * group_place. NULL: no memory. */
struct group *group_new(int size);
void group_place(struct group *group, uint64_t self);
int group_rank_of(const struct group *group, uint64_t id);
/* Keeps a list that was replaced, because other threads may be reading it,
 * until groups_release_retired; there is one per change of membership. The
 * caller holds facade_lock. Takes the reference over. */
void group_retire(struct group *group);
void groups_release_retired(void);
struct group *group_find(MPI_Group handle);
/* Shrinks a new group to `size` members and gives it a handle. */
int group_publish(struct group *group, int size, MPI_Group *out);

enum failure_policy { FAILURE_ABORT, FAILURE_SHRINK, FAILURE_RETURN };

struct coll;
struct errhandler;

struct cart;
struct graph;
struct info;
struct series;

/* Where a communicator's operations go. Each slot is a tag, of which pccl
 * numbers the operations itself, so one at a time may use it. */
enum {
    SLOTS_STARTED = 64, /* nonblocking ones take turns at 0..63 */
    SLOT_BLOCKING = SLOTS_STARTED,
    SLOT_LEARN,          /* see world_learn */
    SLOT_AGREE = 0x1000, /* ULFM's, one for each number of failed members */
    SLOTS_AGREE = 0x1000,
    SLOT_PREPARED = 0x2000, /* each persistent one has its own */
    SLOTS_PREPARED = 0x3fc000,
    SLOT_FINISH = 0x3fffff
};

struct comm {
    struct object object;
    /* The members. A communicator that follows the world has the members of
     * the view in force, whatever it is; NULL here then. */
    _Atomic(struct group *) members;
    /* Of an intercommunicator: the other group, and both, the one with the
     * lower first id in front. Owned; NULL in an intracommunicator. */
    struct group *remote, *both;
    bool follows_world;
    bool local; /* MPI_COMM_SELF and its copies: never leaves this process */
    uint32_t context;    /* makes tags unique, see comm_tag_of */
    atomic_uint started; /* nonblocking collectives, by slot in turn */
    atomic_uint ended[SLOTS_STARTED]; /* of those, per slot */
    struct coll
        *last[SLOTS_STARTED]; /* the latest under way (coll_pending.c) */
    atomic_uint prepared;     /* persistent collectives */
    atomic_uint votes;        /* agreements and shrinks */
    /* Tag of the blocking collective that a thread sits in, or 0. */
    _Atomic uint64_t running;
    atomic_uint lost;      /* members removed by PCCL_ON_FAILURE=shrink */
    struct group *failed;  /* known to this process, in the order it learned of
                              them; owned, or NULL; guarded by facade_lock */
    int acknowledged;      /* of those, by MPIX_Comm_failure_ack */
    atomic_int errhandler; /* predefined, or 0: the object below */
    struct errhandler *handler; /* guarded by facade_lock */
    struct attribute *attributes;
    struct info *info;     /* hints given by the user, or NULL */
    struct cart *cart;     /* a topology, owned; NULL: not this kind */
    struct graph *graph;   /* the same */
    struct series *series; /* of partitioned requests; owned */
    char name[MPI_MAX_OBJECT_NAME];
};

/* A message names a communicator by its context id; above it stands what kind
 * of message it is, so that the library's own meet no receive of the
 * program's. Those of one kind may be told apart further, see CHANNEL_NUMBER.
 */
#define CONTEXT_MASK 0x3fffffu
#define CHANNEL_NUMBER(n) ((uint32_t)(n) % 256 << 22)
#define CHANNEL_AGREE 0x40000000u
#define CHANNEL_PARTITIONED 0x80000000u
enum { AGREE_GROUP, AGREE_LEADERS, AGREE_UNION, AGREE_SESSION };

extern struct comm comm_world, comm_self;

/* NULL for anything but a valid communicator, and before MPI_Init. */
struct comm *comm_find(MPI_Comm handle);
/* The members now. Valid until MPI_Finalize, also after the view changed. */
const struct group *comm_members(const struct comm *comm);
/* Whom ranks in messages and roots name: the other group, or the members. */
const struct group *comm_peers(const struct comm *comm);
/* Who takes part in a collective: both groups, or the members. */
const struct group *comm_scope(const struct comm *comm);
/* Replaces the members of a communicator that does not follow the world, after
 * losses. Takes the reference over. */
void comm_members_replace(struct comm *comm, struct group *members);
/* The tag of a slot: equal on all members, unique among the operations in
 * flight at each of them.
 *
 * Context ids are agreed by a maximum over the parent's members of the ids
 * they have not used yet, so a context is new to each of its members. Two
 * communicators without a common member may get the same one; the low bits of
 * the first member's id keep their tags apart all the same. */
uint64_t comm_tag_of(const struct comm *comm, uint32_t slot);

/* A communicator without handle; NULL: no memory. Takes members over. */
struct comm *comm_new(uint32_t context, struct group *members);
/* Copies the error handler, and nothing else. */
void comm_inherit(struct comm *to, struct comm *from);
/* An intercommunicator's groups, both taken over. False: no memory. */
bool comm_set_groups(struct comm *comm, struct group *local,
                     struct group *remote);
/* For one whose handle was given before all had agreed on the context. */
void comm_set_context(struct comm *comm, uint32_t context);
/* Opens the handle; on failure frees the communicator. */
int comm_publish(struct comm *comm, MPI_Comm *out);
/* Runs the delete callbacks and frees; leaves the communicator on error. */
int comm_drop(struct comm *comm);
/* The predefined communicators' parts that depend on the world. */
bool comm_start(void);
void comm_stop(void);
/* First of `wanted` consecutive context ids that no member of the parent has
 * used. Collective over the parent. Returns an error class, noted. */
int comm_agree_context(struct comm *parent, int wanted, uint32_t *first_out);
/* First context id that this process has not used. */
uint32_t context_first_free(void);
/* Takes [first, first + wanted) if none of it has been used here. */
bool context_claim(uint32_t first, uint32_t wanted);
/* A communicator made of members (taken over) that inherits from the parent
 * what the standard says, and its handle. Returns a noted class. */
int comm_make(struct comm *parent, uint32_t context, struct group *members,
              MPI_Comm *out);

/* The same for an intercommunicator; both groups are taken over. */
int comm_make_inter(struct comm *parent, uint32_t context, struct group *local,
                    struct group *remote, MPI_Comm *out);

#define COMM_OR_RETURN(variable, handle)                                       \
    struct comm *variable = comm_find(handle);                                 \
    if (!variable)                                                             \
    return RAISE(NULL, MPI_ERR_COMM, "invalid communicator 0x%08x",            \
                 (unsigned)(handle))

/* --------------------------------------------------------------- world */

struct world {
    pcclComm_t *pccl; /* NULL: a process of its own, all calls are local */
    _Atomic(struct group *) view;
    uint64_t self; /* this process's member id */
    enum failure_policy policy;
};

extern struct world world;

/* Connects as the environment says; blocks until admitted. False with a text
 * in message. */
bool world_connect(char *message, size_t size);
void world_disconnect(void);
/* Takes over the view that pccl reports. False: no memory or evicted. */
bool world_refresh(void);
/* After an operation among `scope` has failed with pcclRankConnectionLost: has
 * pccl tell who was lost, as it does by itself only where an operation of the
 * whole view fails. False: not to be had. */
bool world_learn(const struct group *scope);
/* Marks the members that are lost as far as pccl has told. False: no memory. */
bool world_lost(const struct group *group, bool *lost);
/* The host number of each member, equal for those that can share memory; 0
 * for members gone. False: no memory. */
bool world_hosts(const struct group *group, uint64_t *hosts);
/* Restarts the slots of everything that follows the world, after an update
 * that may have let newcomers in. */
void world_restart_sequences(void);

#endif
