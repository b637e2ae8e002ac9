/* job.h - the ranks of a job: starts, watches and ends them.
 *
 * Callbacks only record facts (a rank ended, a signal came). settle() in job.c
 * makes all decisions from the state alone. */
#ifndef PCCL_LAUNCH_JOB_H
#define PCCL_LAUNCH_JOB_H

#include "forward.h"
#include "guard.h"
#include "options.h"

#include "../master/server/master_server.h"

#include <stdint.h>
#include <sys/resource.h>

struct job;

struct job_setup {
    struct ev_loop *loop; /* the default loop: child watchers need it */
    const struct options *options;
    struct guard *guard;
    struct sink *out, *err;
    struct master_server *server;  /* NULL with --join */
    const char *master;            /* HOST:PORT for the ranks */
    const char *library_path;      /* or NULL */
    bool ignore_hangup;            /* nohup */
    struct rlimit files;           /* descriptor limit of the ranks */
    const struct host_list *hosts; /* those of the options that are in use */
    struct host_list *left_out; /* gets the hosts that a restart cannot reach */
    uint32_t restart;           /* number of this start; 0: the first */
    double pause;               /* s before it */
    double begun;               /* time of the first start */
};

/* Starts the ranks. The loop ends with the job; if starting fails, it ends as
 * soon as all started processes are gone. Copies setup. */
struct job *job_start(const struct job_setup *setup);

/* What is due when the loop has ended: nothing; another start; the same start
 * with the hosts that are left. */
enum job_next { JOB_OVER, JOB_AGAIN, JOB_WITHOUT_HOSTS };
enum job_next job_next(const struct job *job);
/* Seconds to wait before another start. */
double job_pause(const struct job *job);

/* A rank ended the job, by MPI_Abort or by a fatal error. */
void job_abort(struct job *job, int code, int rank);

/* A request of another process, to the job or to NULL, there is none now:
 * "drain WHAT" asks ranks to leave at their next safe point: a rank, or all of
 * a host. The answer begins with '+', or with '-' for a refusal. */
void job_request(struct job *job, const char *text, char *answer, size_t size);
/* The signal that asks a rank to leave; 0: the job is not elastic. */
int job_drain_signal(const struct options *options);

/* Asks the agents of all hosts about a silent peer; that of its host answers
 * to the server. */
void job_look(struct job *job, uint64_t id, uint64_t host, uint32_t pid);

/* News of a process, perhaps of this job. One that is evicted has a deadline to
 * end by itself, and is ended (M10g), unless it comes again. */
void job_process(struct job *job, uint64_t host, uint32_t pid,
                 enum process_news news);

/* Prints "pccl-master: ..." on err, ordered with the ranks' output. */
__attribute__((format(printf, 2, 3))) void job_message(struct sink *err,
                                                       const char *format, ...);

/* Kills the remaining processes and frees the job; returns the exit status of
 * the launcher. */
int job_finish(struct job *job);

#endif
