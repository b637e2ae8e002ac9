/* py_partial.c - rounds of the partial all-reduce, and progress of a step.
 *
 * A round cannot be taken back: it ends by its deadline, and its arrays are the
 * library's until then. So one way serves all: a round is an object, whose
 * arrays are a flight of the communicator. If the object goes away before the
 * round is over (Ctrl-C in a blocking call, a task that was cancelled), the
 * next round of its tag awaits it first. */
#include "py_call.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static PyTypeObject *round_type;

/* The library's own limits. */
enum { PARTS_MOST = 256, MEMBERS_MOST = 4096, SET_MOST = MEMBERS_MOST / 8 };

/* Where the map of coverage goes. */
struct map {
    pcclPartialPart_t parts[PARTS_MOST];
    uint64_t members[MEMBERS_MOST];
    uint8_t sets[PARTS_MOST * SET_MOST];
};

struct py_round {
    PyObject_HEAD struct py_comm *owner;
    uint64_t serial; /* of its flight */
    const char *function;
    pcclPartialOp_t handle;
    size_t count;
    pcclPartialInfo_t info;
    struct map *map;
    int result;
    PyObject *reason; /* of a failure */
    bool awaited;
    bool busy; /* a thread awaits it */
};

static struct py_flight *flight_of(const struct py_round *r)
{
    struct py_flight *f = r->serial ? r->owner->flights : NULL;
    while (f && f->serial != r->serial) f = f->next;
    return f;
}

static bool goes_on(int rc)
{
    return rc == pcclTimedOut || rc == pcclCancelled;
}

/* ----------------------------------------------------------------- waiting */

/* Awaits the round for at most a slice, without the GIL. An exception is set
 * only if the communicator was closed. */
static bool await_slice(struct py_round *r)
{
    int rc;
    r->busy = true;
    PyThreadState *gil = PyEval_SaveThread();
    rc = (int)pcclAwaitPartial(&r->handle, &r->info);
    PyEval_RestoreThread(gil);
    r->busy = false;
    if (goes_on(rc)) {
        if (!r->owner->closing) return true;
        py_raise_last(r->owner, rc, r->function);
        return false;
    }
    r->awaited = true;
    r->result = rc;
    struct py_flight *flight = flight_of(r);
    if (flight) py_flight_remove(r->owner, flight);
    if (rc == pcclSuccess) return true;
    enum { TEXT_SIZE = 512 };
    char text[TEXT_SIZE] = "";
    (void)pcclGetLastError(r->owner->comm, text, sizeof text);
    r->reason = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyErr_Clear();
    return true;
}

static void nap(void)
{
    PyThreadState *gil = PyEval_SaveThread();
    (void)poll(NULL, 0, 1);
    PyEval_RestoreThread(gil);
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* 1 over, 0 not yet, -1 with an exception. */
static int round_wait_until(struct py_round *r, double end)
{
    if (r->awaited) return 1;
    if (!py_comm_enter(r->owner, r->function)) return -1;
    bool good = true;
    do {
        if (!flight_of(r) && !r->awaited) {
            py_raise(pcclInvalidUsage, r->function,
                     "the round ended with its communicator");
            good = false;
        } else if (r->busy) {
            nap(); /* another thread awaits it */
        } else {
            good = await_slice(r);
        }
        if (good && !r->awaited) {
            r->owner->in_handler++;
            good = PyErr_CheckSignals() == 0;
            r->owner->in_handler--;
        }
    } while (good && !r->awaited && now() < end);
    py_comm_leave(r->owner);
    return !good ? -1 : r->awaited;
}

/* The argument `timeout` as a moment, or an exception. */
static bool end_of(const char *function, PyObject *const *args,
                   Py_ssize_t given, PyObject *keywords, double *end)
{
    static const char *const names[] = {"timeout"};
    PyObject *got[1];
    if (!py_arguments(function, names, 1, 1, 0, args, given, keywords, got))
        return false;
    const double forever = 1e300;
    *end = forever;
    if (!got[0] || got[0] == Py_None) return true;
    double seconds = PyFloat_AsDouble(got[0]);
    if (PyErr_Occurred()) return false;
    *end = now() + seconds;
    return true;
}

static PyObject *round_wait(PyObject *object, PyObject *const *args,
                            Py_ssize_t given, PyObject *keywords)
{
    double end;
    if (!end_of("wait", args, given, keywords, &end)) return NULL;
    int over = round_wait_until((struct py_round *)object, end);
    return over < 0 ? NULL : PyBool_FromLong(over);
}

/* ------------------------------------------------------------------ result */

static PyObject *parts_list(const struct py_round *r)
{
    size_t count = r->info.part_count;
    if (count > PARTS_MOST) count = PARTS_MOST;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const pcclPartialPart_t *p = &r->map->parts[i];
        PyObject *part = Py_BuildValue("KKdI", (unsigned long long)p->begin,
                                       (unsigned long long)p->count, p->weight,
                                       (unsigned)p->contributors);
        if (!part) {
            Py_CLEAR(list);
            break;
        }
        PyList_SetItem(list, (Py_ssize_t)i, part);
    }
    return list;
}

static PyObject *members_list(const struct py_round *r)
{
    size_t count = r->info.member_count;
    if (count > MEMBERS_MOST) count = MEMBERS_MOST;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++)
        PyList_SetItem(list, (Py_ssize_t)i,
                       PyLong_FromUnsignedLongLong(r->map->members[i]));
    return list;
}

/* (round, elements of the vector, of parts that are there, contributed,
 * tx_bytes, rx_bytes, parts, members, sets, bytes of a set) */
static PyObject *info_tuple(const struct py_round *r)
{
    const pcclPartialInfo_t *i = &r->info;
    PyObject *parts = parts_list(r);
    PyObject *members = parts ? members_list(r) : NULL;
    if (!members) {
        Py_XDECREF(parts);
        return NULL;
    }
    size_t bytes = i->set_size * i->part_count;
    if (bytes > sizeof r->map->sets) bytes = sizeof r->map->sets;
    return Py_BuildValue("KKKiKKNNy#K", (unsigned long long)i->round,
                         (unsigned long long)r->count,
                         (unsigned long long)i->elements, i->contributed,
                         (unsigned long long)i->tx_bytes,
                         (unsigned long long)i->rx_bytes, parts, members,
                         (const char *)r->map->sets, (Py_ssize_t)bytes,
                         (unsigned long long)i->set_size);
}

static PyObject *round_result(PyObject *object, PyObject *const *args,
                              Py_ssize_t given, PyObject *keywords)
{
    struct py_round *r = (struct py_round *)object;
    double end;
    if (!end_of("result", args, given, keywords, &end)) return NULL;
    int over = round_wait_until(r, end);
    if (over < 0) return NULL;
    if (!over)
        return py_raise(pcclTimedOut, r->function, "it is still under way");
    if (r->result == pcclSuccess) return info_tuple(r);
    return py_raise(r->result, r->function,
                    r->reason ? PyUnicode_AsUTF8AndSize(r->reason, NULL)
                              : NULL);
}

static void round_free(PyObject *object)
{
    struct py_round *r = (struct py_round *)object;
    PyTypeObject *type = Py_TYPE(object);
    struct py_flight *flight = flight_of(r);
    if (flight) flight->dropped = true;
    Py_XDECREF((PyObject *)r->owner);
    Py_XDECREF(r->reason);
    free(r->map);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *round_tag(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct py_round *)object)->handle.tag);
}

/* ------------------------------------------------------------------- start */

struct leftover {
    pcclPartialOp_t handle;
    pcclPartialInfo_t info;
};

static int leftover_step(void *argument)
{
    struct leftover *l = argument;
    return (int)pcclAwaitPartial(&l->handle, &l->info);
}

/* Awaits a round of this tag that nobody awaits any more. */
static bool settle_dropped(struct py_comm *self, pcclComm_t *comm, uint64_t tag)
{
    struct py_flight *f = self->flights;
    while (f && !(f->dropped && f->tag == tag)) f = f->next;
    if (!f) return true;
    uint64_t serial = f->serial;
    struct leftover l = {{comm, tag}, {.size = sizeof l.info}};
    int rc = py_block(self, leftover_step, &l);
    if (goes_on(rc)) py_raise_last(self, rc, "all_reduce_partial");
    if (rc < 0 || goes_on(rc)) return false;
    for (f = self->flights; f && f->serial != serial;) f = f->next;
    if (f) py_flight_remove(self, f);
    return true;
}

static struct py_round *round_new(struct py_comm *self)
{
    struct py_round *r = PyObject_New(struct py_round, round_type);
    if (!r) return NULL;
    memset((char *)r + sizeof r->ob_base, 0, sizeof *r - sizeof r->ob_base);
    Py_INCREF((PyObject *)self);
    r->owner = self;
    r->function = "all_reduce_partial";
    r->map = malloc(sizeof *r->map);
    if (r->map) {
        r->info = (pcclPartialInfo_t){
            .size = sizeof r->info,
            .parts = r->map->parts,
            .part_room = PARTS_MOST,
            .members = r->map->members,
            .member_room = MEMBERS_MOST,
            .sets = r->map->sets,
            .set_room = sizeof r->map->sets,
        };
        return r;
    }
    Py_DECREF((PyObject *)r);
    PyErr_NoMemory();
    return NULL;
}

static bool seconds_of(PyObject *object, const char *name, double least,
                       uint32_t *out)
{
    if (!object) return true;
    double seconds = PyFloat_AsDouble(object);
    if (PyErr_Occurred()) return false;
    const double most = INT32_MAX / 1000.0;
    if (seconds >= least && seconds <= most) {
        *out = (uint32_t)(seconds * 1000.0 + 0.5);
        if (*out == 0 && seconds > 0) *out = 1;
        return true;
    }
    PyObject *text = PyObject_Str(object);
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (words)
        py_raise_argument("all_reduce_partial",
                          "%s is %s seconds, and not %s 0 to 2147483", name,
                          words, least > 0 ? "more than" : "from");
    Py_XDECREF(text);
    return false;
}

/* The arguments beside the arrays. */
static bool parse_descriptor(PyObject *const *got, pcclPartialDescriptor_t *d)
{
    enum { OP, WEIGHT, DEADLINE, GATHER, EVICT, TAG };
    const double shortest = 1e-9, of_default = 3.0;
    uint64_t number = 0;
    *d =
        (pcclPartialDescriptor_t){.size = sizeof *d,
                                  .op = pcclAvg,
                                  .weight = 1.0,
                                  .deadline_ms = (uint32_t)(of_default * 1000)};
    if (got[OP] && !py_reduce_op(got[OP], &d->op)) return false;
    if (got[WEIGHT]) {
        d->weight = PyFloat_AsDouble(got[WEIGHT]);
        if (PyErr_Occurred()) return false;
    }
    if (!seconds_of(got[DEADLINE], "deadline", shortest, &d->deadline_ms) ||
        !seconds_of(got[GATHER], "gather", 0, &d->gather_ms))
        return false;
    if (got[EVICT] &&
        !py_number(got[EVICT], "evict_after", UINT32_MAX, &number))
        return false;
    d->evict_after = (uint32_t)number;
    return !got[TAG] || py_number(got[TAG], "tag", UINT64_MAX, &d->tag);
}

/* Takes the arrays of the call. */
static bool round_start(struct py_round *r, struct call *call,
                        const pcclPartialDescriptor_t *d, pcclComm_t *comm)
{
    int rc;
    PyThreadState *gil = PyEval_SaveThread();
    rc = (int)pcclAllReducePartialAsync(call->op.sendbuf, call->op.recvbuf, d,
                                        comm, &r->handle);
    PyEval_RestoreThread(gil);
    if (rc != pcclSuccess) {
        py_raise_last(r->owner, rc, r->function);
        return false;
    }
    call->op.tag = d->tag;
    r->serial = py_flight_take(r->owner, call);
    r->count = d->count;
    return r->serial != 0 || PyErr_NoMemory() != NULL;
}

static PyObject *comm_partial(PyObject *object, PyObject *const *args,
                              Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {
        "x", "out", "op", "weight", "deadline", "gather", "evict_after", "tag"};
    enum { NAMES = sizeof names / sizeof names[0] };
    struct py_comm *self = (struct py_comm *)object;
    PyObject *got[NAMES];
    pcclPartialDescriptor_t d;
    if (!py_arguments("all_reduce_partial", names, NAMES, 2, 1, args, given,
                      keywords, got) ||
        !parse_descriptor(&got[2], &d))
        return NULL;
    struct call call = {.function = "all_reduce_partial"};
    struct py_round *r = NULL;
    pcclComm_t *comm = NULL;
    if (call_open(&call, got[0], got[1]) && call_same_count(&call))
        comm = py_comm_enter(self, call.function);
    if (comm) {
        d.count = call.op.count;
        d.datatype = call.op.datatype;
        if (settle_dropped(self, comm, d.tag)) r = round_new(self);
        if (r && !round_start(r, &call, &d, comm)) Py_CLEAR(r);
        py_comm_leave(self);
    }
    call_free(&call);
    return (PyObject *)r;
}

/* ---------------------------------------------------------------- progress */

static PyObject *comm_report(PyObject *object, PyObject *const *args,
                             Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {"samples", "step", "target"};
    struct py_comm *self = (struct py_comm *)object;
    PyObject *got[3];
    uint64_t samples, step = 0, target = 0;
    if (!py_arguments("report_progress", names, 3, 3, 1, args, given, keywords,
                      got) ||
        !py_number(got[0], "samples", UINT64_MAX, &samples) ||
        (got[1] && !py_number(got[1], "step", UINT64_MAX, &step)) ||
        (got[2] && !py_number(got[2], "target", UINT64_MAX, &target)))
        return NULL;
    pcclComm_t *comm = py_comm_enter(self, "report_progress");
    if (!comm) return NULL;
    int rc = (int)pcclReportProgress(comm, step, samples, target);
    if (rc != pcclSuccess) py_raise_last(self, rc, "report_progress");
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    Py_RETURN_NONE;
}

static PyObject *comm_progress(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    pcclComm_t *comm = py_comm_enter(self, "progress");
    if (!comm) return NULL;
    pcclProgress_t p = {.size = sizeof p};
    int rc = (int)pcclGetProgress(comm, &p);
    if (rc != pcclSuccess) py_raise_last(self, rc, "progress");
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    return Py_BuildValue("KKKIN", (unsigned long long)p.step,
                         (unsigned long long)p.samples,
                         (unsigned long long)p.target, (unsigned)p.members,
                         PyBool_FromLong(p.reached));
}

/* -------------------------------------------------------------------- type */

PyMethodDef py_partial_methods[] = {
    PY_METHOD("_partial", comm_partial,
              "_partial(x, out=None, *, op, weight, deadline, gather, "
              "evict_after, tag)\n--\n\nStarts a round; see "
              "pccl.Run.all_reduce_partial."),
    PY_METHOD("report_progress", comm_report,
              "report_progress(samples, step=0, target=0)\n--\n\n"
              "Says that this member has so many samples of the step, all in "
              "all; a later report of the same step replaces this one. Never "
              "blocks; any thread.\n\nstep: the program's number of the step; "
              "it goes up, and is part of the shared state. target: samples "
              "that the group is to have; the largest one that a member "
              "reports counts.\n\nRaises MasterConnectionFailed if this "
              "member is out of the run: connect anew."),
    {"_progress", comm_progress, METH_NOARGS,
     "_progress()\n--\n\n(step, samples, target, members, reached)."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef round_methods[] = {
    PY_METHOD("result", round_result, "result(timeout=None)\n--\n\n"),
    PY_METHOD("wait", round_wait, "wait(timeout=None)\n--\n\n"),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef round_fields[] = {
    {"tag", round_tag, NULL, "The tag that it was started with.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot round_slots[] = {
    {Py_tp_dealloc, round_free},
    {Py_tp_methods, round_methods},
    {Py_tp_getset, round_fields},
    {Py_tp_doc, "A round under way; see pccl.PartialOperation."},
    {0, NULL},
};

static PyType_Spec round_spec = {
    .name = "pccl._native.Round",
    .basicsize = sizeof(struct py_round),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = round_slots,
};

bool py_partial_init(PyObject *module)
{
    round_type = (PyTypeObject *)PyType_FromSpec(&round_spec);
    return round_type &&
           PyModule_AddObjectRef(module, "Round", (PyObject *)round_type) == 0;
}
