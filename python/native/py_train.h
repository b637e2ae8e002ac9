/* py_train.h - objects of libpccl_train in Python. */
#ifndef PCCL_PY_TRAIN_H
#define PCCL_PY_TRAIN_H

#include "py_call.h"

#include <pccl_train.h>

enum { PY_TRAIN_TEXT = 256 };

/* As pccl.train has them. */
enum {
    PY_TRAIN_OPTIMIZER,
    PY_TRAIN_POWERSGD,
    PY_TRAIN_SPARTA,
    PY_TRAIN_DILOCO
};
enum {
    PY_VERB_NONE,
    PY_VERB_OPTIMIZE,
    PY_VERB_REDUCE,
    PY_VERB_SPARTA,
    PY_VERB_STEP,
    PY_VERB_TAKE,
    PY_VERB_LAUNCH,
    PY_VERB_LAND,
    PY_VERB_APPLY,
    PY_VERB_GET
};

struct py_tensors {
    pcclTrainTensor_t *list;
    size_t count;
};

/* An array for each tensor. */
struct py_arrays {
    struct py_array *items;
    float **data;
    size_t count;
};

struct py_train {
    PyObject_HEAD int kind;
    void *object;
    struct py_tensors tensors;
    size_t stat_count;
    struct py_comm *owner; /* which uses the object: launched, interrupted */
    struct py_arrays held, held_more; /* of an interrupted call, */
    int held_verb;                    /* or PY_VERB_NONE */
    bool busy;                        /* a thread is in a call */
};

/* Both need their _free also after a failure, which sets an exception. */
bool py_tensors_parse(PyObject *object, struct py_tensors *t);
void py_tensors_free(struct py_tensors *t);
bool py_arrays_parse(PyObject *object, const struct py_tensors *t, int use,
                     struct py_arrays *a);
void py_arrays_free(struct py_arrays *a);

/* py_train_facts.c */
PyObject *py_train_state(PyObject *object, PyObject *unused);
PyObject *py_train_set_rate(PyObject *object, PyObject *rate);
PyObject *py_train_error(PyObject *object, PyObject *tensor);
PyObject *py_train_info(PyObject *object, PyObject *unused);
bool py_train_facts_init(PyObject *module);

#endif
