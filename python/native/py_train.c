/* py_train.c - the objects of libpccl_train, for pccl.train.
 *
 * One type serves optimizers, PowerSGD, SPARTA and DiLoCo: a list of tensors,
 * an object of the library, and calls that take one pointer for each tensor. A
 * call that a signal handler ended goes on in the library; until it is taken up
 * or its communicator is closed, its arrays are kept. */
#include "py_train.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *train_type;

/* ---------------------------------------------------------------- tensors */

void py_tensors_free(struct py_tensors *t)
{
    for (size_t i = 0; i < t->count; i++)
        free((void *)(uintptr_t)t->list[i].name);
    free(t->list);
    *t = (struct py_tensors){NULL, 0};
}

bool py_tensors_parse(PyObject *object, struct py_tensors *t)
{
    Py_ssize_t count = PySequence_Size(object);
    *t = (struct py_tensors){NULL, 0};
    if (count < 0) return false;
    t->list = calloc((size_t)count + 1, sizeof *t->list);
    if (!t->list) return PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *name;
        Py_ssize_t rows, columns;
        PyObject *entry = PySequence_GetItem(object, i);
        bool good =
            entry && PyArg_ParseTuple(entry, "snn", &name, &rows, &columns);
        char *copy = good ? strdup(name) : NULL;
        if (copy)
            t->list[t->count++] =
                (pcclTrainTensor_t){copy, (size_t)rows, (size_t)columns};
        else if (good)
            PyErr_NoMemory();
        Py_XDECREF(entry);
        if (!copy) return false;
    }
    return true;
}

void py_arrays_free(struct py_arrays *a)
{
    for (size_t i = 0; i < a->count; i++) py_array_close(&a->items[i]);
    free(a->items);
    free(a->data);
    *a = (struct py_arrays){NULL, NULL, 0};
}

bool py_arrays_parse(PyObject *object, const struct py_tensors *t, int use,
                     struct py_arrays *a)
{
    Py_ssize_t count = PySequence_Size(object);
    if (count < 0) return false;
    if ((size_t)count != t->count) {
        py_raise_argument("train", "%zd arrays were passed for %zu tensors",
                          count, t->count);
        return false;
    }
    a->items = calloc(t->count + 1, sizeof *a->items);
    a->data = calloc(t->count + 1, sizeof *a->data);
    if (!a->items || !a->data) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < t->count; i++) {
        const pcclTrainTensor_t *tensor = &t->list[i];
        PyObject *item = PySequence_GetItem(object, (Py_ssize_t)i);
        bool good =
            item && py_array_open(item, tensor->name, use, &a->items[i]);
        Py_XDECREF(item);
        if (!good) return false;
        const struct py_array *array = &a->items[a->count++];
        a->data[i] = array->data;
        if (array->datatype != pcclFloat) {
            py_raise_argument("train", "%s is of %s: trainings are of float32",
                              tensor->name, py_datatype_name(array->datatype));
            return false;
        }
        if (array->count == tensor->rows * tensor->columns) continue;
        py_raise_argument("train", "%s has %zu elements instead of %zu",
                          tensor->name, array->count,
                          tensor->rows * tensor->columns);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------- calls */

static void *object_destroy(int kind, void *object)
{
    switch (kind) {
    case PY_TRAIN_OPTIMIZER:
        (void)pcclOptimizerDestroy(object);
        break;
    case PY_TRAIN_POWERSGD:
        (void)pcclPowerSgdDestroy(object);
        break;
    case PY_TRAIN_SPARTA:
        (void)pcclSpartaDestroy(object);
        break;
    default:
        (void)pcclDilocoDestroy(object);
        break;
    }
    return NULL;
}

/* A call with its arguments. */
struct work {
    struct py_train *train;
    int verb;
    pcclComm_t *comm;
    struct py_arrays arrays, more; /* more: gradients, or statistics */
    float weight;
    pcclReduceInfo_t info;
    char text[PY_TRAIN_TEXT];
};

static pcclResult_t work_call(struct work *w)
{
    void *object = w->train->object;
    float *const *weights = w->arrays.data;
    const float *const *read = (const float *const *)w->arrays.data;
    float *stats = w->more.count > 0 ? w->more.data[0] : NULL;
    switch (w->verb) {
    case PY_VERB_OPTIMIZE:
        return pcclOptimizerStep(object, weights,
                                 (const float *const *)w->more.data);
    case PY_VERB_REDUCE:
        return pcclPowerSgdReduce(object, weights, w->weight, w->comm,
                                  &w->info);
    case PY_VERB_SPARTA:
        return pcclSpartaStep(object, weights, stats, w->comm, &w->info);
    case PY_VERB_STEP:
        return pcclDilocoStep(object, weights, stats, w->weight, w->comm,
                              &w->info);
    case PY_VERB_TAKE:
        return pcclDilocoTake(object, read, stats, w->weight);
    case PY_VERB_LAUNCH:
        return pcclDilocoLaunch(object, w->comm);
    case PY_VERB_LAND:
        return pcclDilocoLand(object, &w->info);
    case PY_VERB_APPLY:
        return pcclDilocoApply(object);
    default:
        return pcclDilocoGetWeights(object, weights);
    }
}

/* Without the GIL. The text is the thread's own. */
static int work_step(void *argument)
{
    struct work *w = argument;
    pcclResult_t rc = work_call(w);
    if (rc != pcclSuccess) (void)pcclTrainGetLastError(w->text, sizeof w->text);
    return (int)rc;
}

static const char *const verb_names[] = {
    [PY_VERB_OPTIMIZE] = "step",  [PY_VERB_REDUCE] = "reduce",
    [PY_VERB_SPARTA] = "step",    [PY_VERB_STEP] = "step",
    [PY_VERB_TAKE] = "take",      [PY_VERB_LAUNCH] = "launch",
    [PY_VERB_LAND] = "land",      [PY_VERB_APPLY] = "apply",
    [PY_VERB_GET] = "get_weights"};

static bool uses_comm(int verb)
{
    return verb == PY_VERB_REDUCE || verb == PY_VERB_SPARTA ||
           verb == PY_VERB_STEP || verb == PY_VERB_LAUNCH ||
           verb == PY_VERB_LAND;
}

static bool same_arrays(const struct py_arrays *a, const struct py_arrays *b)
{
    return a->count == b->count &&
           (a->count == 0 ||
            memcmp(a->data, b->data, a->count * sizeof *a->data) == 0);
}

/* Whether a call may begin: alone, and if one was interrupted, as its
 * repetition. */
static bool may_begin(const struct work *w, const struct py_comm *self)
{
    const struct py_train *t = w->train;
    if (t->busy) {
        py_raise(pcclInvalidUsage, verb_names[w->verb],
                 "another thread is in a call of this object");
        return false;
    }
    bool is_held = t->held_verb != PY_VERB_NONE && t->owner && t->owner->comm;
    if (!is_held || (t->held_verb == w->verb && t->owner == self &&
                     same_arrays(&t->held, &w->arrays) &&
                     same_arrays(&t->held_more, &w->more)))
        return true;
    py_raise(pcclInvalidUsage, verb_names[w->verb],
             "an interrupted call of this object is under way: repeat it with "
             "the same arguments, or close the communicator");
    return false;
}

static void forget_held(struct py_train *t)
{
    py_arrays_free(&t->held);
    py_arrays_free(&t->held_more);
    t->held_verb = PY_VERB_NONE;
}

static void set_owner(struct py_train *t, struct py_comm *owner)
{
    Py_XINCREF((PyObject *)owner);
    Py_XDECREF((PyObject *)t->owner);
    t->owner = owner;
}

/* After a call: what the library still uses is kept. */
static void note_end(struct work *w, struct py_comm *self, int rc)
{
    struct py_train *t = w->train;
    forget_held(t);
    if (rc < 0 || rc == pcclTimedOut || rc == pcclCancelled) {
        t->held = w->arrays;
        t->held_more = w->more;
        t->held_verb = w->verb;
        memset(&w->arrays, 0, sizeof w->arrays);
        memset(&w->more, 0, sizeof w->more);
        set_owner(t, self);
    } else if (w->verb == PY_VERB_LAUNCH && rc == pcclSuccess) {
        set_owner(t, self);
    } else if (uses_comm(w->verb)) {
        set_owner(t, NULL);
    }
}

/* Returns the result, or -1 with an exception. */
static int work_run(struct work *w, struct py_comm *self)
{
    if (self && !(w->comm = py_comm_enter(self, verb_names[w->verb])))
        return -1;
    int rc = -1;
    bool began = may_begin(w, self);
    if (began) {
        w->train->busy = true;
        if (self) {
            rc = py_block(self, work_step, w);
        } else {
            PyThreadState *gil = PyEval_SaveThread();
            rc = work_step(w);
            PyEval_RestoreThread(gil);
        }
        w->train->busy = false;
    }
    if (rc > 0) {
        if (self && self->closing)
            py_raise_last(self, rc, verb_names[w->verb]);
        else
            py_raise(rc, verb_names[w->verb], w->text);
    }
    if (began && self) note_end(w, self, rc);
    if (self) py_comm_leave(self);
    return rc;
}

static bool parse_comm(PyObject *object, struct py_comm **out)
{
    *out = NULL;
    if (object == Py_None) return true;
    if (PyObject_TypeCheck(object, py_comm_type)) {
        *out = (struct py_comm *)object;
        return true;
    }
    PyErr_SetString(PyExc_TypeError, "run is no pccl.Run");
    return false;
}

static bool parse_stats(PyObject *object, const struct py_train *t,
                        struct py_arrays *a)
{
    if (object == Py_None) {
        if (t->stat_count == 0) return true;
        py_raise_argument("train", "stats is None, and %zu numbers are due",
                          t->stat_count);
        return false;
    }
    pcclTrainTensor_t shape = {"stats", 1, t->stat_count};
    PyObject *list = PyTuple_Pack(1, object);
    bool good = list && py_arrays_parse(list, &(struct py_tensors){&shape, 1},
                                        PY_ARRAY_WRITE, a);
    Py_XDECREF(list);
    return good;
}

/* call(verb, run, arrays, more, weight) */
static PyObject *train_call(PyObject *object, PyObject *args)
{
    struct py_train *t = (struct py_train *)object;
    struct work w = {.train = t};
    PyObject *run, *arrays, *more;
    struct py_comm *self;
    if (!PyArg_ParseTuple(args, "iOOOf", &w.verb, &run, &arrays, &more,
                          &w.weight) ||
        !parse_comm(run, &self))
        return NULL;
    bool reads = w.verb == PY_VERB_TAKE;
    bool optimizes = w.verb == PY_VERB_OPTIMIZE;
    int rc = -1;
    if ((arrays == Py_None ||
         py_arrays_parse(arrays, &t->tensors,
                         reads ? PY_ARRAY_READ : PY_ARRAY_WRITE, &w.arrays)) &&
        (optimizes ? py_arrays_parse(more, &t->tensors, PY_ARRAY_READ, &w.more)
         : w.verb == PY_VERB_SPARTA || w.verb == PY_VERB_STEP || reads
             ? parse_stats(more, t, &w.more)
             : true))
        rc = work_run(&w, self);
    py_arrays_free(&w.arrays);
    py_arrays_free(&w.more);
    return rc == pcclSuccess ? py_info_new(&w.info) : NULL;
}

/* -------------------------------------------------------------------- life */

static int create_optimizer(struct py_train *t, PyObject *options)
{
    int kind;
    pcclOptimizerOptions_t o = {.size = sizeof o};
    if (!PyArg_ParseTuple(options, "ifffffz", &kind, &o.rate, &o.momentum,
                          &o.beta2, &o.epsilon, &o.decay, &o.name))
        return -1;
    o.kind = (pcclOptimizerKind_t)kind;
    return (int)pcclOptimizerCreate(t->tensors.list, t->tensors.count, &o,
                                    (pcclOptimizer_t **)&t->object);
}

static int create_powersgd(struct py_train *t, PyObject *options)
{
    unsigned long long seed, tag;
    pcclPowerSgdOptions_t o = {.size = sizeof o};
    if (!PyArg_ParseTuple(options, "IKKz", &o.rank, &seed, &tag, &o.name))
        return -1;
    o.seed = seed;
    o.tag = tag;
    return (int)pcclPowerSgdCreate(t->tensors.list, t->tensors.count, &o,
                                   (pcclPowerSgd_t **)&t->object);
}

static int create_sparta(struct py_train *t, PyObject *options)
{
    unsigned long long seed, tag;
    Py_ssize_t stats;
    pcclSpartaOptions_t o = {.size = sizeof o};
    if (!PyArg_ParseTuple(options, "IIKKnzI", &o.parts, &o.every, &seed, &tag,
                          &stats, &o.name, &o.deadline_ms))
        return -1;
    o.seed = seed;
    o.tag = tag;
    o.stat_count = t->stat_count = (size_t)stats;
    return (int)pcclSpartaCreate(t->tensors.list, t->tensors.count, &o,
                                 (pcclSparta_t **)&t->object);
}

static int create_diloco(struct py_train *t, PyObject *options,
                         PyObject *weights)
{
    unsigned long long tag;
    Py_ssize_t stats;
    int type, algorithm, alone;
    pcclDilocoOptions_t o = {.size = sizeof o};
    if (!PyArg_ParseTuple(options, "ffnKiizp", &o.rate, &o.momentum, &stats,
                          &tag, &type, &algorithm, &o.name, &alone))
        return -1;
    o.tag = tag;
    o.quantization.quantized_datatype = (pcclDataType_t)type;
    o.quantization.algorithm = (pcclQuantizationAlgorithm_t)algorithm;
    o.goes_on_alone = alone != 0;
    o.stat_count = t->stat_count = (size_t)stats;
    struct py_arrays a = {NULL, NULL, 0};
    int rc = -1;
    if (py_arrays_parse(weights, &t->tensors, PY_ARRAY_READ, &a))
        rc = (int)pcclDilocoCreate(t->tensors.list, t->tensors.count,
                                   (const float *const *)a.data, &o,
                                   (pcclDiloco_t **)&t->object);
    py_arrays_free(&a);
    return rc;
}

static int create(struct py_train *t, PyObject *options, PyObject *weights)
{
    switch (t->kind) {
    case PY_TRAIN_OPTIMIZER:
        return create_optimizer(t, options);
    case PY_TRAIN_POWERSGD:
        return create_powersgd(t, options);
    case PY_TRAIN_SPARTA:
        return create_sparta(t, options);
    default:
        return create_diloco(t, options, weights);
    }
}

/* Train(kind, tensors, options, weights=None) */
static PyObject *train_new(PyTypeObject *type, PyObject *args,
                           PyObject *keywords)
{
    static char *names[] = {"kind", "tensors", "options", "weights", NULL};
    int kind;
    PyObject *tensors, *options, *weights = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "iOO!|O:Train", names,
                                     &kind, &tensors, &PyTuple_Type, &options,
                                     &weights))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct py_train *t = (struct py_train *)allocate(type, 0);
    if (!t) return NULL;
    t->kind = kind;
    if (py_tensors_parse(tensors, &t->tensors)) {
        int rc = create(t, options, weights);
        if (rc == pcclSuccess) return (PyObject *)t;
        if (rc > 0) {
            char text[PY_TRAIN_TEXT] = "";
            (void)pcclTrainGetLastError(text, sizeof text);
            py_raise(rc, "train", text);
        }
    }
    Py_DECREF((PyObject *)t);
    return NULL;
}

/* An object that a communicator still uses, until that is closed. */
struct parked {
    int kind;
    void *object;
    struct py_arrays arrays, more;
};

static void parked_end(void *argument)
{
    struct parked *p = argument;
    object_destroy(p->kind, p->object);
    py_arrays_free(&p->arrays);
    py_arrays_free(&p->more);
    free(p);
}

static void park(struct py_train *t)
{
    struct parked *p = malloc(sizeof *p);
    struct py_flight *flight = calloc(1, sizeof *flight);
    if (p && flight) {
        *p = (struct parked){t->kind, t->object, t->held, t->held_more};
        *flight = (struct py_flight){.next = t->owner->flights,
                                     .serial = py_flight_serial(),
                                     .object = p,
                                     .destroy = parked_end};
        t->owner->flights = flight;
    } else { /* it stays for good */
        free(p);
        free(flight);
    }
    memset(&t->held, 0, sizeof t->held);
    memset(&t->held_more, 0, sizeof t->held_more);
    t->object = NULL;
}

static void train_free(PyObject *object)
{
    struct py_train *t = (struct py_train *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (t->object && t->owner && t->owner->comm) park(t);
    if (t->object) object_destroy(t->kind, t->object);
    forget_held(t);
    set_owner(t, NULL);
    py_tensors_free(&t->tensors);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef train_methods[] = {
    {"call", train_call, METH_VARARGS,
     "call(verb, run, arrays, more, weight)\n--\n\nReturns a ReduceInfo."},
    {"state", py_train_state, METH_NOARGS,
     "state()\n--\n\n[(name, Lent)]: what members share."},
    {"set_rate", py_train_set_rate, METH_O, "set_rate(rate)\n--\n\n"},
    {"error", py_train_error, METH_O,
     "error(tensor)\n--\n\nLent; None: it is not compressed."},
    {"info", py_train_info, METH_NOARGS, "info()\n--\n\nBy kind."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot train_slots[] = {
    {Py_tp_new, train_new},
    {Py_tp_dealloc, train_free},
    {Py_tp_methods, train_methods},
    {Py_tp_doc, "An object of libpccl_train; see pccl.train."},
    {0, NULL},
};

static PyType_Spec train_spec = {
    .name = "pccl._native.Train",
    .basicsize = sizeof(struct py_train),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = train_slots,
};

bool py_train_init(PyObject *module)
{
    train_type = (PyTypeObject *)PyType_FromSpec(&train_spec);
    return train_type && py_train_facts_init(module) &&
           PyModule_AddObjectRef(module, "Train", (PyObject *)train_type) == 0;
}
