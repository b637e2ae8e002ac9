/* coll_failure.c - decides how a collective handles the loss of a member. */
#include "coll.h"
#include "rank_use.h"
#include "revoke.h"

#include <stdio.h>

const char lost_root_text[] =
    "the root was lost and no rank has its data; PCCL_LOST_ROOT=promote lets "
    "the rank that now has its number send its own";

/* Lists the ranks of the members that pccl has reported as lost. */
static void lost_describe(const struct group *members, char *text, size_t size)
{
    size_t used = 0;
    struct group *now = world_now();
    *text = 0;
    for (int i = 0; now && i < members->size && used < size; i++) {
        if (group_rank_of(now, members->ids[i]) != MPI_UNDEFINED) continue;
        int n = snprintf(text + used, size - used, "%s%d", used ? ", " : "", i);
        used += n > 0 ? (size_t)n : 0;
    }
    if (now) object_release(&now->object);
}

static _Noreturn void failure_abort(const struct coll *coll, const char *what)
{
    char lost[128] = "", detail[256] = "", line[640];
    if ((coll->comm->follows_world || world_learn(coll->members)) &&
        world_refresh())
        lost_describe(coll->called, lost, sizeof lost);
    (void)pcclGetLastError(world.pccl, detail, sizeof detail);
    snprintf(line, sizeof line,
             "Abort(%d) on node %d (rank %d in comm 0x%08x): Fatal error in "
             "%s: %s%s%s%s%s (PCCL_ON_FAILURE=abort)",
             MPIX_ERR_PROC_FAILED, coll->called->rank, coll->called->rank,
             HANDLE_BITS(coll->comm->object.handle),
             public_name(coll->function), what, *lost ? ": rank " : "", lost,
             *detail ? ": " : "", detail);
    env_abort(MPIX_ERR_PROC_FAILED, line);
}

/* Removes lost members from a communicator that does not follow the world. */
static int members_filter(struct comm *comm)
{
    const struct group *now = comm_members(comm);
    struct group *left = group_common(now, atomic_load(&world.view));
    if (!left) return error_note(MPI_ERR_NO_MEM, "out of memory");
    if (left->size == now->size) {
        object_release(&left->object);
        return error_note(MPIX_ERR_PROC_FAILED,
                          "a member of the communicator was lost");
    }
    atomic_fetch_add(&comm->lost, (unsigned)(now->size - left->size));
    comm_members_replace(comm, left);
    return MPI_SUCCESS;
}

/* Ranks stay (E5): the error of a loss. */
static int failure_stays(const struct coll *coll)
{
    char lost[128];
    lost_describe(coll->members, lost, sizeof lost);
    return error_note(MPIX_ERR_PROC_FAILED, "%s%s was lost",
                      *lost ? "rank " : "a member of the communicator", lost);
}

/* Another process takes the place of a lost root, or the call fails. The same
 * on all members. */
static int failure_root(struct coll *coll)
{
    coll->orphan = true;
    if (coll->root >= coll->members->size)
        return error_note(MPIX_ERR_PROC_FAILED,
                          "the root was lost, and no rank has its number %d",
                          coll->root);
    if (coll->uses == USES_RANKS && !coll->to_root)
        return error_note(MPIX_ERR_PROC_FAILED,
                          "the root was lost, and no rank can take its place");
    if (coll->root == coll->members->rank && coll->to_root) coll->to_root(coll);
    return MPI_SUCCESS;
}

static int failure_shrink(struct coll *coll)
{
    struct comm *comm = coll->comm;
    if (comm->remote)
        return error_note(MPIX_ERR_PROC_FAILED,
                          "a member of an intercommunicator was lost");
    if (!comm->follows_world && !world_learn(coll->members))
        return error_note(MPI_ERR_OTHER, "cannot read the view of the run");
    if (!rank_use_allows_change()) return failure_stays(coll);
    const struct group *before = atomic_load(&world.view);
    if (!world_refresh())
        return error_note(MPI_ERR_OTHER, "cannot read the view of the run");
    rank_use_changed(before, coll->number);
    /* Another operation may have handled the loss already. */
    if (!comm->follows_world && comm_members(comm) == coll->members) {
        int result = members_filter(comm);
        if (result != MPI_SUCCESS) return result;
    }
    coll_members_set(coll, comm_members(comm));
    coll->round = 0;
    coll_stages_free(coll);
    bool orphan =
        coll->rooted && (coll->orphan || coll_root_now(coll) == MPI_UNDEFINED);
    return orphan ? failure_root(coll) : MPI_SUCCESS;
}

/* The members disagree on the arguments, or one of them made the operation fail
 * because it may not know its rank (E6, E7). */
static int failure_mismatch(const struct coll *coll, const char *text)
{
    bool changed = coll->comm->follows_world && rank_use_has_changed() &&
                   coll->uses != USES_NOTHING;
    if (!changed && !coll->unaware && !coll->orphan)
        return error_note(MPI_ERR_NOT_SAME, "%s", text);
    if (coll->uses == USES_ROOT_DATA)
        return error_note(MPIX_ERR_PROC_FAILED, "%s", lost_root_text);
    return error_note(MPIX_ERR_PROC_FAILED, "%s", rank_use_changed_text);
}

/* A handler that the program installed has precedence over the default. */
static bool aborts(const struct coll *coll)
{
    MPI_Errhandler handler = atomic_load(&coll->comm->errhandler);
    return world.policy == FAILURE_ABORT && handler != 0 &&
           handler != MPI_ERRORS_RETURN;
}

int coll_failed(struct coll *coll, pcclResult_t result)
{
    char detail[256] = "";
    (void)pcclGetLastError(world.pccl, detail, sizeof detail);
    const char *text = *detail ? detail : pcclGetErrorString(result);
    /* This failure may arrive before the message that revokes. */
    if (result == pcclOperationFailed) revoke_learned(coll->comm);
    if (comm_revoked(coll->comm))
        return error_note(MPIX_ERR_REVOKED, "the communicator was revoked");
    switch (result) {
    case pcclRankConnectionLost:
    case pcclTooFewPeers:
        if (world.policy == FAILURE_SHRINK) return failure_shrink(coll);
        if (aborts(coll)) failure_abort(coll, "process lost");
        return error_note(MPIX_ERR_PROC_FAILED, "a member was lost: %s", text);
    case pcclMasterConnectionFailed:
        if (aborts(coll))
            failure_abort(coll, "this process was evicted or the run is over");
        return error_note(MPI_ERR_OTHER,
                          "this process was evicted or the run is over: %s",
                          text);
    case pcclInvalidArgument:
        return failure_mismatch(coll, text);
    case pcclInternalError:
        return error_note(MPI_ERR_NO_MEM, "%s", text);
    default:
        return error_note(MPI_ERR_OTHER, "%s", text);
    }
}
