/* ettr.h - what the parts of `pccl-bench ettr` share: see bench_ettr.c. */
#ifndef PCCL_BENCH_ETTR_H
#define PCCL_BENCH_ETTR_H

#include "churn.h"

enum { ETTR_WARM = 5 }; /* steps before a run is measured */

struct ettr_options {
    const char *kinds;
    double seconds, every;    /* of a kind; between two of its faults */
    double deadline, compute; /* seconds */
    int members;
    size_t bytes; /* of a sum */
    uint64_t seed;
    const char *keep, *check;
    enum churn_fault kind; /* of the run under way */
};

/* A run: its coordinator and members. Only one of two that run side by side
 * has faults. */
struct ettr_job {
    const struct ettr_options *o;
    bool faulty, has_net;
    char folder[CHURN_PATH], address[40];
    struct churn_board *board;
    struct churn_history log; /* faults.hist */
    struct churn_net net;
    pid_t master;
    struct churn_child child[CHURN_SLOTS];
    uint64_t random;
    int64_t begin;        /* of what is measured; 0: not yet */
    int64_t at, until;    /* the next fault; the end of the one under way */
    int64_t begun;        /* of the one under way; 0: none */
    uint64_t faults;      /* that have begun */
    uint64_t planned;     /* ... that are to begin */
    int victim, newcomer; /* slots; -1: none */
};

struct ettr_seat {
    const struct ettr_options *o;
    struct churn_board *board;
    const char *folder, *address;
    uint32_t n;
};

/* A member until the run is over or it is to leave. */
_Noreturn void ettr_member(const struct ettr_seat *seat);

/* False: why is on standard error. */
bool ettr_job_start(struct ettr_job *j, const char *root);
/* Whether all members have made their first steps. */
bool ettr_job_warm(const struct ettr_job *j);
/* Begins faults that are due, ends them, and replaces who is gone. */
void ettr_job_tick(struct ettr_job *j);
/* Ends the run and waits for its processes. */
void ettr_job_end(struct ettr_job *j);

struct ettr_figures {
    uint64_t faults, steps, faultless; /* steps beside, without faults */
    double seconds;
    struct churn_samples lost; /* seconds per fault */
};

/* Checks the histories of both runs, and compares them. What is wrong with them
 * is a violation. */
void ettr_check(const char *folder, struct ettr_figures *f,
                struct churn_totals *to);

int bench_ettr(int argc, char **argv);

#endif
