/* proc.h - a process that we started: its group, its output, and what it
 * leaves behind. Used for ranks, by the launcher and by agents on other hosts,
 * and for the commands that start those agents. */
#ifndef PCCL_LAUNCH_PROC_H
#define PCCL_LAUNCH_PROC_H

#include "forward.h"
#include "spawn.h"

struct proc {
    struct ev_loop *loop; /* the default loop: child watchers need it */
    int guard_fd;
    pid_t pid;      /* also its process group; the last one's when dead */
    bool alive;     /* started and not reaped */
    bool news;      /* ended, and whoever looks after it has not seen it */
    bool lingering; /* dead, but its process group is not empty */
    int wait_status;
    struct stream out, err;
    ev_child child;
    ev_timer sweep; /* after the end: what it left behind */
    ev_tstamp sweep_until;
};

struct proc_request {
    const char *path;  /* searched before the PATH of env, or NULL */
    char *const *argv; /* NULL-terminated */
    int argc;
    char *const *env;
    const char *directory;
    int in;  /* becomes its input; stays the caller's */
    int out; /* its output, or -1: a pipe to proc->out, which is open then */
    const cpu_set_t *cpus; /* or NULL */
    struct sink *out_sink, *err_sink;
    const struct stream_name *name;
    bool ignore_hangup;
    struct rlimit files;
};

void proc_init(struct proc *proc, struct ev_loop *loop, int guard_fd);

/* 0; or the exit status for the failure, which is described in error. */
int proc_start(struct proc *proc, const struct proc_request *request,
               char *error, size_t error_size);

/* To its whole process group. */
void proc_signal(const struct proc *proc, int number);
/* Kills what is left of it, at once. */
void proc_kill(struct proc *proc);
/* Nothing of it is left: process, group, output. */
bool proc_is_gone(const struct proc *proc);
/* Stops watching. */
void proc_free(struct proc *proc);

#endif
