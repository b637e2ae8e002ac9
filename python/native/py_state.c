/* py_state.c - shared state. */
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
    for (size_t i = 0; s->arrays && i < s->state.count; i++) {
        py_array_close(&s->arrays[i]);
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

/* It goes on in the background, and the arrays are the library's until the
 * communicator is closed. */
static void sync_keep(struct py_comm *self, struct sync *s)
{
    struct py_flight *flight = calloc(1, sizeof *flight);
    if (!flight) return;
    flight->held = s->arrays;
    flight->held_count = s->state.count;
    flight->next = self->flights;
    self->flights = flight;
    s->arrays = NULL;
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
        else
            sync_keep(self, &s);
        py_comm_leave(self);
    }
    sync_free(&s);
    return result;
}

PyMethodDef py_state_methods[] = {
    PY_METHOD("_sync", comm_sync,
              "_sync(entries, revision, strategy=0)\n--\n\nMakes the arrays "
              "of all members equal. Returns (revision, tx_bytes, rx_bytes)."),
    {NULL, NULL, 0, NULL},
};
