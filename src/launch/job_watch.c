/* job_watch.c - jobs that would not end by themselves, or not soon; and who
 * says why a rank ended the job. */
#include "../base/traits.h"
#include "../master/server/master_server.h"
#include "job_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* The first view needs all ranks, and one has ended without coming to it. Only
 * where others have come: a program without MPI waits for nobody. */
static const struct rank *never_came(const struct job *job)
{
    const struct options *options = job->setup.options;
    struct master_server *server = job->setup.server;
    if (!server || options->elastic || options->quorum) return NULL;
    if (master_server_members(server) > 0 || master_server_has_ended(server) ||
        master_server_pending(server) == 0)
        return NULL;
    for (uint32_t i = 0; i < job->count; i++)
        if (job->ranks[i].good) return &job->ranks[i];
    return NULL;
}

/* Only ranks of hosts that do not answer are left, and the members are gone. */
static void leave_silent_hosts(struct job *job)
{
    struct master_server *server = job->setup.server;
    bool silent = false;
    if (!server || !master_server_has_ended(server)) return;
    for (uint32_t i = 0; i < job->count; i++) {
        const struct rank *rank = &job->ranks[i];
        if (!rank->proc.alive || rank->spare) continue;
        if (!rank->host->remote || !remote_is_silent(rank->host->remote))
            return;
        silent = true;
    }
    for (uint32_t i = 0; silent && i < job->host_count; i++) {
        struct host *host = &job->hosts[i];
        if (host->remote && !host->lost && remote_is_silent(host->remote))
            remote_give_up(host->remote);
    }
}

/* A rank that ended the job has usually said why, on its errors. */
static void tell_abort(const struct job *job)
{
    char line[MESSAGE_SIZE];
    if (!job->aborted) return;
    for (uint32_t i = 0; i < job->count; i++)
        if (job->ranks[i].proc.err.aborts) return;
    snprintf(line, sizeof line,
             "Abort(%d) on node %d (rank %d in comm 0): process %d ended the "
             "job",
             job->abort_code, job->abort_rank, job->abort_rank,
             job->abort_rank);
    sink_message(job->setup.err, line);
}

/* One line for ranks beside each other that ended the same way. */
static void tell_statuses(const struct job *job)
{
    for (uint32_t i = 0, last; i < job->count; i = last + 1) {
        const struct rank *rank = &job->ranks[i];
        int status = rank->proc.wait_status;
        char ranks[32];
        last = i;
        while (last + 1 < job->count &&
               rank[last + 1 - i].spare == rank->spare &&
               rank[last + 1 - i].host_lost == rank->host_lost &&
               rank[last + 1 - i].evicted == rank->evicted &&
               rank[last + 1 - i].proc.wait_status == status)
            last++;
        if (rank->spare || rank->proc.pid == 0) continue;
        if (last > i)
            snprintf(ranks, sizeof ranks, "ranks %u-%u", i, last);
        else
            snprintf(ranks, sizeof ranks, "rank %u", i);
        if (rank->host_lost)
            job_message(job->setup.err, "%s: lost with the host", ranks);
        else if (rank->evicted)
            job_message(job->setup.err, "%s: evicted", ranks);
        else if (WIFSIGNALED(status))
            job_message(job->setup.err, "%s: signal %d", ranks,
                        WTERMSIG(status));
        else
            job_message(job->setup.err, "%s: status %d", ranks,
                        WEXITSTATUS(status));
    }
}

bool job_is_in_doubt(const struct job *job)
{
    const struct master_server *server = job->setup.server;
    return job->lost > 0 && !job->unfinished && server &&
           master_server_traits_left(server) & TRAIT_UNINFORMED;
}

/* Whether or not a call of the others has met the loss. */
static void tell_lost(const struct job *job)
{
    if (job->lost == 0 || job->ending) return;
    job_message(job->setup.err,
                "the job has ended; %u of its ranks %s lost on the way",
                job->lost, job->lost == 1 ? "was" : "were");
    if (job_is_in_doubt(job))
        job_message(job->setup.err,
                    "status %d: the result may lack their part of the work. "
                    "--elastic=force says that it does not, and so does a "
                    "program that calls a PCCL_ or MPIX_ function",
                    EXIT_IN_DOUBT);
}

static void tell_end(struct job *job)
{
    if (job->told || !job->started) return;
    for (uint32_t i = 0; i < job->count; i++)
        if (!rank_is_gone(&job->ranks[i])) return;
    job->told = true;
    tell_abort(job);
    tell_lost(job);
    if (job->setup.options->print_statuses) tell_statuses(job);
}

void job_watch(struct job *job)
{
    char line[MESSAGE_SIZE];
    tell_end(job);
    if (!job->started || job->ending) return;
    leave_silent_hosts(job);
    const struct rank *rank = never_came(job);
    if (!rank) return;
    snprintf(line, sizeof line,
             "rank %u (pid %d on %s) ended with status 0 before MPI_Init, in "
             "which others wait for it;",
             rank->index, (int)rank->proc.pid, rank->host->shown);
    job_fail(job, EXIT_FAILURE, line);
}
