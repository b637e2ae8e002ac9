/* py_module.c - the module pccl._native: exceptions, arguments, constants. */
#include "py_native.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static unsigned process_count;
static PyObject *errors; /* a list: exception classes by result */

enum { TEXT_SIZE = 512 };

static void in_child(void)
{
    process_count++;
}

static void start_counting(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

unsigned py_process_now(void)
{
    return process_count;
}

/* ------------------------------------------------------------- exceptions */

void *py_raise(int result, const char *function, const char *reason)
{
    PyObject *type = errors ? PySequence_GetItem(errors, result) : NULL;
    if (!type) {
        PyErr_Clear();
        PyErr_Format(PyExc_RuntimeError, "%s: %s", function,
                     pcclGetErrorString((pcclResult_t)result));
        return NULL;
    }
    PyObject *error = PyObject_CallFunction(type, "iss", result, function,
                                            reason ? reason : "");
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_DECREF(type);
    return NULL;
}

void *py_raise_last(struct py_comm *self, int result, const char *function)
{
    if (self->closing || !self->comm)
        return py_raise(pcclInvalidUsage, function,
                        "the communicator was closed by another thread");
    char text[TEXT_SIZE] = "";
    (void)pcclGetLastError(self->comm, text, sizeof text);
    return py_raise(result, function, text);
}

void *py_raise_argument(const char *function, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list more;
    va_start(more, format);
    (void)vsnprintf(text, sizeof text, format, more);
    va_end(more);
    return py_raise(pcclInvalidArgument, function, text);
}

/* -------------------------------------------------------------- arguments */

static bool place_keyword(const char *function, const char *const *names,
                          size_t name_count, PyObject *keyword, PyObject *value,
                          PyObject **out)
{
    for (size_t i = 0; i < name_count; i++) {
        if (PyUnicode_CompareWithASCIIString(keyword, names[i]) != 0) continue;
        if (!out[i]) {
            out[i] = value;
            return true;
        }
        PyErr_Format(PyExc_TypeError, "%s() got two values for '%s'", function,
                     names[i]);
        return false;
    }
    PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", function,
                 keyword);
    return false;
}

bool py_arguments(const char *function, const char *const *names,
                  size_t name_count, size_t positional, size_t required,
                  PyObject *const *args, Py_ssize_t given, PyObject *keywords,
                  PyObject **out)
{
    for (size_t i = 0; i < name_count; i++) out[i] = NULL;
    if ((size_t)given > positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zu arguments by position",
                     function, positional);
        return false;
    }
    for (Py_ssize_t i = 0; i < given; i++) out[i] = args[i];
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        if (!place_keyword(function, names, name_count,
                           PyTuple_GetItem(keywords, i), args[given + i], out))
            return false;
    }
    for (size_t i = 0; i < required; i++) {
        if (out[i]) continue;
        PyErr_Format(PyExc_TypeError, "%s() needs '%s'", function, names[i]);
        return false;
    }
    return true;
}

bool py_number(PyObject *object, const char *name, uint64_t most, uint64_t *out)
{
    PyObject *index = PyNumber_Index(object);
    if (!index) return false;
    *out = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    bool failed = PyErr_Occurred() != NULL;
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    PyErr_Clear();
    if (!failed && *out <= most) return true;
    py_raise_argument("pccl", "%s is not between 0 and %llu", name,
                      (unsigned long long)most);
    return false;
}

/* ------------------------------------------------------------------ module */

static PyObject *set_errors(PyObject *module, PyObject *list)
{
    (void)module;
    Py_XDECREF(errors);
    Py_INCREF(list);
    errors = list;
    Py_RETURN_NONE;
}

static PyObject *error_string(PyObject *module, PyObject *number)
{
    (void)module;
    uint64_t result;
    if (!py_number(number, "result", 1000, &result)) return NULL;
    return PyUnicode_FromString(pcclGetErrorString((pcclResult_t)result));
}

/* Address, elements and type of an array as the library sees it: for tests
 * and for programs that check what they pass. */
static PyObject *describe(PyObject *module, PyObject *object)
{
    (void)module;
    struct py_array a;
    if (!py_array_open(object, "x", PY_ARRAY_ANY_DEVICE, &a)) return NULL;
    PyObject *result = Py_BuildValue(
        "KKs", (unsigned long long)(uintptr_t)a.data,
        (unsigned long long)a.count, py_datatype_name(a.datatype));
    py_array_close(&a);
    return result;
}

static PyMethodDef functions[] = {
    {"set_errors", set_errors, METH_O, NULL},
    {"error_string", error_string, METH_O, NULL},
    {"describe", describe, METH_O,
     "describe(x)\n--\n\n(address, elements, type) of an array."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "pccl._native",
    .m_doc = "The C API of libpccl.so, for the package pccl.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, start_counting);
    (void)pcclInit();
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    pcclBuildInfo_t build = {0};
    (void)pcclGetBuildInfo(&build);
    PyObject *cuda = build.has_cuda_support ? Py_True : Py_False;
#ifdef Py_GIL_DISABLED
    /* The fields of communicators, their calls and flights above all, have no
     * other guard (py_native.h). Blocking calls release it. */
    (void)PyUnstable_Module_SetGIL(module, Py_MOD_GIL_USED);
#endif
    if (py_operation_init(module) && py_comm_init(module) &&
        py_message_init(module) && py_master_init(module) &&
        py_partial_init(module) && py_train_init(module) &&
        PyModule_AddObjectRef(module, "has_cuda", cuda) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
