/* py_array.c - arrays of any library, without a copy.
 *
 * In this order: the buffer protocol (numpy, array, bytearray), tensors of
 * torch, which have none and whose DLPack costs microseconds, and DLPack. A
 * type of 16 bits that the buffer protocol cannot name, as ml_dtypes' bfloat16,
 * comes as a view of integers. */
#include "py_native.h"

#include <string.h>

static const struct datatype {
    const char *name;
    size_t size;
} datatypes[] = {
    [pcclUint8] = {"uint8", 1},     [pcclInt8] = {"int8", 1},
    [pcclInt16] = {"int16", 2},     [pcclUint16] = {"uint16", 2},
    [pcclUint32] = {"uint32", 4},   [pcclInt32] = {"int32", 4},
    [pcclUint64] = {"uint64", 8},   [pcclInt64] = {"int64", 8},
    [pcclFloat16] = {"float16", 2}, [pcclBFloat16] = {"bfloat16", 2},
    [pcclFloat] = {"float32", 4},   [pcclDouble] = {"float64", 8},
};
enum { DATATYPES = sizeof datatypes / sizeof datatypes[0] };

static const char here[] = "pccl";

const char *py_datatype_name(pcclDataType_t datatype)
{
    return (unsigned)datatype < DATATYPES ? datatypes[datatype].name : "?";
}

int py_datatype_of(const char *name)
{
    for (int i = 0; i < DATATYPES; i++) {
        if (strcmp(name, datatypes[i].name) == 0) return i;
    }
    return -1;
}

size_t py_array_bytes(const struct py_array *a)
{
    return a->count * datatypes[a->datatype].size;
}

void py_array_close(struct py_array *a)
{
    if (a->view.obj) PyBuffer_Release(&a->view);
    Py_CLEAR(a->owner);
}

/* ---------------------------------------------------------------- buffers */

static int integer_of(size_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? pcclInt8 : pcclUint8;
    case 2:
        return is_signed ? pcclInt16 : pcclUint16;
    case 4:
        return is_signed ? pcclInt32 : pcclUint32;
    case 8:
        return is_signed ? pcclInt64 : pcclUint64;
    default:
        return -1;
    }
}

/* The type that a format of the struct module names, -1: none of ours. */
static int datatype_of_format(const char *format, size_t size)
{
    if (!format) return pcclUint8;
    const char little = '<', big = '>';
    const uint16_t one = 1;
    char native = *(const char *)&one ? little : big;
    if (*format == '@' || *format == '=' || *format == native) format++;
    if (*format == '\0' || format[1] != '\0') return -1;
    switch (*format) {
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        return integer_of(size, false);
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return integer_of(size, true);
    case 'e':
        return pcclFloat16;
    case 'f':
        return pcclFloat;
    case 'd':
        return pcclDouble;
    default:
        return -1;
    }
}

static bool from_buffer(PyObject *object, const char *name, int use,
                        struct py_array *a)
{
    if (PyObject_GetBuffer(object, &a->view, PyBUF_FORMAT | PyBUF_STRIDES) < 0)
        return false;
    const Py_buffer *v = &a->view;
    int datatype = datatype_of_format(v->format, (size_t)v->itemsize);
    if (datatype < 0) {
        py_raise_argument(here,
                          "%s has elements of the type '%s', which is none of "
                          "the twelve types that can be sent",
                          name, v->format);
    } else if (!PyBuffer_IsContiguous(v, 'C')) {
        py_raise_argument(
            here, "%s is not C-contiguous: pass a contiguous copy", name);
    } else if ((use & PY_ARRAY_WRITE) && v->readonly) {
        py_raise_argument(here, "%s is read-only, and would be written", name);
    } else {
        a->data = v->buf;
        a->count = v->itemsize > 0 ? (size_t)(v->len / v->itemsize) : 0;
        a->datatype = (pcclDataType_t)datatype;
        a->device = pcclDeviceCpu;
        return true;
    }
    PyBuffer_Release(&a->view);
    return false;
}

/* ml_dtypes' bfloat16 cannot name itself in a buffer. */
static bool from_bfloat16(PyObject *object, const char *name, int use,
                          struct py_array *a)
{
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *text = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    bool is_ours = text && PyUnicode_Check(text) &&
                   PyUnicode_CompareWithASCIIString(text, "bfloat16") == 0;
    Py_XDECREF(dtype);
    Py_XDECREF(text);
    PyErr_Clear();
    if (!is_ours) return false;
    PyObject *view = PyObject_CallMethod(object, "view", "s", "uint16");
    if (!view) return false;
    bool done = from_buffer(view, name, use, a);
    Py_DECREF(view); /* the buffer keeps it */
    a->datatype = pcclBFloat16;
    return done;
}

/* ---------------------------------------------------------------- torch */

/* Strong references to torch's dtypes by our number, once torch is there. */
static PyObject *torch_dtypes[DATATYPES];
static PyObject *torch_tensor;
static PyObject *name_is_cpu, *name_is_cuda, *name_is_contiguous,
    *name_data_ptr, *name_numel, *name_dtype;

static bool torch_learn(void)
{
    if (torch_tensor) return true;
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *torch = PyDict_GetItemString(modules, "torch");
    if (!torch) return false;
    PyObject *tensor = PyObject_GetAttrString(torch, "Tensor");
    for (int i = 0; tensor && i < DATATYPES; i++) {
        torch_dtypes[i] = PyObject_GetAttrString(torch, datatypes[i].name);
        PyErr_Clear(); /* an older torch has no unsigned ones */
    }
    PyErr_Clear();
    name_is_cpu = PyUnicode_InternFromString("is_cpu");
    name_is_cuda = PyUnicode_InternFromString("is_cuda");
    name_is_contiguous = PyUnicode_InternFromString("is_contiguous");
    name_data_ptr = PyUnicode_InternFromString("data_ptr");
    name_numel = PyUnicode_InternFromString("numel");
    name_dtype = PyUnicode_InternFromString("dtype");
    torch_tensor = tensor;
    return tensor != NULL;
}

static bool is_torch(PyObject *object)
{
    if (!torch_learn()) return false;
    if ((PyObject *)Py_TYPE(object) == torch_tensor) return true;
    int is = PyObject_IsInstance(object, torch_tensor);
    if (is < 0) PyErr_Clear();
    return is > 0;
}

/* 1, 0, or -1 with an exception. */
static int is_true(PyObject *value)
{
    if (!value) return -1;
    int truth = PyObject_IsTrue(value);
    Py_DECREF(value);
    return truth;
}

static bool size_of(PyObject *value, size_t *out)
{
    if (!value) return false;
    *out = PyLong_AsSize_t(value);
    Py_DECREF(value);
    return !PyErr_Occurred();
}

static bool torch_device(PyObject *tensor, const char *name, int use,
                         struct py_array *a)
{
    a->device = pcclDeviceCpu;
    int on_cpu = is_true(PyObject_GetAttr(tensor, name_is_cpu));
    if (on_cpu != 0) return on_cpu > 0;
    int on_cuda = is_true(PyObject_GetAttr(tensor, name_is_cuda));
    if (on_cuda < 0) return false;
    a->device = pcclDeviceCuda;
    if (on_cuda && (use & PY_ARRAY_ANY_DEVICE)) return true;
    PyObject *device = PyObject_GetAttrString(tensor, "device");
    PyObject *text = device ? PyObject_Str(device) : NULL;
    const char *where = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (where)
        py_raise_argument(here,
                          "%s is on the device %s: only host memory can be "
                          "sent%s; pass %s.cpu()",
                          name, where,
                          use & PY_ARRAY_ANY_DEVICE ? " or cuda's" : "", name);
    Py_XDECREF(device);
    Py_XDECREF(text);
    return false;
}

static bool torch_datatype(PyObject *tensor, const char *name,
                           struct py_array *a)
{
    PyObject *dtype = PyObject_GetAttr(tensor, name_dtype);
    if (!dtype) return false;
    Py_DECREF(dtype); /* torch keeps them all */
    for (int i = 0; i < DATATYPES; i++) {
        if (torch_dtypes[i] != dtype) continue;
        a->datatype = (pcclDataType_t)i;
        return true;
    }
    PyObject *text = PyObject_Str(dtype);
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (words)
        py_raise_argument(here,
                          "%s has elements of the type '%s', which is none of "
                          "the twelve types that can be sent",
                          name, words);
    Py_XDECREF(text);
    return false;
}

static bool from_torch(PyObject *tensor, const char *name, int use,
                       struct py_array *a)
{
    if (!torch_device(tensor, name, use, a)) return false;
    if (!torch_datatype(tensor, name, a)) return false;
    int contiguous =
        is_true(PyObject_CallMethodObjArgs(tensor, name_is_contiguous, NULL));
    if (contiguous < 0) return false;
    if (!contiguous) {
        py_raise_argument(here, "%s is not contiguous: pass %s.contiguous()",
                          name, name);
        return false;
    }
    size_t address;
    if (!size_of(PyObject_CallMethodObjArgs(tensor, name_numel, NULL),
                 &a->count) ||
        !size_of(PyObject_CallMethodObjArgs(tensor, name_data_ptr, NULL),
                 &address))
        return false;
    if (address == 0 && a->count > 0) {
        py_raise_argument(here, "%s has no memory", name);
        return false;
    }
    a->data = (void *)address;
    Py_INCREF(tensor);
    a->owner = tensor;
    return true;
}

/* ---------------------------------------------------------------- DLPack */

/* The layout that DLPack's specification gives for both kinds of capsule. */
struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct dl_versioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    struct dl_tensor tensor;
};

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4 };
enum { DL_READ_ONLY = 1 };

static int datatype_of_dlpack(const struct dl_tensor *t)
{
    size_t size = t->bits / 8U;
    if (t->lanes != 1 || t->bits % 8 != 0) return -1;
    if (t->code == DL_BFLOAT) return size == 2 ? pcclBFloat16 : -1;
    if (t->code == DL_INT || t->code == DL_UINT)
        return integer_of(size, t->code == DL_INT);
    if (t->code != DL_FLOAT) return -1;
    return size == 2   ? pcclFloat16
           : size == 4 ? pcclFloat
           : size == 8 ? pcclDouble
                       : -1;
}

static bool dlpack_is_contiguous(const struct dl_tensor *t)
{
    int64_t expected = 1;
    for (int32_t i = t->ndim - 1; t->strides && i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != expected) return false;
        expected *= t->shape[i];
    }
    return true;
}

static bool fill_dlpack(const struct dl_tensor *t, bool read_only,
                        const char *name, int use, struct py_array *a)
{
    int datatype = datatype_of_dlpack(t);
    bool on_host = t->device_type == DL_CPU || t->device_type == DL_CUDA_HOST;
    bool on_cuda =
        t->device_type == DL_CUDA || t->device_type == DL_CUDA_MANAGED;
    size_t count = 1;
    for (int32_t i = 0; i < t->ndim; i++) count *= (size_t)t->shape[i];
    if (datatype < 0)
        py_raise_argument(here,
                          "%s has elements of DLPack's type %u with %u bits, "
                          "which is none of the twelve that can be sent",
                          name, t->code, t->bits);
    else if (!on_host && !(on_cuda && (use & PY_ARRAY_ANY_DEVICE)))
        py_raise_argument(here,
                          "%s is on DLPack's device %d: only host memory can "
                          "be sent",
                          name, (int)t->device_type);
    else if (count > 0 && !dlpack_is_contiguous(t))
        py_raise_argument(
            here, "%s is not C-contiguous: pass a contiguous copy", name);
    else if (read_only && (use & PY_ARRAY_WRITE))
        py_raise_argument(here, "%s is read-only, and would be written", name);
    else {
        a->data = (char *)t->data + t->byte_offset;
        a->count = count;
        a->datatype = (pcclDataType_t)datatype;
        a->device = on_host ? pcclDeviceCpu : pcclDeviceCuda;
        return true;
    }
    return false;
}

/* The capsule stays ours and unused: its end gives the tensor back. */
static PyObject *dlpack_capsule(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method) return NULL;
    PyObject *none = PyTuple_New(0);
    PyObject *version = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    PyObject *capsule =
        none && version ? PyObject_Call(method, none, version) : NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* it knows no versions */
        capsule = PyObject_CallObject(method, NULL);
    }
    Py_XDECREF(none);
    Py_XDECREF(version);
    Py_DECREF(method);
    return capsule;
}

static bool from_dlpack(PyObject *object, const char *name, int use,
                        struct py_array *a)
{
    PyObject *capsule = dlpack_capsule(object);
    if (!capsule) return false;
    const struct dl_tensor *tensor = NULL;
    bool read_only = false;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const struct dl_versioned *v =
            PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (v->major == 1) {
            tensor = &v->tensor;
            read_only = v->flags & DL_READ_ONLY;
        }
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        tensor = PyCapsule_GetPointer(capsule, "dltensor");
    }
    bool done = false;
    if (!tensor)
        py_raise_argument(here, "%s has no DLPack that this version knows",
                          name);
    else
        done = fill_dlpack(tensor, read_only, name, use, a);
    if (done)
        a->owner = capsule;
    else
        Py_DECREF(capsule);
    return done;
}

/* ------------------------------------------------------------------- all */

/* (address, elements, type, device, owner): memory that the caller answers for;
 * the owner, which may be left out, is kept as long as the memory is used. */
static bool from_address(PyObject *tuple, const char *name, struct py_array *a)
{
    unsigned long long address, count;
    int datatype, device;
    PyObject *owner = NULL;
    if (!PyArg_ParseTuple(tuple, "KKii|O", &address, &count, &datatype, &device,
                          &owner))
        return false;
    if (datatype < 0 || datatype >= DATATYPES || (address == 0 && count > 0)) {
        py_raise_argument(here, "%s has no address or no type", name);
        return false;
    }
    a->data = (void *)(uintptr_t)address;
    a->count = (size_t)count;
    a->datatype = (pcclDataType_t)datatype;
    a->device = (pcclDeviceType_t)device;
    Py_XINCREF(owner);
    a->owner = owner;
    return true;
}

static bool refuse(PyObject *object, const char *name)
{
    PyObject *type = PyType_GetName(Py_TYPE(object));
    const char *what = type ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
    if (what)
        PyErr_Format(PyExc_TypeError,
                     "%s is a %s, and no array: it has neither the buffer "
                     "protocol nor DLPack",
                     name, what);
    Py_XDECREF(type);
    return false;
}

bool py_array_open(PyObject *object, const char *name, int use,
                   struct py_array *a)
{
    memset(a, 0, sizeof *a);
    if (PyObject_CheckBuffer(object)) {
        if (from_buffer(object, name, use, a)) return true;
        /* Its own words, unless the format was what it could not say. */
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) return false;
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        if (from_bfloat16(object, name, use, a)) {
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(trace);
            return true;
        }
        if (!PyErr_Occurred()) PyErr_Restore(type, value, trace);
        return false;
    }
    if (PyTuple_Check(object)) return from_address(object, name, a);
    if (is_torch(object)) return from_torch(object, name, use, a);
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return from_dlpack(object, name, use, a);
    return refuse(object, name);
}
