/* ulfm.c - User-Level Failure Mitigation: knowing, agreeing on and leaving out
 * members that failed.
 *
 * Agreement. The members that are left vote by an operation of pccl in their
 * own scope, which succeeds on all of them or on none. Who does not know of a
 * failure yet names too large a scope, learns of it when that fails, and tries
 * again. Failures come in one order for everybody, so scopes of one size are
 * the same and their number of failed members tells tags apart.
 *
 * MPIX_Comm_revoke needs a message to members that are in no call; it is among
 * the functions not offered. */
#include "ulfm.h"
#include "coll.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ knowledge
 */

static bool listed(const struct group *list, uint64_t id)
{
    return list && group_rank_of(list, id) != MPI_UNDEFINED;
}

/* The list before and what has been learned since, in the order of ranks. */
static struct group *list_extend(const struct group *before,
                                 const struct group *members, const bool *lost)
{
    int old = before ? before->size : 0, used = old;
    struct group *list = group_new(old + members->size);
    if (!list) return NULL;
    if (before) memcpy(list->ids, before->ids, (size_t)old * sizeof *list->ids);
    for (int i = 0; i < members->size; i++)
        if (lost[i] && !listed(before, members->ids[i]))
            list->ids[used++] = members->ids[i];
    list->size = used;
    return list;
}

/* Brings comm->failed up to date. Returns it with a reference of its own, or
 * NULL: no memory. */
static struct group *failed_list(struct comm *comm)
{
    const struct group *members = comm_members(comm);
    bool *lost = calloc((size_t)members->size, sizeof *lost);
    struct group *list = NULL, *old = NULL;
    if (lost && world_lost(members, lost)) {
        facade_lock();
        list = list_extend(comm->failed, members, lost);
        if (list) {
            object_retain(&list->object);
            old = comm->failed;
            comm->failed = list;
        }
        facade_unlock();
    }
    if (old) object_release(&old->object);
    free(lost);
    return list;
}

/* A handle for the first `count` of the list. */
static int list_publish(const struct group *list, int count, MPI_Group *out)
{
    struct group *group = group_new(count);
    if (!group) return RAISE_NO_MEMORY(NULL);
    memcpy(group->ids, list->ids, (size_t)count * sizeof *group->ids);
    return group_publish(group, count, out);
}

/* Acknowledges the first `wanted` failures and returns how many are. */
static int acknowledge(struct comm *comm, int wanted)
{
    facade_lock();
    int known = comm->failed ? comm->failed->size : 0;
    if (wanted > known) wanted = known;
    if (wanted > comm->acknowledged) comm->acknowledged = wanted;
    int result = comm->acknowledged;
    facade_unlock();
    return result;
}

MPIX_PUBLIC(Comm_failure_ack);
int PMPIX_Comm_failure_ack(MPI_Comm handle)
{
    COMM_OR_RETURN(comm, handle);
    struct group *list = failed_list(comm);
    if (!list) return RAISE_NO_MEMORY(comm);
    (void)acknowledge(comm, list->size);
    object_release(&list->object);
    return MPI_SUCCESS;
}

MPIX_PUBLIC(Comm_failure_get_acked);
int PMPIX_Comm_failure_get_acked(MPI_Comm handle, MPI_Group *out)
{
    COMM_OR_RETURN(comm, handle);
    if (!out) return RAISE_ARG(comm, "null group");
    struct group *list = failed_list(comm);
    if (!list) return RAISE_NO_MEMORY(comm);
    int result = list_publish(list, acknowledge(comm, 0), out);
    object_release(&list->object);
    return result;
}

MPIX_PUBLIC(Comm_get_failed);
int PMPIX_Comm_get_failed(MPI_Comm handle, MPI_Group *out)
{
    COMM_OR_RETURN(comm, handle);
    if (!out) return RAISE_ARG(comm, "null group");
    struct group *list = failed_list(comm);
    if (!list) return RAISE_NO_MEMORY(comm);
    int result = list_publish(list, list->size, out);
    object_release(&list->object);
    return result;
}

MPIX_PUBLIC(Comm_ack_failed);
int PMPIX_Comm_ack_failed(MPI_Comm handle, int wanted, int *acknowledged)
{
    COMM_OR_RETURN(comm, handle);
    if (!acknowledged) return RAISE_ARG(comm, "null pointer");
    *acknowledged = acknowledge(comm, wanted);
    return MPI_SUCCESS;
}

MPIX_PUBLIC(Comm_is_revoked);
int PMPIX_Comm_is_revoked(MPI_Comm handle, int *flag)
{
    COMM_OR_RETURN(comm, handle);
    if (!flag) return RAISE_ARG(comm, "null flag");
    *flag = 0;
    return MPI_SUCCESS;
}

/* --------------------------------------------------------------------- voting
 */

struct vote {
    int flag;
    int unacknowledged; /* this member has not acknowledged all failures */
    uint32_t context;   /* first one free to it */
    int claimed;        /* it could take the context agreed on */
};

/* A round of voting among those who are left of the communicator. */
struct ballot {
    struct comm *comm;
    struct group *living; /* owned */
    struct vote *votes;   /* of the living, in their order; owned */
    int failed;           /* members known to be so */
};

static void ballot_free(struct ballot *ballot)
{
    if (ballot->living) object_release(&ballot->living->object);
    free(ballot->votes);
    ballot->living = NULL;
    ballot->votes = NULL;
}

static int ballot_open(struct ballot *ballot)
{
    const struct group *members = comm_members(ballot->comm);
    struct group *failed = failed_list(ballot->comm);
    int used = 0;
    ballot->living = group_new(members->size);
    ballot->votes = calloc((size_t)members->size, sizeof *ballot->votes);
    if (!failed || !ballot->living || !ballot->votes) {
        if (failed) object_release(&failed->object);
        return error_note(MPI_ERR_NO_MEM, "out of memory");
    }
    for (int i = 0; i < members->size; i++)
        if (!listed(failed, members->ids[i]))
            ballot->living->ids[used++] = members->ids[i];
    ballot->failed = failed->size;
    ballot->living->size = used;
    group_place(ballot->living, world.self);
    object_release(&failed->object);
    if (ballot->living->rank != MPI_UNDEFINED) return MPI_SUCCESS;
    return error_note(MPI_ERR_OTHER, "this process was evicted");
}

/* Waits with an eye on nonblocking collectives, which others may wait for. */
static pcclResult_t collective(const pcclCollective_t *op)
{
    pcclAsyncReduceOp_t handle;
    bool done = false;
    unsigned turn = 0;
    if (!coll_any_pending()) return pcclCollective(op, world.pccl, NULL);
    pcclResult_t result = pcclCollectiveAsync(op, world.pccl, &handle);
    if (result != pcclSuccess) return result;
    while (pcclTestAsync(&handle, &done) == pcclSuccess && !done) {
        coll_progress_all();
        backoff(&turn);
    }
    return pcclAwaitAsyncReduce(&handle, NULL);
}

enum { BALLOT_AGAIN = -1 }; /* another member was lost */

/* Everyone's vote to everyone. A noted class, or BALLOT_AGAIN. */
static int ballot_cast(struct ballot *ballot, const struct vote *mine)
{
    const struct group *living = ballot->living;
    ballot->votes[living->rank] = *mine;
    if (living->size == 1) return MPI_SUCCESS;
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllGather,
                           .recvbuf = ballot->votes,
                           .count = sizeof *mine,
                           .members = living->ids,
                           .member_count = (size_t)living->size};
    op.tag = comm_tag_of(ballot->comm,
                         SLOT_AGREE + (uint32_t)ballot->failed % SLOTS_AGREE);
    pcclResult_t result = collective(&op);
    if (result == pcclSuccess) return MPI_SUCCESS;
    if (result == pcclRankConnectionLost && world_learn(living))
        return BALLOT_AGAIN;
    return error_note(MPI_ERR_OTHER, "%s", pcclGetErrorString(result));
}

static int agree_once(struct ballot *ballot, int flag, int *agreed,
                      bool *unacknowledged)
{
    int result = ballot_open(ballot);
    if (result != MPI_SUCCESS) return result;
    struct vote mine = {.flag = flag};
    mine.unacknowledged = acknowledge(ballot->comm, 0) < ballot->failed;
    result = ballot_cast(ballot, &mine);
    if (result != MPI_SUCCESS) return result;
    *agreed = ~0;
    *unacknowledged = false;
    for (int i = 0; i < ballot->living->size; i++) {
        *agreed &= ballot->votes[i].flag;
        *unacknowledged = *unacknowledged || ballot->votes[i].unacknowledged;
    }
    return MPI_SUCCESS;
}

MPIX_PUBLIC(Comm_agree);
int PMPIX_Comm_agree(MPI_Comm handle, int *flag)
{
    COMM_OR_RETURN(comm, handle);
    struct ballot ballot = {.comm = comm};
    bool unacknowledged = false;
    int agreed = 0, result;
    if (!flag) return RAISE_ARG(comm, "null flag");
    do {
        ballot_free(&ballot);
        result = agree_once(&ballot, *flag, &agreed, &unacknowledged);
    } while (result == BALLOT_AGAIN);
    ballot_free(&ballot);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, __func__);
    *flag = agreed;
    if (!unacknowledged) return MPI_SUCCESS;
    return RAISE(comm, MPIX_ERR_PROC_FAILED,
                 "a failure is not acknowledged on all members");
}

/* One context for all, see step_context; *context is 0 if somebody could not
 * take it. */
static int shrink_once(struct ballot *ballot, uint32_t *context)
{
    int result = ballot_open(ballot);
    if (result != MPI_SUCCESS) return result;
    struct vote mine = {.context = context_first_free()};
    result = ballot_cast(ballot, &mine);
    if (result != MPI_SUCCESS) return result;
    *context = 0;
    for (int i = 0; i < ballot->living->size; i++)
        if (*context < ballot->votes[i].context)
            *context = ballot->votes[i].context;
    mine.claimed = context_claim(*context, 1);
    result = ballot_cast(ballot, &mine);
    if (result != MPI_SUCCESS) return result;
    for (int i = 0; i < ballot->living->size; i++)
        if (!ballot->votes[i].claimed) *context = 0;
    return MPI_SUCCESS;
}

MPIX_PUBLIC(Comm_shrink);
int PMPIX_Comm_shrink(MPI_Comm handle, MPI_Comm *out)
{
    COMM_OR_RETURN(comm, handle);
    struct ballot ballot = {.comm = comm};
    uint32_t context = 0;
    int result;
    if (!out) return RAISE_ARG(comm, "null communicator");
    *out = MPI_COMM_NULL;
    do {
        ballot_free(&ballot);
        result = shrink_once(&ballot, &context);
    } while (result == BALLOT_AGAIN || (result == MPI_SUCCESS && !context));
    if (result == MPI_SUCCESS) {
        object_retain(&ballot.living->object);
        result = comm_make(comm, context, ballot.living, out);
    }
    ballot_free(&ballot);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, __func__);
    return MPI_SUCCESS;
}
