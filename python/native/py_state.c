/* py_state.c - shared state, and its checkpoints. */
#include "py_native.h"

#include <stdlib.h>
#include <string.h>

struct sync {
    pcclComm_t *comm;
    pcclSharedState_t state;
    pcclSharedStateSyncStrategy_t strategy;
    pcclSharedStateSyncInfo_t info;
    struct py_array *arrays;
};

static void sync_free(struct sync *s)
{
    for (size_t i = 0; i < s->state.count; i++) {
        if (s->arrays) py_array_close(&s->arrays[i]);
        free((void *)(uintptr_t)s->state.infos[i].name);
    }
    free(s->arrays);
    free(s->state.infos);
}

/* One entry: (name, array, allow_content_inequality). */
static bool sync_entry(struct sync *s, PyObject *entry, size_t at)
{
    const char *name;
    PyObject *array;
    int inequality = 0;
    if (!PyTuple_Check(entry)) {
        PyErr_SetString(PyExc_TypeError, "an entry of a state is a tuple "
                                         "(name, array, allow_inequality)");
        return false;
    }
    if (!PyArg_ParseTuple(entry, "sO|p:sync", &name, &array, &inequality))
        return false;
    bool receives = s->strategy != PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY;
    char *copy = strdup(name);
    if (!copy) return PyErr_NoMemory() != NULL;
    struct py_array *a = &s->arrays[at];
    pcclTensorInfo_t *info = &s->state.infos[at];
    info->name = copy;
    s->state.count = at + 1;
    if (!py_array_open(array, name,
                       PY_ARRAY_ANY_DEVICE |
                           (receives ? PY_ARRAY_WRITE : PY_ARRAY_READ),
                       a))
        return false;
    info->data = a->data;
    info->count = a->count;
    info->datatype = a->datatype;
    info->device_type = a->device;
    info->allow_content_inequality = inequality != 0;
    return true;
}

static bool sync_open(struct sync *s, PyObject *entries)
{
    Py_ssize_t count = PySequence_Size(entries);
    if (count < 0) return false;
    s->arrays = calloc((size_t)count + 1, sizeof *s->arrays);
    s->state.infos = calloc((size_t)count + 1, sizeof *s->state.infos);
    if (!s->arrays || !s->state.infos) return PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *entry = PySequence_GetItem(entries, i);
        bool good = entry && sync_entry(s, entry, (size_t)i);
        Py_XDECREF(entry);
        if (!good) return false;
    }
    return true;
}

static int sync_step(void *argument)
{
    struct sync *s = argument;
    return (int)pcclSynchronizeSharedState(s->comm, &s->state, s->strategy,
                                           &s->info);
}

/* The arrays are the library's from now on, at most until the communicator is
 * closed. */
static struct py_flight *sync_keep(struct py_comm *self, struct sync *s)
{
    struct py_flight *flight = calloc(1, sizeof *flight);
    if (!flight) {
        s->arrays = NULL; /* for good */
        return NULL;
    }
    flight->held = s->arrays;
    flight->held_count = s->state.count;
    flight->next = self->flights;
    self->flights = flight;
    s->arrays = NULL;
    return flight;
}

static PyObject *comm_sync(PyObject *object, PyObject *const *args,
                           Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {"entries", "revision", "strategy"};
    struct py_comm *self = (struct py_comm *)object;
    PyObject *got[3];
    uint64_t revision, strategy = 0;
    if (!py_arguments("sync", names, 3, 3, 2, args, given, keywords, got) ||
        !py_number(got[1], "revision", UINT64_MAX, &revision) ||
        (got[2] && !py_number(got[2], "strategy", 2, &strategy)))
        return NULL;
    struct sync s = {.strategy = (pcclSharedStateSyncStrategy_t)strategy};
    s.state.revision = revision;
    PyObject *result = NULL;
    if (sync_open(&s, got[0]) && (s.comm = py_comm_enter(self, "sync"))) {
        int rc = py_block(self, sync_step, &s);
        if (rc == pcclSuccess)
            result = Py_BuildValue("KKK", (unsigned long long)s.state.revision,
                                   (unsigned long long)s.info.tx_bytes,
                                   (unsigned long long)s.info.rx_bytes);
        else if (rc > 0)
            py_raise_last(self, rc, "sync");
        /* It goes on in the background. */
        if (rc < 0 || rc == pcclTimedOut || rc == pcclCancelled)
            (void)sync_keep(self, &s);
        py_comm_leave(self);
    }
    sync_free(&s);
    return result;
}

/* ----------------------------------------------------- offer and prefetch */

static struct py_flight *offered_by(const struct py_comm *self)
{
    struct py_flight *f = self->flights;
    while (f && !f->offers) f = f->next;
    return f;
}

/* With the GIL, which keeps two offers apart: it does not block. */
static bool offer(struct py_comm *self, struct sync *s, bool ends,
                  const pcclOfferOptions_t *options)
{
    s->comm = py_comm_enter(self, "offer");
    if (!s->comm) return false;
    int rc = (int)pcclOfferState(s->comm, ends ? NULL : &s->state,
                                 ends ? NULL : options);
    if (rc == pcclSuccess) {
        struct py_flight *before = offered_by(self);
        if (before) py_flight_remove(self, before);
        struct py_flight *flight = ends ? NULL : sync_keep(self, s);
        if (flight) flight->offers = true;
    } else {
        py_raise_last(self, rc, "offer");
    }
    py_comm_leave(self);
    return rc == pcclSuccess;
}

static PyObject *comm_offer(PyObject *object, PyObject *args)
{
    PyObject *entries;
    unsigned long long revision;
    pcclOfferOptions_t options = {.size = sizeof options};
    unsigned long long rate;
    if (!PyArg_ParseTuple(args, "OKKd", &entries, &revision, &rate,
                          &options.round_part))
        return NULL;
    options.bytes_per_second = rate;
    struct sync s = {.strategy = PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY,
                     .state.revision = revision};
    bool ends = entries == Py_None;
    bool done = (ends || sync_open(&s, entries)) &&
                offer((struct py_comm *)object, &s, ends, &options);
    sync_free(&s);
    if (!done) return NULL;
    Py_RETURN_NONE;
}

struct prefetch {
    struct sync sync;
    pcclPrefetchOptions_t options;
    pcclPrefetchInfo_t info;
};

static int prefetch_step(void *argument)
{
    struct prefetch *p = argument;
    return (int)pcclPrefetch(p->sync.comm, &p->sync.state, &p->options,
                             &p->info);
}

static PyObject *comm_prefetch(PyObject *object, PyObject *args)
{
    struct py_comm *self = (struct py_comm *)object;
    struct prefetch p = {.options = {.size = sizeof p.options}};
    PyObject *entries, *result = NULL;
    unsigned long long stale;
    if (!PyArg_ParseTuple(args, "OK", &entries, &stale)) return NULL;
    p.options.max_stale = stale;
    if (sync_open(&p.sync, entries) &&
        (p.sync.comm = py_comm_enter(self, "prefetch"))) {
        int rc = py_block_unlimited(self, prefetch_step, &p);
        if (rc == pcclSuccess)
            result = Py_BuildValue("KKK", (unsigned long long)p.info.rx_bytes,
                                   (unsigned long long)p.info.revision,
                                   (unsigned long long)p.info.offered);
        else if (rc > 0)
            py_raise_last(self, rc, "prefetch");
        py_comm_leave(self);
    }
    sync_free(&p.sync);
    return result;
}

/* ------------------------------------------------------------ checkpoints */

struct checkpoint {
    struct sync sync; /* the state, and no call */
    const char *directory;
    PyObject *path; /* keeps it */
    pcclSaveOptions_t save;
    pcclLoadOptions_t load;
    pcclCheckpointInfo_t info;
};

static int save_step(void *argument)
{
    struct checkpoint *c = argument;
    return (int)pcclSaveState(c->sync.comm, &c->sync.state, c->directory,
                              &c->save);
}

static int await_step(void *argument)
{
    struct checkpoint *c = argument;
    return (int)pcclAwaitSave(c->sync.comm, &c->info);
}

static int load_step(void *argument)
{
    struct checkpoint *c = argument;
    return (int)pcclLoadState(c->sync.comm, &c->sync.state, c->directory,
                              &c->load, &c->info);
}

/* A str, bytes or os.PathLike. */
static bool checkpoint_path(struct checkpoint *c, PyObject *path)
{
    if (!PyUnicode_FSConverter(path, &c->path)) return false;
    c->directory = PyBytes_AsString(c->path);
    return c->directory != NULL;
}

/* None where `nothing` is the result and no error. */
static PyObject *checkpoint_call(struct py_comm *self, struct checkpoint *c,
                                 int (*step)(void *argument),
                                 const char *function, int nothing)
{
    PyObject *result = NULL;
    c->info.size = sizeof c->info;
    if ((c->sync.comm = py_comm_enter(self, function))) {
        int rc = py_block(self, step, c);
        if (rc == pcclSuccess)
            result = Py_BuildValue(
                "KLLKk", (unsigned long long)c->info.revision,
                (long long)c->info.time_ns, (long long)c->info.cut_ns,
                (unsigned long long)c->info.bytes,
                (unsigned long)c->info.world_size);
        else if (rc == nothing) {
            Py_INCREF(Py_None);
            result = Py_None;
        } else if (rc > 0)
            py_raise_last(self, rc, function);
        py_comm_leave(self);
    }
    return result;
}

static void checkpoint_free(struct checkpoint *c)
{
    sync_free(&c->sync);
    Py_XDECREF(c->path);
}

static PyObject *comm_save(PyObject *object, PyObject *const *args,
                           Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {"entries", "directory",   "revision",
                                        "keep",    "synchronous", "this_peer"};
    PyObject *got[6];
    uint64_t revision, keep, synchronous, this_peer;
    PyObject *result = NULL;
    if (!py_arguments("save", names, 6, 6, 6, args, given, keywords, got) ||
        !py_number(got[2], "revision", UINT64_MAX, &revision) ||
        !py_number(got[3], "keep", UINT32_MAX, &keep) ||
        !py_number(got[4], "wait", 1, &synchronous) ||
        !py_number(got[5], "this_peer", 1, &this_peer))
        return NULL;
    struct checkpoint c = {.sync.strategy =
                               PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY,
                           .sync.state.revision = revision,
                           .save = {.size = sizeof c.save,
                                    .keep = (uint32_t)keep,
                                    .synchronous = (uint32_t)synchronous,
                                    .this_peer = (uint32_t)this_peer}};
    if (checkpoint_path(&c, got[1]) && sync_open(&c.sync, got[0]))
        result = checkpoint_call((struct py_comm *)object, &c, save_step,
                                 "save", pcclSuccess);
    checkpoint_free(&c);
    return result;
}

static PyObject *comm_await_save(PyObject *object, PyObject *unused)
{
    struct checkpoint c = {0};
    (void)unused;
    return checkpoint_call((struct py_comm *)object, &c, await_step,
                           "await_save", pcclSuccess);
}

static PyObject *comm_load(PyObject *object, PyObject *const *args,
                           Py_ssize_t given, PyObject *keywords)
{
    static const char *const names[] = {"entries", "directory", "choice",
                                        "value"};
    PyObject *got[4];
    uint64_t choice, value;
    PyObject *result = NULL;
    if (!py_arguments("load", names, 4, 4, 4, args, given, keywords, got) ||
        !py_number(got[2], "choice", 3, &choice) ||
        !py_number(got[3], "value", UINT64_MAX, &value))
        return NULL;
    struct checkpoint c = {
        .load = {.size = sizeof c.load,
                 .choice = (pcclLoadChoice_t)choice,
                 .time_ns = choice == pcclLoadNearest ? (int64_t)value : 0,
                 .revision = value}};
    if (checkpoint_path(&c, got[1]) && sync_open(&c.sync, got[0]))
        result = checkpoint_call((struct py_comm *)object, &c, load_step,
                                 "load", pcclNoSharedStateAvailable);
    checkpoint_free(&c);
    return result;
}

PyMethodDef py_state_methods[] = {
    PY_METHOD("_sync", comm_sync,
              "_sync(entries, revision, strategy=0)\n--\n\nMakes the arrays "
              "of all members equal. Returns (revision, tx_bytes, rx_bytes)."),
    {"_offer", comm_offer, METH_VARARGS,
     "_offer(entries, revision, bytes_per_second, round_part)\n--\n\n"
     "Lets newcomers download the arrays."},
    {"_prefetch", comm_prefetch, METH_VARARGS,
     "_prefetch(entries, max_stale)\n--\n\nDownloads what members offer. "
     "Returns (rx_bytes, revision, offered)."},
    PY_METHOD("_save", comm_save,
              "_save(entries, directory, revision, keep, synchronous, "
              "this_peer)\n--\n\nWrites a checkpoint."),
    {"_await_save", comm_await_save, METH_NOARGS,
     "_await_save()\n--\n\nWaits for the checkpoint under way. Returns "
     "(revision, time_ns, cut_ns, bytes, world_size)."},
    PY_METHOD("_load", comm_load,
              "_load(entries, directory, choice, value)\n--\n\nReads a "
              "checkpoint. Returns as _await_save, or None."),
    {NULL, NULL, 0, NULL},
};
