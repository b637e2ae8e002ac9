/* comm_split.c - makes communicators of parts of another. The parent's members
 * gather each other's parameters; all compute the same result locally. */
#include "comm_split.h"
#include "agree.h"
#include "coll.h"

#include <stdlib.h>
#include <string.h>

/* What each member tells. */
struct color_key {
    int color, key;
};

struct wish {
    struct color_key by;
    int rank;  /* in the parent; in an intercommunicator in its group */
    int other; /* intercommunicator: it is in the second group of the scope */
    uint64_t id;
};

/* Whether this process's group is the second one of the scope. */
static bool stands_behind(const struct comm *parent)
{
    return parent->both && parent->both->ids[0] != comm_members(parent)->ids[0];
}

static int wish_order(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;
    if (x->by.color != y->by.color) return x->by.color < y->by.color ? -1 : 1;
    if (x->by.key != y->by.key) return x->by.key < y->by.key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The wishes of all members, in their order. Who they are is known here. */
static void wishes_list(const struct comm *parent, const struct color_key *told,
                        struct wish *all)
{
    const struct group *scope = comm_scope(parent);
    int second = scope->size; /* where the second group begins */
    if (parent->both) {
        int own = comm_members(parent)->size;
        second = stands_behind(parent) ? second - own : own;
    }
    for (int i = 0; i < scope->size; i++)
        all[i] = (struct wish){.by = told[i],
                               .rank = i < second ? i : i - second,
                               .other = i >= second,
                               .id = scope->ids[i]};
}

/* The wishes of all members, sorted, and their number. After a loss in shrink
 * mode there may be fewer than the parent had. The caller frees. */
static struct wish *wishes_gather(struct comm *parent, int color, int key,
                                  int *count, int *error)
{
    struct color_key mine = {color, key};
    size_t most = (size_t)comm_scope(parent)->size;
    struct color_key *told = calloc(most, sizeof *told);
    struct wish *all = calloc(most, sizeof *all);
    *error = all && told ? coll_gather_bytes(parent, &mine, sizeof mine, told)
                         : error_note(MPI_ERR_NO_MEM, "out of memory");
    if (*error == MPI_SUCCESS) {
        *count = comm_scope(parent)->size;
        /* Others have carried it: it is ours all the same. */
        told[comm_scope(parent)->rank] = mine;
        wishes_list(parent, told, all);
        qsort(all, (size_t)*count, sizeof *all, wish_order);
    }
    free(told);
    if (*error == MPI_SUCCESS) return all;
    free(all);
    return NULL;
}

/* The members of a color in one of the two groups. */
static struct group *color_group(const struct wish *all, int count, int color,
                                 int other)
{
    int size = 0;
    for (int i = 0; i < count; i++)
        size += all[i].by.color == color && all[i].other == other;
    struct group *group = group_new(size);
    if (!group) return NULL;
    for (int i = 0, k = 0; i < count; i++)
        if (all[i].by.color == color && all[i].other == other)
            group->ids[k++] = all[i].id;
    group_place(group, world.self);
    return group;
}

/* Makes the communicator of one color. Returns a noted class. */
static int color_make(struct comm *parent, uint32_t context,
                      const struct wish *all, int count, int color,
                      MPI_Comm *out)
{
    int own = stands_behind(parent);
    struct group *local = color_group(all, count, color, own);
    if (!parent->remote) return comm_make(parent, context, local, out);
    struct group *remote = color_group(all, count, color, !own);
    if (local && remote && remote->size == 0) {
        object_release(&local->object);
        object_release(&remote->object);
        return MPI_SUCCESS; /* no member: MPI_COMM_NULL */
    }
    return comm_make_inter(parent, context, local, remote, out);
}

int split_run(struct comm *parent, int color, int key, MPI_Comm *out)
{
    int count, error;
    uint32_t context;
    *out = MPI_COMM_NULL;
    struct wish *all = wishes_gather(parent, color, key, &count, &error);
    if (!all) return error;
    int colors = 0, mine = 0;
    for (int i = 0; i < count; i++) {
        bool first = i == 0 || all[i].by.color != all[i - 1].by.color;
        if (!first || all[i].by.color == MPI_UNDEFINED) continue;
        if (all[i].by.color == color) mine = colors;
        colors++;
    }
    error = comm_agree_context(parent, colors, &context);
    if (error == MPI_SUCCESS && color != MPI_UNDEFINED)
        error = color_make(parent, context + (uint32_t)mine, all, count, color,
                           out);
    free(all);
    return error;
}

void split_lacks(struct comm *made, int members)
{
    int there = comm_members(made)->size;
    if (there < members) atomic_store(&made->lost, (unsigned)(members - there));
}

int mpi_Comm_split(struct comm *comm, int color, int key, MPI_Comm *out)
{
    if (color < 0 && color != MPI_UNDEFINED)
        return note_argument("negative color");
    int result = split_run(comm, color, key, out);
    return result;
}

/* The host number of a member, equal for those that can share memory; 0: it was
 * lost. */
static uint64_t host_of(const struct group *now, uint64_t id)
{
    int rank = group_rank_of(now, id);
    return rank == MPI_UNDEFINED ? 0 : now->view->members[rank].host;
}

/* The color of a member's host: the lowest rank on it. */
static int host_color(struct comm *comm)
{
    const struct group *members = comm_scope(comm);
    struct group *now = world_now();
    int color = 0;
    if (!now) return -1;
    uint64_t host = host_of(now, world.self);
    while (host_of(now, members->ids[color]) != host) color++;
    object_release(&now->object);
    return color;
}

int mpi_Comm_split_type(struct comm *comm, int type, int key, MPI_Info info,
                        MPI_Comm *out)
{
    int color = MPI_UNDEFINED;
    bool shared = type == MPI_COMM_TYPE_SHARED;
    bool guided = type == MPI_COMM_TYPE_HW_GUIDED ||
                  type == MPI_COMM_TYPE_RESOURCE_GUIDED;
    if (guided) {
        char level[sizeof "mpi_shared_memory"] = "";
        int found = 0;
        if (info != MPI_INFO_NULL &&
            PMPI_Info_get(info, "mpi_hw_resource_type", sizeof level - 1, level,
                          &found) == MPI_SUCCESS)
            shared = found && strcmp(level, "mpi_shared_memory") == 0;
    }
    if (shared) {
        color = host_color(comm);
        if (color < 0) return note_no_memory();
    } else if (type != MPI_UNDEFINED && !guided &&
               type != MPI_COMM_TYPE_HW_UNGUIDED &&
               type != MPIX_COMM_TYPE_NEIGHBORHOOD) {
        return note_argument("unknown split type");
    }
    /* Other hardware levels are unknown and give MPI_COMM_NULL. */
    int result = split_run(comm, color, key, out);
    return result;
}

/* The group's members; all must be in the communicator. */
static struct group *subgroup(struct comm *comm, const struct group *wanted,
                              int *error)
{
    const struct group *members = comm_members(comm);
    *error = MPI_SUCCESS;
    for (int i = 0; i < wanted->size; i++)
        if (group_rank_of(members, wanted->ids[i]) == MPI_UNDEFINED)
            *error = MPI_ERR_GROUP;
    return *error == MPI_SUCCESS ? group_copy(wanted) : NULL;
}

int mpi_Comm_create(struct comm *comm, MPI_Group group_handle, MPI_Comm *out)
{
    struct group *group = group_find(group_handle);
    int error;
    uint32_t context;
    if (!group) return error_note(MPI_ERR_GROUP, "invalid group");
    *out = MPI_COMM_NULL;
    struct group *members = subgroup(comm, group, &error);
    if (error != MPI_SUCCESS)
        return error_note(error, "the group is not part of the communicator");
    if (!members) return note_no_memory();
    if (comm->remote) {
        /* Both sides pass their own group: a split. */
        int place = members->rank;
        object_release(&members->object);
        error = split_run(comm, place == MPI_UNDEFINED ? MPI_UNDEFINED : 0,
                          place == MPI_UNDEFINED ? 0 : place, out);
        return error;
    }
    /* Groups of one call may differ if they are disjoint: each takes the
     * context of its first rank in the parent. */
    int size = comm_members(comm)->size;
    int offset = members->size > 0
                     ? group_rank_of(comm_members(comm), members->ids[0])
                     : 0;
    error = comm_agree_context(comm, size, &context);
    if (error == MPI_SUCCESS && members->rank != MPI_UNDEFINED)
        error = comm_make(comm, context + (uint32_t)offset, members, out);
    else
        object_release(&members->object);
    return error;
}

/* Collective over the group only; its messages use the parent's context and the
 * tag of the program. */
int mpi_Comm_create_group(struct comm *comm, MPI_Group group_handle, int tag,
                          MPI_Comm *out)
{
    struct group *group = group_find(group_handle);
    int error;
    uint32_t context;
    if (!group) return error_note(MPI_ERR_GROUP, "invalid group");
    if (tag < 0) return error_note(MPI_ERR_TAG, "tag %d", tag);
    if (comm->remote)
        return error_note(MPI_ERR_COMM, "not defined for intercommunicators");
    *out = MPI_COMM_NULL;
    struct group *members = subgroup(comm, group, &error);
    if (error != MPI_SUCCESS)
        return error_note(error, "the group is not part of the communicator");
    if (!members) return note_no_memory();
    if (members->rank == MPI_UNDEFINED) {
        object_release(&members->object);
        return MPI_SUCCESS;
    }
    uint32_t channel =
        comm->context | CHANNEL_AGREE | CHANNEL_NUMBER(AGREE_GROUP);
    error = agree_context(members, channel, tag, &context);
    if (error == MPI_SUCCESS)
        error = comm_make(comm, context, members, out);
    else
        object_release(&members->object);
    return error;
}
