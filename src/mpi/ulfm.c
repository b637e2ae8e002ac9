/* ulfm.c - User-Level Failure Mitigation: failure knowledge, agreement and
 * shrinking. revoke.c revokes.
 *
 * Agreement. The remaining members vote by a pccl operation in their own scope,
 * which succeeds on all of them or on none. A member that does not know of a
 * failure yet names too large a scope, learns of the failure when the operation
 * fails, and retries. pccl reports failures to all members in one order, so
 * scopes of equal size are identical, and the number of failed members
 * distinguishes tags. A vote uses only failures that pccl has reported.
 * Messages may have shown more, in any order; these only matter to failure_ack
 * and related calls. */
#include "ulfm.h"
#include "coll.h"
#include "rank_use.h"
#include "request.h"
#include "revoke.h"
#include "transport.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ knowledge
 */

static bool listed(const struct group *list, uint64_t id)
{
    return list && group_rank_of(list, id) != MPI_UNDEFINED;
}

/* The previous list, followed by newly known failures in the order of ranks. */
static struct group *list_extend(const struct group *before,
                                 const struct group *members,
                                 const struct group *now)
{
    int old = before ? before->size : 0, used = old;
    struct group *list = group_new(old + members->size);
    if (!list) return NULL;
    if (before) memcpy(list->ids, before->ids, (size_t)old * sizeof *list->ids);
    for (int i = 0; i < members->size; i++) {
        uint64_t id = members->ids[i];
        bool lost = !listed(now, id) || transport_lost(id);
        if (lost && !listed(before, id)) list->ids[used++] = id;
    }
    list->size = used;
    return list;
}

/* Updates comm->failed. Returns it with a reference, or NULL: no memory. */
static struct group *failed_list(struct comm *comm)
{
    struct group *now = world_now(), *old = NULL;
    if (!now) return NULL;
    facade_lock();
    struct group *list = list_extend(comm->failed, comm_scope(comm), now);
    if (list) {
        object_retain(&list->object);
        old = comm->failed;
        comm->failed = list;
    }
    facade_unlock();
    if (old) object_release(&old->object);
    object_release(&now->object);
    return list;
}

/* A handle for the first `count` of the list. */
static int list_publish(const struct group *list, int count, MPI_Group *out)
{
    struct group *group = group_copy(list);
    if (!group) return note_no_memory();
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

bool comm_acknowledged(const struct comm *comm, uint64_t member)
{
    bool found = false;
    facade_lock();
    for (int i = 0; i < comm->acknowledged && !found; i++)
        found = comm->failed->ids[i] == member;
    facade_unlock();
    return found;
}

int mpi_Comm_failure_ack(struct comm *comm)
{
    rank_use_opt_in();
    struct group *list = failed_list(comm);
    if (!list) return note_no_memory();
    (void)acknowledge(comm, list->size);
    object_release(&list->object);
    return MPI_SUCCESS;
}

int mpi_Comm_failure_get_acked(struct comm *comm, MPI_Group *out)
{
    rank_use_opt_in();
    struct group *list = failed_list(comm);
    if (!list) return note_no_memory();
    int result = list_publish(list, acknowledge(comm, 0), out);
    object_release(&list->object);
    return result;
}

int mpi_Comm_get_failed(struct comm *comm, MPI_Group *out)
{
    rank_use_opt_in();
    struct group *list = failed_list(comm);
    if (!list) return note_no_memory();
    int result = list_publish(list, list->size, out);
    object_release(&list->object);
    return result;
}

int mpi_Comm_ack_failed(struct comm *comm, int wanted, int *acknowledged)
{
    rank_use_opt_in();
    *acknowledged = acknowledge(comm, wanted);
    return MPI_SUCCESS;
}

int mpi_Comm_is_revoked(struct comm *comm, int *flag)
{
    rank_use_opt_in();
    *flag = comm_revoked(comm);
    return MPI_SUCCESS;
}

/* --------------------------------------------------------------------- voting
 */

struct vote {
    int flag;
    int unacknowledged; /* this member has unacknowledged failures */
    uint32_t context;   /* its first free context */
    int claimed;        /* it has claimed the agreed context */
};

/* An agreement or a shrink in progress among the remaining members. An
 * agreement is one round of votes; a shrink is two rounds, repeated until all
 * members could claim the context of the first round. */
struct ballot {
    struct comm *comm;
    bool shrinks;
    unsigned number;      /* number of the ballot on the communicator */
    struct group *living; /* owned */
    struct vote *votes;   /* of the living members, in their order; owned */
    int failed;           /* failures reported by pccl */
    int round;
    bool launched;
    pcclAsyncReduceOp_t handle;
    int flag; /* of an agreement: this member's flag; at the end that of all, or
                 of all in the remote group */
    bool unacknowledged; /* any member has unacknowledged failures */
    uint32_t context;    /* of a shrink */
    bool claimed;        /* `context` is, here, whatever others say */
    MPI_Comm *made;      /* where a shrink stores its result */
    int *agreed;         /* where an agreement stores its result */
};

/* Results of the steps below, beside MPI_SUCCESS and noted classes. */
enum { BALLOT_AGAIN = -1, BALLOT_WAITS = -2 };

/* Ballots in flight and restarted ballots have different tags. */
enum { FAILURES_PER_BALLOT = 64 };

static void ballot_begin(struct ballot *ballot, struct comm *comm)
{
    ballot->comm = comm;
    ballot->number = atomic_fetch_add(&comm->votes, 1);
}

static void ballot_reset(struct ballot *ballot)
{
    if (ballot->living) object_release(&ballot->living->object);
    free(ballot->votes);
    ballot->living = NULL;
    ballot->votes = NULL;
    ballot->round = 0;
}

static int ballot_open(struct ballot *ballot)
{
    const struct group *members = comm_scope(ballot->comm);
    struct group *now = world_now();
    ballot->living = now ? group_common(members, now) : NULL;
    ballot->votes = calloc((size_t)members->size, sizeof *ballot->votes);
    struct vote mine = {.flag = ballot->flag, .context = context_first_free()};
    for (int i = 0; now && i < members->size; i++)
        if (!listed(now, members->ids[i]) &&
            !comm_acknowledged(ballot->comm, members->ids[i]))
            mine.unacknowledged = 1;
    if (now) object_release(&now->object);
    if (!ballot->living || !ballot->votes)
        return error_note(MPI_ERR_NO_MEM, "out of memory");
    ballot->failed = members->size - ballot->living->size;
    if (ballot->living->rank == MPI_UNDEFINED)
        return error_note(MPI_ERR_OTHER, "this process was evicted");
    ballot->votes[ballot->living->rank] = mine;
    return MPI_SUCCESS;
}

/* Sends every member's vote to all. */
static pcclResult_t ballot_launch(struct ballot *ballot)
{
    const struct group *living = ballot->living;
    uint32_t slot = ballot->number * FAILURES_PER_BALLOT +
                    (uint32_t)ballot->failed % FAILURES_PER_BALLOT;
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllGather,
                           .recvbuf = ballot->votes,
                           .count = sizeof *ballot->votes,
                           .members = living->ids,
                           .member_count = (size_t)living->size};
    op.tag = comm_tag_of(ballot->comm, SLOT_AGREE + slot % SLOTS_AGREE);
    return pcclCollectiveAsync(&op, world.pccl, &ballot->handle);
}

/* One round of voting. */
static int ballot_vote(struct ballot *ballot, bool wait)
{
    pcclResult_t result = pcclSuccess;
    bool done = false;
    unsigned turn = 0;
    if (ballot->living->size == 1) return MPI_SUCCESS;
    if (!ballot->launched) result = ballot_launch(ballot);
    ballot->launched = result == pcclSuccess;
    /* other members may wait for operations in flight here: make progress */
    bool busy = coll_any_pending() || transport_busy();
    while (ballot->launched && !(wait && !busy)) {
        if (pcclTestAsync(&ballot->handle, &done) != pcclSuccess || done) break;
        if (!wait) return BALLOT_WAITS;
        coll_progress_all();
        backoff(&turn);
    }
    if (ballot->launched) result = pcclAwaitAsyncReduce(&ballot->handle, NULL);
    ballot->launched = false;
    if (result == pcclSuccess) return MPI_SUCCESS;
    if (result == pcclRankConnectionLost && world_learn(ballot->living))
        return BALLOT_AGAIN;
    return error_note(MPI_ERR_OTHER, "%s", pcclGetErrorString(result));
}

/* Evaluates the votes of a round. BALLOT_WAITS: another round follows. */
static int ballot_count(struct ballot *ballot)
{
    struct vote *votes = ballot->votes;
    int size = ballot->living->size;
    if (!ballot->shrinks) {
        const struct group *peers = comm_peers(ballot->comm);
        ballot->flag = ~0;
        ballot->unacknowledged = false;
        for (int i = 0; i < size; i++) {
            if (listed(peers, ballot->living->ids[i]))
                ballot->flag &= votes[i].flag;
            if (votes[i].unacknowledged) ballot->unacknowledged = true;
        }
        return MPI_SUCCESS;
    }
    if (ballot->round++ == 0) {
        ballot->context = 0;
        for (int i = 0; i < size; i++)
            if (ballot->context < votes[i].context)
                ballot->context = votes[i].context;
        if (!context_can_be(ballot->context, 1)) return context_none_left();
        ballot->claimed = context_claim(ballot->context, 1);
        votes[ballot->living->rank].claimed = ballot->claimed;
        return BALLOT_WAITS;
    }
    for (int i = 0; i < size; i++)
        if (!votes[i].claimed) return BALLOT_AGAIN;
    return ballot->claimed ? MPI_SUCCESS : BALLOT_AGAIN;
}

/* Runs to the end if `wait`; otherwise returns BALLOT_WAITS until it is
 * over. */
static int ballot_run(struct ballot *ballot, bool wait)
{
    for (;;) {
        int result = ballot->living ? MPI_SUCCESS : ballot_open(ballot);
        if (result == MPI_SUCCESS) {
            result = ballot_vote(ballot, wait);
            if (result == BALLOT_WAITS) return result;
        }
        if (result == MPI_SUCCESS) result = ballot_count(ballot);
        if (result == BALLOT_WAITS) continue;
        if (result != BALLOT_AGAIN) return result;
        ballot_reset(ballot);
    }
}

/* The communicator of the living members; of an intercommunicator that of both
 * groups' living members. */
static int shrunk_make(struct ballot *ballot)
{
    struct comm *comm = ballot->comm;
    struct group *living = ballot->living;
    if (!comm->remote) {
        object_retain(&living->object);
        return comm_make(comm, ballot->context, living, ballot->made);
    }
    struct group *local = group_common(comm_members(comm), living);
    struct group *remote = group_common(comm->remote, living);
    if (local && remote && remote->size == 0) {
        object_release(&local->object);
        object_release(&remote->object);
        return error_note(MPIX_ERR_PROC_FAILED,
                          "no member of the remote group is left");
    }
    return comm_make_inter(comm, ballot->context, local, remote, ballot->made);
}

/* Stores the result for the caller. Returns a noted class. */
static int ballot_finish(struct ballot *ballot, int result)
{
    if (result == MPI_SUCCESS && ballot->shrinks) {
        result = shrunk_make(ballot);
    } else if (result == MPI_SUCCESS) {
        *ballot->agreed = ballot->flag;
        if (ballot->unacknowledged)
            result = error_note(MPIX_ERR_PROC_FAILED,
                                "a failure is not acknowledged on all members");
    }
    ballot_reset(ballot);
    return result;
}

/* ------------------------------------------------------------------ the calls
 */

static int ballot_now(struct ballot *ballot, struct comm *comm)
{
    ballot_begin(ballot, comm);
    return ballot_finish(ballot, ballot_run(ballot, true));
}

static bool ballot_progress(struct request *request)
{
    struct ballot *ballot = request->state;
    int result = ballot_run(ballot, false);
    if (result == BALLOT_WAITS) {
        coll_progress_all();
        return false;
    }
    request->error = ballot_finish(ballot, result);
    return true;
}

static void ballot_release(struct request *request)
{
    ballot_reset(request->state);
    free(request->state);
}

static const struct request_kind ballot_kind = {.progress = ballot_progress,
                                                .release = ballot_release};

static int ballot_later(const struct ballot *from, struct comm *comm,
                        MPI_Request *out)
{
    struct ballot *ballot = malloc(sizeof *ballot);
    struct request *request =
        ballot ? request_new(&ballot_kind, comm, ballot) : NULL;
    if (!request) {
        free(ballot);
        return note_no_memory();
    }
    *ballot = *from;
    ballot_begin(ballot, comm);
    request->active = true;
    return request_publish(request, out);
}

int mpi_Comm_agree(struct comm *comm, int *flag)
{
    rank_use_opt_in();
    struct ballot ballot = {.flag = *flag, .agreed = flag};
    return ballot_now(&ballot, comm);
}

int mpi_Comm_iagree(struct comm *comm, int *flag, MPI_Request *request)
{
    rank_use_opt_in();
    struct ballot ballot = {.flag = *flag, .agreed = flag};
    return ballot_later(&ballot, comm, request);
}

int mpi_Comm_shrink(struct comm *comm, MPI_Comm *out)
{
    rank_use_opt_in();
    *out = MPI_COMM_NULL;
    struct ballot ballot = {.shrinks = true, .made = out};
    return ballot_now(&ballot, comm);
}

int mpi_Comm_ishrink(struct comm *comm, MPI_Comm *out, MPI_Request *request)
{
    rank_use_opt_in();
    *out = MPI_COMM_NULL;
    struct ballot ballot = {.shrinks = true, .made = out};
    return ballot_later(&ballot, comm, request);
}
