/* api_partial.c - the calls of pccl.h for partial all-reduces. */
#include "api.h"

#include <stddef.h>
#include <string.h>

static struct partial_request request_of(const void *sendbuf, void *recvbuf,
                                         const pcclPartialDescriptor_t *d)
{
    bool redop = d->op == pcclSum || d->op == pcclAvg;
    bool dtype = (unsigned)d->datatype < DTYPE_COUNT;
    return (struct partial_request){
        .tag = d->tag,
        .count = d->count,
        .dtype = dtype ? (uint8_t)d->datatype : DTYPE_COUNT,
        .redop = redop ? (uint8_t)d->op : REDOP_COUNT,
        .weight = d->weight,
        .deadline_ms = d->deadline_ms,
        .gather_ms = d->gather_ms,
        .evict_after = d->evict_after,
        .send = sendbuf,
        .recv = recvbuf,
    };
}

/* Locked. */
static pcclResult_t launch(pcclComm_t *c, const void *sendbuf, void *recvbuf,
                           const pcclPartialDescriptor_t *d,
                           struct partial_call **out)
{
    if (!d || d->size < sizeof *d) {
        comm_set_error(c, "descriptor is NULL, or its size too small");
        return pcclInvalidArgument;
    }
    struct partial_request r = request_of(sendbuf, recvbuf, d);
    const char *wrong = partial_wrong(&r);
    if (wrong) {
        comm_set_error(c, "%s", wrong);
        return pcclInvalidArgument;
    }
    pcclResult_t rc = (pcclResult_t)session_partial(c->session, &r, out);
    if (rc == pcclInvalidArgument)
        comm_set_error(c, "tag %llu is in flight already",
                       (unsigned long long)d->tag);
    if (rc == pcclInternalError)
        comm_set_error(c,
                       "out of memory for a partial all-reduce, or %d are "
                       "under way",
                       (int)PARTIAL_CALLS_MAX);
    return rc;
}

static void fill_map(const struct partial_call *call, pcclPartialInfo_t *info)
{
    for (uint32_t i = 0; i < call->part_count; i++) {
        const struct partial_part *p = &call->parts[i];
        bool here = p->contributors > 0;
        if (here) info->elements += p->count;
        if (info->parts && i < info->part_room)
            info->parts[i] = (pcclPartialPart_t){
                p->begin, p->count, here ? p->weight : 0, p->contributors};
    }
    for (uint32_t i = 0; i < call->member_count; i++) {
        if (info->members && i < info->member_room)
            info->members[i] = call->members[i].id;
    }
    size_t size = (size_t)call->part_count * call->set_size;
    if (size > info->set_room) size = info->set_room;
    if (info->sets && size > 0) memcpy(info->sets, call->sets, size);
}

static void fill_info(const struct partial_call *call, pcclPartialInfo_t *info)
{
    info->part_count = call->part_count;
    info->member_count = call->member_count;
    info->set_size = call->set_size;
    info->round = call->number;
    info->elements = 0;
    info->contributed = call->contributed;
    info->tx_bytes = call->tx_bytes;
    info->rx_bytes = call->rx_bytes;
    fill_map(call, info);
}

/* Locked. Waits, and ends the call. */
static pcclResult_t take(pcclComm_t *c, struct partial_call *call,
                         pcclPartialInfo_t *info)
{
    pccl_ns until = comm_limit(c);
    call->awaited = true;
    progress_wait_partial(c, call, until);
    if (call->phase != PARTIAL_DONE) {
        call->awaited = false;
        return (pcclResult_t)comm_stop_waiting(
            c, comm_interrupted(c, until),
            "the partial all-reduce goes on: await it");
    }
    const char *text;
    pcclResult_t rc =
        (pcclResult_t)session_partial_result(c->session, call, &text);
    if (rc == pcclSuccess && info) fill_info(call, info);
    if (rc != pcclSuccess) comm_set_error(c, "%s", text);
    session_partial_take(c->session, call);
    return rc;
}

static bool is_small(const pcclPartialInfo_t *info)
{
    return info && info->size < sizeof *info;
}

pcclResult_t pcclAllReducePartial(const void *sendbuf, void *recvbuf,
                                  const pcclPartialDescriptor_t *descriptor,
                                  pcclComm_t *comm, pcclPartialInfo_t *info_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    struct partial_call *call;
    if (is_small(info_out)) return api_leave(c, pcclInvalidArgument);
    rc = launch(c, sendbuf, recvbuf, descriptor, &call);
    return api_leave(c, rc == pcclSuccess ? take(c, call, info_out) : rc);
}

pcclResult_t
pcclAllReducePartialAsync(const void *sendbuf, void *recvbuf,
                          const pcclPartialDescriptor_t *descriptor,
                          pcclComm_t *comm, pcclPartialOp_t *handle_out)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    struct partial_call *call;
    if (!handle_out) return api_leave(c, pcclInvalidArgument);
    rc = launch(c, sendbuf, recvbuf, descriptor, &call);
    if (rc != pcclSuccess) return api_leave(c, rc);
    *handle_out = (pcclPartialOp_t){c, descriptor->tag};
    progress_changed(c);
    return api_leave(c, rc);
}

pcclResult_t pcclAwaitPartial(const pcclPartialOp_t *handle,
                              pcclPartialInfo_t *info_out)
{
    if (!handle) return pcclInvalidArgument;
    pcclComm_t *c;
    pcclResult_t rc = api_enter(handle->comm, &c);
    if (rc != pcclSuccess) return rc;
    if (is_small(info_out)) return api_leave(c, pcclInvalidArgument);
    struct partial_call *call = partial_find(&c->session->partial, handle->tag);
    if (!call || call->awaited) {
        comm_set_error(c,
                       "no partial all-reduce with tag %llu waits to be "
                       "awaited",
                       (unsigned long long)handle->tag);
        return api_leave(c, pcclInvalidArgument);
    }
    return api_leave(c, take(c, call, info_out));
}
