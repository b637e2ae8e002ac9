/* mpi_session.c - sessions: MPI without MPI_COMM_WORLD. There are two process
 * sets: the current members of the run, and the process itself. */
#include "agree.h"
#include "coll.h"
#include "errhandler.h"
#include "info.h"
#include "p2p.h"

#include "../base/fnv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const set_names[] = {"mpi://WORLD", "mpi://SELF"};
enum { SET_WORLD, SET_SELF, SETS };

struct mpi_session {
    struct object object;
    errhandler_kind errhandler;
    struct errhandler *handler;
    struct info *info;
    struct session_room *room;
};

static void session_destroy(struct object *object)
{
    struct mpi_session *session = (struct mpi_session *)object;
    if (session->handler) object_release(&session->handler->object);
    info_release(session->info);
    session_room_release(session->room);
    free(session);
}

struct mpi_session *mpi_session_find(MPI_Session handle)
{
    if (!env_active()) return NULL;
    return (struct mpi_session *)handle_find(HANDLE_SESSION, handle);
}

int mpi_session_raise(struct mpi_session *session, int error_class,
                      const char *function)
{
    MPI_Session handle = session->object.handle;
    return errhandler_call(&session->errhandler, &session->handler, &handle,
                           error_class, function);
}

static const struct {
    int level;
    const char *name;
} levels[] = {{MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
              {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
              {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
              {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"}};

static const char *level_name(int level)
{
    int i = 0;
    while (i < 3 && levels[i].level != level) i++;
    return levels[i].name;
}

/* Thread level requested by the info; by default the highest. */
static int wanted_level(MPI_Info info)
{
    char value[32];
    int found = 0;
    if (info == MPI_INFO_NULL ||
        PMPI_Info_get(info, "thread_level", sizeof value - 1, value, &found) !=
            MPI_SUCCESS ||
        !found)
        return MPI_THREAD_MULTIPLE;
    for (int i = 0; i < 4; i++)
        if (strcasecmp(value, levels[i].name) == 0) return levels[i].level;
    return MPI_THREAD_MULTIPLE;
}

int mpi_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *out)
{
    if (info != MPI_INFO_NULL && !info_find(info))
        return error_note(MPI_ERR_INFO, "invalid info");
    struct mpi_session *session = calloc(1, sizeof *session);
    if (!session) return note_no_memory();
    object_init(&session->object, session_destroy);
    if (!errhandler_set(&session->errhandler, &session->handler, errhandler,
                        HANDLE_SESSION)) {
        free(session);
        return note_argument("not an error handler of sessions");
    }
    env_session_begin(wanted_level(info), "MPI_Session_init");
    session->info = info_copy(info_find(info));
    session->room = session_room_new();
    if (!session->info || !session->room ||
        !info_put(session->info, "thread_level",
                  level_name(env_thread_level())) ||
        !handle_open(HANDLE_SESSION, &session->object)) {
        object_release(&session->object);
        env_session_end();
        return note_no_memory();
    }
    *out = session->object.handle;
    return MPI_SUCCESS;
}

int mpi_Session_finalize(MPI_Session *handle)
{
    struct mpi_session *session = mpi_session_find(*handle);
    if (!session) return error_note(MPI_ERR_SESSION, "invalid session");
    handle_close(&session->object);
    object_release(&session->object);
    *handle = MPI_SESSION_NULL;
    env_session_end();
    return MPI_SUCCESS;
}

int mpi_Session_get_info(struct mpi_session *session, MPI_Info *out)
{
    return info_publish(info_copy(session->info), out);
}

/* ---------------------------------------------------------------- process sets
 */

int mpi_Session_get_num_psets(struct mpi_session *session, MPI_Info info,
                              int *count)
{
    (void)session;
    (void)info;
    *count = SETS;
    return MPI_SUCCESS;
}

int mpi_Session_get_nth_pset(struct mpi_session *session, MPI_Info info, int n,
                             int *length, char *name)
{
    (void)session;
    (void)info;
    if (n < 0 || n >= SETS || (*length > 0 && !name))
        return error_note(MPI_ERR_ARG, "process set %d, or null pointer", n);
    if (*length > 0) snprintf(name, (size_t)*length, "%s", set_names[n]);
    *length = (int)strlen(set_names[n]) + 1;
    return MPI_SUCCESS;
}

/* The members of a set; NULL, noted: no such set. */
static const struct group *set_members(const char *name)
{
    if (name && strcasecmp(name, set_names[SET_WORLD]) == 0)
        return comm_members(&comm_world);
    if (name && strcasecmp(name, set_names[SET_SELF]) == 0)
        return comm_members(&comm_self);
    error_note(MPI_ERR_ARG, "no process set \"%s\"", name ? name : "");
    return NULL;
}

int mpi_Session_get_pset_info(struct mpi_session *session, const char *name,
                              MPI_Info *out)
{
    (void)session;
    const struct group *members = set_members(name);
    char size[16];
    if (!members) return MPI_ERR_ARG;
    struct info *info = info_copy(NULL);
    snprintf(size, sizeof size, "%d", members->size);
    if (info && info_put(info, "mpi_size", size))
        return info_publish(info, out);
    info_release(info);
    return note_no_memory();
}

int mpi_Group_from_session_pset(struct mpi_session *session, const char *name,
                                MPI_Group *out)
{
    const struct group *members = set_members(name);
    if (!members) return MPI_ERR_ARG;
    struct group *group = group_copy(members);
    if (!group) return note_no_memory();
    group->session = session_room_retain(session->room);
    return group_publish(group, group->size, out);
}

/* --------------------------------------------------------------- communicators
 */

/* Groups without a communicator agree by messages in the context of
 * MPI_COMM_SELF, in which no other messages are sent. */
static uint32_t session_channel(int kind)
{
    return comm_self.context | CHANNEL_AGREE | CHANNEL_NUMBER(kind);
}

/* Maps a string to a tag. */
static int tag_of(const char *text)
{
    return (int)(fnv_bytes(FNV_BEGIN, text, strlen(text)) & 0xfffffff);
}

/* Without a communicator, errors are raised on the handler of the communicator
 * to be made. */
static int raise_early(MPI_Errhandler errhandler, int error_class,
                       const char *function)
{
    errhandler_kind kind = MPI_ERRORS_ARE_FATAL;
    struct errhandler *slot = NULL;
    MPI_Comm none = MPI_COMM_NULL;
    (void)errhandler_set(&kind, &slot, errhandler, HANDLE_COMM);
    int result = errhandler_call(&kind, &slot, &none, error_class, function);
    if (slot) object_release(&slot->object);
    return result;
}

/* Checks common to both calls. */
static int check(MPI_Group handle, const char *stringtag,
                 MPI_Errhandler errhandler, const MPI_Comm *out,
                 struct group **group)
{
    errhandler_kind kind = MPI_ERRORS_ARE_FATAL;
    struct errhandler *slot = NULL;
    *group = env_active() ? group_find(handle) : NULL;
    if (!*group) return error_note(MPI_ERR_GROUP, "invalid group");
    if (!stringtag || !out) return error_note(MPI_ERR_ARG, "null pointer");
    if (!errhandler_set(&kind, &slot, errhandler, HANDLE_COMM))
        return error_note(MPI_ERR_ARG, "not an error handler of communicators");
    if (slot) object_release(&slot->object);
    if ((*group)->size > 0 &&
        group_rank_of(*group, world.self) == MPI_UNDEFINED)
        return error_note(MPI_ERR_GROUP, "this process is not in the group");
    return MPI_SUCCESS;
}

/* A parent from which the new communicator takes its error handler and its
 * session. */
static struct comm *model_of(MPI_Errhandler errhandler,
                             const struct group *group)
{
    struct comm *model = comm_new(comm_self.context, NULL);
    if (!model) return NULL;
    (void)errhandler_set(&model->errhandler, &model->handler, errhandler,
                         HANDLE_COMM);
    model->session = session_room_retain(group->session);
    return model;
}

int mpi_Comm_create_from_group(MPI_Group handle, const char *stringtag,
                               MPI_Info info, MPI_Errhandler errhandler,
                               MPI_Comm *out, const char *function)
{
    struct group *group;
    uint32_t context;
    (void)info;
    int result = check(handle, stringtag, errhandler, out, &group);
    if (result != MPI_SUCCESS) return raise_early(errhandler, result, function);
    *out = MPI_COMM_NULL;
    if (group->size == 0) return MPI_SUCCESS;
    struct comm *model = model_of(errhandler, group);
    result = model ? agree_context(group, session_channel(AGREE_SESSION),
                                   tag_of(stringtag), &context)
                   : note_no_memory();
    if (result == MPI_SUCCESS) {
        object_retain(&group->object);
        result = comm_make(model, context, group, out);
    }
    if (model) object_release(&model->object);
    return result == MPI_SUCCESS ? result
                                 : raise_early(errhandler, result, function);
}

/* Makes a communicator of the local group for this call only. */
static int local_make(struct group *group, MPI_Errhandler errhandler, int tag,
                      struct comm **out)
{
    uint32_t context;
    *out = NULL;
    int result =
        agree_context(group, session_channel(AGREE_SESSION), tag, &context);
    if (result != MPI_SUCCESS) return result;
    object_retain(&group->object);
    *out = comm_new(context, group);
    if (!*out) return note_no_memory();
    (*out)->local = group->size == 1;
    (*out)->session = session_room_retain(group->session);
    (void)errhandler_set(&(*out)->errhandler, &(*out)->handler, errhandler,
                         HANDLE_COMM);
    return MPI_SUCCESS;
}

int mpi_Intercomm_create_from_groups(MPI_Group handle, int leader,
                                     MPI_Group remote_handle, int other,
                                     const char *stringtag, MPI_Info info,
                                     MPI_Errhandler errhandler, MPI_Comm *out,
                                     const char *function)
{
    struct group *group;
    (void)info;
    int result = check(handle, stringtag, errhandler, out, &group);
    if (result == MPI_SUCCESS && (leader < 0 || leader >= group->size))
        result = error_note(MPI_ERR_RANK, "local leader %d", leader);
    if (result != MPI_SUCCESS) return raise_early(errhandler, result, function);
    *out = MPI_COMM_NULL;
    int tag = tag_of(stringtag);
    struct comm *local;
    result = local_make(group, errhandler, tag, &local);
    const struct group *remote = NULL;
    if (result == MPI_SUCCESS && group->rank == leader) {
        remote = group_find(remote_handle);
        if (remote && (other < 0 || other >= remote->size)) remote = NULL;
    }
    if (result == MPI_SUCCESS)
        result = inter_from_groups(local, leader, remote, comm_self.context,
                                   tag, out);
    if (local) object_release(&local->object);
    return result == MPI_SUCCESS ? result
                                 : raise_early(errhandler, result, function);
}

/* -------------------------------------------------------------- error handlers
 */

int mpi_Session_create_errhandler(MPI_Session_errhandler_function *function,
                                  MPI_Errhandler *out)
{
    struct errhandler handler = {.owner = HANDLE_SESSION,
                                 .function = (void (*)(void))function};
    return errhandler_create(&handler, out);
}

int mpi_Session_create_errhandler_x(
    MPIX_Session_errhandler_function_x *function,
    MPIX_Destructor_function *destructor, void *extra, MPI_Errhandler *out)
{
    /* A handle of a session is passed as one of a communicator is. */
    struct errhandler handler = {
        .owner = HANDLE_SESSION,
        .function_x =
            (MPIX_Comm_errhandler_function_x *)(void (*)(void))function,
        .destructor = destructor,
        .extra = extra};
    return errhandler_create(&handler, out);
}

int mpi_Session_set_errhandler(struct mpi_session *session,
                               MPI_Errhandler errhandler)
{
    if (errhandler_set(&session->errhandler, &session->handler, errhandler,
                       HANDLE_SESSION))
        return MPI_SUCCESS;
    return error_note(MPI_ERR_ARG, "not an error handler of sessions");
}

int mpi_Session_get_errhandler(struct mpi_session *session, MPI_Errhandler *out)
{
    *out = errhandler_get(&session->errhandler, &session->handler);
    return MPI_SUCCESS;
}

int mpi_Session_call_errhandler(struct mpi_session *session, int code)
{
    error_note(code, "raised by the program");
    (void)mpi_session_raise(session, code, "MPI_Session_call_errhandler");
    return MPI_SUCCESS;
}

/* --------------------------------------------------- buffers of buffered sends
 */

int mpi_Session_attach_buffer(struct mpi_session *session, void *base,
                              MPI_Count size)
{
    return room_attach(session_room_slot(session->room), base, size);
}

int mpi_Session_detach_buffer(struct mpi_session *session, void *base,
                              MPI_Count *size)
{
    return room_detach(session_room_slot(session->room), base, size);
}

int mpi_Session_flush_buffer(struct mpi_session *session)
{
    return room_flush(session_room_slot(session->room), NULL);
}

int mpi_Session_iflush_buffer(struct mpi_session *session, MPI_Request *request)
{
    return room_flush(session_room_slot(session->room), request);
}
