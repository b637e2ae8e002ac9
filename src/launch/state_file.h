/* state_file.h - the state file of a detached job: lines that its launcher has
 * added, of which no other user may be the author. */
#ifndef PCCL_LAUNCH_STATE_FILE_H
#define PCCL_LAUNCH_STATE_FILE_H

#include "launch_base.h"

#define STATE_HEAD "pccl-master state 1"
#define STATE_PREFIX "pccl-master."
#define STATE_SUFFIX ".state"

/* What tells a process from a later one of its number: when it began, and in
 * which life of the host. */
struct identity {
    int pid;
    unsigned long long began;
    char boot[40];
};

/* What the file of a job says. */
struct state {
    struct identity launcher;
    bool ended;
    int status;
};

/* False: it does not run. */
bool identity_of(int pid, struct identity *who);
/* Whether it is still that process. */
bool identity_runs(const struct identity *who);

/* Each false: a line for the user is in `line`, of MESSAGE_SIZE bytes. */
bool state_read(const char *file, struct state *s, char *line);
/* The only one in XDG_RUNTIME_DIR; `path` has PATH_MAX bytes. */
bool state_find(char *path, char *line);
/* Writes the line; always false. */
__attribute__((format(printf, 2, 3))) bool state_fault(char *line,
                                                       const char *format, ...);

#endif
