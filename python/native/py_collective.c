/* py_collective.c - collectives, run and started. */
#include "py_call.h"

/* ------------------------------------------------------------------ runs */

static bool is_plain_reduce(const struct call *call)
{
    return call->op.kind == pcclKindAllReduce && !call->members &&
           !call->op.view_epoch && !call->op.arguments;
}

static pcclReduceDescriptor_t descriptor_of(const struct call *call)
{
    return (pcclReduceDescriptor_t){
        .count = call->op.count,
        .op = call->op.op,
        .tag = call->op.tag,
        .src_descriptor = {.datatype = call->op.datatype},
        .quantization_options = call->quantization,
    };
}

/* Without the GIL. A call whose time is up goes on with its operation. */
static int run_step(void *argument)
{
    struct call *call = argument;
    pcclResult_t rc;
    if (call->launched) {
        rc = pcclAwaitAsyncReduce(&call->handle, &call->info);
    } else if (is_plain_reduce(call)) {
        pcclReduceDescriptor_t d = descriptor_of(call);
        rc = pcclAllReduce(call->op.sendbuf, call->op.recvbuf, &d, call->comm,
                           &call->info);
    } else {
        rc = pcclCollective(&call->op, call->comm, &call->info);
    }
    if (rc == pcclTimedOut || rc == pcclCancelled) {
        call->handle = (pcclAsyncReduceOp_t){call->comm, call->op.tag};
        call->launched = true;
    }
    return (int)rc;
}

/* Without the GIL. Ends an operation for all, so that its arrays are the
 * caller's again. */
static int end_step(void *argument)
{
    struct call *call = argument;
    pcclResult_t rc;
    do {
        (void)pcclFailCollective(call->comm, call->op.tag);
        rc = pcclAwaitAsyncReduce(&call->handle, &call->info);
    } while (rc == pcclTimedOut);
    return (int)rc;
}

static void end_interrupted(struct call *call)
{
    if (!call->launched) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyThreadState *gil = PyEval_SaveThread();
    (void)end_step(call);
    PyEval_RestoreThread(gil);
    PyErr_Restore(type, value, trace);
}

static PyObject *run_call(struct py_comm *self, struct call *call)
{
    call->comm = py_comm_enter(self, call->function);
    if (!call->comm) return NULL;
    int rc;
    do {
        call->launched = false;
        rc = py_block(self, run_step, call);
    } while (call->retries && rc == pcclRankConnectionLost);
    if (rc < 0) end_interrupted(call);
    /* Another thread closes the communicator: the operation goes on until that
     * has ended. */
    if (call->launched && (rc == pcclTimedOut || rc == pcclCancelled))
        (void)py_flight_take(self, call);
    PyObject *result = NULL;
    if (rc == pcclSuccess)
        result = py_info_new(&call->info);
    else if (rc > 0)
        py_raise_last(self, rc, call->function);
    py_comm_leave(self);
    return result;
}

static PyObject *start_call(struct py_comm *self, struct call *call)
{
    pcclComm_t *comm = py_comm_enter(self, call->function);
    if (!comm) return NULL;
    pcclResult_t rc;
    PyThreadState *gil = PyEval_SaveThread();
    if (is_plain_reduce(call)) {
        pcclReduceDescriptor_t d = descriptor_of(call);
        rc = pcclAllReduceAsync(call->op.sendbuf, call->op.recvbuf, &d, comm,
                                &call->handle);
    } else {
        rc = pcclCollectiveAsync(&call->op, comm, &call->handle);
    }
    PyEval_RestoreThread(gil);
    PyObject *result = NULL;
    if (rc == pcclSuccess)
        result = py_operation_new(self, call);
    else
        py_raise_last(self, (int)rc, call->function);
    py_comm_leave(self);
    return result;
}

/* --------------------------------------------------------------- methods */

static PyObject *collective(struct py_comm *self, const char *function,
                            pcclCollectiveKind_t kind, bool starts,
                            PyObject *const *args, Py_ssize_t given,
                            PyObject *keywords)
{
    struct call call;
    PyObject *result = NULL;
    if (call_parse(&call, self, function, kind, args, given, keywords))
        result = starts ? start_call(self, &call) : run_call(self, &call);
    call_free(&call);
    return result;
}

#define COLLECTIVE(name, kind)                                                 \
    static PyObject *comm_##name(PyObject *self, PyObject *const *args,        \
                                 Py_ssize_t given, PyObject *keywords)         \
    {                                                                          \
        return collective((struct py_comm *)self, #name, kind, false, args,    \
                          given, keywords);                                    \
    }                                                                          \
    static PyObject *comm_##name##_async(PyObject *self,                       \
                                         PyObject *const *args,                \
                                         Py_ssize_t given, PyObject *keywords) \
    {                                                                          \
        return collective((struct py_comm *)self, #name "_async", kind, true,  \
                          args, given, keywords);                              \
    }

COLLECTIVE(all_reduce, pcclKindAllReduce)
COLLECTIVE(broadcast, pcclKindBroadcast)
COLLECTIVE(all_gather, pcclKindAllGather)
COLLECTIVE(all_to_all, pcclKindAllToAllV)
COLLECTIVE(barrier, pcclKindBarrier)
COLLECTIVE(reduce_scatter, PY_KIND_REDUCE_SCATTER)

static PyObject *comm_fail(PyObject *object, PyObject *const *args,
                           Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {"tag"};
    struct py_comm *self = (struct py_comm *)object;
    PyObject *got[1];
    uint64_t tag;
    if (!py_arguments("fail", names, 1, 1, 1, args, given, keywords, got) ||
        !py_number(got[0], "tag", UINT64_MAX, &tag))
        return NULL;
    pcclComm_t *comm = py_comm_enter(self, "fail");
    if (!comm) return NULL;
    pcclResult_t rc = pcclFailCollective(comm, tag);
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, "fail");
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    Py_RETURN_NONE;
}

#define TWIN(name, text)                                                       \
    PY_METHOD(#name, comm_##name, text),                                       \
        PY_METHOD(#name "_async", comm_##name##_async,                         \
                  "Starts " #name " and returns an Operation.")

#define SCOPE "tag=0, members=None, epoch=0, agree=None"

PyMethodDef py_collective_methods[] = {
    TWIN(all_reduce,
         "all_reduce(x, out=None, *, op='sum', quantize=None, "
         "retry=False, " SCOPE ")\n--\n\nReduces x of every member into "
         "out, or into x itself. Returns a ReduceInfo.\n\nretry: again with "
         "the survivors when a member is lost. Of all collectives:\n\nmembers: "
         "ids, for an operation of these only. epoch: of the view that the "
         "call was made for; RankConnectionLost in another one. agree: pairs "
         "(name, text) that all members have to pass alike; else "
         "InvalidArgument names the first that differs."),
    TWIN(broadcast, "broadcast(x, root=0, *, " SCOPE ")\n--\n\nGives every "
                    "member the bytes of the member with the rank root."),
    TWIN(all_gather,
         "all_gather(x, out, *, " SCOPE ")\n--\n\nGives every "
         "member the x of all, one after the other in rank order. x is None "
         "where it is in its place in out already."),
    TWIN(all_to_all, "all_to_all(x, out, send_counts, recv_counts, *, " SCOPE
                     ")\n--\n\nSends the r-th part of x to the member r. "
                     "Counts are of elements."),
    TWIN(barrier, "barrier(*, " SCOPE ")\n--\n\nWaits until all "
                  "members have called."),
    TWIN(reduce_scatter,
         "reduce_scatter(x, out, *, op='sum', " SCOPE ")\n--\n\n"
         "Reduces x of every member and gives each its own part."),
    PY_METHOD("fail", comm_fail,
              "fail(tag)\n--\n\nEnds the collective under way with this tag "
              "for all of its members, with OperationFailed."),
    {NULL, NULL, 0, NULL},
};
