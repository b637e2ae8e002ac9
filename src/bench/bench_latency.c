/* bench_latency.c - how long a program stands still in the calls of a step:
 * an update of the topology that changes nothing, the question whether peers
 * are pending, the launch of an all-reduce, and its await. Run it under
 * pccl-master -n N.
 *
 * Each is timed in two surroundings: "busy", one step after the other, and
 * "idle", after a pause in which the library's threads fell asleep, as they do
 * beside a program that computes. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { TIMES_MAX = 20000, PAUSE_US = 2000, IDLE_PART = 20, TAG_VECTOR = 4 };

enum call { CALL_UPDATE, CALL_PENDING, CALL_LAUNCH, CALL_AWAIT, CALL_COUNT };

static const char *const names[CALL_COUNT] = {"update", "pending", "launch",
                                              "await"};

struct latency_run {
    const struct bench_options *o;
    pcclComm_t *comm;
    int rank, size;
    size_t bytes;
    float *vector;
    double *times[CALL_COUNT]; /* microseconds */
    int count;
};

static pcclResult_t barrier(struct latency_run *r)
{
    pcclCollective_t op = {
        .size = sizeof op, .kind = pcclKindBarrier, .tag = 1};
    return pcclCollective(&op, r->comm, NULL);
}

/* Computes nothing, on the processor. */
static void compute(int64_t ns)
{
    for (int64_t end = bench_now() + ns; bench_now() < end;) continue;
}

/* All start a call together; else the time of one would hold the others'. */
static pcclResult_t begin(struct latency_run *r, bool idle, int64_t *start)
{
    pcclResult_t rc = barrier(r);
    if (idle) compute(PAUSE_US * INT64_C(1000));
    *start = bench_now();
    return rc;
}

static void end(struct latency_run *r, enum call call, int64_t start)
{
    r->times[call][r->count] = (double)(bench_now() - start) / 1e3;
}

static pcclResult_t step(struct latency_run *r, bool idle)
{
    const pcclReduceDescriptor_t d = {
        .count = r->bytes / sizeof(float),
        .op = pcclSum,
        .tag = TAG_VECTOR,
        .src_descriptor = {.datatype = pcclFloat}};
    pcclAsyncReduceOp_t handle;
    bool pending = false;
    int64_t start;
    pcclResult_t rc = begin(r, idle, &start);
    if (rc == pcclSuccess) rc = pcclUpdateTopology(r->comm);
    end(r, CALL_UPDATE, start);
    if (rc == pcclSuccess) rc = begin(r, idle, &start);
    if (rc == pcclSuccess) rc = pcclArePeersPending(r->comm, &pending);
    end(r, CALL_PENDING, start);
    if (rc == pcclSuccess) rc = begin(r, idle, &start);
    if (rc == pcclSuccess)
        rc = pcclAllReduceAsync(r->vector, r->vector, &d, r->comm, &handle);
    end(r, CALL_LAUNCH, start);
    start = bench_now();
    if (rc == pcclSuccess) rc = pcclAwaitAsyncReduce(&handle, NULL);
    end(r, CALL_AWAIT, start);
    r->count++;
    return rc;
}

/* Rank 0 says when to stop. */
static pcclResult_t measure(struct latency_run *r, bool idle)
{
    int64_t more = 1;
    int64_t until = bench_now() + (int64_t)(r->o->seconds * 1e9);
    pcclResult_t rc = pcclSuccess;
    r->count = 0;
    while (more && rc == pcclSuccess) {
        for (int i = 0; i < IDLE_PART && rc == pcclSuccess; i++)
            rc = step(r, idle);
        more = bench_now() < until && r->count + IDLE_PART < TIMES_MAX;
        pcclCollective_t op = {.size = sizeof op,
                               .kind = pcclKindBroadcast,
                               .tag = 2,
                               .recvbuf = &more,
                               .count = sizeof more};
        if (rc == pcclSuccess) rc = pcclCollective(&op, r->comm, NULL);
    }
    return rc;
}

/* Median and 99th percentile of the slowest rank. */
static pcclResult_t print(struct latency_run *r, enum call call, bool idle)
{
    double slow[2] = {bench_quantile(r->times[call], r->count, 0.5),
                      bench_quantile(r->times[call], r->count, 0.99)};
    double low = bench_quantile(r->times[call], r->count, 0);
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllReduce,
                           .tag = 3,
                           .sendbuf = slow,
                           .recvbuf = slow,
                           .count = 2,
                           .datatype = pcclDouble,
                           .op = pcclMax};
    pcclResult_t rc = pcclSuccess;
    if (r->size > 1) rc = pcclCollective(&op, r->comm, NULL);
    if (rc != pcclSuccess || r->rank != 0) return rc;
    const char *format =
        r->o->json ? "{\"op\":\"latency\",\"call\":\"%s\",\"before\":\"%s\","
                     "\"ranks\":%d,\"size\":%zu,\"calls\":%d,\"min_us\":%.2f,"
                     "\"median_us\":%.2f,\"p99_us\":%.2f}\n"
                   : "%-10s %-6s %5d %12zu %7d %10.2f %10.2f %10.2f\n";
    printf(format, names[call], idle ? "idle" : "busy", r->size, r->bytes,
           r->count, low, slow[0], slow[1]);
    fflush(stdout);
    return rc;
}

static pcclResult_t measure_size(struct latency_run *r)
{
    pcclResult_t rc = pcclSuccess;
    for (int idle = 0; idle < 2; idle++) {
        if (rc == pcclSuccess) rc = measure(r, idle != 0);
        for (int i = 0; i < CALL_COUNT && rc == pcclSuccess; i++)
            rc = print(r, (enum call)i, idle != 0);
    }
    return rc;
}

int bench_latency(const struct bench_options *o, pcclComm_t *comm)
{
    struct latency_run r = {.o = o, .comm = comm};
    (void)pcclGetView(r.comm, NULL, &r.rank, &r.size, NULL, 0);
    double *times = calloc((size_t)CALL_COUNT * TIMES_MAX, sizeof *times);
    const char *sizes = o->sizes;
    pcclResult_t rc = times ? pcclSuccess : pcclInternalError;
    for (int i = 0; times && i < CALL_COUNT; i++)
        r.times[i] = times + (ptrdiff_t)i * TIMES_MAX;
    if (r.size == 1 && rc == pcclSuccess) rc = pcclTooFewPeers;
    if (r.rank == 0 && !o->json)
        printf("%-10s %-6s %5s %12s %7s %10s %10s %10s\n", "#call", "before",
               "ranks", "size", "calls", "min us", "median us", "p99 us");
    while (rc == pcclSuccess && bench_size(&sizes, &r.bytes)) {
        r.vector = calloc(r.bytes / sizeof(float) + 1, sizeof(float));
        rc = r.vector ? measure_size(&r) : pcclInternalError;
        free(r.vector);
    }
    if (rc != pcclSuccess)
        fprintf(stderr, "pccl-bench: %s\n", pcclGetErrorString(rc));
    free(times);
    return rc == pcclSuccess ? 0 : 1;
}
