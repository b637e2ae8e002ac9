/* job_drain.c - ranks that are asked to leave at their next safe point. */
#include "job_rank.h"

#include "../base/decimal.h"
#include "../base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int job_drain_signal(const struct options *options)
{
    int number = env_drain_signal();
    return !options->elastic ? 0 : number ? number : DRAIN_SIGNAL;
}

static bool is_meant(const struct rank *rank, const char *what)
{
    uint64_t number;
    if (number_parse(what, UINT64_MAX, &number)) return rank->index == number;
    const char *host = rank->host->shown;
    size_t bare = strcspn(host, "@");
    return strcmp(host, what) == 0 ||
           (host[bare] && strcmp(host + bare + 1, what) == 0) ||
           (!rank->host->remote && host_is_local(what));
}

void job_drained(struct job *job, int number)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (number == job_drain_signal(job->setup.options) && number)
            job->ranks[i].drained |= job->ranks[i].proc.alive;
}

static void drain(struct job *job, const char *what, char *answer, size_t size)
{
    int number = job_drain_signal(job->setup.options);
    uint32_t count = 0;
    if (number == 0) {
        snprintf(answer, size, "-the job is not elastic: no rank can leave it");
        return;
    }
    for (uint32_t i = 0; i < job->count && job->started; i++) {
        struct rank *rank = &job->ranks[i];
        if (rank->spare || !rank->proc.alive || !is_meant(rank, what)) continue;
        rank->drained = true;
        rank_signal(rank, number);
        count++;
    }
    if (count == 0) {
        snprintf(answer, size, "-%s is no rank and no host of the job", what);
        return;
    }
    snprintf(answer, size, "+%u rank%s will leave at the next update", count,
             count == 1 ? "" : "s");
    job_message(job->setup.err, "%s is drained: %s", what, answer + 1);
}

void job_request(struct job *job, const char *text, char *answer, size_t size)
{
    static const char word[] = "drain ";
    if (job && strncmp(text, word, sizeof word - 1) == 0)
        drain(job, text + sizeof word - 1, answer, size);
    else
        snprintf(answer, size, "-no job runs, or it does not know that");
}
