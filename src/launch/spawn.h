/* spawn.h - starts one process: fork, a few async-signal-safe calls, exec. */
#ifndef PCCL_LAUNCH_SPAWN_H
#define PCCL_LAUNCH_SPAWN_H

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct spawn_request {
    const char *file;  /* as found by spawn_find */
    char *const *argv; /* NULL-terminated */
    int argc;
    char *const *env;
    const char *directory; /* NULL: ours */
    int in, out, err;      /* become 0, 1, 2 */
    int guard_fd;
    const cpu_set_t *cpus; /* bound to these, or NULL */
    bool ignore_hangup;    /* we run under nohup */
    struct rlimit files;   /* descriptor limit to give back */
};

struct spawn_failure {
    const char *what; /* "cannot execute", "cannot enter", ... */
    bool is_directory;
    int error; /* errno */
};

/* The new process leads a process group of its own and dies with us. Returns
 * when it executes the program; -1 with the failure when it never did. */
pid_t spawn_process(const struct spawn_request *request,
                    struct spawn_failure *failure);

/* The file to execute for a program: itself when it has a slash, otherwise
 * the first executable of that name in first (may be NULL), then in path.
 * Owned by the caller; NULL with errno when there is none. */
char *spawn_find(const char *program, const char *first, const char *path);

#endif
