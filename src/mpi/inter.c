/* inter.c - intercommunicators: creation, inquiry and merging. Communication on
 * them is in the files of its kind: ranks name the peers (comm_peers), and
 * collectives run among both groups (comm_scope). */
#include "agree.h"
#include "coll.h"

#include <stdlib.h>
#include <string.h>

int mpi_Comm_test_inter(struct comm *comm, int *flag)
{
    *flag = comm->remote != NULL;
    return MPI_SUCCESS;
}

/* Returns a noted class. */
static int inter_check(const struct comm *comm)
{
    if (comm->remote) return MPI_SUCCESS;
    return error_note(MPI_ERR_COMM, "not an intercommunicator");
}

int mpi_Comm_remote_size(struct comm *comm, int *size)
{
    int result = inter_check(comm);
    if (result == MPI_SUCCESS) *size = comm->remote->size;
    return result;
}

int mpi_Comm_remote_group(struct comm *comm, MPI_Group *out)
{
    int result = inter_check(comm);
    if (result != MPI_SUCCESS) return result;
    struct group *group = group_copy(comm->remote);
    if (!group) return note_no_memory();
    return group_publish(group, group->size, out);
}

/* -------------------------------------------------------------------- creation
 */

/* Sent by a leader to its group: a description of the other group. */
struct finding {
    int32_t error;
    int32_t size;    /* of the remote group, whose ids follow */
    uint32_t bridge; /* context of the leaders' communicator */
    uint32_t reserved;
};

static int tell_group(struct comm *comm, int leader, void *data, size_t size)
{
    struct coll coll = {.comm = comm, .function = "MPI internal"};
    coll.step = step_broadcast;
    coll.recvbuf = data;
    coll.recvcount = (MPI_Count)size;
    coll.recvtype = type_find(MPI_BYTE);
    coll.rooted = true;
    coll.root = leader;
    coll_begin(&coll);
    int error = coll_settle(&coll);
    coll_arguments_free(&coll);
    return error;
}

static bool overlap(const struct group *a, const struct group *b)
{
    for (int i = 0; i < a->size; i++)
        if (group_rank_of(b, a->ids[i]) != MPI_UNDEFINED) return true;
    return false;
}

/* Whether others have told a group that can be: of processes of the run, each
 * once, and none of ours. */
static bool can_be(const struct group *remote, const struct group *local)
{
    const struct group *view = atomic_load(&world.view);
    if (remote->size == 0 || overlap(local, remote)) return false;
    for (int i = 0; i < remote->size; i++)
        if (group_rank_of(view, remote->ids[i]) == MPI_UNDEFINED ||
            group_rank_of(remote, remote->ids[i]) != i)
            return false;
    return true;
}

static int cannot_be(void)
{
    return error_note(
        MPIX_ERR_PROC_FAILED,
        "the other group names processes that are not in the run");
}

/* The leaders exchange their groups. Returns a noted class; for MPI_SUCCESS
 * also the other group. */
static int leaders_meet(const struct group *local, struct comm *bridge,
                        int other, int tag, struct group **remote)
{
    if (other < 0 || other >= comm_peers(bridge)->size)
        return error_note(MPI_ERR_RANK, "remote leader %d", other);
    enum { IDS = PRIVATE_MAX / sizeof(uint64_t) };
    if (local->size > IDS)
        return error_note(MPI_ERR_OTHER, "a group of more than %d", (int)IDS);
    uint64_t *ids = malloc(PRIVATE_MAX), to = comm_peers(bridge)->ids[other];
    uint32_t context =
        bridge->context | CHANNEL_AGREE | CHANNEL_NUMBER(AGREE_LEADERS);
    size_t got = 0;
    if (!ids) return error_note(MPI_ERR_NO_MEM, "out of memory");
    int result = private_send(to, context, tag, local->ids,
                              (size_t)local->size * sizeof *ids);
    if (result == MPI_SUCCESS)
        result = private_receive(to, context, tag, ids, PRIVATE_MAX, &got);
    if (result == MPI_SUCCESS) {
        int size = (int)(got / sizeof *ids);
        *remote = group_new(size);
        if (*remote)
            memcpy((*remote)->ids, ids, (size_t)size * sizeof *ids);
        else
            result = error_note(MPI_ERR_NO_MEM, "out of memory");
    }
    if (result == MPI_SUCCESS && overlap(local, *remote))
        result = error_note(MPI_ERR_COMM, "the groups have common members");
    if (result == MPI_SUCCESS && !can_be(*remote, local)) result = cannot_be();
    free(ids);
    return result;
}

/* Broadcasts the leader's result to its group. *remote is the leader's, and in
 * the end that of all. Returns a noted class. */
static int finding_share(struct comm *comm, int leader, struct finding *found,
                         struct group **remote)
{
    int rank = comm_members(comm)->rank;
    int result = tell_group(comm, leader, found, sizeof *found);
    if (result == MPI_SUCCESS && found->error != MPI_SUCCESS) {
        if (rank != leader)
            error_note(found->error, "the leaders did not meet");
        result = found->error;
    }
    if (result != MPI_SUCCESS) return result;
    if (found->size < 1 || found->size > atomic_load(&world.view)->size)
        return cannot_be();
    if (!*remote) *remote = group_new(found->size);
    /* a member without memory still takes part */
    uint64_t *ids =
        *remote ? (*remote)->ids : malloc((size_t)found->size * sizeof *ids);
    if (!ids) return error_note(MPI_ERR_NO_MEM, "out of memory");
    result = tell_group(comm, leader, ids, (size_t)found->size * sizeof *ids);
    if (!*remote) {
        free(ids);
        return error_note(MPI_ERR_NO_MEM, "out of memory");
    }
    if (result == MPI_SUCCESS && !can_be(*remote, comm_members(comm)))
        result = cannot_be();
    return result;
}

/* Agrees with the other group on a context and makes the communicator. Takes
 * remote over. */
static int inter_make(struct comm *comm, struct group *remote, uint32_t bridge,
                      int tag, MPI_Comm *out)
{
    struct group *local = (struct group *)(uintptr_t)comm_members(comm);
    struct comm groups = {0};
    uint32_t context;
    object_retain(&local->object);
    object_retain(&remote->object);
    int result = MPI_SUCCESS;
    if (!comm_set_groups(&groups, local, remote))
        result = error_note(MPI_ERR_NO_MEM, "out of memory");
    bridge |= CHANNEL_AGREE | CHANNEL_NUMBER(AGREE_UNION);
    if (result == MPI_SUCCESS)
        result = agree_context(groups.both, bridge, tag, &context);
    if (groups.both) object_release(&groups.both->object);
    if (result == MPI_SUCCESS) {
        result = comm_make_inter(comm, context, local, remote, out);
    } else {
        object_release(&local->object);
        object_release(&remote->object);
    }
    object_release(&remote->object);
    return result;
}

int mpi_Intercomm_create(struct comm *comm, int leader, MPI_Comm bridge_handle,
                         int other, int tag, MPI_Comm *out)
{
    const struct group *local = comm_members(comm);
    if (comm->remote)
        return error_note(MPI_ERR_COMM, "the local one must not be an "
                                        "intercommunicator");
    if (leader < 0 || leader >= local->size)
        return error_note(MPI_ERR_RANK, "local leader %d", leader);
    if (tag < 0) return error_note(MPI_ERR_TAG, "tag %d", tag);
    struct comm *bridge = comm_find(bridge_handle);
    if (local->rank == leader && !bridge)
        return error_note(MPI_ERR_COMM, "invalid communicator 0x%08x",
                          HANDLE_BITS(bridge_handle));
    struct group *remote = NULL;
    struct finding found = {0};
    *out = MPI_COMM_NULL;
    if (local->rank == leader) {
        found.error = leaders_meet(local, bridge, other, tag, &remote);
        found.bridge = bridge->context;
        found.size = remote ? remote->size : 0;
    }
    int result = finding_share(comm, leader, &found, &remote);
    if (result == MPI_SUCCESS)
        result = inter_make(comm, remote, found.bridge, tag, out);
    else if (remote)
        object_release(&remote->object);
    return result;
}

int inter_from_groups(struct comm *comm, int leader, const struct group *other,
                      uint32_t bridge, int tag, MPI_Comm *out)
{
    const struct group *local = comm_members(comm);
    struct group *remote = NULL;
    struct finding found = {.bridge = bridge};
    if (local->rank == leader) {
        if (!other)
            found.error =
                error_note(MPI_ERR_GROUP, "invalid remote group or leader");
        else if (overlap(local, other))
            found.error =
                error_note(MPI_ERR_GROUP, "the groups have common members");
        else if (!(remote = group_copy(other)))
            found.error = error_note(MPI_ERR_NO_MEM, "out of memory");
        found.size = remote ? remote->size : 0;
    }
    int result = finding_share(comm, leader, &found, &remote);
    if (result == MPI_SUCCESS)
        return inter_make(comm, remote, bridge, tag, out);
    if (remote) object_release(&remote->object);
    return result;
}

/* ---------------------------------------------------------------------- merge
 */

/* Merges both groups, the low one first; if both pass the same value, the first
 * one of the scope. */
static struct group *merged(const struct comm *comm, const int *high)
{
    const struct group *both = comm->both;
    int front = both->size - comm->remote->size;
    if (both->ids[0] == comm->remote->ids[0]) front = comm->remote->size;
    struct group *group = group_new(both->size);
    if (!group) return NULL;
    int shift = high[0] && !high[front] ? front : 0;
    for (int i = 0; i < both->size; i++)
        group->ids[i] = both->ids[(i + shift) % both->size];
    group_place(group, world.self);
    return group;
}

int mpi_Intercomm_merge(struct comm *comm, int high, MPI_Comm *out)
{
    uint32_t context;
    int result = inter_check(comm);
    if (result != MPI_SUCCESS) return result;
    *out = MPI_COMM_NULL;
    int mine = high != 0;
    int *all = calloc((size_t)comm->both->size, sizeof *all);
    if (!all) return note_no_memory();
    result = coll_gather_bytes(comm, &mine, sizeof mine, all);
    if (result == MPI_SUCCESS) result = comm_agree_context(comm, 1, &context);
    if (result == MPI_SUCCESS)
        result = comm_make(comm, context, merged(comm, all), out);
    free(all);
    return result;
}
