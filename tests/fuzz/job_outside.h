/* job_outside.h - what a job of the launcher has around it, but for fuzz_job.c:
 * processes that are only told to start, and a coordinator that knows what it
 * is told. */
#ifndef PCCL_FUZZ_JOB_OUTSIDE_H
#define PCCL_FUZZ_JOB_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct master_server;

/* Its ends of the pipes, or -1. */
struct outside_process {
    pid_t pid; /* of no process */
    int in, out, err;
};

struct outside {
    uint32_t members, pending; /* of the coordinator */
    bool ended, lost;
    uint8_t luck; /* of the next start */
};
extern struct outside outside;

void outside_begin(uint8_t luck);
void outside_end(void); /* all processes are gone */

/* One of those that were started; NULL: there is none. */
struct outside_process *outside_process(uint32_t which);
struct outside_process *outside_by_pid(pid_t pid);
/* It ends. Its pipes do, too, unless another process holds them. */
void outside_leave(struct outside_process *p, bool closes);

struct master_server *outside_server(void);

/* Words that options refer to, until words_free(). */
void words_keep(char **words, int count);
void words_free(void);

#endif
