/* bench.h - what the modes of pccl-bench share. */
#ifndef PCCL_BENCH_H
#define PCCL_BENCH_H

#include "../../include/pccl.h"

#include <stdint.h>

struct bench_options {
    const char *mode;
    const char *op;    /* allreduce, broadcast, barrier */
    const char *sizes; /* "8,64K,16M" */
    int ranks, rounds, pool, concurrent;
    int signal;     /* recovery: SIGKILL or SIGSTOP */
    double seconds; /* per size, at most */
    int in_place, json;
};

int64_t bench_now(void); /* CLOCK_MONOTONIC ns */
double bench_quantile(double *values, int count, double q); /* sorts */
size_t bench_size(const char **text); /* next of a list; 0 at its end */

/* A connected communicator of the run at `address` ("host:port"). */
pcclComm_t *bench_connect(const char *address, int hint, int pool);

int bench_collective(const struct bench_options *o);
int bench_recovery(const struct bench_options *o);
int bench_sync(const struct bench_options *o);
int bench_join(const struct bench_options *o);

#endif
