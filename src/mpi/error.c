/* error.c - error classes, their texts, and error handlers. Every error code is
 * its own class, because programs compare codes with classes. */
#include "mpi_comm.h"
#include "errhandler.h"
#include "p2p.h"
#include "rank_use.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MPICH's wording where it has one: users search for these texts. */
static const struct {
    int error_class;
    const char *text;
} texts[] = {
    {MPI_SUCCESS, "No MPI error"},
    {MPI_ERR_BUFFER, "Invalid buffer pointer"},
    {MPI_ERR_COUNT, "Invalid count"},
    {MPI_ERR_TYPE, "Invalid datatype"},
    {MPI_ERR_TAG, "Invalid tag"},
    {MPI_ERR_COMM, "Invalid communicator"},
    {MPI_ERR_RANK, "Invalid rank"},
    {MPI_ERR_ROOT, "Invalid root"},
    {MPI_ERR_TRUNCATE, "Message truncated"},
    {MPI_ERR_GROUP, "Invalid group"},
    {MPI_ERR_OP, "Invalid MPI_Op"},
    {MPI_ERR_REQUEST, "Invalid MPI_Request"},
    {MPI_ERR_TOPOLOGY, "Invalid topology"},
    {MPI_ERR_DIMS, "Invalid dimension argument"},
    {MPI_ERR_ARG, "Invalid argument"},
    {MPI_ERR_OTHER, "Other MPI error"},
    {MPI_ERR_UNKNOWN, "Unknown error"},
    {MPI_ERR_INTERN, "Internal MPI error!"},
    {MPI_ERR_IN_STATUS, "See the MPI_ERROR field in MPI_Status for the error "
                        "code"},
    {MPI_ERR_PENDING, "Pending request (no error)"},
    {MPI_ERR_ACCESS, "Access denied to file"},
    {MPI_ERR_AMODE, "Invalid amode value in MPI_File_open"},
    {MPI_ERR_BAD_FILE, "Invalid file name"},
    {MPI_ERR_CONVERSION, "An error occurred in a user-defined data conversion "
                         "function"},
    {MPI_ERR_DUP_DATAREP, "The requested datarep name has already been "
                          "specified to MPI_REGISTER_DATAREP"},
    {MPI_ERR_FILE_EXISTS, "File exists"},
    {MPI_ERR_FILE_IN_USE, "File in use by some process"},
    {MPI_ERR_FILE, "Invalid MPI_File"},
    {MPI_ERR_IO, "Other I/O error"},
    {MPI_ERR_NO_SPACE, "Not enough space for file"},
    {MPI_ERR_NO_SUCH_FILE, "File does not exist"},
    {MPI_ERR_READ_ONLY, "Read-only file or filesystem name"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "Unsupported datarep passed to "
                                  "MPI_File_set_view"},
    {MPI_ERR_INFO, "Invalid MPI_Info"},
    {MPI_ERR_INFO_KEY, "Invalid key for MPI_Info"},
    {MPI_ERR_INFO_VALUE, "Invalid MPI_Info value"},
    {MPI_ERR_INFO_NOKEY, "MPI_Info key is not defined"},
    {MPI_ERR_NAME, "Attempt to lookup an unknown service name"},
    {MPI_ERR_NO_MEM, "Out of memory"},
    {MPI_ERR_NOT_SAME, "Inconsistent arguments to collective routine"},
    {MPI_ERR_PORT, "Invalid port"},
    {MPI_ERR_QUOTA, "Quota exceeded for files"},
    {MPI_ERR_SERVICE, "Attempt to use an undefined service name"},
    {MPI_ERR_SPAWN, "Error in spawn call"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "Unsupported operation"},
    {MPI_ERR_WIN, "Invalid MPI_Win"},
    {MPI_ERR_BASE, "Invalid base address"},
    {MPI_ERR_LOCKTYPE, "Invalid lock type"},
    {MPI_ERR_KEYVAL, "Invalid keyval"},
    {MPI_ERR_RMA_CONFLICT, "Conflicting accesses to window"},
    {MPI_ERR_RMA_SYNC, "Wrong synchronization of RMA calls"},
    {MPI_ERR_SIZE, "Invalid size argument in RMA call"},
    {MPI_ERR_DISP, "Invalid displacement argument in RMA call"},
    {MPI_ERR_ASSERT, "Invalid assert argument"},
    {MPI_ERR_RMA_RANGE, "Target memory is not within the window"},
    {MPI_ERR_RMA_ATTACH, "Memory cannot be attached"},
    {MPI_ERR_RMA_SHARED, "Memory cannot be shared"},
    {MPI_ERR_RMA_FLAVOR, "Invalid window flavor"},
    {MPI_T_ERR_MEMORY, "MPI_T: out of memory"},
    {MPI_T_ERR_NOT_INITIALIZED, "MPI_T: interface not initialized"},
    {MPI_T_ERR_CANNOT_INIT, "MPI_T: interface cannot be initialized now"},
    {MPI_T_ERR_INVALID_INDEX, "MPI_T: invalid index"},
    {MPI_T_ERR_INVALID_ITEM, "MPI_T: invalid item"},
    {MPI_T_ERR_INVALID_HANDLE, "MPI_T: invalid handle"},
    {MPI_T_ERR_OUT_OF_HANDLES, "MPI_T: no more handles"},
    {MPI_T_ERR_OUT_OF_SESSIONS, "MPI_T: no more sessions"},
    {MPI_T_ERR_INVALID_SESSION, "MPI_T: invalid session"},
    {MPI_T_ERR_CVAR_SET_NOT_NOW, "MPI_T: the variable cannot be set now"},
    {MPI_T_ERR_CVAR_SET_NEVER, "MPI_T: the variable cannot be set"},
    {MPI_T_ERR_PVAR_NO_STARTSTOP, "MPI_T: the variable cannot be started"},
    {MPI_T_ERR_PVAR_NO_WRITE, "MPI_T: the variable cannot be written"},
    {MPI_T_ERR_PVAR_NO_ATOMIC, "MPI_T: the variable cannot be read and written "
                               "in one"},
    {MPI_T_ERR_INVALID_NAME, "MPI_T: invalid name"},
    {MPI_T_ERR_INVALID, "MPI_T: invalid use"},
    {MPI_T_ERR_NOT_SUPPORTED, "MPI_T: not supported"},
    {MPI_T_ERR_NOT_ACCESSIBLE, "MPI_T: not accessible"},
    {MPI_ERR_ERRHANDLER, "Invalid error handler"},
    {MPI_ERR_ABI, "Invalid use of the ABI"},
    {MPI_ERR_SESSION, "Invalid session handle"},
    {MPI_ERR_PROC_ABORTED, "Process aborted"},
    {MPI_ERR_VALUE_TOO_LARGE, "Value is too large to store"},
    {MPIX_ERR_PROC_FAILED, "Process failed"},
    {MPIX_ERR_PROC_FAILED_PENDING, "Failure of a process has left the request "
                                   "pending"},
    {MPIX_ERR_REVOKED, "Communication object revoked"},
    {MPIX_ERR_EAGAIN, "Operation could not be issued"},
    {MPIX_ERR_NOREQ, "Cannot allocate request"},
};

/* Above MPI_ERR_LASTCODE, as the standard requires. */
enum { USER_FIRST = 0x40000001, USER_LIMIT = 1024 };

/* Results of MPI_Add_error_class and _code; guarded by facade_lock. */
static struct {
    int error_class; /* 0: free */
    char *text;
} users[USER_LIMIT];
static int user_last_code = MPI_ERR_LASTCODE;

static _Thread_local struct {
    int error_class;
    char text[MPI_MAX_ERROR_STRING];
} last;

static const char *text_of(int code)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error_class == code) return texts[i].text;
    return NULL;
}

static bool user_code(int code)
{
    return code >= USER_FIRST && code < USER_FIRST + USER_LIMIT &&
           users[code - USER_FIRST].error_class != 0;
}

static void note(int error_class, const char *format, va_list list)
{
    last.error_class = error_class;
    vsnprintf(last.text, sizeof last.text, format, list);
}

int error_note(int error_class, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    note(error_class, format, list);
    va_end(list);
    return error_class;
}

static _Noreturn void fatal(struct comm *comm, int code, const char *function)
{
    const struct group *members =
        comm && env_active() ? comm_members(comm) : NULL;
    char line[MPI_MAX_ERROR_STRING + 640], advice[320] = "";
    const char *text = text_of(code);
    if (code == MPIX_ERR_PROC_FAILED) rank_use_advice(advice, sizeof advice);
    snprintf(line, sizeof line,
             "Abort(%d) on node %d (rank %d in comm 0x%08x): Fatal error in "
             "%s: %s: %s%s",
             code, members ? atomic_load(&world.view)->rank : 0,
             members ? members->rank : 0,
             comm ? HANDLE_BITS(comm->object.handle) : 0, function,
             text ? text : "User-defined error", last.text, advice);
    env_abort(code & 0xff ? code & 0xff : 1, line);
}

/* The current handler, with a reference; NULL: *found is a predefined one. */
static struct errhandler *
in_force(errhandler_kind *kind, struct errhandler **slot, MPI_Errhandler *found)
{
    facade_lock();
    *found = atomic_load(kind);
    struct errhandler *handler = *found ? NULL : *slot;
    if (handler) object_retain(&handler->object);
    facade_unlock();
    return handler;
}

/* The handler may free any object or never return: no lock is held. A longjmp
 * out of it leaks one reference. */
static void run(struct errhandler *handler, void *object, int *code,
                const char *function)
{
    if (handler->function_x)
        handler->function_x(*(MPI_Comm *)object, *code, handler->extra);
    else if (handler->owner == HANDLE_FILE)
        ((MPI_File_errhandler_function *)handler->function)(object, code,
                                                            function, NULL);
    else
        ((MPI_Comm_errhandler_function *)handler->function)(object, code,
                                                            function, NULL);
    object_release(&handler->object);
}

static int dispatch(struct comm *comm, int code, const char *function)
{
    MPI_Errhandler kind;
    if (!comm) comm = &comm_world;
    function = public_name(function);
    if (!env_active()) fatal(comm, code, function);
    struct errhandler *handler =
        in_force(&comm->errhandler, &comm->handler, &kind);
    if (!handler) {
        if (kind != MPI_ERRORS_RETURN) fatal(comm, code, function);
        return code;
    }
    MPI_Comm handle = comm->object.handle;
    run(handler, &handle, &code, function);
    return code;
}

int errhandler_call(errhandler_kind *kind, struct errhandler **slot,
                    void *object, int code, const char *function)
{
    MPI_Errhandler found;
    struct errhandler *handler = in_force(kind, slot, &found);
    function = public_name(function);
    if (handler)
        run(handler, object, &code, function);
    else if (found != MPI_ERRORS_RETURN)
        fatal(NULL, code, function);
    return code;
}

int error_raise(struct comm *comm, int error_class, const char *function,
                const char *format, ...)
{
    char text[MPI_MAX_ERROR_STRING / 2];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    error_note(error_class, "%s: %s%s", public_name(function), text,
               env_outside());
    return dispatch(comm, error_class, function);
}

int error_raise_noted(struct comm *comm, int error_class, const char *function)
{
    char text[MPI_MAX_ERROR_STRING / 2];
    snprintf(text, sizeof text, "%.250s",
             last.error_class == error_class ? last.text : "failed");
    return error_raise(comm, error_class, function, "%s", text);
}

int unsupported_comm(MPI_Comm handle, const char *function)
{
    return error_raise(comm_find(handle), MPI_ERR_UNSUPPORTED_OPERATION,
                       function, "PCCL/MPI does not offer this function");
}

int unsupported(const char *function)
{
    return unsupported_comm(MPI_COMM_NULL, function);
}

/* ------------------------------------------------------- error handlers */

/* A freed handle stays open while a communicator uses the handler, because
 * MPI_Comm_get_errhandler may return it again. */
static void errhandler_destroy(struct object *object)
{
    struct errhandler *handler = (struct errhandler *)object;
    if (object->handle) handle_close(object);
    if (handler->destructor) handler->destructor(handler->extra);
    free(handler);
}

static struct errhandler *errhandler_find(MPI_Errhandler handle)
{
    return (struct errhandler *)handle_find(HANDLE_ERRHANDLER, handle);
}

static bool predefined(MPI_Errhandler handle)
{
#ifdef MPIR_ERRORS_THROW_EXCEPTIONS
    if (handle == MPIR_ERRORS_THROW_EXCEPTIONS) return true;
#endif
    return handle == MPI_ERRORS_ARE_FATAL || handle == MPI_ERRORS_RETURN ||
           handle == MPI_ERRORS_ABORT;
}

int errhandler_create(const struct errhandler *from, MPI_Errhandler *out)
{
    if (!from->function && !from->function_x)
        return note_argument("null function");
    struct errhandler *handler = malloc(sizeof *handler);
    if (!handler) return note_no_memory();
    *handler = *from;
    object_init(&handler->object, errhandler_destroy);
    if (!handle_open(HANDLE_ERRHANDLER, &handler->object)) {
        free(handler);
        return note_no_memory();
    }
    *out = handler->object.handle;
    return MPI_SUCCESS;
}

int mpi_Comm_create_errhandler(MPI_Comm_errhandler_function *function,
                               MPI_Errhandler *out)
{
    struct errhandler handler = {.owner = HANDLE_COMM,
                                 .function = (void (*)(void))function};
    return errhandler_create(&handler, out);
}

int mpi_Comm_create_errhandler_x(MPIX_Comm_errhandler_function_x *function,
                                 MPIX_Destructor_function *destructor,
                                 void *extra, MPI_Errhandler *out)
{
    struct errhandler handler = {.owner = HANDLE_COMM,
                                 .function_x = function,
                                 .destructor = destructor,
                                 .extra = extra};
    return errhandler_create(&handler, out);
}

int mpi_Errhandler_free(MPI_Errhandler *handle)
{
    struct errhandler *handler = errhandler_find(*handle);
    if (!handler && !predefined(*handle))
        return note_argument("not an error handler");
    if (handler) object_release(&handler->object);
    *handle = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

static void install(errhandler_kind *kind, struct errhandler **slot,
                    MPI_Errhandler handle, struct errhandler *handler)
{
    if (handler) object_retain(&handler->object);
    facade_lock();
    struct errhandler *old = *slot;
    *slot = handler;
    atomic_store(kind, handler ? HANDLE_OF(0) : handle);
    facade_unlock();
    if (old) object_release(&old->object);
}

bool errhandler_set(errhandler_kind *kind, struct errhandler **slot,
                    MPI_Errhandler handle, enum handle_kind owner)
{
    struct errhandler *handler = errhandler_find(handle);
    if (handler ? handler->owner != owner : !predefined(handle)) return false;
    install(kind, slot, handle, handler);
    return true;
}

MPI_Errhandler errhandler_get(errhandler_kind *kind, struct errhandler **slot)
{
    MPI_Errhandler found;
    struct errhandler *handler = in_force(kind, slot, &found);
    return handler ? handler->object.handle : found;
}

int mpi_Comm_set_errhandler(struct comm *comm, MPI_Errhandler handle)
{
    if (!errhandler_set(&comm->errhandler, &comm->handler, handle, HANDLE_COMM))
        return note_argument("not an error handler of communicators");
    return MPI_SUCCESS;
}

int mpi_Comm_get_errhandler(struct comm *comm, MPI_Errhandler *out)
{
    *out = errhandler_get(&comm->errhandler, &comm->handler);
    return MPI_SUCCESS;
}

int mpi_Comm_call_errhandler(struct comm *comm, int code)
{
    error_note(code, "raised by the program");
    (void)dispatch(comm, code, "MPI_Comm_call_errhandler");
    return MPI_SUCCESS;
}

void comm_inherit(struct comm *to, struct comm *from)
{
    MPI_Errhandler kind;
    struct errhandler *handler =
        in_force(&from->errhandler, &from->handler, &kind);
    install(&to->errhandler, &to->handler, kind, handler);
    if (handler) object_release(&handler->object);
    to->session = session_room_retain(from->session);
}

/* -------------------------------------------------- classes and strings */

int mpi_Error_class(int code, int *error_class)
{
    facade_lock();
    *error_class = user_code(code) ? users[code - USER_FIRST].error_class
                   : text_of(code) ? code
                                   : MPI_ERR_UNKNOWN;
    facade_unlock();
    return MPI_SUCCESS;
}

int mpi_Error_string(int code, char *string, int *length)
{
    if (!string) return note_argument("null string");
    const char *text = text_of(code);
    char line[2 * MPI_MAX_ERROR_STRING] = "";
    facade_lock();
    if (user_code(code) && users[code - USER_FIRST].text)
        snprintf(line, sizeof line, "%s", users[code - USER_FIRST].text);
    else if (user_code(code))
        *line = 0;
    else if (!text)
        snprintf(line, sizeof line, "Error code %d is not known", code);
    else if (code != MPI_SUCCESS && last.error_class == code)
        snprintf(line, sizeof line, "%s, error stack:\n%s", text, last.text);
    else
        snprintf(line, sizeof line, "%s", text);
    facade_unlock();
    line[MPI_MAX_ERROR_STRING - 1] = 0;
    memcpy(string, line, strlen(line) + 1);
    *length = (int)strlen(string);
    return MPI_SUCCESS;
}

int *error_last_used_code(void)
{
    return &user_last_code;
}

/* A new code for the class, or a new class if 0. */
static int user_add(int error_class)
{
    int code = -1;
    facade_lock();
    for (int i = 0; i < USER_LIMIT && code < 0; i++) {
        if (users[i].error_class != 0) continue;
        code = USER_FIRST + i;
        users[i].error_class = error_class ? error_class : code;
        if (user_last_code < code) user_last_code = code;
    }
    facade_unlock();
    return code;
}

int mpi_Add_error_class(int *error_class)
{
    int code = user_add(0);
    if (code < 0) return error_note(MPI_ERR_OTHER, "no more error classes");
    *error_class = code;
    return MPI_SUCCESS;
}

int mpi_Add_error_code(int error_class, int *code_out)
{
    int code = user_add(error_class);
    if (code < 0) return error_note(MPI_ERR_OTHER, "no more error codes");
    *code_out = code;
    return MPI_SUCCESS;
}

static int user_text(int code, const char *string)
{
    char *copy = string ? strndup(string, MPI_MAX_ERROR_STRING - 1) : NULL;
    if (string && !copy) return note_no_memory();
    facade_lock();
    bool known = user_code(code);
    char *old = copy;
    if (known) {
        old = users[code - USER_FIRST].text;
        users[code - USER_FIRST].text = copy;
    }
    facade_unlock();
    free(old);
    if (known) return MPI_SUCCESS;
    return error_note(MPI_ERR_ARG,
                      "%d was not made by MPI_Add_error_class or _code", code);
}

int mpi_Add_error_string(int code, const char *string)
{
    return string ? user_text(code, string) : note_argument("null string");
}

int mpi_Remove_error_string(int code)
{
    return user_text(code, NULL);
}

int mpi_Remove_error_class(int code)
{
    int result = user_text(code, NULL);
    if (result != MPI_SUCCESS) return result;
    facade_lock();
    users[code - USER_FIRST].error_class = 0;
    facade_unlock();
    return MPI_SUCCESS;
}
