/* comm_state.c - pcclSynchronizeSharedState: reads the tensors, then waits in
 * the session. */
#include "comm_device.h"
#include "../base/log.h"

#include <stdlib.h>
#include <string.h>

/* Returns the error of an entry, or NULL; fills in *t. */
static const char *read_tensor(const pcclTensorInfo_t *info,
                               struct state_tensor *t)
{
    if ((unsigned)info->datatype >= DTYPE_COUNT) return "unknown datatype";
    bool cuda = info->device_type == pcclDeviceCuda;
    if (!cuda && info->device_type != pcclDeviceCpu) return "unknown device";
    uint64_t element = dtype_size((enum dtype)info->datatype);
    if (info->count > UINT64_MAX / 2 / element) return "count is too large";
    if (info->count > 0 && !info->data) return "data is NULL";
    *t = (struct state_tensor){.name = info->name ? info->name : "",
                               .data = info->data,
                               .count = info->count,
                               .size = info->count * element,
                               .dtype = (uint8_t)info->datatype,
                               .free = info->allow_content_inequality};
    if (strnlen(t->name, STATE_NAME_MAX + 1) > STATE_NAME_MAX)
        return "its name is too long";
    if (!cuda) return NULL;
    if (!comm_device_built()) return "this library was built without CUDA";
    const char *wrong = NULL;
    if (info->count > 0) t->device = comm_device_of(info->data, &wrong);
    return wrong;
}

/* The members of a host read at the same time. */
static unsigned share_of_processors(const pcclComm_t *c)
{
    uint32_t here = comm_members_on_own_processors(c);
    uint32_t processors = c->progress.processors;
    return here < processors ? processors / here : 1;
}

static int compare_names(const void *a, const void *b)
{
    const struct state_tensor *const *x = a;
    const struct state_tensor *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    if (order != 0) return order;
    return *x < *y ? -1 : *x > *y;
}

/* No two tensors share a name; a tensor without one is named by its place. */
static pcclResult_t
check_names(pcclComm_t *c, const struct state_tensor *tensors, uint32_t count)
{
    const struct state_tensor **sorted =
        malloc((count + (size_t)1) * sizeof *sorted);
    if (!sorted) {
        comm_set_error(c, "out of memory for the names of %u tensors", count);
        return pcclInternalError;
    }
    for (uint32_t i = 0; i < count; i++) sorted[i] = &tensors[i];
    qsort(sorted, count, sizeof *sorted, compare_names);
    pcclResult_t result = pcclSuccess;
    for (uint32_t i = 1; i < count && result == pcclSuccess; i++) {
        const struct state_tensor *a = sorted[i - 1];
        const struct state_tensor *b = sorted[i];
        if (a->name[0] == '\0' || strcmp(a->name, b->name) != 0) continue;
        comm_set_error(c,
                       "shared state entries %u and %u are both named "
                       "\"%.64s\"",
                       (unsigned)(a - tensors), (unsigned)(b - tensors),
                       a->name);
        result = pcclInvalidArgument;
    }
    free(sorted);
    return result;
}

pcclResult_t comm_read_tensors(pcclComm_t *c, const pcclSharedState_t *state,
                               struct state_tensor *tensors)
{
    uint32_t count = (uint32_t)state->count;
    for (uint32_t i = 0; i < count; i++) {
        const pcclTensorInfo_t *info = &state->infos[i];
        const char *wrong = read_tensor(info, &tensors[i]);
        if (!wrong) continue;
        comm_set_error(c, "shared state entry %u (\"%.64s\"): %s", i,
                       info->name ? info->name : "", wrong);
        return pcclInvalidArgument;
    }
    return check_names(c, tensors, count);
}

/* The lock is released, because reading may take long. */
pcclResult_t comm_read_state(pcclComm_t *c, const pcclSharedState_t *state,
                             bool hashes, struct state_list *list)
{
    if (state->count > STATE_TENSORS_MAX) {
        comm_set_error(c, "shared state of %zu tensors; at most %u",
                       state->count, (unsigned)STATE_TENSORS_MAX);
        return pcclInvalidArgument;
    }
    if (state->revision == UINT64_MAX) {
        comm_set_error(c, "shared state has revision 2^64 - 1, which none can "
                          "follow");
        return pcclInvalidArgument;
    }
    uint32_t count = (uint32_t)state->count;
    struct state_tensor *tensors =
        malloc((count + (size_t)1) * sizeof *tensors);
    if (!tensors) {
        comm_set_error(c, "out of memory for a list of %u tensors", count);
        return pcclInternalError;
    }
    pcclResult_t result = comm_read_tensors(c, state, tensors);
    if (result != pcclSuccess) {
        free(tensors);
        return result;
    }
    bool ok;
    if (hashes) {
        unsigned threads = share_of_processors(c);
        pthread_mutex_unlock(&c->lock);
        ok = state_list_make(list, tensors, count, threads);
        comm_lock(c);
    } else {
        ok = state_list_describe(list, tensors, count);
    }
    free(tensors);
    if (ok) return pcclSuccess;
    comm_set_error(c, "%s", list->failure);
    return pcclInternalError;
}

/* Reads the tensors and asks the others. */
static int begin(pcclComm_t *c, const pcclSharedState_t *state,
                 pcclSharedStateSyncStrategy_t strategy,
                 struct state_list **out)
{
    if (session_busy(c->session)) return pcclPendingAsyncOps;
    struct state_list *list = malloc(sizeof *list);
    int result =
        list ? (int)comm_read_state(c, state, true, list) : pcclInternalError;
    if (result != pcclSuccess) {
        free(list);
        return result;
    }
    result = session_sync(c->session, list, (enum sync_strategy)strategy,
                          state->revision);
    if (result == pcclSuccess) {
        *out = list;
        return result;
    }
    state_list_free(list);
    free(list);
    return result;
}

/* Takes up what an interrupted call has begun. */
static int take_up(pcclComm_t *c, const pcclSharedState_t *state,
                   struct state_list **out)
{
    const struct state_list *list = c->left.sync;
    bool same = list->count == state->count;
    for (uint32_t i = 0; same && i < list->count; i++)
        same = list->tensors[i].data == state->infos[i].data &&
               list->tensors[i].count == state->infos[i].count;
    if (!same) {
        comm_set_error(c, "a synchronization of other tensors is not over: "
                          "call with these again");
        return pcclInvalidArgument;
    }
    *out = c->left.sync;
    c->left.sync = NULL;
    return pcclSuccess;
}

static int end(pcclComm_t *c, pcclSharedState_t *state,
               pcclSharedStateSyncInfo_t *info)
{
    struct session *s = c->session;
    uint64_t tx, rx;
    int result = session_sync_take(s, &state->revision, &tx, &rx);
    if (result == pcclSuccess && info)
        *info = (pcclSharedStateSyncInfo_t){(size_t)tx, (size_t)rx};
    if (result == pcclSuccess) {
        c->counters.synced_sent += tx;
        c->counters.synced_received += rx;
    }
    if (result == pcclSuccess && s->sync_error[0] != '\0')
        LOG(LOG_WARN, "a member was refused: %s", s->sync_error);
    if (s->sync_error[0] != '\0') comm_set_error(c, "%s", s->sync_error);
    return result;
}

int comm_synchronize(pcclComm_t *c, pcclSharedState_t *state,
                     pcclSharedStateSyncStrategy_t strategy,
                     pcclSharedStateSyncInfo_t *info)
{
    pccl_ns until = comm_limit(c);
    struct state_list *list;
    int result = c->left.sync ? take_up(c, state, &list)
                              : begin(c, state, strategy, &list);
    if (result != pcclSuccess) return result;
    progress_wait_sync(c, until);
    if (c->session->sync == SYNC_ASKED) {
        c->left.sync = list;
        return comm_stop_waiting(c, comm_interrupted(c, until),
                                 "the synchronization goes on: call again");
    }
    result = end(c, state, info);
    state_list_free(list);
    free(list);
    return result;
}
