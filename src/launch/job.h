/* job.h - the ranks of this host: started, watched, ended.
 *
 * Facts (a rank ended, a signal came) are recorded by callbacks; what follows
 * is decided in one place, settle() in job.c, from the state alone. */
#ifndef PCCL_LAUNCH_JOB_H
#define PCCL_LAUNCH_JOB_H

#include "forward.h"
#include "guard.h"
#include "options.h"

#include <sys/resource.h>

struct job;
struct master_server;

struct job_setup {
    struct ev_loop *loop; /* the default loop: child watchers need it */
    const struct options *options;
    struct guard *guard;
    struct sink *out, *err;
    struct master_server *server; /* NULL with --join */
    const char *master;           /* HOST:PORT for the ranks */
    const char *library_path;     /* or NULL */
    bool ignore_hangup;           /* nohup */
    struct rlimit files;          /* limit of descriptors for the ranks */
};

/* Starts the ranks. The loop ends when the job has; on a failure to start it
 * does so as soon as what was started is gone. Copies setup. */
struct job *job_start(const struct job_setup *setup);

/* Someone called MPI_Abort. */
void job_abort(struct job *job, int code, int rank);

/* Prints "pccl-master: ..." on err, in order with the ranks' output. */
__attribute__((format(printf, 2, 3))) void job_message(struct sink *err,
                                                       const char *format, ...);

/* Kills what is left and frees; returns the exit status of the launcher. */
int job_finish(struct job *job);

#endif
