/* proc.c - watches one process, its process group and its output. */
#include "proc.h"

#include "../base/lacking.h"
#include "elf_needed.h"

#include "guard.h"
#include "program_path.h"
#include "rank_env.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool proc_is_gone(const struct proc *proc)
{
    return !proc->alive && !proc->news && !proc->lingering &&
           !stream_is_open(&proc->out) && !stream_is_open(&proc->err);
}

static void group_forget(struct proc *proc)
{
    proc->lingering = false;
    guard_remove(proc->guard_fd, proc->pid);
}

/* The process is dead. Its children get the rest of its grace period, then
 * SIGKILL, and count until they are dead, unless nothing kills them. A pipe
 * that another process still holds is closed when it is empty. */
static void sweep_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct proc *proc = timer->data;
    bool late = ev_now(loop) >= proc->sweep_until;
    bool immortal = ev_now(loop) >= proc->sweep_until + LAUNCH_ANSWER;
    if (proc->lingering &&
        (kill(-proc->pid, late ? SIGKILL : 0) != 0 || immortal))
        group_forget(proc);
    if (late) {
        stream_abandon(&proc->out);
        stream_abandon(&proc->err);
    }
    bool open = stream_is_open(&proc->out) || stream_is_open(&proc->err);
    if (!proc->lingering && (late || !open)) ev_timer_stop(loop, timer);
}

static void child_ended(struct ev_loop *loop, ev_child *child, int events)
{
    (void)events;
    struct proc *proc = child->data;
    ev_child_stop(loop, child);
    proc->wait_status = child->rstatus;
    proc->alive = false;
    proc->news = true;
    proc->lingering = true;
    proc_keep(proc);
    if (kill(-proc->pid, SIGTERM) != 0) group_forget(proc);
    proc->sweep_until = ev_now(loop) + LAUNCH_GRACE;
    ev_timer_again(loop, &proc->sweep);
}

/* A process that does not die by SIGKILL waits in the kernel (state D), for as
 * long as a disk or another host wishes. */
void proc_leave(struct proc *proc)
{
    if (!proc->alive) return;
    ev_child_stop(proc->loop, &proc->child);
    proc_keep(proc);
    proc->wait_status = SIGKILL;
    proc->alive = false;
    proc->news = proc->left = true;
    group_forget(proc);
    stream_close(&proc->out);
    stream_close(&proc->err);
}

static void step_due(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct proc *proc = timer->data;
    double patience = LAUNCH_GRACE;
    if (proc->step == PROC_DIES) {
        proc_leave(proc);
        return;
    }
    if (proc->step == PROC_LEAVES) {
        proc->step = PROC_ENDS;
        proc_signal(proc, SIGTERM);
        proc_signal(proc, SIGCONT);
    } else {
        proc->step = PROC_DIES;
        patience = LAUNCH_ANSWER;
        proc_kill(proc);
    }
    ev_timer_set(timer, patience, 0.);
    ev_timer_start(loop, timer);
}

void proc_retire(struct proc *proc, double patience)
{
    if (!proc->alive || proc->step != PROC_STAYS) return;
    proc->step = PROC_LEAVES;
    proc_signal(proc, SIGCONT);
    ev_timer_set(&proc->next, patience, 0.);
    ev_timer_start(proc->loop, &proc->next);
}

void proc_keep(struct proc *proc)
{
    proc->step = PROC_STAYS;
    ev_timer_stop(proc->loop, &proc->next);
}

bool proc_has(const struct proc *proc, pid_t pid)
{
    return proc->alive && pid > 0 &&
           (pid == proc->pid || getpgid(pid) == proc->pid);
}

void proc_init(struct proc *proc, struct ev_loop *loop, int guard_fd)
{
    proc->loop = loop;
    proc->guard_fd = guard_fd;
    proc->out.fd = proc->err.fd = -1;
    ev_child_init(&proc->child, child_ended, 0, 0);
    ev_timer_init(&proc->sweep, sweep_tick, 0., LAUNCH_SWEEP);
    ev_timer_init(&proc->next, step_due, 0., 0.);
    proc->child.data = proc->sweep.data = proc->next.data = proc;
}

void proc_signal(const struct proc *proc, int number)
{
    if (proc->alive) kill(-proc->pid, number);
}

void proc_kill(struct proc *proc)
{
    if (proc->alive || proc->lingering) kill(-proc->pid, SIGKILL);
}

void proc_free(struct proc *proc)
{
    stream_close(&proc->out);
    stream_close(&proc->err);
    ev_child_stop(proc->loop, &proc->child);
    ev_timer_stop(proc->loop, &proc->sweep);
    ev_timer_stop(proc->loop, &proc->next);
}

static int failure_status(int error)
{
    switch (error) {
    case EAGAIN: /* no more processes */
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return EXIT_FAILURE;
    case ENOENT:
        return EXIT_NOT_FOUND;
    default:
        return EXIT_NOT_EXECUTABLE;
    }
}

static int failure_tell(const struct spawn_request *request, const char *file,
                        const struct spawn_failure *failure, char *error,
                        size_t error_size)
{
    bool missing = file && failure->error == ENOENT && !failure->is_directory &&
                   (!request->directory || *file == '/') &&
                   access(file, F_OK) == 0;
    if (failure->error == EAGAIN)
        lacking_text(error, error_size, request->argv[0], LACKING_PROCESS);
    else
        snprintf(error, error_size, "%s %s: %s%s", failure->what,
                 failure->is_directory ? request->directory : request->argv[0],
                 strerror(failure->error),
                 missing ? " (its interpreter is missing)" : "");
    return failure_status(failure->error);
}

/* A program linked for Open MPI: its ranks would not find each other here. */
static bool foreign_mpi(const struct spawn_request *request, const char *file,
                        char *error, size_t error_size)
{
    char library[32];
    bool relative = *file != '/' && request->directory;
    char *path = relative ? memory_print("%s/%s", request->directory, file)
                          : memory_text(file);
    bool foreign = elf_needs(path, "libmpi.so.40", library, sizeof library);
    free(path);
    if (foreign)
        snprintf(error, error_size,
                 "cannot run %s: it was built with Open MPI (it needs %s), "
                 "whose binary interface no other library has; build it with "
                 "mpicc here or of MPICH, or with mpicc_abi of any MPI that "
                 "has the standard ABI (libmpi_abi.so.1)",
                 request->argv[0], library);
    return foreign;
}

int proc_start(struct proc *proc, const struct proc_request *request,
               char *error, size_t error_size)
{
    struct spawn_request spawn = request->spawn;
    const char *program = spawn.argv[0];
    char *file =
        program_find(program, request->path, rank_env_get(spawn.env, "PATH"));
    if (!file) {
        int status = failure_status(errno);
        snprintf(error, error_size, "cannot execute %s: %s (looked in %sPATH)",
                 program, strerror(errno), request->path ? "-path and " : "");
        return status;
    }
    if (foreign_mpi(&spawn, file, error, error_size)) {
        free(file);
        return EXIT_NOT_EXECUTABLE;
    }
    int out[2] = {-1, spawn.out}, err[2] = {-1, -1};
    struct spawn_failure failure = {.what = "cannot open pipes for"};
    pid_t pid = -1;
    if ((spawn.out >= 0 || descriptor_pipe(out) == 0) &&
        descriptor_pipe(err) == 0) {
        spawn.file = file;
        spawn.out = out[1];
        spawn.err = err[1];
        spawn.guard_fd = proc->guard_fd;
        pid = spawn_process(&spawn, &failure);
    } else {
        failure.error = errno;
    }
    if (request->spawn.out < 0 && out[1] >= 0) close(out[1]);
    if (err[1] >= 0) close(err[1]);
    int status = 0;
    if (pid > 0) {
        proc->pid = pid;
        proc->alive = true;
        proc->news = proc->lingering = proc->left = false;
        ev_timer_stop(proc->loop, &proc->sweep);
        if (out[0] >= 0)
            stream_open(&proc->out, request->out_sink, out[0], request->name,
                        false);
        stream_open(&proc->err, request->err_sink, err[0], request->name, true);
        ev_child_set(&proc->child, pid, 0);
        ev_child_start(proc->loop, &proc->child);
    } else {
        if (out[0] >= 0) close(out[0]);
        if (err[0] >= 0) close(err[0]);
        status = failure_tell(&spawn, file, &failure, error, error_size);
    }
    free(file);
    return status;
}
