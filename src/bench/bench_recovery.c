/* bench_recovery.c - how long a kill, a stop or a join holds the others up.
 *
 * The program is its own launcher: it runs a master in a thread, forks the
 * ranks, and reads from a pipe what they report. Times are CLOCK_MONOTONIC,
 * which all processes of a machine share. */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One line of a rank's report; small enough that a pipe keeps it whole. */
struct recovery_report {
    int rank;
    int kind; /* 0: warmed up, 1: recovered or joined, 2: failed */
    int64_t started, failed, closed, proposed, installed, done, longest;
};

struct recovery_group {
    const struct bench_options *o;
    pcclMasterInstance_t *master;
    uint16_t port;
    int pipe[2];
    pid_t pids[64];
};

static void tell(const struct recovery_group *g, struct recovery_report r)
{
    ssize_t ignored = write(g->pipe[1], &r, sizeof r);
    (void)ignored;
}

static pcclResult_t reduce(pcclComm_t *comm, float *buffer, size_t count,
                           float *out)
{
    pcclReduceDescriptor_t d = {
        .count = count,
        .op = pcclSum,
        .tag = 1,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
    return pcclAllReduce(buffer, out, &d, comm, NULL);
}

/* Touched before use, as the buffers of a program at work are. */
static float *make_buffer(size_t count)
{
    float *buffer = malloc(count * sizeof *buffer);
    for (size_t i = 0; buffer && i < count; i++) buffer[i] = 1;
    return buffer;
}

static int world_of(pcclComm_t *comm)
{
    int size = 0;
    (void)pcclGetView(comm, NULL, NULL, &size, NULL, 0);
    return size;
}

/* Nobody ends before all have their results: who ends at once may keep another
 * one from its own. finish() ends them. */
__attribute__((noreturn)) static void
tell_and_stay(const struct recovery_group *g, struct recovery_report r)
{
    tell(g, r);
    for (;;) pause();
}

static size_t elements(const struct recovery_group *g)
{
    const char *sizes = g->o->sizes;
    size_t size = 0;
    (void)bench_size(&sizes, &size);
    return size / sizeof(float);
}

/* A rank that lets others in until all are there, then reduces until a loss
 * was repaired (or, `join`, until a newcomer was let in). */
static void be_member(const struct recovery_group *g, int rank, bool join)
{
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", g->port);
    int64_t begun = bench_now();
    pcclComm_t *comm = bench_connect(address, rank, g->o->pool);
    size_t count = elements(g);
    float *in = make_buffer(count);
    float *out = make_buffer(count);
    struct recovery_report r = {.rank = rank, .kind = 2, .started = begun};
    int steps = 0;
    int full = 0;
    bool first = true;
    while (comm && in && out) {
        int64_t before = bench_now();
        pcclResult_t rc = pcclSuccess;
        /* Whoever has just been admitted goes on where the others do after
         * their update: with the operation. */
        bool all = world_of(comm) >= g->o->ranks;
        if (!first && r.failed == 0 && (join || !all))
            rc = pcclUpdateTopology(comm);
        first = false;
        int world = world_of(comm);
        if (rc == pcclSuccess && world > 1) rc = reduce(comm, in, count, out);
        int64_t after = bench_now();
        if (after - before > r.longest) r.longest = after - before;
        if (rc == pcclRankConnectionLost) {
            pcclViewChange_t v;
            (void)pcclGetViewChange(comm, &v);
            r.failed = after;
            r.closed = v.closed_ns;
            r.proposed = v.proposed_ns;
            r.installed = v.installed_ns;
            continue;
        }
        if (rc != pcclSuccess) {
            r.kind = 2;
            break;
        }
        if (world < g->o->ranks && r.failed == 0) continue;
        if (++full == 1) r.longest = 0;
        r.done = after;
        r.kind = 1;
        if (r.failed != 0) break;
        if (++steps == 10) {
            struct recovery_report warm = r;
            warm.kind = 0;
            tell(g, warm);
        }
        if (join && world > g->o->ranks) break;
    }
    tell_and_stay(g, r);
}

/* A newcomer: from having its data to its first result. */
static void be_newcomer(const struct recovery_group *g, int rank)
{
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", g->port);
    setenv("PCCL_JOIN", "1", 1);
    size_t count = elements(g);
    float *in = make_buffer(count);
    float *out = make_buffer(count);
    struct recovery_report r = {
        .rank = rank, .kind = 1, .started = bench_now()};
    pcclComm_t *comm = bench_connect(address, -1, g->o->pool);
    if (!comm || !in || !out || reduce(comm, in, count, out) != pcclSuccess)
        r.kind = 2;
    r.done = bench_now();
    tell_and_stay(g, r);
}

static bool start(struct recovery_group *g, const struct bench_options *o,
                  bool join)
{
    ccoip_socket_address_t any = {.inet = {.protocol = inetIPv4}, .port = 0};
    any.inet.ipv4.data[0] = 127;
    any.inet.ipv4.data[3] = 1;
    g->o = o;
    if (pipe(g->pipe) != 0) return false;
    /* The master gets a process of its own: ranks are forked from one that
     * has no threads. */
    int port_pipe[2];
    if (pipe(port_pipe) != 0) return false;
    g->pids[0] = fork();
    if (g->pids[0] == 0) {
        if (pcclCreateMaster(any, &g->master) == pcclSuccess &&
            pcclRunMaster(g->master) == pcclSuccess &&
            pcclGetMasterPort(g->master, &g->port) == pcclSuccess &&
            write(port_pipe[1], &g->port, sizeof g->port) > 0)
            (void)pcclMasterAwaitTermination(g->master);
        _exit(1);
    }
    ssize_t n = read(port_pipe[0], &g->port, sizeof g->port);
    close(port_pipe[0]);
    close(port_pipe[1]);
    if (n != sizeof g->port) return false;
    for (int i = 0; i < o->ranks; i++) {
        pid_t pid = fork();
        if (pid == 0) be_member(g, i, join);
        g->pids[i + 1] = pid;
    }
    return true;
}

static void finish(struct recovery_group *g, int children)
{
    for (int i = children; i >= 0; i--) {
        (void)kill(g->pids[i], SIGKILL);
        (void)waitpid(g->pids[i], NULL, 0);
    }
    close(g->pipe[0]);
    close(g->pipe[1]);
}

static bool receive(const struct recovery_group *g, struct recovery_report *r)
{
    return read(g->pipe[0], r, sizeof *r) == (ssize_t)sizeof *r;
}

static int give_up(struct recovery_group *g, int children, const char *what)
{
    fprintf(stderr, "pccl-bench: %s\n", what);
    finish(g, children);
    return 1;
}

/* All ranks are in one view and have reduced. */
static bool warm_up(struct recovery_group *g)
{
    struct recovery_report r;
    for (int warm = 0; warm < g->o->ranks;) {
        if (!receive(g, &r)) return false;
        if (r.kind != 0) return false;
        warm++;
    }
    return true;
}

enum { PARTS = 6 };

static void head(const struct bench_options *o, const char *what)
{
    if (o->json) return;
    printf("# %s, %d ranks, the slowest of each of %d rounds, ms\n", what,
           o->ranks, o->rounds);
    printf("%-28s %10s %10s %10s\n", "", "p50", "p99", "worst");
}

static void print(const struct bench_options *o, const char *what,
                  const char *name, double *values, int count)
{
    double median = bench_quantile(values, count, 0.5);
    double p99 = bench_quantile(values, count, 0.99);
    double worst = bench_quantile(values, count, 1);
    if (o->json)
        printf("{\"mode\":\"%s\",\"ranks\":%d,\"part\":\"%s\","
               "\"rounds\":%d,\"p50_ms\":%.3f,\"p99_ms\":%.3f,"
               "\"worst_ms\":%.3f}\n",
               what, o->ranks, name, count, median, p99, worst);
    else
        printf("%-28s %10.3f %10.3f %10.3f\n", name, median, p99, worst);
}

/* Ranks warm up with updates each step until all are in, then one dies. */
int bench_recovery(const struct bench_options *o)
{
    static double part[PARTS][1000];
    int count = 0;
    for (int round = 0; round < o->rounds; round++) {
        struct recovery_group g;
        if (!start(&g, o, false)) return 1;
        struct recovery_report r;
        if (!warm_up(&g))
            return give_up(&g, o->ranks, "the ranks did not begin");
        int64_t killed = bench_now();
        (void)kill(g.pids[1 + round % o->ranks], o->signal);
        double worst[PARTS] = {0};
        for (int i = 0; i < o->ranks - 1; i++) {
            if (!receive(&g, &r) || r.failed == 0)
                return give_up(&g, o->ranks, "a survivor did not recover");
            double ms[PARTS] = {(double)(r.closed - killed) / 1e6,
                                (double)(r.proposed - r.closed) / 1e6,
                                (double)(r.installed - r.proposed) / 1e6,
                                (double)(r.failed - r.installed) / 1e6,
                                (double)(r.done - r.failed) / 1e6,
                                (double)(r.done - killed) / 1e6};
            for (int k = 0; k < PARTS; k++)
                if (ms[k] > worst[k]) worst[k] = ms[k];
        }
        for (int k = 0; k < PARTS; k++) part[k][count] = worst[k];
        count++;
        finish(&g, o->ranks);
    }
    static const char *const names[PARTS] = {
        "detect",           "agree", "reconnect",
        "return to caller", "redo",  "kill to next result"};
    const char *what = o->signal == SIGKILL ? "SIGKILL" : "SIGSTOP";
    head(o, what);
    for (int k = 0; k < PARTS; k++) print(o, what, names[k], part[k], count);
    return 0;
}

int bench_join(const struct bench_options *o)
{
    static double join[1000];
    static double still[1000];
    int count = 0;
    for (int round = 0; round < o->rounds; round++) {
        struct recovery_group g;
        if (!start(&g, o, true)) return 1;
        struct recovery_report r;
        if (!warm_up(&g))
            return give_up(&g, o->ranks, "the ranks did not begin");
        g.pids[o->ranks + 1] = fork();
        if (g.pids[o->ranks + 1] == 0) be_newcomer(&g, o->ranks);
        for (int i = 0; i < o->ranks + 1; i++) {
            if (!receive(&g, &r) || r.kind == 2)
                return give_up(&g, o->ranks + 1, "the newcomer did not join");
            if (r.rank == o->ranks)
                join[count] = (double)(r.done - r.started) / 1e6;
            else if ((double)r.longest / 1e6 > still[count])
                still[count] = (double)r.longest / 1e6;
        }
        count++;
        finish(&g, o->ranks + 1);
    }
    head(o, "join");
    print(o, "join", "connect to first result", join, count);
    print(o, "join", "longest step of a member", still, count);
    return 0;
}
