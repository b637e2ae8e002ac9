/* py_comm.c - the type Comm: life, view, votes, and waiting with signals. */
#include "py_native.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *py_comm_type;
static PyTypeObject *member_type;

enum { MEMBERS_GUESS = 64 };

/* ------------------------------------------------------------------- life */

pcclComm_t *py_comm_enter(struct py_comm *self, const char *function)
{
    if (self->process != py_process_now())
        return py_raise(pcclInvalidUsage, function,
                        "the communicator belongs to the process that made it; "
                        "a forked child connects on its own");
    if (!self->comm || self->closing)
        return py_raise(pcclInvalidUsage, function,
                        "the communicator is closed");
    self->callers++;
    return self->comm;
}

void py_comm_leave(struct py_comm *self)
{
    self->callers--;
}

static void flight_free(struct py_flight *flight)
{
    if (flight->destroy) flight->destroy(flight->object);
    py_array_close(&flight->send);
    py_array_close(&flight->recv);
    py_agreed_close(&flight->agreed);
    for (size_t i = 0; i < flight->held_count; i++)
        py_array_close(&flight->held[i]);
    free(flight->held);
    free(flight);
}

void py_flight_remove(struct py_comm *self, struct py_flight *flight)
{
    struct py_flight **at = &self->flights;
    while (*at && *at != flight) at = &(*at)->next;
    if (!*at) return;
    *at = flight->next;
    flight_free(flight);
}

static void flights_free(struct py_comm *self)
{
    while (self->flights) {
        struct py_flight *flight = self->flights;
        self->flights = flight->next;
        flight_free(flight);
    }
}

/* Ends other threads' calls and leaves the run. */
static void comm_destroy(struct py_comm *self)
{
    pcclComm_t *comm = self->comm;
    self->closing = true;
    (void)pcclCancel(comm);
    PyThreadState *gil = PyEval_SaveThread();
    /* Callers that a fork has left behind are no threads of this process. */
    while (self->callers > 0 && self->process == py_process_now()) {
        (void)poll(NULL, 0, 1);
        /* The callers count with the GIL. */
        PyEval_RestoreThread(gil);
        gil = PyEval_SaveThread();
    }
    (void)pcclDestroyCommunicator(comm);
    PyEval_RestoreThread(gil);
    self->comm = NULL;
    flights_free(self);
}

static PyObject *comm_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    if (self->in_handler > 0 && py_is_main_thread())
        return py_raise(pcclInvalidUsage, "close",
                        "a signal handler cannot close the communicator that "
                        "it interrupted: raise an exception there");
    if (self->comm && !self->closing) comm_destroy(self);
    Py_RETURN_NONE;
}

static void comm_free(PyObject *object)
{
    struct py_comm *self = (struct py_comm *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->weak_references) PyObject_ClearWeakRefs(object);
    if (self->comm) comm_destroy(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* An address as Python's socket module gives it: 4 or 16 bytes. */
static bool parse_address(PyObject *packed, uint64_t port,
                          ccoip_socket_address_t *out)
{
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(packed, &bytes, &length) < 0) return false;
    out->port = (uint16_t)port;
    if (length == sizeof out->inet.ipv4.data) {
        out->inet.protocol = inetIPv4;
        memcpy(out->inet.ipv4.data, bytes, (size_t)length);
    } else if (length == sizeof out->inet.ipv6.data) {
        out->inet.protocol = inetIPv6;
        memcpy(out->inet.ipv6.data, bytes, (size_t)length);
    } else {
        py_raise_argument("Comm", "an address has 4 or 16 bytes, not %zd",
                          length);
        return false;
    }
    return true;
}

bool py_address(PyObject *packed, PyObject *port, ccoip_socket_address_t *out)
{
    uint64_t number;
    return py_number(port, "port", UINT16_MAX, &number) &&
           parse_address(packed, number, out);
}

/* Comm(packed_address, port, group=0, connections=0, rank_hint=-1, deadline=0,
 * evicts_nobody=False, ports="", announce="") */
static PyObject *comm_new(PyTypeObject *type, PyObject *args,
                          PyObject *keywords)
{
    static char *names[] = {
        "address",  "port",          "group", "connections", "rank_hint",
        "deadline", "evicts_nobody", "ports", "announce",    NULL};
    PyObject *packed, *port;
    unsigned long group = 0, connections = 0;
    int rank_hint = -1, evicts_nobody = 0;
    double deadline = 0;
    const char *ports = "", *announce = "";
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|kkidpss:Comm", names,
                                     &packed, &port, &group, &connections,
                                     &rank_hint, &deadline, &evicts_nobody,
                                     &ports, &announce))
        return NULL;
    pcclCommCreateParams_t params = {0};
    if (!py_address(packed, port, &params.master_address)) return NULL;
    if (group > UINT32_MAX || connections > UINT32_MAX ||
        !(deadline >= 0 && deadline < 4e6))
        return py_raise_argument("Comm",
                                 "group, connections or deadline is too large");
    params.peer_group = (uint32_t)group;
    params.p2p_connection_pool_size = (uint32_t)connections;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct py_comm *self = (struct py_comm *)allocate(type, 0);
    if (!self) return NULL;
    self->process = py_process_now();
    pcclResult_t rc = pcclCreateCommunicator(&params, &self->comm);
    const pcclCommOptions_t options = {
        .size = sizeof options,
        .rank_hint = rank_hint,
        .deadline_ms = (uint32_t)(deadline * 1000),
        .evicts_nobody = (uint32_t)evicts_nobody,
        .ports = ports,
        .announce = announce,
    };
    bool plain = rank_hint < 0 && options.deadline_ms == 0 && !evicts_nobody &&
                 !*ports && !*announce;
    if (rc == pcclSuccess && !plain) rc = pcclSetOptions(self->comm, &options);
    if (rc == pcclSuccess) return (PyObject *)self;
    py_raise((int)rc, "Comm", NULL);
    Py_DECREF(self);
    return NULL;
}

/* -------------------------------------------------------------- votes */

struct vote {
    pcclComm_t *comm;
    pcclResult_t (*call)(pcclComm_t *comm);
    bool pending;
    bool finished;
};

static int vote_step(void *argument)
{
    struct vote *v = argument;
    return (int)v->call(v->comm);
}

static int pending_step(void *argument)
{
    struct vote *v = argument;
    return (int)pcclArePeersPending(v->comm, &v->pending);
}

static pcclResult_t update_topology(pcclComm_t *comm)
{
    return pcclUpdateTopology(comm);
}

static pcclResult_t optimize_topology(pcclComm_t *comm)
{
    return pcclOptimizeTopology(comm);
}

static PyObject *vote(PyObject *object, const char *function,
                      int (*step)(void *),
                      pcclResult_t (*call)(pcclComm_t *comm))
{
    struct py_comm *self = (struct py_comm *)object;
    struct vote v = {.comm = py_comm_enter(self, function), .call = call};
    if (!v.comm) return NULL;
    int rc = py_block(self, step, &v);
    if (rc > 0) py_raise_last(self, rc, function);
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    if (step == pending_step) return PyBool_FromLong(v.pending);
    Py_RETURN_NONE;
}

static PyObject *comm_update(PyObject *self, PyObject *unused)
{
    (void)unused;
    return vote(self, "update_topology", vote_step, update_topology);
}

static PyObject *comm_optimize(PyObject *self, PyObject *unused)
{
    (void)unused;
    return vote(self, "optimize", vote_step, optimize_topology);
}

static PyObject *comm_pending(PyObject *self, PyObject *unused)
{
    (void)unused;
    return vote(self, "peers_pending", pending_step, NULL);
}

static int connect_step(void *argument)
{
    return (int)pcclConnect(argument);
}

static PyObject *comm_connect(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    pcclComm_t *comm = py_comm_enter(self, "connect");
    if (!comm) return NULL;
    int rc = py_block_unlimited(self, connect_step, comm);
    if (rc > 0) py_raise_last(self, rc, "connect");
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    flights_free(self); /* of an earlier connection */
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ view */

static PyObject *comm_view(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    pcclComm_t *comm = py_comm_enter(self, "view");
    if (!comm) return NULL;
    uint64_t epoch = 0;
    int rank = 0, size = 0;
    pcclResult_t rc = pcclGetView(comm, &epoch, &rank, &size, NULL, 0);
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, "view");
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    return Py_BuildValue("Kii", (unsigned long long)epoch, rank, size);
}

static PyObject *member_new(const pcclMember_t *m)
{
    PyObject *tuple = PyStructSequence_New(member_type);
    if (!tuple) return NULL;
    PyStructSequence_SetItem(tuple, 0, PyLong_FromUnsignedLongLong(m->id));
    PyStructSequence_SetItem(tuple, 1, PyLong_FromUnsignedLongLong(m->host));
    PyStructSequence_SetItem(tuple, 2, PyLong_FromLong(m->rank));
    PyStructSequence_SetItem(tuple, 3, PyLong_FromLong(m->hint));
    return tuple;
}

static PyObject *members_list(const pcclMember_t *members, int size)
{
    PyObject *list = PyList_New(size);
    for (int i = 0; list && i < size; i++) {
        PyObject *member = member_new(&members[i]);
        if (!member) {
            Py_CLEAR(list);
            break;
        }
        PyList_SetItem(list, i, member);
    }
    return list;
}

static PyObject *comm_members(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    pcclComm_t *comm = py_comm_enter(self, "members");
    if (!comm) return NULL;
    size_t capacity = MEMBERS_GUESS;
    pcclMember_t *members = NULL;
    pcclResult_t rc;
    uint64_t epoch = 0;
    int rank = 0, size = 0;
    for (;;) {
        free(members);
        members = calloc(capacity, sizeof *members);
        rc = members
                 ? pcclGetView(comm, &epoch, &rank, &size, members, capacity)
                 : pcclInternalError;
        if (rc != pcclSuccess || (size_t)size <= capacity) break;
        capacity = (size_t)size;
    }
    PyObject *list = rc == pcclSuccess
                         ? members_list(members, size)
                         : py_raise_last(self, (int)rc, "members");
    free(members);
    py_comm_leave(self);
    if (!list) return NULL;
    return Py_BuildValue("KiN", (unsigned long long)epoch, rank, list);
}

static PyObject *comm_ring(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    pcclComm_t *comm = py_comm_enter(self, "ring");
    if (!comm) return NULL;
    enum { PEERS = 4096 };
    int *ranks = calloc(PEERS, sizeof *ranks);
    size_t count = 0;
    pcclResult_t rc =
        ranks ? pcclGetRing(comm, ranks, PEERS, &count) : pcclInternalError;
    PyObject *list = rc == pcclSuccess ? PyList_New((Py_ssize_t)count)
                                       : py_raise_last(self, (int)rc, "ring");
    for (size_t i = 0; list && i < count; i++)
        PyList_SetItem(list, (Py_ssize_t)i, PyLong_FromLong(ranks[i]));
    free(ranks);
    py_comm_leave(self);
    return list;
}

static PyObject *comm_attribute(PyObject *object, PyObject *number)
{
    struct py_comm *self = (struct py_comm *)object;
    uint64_t attribute;
    if (!py_number(number, "attribute", INT_MAX, &attribute)) return NULL;
    pcclComm_t *comm = py_comm_enter(self, "attribute");
    if (!comm) return NULL;
    int value = 0;
    pcclResult_t rc =
        pcclGetAttribute(comm, (pcclAttribute_t)attribute, &value);
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, "attribute");
    py_comm_leave(self);
    return rc == pcclSuccess ? PyLong_FromLong(value) : NULL;
}

static PyObject *comm_abort(PyObject *object, PyObject *code)
{
    struct py_comm *self = (struct py_comm *)object;
    long number = PyLong_AsLong(code);
    if (PyErr_Occurred()) return NULL;
    pcclComm_t *comm = py_comm_enter(self, "abort");
    if (!comm) return NULL;
    pcclResult_t rc = pcclAbortRun(comm, (int)number);
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, "abort");
    py_comm_leave(self);
    if (rc != pcclSuccess) return NULL;
    Py_RETURN_NONE;
}

static PyObject *comm_get_traits(PyObject *object, void *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    pcclComm_t *comm = py_comm_enter(self, "traits");
    if (!comm) return NULL;
    uint32_t traits = 0;
    pcclResult_t rc = pcclGetTraits(comm, &traits);
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, "traits");
    py_comm_leave(self);
    return rc == pcclSuccess ? PyLong_FromUnsignedLong(traits) : NULL;
}

static int comm_set_traits(PyObject *object, PyObject *value, void *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    uint64_t traits;
    if (!value || !py_number(value, "traits", UINT32_MAX, &traits)) return -1;
    pcclComm_t *comm = py_comm_enter(self, "traits");
    if (!comm) return -1;
    pcclResult_t rc = pcclSetTraits(comm, (uint32_t)traits);
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, "traits");
    py_comm_leave(self);
    return rc == pcclSuccess ? 0 : -1;
}

static PyObject *comm_closed(PyObject *object, void *unused)
{
    (void)unused;
    struct py_comm *self = (struct py_comm *)object;
    return PyBool_FromLong(!self->comm || self->closing);
}

/* ------------------------------------------------------------------- type */

static PyMethodDef comm_methods[] = {
    {"connect", comm_connect, METH_NOARGS,
     "connect()\n--\n\nJoins the run; waits until its members admit this one."},
    {"close", comm_close, METH_NOARGS,
     "close()\n--\n\nLeaves the run. Operations under way end without effect; "
     "calls of other threads raise."},
    {"update_topology", comm_update, METH_NOARGS,
     "update_topology()\n--\n\nAdmits newcomers; waits for all members of all "
     "groups."},
    {"optimize", comm_optimize, METH_NOARGS,
     "optimize()\n--\n\nMeasures the links and adopts a better ring."},
    {"peers_pending", comm_pending, METH_NOARGS,
     "peers_pending()\n--\n\nWhether newcomers wait; the same answer for all "
     "members, who all have to call."},
    {"view", comm_view, METH_NOARGS,
     "view()\n--\n\n(epoch, rank, size) of this member's group."},
    {"_members", comm_members, METH_NOARGS,
     "_members()\n--\n\n(epoch, rank, members in rank order)."},
    {"_ring", comm_ring, METH_NOARGS, NULL},
    {"attribute", comm_attribute, METH_O,
     "attribute(number)\n--\n\nOne number of the world; see Attribute."},
    {"abort", comm_abort, METH_O,
     "abort(code)\n--\n\nEnds the run for all; the launcher exits with code."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef comm_fields[] = {
    {"traits", comm_get_traits, comm_set_traits,
     "Bits of this member that the survivors of a loss get joined.", NULL},
    {"closed", comm_closed, NULL, "Whether close() was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef comm_places[] = {
    {"__weaklistoffset__", T_PYSSIZET,
     offsetof(struct py_comm, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyStructSequence_Field member_fields[] = {
    {"id", "unique in the run, never used again"},
    {"host", "equal for members that can share memory"},
    {"rank", "0 .. size-1"},
    {"hint", "the rank that it asked for, or -1"},
    {NULL, NULL},
};

static PyStructSequence_Desc member_desc = {
    .name = "pccl.Member",
    .doc = "One member of the view.",
    .fields = member_fields,
    .n_in_sequence = 4,
};

/* All methods in one table that outlives the type. */
static PyMethodDef *join_methods(void)
{
    const PyMethodDef *tables[] = {comm_methods, py_collective_methods,
                                   py_message_methods, py_partial_methods,
                                   py_state_methods};
    enum { TABLES = sizeof tables / sizeof tables[0] };
    size_t count = 1;
    for (size_t i = 0; i < TABLES; i++)
        for (const PyMethodDef *m = tables[i]; m->ml_name; m++) count++;
    PyMethodDef *joined = calloc(count, sizeof *joined);
    size_t at = 0;
    for (size_t i = 0; joined && i < TABLES; i++)
        for (const PyMethodDef *m = tables[i]; m->ml_name; m++)
            joined[at++] = *m;
    return joined;
}

bool py_comm_init(PyObject *module)
{
    static PyMethodDef *methods;
    if (!methods) methods = join_methods();
    if (!methods) return PyErr_NoMemory() != NULL;
    PyType_Slot slots[] = {
        {Py_tp_new, comm_new},
        {Py_tp_dealloc, comm_free},
        {Py_tp_methods, methods},
        {Py_tp_getset, comm_fields},
        {Py_tp_members, comm_places},
        {Py_tp_doc, "A communicator of this process; see pccl.Run."},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "pccl._native.Comm",
        .basicsize = sizeof(struct py_comm),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots,
    };
    member_type = PyStructSequence_NewType(&member_desc);
    py_comm_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return member_type && py_comm_type &&
           PyModule_AddObjectRef(module, "Member", (PyObject *)member_type) ==
               0 &&
           PyModule_AddObjectRef(module, "Comm", (PyObject *)py_comm_type) == 0;
}
