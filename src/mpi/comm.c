/* comm.c - communicators: the predefined ones, making, asking, freeing. */
#include "comm.h"
#include "cart.h"
#include "coll.h"
#include "info.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct comm comm_world = {.object = {.handle = MPI_COMM_WORLD,
                                     .references = 1},
                          .follows_world = true,
                          .errhandler = MPI_ERRORS_ARE_FATAL,
                          .name = "MPI_COMM_WORLD"};
struct comm comm_self = {.object = {.handle = MPI_COMM_SELF, .references = 1},
                         .local = true,
                         .errhandler = MPI_ERRORS_ARE_FATAL,
                         .name = "MPI_COMM_SELF"};

enum { CONTEXT_WORLD = 0, CONTEXT_SELF = 1, CONTEXT_FIRST = 2 };

/* First context id this process has not used. */
static atomic_uint context_next = CONTEXT_FIRST;

/* The tag's fields, from the top: context 22 bits, first member 16, members
 * lost 4, sequence 22. */
enum { TAG_MEMBER_SHIFT = 26, TAG_CONTEXT_SHIFT = 42, TAG_LOST_SHIFT = 22 };

struct comm *comm_find(MPI_Comm handle)
{
    if (!env_active()) return NULL;
    if (handle == MPI_COMM_WORLD) return &comm_world;
    if (handle == MPI_COMM_SELF) return &comm_self;
    return (struct comm *)handle_find(HANDLE_COMM, handle);
}

const struct group *comm_members(const struct comm *comm)
{
    return comm->follows_world ? atomic_load(&world.view)
                               : atomic_load(&comm->members);
}

void comm_members_replace(struct comm *comm, struct group *members)
{
    assert(!comm->follows_world);
    facade_lock();
    struct group *old = atomic_exchange(&comm->members, members);
    if (old) group_retire(old);
    facade_unlock();
}

uint64_t comm_tag_of(const struct comm *comm, uint32_t sequence)
{
    uint64_t first = comm->follows_world ? 0 : comm_members(comm)->ids[0];
    uint64_t lost = comm->follows_world ? 0 : atomic_load(&comm->lost);
    return ((uint64_t)comm->context & 0x3fffff) << TAG_CONTEXT_SHIFT |
           (first & 0xffff) << TAG_MEMBER_SHIFT |
           (lost & 15) << TAG_LOST_SHIFT | (sequence & 0x3fffff);
}

uint32_t comm_sequence(struct comm *comm)
{
    return atomic_fetch_add(&comm->sequence, 1);
}

static void comm_destroy(struct object *object)
{
    struct comm *comm = (struct comm *)object;
    struct group *members = atomic_load(&comm->members);
    if (members) object_release(&members->object);
    if (comm->handler) object_release(&comm->handler->object);
    info_release(comm->info);
    cart_release(comm->cart);
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
    return MPI_SUCCESS;
}

int comm_agree_context(struct comm *parent, int wanted, uint32_t *first_out)
{
    uint32_t mine = atomic_load(&context_next), agreed = mine;
    if (!parent->local) {
        int result = coll_max_u32(parent, mine, &agreed);
        if (result != MPI_SUCCESS) return result;
    }
    uint32_t next = agreed + (uint32_t)wanted;
    uint32_t seen = atomic_load(&context_next);
    while (seen < next &&
           !atomic_compare_exchange_weak(&context_next, &seen, next))
        ;
    *first_out = agreed;
    return MPI_SUCCESS;
}

/* Each open communicator that follows the world starts counting anew: a
 * newcomer has made no collective on it. */
static void sequence_restart(struct object *object)
{
    struct comm *comm = (struct comm *)object;
    if (comm->follows_world) atomic_store(&comm->sequence, 0);
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
        if (both[i]->handler) object_release(&both[i]->handler->object);
        both[i]->handler = NULL;
        info_release(both[i]->info);
        both[i]->info = NULL;
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
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_test_inter);
int PMPI_Comm_test_inter(MPI_Comm handle, int *flag)
{
    COMM_OR_RETURN(comm, handle);
    if (!flag) return RAISE_ARG(comm, "null flag");
    *flag = 0;
    return MPI_SUCCESS;
}

static int not_inter(MPI_Comm handle, const char *function)
{
    struct comm *comm = comm_find(handle);
    return error_raise(comm, MPI_ERR_COMM, function,
                       comm ? "not an intercommunicator"
                            : "invalid communicator");
}

MPI_PUBLIC(Comm_remote_size);
int PMPI_Comm_remote_size(MPI_Comm handle, int *size)
{
    (void)size;
    return not_inter(handle, __func__);
}

MPI_PUBLIC(Comm_remote_group);
int PMPI_Comm_remote_group(MPI_Comm handle, MPI_Group *group)
{
    (void)group;
    return not_inter(handle, __func__);
}

MPI_PUBLIC(Comm_set_name);
int PMPI_Comm_set_name(MPI_Comm handle, const char *name)
{
    COMM_OR_RETURN(comm, handle);
    if (!name) return RAISE_ARG(comm, "null name");
    size_t length = strnlen(name, sizeof comm->name - 1);
    facade_lock();
    memcpy(comm->name, name, length);
    comm->name[length] = 0;
    facade_unlock();
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_get_name);
int PMPI_Comm_get_name(MPI_Comm handle, char *name, int *length)
{
    COMM_OR_RETURN(comm, handle);
    if (!name || !length) return RAISE_ARG(comm, "null name");
    facade_lock();
    strcpy(name, comm->name);
    facade_unlock();
    *length = (int)strlen(name);
    return MPI_SUCCESS;
}

/* ------------------------------------------------------ making and freeing */

/* A communicator with the parent's members and a context of its own. */
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
    comm_inherit(copy, parent);
    return copy;
}

static int comm_duplicate(struct comm *parent, struct info *info,
                          MPI_Comm *out)
{
    uint32_t context;
    int result = comm_agree_context(parent, 1, &context);
    if (result != MPI_SUCCESS) return result;
    struct comm *copy = comm_copy(parent, context);
    if (!copy) return error_note(MPI_ERR_NO_MEM, "out of memory");
    copy->info = info ? info_copy(info) : NULL;
    copy->cart = cart_copy(parent->cart);
    result = comm_publish(copy, out);
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

MPI_PUBLIC(Comm_dup);
int PMPI_Comm_dup(MPI_Comm handle, MPI_Comm *out)
{
    COMM_OR_RETURN(comm, handle);
    if (!out) return RAISE_ARG(comm, "null communicator");
    int result = comm_duplicate(comm, comm->info, out);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, __func__);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Comm_dup_with_info);
int PMPI_Comm_dup_with_info(MPI_Comm handle, MPI_Info info_handle,
                            MPI_Comm *out)
{
    COMM_OR_RETURN(comm, handle);
    if (!out) return RAISE_ARG(comm, "null communicator");
    struct info *info = info_find(info_handle);
    if (!info && info_handle != MPI_INFO_NULL)
        return RAISE(comm, MPI_ERR_INFO, "invalid info");
    int result = comm_duplicate(comm, info, out);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, __func__);
    return MPI_SUCCESS;
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
    struct info *copy = info_copy(info);
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
    struct info *copy = info_copy(comm->info);
    if (!copy || !handle_open(HANDLE_INFO, (struct object *)copy)) {
        info_release(copy);
        return RAISE_NO_MEMORY(comm);
    }
    *out = ((struct object *)copy)->handle;
    return MPI_SUCCESS;
}
