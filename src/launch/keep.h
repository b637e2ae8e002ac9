/* keep.h - what a keeper (keeper.h) and the launchers whose ranks it keeps have
 * in common: memory that both see, and a socket of each launcher.
 *
 * The launcher sends wishes. The keeper shows in the memory how each rank is,
 * and rings by a byte. What the launcher has decided is noted there after each
 * turn, and before each signal to a rank: so the next one, which is forked from
 * the keeper, goes on from there. Each field has one writer. */
#ifndef PCCL_LAUNCH_KEEP_H
#define PCCL_LAUNCH_KEEP_H

#include "launch_base.h"

#include <stdatomic.h>

enum keep_state {
    KEEP_NONE,
    KEEP_FAILED, /* its process could not be started; the reason is printed */
    KEEP_RUNS,
    KEEP_ENDED, /* but not all of its process group and output */
    KEEP_GONE
};

struct keep_rank {
    /* The keeper's. All but `word` is valid from when `word` says so: the
     * number of the rank's start, 0 for none, and its state. */
    _Atomic uint32_t word;
    int pid, wait_status; /* KEEP_FAILED: the exit status for the job */
    uint32_t restart;     /* start of the job that it belongs to */
    bool newcomer;
    bool released; /* a spare that takes part */
    bool aborts;   /* it has said why it ended the job */
    /* The launcher's. */
    uint32_t handled; /* the start whose end it has handled */
    bool good, dismissed, drained;
    bool respawns; /* a new start is due */
    int respawn_count;
    double delay, started;
};

static inline uint32_t keep_word(uint32_t start, enum keep_state state)
{
    return start << 8 | (uint32_t)state;
}
static inline uint32_t keep_start_of(uint32_t word)
{
    return word >> 8;
}
static inline enum keep_state keep_state_of(uint32_t word)
{
    return (enum keep_state)(word & 0xff);
}

/* The launcher's, see struct job. */
struct keep_job {
    bool noted; /* there was a launcher */
    uint32_t restart;
    bool ending, again, final, aborted, told;
    int abort_code, abort_rank, status, first_failure, interrupts;
};

struct keep_table {
    struct keep_job job;
    /* The keeper's: */
    double begun;     /* time of the first start of the job */
    uint32_t grace;   /* s for which the ranks wait for a launcher */
    bool late;        /* none has come in time: this one ends the job */
    _Atomic int lost; /* output was lost */
    uint32_t count;
    struct keep_rank ranks[];
};

enum keep_wish_kind {
    KEEP_START,
    KEEP_SIGNAL, /* to its process group, if it runs */
    KEEP_KILL,   /* what is left of it */
    KEEP_RELEASE /* a spare */
};

struct keep_wish {
    uint32_t kind, rank;
    uint32_t number; /* of the signal, or of the start of the job */
    bool newcomer, spare;
};

/* A launcher's end of it. */
struct keep {
    struct keep_table *table; /* NULL: the ranks are the launcher's own */
    int fd;
    bool lost; /* the keeper is dead, and the ranks with it */
};

#endif
