/* proc.h - a started process: its process group, its output, and remaining
 * children. For ranks (in the launcher and in agents) and for the commands that
 * start agents. */
#ifndef PCCL_LAUNCH_PROC_H
#define PCCL_LAUNCH_PROC_H

#include "forward.h"
#include "spawn.h"

struct proc {
    struct ev_loop *loop; /* the default loop: child watchers need it */
    int guard_fd;
    pid_t pid;      /* also its process group; still set after its death */
    bool alive;     /* started and not reaped */
    bool news;      /* it has ended, and its owner has not handled that yet */
    bool lingering; /* dead, but its process group is not empty */
    int wait_status;
    struct stream out, err;
    ev_child child;
    ev_timer sweep; /* after the end: checks for remaining processes */
    ev_tstamp sweep_until;
};

struct proc_request {
    const char *path;  /* searched before the PATH of env, or NULL */
    char *const *argv; /* NULL-terminated */
    int argc;
    char *const *env;
    const char *directory;
    int in;                /* its input; the caller keeps it open */
    int out;               /* its output, or -1: a pipe that proc->out reads */
    const cpu_set_t *cpus; /* or NULL */
    struct sink *out_sink, *err_sink;
    const struct stream_name *name;
    bool ignore_hangup;
    struct rlimit files;
};

void proc_init(struct proc *proc, struct ev_loop *loop, int guard_fd);

/* Returns 0, or the exit status for a failure with its text in error. */
int proc_start(struct proc *proc, const struct proc_request *request,
               char *error, size_t error_size);

/* Signals its whole process group. */
void proc_signal(const struct proc *proc, int number);
/* Kills all remaining processes at once. */
void proc_kill(struct proc *proc);
/* Whether process, group and output are gone. */
bool proc_is_gone(const struct proc *proc);
/* Stops watching. */
void proc_free(struct proc *proc);

#endif
