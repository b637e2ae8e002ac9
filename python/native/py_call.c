/* py_call.c - the arguments of collectives. */
#include "py_call.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- arguments */

bool py_reduce_op(PyObject *object, pcclRedOp_t *out)
{
    static const struct {
        const char *name;
        pcclRedOp_t op;
    } names[] = {{"sum", pcclSum},   {"avg", pcclAvg}, {"mean", pcclAvg},
                 {"prod", pcclProd}, {"max", pcclMax}, {"min", pcclMin}};
    if (!object) return true;
    if (PyUnicode_Check(object)) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (PyUnicode_CompareWithASCIIString(object, names[i].name) != 0)
                continue;
            *out = names[i].op;
            return true;
        }
        py_raise_argument("pccl",
                          "op is '%s', and none of sum, avg, prod, "
                          "max, min",
                          PyUnicode_AsUTF8AndSize(object, NULL));
        return false;
    }
    uint64_t number;
    if (!py_number(object, "op", pcclMin, &number)) return false;
    *out = (pcclRedOp_t)number;
    return true;
}

/* None, the name of a type (then MIN_MAX), or (type, algorithm) as numbers. */
static bool parse_quantize(PyObject *object, pcclQuantizationOptions_t *out)
{
    if (!object || object == Py_None) return true;
    if (PyUnicode_Check(object)) {
        const char *name = PyUnicode_AsUTF8AndSize(object, NULL);
        int datatype = name ? py_datatype_of(name) : -1;
        if (!name) return false;
        if (datatype < 0) {
            py_raise_argument("pccl", "quantize is '%s', and no type", name);
            return false;
        }
        out->quantized_datatype = (pcclDataType_t)datatype;
        out->algorithm = pcclQuantMinMax;
        return true;
    }
    if (!PySequence_Check(object)) {
        py_raise_argument("pccl", "quantize is None, the name of a type, or "
                                  "(type, algorithm)");
        return false;
    }
    uint64_t datatype, algorithm;
    PyObject *first = PySequence_GetItem(object, 0);
    PyObject *second = first ? PySequence_GetItem(object, 1) : NULL;
    bool good =
        second && py_number(first, "quantize[0]", pcclDouble, &datatype) &&
        py_number(second, "quantize[1]", pcclQuantZeroPointScale, &algorithm);
    Py_XDECREF(first);
    Py_XDECREF(second);
    if (!good) return false;
    out->quantized_datatype = (pcclDataType_t)datatype;
    out->algorithm = (pcclQuantizationAlgorithm_t)algorithm;
    return true;
}

/* A sequence of numbers, in new memory. */
static void *parse_numbers(PyObject *object, const char *name, size_t *count)
{
    Py_ssize_t length = PySequence_Size(object);
    if (length < 0) return NULL;
    uint64_t *numbers = calloc((size_t)length + 1, sizeof *numbers);
    if (!numbers) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        bool good = item && py_number(item, name, UINT64_MAX, &numbers[i]);
        Py_XDECREF(item);
        if (good) continue;
        free(numbers);
        return NULL;
    }
    *count = (size_t)length;
    return numbers;
}

void py_agreed_close(struct py_agreed *a)
{
    Py_CLEAR(a->pairs);
    free(a->arguments);
    a->arguments = NULL;
}

/* FNV-1a of a text and its end. */
static uint64_t add_text(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    } while (*text++);
    return hash;
}

/* Of a tuple, which keeps the texts that it lends. */
static const char *text_at(PyObject *tuple, Py_ssize_t at)
{
    PyObject *text = PyTuple_GetItem(tuple, at);
    return text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
}

enum { AGREED_MOST = 8 };

static bool parse_agree(struct call *call, PyObject *pairs)
{
    Py_ssize_t count = PyTuple_Check(pairs) ? PyTuple_Size(pairs) : -1;
    if (count < 0 || count > AGREED_MOST) {
        py_raise_argument(call->function,
                          "agree is a tuple of at most %d pairs (name, text)",
                          AGREED_MOST);
        return false;
    }
    pcclArgument_t *list = calloc((size_t)count + 1, sizeof *list);
    if (!list) return PyErr_NoMemory() != NULL;
    Py_INCREF(pairs);
    call->agreed = (struct py_agreed){pairs, list};
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyTuple_GetItem(pairs, i);
        if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
            py_raise_argument(call->function,
                              "agree[%zd] is no pair (name, "
                              "text)",
                              i);
            return false;
        }
        list[i].name = text_at(pair, 0);
        list[i].text = list[i].name ? text_at(pair, 1) : NULL;
        if (!list[i].text) return false;
        digest = add_text(add_text(digest, list[i].name), list[i].text);
    }
    call->op.user_digest = digest;
    call->op.arguments = list;
    call->op.argument_count = (size_t)count;
    return true;
}

/* The arguments of SCOPE_NAMES. */
static bool parse_scope(struct call *call, PyObject *const *got)
{
    PyObject *tag = got[0], *members = got[1], *epoch = got[2], *agree = got[3];
    if (tag && !py_number(tag, "tag", UINT64_MAX, &call->op.tag)) return false;
    if (epoch && !py_number(epoch, "epoch", UINT64_MAX, &call->op.view_epoch))
        return false;
    if (agree && agree != Py_None && !parse_agree(call, agree)) return false;
    if (!members || members == Py_None) return true;
    call->members = parse_numbers(members, "members", &call->op.member_count);
    call->op.members = call->members;
    return call->members != NULL;
}

void call_free(struct call *call)
{
    py_array_close(&call->send);
    py_array_close(&call->recv);
    py_agreed_close(&call->agreed);
    free(call->members);
    free(call->sizes);
}

static void call_begin(struct call *call, const char *function,
                       pcclCollectiveKind_t kind)
{
    memset(call, 0, sizeof *call);
    call->function = function;
    call->op.size = sizeof call->op;
    call->op.kind = kind;
}

bool call_open(struct call *call, PyObject *send, PyObject *recv)
{
    bool in_place = !recv || recv == Py_None || recv == send;
    if (!py_array_open(send, "x", in_place ? PY_ARRAY_WRITE : PY_ARRAY_READ,
                       &call->send))
        return false;
    call->op.sendbuf = call->op.recvbuf = call->send.data;
    call->op.datatype = call->send.datatype;
    call->op.count = call->send.count;
    if (in_place) return true;
    if (!py_array_open(recv, "out", PY_ARRAY_WRITE, &call->recv)) return false;
    call->op.recvbuf = call->recv.data;
    if (call->recv.datatype == call->send.datatype) return true;
    py_raise_argument(call->function, "x is of %s and out of %s",
                      py_datatype_name(call->send.datatype),
                      py_datatype_name(call->recv.datatype));
    return false;
}

/* The number of members that the operation has, and the epoch in which that is
 * so; 0 with an exception. */
static size_t call_world(struct call *call, struct py_comm *self)
{
    if (call->op.members) return call->op.member_count;
    pcclComm_t *comm = py_comm_enter(self, call->function);
    if (!comm) return 0;
    int size = 0;
    uint64_t epoch = 0, wanted = call->op.view_epoch;
    pcclResult_t rc = pcclGetView(comm, &epoch, NULL, &size, NULL, 0);
    call->op.view_epoch = epoch;
    if (rc != pcclSuccess) py_raise_last(self, (int)rc, call->function);
    py_comm_leave(self);
    if (rc != pcclSuccess) return 0;
    if (wanted == 0 || wanted == epoch) return (size_t)size;
    py_raise(pcclRankConnectionLost, call->function,
             "the view is another one than the call was made for");
    return 0;
}

static bool wrong_count(const struct call *call, const char *rule)
{
    py_raise_argument(call->function, "x has %zu elements and out has %zu: %s",
                      call->send.count, call->recv.count, rule);
    return false;
}

bool call_same_count(const struct call *call)
{
    return call->op.recvbuf == call->op.sendbuf ||
           call->recv.count == call->send.count ||
           wrong_count(call, "they have to be equal");
}

static bool parse_all_reduce(PyObject *const *got, struct call *call)
{
    if (!call_open(call, got[0], got[1]) ||
        !py_reduce_op(got[2], &call->op.op) ||
        !parse_quantize(got[3], &call->quantization) ||
        !parse_scope(call, &got[5]) || !call_same_count(call))
        return false;
    bool plain = !call->members && !call->op.view_epoch && !call->op.arguments;
    if (!plain && call->quantization.algorithm != pcclQuantNone) {
        py_raise_argument(call->function, "quantize does not go together with "
                                          "members, epoch or agree");
        return false;
    }
    int retries = got[4] ? PyObject_IsTrue(got[4]) : 0;
    call->retries = retries > 0;
    return retries >= 0;
}

static bool parse_broadcast(PyObject *const *got, struct call *call)
{
    uint64_t root = 0;
    if (!call_open(call, got[0], NULL) || !parse_scope(call, &got[2]) ||
        (got[1] && !py_number(got[1], "root", INT_MAX, &root)))
        return false;
    call->op.root = (int)root;
    call->op.count = py_array_bytes(&call->send);
    return true;
}

/* Each member's part is in `out` already. */
static bool parse_gather_in_place(PyObject *const *got, struct call *call,
                                  struct py_comm *self)
{
    if (!py_array_open(got[1], "out", PY_ARRAY_WRITE, &call->recv) ||
        !parse_scope(call, &got[2]))
        return false;
    size_t world = call_world(call, self);
    if (world == 0) return false;
    if (call->recv.count % world != 0) {
        py_raise_argument(call->function,
                          "out has %zu elements, which are not equal parts of "
                          "%zu members",
                          call->recv.count, world);
        return false;
    }
    call->op.recvbuf = call->recv.data;
    call->op.count = py_array_bytes(&call->recv) / world;
    return true;
}

static bool parse_gather(PyObject *const *got, struct call *call,
                         struct py_comm *self)
{
    if (got[0] == Py_None) return parse_gather_in_place(got, call, self);
    if (!call_open(call, got[0], got[1]) || !parse_scope(call, &got[2]))
        return false;
    size_t world = call_world(call, self);
    if (world == 0) return false;
    if (call->op.recvbuf == call->op.sendbuf && call->send.count > 0) {
        py_raise_argument(call->function, "out has to be another array than x");
        return false;
    }
    if (call->recv.count / world != call->send.count ||
        call->recv.count % world != 0)
        return wrong_count(call, "out has to have those of all members");
    call->op.count = py_array_bytes(&call->send);
    return true;
}

static bool parse_scatter(PyObject *const *got, struct call *call,
                          struct py_comm *self)
{
    if (!call_open(call, got[0], got[1]) ||
        !py_reduce_op(got[2], &call->op.op) || !parse_scope(call, &got[3]))
        return false;
    size_t world = call_world(call, self);
    if (world == 0) return false;
    if (call->send.count / world != call->recv.count ||
        call->send.count % world != 0)
        return wrong_count(call, "x has to have those of all members");
    call->op.count = call->recv.count;
    return true;
}

static bool fill_sizes(const struct call *call, const char *name,
                       PyObject *object, size_t world, size_t most,
                       size_t *bytes, size_t *displs)
{
    size_t count, width = call->send.count > 0
                              ? py_array_bytes(&call->send) / call->send.count
                          : call->recv.count > 0
                              ? py_array_bytes(&call->recv) / call->recv.count
                              : 1;
    uint64_t *numbers = parse_numbers(object, name, &count);
    if (!numbers) return false;
    size_t sum = 0;
    for (size_t i = 0; i < count && i < world && sum <= most; i++) {
        displs[i] = sum * width;
        bytes[i] = (size_t)numbers[i] * width;
        sum = numbers[i] > most ? most + 1 : sum + (size_t)numbers[i];
    }
    free(numbers);
    if (count == world && sum <= most) return true;
    py_raise_argument(call->function,
                      count != world ? "%s has %zu numbers for %zu members"
                                     : "%s is more than the array has",
                      name, count, world);
    return false;
}

static bool parse_all_to_all(PyObject *const *got, struct call *call,
                             struct py_comm *self)
{
    if (!call_open(call, got[0], got[1]) || !parse_scope(call, &got[4]))
        return false;
    size_t world = call_world(call, self);
    if (world == 0) return false;
    if (call->op.recvbuf == call->op.sendbuf && call->send.count > 0) {
        py_raise_argument(call->function, "out has to be another array than x");
        return false;
    }
    size_t *s = call->sizes = calloc(4 * world, sizeof *call->sizes);
    if (!s) return PyErr_NoMemory() != NULL;
    if (!fill_sizes(call, "send_counts", got[2], world, call->send.count, s,
                    s + world) ||
        !fill_sizes(call, "recv_counts", got[3], world, call->recv.count,
                    s + 2 * world, s + 3 * world))
        return false;
    call->op.send_bytes = s;
    call->op.send_displs = s + world;
    call->op.recv_bytes = s + 2 * world;
    call->op.recv_displs = s + 3 * world;
    return true;
}

/* ------------------------------------------------------------------ all */

#define SCOPE_NAMES "tag", "members", "epoch", "agree"

static const char *const reduce_names[] = {"x",        "out",   "op",
                                           "quantize", "retry", SCOPE_NAMES};
static const char *const broadcast_names[] = {"x", "root", SCOPE_NAMES};
static const char *const gather_names[] = {"x", "out", SCOPE_NAMES};
static const char *const scatter_names[] = {"x", "out", "op", SCOPE_NAMES};
static const char *const all_to_all_names[] = {"x", "out", "send_counts",
                                               "recv_counts", SCOPE_NAMES};
static const char *const barrier_names[] = {SCOPE_NAMES};

enum { ARGUMENTS_MOST = 9 };

bool call_parse(struct call *call, struct py_comm *self, const char *function,
                pcclCollectiveKind_t kind, PyObject *const *args,
                Py_ssize_t given, PyObject *keywords)
{
    call_begin(call, function, kind);
    PyObject *got[ARGUMENTS_MOST];
#define PARSE(names, positional, required)                                     \
    py_arguments(function, names, sizeof names / sizeof names[0], positional,  \
                 required, args, given, keywords, got)
    switch ((int)kind) {
    case pcclKindAllReduce:
        return PARSE(reduce_names, 2, 1) && parse_all_reduce(got, call);
    case pcclKindBroadcast:
        return PARSE(broadcast_names, 2, 1) && parse_broadcast(got, call);
    case pcclKindAllGather:
        return PARSE(gather_names, 2, 2) && parse_gather(got, call, self);
    case pcclKindAllToAllV:
        return PARSE(all_to_all_names, 4, 4) &&
               parse_all_to_all(got, call, self);
    case PY_KIND_REDUCE_SCATTER:
        return PARSE(scatter_names, 2, 2) && parse_scatter(got, call, self);
    default:
        return PARSE(barrier_names, 0, 0) && parse_scope(call, got);
    }
#undef PARSE
}
