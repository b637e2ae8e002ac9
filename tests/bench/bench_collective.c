/* bench_collective.c - time of one collective by size. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    const struct bench_options *o;
    pcclComm_t *comm;
    int rank, size;
    size_t count;       /* floats of one operation */
    float *send, *recv; /* `concurrent` vectors each */
    double *times;      /* microseconds */
    int done;
    long wrong;
};

enum { TIMES_MAX = 200000 };

static pcclCollective_t describe(const struct run *r, int i)
{
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllReduce,
                           .tag = (uint64_t)i,
                           .sendbuf = r->send + (size_t)i * r->count,
                           .recvbuf = r->recv + (size_t)i * r->count,
                           .count = r->count,
                           .datatype = pcclFloat,
                           .op = pcclSum};
    if (r->o->in_place) op.sendbuf = op.recvbuf;
    if (strcmp(r->o->op, "broadcast") == 0) {
        op.kind = pcclKindBroadcast;
        op.count *= sizeof(float);
    }
    if (strcmp(r->o->op, "barrier") == 0) op.kind = pcclKindBarrier;
    return op;
}

static void fill(struct run *r)
{
    size_t total = r->count * (size_t)r->o->concurrent;
    for (size_t i = 0; i < total; i++) {
        float mine = (float)(r->rank + 1) + (float)(i % 13);
        r->send[i] = mine;
        if (r->o->in_place || r->rank == 0) r->recv[i] = mine;
    }
}

static void verify(struct run *r)
{
    size_t total = r->count * (size_t)r->o->concurrent;
    float ranks = (float)r->size * (float)(r->size + 1) / 2;
    bool reduce = strcmp(r->o->op, "allreduce") == 0;
    if (strcmp(r->o->op, "barrier") == 0) return;
    for (size_t i = 0; i < total; i++) {
        float base = (float)(i % 13);
        float want = reduce ? ranks + (float)r->size * base : 1 + base;
        if (r->recv[i] != want) r->wrong++;
    }
}

static pcclResult_t once(struct run *r)
{
    pcclAsyncReduceOp_t handles[256];
    pcclResult_t rc = pcclSuccess;
    if (r->o->concurrent == 1) {
        pcclCollective_t op = describe(r, 0);
        return pcclCollective(&op, r->comm, NULL);
    }
    int started = 0;
    while (started < r->o->concurrent && rc == pcclSuccess) {
        pcclCollective_t op = describe(r, started);
        rc = pcclCollectiveAsync(&op, r->comm, &handles[started]);
        started += rc == pcclSuccess;
    }
    for (int i = 0; i < started; i++) {
        pcclResult_t one = pcclAwaitAsyncReduce(&handles[i], NULL);
        if (rc == pcclSuccess) rc = one;
    }
    return rc;
}

/* Rank 0 decides how many iterations there are. */
static pcclResult_t agree(struct run *r, int64_t *value)
{
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindBroadcast,
                           .tag = UINT64_MAX,
                           .recvbuf = value,
                           .count = sizeof *value};
    return pcclCollective(&op, r->comm, NULL);
}

static pcclResult_t measure(struct run *r)
{
    int64_t iterations = 5;
    pcclResult_t rc = pcclSuccess;
    for (int phase = 0; phase < 2; phase++) {
        r->done = 0;
        int64_t begin = bench_now();
        for (int64_t i = 0; i < iterations && rc == pcclSuccess; i++) {
            if (r->o->in_place) fill(r);
            int64_t start = bench_now();
            rc = once(r);
            r->times[r->done++] = (double)(bench_now() - start) / 1e3;
        }
        if (rc != pcclSuccess || phase == 1) break;
        verify(r);
        double each = (double)(bench_now() - begin) / 1e9 / (double)iterations;
        iterations = (int64_t)(r->o->seconds / (each > 0 ? each : 1e-9));
        if (iterations < 5) iterations = 5;
        if (iterations > TIMES_MAX) iterations = TIMES_MAX;
        rc = agree(r, &iterations);
    }
    if (rc == pcclSuccess) verify(r);
    return rc;
}

static void print(struct run *r, size_t size)
{
    double low = bench_quantile(r->times, r->done, 0);
    double median = bench_quantile(r->times, r->done, 0.5);
    double p99 = bench_quantile(r->times, r->done, 0.99);
    double alg = (double)size * r->o->concurrent / median / 1e3;
    double factor =
        strcmp(r->o->op, "allreduce") == 0 ? 2.0 * (r->size - 1) / r->size : 1;
    const char *format =
        r->o->json
            ? "{\"op\":\"%s\",\"ranks\":%d,\"size\":%zu,\"count\":%zu,"
              "\"min_us\":%.2f,\"median_us\":%.2f,\"p99_us\":%.2f,"
              "\"algbw\":%.3f,\"busbw\":%.3f,\"wrong\":%ld}\n"
            : "%10s %5d %12zu %12zu %11.2f %11.2f %11.2f %8.3f %8.3f %6ld\n";
    printf(format, r->o->op, r->size, size, r->count, low, median, p99, alg,
           alg * factor, r->wrong);
    fflush(stdout);
}

int bench_collective(const struct bench_options *o)
{
    const char *address = getenv("PCCL_MASTER");
    const char *hint = getenv("PCCL_RANK");
    if (!address) {
        fputs("pccl-bench: run me under pccl-master -n N\n", stderr);
        return 2;
    }
    struct run r = {.o = o};
    r.comm = bench_connect(address, hint ? (int)strtol(hint, NULL, 10) : -1,
                           o->pool);
    if (!r.comm) return 1;
    (void)pcclGetView(r.comm, NULL, &r.rank, &r.size, NULL, 0);
    r.times = malloc(TIMES_MAX * sizeof *r.times);
    if (r.rank == 0 && !o->json)
        printf("%10s %5s %12s %12s %11s %11s %11s %8s %8s %6s\n", "op", "ranks",
               "bytes", "floats", "min us", "median us", "p99 us", "algbw",
               "busbw", "wrong");
    const char *sizes = o->sizes;
    size_t size;
    pcclResult_t rc = pcclSuccess;
    while (rc == pcclSuccess && (size = bench_size(&sizes)) > 0) {
        r.count = size / sizeof(float);
        size_t bytes = r.count * sizeof(float) * (size_t)o->concurrent;
        r.send = malloc(bytes);
        r.recv = calloc(1, bytes);
        if (!r.send || !r.recv || !r.times) break;
        r.wrong = 0;
        fill(&r);
        rc = measure(&r);
        if (r.rank == 0 && rc == pcclSuccess) print(&r, size);
        free(r.send);
        free(r.recv);
    }
    if (rc != pcclSuccess)
        fprintf(stderr, "pccl-bench: %s\n", pcclGetErrorString(rc));
    free(r.times);
    (void)pcclDestroyCommunicator(r.comm);
    return rc == pcclSuccess && r.wrong == 0 ? 0 : 1;
}
