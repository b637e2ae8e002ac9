/* api_checkpoint.c - entry points of pccl.h for checkpoints. */
#include "api.h"
#include "comm_save.h"

#include <string.h>

enum { KEEP_DEFAULT = 2, KEEP_MAX = 1 << 20 };

static bool valid_state(const pcclSharedState_t *state, const char *directory)
{
    return state && directory && *directory != '\0' &&
           (state->count == 0 || state->infos) && state->revision != UINT64_MAX;
}

/* Whether this peer writes; an error if it cannot know. */
static pcclResult_t is_writer(const pcclComm_t *c, bool always, bool *writes,
                              uint32_t *world)
{
    bool member = c->session && c->session->state != SESSION_GONE;
    *writes = always;
    *world = member ? c->session->notified.view->size : 1;
    if (always) return pcclSuccess;
    if (!c->session) return pcclInvalidUsage;
    if (!member) return pcclMasterConnectionFailed;
    *writes = c->session->notified.view->rank == 0;
    return pcclSuccess;
}

pcclResult_t pcclSaveState(const pcclComm_t *comm,
                           const pcclSharedState_t *state,
                           const char *directory,
                           const pcclSaveOptions_t *options)
{
    pcclComm_t *c;
    pcclResult_t rc = api_begin(comm, &c);
    if (rc != pcclSuccess) return rc;
    pcclSaveOptions_t o = {.size = sizeof o};
    if (options && options->size < offsetof(pcclSaveOptions_t, synchronous))
        return api_leave(c, pcclInvalidArgument);
    if (options)
        memcpy(&o, options,
               options->size < sizeof o ? options->size : sizeof o);
    if (!valid_state(state, directory) || o.keep > KEEP_MAX ||
        o.synchronous > 1 || o.this_peer > 1)
        return api_leave(c, pcclInvalidArgument);
    struct comm_save_how how = {.directory = directory,
                                .keep = o.keep > 0 ? o.keep : KEEP_DEFAULT,
                                .synchronous = o.synchronous == 1};
    bool writes = false;
    rc = is_writer(c, o.this_peer == 1, &writes, &how.world);
    if (rc != pcclSuccess) return api_leave(c, rc);
    return api_leave(c, (pcclResult_t)(writes ? comm_save_begin(c, state, &how)
                                              : comm_save_check(c, state)));
}

/* The caller may know a smaller struct. */
static pcclResult_t give_info(pcclCheckpointInfo_t *info,
                              const pcclCheckpointInfo_t *from)
{
    size_t size = info->size < sizeof *from ? info->size : sizeof *from;
    memcpy((char *)info + sizeof info->size,
           (const char *)from + sizeof info->size, size - sizeof info->size);
    return pcclSuccess;
}

static bool valid_info(const pcclCheckpointInfo_t *info)
{
    return !info || info->size >= offsetof(pcclCheckpointInfo_t, time_ns);
}

pcclResult_t pcclAwaitSave(const pcclComm_t *comm,
                           pcclCheckpointInfo_t *info_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_begin(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!valid_info(info_out)) return api_leave(c, pcclInvalidArgument);
    pcclCheckpointInfo_t info = {.size = sizeof info};
    rc = (pcclResult_t)comm_save_await(c, comm_limit(c), &info);
    if (rc == pcclSuccess && info_out) (void)give_info(info_out, &info);
    return api_leave(c, rc);
}

pcclResult_t pcclLoadState(const pcclComm_t *comm, pcclSharedState_t *state,
                           const char *directory,
                           const pcclLoadOptions_t *options,
                           pcclCheckpointInfo_t *info_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_begin(comm, &c);
    if (rc != pcclSuccess) return rc;
    pcclLoadOptions_t o = {.size = sizeof o};
    if (options && options->size < offsetof(pcclLoadOptions_t, time_ns))
        return api_leave(c, pcclInvalidArgument);
    if (options)
        memcpy(&o, options,
               options->size < sizeof o ? options->size : sizeof o);
    if (!valid_state(state, directory) || !valid_info(info_out) ||
        (unsigned)o.choice > pcclLoadRevision || o.time_ns < 0)
        return api_leave(c, pcclInvalidArgument);
    pcclCheckpointInfo_t info = {.size = sizeof info};
    rc = (pcclResult_t)comm_load(c, state, directory, &o, &info);
    if (rc == pcclSuccess && info_out) (void)give_info(info_out, &info);
    return api_leave(c, rc);
}
