/* bench_sync.c - synchronization of shared state: with nothing to move, and a
 * newcomer's download from one and more holders. Run it under pccl-master -n N;
 * rank N-1 plays the newcomer. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_MAX = 100000 };

struct run {
    const struct bench_options *o;
    pcclComm_t *comm;
    int rank, size;
    pcclTensorInfo_t tensor;
    pcclSharedState_t state;
    double *times; /* microseconds */
    int count;
};

static pcclResult_t sync_once(struct run *r, size_t *received)
{
    pcclSharedStateSyncInfo_t info = {0, 0};
    int64_t start = bench_now();
    pcclResult_t rc = pcclSynchronizeSharedState(
        r->comm, &r->state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
        &info);
    r->times[r->count++] = (double)(bench_now() - start) / 1e3;
    r->state.revision++;
    *received = info.rx_bytes;
    return rc;
}

static pcclResult_t barrier(struct run *r)
{
    pcclCollective_t op = {
        .size = sizeof op, .kind = pcclKindBarrier, .tag = 1};
    return pcclCollective(&op, r->comm, NULL);
}

/* Nothing differs; rank 0 says when to stop. */
static pcclResult_t measure_equal(struct run *r, double seconds)
{
    size_t received = 0;
    int64_t more = 1;
    int64_t end = bench_now() + (int64_t)(seconds * 1e9);
    pcclResult_t rc = pcclSuccess;
    while (more && rc == pcclSuccess) {
        for (int i = 0; i < 10 && rc == pcclSuccess; i++) {
            rc = barrier(r);
            if (rc == pcclSuccess) rc = sync_once(r, &received);
            if (received > 0) return pcclInternalError;
        }
        more = bench_now() < end && r->count + 10 < TIMES_MAX;
        pcclCollective_t op = {.size = sizeof op,
                               .kind = pcclKindBroadcast,
                               .tag = 2,
                               .recvbuf = &more,
                               .count = sizeof more};
        if (rc == pcclSuccess) rc = pcclCollective(&op, r->comm, NULL);
    }
    return rc;
}

/* The last rank has other bytes, in every block. */
static pcclResult_t measure_newcomer(struct run *r, int rounds, bool *wrong)
{
    pcclResult_t rc = pcclSuccess;
    const bool newcomer = r->rank == r->size - 1;
    for (int i = 0; i < rounds && rc == pcclSuccess; i++) {
        size_t received = 0;
        if (newcomer) memset(r->tensor.data, 77 + i, r->tensor.count);
        if (newcomer) r->state.revision = 0;
        rc = barrier(r);
        if (rc == pcclSuccess) rc = sync_once(r, &received);
        *wrong |= received != (newcomer ? r->tensor.count : 0);
        const uint8_t *bytes = r->tensor.data;
        for (size_t k = 0; k < r->tensor.count; k += 4001)
            *wrong |= bytes[k] != 5;
    }
    return rc;
}

static void print(struct run *r, const char *what, size_t size)
{
    if (r->rank != 0) return;
    double low = bench_quantile(r->times, r->count, 0);
    double median = bench_quantile(r->times, r->count, 0.5);
    double p99 = bench_quantile(r->times, r->count, 0.99);
    const char *format =
        r->o->json ? "{\"op\":\"sync\",\"state\":\"%s\",\"ranks\":%d,"
                     "\"size\":%zu,\"min_us\":%.2f,\"median_us\":%.2f,"
                     "\"p99_us\":%.2f,\"algbw\":%.3f}\n"
                   : "%-10s %5d %12zu %11.2f %11.2f %11.2f %8.3f\n";
    printf(format, what, r->size, size, low, median, p99,
           (double)size / median / 1e3);
    fflush(stdout);
}

int bench_sync(const struct bench_options *o, pcclComm_t *comm)
{
    struct run r = {.o = o, .comm = comm};
    (void)pcclGetView(r.comm, NULL, &r.rank, &r.size, NULL, 0);
    r.times = malloc(TIMES_MAX * sizeof *r.times);
    const char *sizes = o->sizes;
    pcclResult_t rc = pcclSuccess;
    bool wrong = false;
    size_t size;
    uint64_t revision = 0;
    if (r.rank == 0 && !o->json)
        printf("%-10s %5s %12s %11s %11s %11s %8s\n", "#state", "ranks", "size",
               "min us", "median us", "p99 us", "GB/s");
    while (rc == pcclSuccess && !wrong && bench_size(&sizes, &size)) {
        void *data = malloc(size + 1);
        if (!data || !r.times) break;
        memset(data, 5, size);
        r.tensor = (pcclTensorInfo_t){.name = "state",
                                      .data = data,
                                      .count = size,
                                      .datatype = pcclUint8};
        r.state = (pcclSharedState_t){revision, 1, &r.tensor};
        r.count = 0;
        rc = measure_equal(&r, o->seconds);
        if (rc == pcclSuccess) print(&r, "equal", size);
        r.count = 0;
        if (rc == pcclSuccess && r.size > 1)
            rc = measure_newcomer(&r, o->rounds, &wrong);
        if (rc == pcclSuccess && r.size > 1) print(&r, "newcomer", size);
        revision = r.state.revision;
        free(data);
    }
    if (rc != pcclSuccess || wrong)
        fprintf(stderr, "pccl-bench: %s%s\n", pcclGetErrorString(rc),
                wrong ? ", and wrong bytes" : "");
    free(r.times);
    return rc == pcclSuccess && !wrong ? 0 : 1;
}
