/* py_train_facts.c - what objects of libpccl_train show, and clipping. */
#include "py_train.h"

#include <stdlib.h>

/* ------------------------------------------------------------ lent memory */

static PyTypeObject *lent_type;

/* Memory of an object, which it keeps, by the buffer protocol. */
struct lent {
    PyObject_HEAD PyObject *owner;
    void *data;
    Py_ssize_t count, width;
    const char *format;
};

static const struct {
    const char *format;
    Py_ssize_t width;
} formats[] = {
    [pcclUint8] = {"B", 1},   [pcclInt8] = {"b", 1},
    [pcclInt16] = {"h", 2},   [pcclUint16] = {"H", 2},
    [pcclUint32] = {"I", 4},  [pcclInt32] = {"i", 4},
    [pcclUint64] = {"Q", 8},  [pcclInt64] = {"q", 8},
    [pcclFloat16] = {"e", 2}, [pcclBFloat16] = {"H", 2},
    [pcclFloat] = {"f", 4},   [pcclDouble] = {"d", 8},
};

static PyObject *lent_new(PyObject *owner, void *data, size_t count,
                          pcclDataType_t datatype)
{
    struct lent *l = PyObject_New(struct lent, lent_type);
    if (!l) return NULL;
    Py_INCREF(owner);
    l->owner = owner;
    l->data = data;
    l->count = (Py_ssize_t)count;
    l->format = formats[datatype].format;
    l->width = formats[datatype].width;
    return (PyObject *)l;
}

static int lent_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct lent *l = (struct lent *)object;
    Py_INCREF(object);
    *view = (Py_buffer){
        .buf = l->data,
        .obj = object,
        .len = l->count * l->width,
        .itemsize = l->width,
        .ndim = 1,
        .format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)l->format : NULL,
        .shape = (flags & PyBUF_ND) ? &l->count : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &l->width : NULL,
    };
    return 0;
}

static void lent_free(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_DECREF(((struct lent *)object)->owner);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyType_Slot lent_slots[] = {
    {Py_tp_dealloc, lent_free},
    {Py_bf_getbuffer, lent_buffer},
    {Py_tp_doc, "Memory of an object of pccl.train, by the buffer protocol: "
                "numpy.asarray(x), memoryview(x)."},
    {0, NULL},
};

static PyType_Spec lent_spec = {
    .name = "pccl._native.Lent",
    .basicsize = sizeof(struct lent),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = lent_slots,
};

/* ------------------------------------------------------------------- facts */

static PyObject *raise_train(pcclResult_t rc, const char *function)
{
    char text[PY_TRAIN_TEXT] = "";
    (void)pcclTrainGetLastError(text, sizeof text);
    return py_raise((int)rc, function, text);
}

/* NULL with an exception while another thread is in a call. */
static struct py_train *enter(PyObject *object, const char *function)
{
    struct py_train *t = (struct py_train *)object;
    if (!t->busy) return t;
    return py_raise(pcclInvalidUsage, function,
                    "another thread is in a call of this object");
}

static pcclResult_t list_state(const struct py_train *t,
                               pcclTensorInfo_t *infos, size_t room,
                               size_t *count)
{
    switch (t->kind) {
    case PY_TRAIN_OPTIMIZER:
        return pcclOptimizerListState(t->object, infos, room, count);
    case PY_TRAIN_POWERSGD:
        return pcclPowerSgdListState(t->object, infos, room, count);
    case PY_TRAIN_SPARTA:
        return pcclSpartaListState(t->object, infos, room, count);
    default:
        return pcclDilocoListState(t->object, infos, room, count);
    }
}

PyObject *py_train_state(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_train *t = enter(object, "state");
    if (!t) return NULL;
    size_t count = 0;
    pcclResult_t rc = list_state(t, NULL, 0, &count);
    pcclTensorInfo_t *infos = calloc(count + 1, sizeof *infos);
    if (!infos) return PyErr_NoMemory();
    if (rc == pcclSuccess) rc = list_state(t, infos, count, &count);
    PyObject *list = rc == pcclSuccess ? PyList_New((Py_ssize_t)count)
                                       : raise_train(rc, "state");
    for (size_t i = 0; list && i < count; i++) {
        const pcclTensorInfo_t *info = &infos[i];
        PyObject *lent =
            lent_new(object, info->data, info->count, info->datatype);
        PyObject *pair = lent ? Py_BuildValue("sN", info->name, lent) : NULL;
        if (!pair) {
            Py_CLEAR(list);
            break;
        }
        PyList_SetItem(list, (Py_ssize_t)i, pair);
    }
    free(infos);
    return list;
}

PyObject *py_train_set_rate(PyObject *object, PyObject *rate)
{
    struct py_train *t = enter(object, "rate");
    if (!t) return NULL;
    double value = PyFloat_AsDouble(rate);
    if (PyErr_Occurred()) return NULL;
    pcclResult_t rc = pcclOptimizerSetRate(t->object, (float)value);
    if (rc != pcclSuccess) return raise_train(rc, "rate");
    Py_RETURN_NONE;
}

PyObject *py_train_error(PyObject *object, PyObject *tensor)
{
    struct py_train *t = enter(object, "error");
    if (!t) return NULL;
    size_t at = PyLong_AsSize_t(tensor);
    if (PyErr_Occurred()) return NULL;
    float *error = NULL;
    pcclResult_t rc = pcclPowerSgdGetError(t->object, at, &error);
    if (rc != pcclSuccess) return raise_train(rc, "error");
    if (!error) Py_RETURN_NONE;
    const pcclTrainTensor_t *one = &t->tensors.list[at];
    return lent_new(object, error, one->rows * one->columns, pcclFloat);
}

static PyObject *diloco_info(const struct py_train *t)
{
    pcclDilocoProgress_t p = {.size = sizeof p};
    pcclResult_t rc = pcclDilocoGetProgress(t->object, &p);
    if (rc != pcclSuccess) return raise_train(rc, "progress");
    PyObject *stats = PyList_New((Py_ssize_t)t->stat_count);
    for (size_t i = 0; stats && i < t->stat_count; i++)
        PyList_SetItem(stats, (Py_ssize_t)i,
                       PyFloat_FromDouble((double)p.stats[i]));
    if (!stats) return NULL;
    return Py_BuildValue("KKKNN", (unsigned long long)p.begun,
                         (unsigned long long)p.step,
                         (unsigned long long)p.contributors, stats,
                         PyBool_FromLong(p.in_flight));
}

PyObject *py_train_info(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct py_train *t = enter(object, "info");
    if (!t) return NULL;
    if (t->kind == PY_TRAIN_DILOCO) return diloco_info(t);
    pcclResult_t rc;
    if (t->kind == PY_TRAIN_POWERSGD) {
        pcclPowerSgdInfo_t i = {.size = sizeof i};
        rc = pcclPowerSgdGetInfo(t->object, &i);
        if (rc == pcclSuccess)
            return Py_BuildValue("KKKK", (unsigned long long)i.steps,
                                 (unsigned long long)i.compressed,
                                 (unsigned long long)i.elements,
                                 (unsigned long long)i.sent);
    } else if (t->kind == PY_TRAIN_SPARTA) {
        pcclSpartaInfo_t i = {.size = sizeof i};
        rc = pcclSpartaGetInfo(t->object, &i);
        if (rc == pcclSuccess)
            return Py_BuildValue("KKK", (unsigned long long)i.steps,
                                 (unsigned long long)i.chosen,
                                 (unsigned long long)i.averaged);
    } else {
        Py_RETURN_NONE;
    }
    return raise_train(rc, "info");
}

/* ---------------------------------------------------------------- clipping */

/* clip(tensors, gradients, limit, stages, tail) */
static PyObject *clip(PyObject *module, PyObject *args)
{
    PyObject *shapes, *gradients;
    float limit, norm = 0;
    unsigned stages;
    int tail;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOfIp", &shapes, &gradients, &limit, &stages,
                          &tail))
        return NULL;
    struct py_tensors t = {NULL, 0};
    struct py_arrays a = {NULL, NULL, 0};
    PyObject *result = NULL;
    if (py_tensors_parse(shapes, &t) &&
        py_arrays_parse(gradients, &t, PY_ARRAY_WRITE, &a)) {
        char text[PY_TRAIN_TEXT] = "";
        pcclResult_t rc;
        PyThreadState *gil = PyEval_SaveThread();
        rc = stages > 0 ? pcclClipStage(t.list, t.count, a.data, stages,
                                        tail != 0, &norm)
                        : pcclClip(t.list, t.count, a.data, limit, &norm);
        (void)pcclTrainGetLastError(text, sizeof text);
        PyEval_RestoreThread(gil);
        result = rc == pcclSuccess ? PyFloat_FromDouble((double)norm)
                                   : py_raise((int)rc, "clip", text);
    }
    py_arrays_free(&a);
    py_tensors_free(&t);
    return result;
}

static PyMethodDef functions[] = {
    {"clip", clip, METH_VARARGS,
     "clip(tensors, gradients, limit, stages, tail)\n--\n\nThe norm."},
    {NULL, NULL, 0, NULL},
};

bool py_train_facts_init(PyObject *module)
{
    lent_type = (PyTypeObject *)PyType_FromSpec(&lent_spec);
    return lent_type && PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddObjectRef(module, "Lent", (PyObject *)lent_type) == 0;
}
