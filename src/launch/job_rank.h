/* job_rank.h - inside of job.h: ranks and the hosts they run on. */
#ifndef PCCL_LAUNCH_JOB_RANK_H
#define PCCL_LAUNCH_JOB_RANK_H

#include "input.h"
#include "job.h"
#include "remote.h"

enum { JOB_SIGNALS = 8 };

/* A host with ranks. */
struct host {
    struct job *job;
    const char *name;
    struct remote *remote; /* NULL: this host */
    bool ready;            /* its ranks can be started */
    bool lost;
    char *master; /* HOST:PORT of the coordinator from there, ours */
};

struct rank {
    struct job *job;
    const struct app *app;
    struct host *host;
    struct proc proc; /* of a remote one only the state */
    uint32_t index;
    uint32_t local;  /* number among the ranks of its host */
    bool good;       /* ended with status 0 */
    bool spare;      /* waits to take the place of a dead one */
    bool dismissed;  /* a spare that is not needed any more */
    bool newcomer;   /* the process joined, or will join, a running job */
    bool host_lost;  /* it ended because its host did */
    bool closing[2]; /* its host knows that our output, errors, are closed */
    ev_timer respawn;
    ev_tstamp started;
    double delay; /* s before the next respawn; 0 before the first */
    int respawns; /* in a row */
    struct input_target input;
};

struct job {
    struct job_setup setup;
    struct rank *ranks;
    uint32_t count; /* spares included */
    struct placement placement;
    struct host *hosts;
    uint32_t host_count;
    struct bind_machine machine;
    char host[HOST_SIZE];
    struct input input;
    int null_fd;
    bool started; /* the ranks were started, or that was tried */
    bool ending;  /* decided; ranks get SIGTERM, then SIGKILL */
    int status;
    int first_failure; /* status, 0: none yet */
    int interrupts;
    ev_prepare settle;
    ev_timer killer, timeout;
    ev_timer blame;  /* until the rank whose loss made another one give up */
    ev_timer answer; /* until hosts say that killed ranks are gone */
    ev_timer leave;  /* for agents that take long to end */
    ev_signal signals[JOB_SIGNALS];
};

/* Makes hosts and ranks; calls the hosts that are not this one. False when
 * that failed, which has been printed. */
bool hosts_open(struct job *job);
/* All can start ranks; decides how each finds the coordinator. */
bool hosts_are_ready(struct job *job);
/* After every turn. */
void hosts_settle(struct job *job);
/* Nothing is left of the agents; asks them to end. */
bool hosts_are_gone(struct job *job);
/* Those that have not said that their killed ranks are gone count as lost. */
void hosts_give_up(struct job *job);
void hosts_close(struct job *job);

/* 0, or the exit status of a job that could not start; some may run then. */
int ranks_start(struct job *job);
void ranks_stop(struct job *job);

void rank_signal(struct rank *rank, int number);
/* Starts a dead one again. False when there is no host for it. */
bool rank_restart(struct rank *rank);
/* A spare takes part from now on. */
void rank_release(struct rank *rank);
/* Its process has ended: what waits for it is let go. */
void rank_ended(struct rank *rank);

/* Nothing of it is left: process, group, output, plans. */
bool rank_is_gone(const struct rank *rank);
/* Kills what is left of it, at once. */
void rank_kill(struct rank *rank);

/* job.c: one that is to take the place of a dead one could not be started. */
void rank_not_started(struct rank *rank);

/* job.c: SIGTERM now, SIGKILL after the grace; only the first call counts. */
void job_end(struct job *job, int status);

#endif
