/* py_native.h - what the files of the Python extension share.
 *
 * The extension uses CPython's limited API of 3.11, so one build serves every
 * later version. It is a client of pccl.h and of nothing else. Everything here
 * is called with the GIL held unless it says otherwise; the GIL is what guards
 * the fields of a communicator. */
#ifndef PCCL_PY_NATIVE_H
#define PCCL_PY_NATIVE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <structmember.h>

#include <pccl.h>

/* An array of the caller: where it lies and what keeps it there. */
struct py_array {
    void *data;
    size_t count; /* elements */
    pcclDataType_t datatype;
    pcclDeviceType_t device;
    PyObject *owner; /* a capsule or a tensor; NULL with a view */
    Py_buffer view;  /* .obj is NULL without one */
};

/* What PyThread_start_new_thread returns if it cannot. */
#define PY_NO_THREAD ((unsigned long)-1)

enum py_array_use {
    PY_ARRAY_READ = 0,
    PY_ARRAY_WRITE = 1,     /* refuses what is read-only */
    PY_ARRAY_ANY_DEVICE = 2 /* or else host memory only */
};

/* Fills in *a and keeps the memory where it is until py_array_close. On failure
 * an exception that names `name` is set, and nothing is to be closed. */
bool py_array_open(PyObject *object, const char *name, int use,
                   struct py_array *a);
void py_array_close(struct py_array *a);
size_t py_array_bytes(const struct py_array *a);
const char *py_datatype_name(pcclDataType_t datatype);
/* The number of "float32" and the like; -1 if there is none. */
int py_datatype_of(const char *name);

/* What the members of an operation must agree on beside its own arguments. */
struct py_agreed {
    PyObject *pairs; /* keeps the texts */
    pcclArgument_t *arguments;
};

void py_agreed_close(struct py_agreed *a);

/* An operation that has been launched and not awaited. Its arrays are the
 * library's, so they outlive the Python object of the operation. */
struct py_flight {
    struct py_flight *next;
    uint64_t tag;    /* or the key of a bulk transfer, */
    uint64_t serial; /* of an operation's flight */
    uint64_t member;
    bool is_bulk, sends;
    bool offers;  /* the state that newcomers download */
    bool dropped; /* a partial round that nobody awaits any more */
    struct py_array send, recv;
    struct py_agreed agreed;
    struct py_array *held; /* of a call that was interrupted */
    size_t held_count;
    /* What uses them, and its end; NULL: nothing. */
    void *object;
    void (*destroy)(void *object);
};

struct py_comm {
    PyObject_HEAD pcclComm_t *comm; /* NULL: closed */
    unsigned process;               /* py_process_now() when it was made */
    int callers;                    /* calls under way */
    int in_handler;                 /* of signals, called while it waits */
    bool closing;
    struct py_flight *flights;
    PyObject *weak_references;
};

extern PyTypeObject *py_comm_type, *py_operation_type;

/* A number that differs in every forked child. */
unsigned py_process_now(void);

/* ------------------------------------------------------------- exceptions */

/* Sets the exception of a result. `reason` may be NULL or "". Returns NULL. */
void *py_raise(int result, const char *function, const char *reason);
/* The same with the reason that the communicator has. */
void *py_raise_last(struct py_comm *self, int result, const char *function);
/* pcclInvalidArgument, with a reason like printf. */
void *py_raise_argument(const char *function, const char *format, ...);

/* --------------------------------------------------------- the communicator */

/* The communicator of a call that begins, or NULL with an exception: closed, or
 * of another process. py_comm_leave ends the call. */
pcclComm_t *py_comm_enter(struct py_comm *self, const char *function);
void py_comm_leave(struct py_comm *self);
/* Of flights: an address may be used again. */
uint64_t py_flight_serial(void);
void py_flight_remove(struct py_comm *self, struct py_flight *flight);

/* Runs call(argument) without the GIL. In the main thread signals are handled
 * meanwhile: if a handler raises, the call is cancelled, and the exception is
 * left set. Returns the result of the call, or -1 with an exception. */
int py_block(struct py_comm *self, int (*call)(void *argument), void *argument);
/* The same for a call that begins anew each time: it is not interrupted until a
 * handler raises. `call` may run in another thread. */
int py_block_unlimited(struct py_comm *self, int (*call)(void *argument),
                       void *argument);
/* Whether this thread runs Python's signal handlers. */
bool py_is_main_thread(void);

/* Arguments by position or name, for METH_FASTCALL | METH_KEYWORDS. `out` has
 * one place for each name; what was not given is NULL. */
bool py_arguments(const char *function, const char *const *names,
                  size_t name_count, size_t positional, size_t required,
                  PyObject *const *args, Py_ssize_t given, PyObject *keywords,
                  PyObject **out);
bool py_address(PyObject *packed, PyObject *port, ccoip_socket_address_t *out);
bool py_number(PyObject *object, const char *name, uint64_t most,
               uint64_t *out);

/* --------------------------------------------------------- parts of a module
 */

/* Methods by the part that defines them; each table ends with a NULL. */
extern PyMethodDef py_collective_methods[], py_message_methods[],
    py_partial_methods[], py_state_methods[];
bool py_operation_init(PyObject *module);
bool py_partial_init(PyObject *module);
bool py_train_init(PyObject *module);
bool py_comm_init(PyObject *module);
bool py_message_init(PyObject *module);
bool py_master_init(PyObject *module);
/* The part of a type's slots that is the same everywhere. */
typedef PyObject *(*py_fast_method)(PyObject *, PyObject *const *, Py_ssize_t,
                                    PyObject *);
#define PY_METHOD(name, function, text)                                        \
    {                                                                          \
        name, (PyCFunction)(void (*)(void))(function),                         \
            METH_FASTCALL | METH_KEYWORDS, text                                \
    }

#endif
