/* bench.h - what the modes of pccl-bench share. */
#ifndef PCCL_BENCH_H
#define PCCL_BENCH_H

#include "../../include/pccl.h"

#include <stdint.h>
#include <stdio.h>

/* What must happen happens within this time, also to processes that get no
 * processor. */
enum { BENCH_PATIENCE_S = 300 };

struct bench_options {
    const char *mode;      /* collective, recovery, join */
    const char *ops;       /* "allreduce,sync": see bench_data.h, main */
    const char *sizes;     /* "8,64K,16M" */
    const char *types;     /* "float,double" */
    const char *reduce;    /* sum, prod, max, min, avg */
    const char *transport; /* NULL: as the environment says */
    int ranks, rounds, pool, concurrent;
    int signal;     /* recovery: SIGKILL or SIGSTOP */
    double seconds; /* per line, at most */
    bool in_place, dirty, huge_pages, json, check, algorithms;
    pcclQuantizationOptions_t quantize; /* of allreduce; then no check */
};

/* False: `error` says what is wrong with the command line. `help`: nothing
 * was to be run. */
bool bench_parse(struct bench_options *o, int argc, char **argv, bool *help,
                 char *error, size_t room);

int64_t bench_now(void); /* CLOCK_MONOTONIC ns */
double bench_quantile(double *values, int count, double q); /* sorts */
/* Next of a list of sizes such as "8,64K,1M". False: the list is over, or what
 * *text points to is no size. */
bool bench_size(const char **text, size_t *size);
/* Next word of a list; false: it is over. Too long a word comes cut. */
bool bench_word(const char **text, char *word, size_t room);

/* "127.0.0.1:PORT" in the form of the API. False: it is no such text. */
bool bench_address(const char *address, ccoip_socket_address_t *to);
/* A connected communicator of the run at `address` ("host:port"). */
pcclComm_t *bench_connect(const char *address, int hint, int pool);
/* ... of the run that this process was started in; NULL: none, or no luck. */
pcclComm_t *bench_join_run(const struct bench_options *o);

/* How far a run is, on standard error: `done` of `seconds`, and a text. A bar
 * on a terminal, some times a second; else a line for each tenth of a run of
 * ten minutes or more. */
void bench_progress(double done, double seconds, const char *text);
/* Takes the bar away, before anything else is printed. */
void bench_progress_end(void);

/* Each returns the exit status of the program. */
int bench_algorithms(void);
int bench_collective(const struct bench_options *o);
int bench_latency(const struct bench_options *o, pcclComm_t *comm);
int bench_sync(const struct bench_options *o, pcclComm_t *comm);
int bench_recovery(const struct bench_options *o);
int bench_join(const struct bench_options *o);

#endif
