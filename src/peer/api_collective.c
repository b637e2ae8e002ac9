/* api_collective.c - the calls of pccl.h for collective operations. */
#include "api.h"
#include "collective_check.h"

#include <stddef.h>

enum {
    /* Of programs that were made when there were no arguments to name. */
    SIZE_WITHOUT_ARGUMENTS = offsetof(pcclCollective_t, arguments),
    SIZE_WITHOUT_FLOW = offsetof(pcclCollective_t, flow),
    ARGUMENTS_MOST = 8
};

/* Both have one order. */
static_assert((int)COLL_BROADCAST == (int)pcclKindBroadcast &&
                  (int)COLL_BARRIER == (int)pcclKindBarrier &&
                  (int)COLL_ALLGATHER == (int)pcclKindAllGather &&
                  (int)COLL_ALLTOALLV == (int)pcclKindAllToAllV &&
                  (int)COLL_REDUCE_SCATTER == (int)pcclKindReduceScatter &&
                  (int)COLL_SCAN == (int)pcclKindScan,
              "kinds of collectives");

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9e3779b97f4a7c15u;
    hash *= 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

/* Digest of all arguments that the members must agree on (contract C4).
 * `forced` names the algorithm by PCCL_ALGORITHM, or is NULL. */
static uint64_t digest_of(const pcclCollective_t *op,
                          const pcclQuantizationOptions_t *q,
                          const char *forced)
{
    uint64_t hash = mix(0, (uint64_t)op->kind);
    bool counts = op->kind != pcclKindAllToAllV || collective_is_even(op);
    hash = mix(hash, counts ? op->count : 0);
    if (op->kind == pcclKindAllReduce || op->kind == pcclKindReduceScatter) {
        hash = mix(hash, (uint64_t)op->datatype);
        hash = mix(hash, (uint64_t)op->op);
    }
    if (collective_is_rooted(op)) hash = mix(hash, (uint64_t)op->root);
    if (collective_flow(op) != pcclFlowAll)
        hash = mix(hash, (uint64_t)collective_flow(op));
    if (q && q->algorithm != pcclQuantNone) {
        hash = mix(hash, (uint64_t)q->algorithm);
        hash = mix(hash, (uint64_t)q->quantized_datatype);
    }
    hash = mix(hash, op->user_digest);
    for (; forced && *forced != '\0'; forced++)
        hash = mix(hash, (uint64_t)(unsigned char)*forced);
    for (size_t i = 0; op->members && i < op->member_count; i++)
        hash = mix(hash, op->members[i]);
    return hash;
}

/* Its position in the scope; member_count: it is not of it. */
static size_t position_in_scope(const pcclCollective_t *op, uint64_t id)
{
    size_t i = 0;
    while (i < op->member_count && op->members[i] != id) i++;
    return i;
}

static bool names_twice(const pcclCollective_t *op)
{
    bool ascending = true; /* as most are */
    for (size_t i = 1; i < op->member_count; i++)
        ascending &= op->members[i - 1] < op->members[i];
    for (size_t i = 1; i < op->member_count && !ascending; i++) {
        for (size_t k = 0; k < i; k++) {
            if (op->members[k] == op->members[i]) return true;
        }
    }
    return false;
}

/* Returns the error in the members of an operation's scope, or NULL. */
static const char *check_scope(const pcclCollective_t *op, uint64_t self)
{
    if (op->member_count > PEERS_MAX)
        return "the scope has more members than a run";
    if (position_in_scope(op, self) == op->member_count)
        return "the scope does not contain this peer";
    if (names_twice(op)) return "the scope names a member twice";
    return NULL;
}

static void fill_request(struct op_request *r, const struct engine *e,
                         const pcclCollective_t *op,
                         const pcclQuantizationOptions_t *q, uint32_t world,
                         uint32_t rank)
{
    enum plan_coll coll = (enum plan_coll)op->kind;
    *r = (struct op_request){
        .call = {.tag = op->tag,
                 .sendbuf = op->sendbuf,
                 .recvbuf =
                     collective_has_result(op, rank) ? op->recvbuf : NULL,
                 .digest = digest_of(op, q, engine_forced(e, coll)),
                 .members = op->members,
                 .member_count = (uint32_t)op->member_count,
                 .user_digest = op->user_digest}};
    if (op->size >= SIZE_WITHOUT_FLOW) {
        r->call.named = op->arguments;
        size_t n = op->argument_count;
        r->call.named_count = n < ARGUMENTS_MOST ? (uint32_t)n : ARGUMENTS_MOST;
    }
    if (plan_coll_reduces(coll)) {
        r->call.dtype = (enum dtype)op->datatype;
        r->call.redop = (enum redop)op->op;
        r->plan.element = (uint32_t)dtype_size(r->call.dtype);
    }
    r->plan.coll = coll;
    r->plan.count =
        coll == COLL_ALLTOALLV && !collective_is_even(op) ? 0 : op->count;
    if (coll == COLL_REDUCE_SCATTER) r->plan.count *= world;
    r->plan.root = collective_is_rooted(op) ? (uint32_t)op->root : 0;
    r->plan.flow = (enum plan_flow)collective_flow(op);
    r->plan.send_bytes = op->send_bytes;
    r->plan.send_displs = op->send_displs;
    r->plan.recv_bytes = op->recv_bytes;
    r->plan.recv_displs = op->recv_displs;
    if (q && q->algorithm != pcclQuantNone)
        engine_quantize(r, (enum quant_algorithm)q->algorithm,
                        (enum dtype)q->quantized_datatype);
}

/* Locked. Checks the arguments and fills in the request. */
static pcclResult_t prepare(pcclComm_t *c, const pcclCollective_t *op,
                            const pcclQuantizationOptions_t *q,
                            struct op_request *r)
{
    const struct session *s = c->session;
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    pcclResult_t rc = api_take_up(c);
    if (rc != pcclSuccess) return rc;
    const char *wrong = op->members ? check_scope(op, s->id) : NULL;
    uint32_t world =
        op->members ? (uint32_t)op->member_count : s->notified.view->size;
    uint32_t rank = op->members ? (uint32_t)position_in_scope(op, s->id)
                                : s->notified.view->rank;
    if (!wrong) wrong = collective_check(op, world, rank);
    /* Arrays for another view may be shorter; the launch refuses them. */
    bool stale = !op->members && op->view_epoch != 0 &&
                 op->view_epoch != s->notified.view->epoch;
    if (!wrong && !stale) wrong = collective_check_flow(op, world, rank);
    if (!wrong && q) wrong = collective_check_quantization(op, q);
    if (wrong) {
        comm_set_error(c, "%s", wrong);
        return pcclInvalidArgument;
    }
    /* Alone, the vector itself is the result. */
    fill_request(r, s->engine, op, world > 1 ? q : NULL, world, rank);
    const char *name;
    wrong = engine_unfit(s->engine, r, &name);
    if (!wrong) return pcclSuccess;
    comm_set_error(c, "PCCL_ALGORITHM=%s: %s", name, wrong);
    return pcclInvalidArgument;
}

/* Both buffers are as good as those of the last call. */
static bool has_such_buffers(const pcclCollective_t *op,
                             const struct op_call *last)
{
    return !op->sendbuf == !last->sendbuf && (op->recvbuf || !last->recvbuf) &&
           !collective_overlaps(op);
}

/* What is left of prepare() for the same arguments in the same view. */
static bool is_again(const pcclComm_t *c, const pcclCollective_t *op,
                     const pcclQuantizationOptions_t *q)
{
    const struct view *view = c->session->notified.view;
    const struct plan_request *p = &c->request.made.plan;
    const struct op_call *last = &c->request.made.call;
    bool reduces = plan_coll_reduces(p->coll);
    uint32_t share = p->coll == COLL_REDUCE_SCATTER ? view->size : 1;
    return c->request.epoch == view->epoch &&
           c->session->state != SESSION_GONE && op->size >= sizeof *op &&
           (enum plan_coll)op->kind == p->coll && op->tag == last->tag &&
           op->count == p->count / share &&
           (!reduces || ((enum dtype)op->datatype == last->dtype &&
                         (enum redop)op->op == last->redop)) &&
           (uint32_t)op->root == p->root &&
           (enum plan_flow)op->flow == p->flow &&
           op->user_digest == last->user_digest &&
           op->arguments == last->named &&
           op->argument_count == last->named_count && !op->members &&
           (!q || q->algorithm == pcclQuantNone) && has_such_buffers(op, last);
}

/* Of a blocking call; the request lives until the next one. What has arrays is
 * made anew. */
static pcclResult_t prepare_blocking(pcclComm_t *c, const pcclCollective_t *op,
                                     const pcclQuantizationOptions_t *q)
{
    struct comm_request *last = &c->request;
    if (is_again(c, op, q)) {
        last->made.call.sendbuf = op->sendbuf;
        if (last->made.call.recvbuf) last->made.call.recvbuf = op->recvbuf;
        return api_take_up(c);
    }
    last->epoch = 0;
    pcclResult_t rc = prepare(c, op, q, &last->made);
    bool stale = op->view_epoch != 0 &&
                 op->view_epoch != c->session->notified.view->epoch;
    bool may = rc == pcclSuccess && !stale && op->size >= sizeof *op &&
               !op->members && op->kind != pcclKindAllToAllV &&
               (!q || q->algorithm == pcclQuantNone);
    if (may) last->epoch = c->session->notified.view->epoch;
    return rc;
}

static pcclResult_t start(pcclComm_t *c, const struct op_request *r,
                          uint64_t view_epoch, struct op **out)
{
    pcclResult_t rc =
        (pcclResult_t)session_launch(c->session, r, view_epoch, out);
    if (rc == pcclInvalidArgument)
        comm_set_error(c, "tag %llu is in flight already",
                       (unsigned long long)r->call.tag);
    bool scoped = r->call.members != NULL;
    if (rc == pcclInternalError && engine_is_full(c->session->engine, scoped))
        comm_set_error(c,
                       "%d operations are in flight%s, and have to be awaited "
                       "first",
                       (int)OPS_MAX, scoped ? ", or 256 in scopes" : "");
    else if (rc == pcclInternalError)
        comm_set_error(c, "out of memory for an operation");
    return rc;
}

static pcclResult_t count_start(pcclComm_t *c, pcclCollectiveKind_t kind,
                                pcclResult_t rc)
{
    count_started(&c->counters, kind);
    if (rc != pcclSuccess) count_ended(&c->counters, kind, (int)rc);
    return rc;
}

/* Locked. The caller moves the bytes next, or waits. */
static pcclResult_t launch(pcclComm_t *c, const pcclCollective_t *op,
                           const pcclQuantizationOptions_t *q, struct op **out)
{
    struct op_request r;
    pcclResult_t rc = prepare(c, op, q, &r);
    if (rc == pcclSuccess) rc = start(c, &r, op->view_epoch, out);
    return count_start(c, op->kind, rc);
}

/* The same for an operation that another call awaits. */
static pcclResult_t launch_async(pcclComm_t *c, const pcclCollective_t *op,
                                 const pcclQuantizationOptions_t *q,
                                 struct op **out)
{
    if (!comm_tells()) return launch(c, op, q, out);
    struct told_op told = comm_tell_called(c, op);
    pcclResult_t rc = launch(c, op, q, out);
    told.async = rc == pcclSuccess;
    if (rc == pcclSuccess)
        comm_tell_began(c, &told);
    else
        comm_tell_ended(c, &told, (int)rc);
    return rc;
}

static void describe(pcclComm_t *c, int result, uint32_t number)
{
    const char *dispute = session_dispute(c->session, number);
    if (result == pcclInvalidArgument)
        comm_set_error(c, "%s",
                       dispute ? dispute
                               : "members disagree on the kind, count, "
                                 "datatype, operator, quantization, root or "
                                 "sizes");
    if (result == pcclInvalidUsage)
        comm_set_error(c, "another peer sits in a topology update and never "
                          "launched this operation");
    if (result == pcclRankConnectionLost)
        comm_set_error(c, "a member was lost; %u are left in epoch %u",
                       c->session->notified.view->size,
                       c->session->notified.view->epoch);
    if (result == pcclRankConnectionFailed) api_describe_blockers(c);
    if (result == pcclTooFewPeers)
        comm_set_error(c,
                       "%u of at least %u members are left: "
                       "pcclUpdateTopology waits for newcomers",
                       c->session->notified.view->world, c->session->minimum);
}

/* `told`: what is told of the operation, or NULL. */
static pcclResult_t take(pcclComm_t *c, struct op *op, pccl_ns until,
                         pcclReduceInfo_t *info, struct told_op *told)
{
    op_set_awaited(op, true);
    progress_wait(c, op, until);
    if (!op_is_done(op)) {
        op_set_awaited(op, false);
        return (pcclResult_t)comm_stop_waiting(
            c, comm_interrupted(c, until),
            "the operation goes on: await it, or have it fail");
    }
    pcclReduceInfo_t got = {0};
    pcclCollectiveKind_t kind = (pcclCollectiveKind_t)op_coll(op);
    if (told && told->async) *told = comm_tell_awaited(c, op, kind);
    if (told) op_look(op, &told->look);
    uint64_t mapped = op_mapped(op);
    uint32_t dispute = op_dispute(op);
    int result = session_take(c->session, op, &got.local_world_size,
                              &got.tx_bytes, &got.rx_bytes);
    count_ended(&c->counters, kind, result);
    c->counters.mapped_received += mapped;
    if (told && result == pcclSuccess) told->members = got.local_world_size;
    if (result == pcclSuccess && info) *info = got;
    if (result == pcclRankConnectionLost && info) info->rx_bytes = got.rx_bytes;
    if (result != pcclSuccess) describe(c, result, dispute);
    return (pcclResult_t)result;
}

pcclResult_t api_take(pcclComm_t *c, struct op *op, pccl_ns until,
                      pcclReduceInfo_t *info)
{
    if (!comm_tells()) return take(c, op, until, info, NULL);
    struct told_op told = {.async = true};
    pcclResult_t rc = take(c, op, until, info, &told);
    if (told.begun) comm_tell_ended(c, &told, (int)rc);
    return rc;
}

/* Locked. Runs a blocking operation from launch to result. */
static pcclResult_t run_op(pcclComm_t *c, const pcclCollective_t *op,
                           const pcclQuantizationOptions_t *q,
                           pcclReduceInfo_t *info, struct told_op *told)
{
    const struct op_request *r = &c->request.made;
    struct op *started;
    pccl_ns until = comm_limit(c);
    /* Before it begins: the fast path keeps the lock. If it gave way to a
     * thread that polls, the call and then those of the others would become
     * operations. */
    comm_yield_lock(c);
    pcclResult_t rc = prepare_blocking(c, op, q);
    if (rc != pcclSuccess) return count_start(c, op->kind, rc);
    enum look found = progress_fast(c, r, op->view_epoch, &started);
    if (found == LOOK_IDLE) {
        engine_wait_begins(c->session->engine);
        rc = start(c, r, op->view_epoch, &started);
    } else if (found == LOOK_ELSE && !started) {
        rc = pcclInternalError;
    }
    (void)count_start(c, op->kind, rc);
    if (rc != pcclSuccess) return rc;
    if (found == LOOK_DONE) {
        count_ended(&c->counters, op->kind, pcclSuccess);
        if (told) fast_look(c->session->engine, r, &told->look);
        if (info) {
            *info = (pcclReduceInfo_t){.local_world_size =
                                           c->session->notified.view->size};
            fast_bytes(c->session->engine, &info->tx_bytes, &info->rx_bytes);
        }
        return pcclSuccess;
    }
    if (told) comm_tell_began(c, told);
    return take(c, started, until, info, told);
}

/* Out of line: the caller then needs neither its stack nor its registers. */
__attribute__((noinline, cold)) static pcclResult_t
run_told(pcclComm_t *c, const pcclCollective_t *op,
         const pcclQuantizationOptions_t *q, pcclReduceInfo_t *info)
{
    struct told_op told = comm_tell_called(c, op);
    pcclResult_t rc = run_op(c, op, q, info, &told);
    comm_tell_ended(c, &told, (int)rc);
    if (rc != pcclCancelled && rc != pcclTimedOut) return rc;
    /* It goes on, and another call may await it. */
    told.async = true;
    told.begun = false;
    told.began = comm_now();
    comm_tell_began(c, &told);
    return rc;
}

static pcclResult_t run(pcclComm_t *c, const pcclCollective_t *op,
                        const pcclQuantizationOptions_t *q,
                        pcclReduceInfo_t *info)
{
    if (comm_tells()) return run_told(c, op, q, info);
    return run_op(c, op, q, info, NULL);
}

static struct op *find_handle(pcclComm_t *c, uint64_t tag)
{
    struct op *op = engine_find(c->session->engine, tag);
    return op && !op_is_awaited(op) ? op : NULL;
}

pcclResult_t pcclCollectiveAsync(const pcclCollective_t *op, pcclComm_t *comm,
                                 pcclAsyncReduceOp_t *handle_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!op || !handle_out || op->size < SIZE_WITHOUT_ARGUMENTS)
        return api_leave(c, pcclInvalidArgument);
    struct op *started;
    rc = launch_async(c, op, NULL, &started);
    if (rc != pcclSuccess) return api_leave(c, rc);
    *handle_out = (pcclAsyncReduceOp_t){comm, op->tag};
    progress_launched(c);
    return api_leave(c, rc);
}

pcclResult_t pcclCollective(const pcclCollective_t *op, pcclComm_t *comm,
                            pcclReduceInfo_t *info_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!op || op->size < SIZE_WITHOUT_ARGUMENTS)
        return api_leave(c, pcclInvalidArgument);
    return api_leave(c, run(c, op, NULL, info_out));
}

pcclResult_t pcclChooseCollective(pcclCollective_t *op, pcclComm_t *comm)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    bool known = op && op->size >= sizeof *op && collective_may_choose(op) &&
                 (!op->members ||
                  (op->member_count > 0 && op->member_count <= PEERS_MAX));
    if (!known) return api_leave(c, pcclInvalidArgument);
    if (c->session->state != SESSION_MEMBER) /* the view may have nobody */
        return api_leave(c, c->session->state == SESSION_GONE
                                ? pcclMasterConnectionFailed
                                : pcclInvalidUsage);
    struct plan_request way = {.coll = (enum plan_coll)op->kind,
                               .flow = (enum plan_flow)op->flow,
                               .count = op->count,
                               .world = (uint32_t)op->member_count};
    engine_choose(c->session->engine, op->members != NULL, &way);
    op->kind = (pcclCollectiveKind_t)way.coll;
    op->flow = (pcclFlow_t)way.flow;
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclFailCollective(pcclComm_t *comm, uint64_t tag)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    rc = (pcclResult_t)session_fail(c->session, tag);
    if (rc == pcclSuccess) progress_changed(c);
    return api_leave(c, rc);
}

pcclResult_t pcclTakeLoss(pcclComm_t *comm, const uint64_t *members,
                          size_t member_count, bool *lost_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!members || member_count > PEERS_MAX)
        return api_leave(c, pcclInvalidArgument);
    if (c->session->state == SESSION_GONE)
        return api_leave(c, pcclMasterConnectionFailed);
    bool lost = session_take_loss(c->session, members, (uint32_t)member_count,
                                  lost_out);
    return api_leave(c, lost ? pcclSuccess : pcclInvalidUsage);
}

pcclResult_t pcclTestAsync(const pcclAsyncReduceOp_t *handle, bool *done_out)
{
    if (!handle) return pcclInvalidArgument;
    pcclComm_t *c;
    pcclResult_t rc = api_enter(handle->comm, &c);
    if (rc != pcclSuccess) return rc;
    struct op *op = find_handle(c, handle->tag);
    if (!op || !done_out) return api_leave(c, pcclInvalidArgument);
    if (!op_is_done(op)) progress_tested(c);
    *done_out = op_is_done(op);
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclWaitAsync(const pcclAsyncReduceOp_t *handle, int timeout_ms,
                           bool *done_out)
{
    if (!handle) return pcclInvalidArgument;
    pcclComm_t *c;
    pcclResult_t rc = api_enter(handle->comm, &c);
    if (rc != pcclSuccess) return rc;
    struct op *op = find_handle(c, handle->tag);
    if (!op || !done_out || timeout_ms < 0)
        return api_leave(c, pcclInvalidArgument);
    if (timeout_ms > 0)
        progress_wait_until(c, op, comm_now() + timeout_ms * PCCL_MS);
    op = find_handle(c, handle->tag);
    *done_out = op && op_is_done(op);
    if (timeout_ms > 0 && !*done_out && comm_is_cancelled(c))
        return api_leave(c, pcclCancelled);
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle,
                                  pcclReduceInfo_t *reduce_info_out)
{
    if (!reduce_handle) return pcclInvalidArgument;
    pcclComm_t *c;
    pcclResult_t rc = api_enter(reduce_handle->comm, &c);
    if (rc != pcclSuccess) return rc;
    struct op *op = find_handle(c, reduce_handle->tag);
    if (!op) {
        comm_set_error(c, "no operation with tag %llu waits to be awaited",
                       (unsigned long long)reduce_handle->tag);
        return api_leave(c, pcclInvalidArgument);
    }
    return api_leave(c, api_take(c, op, comm_limit(c), reduce_info_out));
}

/* -------------------------------------------------------------- all-reduce */

static pcclCollective_t describe_reduce(const void *sendbuf, void *recvbuf,
                                        const pcclReduceDescriptor_t *d)
{
    return (pcclCollective_t){
        .size = sizeof(pcclCollective_t),
        .kind = pcclKindAllReduce,
        .tag = d->tag,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .count = d->count,
        .datatype = d->src_descriptor.datatype,
        .op = d->op,
    };
}

pcclResult_t api_launch_reduce(pcclComm_t *c, const void *sendbuf,
                               void *recvbuf, const pcclReduceDescriptor_t *d,
                               struct op **out)
{
    pcclCollective_t op = describe_reduce(sendbuf, recvbuf, d);
    return launch_async(c, &op, &d->quantization_options, out);
}

pcclResult_t pcclAllReduceAsync(const void *sendbuf, void *recvbuf,
                                const pcclReduceDescriptor_t *descriptor,
                                const pcclComm_t *comm,
                                pcclAsyncReduceOp_t *handle_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!handle_out || !descriptor) return api_leave(c, pcclInvalidArgument);
    struct op *op;
    rc = api_launch_reduce(c, sendbuf, recvbuf, descriptor, &op);
    if (rc != pcclSuccess) return api_leave(c, rc);
    *handle_out = (pcclAsyncReduceOp_t){c, descriptor->tag};
    progress_launched(c);
    return api_leave(c, rc);
}

pcclResult_t pcclAllReduce(const void *sendbuf, void *recvbuf,
                           const pcclReduceDescriptor_t *descriptor,
                           const pcclComm_t *comm,
                           pcclReduceInfo_t *reduce_info_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!descriptor) return api_leave(c, pcclInvalidArgument);
    pcclCollective_t op = describe_reduce(sendbuf, recvbuf, descriptor);
    const pcclQuantizationOptions_t *q = &descriptor->quantization_options;
    return api_leave(c, run(c, &op, q, reduce_info_out));
}
