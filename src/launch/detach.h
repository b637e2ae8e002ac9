/* detach.h - a job that outlives the terminal in which it was started: its
 * state file, and a process that follows it.
 *
 * The launcher of a detached job is a session of its own. It writes to files
 * what the ranks write; FILE has its process and, in the end, its exit status.
 * Whoever attaches looks on, and may come and go. */
#ifndef PCCL_LAUNCH_DETACH_H
#define PCCL_LAUNCH_DETACH_H

#include "launch_base.h"

#include <stdio.h>
#include <sys/types.h>

struct detached {
    int fd;   /* the state file, or -1: the job is not detached */
    int told; /* whoever detached it waits there for detach_tell() */
    char *path;
};

enum detach_result { DETACH_FAILED, DETACH_PARENT, DETACH_CHILD };

/* Forks. In the parent a line for the user is in `line`, also if it failed; the
 * child goes on, and calls detach_tell(). file: NULL for one in
 * XDG_RUNTIME_DIR. */
enum detach_result detach_begin(struct detached *d, const char *file,
                                char line[static MESSAGE_SIZE]);
/* This process is the launcher: in the state file, and to the parent, which
 * returns then. */
void detach_tell(struct detached *d);
void detach_end(struct detached *d);
/* Adds a line to the state file; nothing for a job that is not detached. */
__attribute__((format(printf, 2, 3))) void detach_note(const struct detached *d,
                                                       const char *format, ...);

/* Copies the output of that job here until it has ended; file: NULL for the
 * only one in XDG_RUNTIME_DIR. Returns its exit status; or EXIT_FAILURE with a
 * line for the user, which is empty otherwise. */
int detach_follow(const char *file, char line[static MESSAGE_SIZE]);

#endif
