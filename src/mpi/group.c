/* group.c - MPI_Group: ordered lists of member ids. */
#include "mpi_comm.h"
#include "p2p.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct group group_empty = {
    .object = {.handle = MPI_GROUP_EMPTY, .references = 1},
    .rank = MPI_UNDEFINED};
/* The lists that were replaced last, the oldest first. */
enum { RETIRED_MAX = 64 };
static struct group *retired, **retired_end = &retired;
static int retired_count;

static void group_destroy(struct object *object)
{
    struct group *group = (struct group *)object;
    session_room_release(group->session);
    view_release(group->view);
    free(group);
}

struct group *group_new(int size)
{
    assert(size >= 0);
    struct group *group =
        calloc(1, sizeof *group + (size_t)size * sizeof group->own[0]);
    if (!group) return NULL;
    object_init(&group->object, group_destroy);
    group->size = size;
    group->rank = MPI_UNDEFINED;
    group->ids = group->own;
    return group;
}

struct group *group_of_view(const struct view *view)
{
    struct group *group = group_new(0);
    if (!group) {
        view_release(view);
        return NULL;
    }
    group->view = view;
    group->size = (int)view->size;
    group->rank = (int)view->rank;
    group->ids = view->ids;
    return group;
}

struct group *group_from(const struct group *from, int size)
{
    struct group *group = group_new(size);
    if (group) group->session = session_room_retain(from->session);
    return group;
}

struct group *group_copy(const struct group *from)
{
    if (from->view) return group_of_view(view_retain(from->view));
    struct group *group = group_new(from->size);
    if (!group) return NULL;
    memcpy(group->ids, from->ids, (size_t)from->size * sizeof *group->ids);
    group->rank = from->rank;
    return group;
}

int group_rank_of(const struct group *group, uint64_t id)
{
    if (group->view) {
        uint32_t rank = view_find(group->view, id);
        return rank < group->view->size ? (int)rank : MPI_UNDEFINED;
    }
    for (int i = 0; i < group->size; i++)
        if (group->ids[i] == id) return i;
    return MPI_UNDEFINED;
}

void group_place(struct group *group, uint64_t self)
{
    group->rank = group_rank_of(group, self);
}

/* Appends the members of `from` that are, or are not, in `other`. */
static int list_filter(const struct group *from, const struct group *other,
                       bool wanted, struct group *to, int used)
{
    for (int i = 0; i < from->size; i++) {
        bool present = group_rank_of(other, from->ids[i]) != MPI_UNDEFINED;
        if (present == wanted) to->ids[used++] = from->ids[i];
    }
    return used;
}

struct group *group_common(const struct group *a, const struct group *b)
{
    struct group *common = group_new(a->size);
    if (!common) return NULL;
    common->size = list_filter(a, b, true, common, 0);
    group_place(common, world.self);
    return common;
}

/* Communicators may have one list in common: it is in the chain once, with one
 * reference, at the place of the last one that has given it up. */
static void unchain(struct group *group)
{
    struct group **at = &retired;
    while (*at && *at != group) at = &(*at)->retired_next;
    if (!*at) return;
    *at = group->retired_next;
    if (retired_end == &group->retired_next) retired_end = at;
    retired_count--;
    object_release(&group->object);
}

void group_retire(struct group *group)
{
    unchain(group);
    group->retired_next = NULL;
    *retired_end = group;
    retired_end = &group->retired_next;
    if (++retired_count <= RETIRED_MAX) return;
    struct group *oldest = retired;
    retired = oldest->retired_next;
    retired_count--;
    object_release(&oldest->object);
}

void groups_release_retired(void)
{
    while (retired) {
        struct group *next = retired->retired_next;
        object_release(&retired->object);
        retired = next;
    }
    retired_end = &retired;
    retired_count = 0;
}

struct group *group_find(MPI_Group handle)
{
    if (handle == MPI_GROUP_EMPTY) return &group_empty;
    return (struct group *)handle_find(HANDLE_GROUP, handle);
}

/* NULL, noted: it is none. */
static struct group *group_find_noted(MPI_Group handle)
{
    struct group *group = group_find(handle);
    if (!group)
        error_note(MPI_ERR_GROUP, "invalid group 0x%08x", HANDLE_BITS(handle));
    return group;
}

int group_publish(struct group *group, int size, MPI_Group *out)
{
    if (size == 0) {
        object_release(&group->object);
        *out = MPI_GROUP_EMPTY;
        return MPI_SUCCESS;
    }
    group->size = size;
    group_place(group, world.self);
    if (!handle_open(HANDLE_GROUP, &group->object)) {
        object_release(&group->object);
        return note_no_memory();
    }
    *out = group->object.handle;
    return MPI_SUCCESS;
}

int mpi_Comm_group(struct comm *comm, MPI_Group *out)
{
    struct group *group = group_copy(comm_members(comm));
    if (!group) return note_no_memory();
    group->session = session_room_retain(comm->session);
    return group_publish(group, group->size, out);
}

int mpi_Group_size(struct group *group, int *size)
{
    *size = group->size;
    return MPI_SUCCESS;
}

int mpi_Group_rank(struct group *group, int *rank)
{
    *rank = group->rank;
    return MPI_SUCCESS;
}

int mpi_Group_free(MPI_Group *handle)
{
    struct group *group = group_find_noted(*handle);
    if (!group) return MPI_ERR_GROUP;
    if (group != &group_empty) {
        handle_close(&group->object);
        object_release(&group->object);
    }
    *handle = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

static int lists_compare(const struct group *a, const struct group *b)
{
    if (a->size != b->size) return MPI_UNEQUAL;
    size_t size = (size_t)a->size * sizeof *a->ids;
    if (size == 0 || memcmp(a->ids, b->ids, size) == 0) return MPI_IDENT;
    for (int i = 0; i < a->size; i++)
        if (group_rank_of(b, a->ids[i]) == MPI_UNDEFINED) return MPI_UNEQUAL;
    return MPI_SIMILAR;
}

int mpi_Group_compare(struct group *a, MPI_Group handle, int *result)
{
    struct group *b = group_find_noted(handle);
    if (!b) return MPI_ERR_GROUP;
    *result = lists_compare(a, b);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_compare);
int PMPI_Comm_compare(MPI_Comm handle1, MPI_Comm handle2, int *result)
{
    COMM_OR_RETURN(a, handle1);
    COMM_OR_RETURN(b, handle2);
    if (!result) return RAISE_ARG(a, "null result");
    if (a == b) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    if (!a->remote != !b->remote) {
        *result = MPI_UNEQUAL;
        return MPI_SUCCESS;
    }
    *result = lists_compare(comm_members(a), comm_members(b));
    if (a->remote) {
        int remote = lists_compare(a->remote, b->remote);
        if (remote > *result) *result = remote;
    }
    if (*result == MPI_IDENT) *result = MPI_CONGRUENT;
    return MPI_SUCCESS;
}

int mpi_Group_translate_ranks(struct group *a, int n, const int ranks1[],
                              MPI_Group handle, int ranks2[])
{
    struct group *b = group_find_noted(handle);
    if (!b) return MPI_ERR_GROUP;
    if (n < 0) return note_argument("negative count");
    if (n > 0 && (!ranks1 || !ranks2)) return note_argument("null ranks");
    for (int i = 0; i < n; i++) {
        int rank = ranks1[i];
        if (rank != MPI_PROC_NULL && (rank < 0 || rank >= a->size))
            return error_note(MPI_ERR_RANK, "rank %d is not in the group",
                              rank);
        ranks2[i] = rank == MPI_PROC_NULL ? MPI_PROC_NULL
                                          : group_rank_of(b, a->ids[rank]);
    }
    return MPI_SUCCESS;
}

int mpi_Group_union(struct group *a, MPI_Group handle, MPI_Group *out)
{
    struct group *b = group_find_noted(handle);
    if (!b) return MPI_ERR_GROUP;
    struct group *group = group_from(a, a->size + b->size);
    if (!group) return note_no_memory();
    int used = list_filter(a, a, true, group, 0);
    used = list_filter(b, a, false, group, used);
    return group_publish(group, used, out);
}

static int group_select(const struct group *a, MPI_Group handle, bool common,
                        MPI_Group *out)
{
    struct group *b = group_find_noted(handle);
    if (!b) return MPI_ERR_GROUP;
    struct group *group = group_from(a, a->size);
    if (!group) return note_no_memory();
    return group_publish(group, list_filter(a, b, common, group, 0), out);
}

int mpi_Group_intersection(struct group *a, MPI_Group handle, MPI_Group *out)
{
    return group_select(a, handle, true, out);
}

int mpi_Group_difference(struct group *a, MPI_Group handle, MPI_Group *out)
{
    return group_select(a, handle, false, out);
}

/* The ranks of the triplets in order, each at most once; NULL with *error set
 * otherwise. The caller frees. */
static int *ranges_expand(const struct group *group, int n, int ranges[][3],
                          int *count, int *error)
{
    int *ranks = malloc(((size_t)group->size + 1) * sizeof *ranks);
    bool *seen = calloc((size_t)group->size + 1, sizeof *seen);
    *count = 0;
    *error = ranks && seen ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int i = 0; i < n && *error == MPI_SUCCESS; i++) {
        int first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
        if (stride == 0) *error = MPI_ERR_ARG;
        if (stride > 0 ? first > last : first < last) *error = MPI_ERR_ARG;
        for (int r = first; *error == MPI_SUCCESS; r += stride) {
            if (stride > 0 ? r > last : r < last) break;
            if (r < 0 || r >= group->size || seen[r]) {
                *error = MPI_ERR_RANK;
            } else {
                seen[r] = true;
                ranks[(*count)++] = r;
            }
        }
    }
    free(seen);
    if (*error == MPI_SUCCESS) return ranks;
    free(ranks);
    return NULL;
}

static int include(const struct group *from, int n, const int *ranks,
                   MPI_Group *out)
{
    struct group *group = group_from(from, n);
    if (!group) return note_no_memory();
    for (int i = 0; i < n; i++) group->ids[i] = from->ids[ranks[i]];
    return group_publish(group, n, out);
}

static int exclude(const struct group *from, int n, const int *ranks,
                   MPI_Group *out)
{
    struct group *group = group_from(from, from->size);
    bool *gone = calloc((size_t)from->size + 1, sizeof *gone);
    if (!group || !gone) {
        if (group) object_release(&group->object);
        free(gone);
        return note_no_memory();
    }
    int used = 0;
    for (int i = 0; i < n; i++) gone[ranks[i]] = true;
    for (int i = 0; i < from->size; i++)
        if (!gone[i]) group->ids[used++] = from->ids[i];
    free(gone);
    return group_publish(group, used, out);
}

typedef int selection(const struct group *, int, const int *, MPI_Group *);

static int group_pick(const struct group *group, int n, int ranges[][3],
                      MPI_Group *out, selection *select)
{
    if (n < 0 || (n > 0 && !ranges))
        return note_argument("negative count or null ranks");
    int count, error;
    int *list = ranges_expand(group, n, ranges, &count, &error);
    if (!list)
        return error_note(error, "a range or rank is empty, is named twice or "
                                 "is not in the group");
    int result = select(group, count, list, out);
    free(list);
    return result;
}

static int group_pick_ranks(const struct group *group, int n, const int ranks[],
                            MPI_Group *out, selection *select)
{
    if (n < 0 || !ranks) return group_pick(group, n, NULL, out, select);
    int(*ranges)[3] = malloc(((size_t)n + 1) * sizeof *ranges);
    if (!ranges) return note_no_memory();
    for (int i = 0; i < n; i++) {
        ranges[i][0] = ranges[i][1] = ranks[i];
        ranges[i][2] = 1;
    }
    int result = group_pick(group, n, ranges, out, select);
    free(ranges);
    return result;
}

int mpi_Group_incl(struct group *group, int n, const int ranks[],
                   MPI_Group *out)
{
    return group_pick_ranks(group, n, ranks, out, include);
}

int mpi_Group_excl(struct group *group, int n, const int ranks[],
                   MPI_Group *out)
{
    return group_pick_ranks(group, n, ranks, out, exclude);
}

int mpi_Group_range_incl(struct group *group, int n, int ranges[][3],
                         MPI_Group *out)
{
    return group_pick(group, n, ranges, out, include);
}

int mpi_Group_range_excl(struct group *group, int n, int ranges[][3],
                         MPI_Group *out)
{
    return group_pick(group, n, ranges, out, exclude);
}
