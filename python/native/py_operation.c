/* py_operation.c - an operation under way, as an object. */
#include "py_call.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *py_operation_type;
static PyTypeObject *info_type;

struct py_operation {
    PyObject_HEAD struct py_comm *owner;
    uint64_t serial; /* of its flight */
    const char *function;
    pcclAsyncReduceOp_t handle;
    int result;
    pcclReduceInfo_t info;
    bool awaited;
};

PyObject *py_info_new(const pcclReduceInfo_t *info)
{
    PyObject *tuple = PyStructSequence_New(info_type);
    if (!tuple) return NULL;
    PyObject *world = PyLong_FromUnsignedLong(info->local_world_size);
    Py_XINCREF(world);
    PyStructSequence_SetItem(tuple, 0, world);
    PyStructSequence_SetItem(tuple, 1,
                             PyLong_FromUnsignedLongLong(info->tx_bytes));
    PyStructSequence_SetItem(tuple, 2,
                             PyLong_FromUnsignedLongLong(info->rx_bytes));
    PyStructSequence_SetItem(tuple, 3, world);
    return tuple;
}

uint64_t py_flight_serial(void)
{
    static uint64_t last;
    return ++last;
}

uint64_t py_flight_take(struct py_comm *self, struct call *call)
{
    struct py_flight *flight = calloc(1, sizeof *flight);
    if (flight) {
        *flight = (struct py_flight){.next = self->flights,
                                     .tag = call->op.tag,
                                     .serial = py_flight_serial(),
                                     .send = call->send,
                                     .recv = call->recv,
                                     .agreed = call->agreed};
        self->flights = flight;
    }
    memset(&call->send, 0, sizeof call->send);
    memset(&call->recv, 0, sizeof call->recv);
    memset(&call->agreed, 0, sizeof call->agreed);
    return flight ? flight->serial : 0;
}

PyObject *py_operation_new(struct py_comm *self, struct call *call)
{
    /* Without memory it is under way all the same, and ends with the
     * communicator; its arrays stay for good. */
    uint64_t serial = py_flight_take(self, call);
    struct py_operation *o =
        serial ? PyObject_New(struct py_operation, py_operation_type) : NULL;
    if (!o) return PyErr_NoMemory();
    Py_INCREF((PyObject *)self);
    o->owner = self;
    o->serial = serial;
    o->function = call->function;
    o->handle = call->handle;
    o->awaited = false;
    return (PyObject *)o;
}

/* NULL: awaited, or ended by a close or another connect. */
static struct py_flight *flight_of(struct py_operation *o)
{
    struct py_flight *f = o->owner->flights;
    while (f && f->serial != o->serial) f = f->next;
    return f;
}

/* The operation is over: its arrays are the caller's again. */
static void settle(struct py_operation *o, int result)
{
    o->result = result;
    o->awaited = true;
    struct py_flight *flight = flight_of(o);
    if (flight) py_flight_remove(o->owner, flight);
}

static pcclComm_t *operation_enter(struct py_operation *o)
{
    pcclComm_t *comm = py_comm_enter(o->owner, o->function);
    if (comm && !flight_of(o)) {
        py_comm_leave(o->owner);
        return py_raise(pcclInvalidUsage, o->function,
                        "the operation ended with its communicator, or another "
                        "thread awaits it");
    }
    return comm;
}

static int await_step(void *argument)
{
    struct py_operation *o = argument;
    return (int)pcclAwaitAsyncReduce(&o->handle, &o->info);
}

static PyObject *operation_await_now(struct py_operation *o)
{
    if (!o->awaited) {
        if (!operation_enter(o)) return NULL;
        int rc = py_block(o->owner, await_step, o);
        if (rc < 0) {
            py_comm_leave(o->owner);
            return NULL; /* it goes on, and may be awaited again */
        }
        if (!o->awaited) settle(o, rc);
        if (rc != pcclSuccess) {
            py_raise_last(o->owner, rc, o->function);
            py_comm_leave(o->owner);
            return NULL;
        }
        py_comm_leave(o->owner);
    }
    if (o->result != pcclSuccess) return py_raise(o->result, o->function, NULL);
    return py_info_new(&o->info);
}

struct wait {
    pcclAsyncReduceOp_t handle;
    int timeout_ms;
    bool done;
};

static int wait_step(void *argument)
{
    struct wait *w = argument;
    return (int)pcclWaitAsync(&w->handle, w->timeout_ms, &w->done);
}

enum { SLICE_MS = 50 };
#define FOREVER 1e12 /* seconds */

/* 1 done, 0 not yet, -1 with an exception. */
static int operation_wait_ms(struct py_operation *o, double seconds)
{
    if (o->awaited) return 1;
    if (!operation_enter(o)) return -1;
    struct wait w = {.handle = o->handle};
    double left = seconds * 1000.0;
    int rc;
    do {
        w.timeout_ms = left < SLICE_MS ? (int)(left + 0.999) : SLICE_MS;
        left -= w.timeout_ms;
        PyThreadState *gil = PyEval_SaveThread();
        rc = wait_step(&w);
        PyEval_RestoreThread(gil);
        if (!w.done && PyErr_CheckSignals() < 0) rc = -1;
    } while ((rc == pcclSuccess || rc == pcclTimedOut) && !w.done && left > 0);
    if (rc > 0 && rc != pcclTimedOut) py_raise_last(o->owner, rc, o->function);
    py_comm_leave(o->owner);
    if (rc != pcclSuccess && rc != pcclTimedOut) return -1;
    return w.done;
}

/* The argument `timeout`: seconds, -1 for none; or an exception. */
static bool timeout_of(const char *function, PyObject *const *args,
                       Py_ssize_t given, PyObject *keywords, double *out)
{
    static const char *const names[] = {"timeout"};
    PyObject *got[1];
    if (!py_arguments(function, names, 1, 1, 0, args, given, keywords, got))
        return false;
    *out = -1;
    if (!got[0] || got[0] == Py_None) return true;
    double seconds = PyFloat_AsDouble(got[0]);
    if (PyErr_Occurred()) return false;
    *out = seconds > 0 ? seconds : 0;
    return true;
}

static PyObject *operation_wait(PyObject *object, PyObject *const *args,
                                Py_ssize_t given, PyObject *keywords)
{
    struct py_operation *o = (struct py_operation *)object;
    double seconds;
    if (!timeout_of("wait", args, given, keywords, &seconds)) return NULL;
    int done = operation_wait_ms(o, seconds < 0 ? FOREVER : seconds);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *operation_result(PyObject *object, PyObject *const *args,
                                  Py_ssize_t given, PyObject *keywords)
{
    struct py_operation *o = (struct py_operation *)object;
    double seconds;
    if (!timeout_of("result", args, given, keywords, &seconds)) return NULL;
    int done = seconds < 0 ? 1 : operation_wait_ms(o, seconds);
    if (done < 0) return NULL;
    if (done == 0)
        return py_raise(pcclTimedOut, o->function, "it is still under way");
    return operation_await_now(o);
}

static PyObject *operation_done(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_operation *o = (struct py_operation *)object;
    if (o->awaited) Py_RETURN_TRUE;
    if (!operation_enter(o)) return NULL;
    bool done = false;
    pcclResult_t rc;
    PyThreadState *gil = PyEval_SaveThread();
    rc = pcclTestAsync(&o->handle, &done);
    PyEval_RestoreThread(gil);
    if (rc != pcclSuccess) py_raise_last(o->owner, (int)rc, o->function);
    py_comm_leave(o->owner);
    return rc == pcclSuccess ? PyBool_FromLong(done) : NULL;
}

/* await operation: asyncio's part is Python's. */
static PyObject *operation_await(PyObject *self)
{
    PyObject *module = PyImport_ImportModule("pccl._awaiting");
    PyObject *result =
        module ? PyObject_CallMethod(module, "iterate", "O", self) : NULL;
    Py_XDECREF(module);
    return result;
}

static void operation_free(PyObject *object)
{
    struct py_operation *o = (struct py_operation *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)o->owner);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *operation_tag(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        ((struct py_operation *)object)->handle.tag);
}

static PyMethodDef operation_methods[] = {
    PY_METHOD("result", operation_result,
              "result(timeout=None)\n--\n\nWaits, and returns a ReduceInfo "
              "or raises; TimedOut after timeout seconds, and then it goes "
              "on."),
    PY_METHOD("wait", operation_wait,
              "wait(timeout=None)\n--\n\nWaits, at most timeout seconds. "
              "Returns whether result() would return at once."),
    {"done", operation_done, METH_NOARGS,
     "done()\n--\n\nWhether result() would return at once. Moves data."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef operation_fields[] = {
    {"tag", operation_tag, NULL, "The tag that it was started with.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot operation_slots[] = {
    {Py_tp_dealloc, operation_free},
    {Py_tp_methods, operation_methods},
    {Py_tp_getset, operation_fields},
    {Py_am_await, operation_await},
    {Py_tp_doc, "A collective under way; it may be awaited by asyncio."},
    {0, NULL},
};

static PyType_Spec operation_spec = {
    .name = "pccl._native.Operation",
    .basicsize = sizeof(struct py_operation),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = operation_slots,
};

static PyStructSequence_Field info_fields[] = {
    {"world_size", "members whose contribution is in the result"},
    {"tx_bytes", "payload sent by this member"},
    {"rx_bytes", "payload received by this member"},
    {"local_world_size", "world_size, as PCCL 1.0 calls it"},
    {NULL, NULL},
};

static PyStructSequence_Desc info_desc = {
    .name = "pccl.ReduceInfo",
    .doc = "What a collective did.",
    .fields = info_fields,
    .n_in_sequence = 3,
};

bool py_operation_init(PyObject *module)
{
    info_type = PyStructSequence_NewType(&info_desc);
    py_operation_type = (PyTypeObject *)PyType_FromSpec(&operation_spec);
    return info_type && py_operation_type &&
           PyModule_AddObjectRef(module, "ReduceInfo", (PyObject *)info_type) ==
               0 &&
           PyModule_AddObjectRef(module, "Operation",
                                 (PyObject *)py_operation_type) == 0;
}
