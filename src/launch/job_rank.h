/* job_rank.h - internal header of job*.c. */
#ifndef PCCL_LAUNCH_JOB_RANK_H
#define PCCL_LAUNCH_JOB_RANK_H

#include "input.h"
#include "job.h"
#include "remote.h"

enum { JOB_SIGNALS = 8 };

enum job_timer {
    JOB_KILLER,  /* from SIGTERM to SIGKILL */
    JOB_TIMEOUT, /* --timeout */
    JOB_BLAME,   /* wait for the rank whose loss made another one give up */
    JOB_ANSWER,  /* wait until hosts confirm that killed ranks are gone */
    JOB_LEAVE,   /* wait for agents to end */
    JOB_PAUSE,   /* before a restart */
    JOB_REACH,   /* until all hosts of a restart must have answered */
    JOB_TIMERS
};

/* A host with ranks. */
struct host {
    struct job *job;
    const char *name, *shown; /* as the user gave it; in messages */
    struct remote *remote;    /* NULL: this host */
    bool ready;               /* its ranks can start */
    bool lost;
    char *master; /* HOST:PORT of the coordinator as seen from there; owned */
};

struct rank {
    struct job *job;
    const struct app *app;
    struct host *host;
    struct proc proc; /* of a remote rank only the state */
    uint32_t index;
    uint32_t local; /* number among the ranks of its host */
    bool good;      /* ended with status 0 */
    bool spare;     /* waits to replace a dead rank */
    bool dismissed; /* a spare that is no longer needed */
    bool newcomer;  /* joins, or will join, a running job */
    bool drained;   /* it was asked to leave */
    bool host_lost; /* it ended because its host did */
    bool evicted;   /* by the coordinator, so it ends (M10g) */
    bool cut;       /* its process has not left the run, and has ended (M10h) */
    uint64_t host_id; /* of its host (host_id.h); 0: not known yet */
    pid_t peer;       /* the last of its processes that took part, or 0 */
    bool closing[2];  /* its host knows that our output or errors are closed */
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
    bool evicts;    /* a process was to be ended (M10g), perhaps by an agent */
    struct placement placement;
    struct host *hosts;
    uint32_t host_count;
    struct bind_machine machine;
    char host[HOST_SIZE];
    struct input input;
    int null_fd;
    bool started;   /* starting was attempted */
    bool ending;    /* the job is ending; ranks get SIGTERM, then SIGKILL */
    bool again;     /* ... and is to be started again */
    bool final;     /* no further start: interrupted, or out of time */
    bool unreached; /* this restart lacks hosts */
    ev_tstamp host_lost_at; /* a host with ranks was lost, or 0 */
    bool aborted;           /* by a rank; code and rank: */
    bool told;              /* how the ranks ended */
    bool unfinished;        /* a rank was `cut`, and ended with status 0 */
    uint32_t lost;          /* ranks that died, and the job went on */
    int abort_code, abort_rank;
    int status;
    int first_failure; /* status, 0: none yet */
    int interrupts;
    ev_prepare settle;
    ev_timer timers[JOB_TIMERS];
    ev_signal signals[JOB_SIGNALS];
};

/* Makes hosts and ranks, and connects to remote hosts. False: failed, and the
 * error was printed. */
bool hosts_open(struct job *job);
/* Whether all can start ranks; selects the coordinator's address for each. */
bool hosts_are_ready(struct job *job);
/* Whether each is ready or lost. */
bool hosts_are_known(const struct job *job);
/* Hosts that are not ready count as lost. */
void hosts_give_up_late(struct job *job);
/* After every turn. */
void hosts_settle(struct job *job);
/* Whether all agents are gone; asks them to end. */
bool hosts_are_gone(struct job *job);
/* Hosts that have not confirmed the end of their killed ranks count as lost. */
void hosts_give_up(struct job *job);
void hosts_close(struct job *job);

/* Returns 0, or the exit status of a job that could not start (some ranks may
 * run then). */
int ranks_start(struct job *job);
/* Returns 0, or the exit status for a failure that was printed. */
int rank_start(struct rank *rank);
void ranks_stop(struct job *job);

void rank_signal(struct rank *rank, int number);
/* Starts a dead rank again. False: no host for it. */
bool rank_restart(struct rank *rank);
/* Releases a spare, which joins the job. */
void rank_release(struct rank *rank);
/* --report-bindings: the list of its processors, or "". */
void rank_report_binding(const struct rank *rank, const char *processors);
/* Its process has ended: wakes its waiters. */
void rank_ended(struct rank *rank);

/* Whether process group, output and timers are gone. */
bool rank_is_gone(const struct rank *rank);
/* Kills its remaining processes at once. */
void rank_kill(struct rank *rank);

/* job.c: a replacement for a dead rank could not be started. */
void rank_not_started(struct rank *rank);

/* job.c: starts a timer, unless it runs. */
void job_wait(struct job *job, enum job_timer which, double seconds);

/* job.c: SIGTERM now, SIGKILL after the grace; only the first call counts. */
void job_end(struct job *job, int status);

/* job_drain.c: all ranks have got this signal. */
void job_drained(struct job *job, int number);

/* job_watch.c: after every turn. */
void job_watch(struct job *job);
/* Ranks were lost under a program that has not said that it bears it (E9), and
 * that is the worst of it. */
bool job_is_in_doubt(const struct job *job);

/* job_restart.c: a failure of ranks ends the job, or this start of it; `text`
 * has the reason, up to the ';' or ','. */
void job_fail(struct job *job, int status, const char *text);
/* A signal to the launcher, or --timeout: there is no further start. */
void job_no_restart(struct job *job);
/* Begins a start of the job, at once or after the pause. */
void job_open(struct job *job);
/* Its pause is over. */
void job_resume(struct job *job);

#endif
