/* py_message.c - messages and bulk transfers between two members. */
#include "py_native.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static PyTypeObject *event_type;

/* A bulk transfer under way is a flight too: its tag is the key, and its place
 * says the direction: `send` or `recv` has the array. */
static PyObject *no_result(struct py_comm *self, pcclResult_t rc,
                           const char *function)
{
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, function);
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    Py_RETURN_NONE;
}

/* Bytes of any kind, or an array. */
static bool body_open(PyObject *object, struct py_array *body)
{
    if (!PyObject_CheckBuffer(object))
        return py_array_open(object, "body", PY_ARRAY_READ, body);
    if (PyObject_GetBuffer(object, &body->view, PyBUF_SIMPLE) < 0) return false;
    body->data = body->view.buf;
    body->count = (size_t)body->view.len;
    body->datatype = pcclUint8;
    return true;
}

static PyObject *comm_post(PyObject *object, PyObject *const *args,
                           Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {"member", "body", "header"};
    struct py_comm *self = (struct py_comm *)object;
    PyObject *got[3];
    uint64_t member;
    if (!py_arguments("post", names, 3, 3, 2, args, given, keywords, got) ||
        !py_number(got[0], "member", UINT64_MAX, &member))
        return NULL;
    struct py_array body = {0};
    Py_buffer header = {0};
    if (!body_open(got[1], &body)) return NULL;
    if (got[2] && PyObject_GetBuffer(got[2], &header, PyBUF_SIMPLE) < 0) {
        py_array_close(&body);
        return NULL;
    }
    PyObject *result = NULL;
    pcclComm_t *comm = py_comm_enter(self, "post");
    if (comm) {
        pcclResult_t rc;
        PyThreadState *gil = PyEval_SaveThread();
        rc = pcclPostMessage(comm, member, header.buf, (size_t)header.len,
                             body.data, py_array_bytes(&body));
        PyEval_RestoreThread(gil);
        result = no_result(self, rc, "post");
    }
    py_array_close(&body);
    if (header.obj) PyBuffer_Release(&header);
    return result;
}

/* ------------------------------------------------------------------- bulk */

static bool bulk_arguments(const char *function, size_t count,
                           PyObject *const *args, Py_ssize_t given,
                           PyObject *keywords, uint64_t *member, uint64_t *key,
                           PyObject **array)
{
    static const char *const names[] = {"member", "key", "x"};
    PyObject *got[3];
    if (!py_arguments(function, names, count, count, count, args, given,
                      keywords, got) ||
        !py_number(got[0], "member", UINT64_MAX, member) ||
        !py_number(got[1], "key", UINT64_MAX, key))
        return false;
    if (array) *array = got[2];
    return true;
}

static struct py_flight *flight_find(struct py_comm *self, uint64_t member,
                                     uint64_t key, bool sends)
{
    struct py_flight *f = self->flights;
    while (f && !(f->is_bulk && f->member == member && f->tag == key &&
                  f->sends == sends))
        f = f->next;
    return f;
}

static PyObject *bulk_start(struct py_comm *self, const char *function,
                            bool sends, PyObject *const *args, Py_ssize_t given,
                            PyObject *keywords)
{
    uint64_t member, key;
    PyObject *array;
    if (!bulk_arguments(function, 3, args, given, keywords, &member, &key,
                        &array))
        return NULL;
    struct py_flight *flight = calloc(1, sizeof *flight);
    if (!flight) return PyErr_NoMemory();
    struct py_array *a = &flight->send;
    pcclComm_t *comm = NULL;
    if (!py_array_open(array, "x", sends ? PY_ARRAY_READ : PY_ARRAY_WRITE, a) ||
        !(comm = py_comm_enter(self, function))) {
        py_array_close(a);
        free(flight);
        return NULL;
    }
    flight->is_bulk = true;
    flight->sends = sends;
    flight->member = member;
    flight->tag = key;
    size_t size = py_array_bytes(a);
    pcclResult_t rc;
    PyThreadState *gil = PyEval_SaveThread();
    rc = sends ? pcclSendBulk(comm, member, key, a->data, size)
               : pcclExpectBulk(comm, member, key, a->data, size);
    PyEval_RestoreThread(gil);
    if (rc == pcclSuccess) {
        flight->next = self->flights;
        self->flights = flight;
    } else {
        py_array_close(a);
        free(flight);
    }
    return no_result(self, rc, function);
}

static PyObject *comm_send_bulk(PyObject *self, PyObject *const *args,
                                Py_ssize_t given, PyObject *keywords)
{
    return bulk_start((struct py_comm *)self, "send_bulk", true, args, given,
                      keywords);
}

static PyObject *comm_expect_bulk(PyObject *self, PyObject *const *args,
                                  Py_ssize_t given, PyObject *keywords)
{
    return bulk_start((struct py_comm *)self, "expect_bulk", false, args, given,
                      keywords);
}

static PyObject *bulk_end(struct py_comm *self, const char *function,
                          bool sends, PyObject *const *args, Py_ssize_t given,
                          PyObject *keywords)
{
    uint64_t member, key;
    if (!bulk_arguments(function, 2, args, given, keywords, &member, &key,
                        NULL))
        return NULL;
    pcclComm_t *comm = py_comm_enter(self, function);
    if (!comm) return NULL;
    pcclResult_t rc = sends ? pcclWithdrawBulk(comm, member, key)
                            : pcclCancelBulk(comm, member, key);
    struct py_flight *flight = flight_find(self, member, key, sends);
    if (rc == pcclSuccess && flight) py_flight_remove(self, flight);
    return no_result(self, rc, function);
}

static PyObject *comm_cancel_bulk(PyObject *self, PyObject *const *args,
                                  Py_ssize_t given, PyObject *keywords)
{
    return bulk_end((struct py_comm *)self, "cancel_bulk", false, args, given,
                    keywords);
}

static PyObject *comm_withdraw_bulk(PyObject *self, PyObject *const *args,
                                    Py_ssize_t given, PyObject *keywords)
{
    return bulk_end((struct py_comm *)self, "withdraw_bulk", true, args, given,
                    keywords);
}

/* ----------------------------------------------------------------- events */

static PyObject *bytes_of(const void *data, size_t size)
{
    return PyBytes_FromStringAndSize(size > 0 ? data : "", (Py_ssize_t)size);
}

static PyObject *event_new(const pcclEvent_t *e)
{
    static const char *const kinds[] = {"none",     "message", "sent",
                                        "received", "room",    "lost"};
    PyObject *tuple = PyStructSequence_New(event_type);
    if (!tuple) return NULL;
    bool known = (size_t)e->kind < sizeof kinds / sizeof kinds[0];
    bool message = e->kind == pcclEventMessage;
    PyObject *fields[] = {
        PyUnicode_FromString(known ? kinds[e->kind] : "unknown"),
        PyLong_FromUnsignedLongLong(e->member),
        bytes_of(e->body, message ? e->body_size : 0),
        bytes_of(e->header, message ? e->header_size : 0),
        PyLong_FromUnsignedLongLong(e->key),
        PyLong_FromLong((long)e->result),
    };
    bool good = true;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        good &= fields[i] != NULL;
        PyStructSequence_SetItem(tuple, (Py_ssize_t)i, fields[i]);
    }
    if (!good) Py_CLEAR(tuple);
    return tuple;
}

struct take {
    pcclComm_t *comm;
    int timeout_ms;
    pcclEvent_t event;
};

enum { SLICE_MS = 50 };

/* With the GIL. Takes an event within the time; -1 with an exception. */
static int take_event(struct py_comm *self, struct take *t, double seconds)
{
    double left = seconds * 1000.0;
    int rc;
    do {
        t->timeout_ms = left < SLICE_MS ? (int)(left + 0.999) : SLICE_MS;
        left -= t->timeout_ms;
        PyThreadState *gil = PyEval_SaveThread();
        rc = (int)pcclTakeEvent(t->comm, t->timeout_ms, &t->event);
        PyEval_RestoreThread(gil);
        if (rc == pcclTimedOut) {
            t->event.kind = pcclEventNone;
            rc = pcclSuccess;
        }
        if (rc != pcclSuccess || t->event.kind != pcclEventNone) return rc;
        self->in_handler++;
        int failed = PyErr_CheckSignals();
        self->in_handler--;
        if (failed < 0) return -1;
    } while (left > 0 && !self->closing);
    return rc;
}

static PyObject *comm_take_event(PyObject *object, PyObject *const *args,
                                 Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {"timeout"};
    struct py_comm *self = (struct py_comm *)object;
    PyObject *got[1];
    double seconds = 1e12;
    if (!py_arguments("take_event", names, 1, 1, 0, args, given, keywords, got))
        return NULL;
    if (got[0] && got[0] != Py_None) {
        seconds = PyFloat_AsDouble(got[0]);
        if (PyErr_Occurred()) return NULL;
    }
    struct take t = {.comm = py_comm_enter(self, "take_event")};
    if (!t.comm) return NULL;
    int rc = take_event(self, &t, seconds > 0 ? seconds : 0);
    if (rc > 0) py_raise_last(self, rc, "take_event");
    PyObject *result = NULL;
    const pcclEvent_t *e = &t.event;
    if (rc == pcclSuccess && e->kind == pcclEventNone) {
        Py_INCREF(Py_None);
        result = Py_None;
    } else if (rc == pcclSuccess) {
        result = event_new(e);
        bool sent = e->kind == pcclEventBulkSent;
        struct py_flight *flight = NULL;
        if (sent || e->kind == pcclEventBulkReceived)
            flight = flight_find(self, e->member, e->key, sent);
        if (flight) py_flight_remove(self, flight);
        (void)pcclReleaseEvent(t.comm, &t.event);
    }
    py_comm_leave(self);
    return result;
}

static PyStructSequence_Field event_fields[] = {
    {"kind", "message, sent, received, room or lost"},
    {"member", "the id of the other one"},
    {"body", "of a message"},
    {"header", "of a message"},
    {"key", "of a bulk transfer"},
    {"result", "of a bulk transfer, 0 is success"},
    {NULL, NULL},
};

static PyStructSequence_Desc event_desc = {
    .name = "pccl.Event",
    .doc = "What take_event returns.",
    .fields = event_fields,
    .n_in_sequence = 6,
};

bool py_message_init(PyObject *module)
{
    event_type = PyStructSequence_NewType(&event_desc);
    return event_type &&
           PyModule_AddObjectRef(module, "Event", (PyObject *)event_type) == 0;
}

PyMethodDef py_message_methods[] = {
    PY_METHOD("post", comm_post,
              "post(member, body, header=b'')\n--\n\nSends a message of at "
              "most 64 KiB to the member with this id. Never blocks; "
              "PendingAsyncOps where the queue is full."),
    PY_METHOD("send_bulk", comm_send_bulk,
              "send_bulk(member, key, x)\n--\n\nSends an array of any size to "
              "the member's expect_bulk with the same key. x is the library's "
              "until the event 'sent'."),
    PY_METHOD("expect_bulk", comm_expect_bulk,
              "expect_bulk(member, key, x)\n--\n\nReceives into x, which is "
              "the library's until the event 'received'."),
    PY_METHOD("cancel_bulk", comm_cancel_bulk,
              "cancel_bulk(member, key)\n--\n\nTakes an expectation back."),
    PY_METHOD("withdraw_bulk", comm_withdraw_bulk,
              "withdraw_bulk(member, key)\n--\n\nTakes a send back."),
    PY_METHOD("take_event", comm_take_event,
              "take_event(timeout=None)\n--\n\nThe next Event, or None after "
              "timeout seconds."),
    {NULL, NULL, 0, NULL},
};
