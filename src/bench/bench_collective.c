/* bench_collective.c - time of collectives by operation, type and size.
 *
 * A time is that of one call (or of one batch of concurrent ones) on one rank;
 * what is printed is the slowest rank's median and 99th percentile, and the
 * fastest call of all. */
#include "bench.h"
#include "bench_data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    TIMES_MAX = 200000,
    CONCURRENT_MAX = 256,
    WARM_UP = 5,
    TAG_CONTROL = 1 << 20, /* of the operations that steer the measurement */
};

struct run {
    const struct bench_options *o;
    pcclComm_t *comm;
    struct bench_vector v;
    size_t bytes;            /* of one vector */
    uint8_t *send, *recv;    /* `concurrent` vectors each */
    size_t *blocks, *places; /* all-to-all: bytes and displacements */
    double *times;           /* microseconds */
    int done;
    uint64_t wrong;
};

static pcclCollective_t describe(const struct run *r, int i)
{
    const struct bench_vector *v = &r->v;
    size_t ranks = (size_t)v->ranks;
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllReduce,
                           .tag = (uint64_t)i,
                           .sendbuf = r->send + (size_t)i * r->bytes,
                           .recvbuf = r->recv + (size_t)i * r->bytes,
                           .count = r->bytes,
                           .datatype = v->type,
                           .op = v->redop};
    switch (v->op) {
    case BENCH_ALLREDUCE:
        op.count = v->count;
        if (r->o->in_place) op.sendbuf = op.recvbuf;
        break;
    case BENCH_BROADCAST:
        op.kind = pcclKindBroadcast;
        break;
    case BENCH_ALLGATHER:
        op.kind = pcclKindAllGather;
        op.count = r->bytes / ranks;
        break;
    case BENCH_ALLTOALL:
        op.kind = pcclKindAllToAllV;
        op.send_bytes = op.recv_bytes = r->blocks;
        op.send_displs = op.recv_displs = r->places;
        break;
    case BENCH_BARRIER:
    case BENCH_OP_COUNT:
        op.kind = pcclKindBarrier;
        break;
    }
    return op;
}

/* Blocking without a handle. */
static pcclResult_t call(const struct run *r, int i,
                         pcclAsyncReduceOp_t *handle)
{
    pcclCollective_t op = describe(r, i);
    if (r->o->quantize.algorithm != pcclQuantNone) {
        pcclReduceDescriptor_t d = {.count = op.count,
                                    .op = op.op,
                                    .tag = op.tag,
                                    .src_descriptor = {op.datatype, 0},
                                    .quantization_options = r->o->quantize};
        return handle
                   ? pcclAllReduceAsync(op.sendbuf, op.recvbuf, &d, r->comm,
                                        handle)
                   : pcclAllReduce(op.sendbuf, op.recvbuf, &d, r->comm, NULL);
    }
    return handle ? pcclCollectiveAsync(&op, r->comm, handle)
                  : pcclCollective(&op, r->comm, NULL);
}

static pcclResult_t once(struct run *r)
{
    pcclAsyncReduceOp_t handles[CONCURRENT_MAX];
    pcclResult_t rc = pcclSuccess;
    if (r->o->concurrent == 1) return call(r, 0, NULL);
    int started = 0;
    while (started < r->o->concurrent && rc == pcclSuccess) {
        rc = call(r, started, &handles[started]);
        started += rc == pcclSuccess;
    }
    for (int i = 0; i < started; i++) {
        pcclResult_t one = pcclAwaitAsyncReduce(&handles[i], NULL);
        if (rc == pcclSuccess) rc = one;
    }
    return rc;
}

/* ------------------------------------------------------------------- data */

/* The buffers that the caller of each operation brings along; all others
 * bytes of the receive buffers are of no operation. */
static void fill(struct run *r, bool sends)
{
    for (int i = 0; i < r->o->concurrent; i++) {
        struct bench_vector v = r->v;
        v.variant = i;
        uint8_t *recv = r->recv + (size_t)i * r->bytes;
        bool source =
            r->o->in_place || (v.op == BENCH_BROADCAST && v.rank == 0);
        if (v.op == BENCH_ALLGATHER) v.count /= (size_t)v.ranks;
        if (sends) bench_fill(&v, r->send + (size_t)i * r->bytes);
        if (source)
            bench_fill(&v, recv);
        else
            memset(recv, 0xa5, r->bytes);
    }
}

static void verify(struct run *r)
{
    for (int i = 0; i < r->o->concurrent && r->o->check; i++) {
        struct bench_vector v = r->v;
        v.variant = i;
        r->wrong += bench_wrong(&v, r->recv + (size_t)i * r->bytes);
    }
}

static void release(struct run *r)
{
    free(r->send);
    free(r->recv);
    free(r->blocks);
    free(r->places);
    r->send = r->recv = NULL;
    r->blocks = r->places = NULL;
}

static uint8_t *vector(const struct run *r, size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    if (!r->o->huge_pages) return malloc(size + 1);
    size_t room = (size / HUGE_PAGE + 1) * HUGE_PAGE;
    uint8_t *bytes = aligned_alloc(HUGE_PAGE, room);
    if (bytes) (void)madvise(bytes, room, MADV_HUGEPAGE);
    return bytes;
}

static bool allocate(struct run *r)
{
    size_t total = r->bytes * (size_t)r->o->concurrent;
    size_t ranks = (size_t)r->v.ranks;
    r->send = vector(r, total);
    r->recv = vector(r, total);
    r->blocks = calloc(ranks, sizeof *r->blocks);
    r->places = calloc(ranks, sizeof *r->places);
    if (!r->send || !r->recv || !r->blocks || !r->places) return false;
    for (size_t i = 0; i < ranks; i++) {
        r->blocks[i] = r->bytes / ranks;
        r->places[i] = i * r->blocks[i];
    }
    return true;
}

/* ---------------------------------------------------------------- measuring */

static pcclResult_t barrier(struct run *r)
{
    pcclCollective_t op = {
        .size = sizeof op, .kind = pcclKindBarrier, .tag = TAG_CONTROL};
    return pcclCollective(&op, r->comm, NULL);
}

static pcclResult_t combine(struct run *r, pcclRedOp_t redop,
                            pcclDataType_t type, void *values, size_t count)
{
    if (r->v.ranks == 1) return pcclSuccess;
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllReduce,
                           .tag = TAG_CONTROL + 1,
                           .sendbuf = values,
                           .recvbuf = values,
                           .count = count,
                           .datatype = type,
                           .op = redop};
    return pcclCollective(&op, r->comm, NULL);
}

static pcclResult_t iterate(struct run *r, int64_t iterations)
{
    pcclResult_t rc = pcclSuccess;
    r->done = 0;
    fill(r, false);
    for (int64_t i = 0; i < iterations && rc == pcclSuccess; i++) {
        if (r->o->in_place || r->o->dirty) {
            /* The last result is no input; and nobody is to pay for the
             * others' copying. */
            fill(r, !r->o->in_place);
            rc = barrier(r);
        }
        int64_t start = bench_now();
        if (rc == pcclSuccess) rc = once(r);
        r->times[r->done++] = (double)(bench_now() - start) / 1e3;
    }
    if (rc == pcclSuccess) verify(r);
    return rc;
}

/* The slowest rank decides how many iterations there are. */
static pcclResult_t measure(struct run *r)
{
    r->wrong = 0;
    fill(r, true);
    int64_t begin = bench_now();
    pcclResult_t rc = iterate(r, WARM_UP);
    double each = (double)(bench_now() - begin) / 1e9 / WARM_UP;
    int64_t iterations = (int64_t)(r->o->seconds / (each > 0 ? each : 1e-9));
    if (iterations < WARM_UP) iterations = WARM_UP;
    if (iterations > TIMES_MAX) iterations = TIMES_MAX;
    if (rc == pcclSuccess) rc = combine(r, pcclMin, pcclInt64, &iterations, 1);
    if (rc == pcclSuccess) rc = iterate(r, iterations);
    return rc;
}

/* GB/s on the wire of the busiest link, for each GB/s of the caller's. */
static double bus_factor(const struct bench_vector *v)
{
    double ranks = v->ranks;
    if (v->op == BENCH_ALLREDUCE) return 2 * (ranks - 1) / ranks;
    if (v->op == BENCH_BROADCAST || v->op == BENCH_BARRIER) return 1;
    return (ranks - 1) / ranks;
}

static pcclResult_t report(struct run *r)
{
    double low = bench_quantile(r->times, r->done, 0);
    double slow[2] = {bench_quantile(r->times, r->done, 0.5),
                      bench_quantile(r->times, r->done, 0.99)};
    pcclResult_t rc = combine(r, pcclMin, pcclDouble, &low, 1);
    if (rc == pcclSuccess) rc = combine(r, pcclMax, pcclDouble, slow, 2);
    if (rc == pcclSuccess) rc = combine(r, pcclSum, pcclUint64, &r->wrong, 1);
    if (rc != pcclSuccess || r->v.rank != 0) return rc;
    const struct bench_options *o = r->o;
    const char *reduce = r->v.op == BENCH_ALLREDUCE ? o->reduce : "none";
    double alg = (double)r->bytes * o->concurrent / slow[0] / 1e3;
    double bus = alg * bus_factor(&r->v);
    if (o->json)
        printf("{\"op\":\"%s\",\"ranks\":%d,\"size\":%zu,\"count\":%zu,"
               "\"type\":\"%s\",\"redop\":\"%s\",\"in_place\":%s,"
               "\"concurrent\":%d,\"pool\":%d,\"iterations\":%d,"
               "\"min_us\":%.3f,\"median_us\":%.3f,\"p99_us\":%.3f,"
               "\"algbw\":%.3f,\"busbw\":%.3f,\"wrong\":%llu}\n",
               bench_op_name(r->v.op), r->v.ranks, r->bytes, r->v.count,
               bench_type_name(r->v.type), reduce,
               o->in_place ? "true" : "false", o->concurrent, o->pool, r->done,
               low, slow[0], slow[1], alg, bus, (unsigned long long)r->wrong);
    else
        printf("%-9s %12zu %12zu %8s %5s %10.2f %10.2f %10.2f %8.3f %8.3f "
               "%6s\n",
               bench_op_name(r->v.op), r->bytes, r->v.count,
               bench_type_name(r->v.type), reduce, low, slow[0], slow[1], alg,
               bus,
               !o->check  ? "N/A"
               : r->wrong ? "WRONG"
                          : "0");
    if (!o->json && r->wrong)
        printf("# %llu wrong elements\n", (unsigned long long)r->wrong);
    fflush(stdout);
    return rc;
}

static void head(const struct run *r)
{
    const struct bench_options *o = r->o;
    if (o->json || r->v.rank != 0) return;
    printf("# %d ranks, pool %d, %d at once, %s; times in us, bandwidth in "
           "GB/s\n",
           r->v.ranks, o->pool, o->concurrent,
           o->in_place ? "in place" : "out of place");
    printf("%-9s %12s %12s %8s %5s %10s %10s %10s %8s %8s %6s\n", "#op", "size",
           "count", "type", "redop", "min", "median", "p99", "algbw", "busbw",
           "#wrong");
}

/* One line. */
static pcclResult_t run_case(struct run *r, size_t size)
{
    struct bench_vector *v = &r->v;
    size_t one = bench_type_size(v->type);
    v->count = v->op == BENCH_BARRIER ? 0 : size / one;
    if (v->op == BENCH_ALLGATHER || v->op == BENCH_ALLTOALL)
        v->count -= v->count % (size_t)v->ranks;
    r->bytes = v->count * one;
    pcclResult_t rc = allocate(r) ? measure(r) : pcclInternalError;
    if (rc == pcclSuccess) rc = report(r);
    release(r);
    return rc;
}

static pcclResult_t run_op(struct run *r)
{
    pcclResult_t rc = pcclSuccess;
    const char *types = r->o->types;
    bool wrong = false;
    char name[16];
    while (rc == pcclSuccess && bench_word(&types, name, sizeof name)) {
        (void)bench_type_named(name, &r->v.type);
        const char *sizes = r->o->sizes;
        size_t size;
        while (rc == pcclSuccess && bench_size(&sizes, &size)) {
            rc = run_case(r, size);
            wrong |= r->wrong > 0;
            if (r->v.op == BENCH_BARRIER) return rc;
        }
    }
    r->wrong = wrong;
    return rc;
}

int bench_collective(const struct bench_options *o)
{
    struct run r = {.o = o, .comm = bench_join_run(o)};
    if (!r.comm) return 1;
    (void)pcclGetView(r.comm, NULL, &r.v.rank, &r.v.ranks, NULL, 0);
    (void)bench_reduce_named(o->reduce, &r.v.redop);
    r.times = malloc(TIMES_MAX * sizeof *r.times);
    pcclResult_t rc = r.times ? pcclSuccess : pcclInternalError;
    const char *ops = o->ops;
    char name[16];
    int status = 0;
    bool headed = false;
    while (rc == pcclSuccess && bench_word(&ops, name, sizeof name)) {
        if (!bench_op_named(name, &r.v.op)) {
            bool sync = strcmp(name, "sync") == 0;
            status |= sync ? bench_sync(o, r.comm) : bench_latency(o, r.comm);
            headed = false;
            continue;
        }
        if (!headed) head(&r);
        headed = true;
        rc = run_op(&r);
        status |= r.wrong > 0;
    }
    if (rc != pcclSuccess) {
        char why[256] = "";
        (void)pcclGetLastError(r.comm, why, sizeof why);
        fprintf(stderr, "pccl-bench: %s: %s\n", pcclGetErrorString(rc), why);
        status = 1;
    }
    free(r.times);
    (void)pcclDestroyCommunicator(r.comm);
    return status;
}
