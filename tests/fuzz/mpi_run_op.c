/* mpi_run_op.c - the operations of a run that a tape plays, its view, and the
 * other calls of pccl.h. See mpi_run.h. */
#include "mpi_run_state.h"

#include "../../src/base/status.h"
#include "../../src/peer/hold_view.h"

#include <stdio.h>

struct pcclComm_t {
    int nothing;
};

enum {
    FLIGHTS_MAX = 128,
    SCOPE_MAX = 64,
    CHANGES = 8,
    HANGS = 100000,
    EXCHANGE_MAX = 4 << 20, /* bytes that an all-to-all brings */
};

struct flight {
    bool used;
    uint64_t tag;
    uint32_t polls;
    pcclResult_t result;
    uint64_t received;
};

static struct pcclComm_t the_comm;
static struct flight flights[FLIGHTS_MAX];
static char last_error[64];
static uint32_t polls_in_vain;

/* --------------------------------------------------------------------- view */

static bool any_unreported(void)
{
    for (uint32_t i = 0; i < run.size; i++)
        if (run.lost[i] && !run.reported[i]) return true;
    return false;
}

/* An operation of all has failed: the view is another one. */
static void report(void)
{
    if (!any_unreported()) return;
    for (uint32_t i = 0; i < run.size; i++) run.reported[i] = run.lost[i];
    run.epoch++;
}

const struct view *pcclHoldView(const pcclComm_t *comm)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < run.size; i++) size += !run.reported[i];
    struct view *v = view_new(size, 0, 0);
    if (!v) return NULL;
    v->epoch = (uint32_t)run.epoch;
    v->lost = run.size - size;
    for (uint32_t i = 0, at = 0; i < run.size; i++) {
        if (run.reported[i]) continue;
        if (i == run.rank) v->rank = at;
        v->members[at++] = (struct wire_member){
            .id = run.ids[i], .host = run.hosts[i], .hint = -1};
    }
    view_index(v);
    return v;
}

/* --------------------------------------------------------------- operations */

static size_t element_size(pcclDataType_t type)
{
    static const uint8_t sizes[] = {
        [pcclUint8] = 1,    [pcclInt8] = 1,   [pcclInt16] = 2,
        [pcclUint16] = 2,   [pcclUint32] = 4, [pcclInt32] = 4,
        [pcclInt64] = 8,    [pcclUint64] = 8, [pcclFloat16] = 2,
        [pcclBFloat16] = 2, [pcclFloat] = 4,  [pcclDouble] = 8};
    return sizes[type];
}

/* The ids of its members, in order; their number, and the rank of this one. */
static uint32_t scope(const pcclCollective_t *op, uint64_t ids[SCOPE_MAX],
                      uint32_t *rank)
{
    uint32_t count = 0;
    *rank = SCOPE_MAX;
    for (uint32_t i = 0; !op->members && i < run.size; i++)
        if (!run.reported[i]) ids[count++] = run.ids[i];
    for (size_t i = 0; op->members && i < op->member_count; i++)
        if (count < SCOPE_MAX) ids[count++] = op->members[i];
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] == run.ids[run.rank]) *rank = i;
    return count;
}

/* pccl refuses a scope whose members are not distinct, or not of the view, or
 * do not have this one. */
static pcclResult_t check_scope(const uint64_t *ids, uint32_t count,
                                uint32_t rank)
{
    if (rank == SCOPE_MAX) return pcclInvalidArgument;
    for (uint32_t i = 0; i < count; i++) {
        bool there = false;
        for (uint32_t k = 0; k < i; k++)
            if (ids[k] == ids[i]) return pcclInvalidArgument;
        for (uint32_t k = 0; k < run.size; k++)
            there |= run.ids[k] == ids[i] && !run.lost[k];
        if (!there) return pcclRankConnectionLost;
    }
    return pcclSuccess;
}

/* Every rank but its id is as this one. */
static void copy_block(uint8_t *to, const uint8_t *from, size_t size,
                       uint64_t id)
{
    memmove(to, from, size);
    for (size_t at = 0; at + 8 <= size; at += 8)
        if (memcmp(to + at, &run.ids[run.rank], 8) == 0)
            memcpy(to + at, &id, 8);
}

/* Where the operation writes: everywhere there. Returns its size. */
static size_t fill(const pcclCollective_t *op, const uint64_t *ids,
                   uint32_t count, uint32_t rank)
{
    uint8_t *to = op->recvbuf;
    size_t size = op->count;
    switch (op->kind) {
    case pcclKindAllReduce:
    case pcclKindReduceScatter:
        size *= element_size(op->datatype);
        if (size > 0 && op->sendbuf && op->sendbuf != to)
            memcpy(to, op->sendbuf, size);
        return size;
    case pcclKindAllGather:
        for (uint32_t i = 0; size > 0 && i < count; i++) {
            const uint8_t *own = op->sendbuf ? op->sendbuf : to + rank * size;
            if (op->sendbuf || i != rank)
                copy_block(to + i * size, own, size, ids[i]);
        }
        return size * count;
    case pcclKindAllToAllV:
        size = 0;
        for (uint32_t i = 0; i < count; i++) {
            free(op->send_bytes[i] > 0
                     ? memcpy(malloc(op->send_bytes[i]),
                              (const uint8_t *)op->sendbuf + op->send_displs[i],
                              op->send_bytes[i])
                     : NULL);
            if (op->recv_bytes[i] > 0)
                memset(to + op->recv_displs[i], 0, op->recv_bytes[i]);
            if (i == (rank + 1) % count) size = op->recv_bytes[i];
        }
        return size;
    case pcclKindBroadcast:
        if ((uint32_t)op->root != rank && size > 0) memset(to, 0, size);
        return (uint32_t)op->root == rank ? 0 : size;
    case pcclKindBarrier:
    case pcclKindScan:
        return 0;
    }
    return 0;
}

/* What the other ranks have put there. */
static void change(const pcclCollective_t *op, size_t size, uint32_t next,
                   struct fuzz_input *in)
{
    uint8_t *to = op->recvbuf;
    if (size == 0) return;
    if (op->kind == pcclKindAllToAllV) to += op->recv_displs[next];
    for (uint32_t i = 0; i < CHANGES && in->left > 0; i++) {
        size_t at = fuzz_u16(in) % size;
        size_t width = (size_t)1 << fuzz_u8(in) % 4;
        uint64_t value = fuzz_u64(in);
        at -= at % width;
        if (at + width > size) continue;
        memcpy(to + at, &value, width);
    }
}

/* Whoever announces so much has to send it; here it would cost a word. */
static bool is_too_large(const pcclCollective_t *op, uint32_t count)
{
    size_t size = 0;
    if (op->kind != pcclKindAllToAllV) return false;
    for (uint32_t i = 0; i < count && size <= EXCHANGE_MAX; i++)
        size += op->recv_bytes[i];
    return size > EXCHANGE_MAX;
}

static pcclResult_t result_of(const pcclCollective_t *op, uint8_t how)
{
    switch (how % 16) {
    case 1:
        run_lose(run.rank + 1 + how / 16 % 3 < run.size
                     ? run.rank + 1 + how / 16 % 3
                     : 0);
        return pcclSuccess;
    case 2:
        return pcclInvalidArgument;
    case 3:
        return op->members ? pcclOperationFailed : pcclSuccess;
    case 4:
        return pcclInternalError;
    case 5:
        run.gone = true;
        return pcclMasterConnectionFailed;
    case 6:
        return pcclTooFewPeers;
    default:
        return pcclSuccess;
    }
}

static void run_op(const pcclCollective_t *op, struct flight *f)
{
    uint64_t ids[SCOPE_MAX];
    uint32_t rank, count = scope(op, ids, &rank);
    struct tape_record r = {.size = 0};
    if (!run_take(RUN_OP, &r)) r.arg = 0;
    struct fuzz_input in = {r.bytes, r.size};
    f->polls = fuzz_u8(&in) % 8;
    f->result = run.gone ? pcclMasterConnectionFailed : result_of(op, r.arg);
    bool all = !op->members;
    if (f->result == pcclSuccess && all && any_unreported())
        f->result = pcclRankConnectionLost;
    if (f->result == pcclSuccess && all && op->view_epoch != 0 &&
        op->view_epoch != run.epoch)
        f->result = pcclRankConnectionLost;
    if (f->result == pcclSuccess) f->result = check_scope(ids, count, rank);
    if (op->kind == pcclKindBroadcast &&
        (op->root < 0 || (uint32_t)op->root >= count))
        f->result = pcclInvalidArgument;
    if (f->result == pcclInvalidArgument && rank == SCOPE_MAX) return;
    bool too_large = is_too_large(op, count);
    if (too_large && f->result == pcclSuccess) f->result = pcclInternalError;
    size_t size = f->result == pcclInvalidArgument || too_large
                      ? 0
                      : fill(op, ids, count, rank);
    change(op, size, (rank + 1) % count, &in);
    f->received = r.arg & 128 ? size : 0;
    if (f->result == pcclRankConnectionLost && all) report();
    if (f->result == pcclTooFewPeers) report();
}

pcclResult_t pcclCollective(const pcclCollective_t *op, pcclComm_t *comm,
                            pcclReduceInfo_t *info_out)
{
    (void)comm;
    struct flight f = {.used = true};
    if (++polls_in_vain > HANGS) run_fail("operations without end");
    run_op(op, &f);
    if (info_out) *info_out = (pcclReduceInfo_t){.rx_bytes = f.received};
    return f.result;
}

static struct flight *flight_of(uint64_t tag)
{
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++)
        if (flights[i].used && flights[i].tag == tag) return &flights[i];
    return NULL;
}

pcclResult_t pcclCollectiveAsync(const pcclCollective_t *op, pcclComm_t *comm,
                                 pcclAsyncReduceOp_t *handle_out)
{
    if (flight_of(op->tag)) return pcclInvalidArgument;
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++) {
        if (flights[i].used) continue;
        flights[i] = (struct flight){.used = true, .tag = op->tag};
        run_op(op, &flights[i]);
        *handle_out = (pcclAsyncReduceOp_t){comm, op->tag};
        return pcclSuccess;
    }
    return pcclInternalError;
}

pcclResult_t pcclTestAsync(const pcclAsyncReduceOp_t *handle, bool *done_out)
{
    struct flight *f = flight_of(handle->tag);
    if (!f) return pcclInvalidArgument;
    *done_out = f->polls == 0;
    if (f->polls > 0) f->polls--;
    return pcclSuccess;
}

pcclResult_t pcclWaitAsync(const pcclAsyncReduceOp_t *handle, int timeout_ms,
                           bool *done_out)
{
    (void)timeout_ms;
    return pcclTestAsync(handle, done_out);
}

pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle,
                                  pcclReduceInfo_t *reduce_info_out)
{
    struct flight *f = flight_of(reduce_handle->tag);
    if (!f) return pcclInvalidArgument;
    f->used = false;
    if (reduce_info_out)
        *reduce_info_out = (pcclReduceInfo_t){.rx_bytes = f->received};
    return f->result;
}

/* Now one way and now the other. */
pcclResult_t pcclChooseCollective(pcclCollective_t *op, pcclComm_t *comm)
{
    (void)comm;
    bool turns = op->count / 8 % 2;
    if (op->kind == pcclKindScan)
        op->kind = turns ? pcclKindAllGather : pcclKindAllToAllV;
    else if (!turns)
        return pcclSuccess;
    else if (op->kind == pcclKindReduceScatter)
        op->kind = pcclKindAllReduce;
    else if (op->kind == pcclKindAllToAllV)
        op->kind = op->flow == pcclFlowFromRoot ? pcclKindBroadcast
                                                : pcclKindAllGather;
    op->flow = pcclFlowAll;
    return pcclSuccess;
}

pcclResult_t pcclTakeLoss(pcclComm_t *comm, const uint64_t *members,
                          size_t member_count, bool *lost_out)
{
    (void)comm;
    bool any = false;
    report();
    for (size_t i = 0; i < member_count; i++) {
        bool here = false;
        for (uint32_t k = 0; k < run.size; k++)
            here |= run.ids[k] == members[i] && !run.reported[k];
        if (lost_out) lost_out[i] = !here;
        any |= !here;
    }
    return any ? pcclSuccess : pcclInvalidUsage;
}

pcclResult_t pcclFailCollective(pcclComm_t *comm, uint64_t tag)
{
    (void)comm;
    struct flight *f = flight_of(tag);
    if (!f) return pcclInvalidUsage;
    if (f->result == pcclSuccess) f->result = pcclOperationFailed;
    f->polls = 0;
    return pcclSuccess;
}

/* ---------------------------------------------------------- all other calls */

static pcclResult_t answer(void)
{
    static const pcclResult_t results[] = {
        pcclSuccess,         pcclSuccess,
        pcclSuccess,         pcclPendingAsyncOps,
        pcclInvalidUsage,    pcclRankConnectionLost,
        pcclInvalidArgument, pcclMasterConnectionFailed};
    return run.gone ? pcclMasterConnectionFailed
                    : results[run.answers >> 2 & 7];
}

pcclResult_t pcclUpdateTopology(pcclComm_t *comm)
{
    (void)comm;
    pcclResult_t result = answer();
    polls_in_vain = 0;
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++)
        if (flights[i].used) return pcclPendingAsyncOps;
    if (result == pcclSuccess) report();
    return result;
}

pcclResult_t pcclOptimizeTopology(const pcclComm_t *comm)
{
    (void)comm;
    return answer();
}

pcclResult_t pcclArePeersPending(const pcclComm_t *comm, bool *pending_out)
{
    (void)comm;
    *pending_out = run.answers & 2;
    return answer();
}

pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *comm,
                                        pcclSharedState_t *state,
                                        pcclSharedStateSyncStrategy_t strategy,
                                        pcclSharedStateSyncInfo_t *info)
{
    (void)comm;
    (void)strategy;
    info->rx_bytes = state->count;
    return answer();
}

pcclResult_t pcclReportProgress(pcclComm_t *comm, uint64_t step,
                                uint64_t samples, uint64_t target)
{
    (void)comm;
    return step + samples + target ? answer() : pcclSuccess;
}

pcclResult_t pcclGetProgress(const pcclComm_t *comm, pcclProgress_t *progress)
{
    (void)comm;
    progress->members = run.size;
    return answer();
}

pcclResult_t pcclAllReducePartial(const void *sendbuf, void *recvbuf,
                                  const pcclPartialDescriptor_t *descriptor,
                                  pcclComm_t *comm, pcclPartialInfo_t *info)
{
    (void)comm;
    if (sendbuf != recvbuf && descriptor->count > 0)
        memcpy(recvbuf, sendbuf,
               descriptor->count * element_size(descriptor->datatype));
    info->elements = descriptor->count;
    info->part_count = 1;
    info->parts[0] =
        (pcclPartialPart_t){.count = descriptor->count, .contributors = 1};
    return answer();
}

pcclResult_t pcclGetTraits(const pcclComm_t *comm, uint32_t *traits_out)
{
    (void)comm;
    *traits_out = run.answers & 2 ? 1 : 0;
    return pcclSuccess;
}

pcclResult_t pcclGetLastError(const pcclComm_t *comm, char *buf, size_t size)
{
    (void)comm;
    (void)snprintf(buf, size, "%s", last_error);
    return pcclSuccess;
}

const char *pcclGetErrorString(pcclResult_t result)
{
    return status_text((int)result);
}

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params,
                                    pcclComm_t **comm_out)
{
    (void)params;
    *comm_out = &the_comm;
    return pcclSuccess;
}

pcclResult_t pcclDrainRequested(bool *requested_out)
{
    *requested_out = false; /* true would end the process */
    return pcclSuccess;
}

pcclResult_t pcclTraceEnabled(bool *enabled_out)
{
    *enabled_out = run.answers & 1;
    return pcclSuccess;
}

pcclResult_t pcclAbortRun(pcclComm_t *comm, int code)
{
    (void)comm;
    (void)code;
    run_fail("the library ends the run");
}

/* clang-format off */
#define SUCCEEDS(name, arguments) \
    pcclResult_t name arguments { return pcclSuccess; }
SUCCEEDS(pcclInit, (void))
SUCCEEDS(pcclDestroyCommunicator, (pcclComm_t *c))
SUCCEEDS(pcclSetOptions, (pcclComm_t *c, const pcclCommOptions_t *o))
SUCCEEDS(pcclSetNamer, (pcclComm_t *c, void (*n)(uint64_t, char *, size_t)))
SUCCEEDS(pcclConnect, (pcclComm_t *c))
SUCCEEDS(pcclSetTraits, (pcclComm_t *c, uint32_t t))
SUCCEEDS(pcclGetStatistics, (const pcclComm_t *c, pcclStatistics_t *s))
SUCCEEDS(pcclTraceBegin, (pcclComm_t *c, const char *n, uint64_t m, uint64_t b))
SUCCEEDS(pcclTraceEnd, (pcclComm_t *c))
SUCCEEDS(pcclWaitBegins, (pcclComm_t *c, const pcclWait_t *w))
SUCCEEDS(pcclWaitEnds, (pcclComm_t *c, const pcclWait_t *w))
SUCCEEDS(pcclSaveState, (const pcclComm_t *c, const pcclSharedState_t *s,
                         const char *d, const pcclSaveOptions_t *o))
SUCCEEDS(pcclAwaitSave, (const pcclComm_t *c, pcclCheckpointInfo_t *i))
SUCCEEDS(pcclLoadState, (const pcclComm_t *c, pcclSharedState_t *s,
                         const char *d, const pcclLoadOptions_t *o,
                         pcclCheckpointInfo_t *i))
/* clang-format on */
