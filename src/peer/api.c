/* api.c - pccl.h entry points: check, call the communicator, map the result.
 * The contracts are in include/pccl.h. */
#include "api.h"

#include "comm_device.h"
#include "comm_save.h"
#include "drain.h"
#include "hold_view.h"
#include "../base/env.h"
#include "../base/log.h"
#include "../base/status.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MS_MAX = 1000000000 }; /* eleven days */

static atomic_bool initialized;

static void warn_unknown(const char *name)
{
    LOG(LOG_WARN, "%s is not a variable that this library knows", name);
}

static void warn_idle(const char *name)
{
    LOG(LOG_WARN, "%s is a variable of PCCL 1.0 that has no effect here", name);
}

pcclResult_t pcclInit(void)
{
    fork_guard_start();
    if (!atomic_exchange(&initialized, true)) {
        env_warn_unknown(warn_unknown);
        env_warn_idle(warn_idle);
        drain_start();
    }
    return pcclSuccess;
}

const char *pcclGetErrorString(pcclResult_t result)
{
    return status_text((int)result);
}

pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info)
{
    if (!info) return pcclInvalidArgument;
    info->has_cuda_support = comm_device_built();
    return pcclSuccess;
}

pcclResult_t api_ready(const pcclComm_t *comm)
{
    if (!atomic_load(&initialized)) return pcclNotInitialized;
    if (!comm) return pcclInvalidArgument;
    return comm_is_inherited(comm) ? pcclInvalidUsage : pcclSuccess;
}

pcclResult_t api_begin(const pcclComm_t *comm, pcclComm_t **c)
{
    pcclResult_t rc = api_ready(comm);
    if (rc != pcclSuccess) return rc;
    *c = (pcclComm_t *)(uintptr_t)comm;
    return comm_enter(*c) ? pcclSuccess : pcclCancelled;
}

pcclResult_t api_enter(const pcclComm_t *comm, pcclComm_t **c)
{
    pcclResult_t rc = api_begin(comm, c);
    if (rc != pcclSuccess || (*c)->session) return rc;
    comm_leave(*c);
    return pcclInvalidUsage;
}

pcclResult_t api_leave(pcclComm_t *c, pcclResult_t result)
{
    /* The text of an earlier failure does not explain a later one. */
    if (result != pcclSuccess && !c->explained) c->error[0] = '\0';
    c->explained = false;
    comm_leave(c);
    return result;
}

/* ------------------------------------------------------------- life cycle */

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params,
                                    pcclComm_t **comm_out)
{
    if (!atomic_load(&initialized)) return pcclNotInitialized;
    if (!params || !comm_out) return pcclInvalidArgument;
    pcclComm_t *c = calloc(1, sizeof *c);
    if (!c) return pcclInternalError;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
    c->process = fork_guard_now();
    c->params = *params;
    c->rank_hint = env_rank();
    c->master.fd = c->master.dial_fd = c->master.poll_fd = -1;
    c->background.loop.fd = c->background.loop.bell_fd = -1;
    progress_init(c);
    comm_exchange_init(&c->exchange);
    comm_samples_init(c);
    for (int i = 0; i < COMM_LISTENERS_MAX; i++) c->io.listeners[i] = -1;
    if (!comm_calls_open(c)) {
        free(c);
        return pcclInternalError;
    }
    *comm_out = c;
    return pcclSuccess;
}

static bool copy_text(char *to, size_t size, const char *from)
{
    size_t length = from ? strlen(from) : 0;
    if (length >= size) return false;
    if (length > 0) memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

static bool copy_ways(struct comm_ways *to, const pcclCommOptions_t *from)
{
    *to = (struct comm_ways){.ports = ""};
    return from->size < offsetof(pcclCommOptions_t, token_file) ||
           (copy_text(to->ports, sizeof to->ports, from->ports) &&
            copy_text(to->announce, sizeof to->announce, from->announce));
}

pcclResult_t pcclSetOptions(pcclComm_t *comm, const pcclCommOptions_t *options)
{
    const size_t first = offsetof(pcclCommOptions_t, evicts_nobody);
    pcclResult_t rc = api_begin(comm, &comm);
    if (rc != pcclSuccess) return rc;
    if (!options || options->size < first)
        return api_leave(comm, pcclInvalidArgument);
    if (comm->session) return api_leave(comm, pcclInvalidUsage);
    struct comm_ways ways;
    bool more;
    if (!copy_ways(&ways, options)) return api_leave(comm, pcclInvalidArgument);
    more = options->size >= sizeof *options;
    comm->must_leave = more && options->must_leave != 0;
    more = options->size >= offsetof(pcclCommOptions_t, must_leave);
    const char *masters = more ? options->masters : NULL;
    if (masters && *masters != '\0' && !comm_masters_set(comm, masters))
        return api_leave(comm, pcclInternalError);
    uint64_t wait = more ? options->master_wait_ms : 0;
    comm->master_wait =
        PCCL_MS * (wait < UINT32_MAX ? (pccl_ns)wait : UINT32_MAX);
    comm->rank_hint = options->rank_hint;
    comm->deadline_ms = options->deadline_ms;
    more = options->size >= first + sizeof options->evicts_nobody;
    comm->evicts_nobody = more && options->evicts_nobody != 0;
    more = options->size >= offsetof(pcclCommOptions_t, ports);
    comm->goes_on = more && options->goes_on_with_few != 0;
    comm->ways = ways;
    const char *file = options->size >= offsetof(pcclCommOptions_t, masters)
                           ? options->token_file
                           : NULL;
    free(comm->token_file);
    comm->token_file = file ? strdup(file) : NULL;
    if (file && !comm->token_file) return api_leave(comm, pcclInternalError);
    return api_leave(comm, pcclSuccess);
}

pcclResult_t pcclConnect(pcclComm_t *comm)
{
    pcclResult_t rc = api_begin(comm, &comm);
    if (rc != pcclSuccess) return rc;
    if (comm->session && comm->session->state != SESSION_GONE)
        return api_leave(comm, pcclInvalidUsage);
    if (comm->offers.fetching) return api_leave(comm, pcclInvalidUsage);
    comm_close(comm);
    return api_leave(comm, (pcclResult_t)comm_open(comm));
}

pcclResult_t pcclDestroyCommunicator(pcclComm_t *comm)
{
    if (!atomic_load(&initialized)) return pcclNotInitialized;
    if (!comm) return pcclInvalidArgument;
    if (comm_is_inherited(comm)) {
        comm_abandon(comm);
        return pcclSuccess;
    }
    comm_end_calls(comm);
    comm_close(comm);
    comm_save_end(comm);
    pthread_mutex_unlock(&comm->lock);
    pthread_mutex_destroy(&comm->lock);
    pthread_cond_destroy(&comm->changed);
    comm_calls_close(comm);
    comm_samples_free(comm);
    comm_key_drop(comm);
    free(comm->token_file);
    free(comm->masters);
    free(comm);
    return pcclSuccess;
}

pcclResult_t pcclCancel(pcclComm_t *comm)
{
    if (!comm) return pcclInvalidArgument;
    if (comm_is_inherited(comm)) return pcclInvalidUsage;
    comm_calls_cancel(comm);
    return pcclSuccess;
}

pcclResult_t pcclResume(pcclComm_t *comm)
{
    pcclResult_t rc = api_begin(comm, &comm);
    if (rc != pcclSuccess) return rc;
    atomic_store(&comm->calls.cancelled, false);
    return api_leave(comm, pcclSuccess);
}

pcclResult_t pcclSetTimeLimit(pcclComm_t *comm, int64_t limit_ms)
{
    pcclResult_t rc = api_begin(comm, &comm);
    if (rc != pcclSuccess) return rc;
    comm->calls.limit = 0;
    if (limit_ms > 0)
        comm->calls.limit = limit_ms < LIMIT_MS_MAX ? limit_ms * PCCL_MS
                                                    : LIMIT_MS_MAX * PCCL_MS;
    return api_leave(comm, pcclSuccess);
}

/* ------------------------------------------------------------- attributes */

pcclResult_t pcclGetAttribute(const pcclComm_t *comm, pcclAttribute_t attribute,
                              int *p_attribute_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    const struct view *t = c->session->notified.view;
    uint32_t value = 0;
    switch (attribute) {
    case PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE:
        value = t->world;
        break;
    case PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE:
        value = t->size;
        break;
    case PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS:
        value = t->groups;
        break;
    case PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE:
        value = t->largest;
        break;
    case PCCL_ATTRIBUTE_RANK:
        value = t->rank;
        break;
    case PCCL_ATTRIBUTE_LAUNCH_RANK:
        value = (uint32_t)c->rank_hint;
        break;
    default:
        return api_leave(c, pcclInvalidArgument);
    }
    if (!p_attribute_out) return api_leave(c, pcclInvalidArgument);
    *p_attribute_out = (int32_t)value;
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclGetView(const pcclComm_t *comm, uint64_t *epoch, int *rank,
                         int *size, pcclMember_t *members, size_t capacity)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    const struct view *t = c->session->notified.view;
    if (epoch) *epoch = t->epoch;
    if (rank) *rank = (int)t->rank;
    if (size) *size = (int)t->size;
    for (uint32_t i = 0; members && i < t->size && i < capacity; i++) {
        members[i] = (pcclMember_t){.id = t->members[i].id,
                                    .host = t->members[i].host,
                                    .rank = (int32_t)i,
                                    .hint = t->members[i].hint};
    }
    return api_leave(c, pcclSuccess);
}

const struct view *pcclHoldView(const pcclComm_t *comm)
{
    pcclComm_t *c;
    if (api_enter(comm, &c) != pcclSuccess) return NULL;
    const struct view *view = c->session->notified.view;
    view = view->size > 0 ? view_retain(view) : NULL;
    (void)api_leave(c, pcclSuccess);
    return view;
}

pcclResult_t pcclGetViewChange(const pcclComm_t *comm,
                               pcclViewChange_t *change_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!change_out) return api_leave(c, pcclInvalidArgument);
    const struct session *s = c->session;
    *change_out = (pcclViewChange_t){s->view->epoch, s->closed_at,
                                     s->proposed_at, s->installed_at};
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclSetTraits(pcclComm_t *comm, uint32_t traits)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    c->session->traits = traits;
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclGetTraits(const pcclComm_t *comm, uint32_t *traits_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!traits_out) return api_leave(c, pcclInvalidArgument);
    *traits_out = c->session->notified.traits;
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclGetLastError(const pcclComm_t *comm, char *buf, size_t size)
{
    pcclComm_t *c;
    pcclResult_t rc = api_begin(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!buf || size == 0) {
        comm_leave(c);
        return pcclInvalidArgument;
    }
    const char *text = c->error;
    if (*text == '\0' && c->session && c->session->state == SESSION_GONE)
        text = c->session->reason;
    size_t length = strnlen(text, size - 1);
    /* Names and paths of the program are in it, which make no line. */
    for (size_t i = 0; i < length; i++)
        buf[i] = (unsigned char)text[i] < ' ' ? '?' : text[i];
    buf[length] = '\0';
    comm_leave(c);
    return pcclSuccess;
}

/* ------------------------------------------------------------------ votes */

pcclResult_t api_take_up(pcclComm_t *c)
{
    const char *which = NULL;
    if (c->left.votes[VOTE_UPDATE]) which = "pcclUpdateTopology";
    if (c->left.votes[VOTE_OPTIMIZE]) which = "pcclOptimizeTopology";
    if (c->left.sync) which = "pcclSynchronizeSharedState";
    if (!which || c->session->state == SESSION_GONE) return pcclSuccess;
    comm_set_error(
        c, "%s was called, and its end not waited for: call it again", which);
    return pcclInvalidUsage;
}

/* Casts a vote, or takes up one that an interrupted call has cast. */
static pcclResult_t begin_vote(pcclComm_t *c, enum vote_kind kind)
{
    if (c->left.votes[kind]) {
        c->left.votes[kind] = false;
        return pcclSuccess;
    }
    pcclResult_t rc = kind == VOTE_PENDING ? pcclSuccess : api_take_up(c);
    if (rc == pcclSuccess) rc = (pcclResult_t)session_vote(c->session, kind);
    if (rc == pcclSuccess) progress_changed(c);
    return rc;
}

/* Waits for the answer to a vote; 0xff when refused, -1 when there is none. */
static int vote(pcclComm_t *c, enum vote_kind kind, pcclResult_t *result)
{
    struct session *s = c->session;
    pccl_ns until = comm_limit(c);
    *result = begin_vote(c, kind);
    if (*result != pcclSuccess) return -1;
    progress_wait_vote(c, kind, until);
    bool answered = s->votes[kind] == VOTE_ANSWERED;
    if (!answered && s->state == SESSION_MEMBER) {
        c->left.votes[kind] = true;
        *result = (pcclResult_t)comm_stop_waiting(
            c, comm_interrupted(c, until),
            "the vote stays cast: call it again for the answer");
        return -1;
    }
    s->votes[kind] = VOTE_IDLE;
    if (answered) return s->answers[kind];
    *result = pcclMasterConnectionFailed;
    return -1;
}

static bool is_interrupted(pcclResult_t result)
{
    return result == pcclCancelled || result == pcclTimedOut;
}

pcclResult_t pcclUpdateTopology(pcclComm_t *comm)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    pcclResult_t result;
    if (comm_tells()) comm_tell_call(c, "update topology", 0, UINT64_MAX);
    int answer = vote(c, VOTE_UPDATE, &result);
    if (comm_tells()) comm_tell_return(c);
    if (answer == 0xff) {
        comm_set_error(c, "another peer is inside an operation that this one "
                          "did not launch before it asked for an update");
        result = pcclInvalidUsage;
    }
    if (result == pcclMasterConnectionFailed) result = pcclUpdateTopologyFailed;
    return api_leave(c, result);
}

pcclResult_t pcclArePeersPending(const pcclComm_t *comm, bool *pending_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!pending_out) return api_leave(c, pcclInvalidArgument);
    pcclResult_t result;
    int answer = vote(c, VOTE_PENDING, &result);
    if (answer == 0xff)
        comm_set_error(c, "another peer is inside an operation that this one "
                          "has not launched, or in another vote");
    if (is_interrupted(result)) return api_leave(c, result);
    if (result != pcclSuccess || answer == 0xff)
        return api_leave(c, pcclInvalidUsage);
    *pending_out = answer == 1;
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclGetRing(const pcclComm_t *comm, int *ranks, size_t capacity,
                         size_t *count_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!count_out || (capacity > 0 && !ranks))
        return api_leave(c, pcclInvalidArgument);
    const struct view *v = c->session->view;
    *count_out = v->ring ? v->size : 0;
    for (uint32_t i = 0; i < *count_out && i < capacity; i++)
        ranks[i] = v->order ? v->order[i] : (int)i;
    return api_leave(c, pcclSuccess);
}

/* Rule R4. */
void api_describe_blockers(pcclComm_t *c)
{
    const struct session *s = c->session;
    char text[sizeof c->error] = "";
    if (s->blocker_count == 0) {
        comm_set_error(c, "some pair of members cannot connect");
        return;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < s->blocker_count && used < sizeof text; i++) {
        int n =
            snprintf(text + used, sizeof text - used, "%s%u and %u",
                     i > 0 ? ", " : "", view_find(s->view, s->blockers[i][0]),
                     view_find(s->view, s->blockers[i][1]));
        used += n > 0 ? (size_t)n : 0;
    }
    comm_set_error(c,
                   "no ring connects all peers: these pairs of ranks cannot "
                   "reach each other: %s",
                   text);
}

pcclResult_t pcclOptimizeTopology(const pcclComm_t *comm)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (session_busy(c->session)) return api_leave(c, pcclPendingAsyncOps);
    if (c->session->notified.view->world <= 1 && !c->left.votes[VOTE_OPTIMIZE])
        return api_leave(c, pcclInvalidUsage);
    pcclResult_t result;
    if (comm_tells()) comm_tell_call(c, "optimize topology", 0, UINT64_MAX);
    int answer = vote(c, VOTE_OPTIMIZE, &result);
    if (comm_tells()) comm_tell_return(c);
    if (answer == 0xff) {
        comm_set_error(c, "another peer is inside an operation or a vote that "
                          "this one did not take part in");
        result = pcclInvalidUsage;
    } else if (answer == 0) {
        api_describe_blockers(c);
        result = pcclTopologyOptimizationFailed;
    }
    return api_leave(c, result);
}

/* ----------------------------------------------------------- shared state */

pcclResult_t
pcclSynchronizeSharedState(const pcclComm_t *comm,
                           pcclSharedState_t *shared_state,
                           pcclSharedStateSyncStrategy_t strategy,
                           pcclSharedStateSyncInfo_t *sync_info_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!shared_state || (shared_state->count > 0 && !shared_state->infos) ||
        (unsigned)strategy > PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY)
        return api_leave(c, pcclInvalidArgument);
    if (!c->left.sync) rc = api_take_up(c);
    if (rc != pcclSuccess) return api_leave(c, rc);
    if (comm_tells())
        comm_tell_call(c, "synchronize shared state", 0, UINT64_MAX);
    rc = (pcclResult_t)comm_synchronize(c, shared_state, strategy,
                                        sync_info_out);
    if (comm_tells()) comm_tell_return(c);
    return api_leave(c, rc);
}

pcclResult_t pcclAbortRun(pcclComm_t *comm, int code)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    session_abort_run(c->session, code);
    progress_changed(c);
    return api_leave(c, pcclSuccess);
}
