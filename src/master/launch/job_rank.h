/* job_rank.h - inside of job.h: one rank as a process with its streams. */
#ifndef PCCL_LAUNCH_JOB_RANK_H
#define PCCL_LAUNCH_JOB_RANK_H

#include "input.h"
#include "job.h"

enum { JOB_SIGNALS = 8 };

struct rank {
    struct job *job;
    const struct app *app;
    uint32_t index;
    pid_t pid;      /* also its process group; the last one's when dead */
    bool alive;     /* started and not reaped */
    bool good;      /* ended with status 0 */
    bool news;      /* ended, and settle() has not seen it */
    bool lingering; /* dead, but its process group is not empty */
    int wait_status;
    struct stream out, err;
    ev_child child;
    ev_timer sweep; /* after the end: what it left behind */
    ev_tstamp sweep_until;
    ev_timer respawn;
    ev_tstamp started;
    double delay; /* s before the next respawn; 0 before the first */
    int respawns; /* in a row */
};

struct job {
    struct job_setup setup;
    struct rank *ranks;
    uint32_t count;
    char host[HOST_SIZE];
    struct input input;
    char **files; /* per app, what is executed */
    int null_fd;
    bool ending; /* decided; ranks get SIGTERM, then SIGKILL */
    int status;
    int first_failure; /* status, 0: none yet */
    int interrupts;
    ev_prepare settle;
    ev_timer killer, timeout;
    ev_timer blame; /* until the rank whose loss made another one give up */
    ev_signal signals[JOB_SIGNALS];
};

/* 0, or the exit status of a job that could not start; some may run then. */
int ranks_start(struct job *job);
void ranks_stop(struct job *job);

/* Nothing of it is left: process, group, output, plans. */
bool rank_is_gone(const struct rank *rank);
/* Kills what is left of it, at once. */
void rank_kill(struct rank *rank);

/* job.c: SIGTERM now, SIGKILL after the grace; only the first call counts. */
void job_end(struct job *job, int status);

#endif
