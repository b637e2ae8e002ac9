/* bench_sync.c - synchronization of shared state: with nothing to move, and a
 * newcomer's download from one and more holders: of all, and of each hundredth
 * block. Run it under pccl-master -n N;
 * rank N-1 plays the newcomer. Beside each, in the same run, what the machine
 * allows: all ranks read their bytes once, and a plain TCP copy from rank 0.
 *
 * Rows are timed on rank 0, a member: "newcomer" is how long a download holds
 * it up. What it costs it in memory is printed below. */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMES_MAX = 100000, COPY_PIECE = 1 << 20, BLOCK = 65536 };

struct sync_run {
    const struct bench_options *o;
    pcclComm_t *comm;
    int rank, size;
    pcclTensorInfo_t tensor;
    pcclSharedState_t state;
    double *times; /* microseconds */
    int count;
};

static pcclResult_t sync_once(struct sync_run *r, size_t *received)
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

static pcclResult_t barrier(struct sync_run *r)
{
    pcclCollective_t op = {
        .size = sizeof op, .kind = pcclKindBarrier, .tag = 1};
    return pcclCollective(&op, r->comm, NULL);
}

/* All ranks read their bytes side by side, one thread each. */
static pcclResult_t measure_read(struct sync_run *r, int rounds)
{
    const uint64_t *words = r->tensor.data;
    static volatile uint64_t kept;
    pcclResult_t rc = pcclSuccess;
    for (int i = 0; i < rounds && rc == pcclSuccess; i++) {
        rc = barrier(r);
        int64_t start = bench_now();
        uint64_t sum = 0;
        for (size_t k = 0; k < r->tensor.count / 8; k++) sum += words[k];
        kept = sum;
        r->times[r->count++] = (double)(bench_now() - start) / 1e3;
    }
    (void)kept;
    return rc;
}

static bool copy_bytes(int fd, uint8_t *bytes, size_t size, bool out)
{
    while (size > 0) {
        size_t piece = size < COPY_PIECE ? size : COPY_PIECE;
        ssize_t n = out ? send(fd, bytes, piece, MSG_NOSIGNAL)
                        : recv(fd, bytes, piece, 0);
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

/* Rank 0's end (port 0: to be found) or the newcomer's of a plain connection
 * over loopback, with the congestion control that serves loopback best. */
static int plain_socket(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(*port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    bool ok = *port != 0
                  ? connect(fd, (struct sockaddr *)&a, sizeof a) == 0
                  : bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
                        listen(fd, 1) == 0 &&
                        getsockname(fd, (struct sockaddr *)&a, &size) == 0;
    if (ok && *port == 0) *port = ntohs(a.sin_port);
    if (ok) return fd;
    close(fd);
    return -1;
}

/* Timed on rank 0 from the barrier to the newcomer's last byte. */
static pcclResult_t measure_copy(struct sync_run *r, int rounds)
{
    uint16_t port = 0;
    const bool from = r->rank == 0;
    const bool to = r->rank == r->size - 1 && !from;
    int listener = from ? plain_socket(&port) : -1;
    pcclCollective_t tell = {.size = sizeof tell,
                             .kind = pcclKindBroadcast,
                             .tag = 3,
                             .recvbuf = &port,
                             .count = sizeof port};
    pcclResult_t rc = pcclCollective(&tell, r->comm, NULL);
    int fd = -1;
    if (rc == pcclSuccess && to) fd = plain_socket(&port);
    if (rc == pcclSuccess && from) fd = accept(listener, NULL, NULL);
    for (int i = 0; i < rounds && rc == pcclSuccess; i++) {
        rc = barrier(r);
        int64_t start = bench_now();
        bool ok = rc == pcclSuccess;
        uint8_t last = 0;
        if (ok && (from || to))
            ok = copy_bytes(fd, r->tensor.data, r->tensor.count, from) &&
                 copy_bytes(fd, &last, 1, to);
        if (!ok && rc == pcclSuccess) rc = pcclInternalError;
        r->times[r->count++] = (double)(bench_now() - start) / 1e3;
    }
    if (fd >= 0) close(fd);
    if (listener >= 0) close(listener);
    return rc;
}

/* KiB of the field of /proc/self/status, 0 if there is none. */
static long memory(const char *field)
{
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtol(line + strlen(field), NULL, 10);
    }
    if (f) (void)fclose(f);
    return kib;
}

/* From here on VmHWM is the peak. */
static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f) return;
    (void)fputs("5", f);
    (void)fclose(f);
}

/* Nothing differs; rank 0 says when to stop. */
static pcclResult_t measure_equal(struct sync_run *r, double seconds)
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

/* Changes each `stride`-th block, from the first one on; returns the bytes of
 * those blocks, all of which are to be moved. */
static size_t change_blocks(uint8_t *bytes, size_t size, size_t stride,
                            int value)
{
    size_t changed = 0;
    for (size_t at = 0; at < size; at += stride * BLOCK) {
        size_t block = size - at < BLOCK ? size - at : BLOCK;
        memset(bytes + at, value, block);
        changed += block;
    }
    return changed;
}

/* The last rank has other bytes in each `stride`-th block. */
static pcclResult_t measure_newcomer(struct sync_run *r, int rounds,
                                     size_t stride, bool *wrong)
{
    pcclResult_t rc = pcclSuccess;
    const bool newcomer = r->rank == r->size - 1;
    for (int i = 0; i < rounds && rc == pcclSuccess; i++) {
        size_t received = 0;
        size_t changed = 0;
        if (newcomer)
            changed =
                change_blocks(r->tensor.data, r->tensor.count, stride, 77 + i);
        if (newcomer) r->state.revision = 0;
        rc = barrier(r);
        if (rc == pcclSuccess) rc = sync_once(r, &received);
        *wrong |= received != changed;
        const uint8_t *bytes = r->tensor.data;
        for (size_t k = 0; k < r->tensor.count; k += 4001)
            *wrong |= bytes[k] != 5;
    }
    return rc;
}

static void print(struct sync_run *r, const char *what, size_t size)
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

static pcclResult_t measure_size(struct sync_run *r,
                                 const struct bench_options *o, bool *wrong)
{
    const size_t size = r->tensor.count;
    r->count = 0;
    pcclResult_t rc = measure_read(r, o->rounds);
    if (rc == pcclSuccess) print(r, "read", size);
    r->count = 0;
    if (rc == pcclSuccess) rc = measure_equal(r, o->seconds);
    if (rc == pcclSuccess) print(r, "equal", size);
    if (r->size == 1) return rc;
    r->count = 0;
    if (rc == pcclSuccess) rc = measure_copy(r, o->rounds);
    if (rc == pcclSuccess) print(r, "tcp copy", size);
    r->count = 0;
    forget_peak();
    long before = memory("VmHWM:");
    if (rc == pcclSuccess) rc = measure_newcomer(r, o->rounds, 1, wrong);
    long after = memory("VmHWM:");
    if (rc != pcclSuccess) return rc;
    print(r, "newcomer", size);
    if (r->rank == 0)
        printf(r->o->json ? "{\"op\":\"sync\",\"size\":%zu,"
                            "\"holder_peak_KiB\":%ld}\n"
                          : "# %zu bytes: peak memory of a holder + %ld KiB\n",
               size, after - before);
    r->count = 0;
    rc = measure_newcomer(r, o->rounds, 100, wrong);
    if (rc == pcclSuccess) print(r, "1 % other", size);
    return rc;
}

int bench_sync(const struct bench_options *o, pcclComm_t *comm)
{
    struct sync_run r = {.o = o, .comm = comm};
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
        rc = measure_size(&r, o, &wrong);
        revision = r.state.revision;
        free(data);
    }
    if (rc != pcclSuccess || wrong)
        fprintf(stderr, "pccl-bench: %s%s\n", pcclGetErrorString(rc),
                wrong ? ", and wrong bytes" : "");
    free(r.times);
    return rc == pcclSuccess && !wrong ? 0 : 1;
}
