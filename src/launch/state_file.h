/* state_file.h - the state file of a detached job: lines that its launcher has
 * added, of which no other user may be the author. It is locked (flock) as long
 * as the launcher lives. */
#ifndef PCCL_LAUNCH_STATE_FILE_H
#define PCCL_LAUNCH_STATE_FILE_H

#include "launch_base.h"

#define STATE_HEAD "pccl-master state 1"
#define STATE_PREFIX "pccl-master."
#define STATE_SUFFIX ".state"

/* What the file of a job says. */
struct state {
    int launcher; /* process id */
    bool runs;    /* it has the lock of the file, which ends with the process */
    bool ended;
    int status;
};

/* Each false: a line for the user is in `line`, of MESSAGE_SIZE bytes. */
bool state_read(const char *file, struct state *s, char *line);
/* The only one in XDG_RUNTIME_DIR; `path` has PATH_MAX bytes. */
bool state_find(char *path, char *line);
/* Writes the line; always false. */
__attribute__((format(printf, 2, 3))) bool state_fault(char *line,
                                                       const char *format, ...);

#endif
