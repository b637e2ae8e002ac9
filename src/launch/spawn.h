/* spawn.h - starts one process: fork, a few async-signal-safe calls, exec. */
#ifndef PCCL_LAUNCH_SPAWN_H
#define PCCL_LAUNCH_SPAWN_H

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct spawn_request {
    const char *file;  /* as found by program_find */
    char *const *argv; /* NULL-terminated */
    int argc;
    char *const *env;
    const char *directory; /* NULL: ours */
    int in, out, err;      /* become 0, 1, 2 */
    int guard_fd;
    const cpu_set_t *cpus; /* processors to bind to, or NULL */
    bool ignore_hangup;    /* this process runs under nohup */
    struct rlimit files;   /* descriptor limit to restore */
};

struct spawn_failure {
    const char *what; /* "cannot execute", "cannot enter", ... */
    bool is_directory;
    int error; /* errno */
};

/* The new process leads its own process group and is killed when we die.
 * Returns when it has executed the program; -1 with the failure if it could
 * not. */
pid_t spawn_process(const struct spawn_request *request,
                    struct spawn_failure *failure);

#endif
