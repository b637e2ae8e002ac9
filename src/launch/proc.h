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
    bool left;      /* it could not be ended: nobody waits for it any more */
    int wait_status;
    struct stream out, err;
    ev_child child;
    ev_timer sweep; /* after the end: checks for remaining processes */
    ev_tstamp sweep_until;
    enum proc_step { PROC_STAYS, PROC_LEAVES, PROC_ENDS, PROC_DIES } step;
    ev_timer next; /* step */
};

struct proc_request {
    /* Without file, err and guard_fd. The caller keeps its input open; the
     * output may be -1: a pipe that proc->out reads. */
    struct spawn_request spawn;
    const char *path; /* searched before the PATH of env, or NULL */
    struct sink *out_sink, *err_sink;
    const struct stream_name *name;
};

void proc_init(struct proc *proc, struct ev_loop *loop, int guard_fd);

/* Returns 0, or the exit status for a failure with its text in error. */
int proc_start(struct proc *proc, const struct proc_request *request,
               char *error, size_t error_size);

/* Signals its whole process group. */
void proc_signal(const struct proc *proc, int number);
/* Ends it: it is continued, and has `patience` to end by itself; then SIGTERM,
 * SIGKILL, and it is left. */
void proc_retire(struct proc *proc, double patience);
/* It stays after all. */
void proc_keep(struct proc *proc);
/* Nobody waits for it any more; counts as killed. */
void proc_leave(struct proc *proc);
/* Whether the process with that number is it, or one of its group. */
bool proc_has(const struct proc *proc, pid_t pid);
/* Kills all remaining processes at once. */
void proc_kill(struct proc *proc);
/* Whether process, group and output are gone. */
bool proc_is_gone(const struct proc *proc);
/* Stops watching. */
void proc_free(struct proc *proc);

#endif
