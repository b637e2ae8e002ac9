/* py_master.c - a coordinator inside this process. */
#include "py_native.h"

struct py_master {
    PyObject_HEAD pcclMasterInstance_t *master;
    unsigned process;
    int waiters;
    bool ran;
};

/* ----------------------------------------------------------------- calls */

static pcclMasterInstance_t *master_enter(struct py_master *self,
                                          const char *function)
{
    if (self->process != py_process_now())
        return py_raise(pcclInvalidUsage, function,
                        "the master belongs to the process that made it");
    if (!self->master)
        return py_raise(pcclInvalidUsage, function, "the master is closed");
    return self->master;
}

static PyObject *master_new(PyTypeObject *type, PyObject *args,
                            PyObject *keywords)
{
    static char *names[] = {"address", "port", NULL};
    PyObject *packed, *port;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:Master", names,
                                     &packed, &port))
        return NULL;
    ccoip_socket_address_t address = {0};
    if (!py_address(packed, port, &address)) return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct py_master *self = (struct py_master *)allocate(type, 0);
    if (!self) return NULL;
    self->process = py_process_now();
    pcclResult_t rc = pcclCreateMaster(address, &self->master);
    if (rc == pcclSuccess) return (PyObject *)self;
    py_raise((int)rc, "Master", NULL);
    Py_DECREF(self);
    return NULL;
}

static PyObject *simple(PyObject *object, const char *function,
                        pcclResult_t (*call)(pcclMasterInstance_t *))
{
    struct py_master *self = (struct py_master *)object;
    pcclMasterInstance_t *master = master_enter(self, function);
    if (!master) return NULL;
    pcclResult_t rc = call(master);
    if (rc != pcclSuccess)
        return py_raise((int)rc, function,
                        call == pcclRunMaster && !self->ran
                            ? "the address cannot be listened on"
                            : NULL);
    if (call == pcclRunMaster) self->ran = true;
    Py_RETURN_NONE;
}

static PyObject *master_run(PyObject *self, PyObject *unused)
{
    (void)unused;
    return simple(self, "run", pcclRunMaster);
}

static PyObject *master_interrupt(PyObject *self, PyObject *unused)
{
    (void)unused;
    return simple(self, "interrupt", pcclInterruptMaster);
}

/* Waits in a thread, so that signals are handled; a master ends when it is
 * interrupted, which a handler may do. */
struct joining {
    pcclMasterInstance_t *master;
    PyThread_type_lock over;
    int result;
};

static void join_thread(void *argument)
{
    struct joining *j = argument;
    j->result = (int)pcclMasterAwaitTermination(j->master);
    PyThread_release_lock(j->over);
}

static int join_and_handle_signals(struct joining *j)
{
    enum { SLICE_US = 50000 };
    bool failed = false;
    PyLockStatus got;
    do {
        PyThreadState *gil = PyEval_SaveThread();
        got = PyThread_acquire_lock_timed(j->over, SLICE_US, 1);
        PyEval_RestoreThread(gil);
        if (got == PY_LOCK_ACQUIRED || failed) continue;
        failed = PyErr_CheckSignals() < 0;
        /* The thread's wait cannot be given up, so the master ends. */
        if (failed) (void)pcclInterruptMaster(j->master);
    } while (got != PY_LOCK_ACQUIRED);
    return failed ? -1 : j->result;
}

static PyObject *master_join(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_master *self = (struct py_master *)object;
    struct joining j = {.master = master_enter(self, "join")};
    if (!j.master) return NULL;
    int rc = pcclInternalError;
    self->waiters++;
    if (py_is_main_thread()) {
        j.over = PyThread_allocate_lock();
        if (j.over) PyThread_acquire_lock(j.over, 1);
        if (j.over &&
            PyThread_start_new_thread(join_thread, &j) != PY_NO_THREAD)
            rc = join_and_handle_signals(&j);
        if (j.over) PyThread_free_lock(j.over);
    } else {
        PyThreadState *gil = PyEval_SaveThread();
        rc = (int)pcclMasterAwaitTermination(j.master);
        PyEval_RestoreThread(gil);
    }
    self->waiters--;
    if (rc > 0) return py_raise(rc, "join", NULL);
    if (rc < 0) return NULL;
    Py_RETURN_NONE;
}

static void destroy(struct py_master *self)
{
    pcclMasterInstance_t *master = self->master;
    self->master = NULL;
    PyThreadState *gil = PyEval_SaveThread();
    (void)pcclDestroyMaster(master);
    PyEval_RestoreThread(gil);
}

static PyObject *master_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_master *self = (struct py_master *)object;
    if (self->waiters > 0)
        return py_raise(pcclInvalidUsage, "close",
                        "another thread waits in join: interrupt the master "
                        "first");
    if (self->master) destroy(self);
    Py_RETURN_NONE;
}

static void master_free(PyObject *object)
{
    struct py_master *self = (struct py_master *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->master) destroy(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *master_port(PyObject *object, void *unused)
{
    (void)unused;
    struct py_master *self = (struct py_master *)object;
    pcclMasterInstance_t *master = master_enter(self, "port");
    if (!master) return NULL;
    uint16_t port = 0;
    pcclResult_t rc = pcclGetMasterPort(master, &port);
    if (rc != pcclSuccess) return py_raise((int)rc, "port", "it does not run");
    return PyLong_FromLong(port);
}

/* ------------------------------------------------------------------- type */

static PyMethodDef master_methods[] = {
    {"run", master_run, METH_NOARGS,
     "run()\n--\n\nStarts serving in a thread of its own."},
    {"interrupt", master_interrupt, METH_NOARGS,
     "interrupt()\n--\n\nAsks it to stop; does not wait."},
    {"join", master_join, METH_NOARGS,
     "join()\n--\n\nWaits until it was interrupted and has stopped."},
    {"close", master_close, METH_NOARGS,
     "close()\n--\n\nStops it if it still runs, and frees it."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef master_fields[] = {
    {"port", master_port, NULL, "The port that it listens on.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot master_slots[] = {
    {Py_tp_new, master_new},
    {Py_tp_dealloc, master_free},
    {Py_tp_methods, master_methods},
    {Py_tp_getset, master_fields},
    {Py_tp_doc, "A coordinator in this process; see pccl.Master."},
    {0, NULL},
};

static PyType_Spec master_spec = {
    .name = "pccl._native.Master",
    .basicsize = sizeof(struct py_master),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = master_slots,
};

bool py_master_init(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&master_spec);
    bool done = type && PyModule_AddObjectRef(module, "Master", type) == 0;
    Py_XDECREF(type);
    return done;
}
