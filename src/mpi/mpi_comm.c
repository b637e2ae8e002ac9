/* mpi_comm.c - communicators: predefined ones, creation, inquiry, freeing. */
#include "mpi_comm.h"
#include "cart.h"
#include "coll.h"
#include "errhandler.h"
#include "graph.h"
#include "info.h"
#include "p2p.h"
#include "partitioned.h"
#include "rank_use.h"
#include "revoke.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct comm comm_world = {.object = {.handle = MPI_COMM_WORLD, .references = 1},
                          .follows_world = true,
                          .errhandler = MPI_ERRORS_ARE_FATAL,
                          .name = "MPI_COMM_WORLD"};
struct comm comm_self = {.object = {.handle = MPI_COMM_SELF, .references = 1},
                         .local = true,
                         .errhandler = MPI_ERRORS_ARE_FATAL,
                         .name = "MPI_COMM_SELF"};

enum {
    CONTEXT_WORLD = 0,
    CONTEXT_SELF = 1,
    CONTEXT_FIRST = 2,
    CONTEXT_NONE = 0x3fffff
};

/* First context id this process has not used. */
static atomic_uint context_next = CONTEXT_FIRST;

/* Fields of a tag, from the top: context 22 bits, first member 16, members lost
 * 4, slot 22. */
enum { TAG_MEMBER_SHIFT = 26, TAG_CONTEXT_SHIFT = 42, TAG_LOST_SHIFT = 22 };

struct comm *comm_find(MPI_Comm handle)
{
    if (handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF) {
        if (!env_world_active()) return NULL;
        return handle == MPI_COMM_WORLD ? &comm_world : &comm_self;
    }
    if (!env_active()) return NULL;
    return (struct comm *)handle_find(HANDLE_COMM, handle);
}

const struct group *comm_members(const struct comm *comm)
{
    return comm->follows_world ? atomic_load(&world.view)
                               : atomic_load(&comm->members);
}

const struct group *comm_peers(const struct comm *comm)
{
    return comm->remote ? comm->remote : comm_members(comm);
}

const struct group *comm_scope(const struct comm *comm)
{
    return comm->both ? comm->both : comm_members(comm);
}

void comm_members_replace(struct comm *comm, struct group *members)
{
    assert(!comm->follows_world);
    facade_lock();
    struct group *old = atomic_exchange(&comm->members, members);
    if (old) group_retire(old);
    facade_unlock();
}

uint64_t comm_tag_of(const struct comm *comm, uint32_t slot)
{
    uint64_t first = comm->follows_world ? 0 : comm_scope(comm)->ids[0];
    uint64_t lost = comm->follows_world ? 0 : atomic_load(&comm->lost);
    return ((uint64_t)comm->context & 0x3fffff) << TAG_CONTEXT_SHIFT |
           (first & 0xffff) << TAG_MEMBER_SHIFT |
           (lost & 15) << TAG_LOST_SHIFT | (slot & 0x3fffff);
}

uint32_t comm_context_of(uint64_t tag)
{
    return (uint32_t)(tag >> TAG_CONTEXT_SHIFT) & CONTEXT_MASK;
}

static void comm_destroy(struct object *object)
{
    struct comm *comm = (struct comm *)object;
    struct group *members = atomic_load(&comm->members);
    revoke_forget(comm);
    coll_forget(comm);
    bsend_forget(comm);
    if (members) object_release(&members->object);
    if (comm->handler) object_release(&comm->handler->object);
    if (comm->failed) object_release(&comm->failed->object);
    info_release(comm->info);
    cart_release(comm->cart);
    graph_release(comm->graph);
    series_release(comm->series);
    if (comm->remote) object_release(&comm->remote->object);
    if (comm->both) object_release(&comm->both->object);
    free(comm);
}

struct comm *comm_new(uint32_t context, struct group *members)
{
    struct comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        if (members) object_release(&members->object);
        return NULL;
    }
    object_init(&comm->object, comm_destroy);
    atomic_init(&comm->members, members);
    atomic_init(&comm->errhandler, MPI_ERRORS_ARE_FATAL);
    comm->context = context;
    return comm;
}

int comm_publish(struct comm *comm, MPI_Comm *out)
{
    if (!handle_open(HANDLE_COMM, &comm->object)) {
        object_release(&comm->object);
        return error_note(MPI_ERR_NO_MEM, "no room for another handle");
    }
    *out = comm->object.handle;
    if (!comm->follows_world && !comm->local)
        rank_use_keep("a communicator that is no duplicate of the world");
    revoke_made(comm);
    return MPI_SUCCESS;
}

void comm_set_context(struct comm *comm, uint32_t context)
{
    comm->context = context;
    revoke_made(comm);
}

int comm_make(struct comm *parent, uint32_t context, struct group *members,
              MPI_Comm *out)
{
    struct comm *comm = members ? comm_new(context, members) : NULL;
    if (!comm) return error_note(MPI_ERR_NO_MEM, "out of memory");
    comm->local = parent->local;
    comm_inherit(comm, parent);
    return comm_publish(comm, out);
}

bool comm_set_groups(struct comm *comm, struct group *local,
                     struct group *remote)
{
    comm->remote = remote;
    atomic_store(&comm->members, local);
    if (!local || !remote) return false;
    bool behind = remote->ids[0] < local->ids[0];
    const struct group *first = behind ? remote : local;
    const struct group *second = behind ? local : remote;
    comm->both = group_new(first->size + second->size);
    if (!comm->both) return false;
    memcpy(comm->both->ids, first->ids,
           (size_t)first->size * sizeof *first->ids);
    memcpy(comm->both->ids + first->size, second->ids,
           (size_t)second->size * sizeof *second->ids);
    group_place(comm->both, world.self);
    return true;
}

int comm_make_inter(struct comm *parent, uint32_t context, struct group *local,
                    struct group *remote, MPI_Comm *out)
{
    struct comm *comm = comm_new(context, NULL);
    bool good = comm && comm_set_groups(comm, local, remote);
    if (!comm && local) object_release(&local->object);
    if (!comm && remote) object_release(&remote->object);
    if (comm && !good) object_release(&comm->object);
    if (!good) return error_note(MPI_ERR_NO_MEM, "out of memory");
    comm_inherit(comm, parent);
    return comm_publish(comm, out);
}

uint32_t context_first_free(void)
{
    return atomic_load(&context_next);
}

bool context_can_be(uint32_t first, uint32_t wanted)
{
    return first >= CONTEXT_FIRST &&
           (uint64_t)first + wanted <= (uint64_t)CONTEXT_MASK + 1;
}

int context_none_left(void)
{
    return error_note(MPI_ERR_OTHER, "no more communicators: %u have been made",
                      CONTEXT_MASK + 1 - CONTEXT_FIRST);
}

bool context_claim(uint32_t first, uint32_t wanted)
{
    uint32_t seen = atomic_load(&context_next);
    while (seen <= first)
        if (atomic_compare_exchange_weak(&context_next, &seen, first + wanted))
            return true;
    return false;
}

int comm_agree_context(struct comm *parent, int wanted, uint32_t *first_out)
{
    struct coll coll = {.comm = parent, .function = "MPI internal"};
    coll.step = step_context;
    coll.uses = USES_NOTHING;
    coll.agreement.wanted = (uint32_t)wanted;
    coll_begin(&coll);
    int result = coll_settle(&coll);
    coll_arguments_free(&coll);
    *first_out = coll.agreement.candidate;
    return result;
}

/* Restarts the counters of each open communicator that follows the world,
 * because newcomers have made no collective on it. Persistent collectives get
 * numbers that earlier ones do not have. */
static void sequence_restart(struct object *object)
{
    struct comm *comm = (struct comm *)object;
    if (!comm->follows_world) return;
    atomic_store(&comm->started, 0);
    atomic_store(&comm->votes, 0);
    for (int i = 0; i < SLOTS_STARTED; i++) atomic_store(&comm->ended[i], 0);
    atomic_store(&comm->prepared,
                 (unsigned)(atomic_load(&world.view)->view->epoch << 8));
}

void world_restart_sequences(void)
{
    sequence_restart(&comm_world.object);
    handle_each(HANDLE_COMM, sequence_restart);
}

bool comm_start(void)
{
    struct group *self = group_new(1);
    if (!self) return false;
    self->ids[0] = world.self;
    group_place(self, world.self);
    atomic_store(&comm_self.members, self);
    comm_world.context = CONTEXT_WORLD;
    comm_self.context = CONTEXT_SELF;
    return true;
}

void comm_stop(void)
{
    struct comm *both[] = {&comm_self, &comm_world};
    for (int i = 0; i < 2; i++) {
        coll_forget(both[i]);
        if (both[i]->handler) object_release(&both[i]->handler->object);
        both[i]->handler = NULL;
        info_release(both[i]->info);
        both[i]->info = NULL;
        series_release(both[i]->series);
        both[i]->series = NULL;
        if (both[i]->failed) object_release(&both[i]->failed->object);
        both[i]->failed = NULL;
    }
    struct group *self = atomic_exchange(&comm_self.members, NULL);
    if (self) object_release(&self->object);
}

MPI_PUBLIC(Comm_size);
int PMPI_Comm_size(MPI_Comm handle, int *size)
{
    COMM_OR_RETURN(comm, handle);
    if (!size) return RAISE_ARG(comm, "null size");
    *size = comm_members(comm)->size;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_rank);
int PMPI_Comm_rank(MPI_Comm handle, int *rank)
{
    COMM_OR_RETURN(comm, handle);
    if (!rank) return RAISE_ARG(comm, "null rank");
    *rank = comm_members(comm)->rank;
    rank_use_asked_rank(comm, *rank);
    return MPI_SUCCESS;
}

/* spawning is not supported */
MPI_PUBLIC(Comm_get_parent);
int PMPI_Comm_get_parent(MPI_Comm *parent)
{
    if (!parent) return RAISE_ARG(NULL, "null communicator");
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int mpi_Comm_set_name(struct comm *comm, const char *name)
{
    return object_set_name(comm->name, name);
}

MPI_PUBLIC(Comm_get_name);
int PMPI_Comm_get_name(MPI_Comm handle, char *name, int *length)
{
    if (handle == MPI_COMM_NULL && name && length) { /* since MPI 4.1 */
        memcpy(name, "MPI_COMM_NULL", sizeof "MPI_COMM_NULL");
        *length = sizeof "MPI_COMM_NULL" - 1;
        return MPI_SUCCESS;
    }
    COMM_OR_RETURN(comm, handle);
    if (!name || !length) return RAISE_ARG(comm, "null name");
    facade_lock();
    *length = (int)strlen(comm->name);
    memcpy(name, comm->name, (size_t)*length + 1);
    facade_unlock();
    return MPI_SUCCESS;
}

/* ------------------------------------------------------ making and freeing */

/* A communicator with the parent's members and a new context. */
static struct comm *comm_copy(struct comm *parent, uint32_t context)
{
    struct group *members = NULL;
    if (!parent->follows_world) {
        members = atomic_load(&parent->members);
        object_retain(&members->object);
    }
    struct comm *copy = comm_new(context, members);
    if (!copy) return NULL;
    copy->follows_world = parent->follows_world;
    copy->local = parent->local;
    atomic_store(&copy->lost, atomic_load(&parent->lost));
    if (parent->remote) {
        copy->remote = parent->remote;
        copy->both = parent->both;
        object_retain(&copy->remote->object);
        object_retain(&copy->both->object);
    }
    comm_inherit(copy, parent);
    return copy;
}

/* Duplicates all but the context. */
static int comm_duplicate(struct comm *parent, uint32_t context,
                          struct info *info, MPI_Comm *out)
{
    struct comm *copy = comm_copy(parent, context);
    if (!copy) return error_note(MPI_ERR_NO_MEM, "out of memory");
    copy->info = info ? info_hints(info, NULL) : NULL;
    copy->cart = cart_copy(parent->cart);
    copy->graph = graph_share(parent->graph);
    int result = comm_publish(copy, out);
    if (result != MPI_SUCCESS) return result;
    result = attr_copy_all(parent->object.handle, parent->attributes,
                           &copy->attributes, copy->object.handle);
    if (result != MPI_SUCCESS) {
        error_note(result, "a copy callback failed");
        handle_close(&copy->object);
        object_release(&copy->object);
        *out = MPI_COMM_NULL;
    }
    return result;
}

static int duplicate_now(struct comm *comm, struct info *info, MPI_Comm *out,
                         const char *function)
{
    uint32_t context;
    if (!out)
        return error_raise(comm, MPI_ERR_ARG, function, "null communicator");
    int result = comm_agree_context(comm, 1, &context);
    if (result == MPI_SUCCESS)
        result = comm_duplicate(comm, context, info, out);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, function);
    return MPI_SUCCESS;
}

/* Assigns the handle at once, and the context after the agreement. */
static int duplicate_later(struct comm *comm, struct info *info, MPI_Comm *out,
                           MPI_Request *request, const char *function)
{
    if (!out || !request)
        return error_raise(comm, MPI_ERR_ARG, function, "null pointer");
    int result = comm_duplicate(comm, CONTEXT_NONE, info, out);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, function);
    struct coll coll = {.comm = comm, .function = function};
    coll.step = step_context;
    coll.uses = USES_NOTHING;
    coll.agreement.wanted = 1;
    coll.agreement.made = comm_find(*out);
    coll_begin(&coll);
    return coll_go(&coll,
                   &(struct mode){.how = MODE_STARTED, .request = request});
}

MPI_PUBLIC(Comm_dup);
int PMPI_Comm_dup(MPI_Comm handle, MPI_Comm *out)
{
    COMM_OR_RETURN(comm, handle);
    return duplicate_now(comm, comm->info, out, __func__);
}

MPI_PUBLIC(Comm_idup);
int PMPI_Comm_idup(MPI_Comm handle, MPI_Comm *out, MPI_Request *request)
{
    COMM_OR_RETURN(comm, handle);
    return duplicate_later(comm, comm->info, out, request, __func__);
}

#define INFO_OR_RETURN(variable, handle)                                       \
    struct info *variable = info_find(handle);                                 \
    if (!variable && (handle) != MPI_INFO_NULL)                                \
    return RAISE(comm, MPI_ERR_INFO, "invalid info")

MPI_PUBLIC(Comm_dup_with_info);
int PMPI_Comm_dup_with_info(MPI_Comm handle, MPI_Info info_handle,
                            MPI_Comm *out)
{
    COMM_OR_RETURN(comm, handle);
    INFO_OR_RETURN(info, info_handle);
    return duplicate_now(comm, info, out, __func__);
}

MPI_PUBLIC(Comm_idup_with_info);
int PMPI_Comm_idup_with_info(MPI_Comm handle, MPI_Info info_handle,
                             MPI_Comm *out, MPI_Request *request)
{
    COMM_OR_RETURN(comm, handle);
    INFO_OR_RETURN(info, info_handle);
    return duplicate_later(comm, info, out, request, __func__);
}

int comm_drop(struct comm *comm)
{
    int result = attr_delete_all(comm->object.handle, &comm->attributes);
    if (result != MPI_SUCCESS) return result;
    handle_close(&comm->object);
    object_release(&comm->object);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_free);
int PMPI_Comm_free(MPI_Comm *handle)
{
    if (!handle) return RAISE_ARG(NULL, "null communicator");
    COMM_OR_RETURN(comm, *handle);
    if (comm == &comm_world || comm == &comm_self)
        return RAISE(comm, MPI_ERR_COMM,
                     "a predefined communicator cannot be freed");
    int result = comm_drop(comm);
    if (result != MPI_SUCCESS)
        return RAISE(comm, result, "a delete callback failed");
    *handle = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_disconnect);
int PMPI_Comm_disconnect(MPI_Comm *handle)
{
    return PMPI_Comm_free(handle);
}

MPI_PUBLIC(Comm_set_info);
int PMPI_Comm_set_info(MPI_Comm handle, MPI_Info info_handle)
{
    COMM_OR_RETURN(comm, handle);
    struct info *info = info_find(info_handle);
    if (!info) return RAISE(comm, MPI_ERR_INFO, "invalid info");
    struct info *copy = info_hints(info, comm->info);
    if (!copy) return RAISE_NO_MEMORY(comm);
    facade_lock();
    struct info *old = comm->info;
    comm->info = copy;
    facade_unlock();
    info_release(old);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_get_info);
int PMPI_Comm_get_info(MPI_Comm handle, MPI_Info *out)
{
    COMM_OR_RETURN(comm, handle);
    if (!out) return RAISE_ARG(comm, "null info");
    struct info *copy = info_hints(comm->info, NULL);
    if (!copy || !handle_open(HANDLE_INFO, (struct object *)copy)) {
        info_release(copy);
        return RAISE_NO_MEMORY(comm);
    }
    *out = ((struct object *)copy)->handle;
    return MPI_SUCCESS;
}
