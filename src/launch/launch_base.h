/* launch_base.h - limits and times of the launcher, and allocation that exits
 * on failure. */
#ifndef PCCL_LAUNCH_BASE_H
#define PCCL_LAUNCH_BASE_H

#include "../base/address.h"
#include "../base/base.h"

#include <signal.h>

#define LAUNCH_GRACE 1.0  /* s from SIGTERM to SIGKILL */
#define LAUNCH_ANSWER 3.0 /* s for a host to confirm SIGKILL */
#define LAUNCH_QUIET 0.05 /* s until a part of a line goes to a terminal */
#define LAUNCH_SWEEP                                                           \
    0.02             /* s between checks for remaining processes of a rank */
#define RUN_LOOK 0.5 /* s between checks whether a run is over */
#define RUN_PATIENCE 300.0     /* s for the first peer to connect */
#define RESTART_PAUSE 1.0      /* s before a job starts again */
#define RESTART_REACH 30.0     /* s for its hosts to answer then */
#define RESPAWN_DELAY_MIN 0.1  /* s before the first respawn */
#define RESPAWN_DELAY_MAX 10.0 /* s; the delay doubles up to here */
#define RESPAWN_HEALTHY 10.0   /* s of life after which the delay resets */

#define DRAIN_SIGNAL SIGURG /* nothing happens where nobody handles it */

enum {
    RANKS_MAX = PEERS_MAX,
    LINE_SIZE = 64 * 1024,     /* longest line forwarded in one piece */
    SINK_SIZE = 4 * LINE_SIZE, /* largest output pending for our reader */
    FILE_SIZE = 2 * LINE_SIZE, /* ... by a file of a rank */
    STAMP_SIZE = 48,           /* of a time of day */
    MESSAGE_SIZE = 1024,       /* one line of the launcher */
    MESSAGE_RESERVE =
        LINE_SIZE, /* of SINK_SIZE, for lines of the launcher only */
    RESTARTS_MAX = 1000000,
    RESPAWNS_MAX = 16, /* in a row, without RESPAWN_HEALTHY */
    EXIT_USAGE = 2,
    EXIT_IN_DOUBT = 75, /* EX_TEMPFAIL of sysexits.h: rule E9 */
    EXIT_AFTER_LOSS =
        101, /* MPIX_ERR_PROC_FAILED: the rank is a victim of a loss */
    EXIT_TIMEOUT = 124,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128, /* plus the number of the signal */
};

/* "pccl-master: ..." to the standard error. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* Zeroed memory. Without memory the program ends with a message, and its ranks
 * with it. */
void *memory_get(size_t count, size_t size);
void *memory_grow(void *old, size_t count, size_t size);
char *memory_text(const char *text);
__attribute__((format(printf, 1, 2))) char *memory_print(const char *format,
                                                         ...);
/* libev takes its memory so, too; otherwise it aborts. */
void memory_for_loops(void);

#endif
