/* py_wait.c - waiting, while Python's signal handlers run. */
#include "py_native.h"

#include <sys/syscall.h>
#include <unistd.h>

/* How long a call waits before it lets Python's signal handlers run. */
enum { SLICE_MS = 50 };

bool py_is_main_thread(void)
{
    static _Thread_local unsigned asked; /* of which process, plus one */
    static _Thread_local bool is_main;
    if (asked != py_process_now() + 1) {
        is_main = syscall(SYS_gettid) == (long)getpid();
        asked = py_process_now() + 1;
    }
    return is_main;
}

int py_block(struct py_comm *self, int (*call)(void *argument), void *argument)
{
    bool handles_signals = py_is_main_thread();
    for (;;) {
        int rc;
        PyThreadState *gil = PyEval_SaveThread();
        rc = call(argument);
        PyEval_RestoreThread(gil);
        if (rc != pcclTimedOut || self->closing) return rc;
        if (!handles_signals) continue;
        self->in_handler++;
        int failed = PyErr_CheckSignals();
        self->in_handler--;
        if (failed < 0) return -1;
    }
}

/* A connect or a download cannot be taken up again where it was, so it has no
 * limit: it waits in a thread of its own, and a signal handler that raises
 * cancels it. */
struct unlimited {
    int (*call)(void *argument);
    void *argument;
    pcclComm_t *comm;
    PyThread_type_lock over;
    int result;
};

static void unlimited_thread(void *argument)
{
    struct unlimited *u = argument;
    u->result = u->call(u->argument);
    PyThread_release_lock(u->over);
}

/* With the GIL. Returns the result, or -1 with an exception. */
static int wait_and_handle_signals(struct py_comm *self, struct unlimited *u)
{
    bool failed = false;
    for (;;) {
        PyLockStatus got;
        PyThreadState *gil = PyEval_SaveThread();
        got = PyThread_acquire_lock_timed(u->over, SLICE_MS * 1000, 1);
        PyEval_RestoreThread(gil);
        if (got == PY_LOCK_ACQUIRED) break;
        if (failed) continue;
        self->in_handler++;
        failed = PyErr_CheckSignals() < 0;
        self->in_handler--;
        if (failed) (void)pcclCancel(u->comm);
    }
    if (!failed) return u->result;
    (void)pcclResume(u->comm);
    return -1;
}

static int unlimited_run(struct py_comm *self, struct unlimited *u)
{
    if (!py_is_main_thread()) {
        PyThreadState *gil = PyEval_SaveThread();
        u->result = u->call(u->argument);
        PyEval_RestoreThread(gil);
        return u->result;
    }
    u->over = PyThread_allocate_lock();
    if (!u->over) return pcclInternalError;
    PyThread_acquire_lock(u->over, 1);
    int rc = pcclInternalError;
    if (PyThread_start_new_thread(unlimited_thread, u) != PY_NO_THREAD)
        rc = wait_and_handle_signals(self, u);
    PyThread_free_lock(u->over);
    return rc;
}

int py_block_unlimited(struct py_comm *self, int (*call)(void *argument),
                       void *argument)
{
    struct unlimited u = {
        .call = call, .argument = argument, .comm = self->comm};
    (void)pcclSetTimeLimit(u.comm, 0);
    int rc = unlimited_run(self, &u);
    (void)pcclSetTimeLimit(u.comm, SLICE_MS);
    return rc;
}
