/* job_restart.c - when a job is started again as a whole (--restart), and how
 * the start that follows begins. launch.c makes a new job for each start, with
 * a coordinator of its own, when all processes of the former one are gone. */
#include "job_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An agent that has lost us ends its ranks when it notices. Until then they
 * might write to files of the next start. */
#define HOST_FENCE (LINK_SILENCE + 2 * LINK_HEARTBEAT)

static bool may_restart(const struct job *job)
{
    return job->setup.restart < job->setup.options->restarts && !job->final &&
           !job->setup.out->broken && !job->setup.err->broken;
}

double job_pause(const struct job *job)
{
    const struct options *options = job->setup.options;
    if (options->has_pause) return options->restart_pause;
    if (job->host_lost_at == 0) return RESTART_PAUSE;
    double left = job->host_lost_at + HOST_FENCE - ev_now(job->setup.loop);
    return left > RESTART_PAUSE ? left : RESTART_PAUSE;
}

void job_fail(struct job *job, int status, const char *text)
{
    const struct options *options = job->setup.options;
    struct sink *err = job->setup.err;
    if (job->ending) return;
    job->again = may_restart(job);
    char when[32] = "";
    if (job_pause(job) > 0)
        snprintf(when, sizeof when, " in %.3g s", job_pause(job));
    if (job->again)
        job_message(err, "%s starting the job again%s, restart %u of %u", text,
                    when, job->setup.restart + 1, options->restarts);
    else if (job->setup.restart > 0 && !job->final)
        job_message(err, "%s ending the job after %u restart%s", text,
                    job->setup.restart, job->setup.restart == 1 ? "" : "s");
    else
        job_message(err, "%s ending the job", text);
    job_end(job, status);
}

void job_no_restart(struct job *job)
{
    if (job->again && !job->final)
        job_message(job->setup.err,
                    "interrupted; the job does not start again");
    job->final = true;
}

enum job_next job_next(const struct job *job)
{
    if (job->final) return JOB_OVER;
    if (job->unreached) return JOB_WITHOUT_HOSTS;
    bool lost = job->setup.out->broken || job->setup.err->broken;
    return job->again && !lost ? JOB_AGAIN : JOB_OVER;
}

void job_resume(struct job *job)
{
    if (job->ending) return;
    job_wait(job, JOB_REACH, RESTART_REACH);
    if (!hosts_open(job)) job_end(job, EXIT_FAILURE);
}

void job_open(struct job *job)
{
    if (job->setup.restart > 0)
        job_wait(job, JOB_PAUSE, job->setup.pause);
    else if (!hosts_open(job))
        job_end(job, EXIT_FAILURE);
}
