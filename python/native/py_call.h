/* py_call.h - a collective as it is called from Python. */
#ifndef PCCL_PY_CALL_H
#define PCCL_PY_CALL_H

#include "py_native.h"

/* A library that does not know it says so. */
#define PY_KIND_REDUCE_SCATTER ((pcclCollectiveKind_t)5)

/* A collective as it is called, with what it keeps meanwhile. */
struct call {
    const char *function;
    pcclCollective_t op;
    pcclQuantizationOptions_t quantization;
    struct py_array send, recv; /* recv.owner and view empty: in place */
    struct py_agreed agreed;
    uint64_t *members;
    size_t *sizes; /* of an all-to-all: four arrays in one */
    pcclComm_t *comm;
    pcclReduceInfo_t info;
    pcclAsyncReduceOp_t handle;
    bool retries;
    bool launched; /* and its waiting ended by the time limit */
};

/* Reads the arguments of a collective of this kind. On failure an exception is
 * set; call_free is due in any case. */
bool call_parse(struct call *call, struct py_comm *self, const char *function,
                pcclCollectiveKind_t kind, PyObject *const *args,
                Py_ssize_t given, PyObject *keywords);
void call_free(struct call *call);
/* The parts of it: x and out (NULL or None: in place); as many elements in
 * both; the reduction that a name or a number says. */
bool call_open(struct call *call, PyObject *send, PyObject *recv);
bool call_same_count(const struct call *call);
bool py_reduce_op(PyObject *object, pcclRedOp_t *out);

PyObject *py_info_new(const pcclReduceInfo_t *info);
/* Keeps the arrays of a call that was launched, which the library uses, until
 * the flight is removed or the communicator is closed. Returns its serial, 0:
 * no memory, they are kept for good. */
uint64_t py_flight_take(struct py_comm *self, struct call *call);
/* An operation that was launched; takes the arrays of the call. */
PyObject *py_operation_new(struct py_comm *self, struct call *call);

#endif
