/* guard.h - a second process that kills the ranks' process groups after the
 * launcher was killed. The parent-death signal ends the ranks themselves; the
 * guard also ends processes that a wrapper script started. */
#ifndef PCCL_LAUNCH_GUARD_H
#define PCCL_LAUNCH_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

struct guard {
    pid_t pid;
    int fd; /* close-on-exec; its last copy closes with the launcher */
};

/* Forks; call before there are threads, loops or ranks. False: it cannot, and
 * has said why. */
bool guard_start(struct guard *guard);

/* Registers a process group; async-signal-safe, so that a rank can register
 * itself before it executes a program. */
void guard_add(int fd, pid_t group);
void guard_remove(int fd, pid_t group);

/* Ends the guard, which kills the groups that are still registered. */
void guard_stop(struct guard *guard);

#endif
