/* cluster.c - forks and controls the processes of a test. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

ccoip_socket_address_t cluster_address(uint16_t port)
{
    ccoip_socket_address_t a = {.inet = {.protocol = inetIPv4}, .port = port};
    a.inet.ipv4.data[0] = 127;
    a.inet.ipv4.data[3] = 1;
    return a;
}

int world_size(const pcclComm_t *comm)
{
    int size = -1;
    (void)pcclGetView(comm, NULL, NULL, &size, NULL, 0);
    return size;
}

int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void wait_until_asleep(const atomic_int *thread)
{
    for (;;) {
        char name[64];
        char text[512] = "";
        int number = atomic_load(thread);
        (void)snprintf(name, sizeof name, "/proc/self/task/%d/stat", number);
        FILE *file = number > 0 ? fopen(name, "r") : NULL;
        size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file) fclose(file);
        const char *state = size > 0 ? strrchr(text, ')') : NULL;
        if (state && state[2] == 'S') return;
        sched_yield();
    }
}

/* ------------------------------------------------------------------- ranks */

void seat_fail(const struct seat *seat, const char *file, int line,
               const char *text, int64_t got, int64_t want)
{
    fprintf(stderr, "%s:%d: rank %d: %s is %lld, not %lld\n", file, line,
            seat->index, text, (long long)got, (long long)want);
    _exit(1);
}

void seat_report(const struct seat *seat, int kind, int64_t value)
{
    struct report r = {.kind = kind, .value = value};
    SEAT_CHECK(seat, write(seat->report_fd, &r, sizeof r) == sizeof r);
}

int32_t seat_hear(const struct seat *seat)
{
    int32_t order = 0;
    SEAT_CHECK(seat, read(seat->order_fd, &order, sizeof order) ==
                         (ssize_t)sizeof order);
    return order;
}

pcclComm_t *seat_create_pool(const struct seat *seat, uint32_t pool)
{
    pcclCommCreateParams_t params = {.master_address =
                                         cluster_address(seat->port),
                                     .p2p_connection_pool_size = pool};
    pcclCommOptions_t options = {.size = sizeof options,
                                 .rank_hint = seat->index};
    pcclComm_t *comm = NULL;
    SEAT_EQUAL(seat, pcclInit(), pcclSuccess);
    SEAT_EQUAL(seat, pcclCreateCommunicator(&params, &comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclSetOptions(comm, &options), pcclSuccess);
    return comm;
}

pcclComm_t *seat_create(const struct seat *seat)
{
    return seat_create_pool(seat, 1);
}

pcclComm_t *seat_join(const struct seat *seat)
{
    pcclComm_t *comm = seat_create(seat);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    return comm;
}

void seat_gather(const struct seat *seat, pcclComm_t *comm, int size)
{
    while (world_size(comm) < size)
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), size);
}

/* ------------------------------------------------------------ test process */

/* A child that dies with its parent. */
static pid_t start_child(void)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    return 0;
}

static void be_master(int port_fd)
{
    pcclMasterInstance_t *master = NULL;
    uint16_t port = 0;
    if (pcclCreateMaster(cluster_address(0), &master) == pcclSuccess &&
        pcclRunMaster(master) == pcclSuccess &&
        pcclGetMasterPort(master, &port) == pcclSuccess &&
        write(port_fd, &port, sizeof port) == (ssize_t)sizeof port)
        (void)pcclMasterAwaitTermination(master);
    _exit(1);
}

void cluster_start(struct cluster *c, const char *deadline)
{
    *c = (struct cluster){0};
    assert_int_equal(setenv("PCCL_DEADLINE", deadline, 1), 0);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    c->master = start_child();
    if (c->master == 0) be_master(fds[1]);
    close(fds[1]);
    ssize_t n = read(fds[0], &c->port, sizeof c->port);
    close(fds[0]);
    assert_int_equal(n, sizeof c->port);
}

int cluster_add(struct cluster *c, seat_body *body, const void *arg)
{
    assert_true(c->count < CLUSTER_RANKS_MAX);
    int reports[2];
    int orders[2];
    assert_int_equal(pipe(reports), 0);
    assert_int_equal(pipe(orders), 0);
    pid_t pid = start_child();
    if (pid == 0) {
        struct seat seat = {.index = c->count,
                            .port = c->port,
                            .arg = arg,
                            .report_fd = reports[1],
                            .order_fd = orders[0]};
        body(&seat);
        exit(0);
    }
    close(reports[1]);
    close(orders[0]);
    c->ranks[c->count] = (struct cluster_rank){pid, reports[0], orders[1]};
    return c->count++;
}

bool cluster_has_report(const struct cluster *c, int rank, int timeout_ms)
{
    struct pollfd p = {.fd = c->ranks[rank].report_fd, .events = POLLIN};
    int n;
    do n = poll(&p, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

int64_t cluster_await(struct cluster *c, int rank, int kind)
{
    struct report r = {0};
    if (!cluster_has_report(c, rank, PATIENCE_MS))
        fail_msg("rank %d says nothing; expected report %d", rank, kind);
    ssize_t n = read(c->ranks[rank].report_fd, &r, sizeof r);
    if (n != sizeof r)
        fail_msg("rank %d ended; expected report %d", rank, kind);
    if (r.kind != kind)
        fail_msg("rank %d: report %d (%lld), not %d", rank, r.kind,
                 (long long)r.value, kind);
    return r.value;
}

void cluster_order(struct cluster *c, int rank, int32_t order)
{
    ssize_t n = write(c->ranks[rank].order_fd, &order, sizeof order);
    assert_int_equal(n, sizeof order);
}

void cluster_finish(struct cluster *c, int rank)
{
    struct report r;
    if (!cluster_has_report(c, rank, PATIENCE_MS))
        fail_msg("rank %d does not end", rank);
    ssize_t n = read(c->ranks[rank].report_fd, &r, sizeof r);
    if (n != 0) fail_msg("rank %d reports %d instead of ending", rank, r.kind);
    int status = 0;
    assert_int_equal(waitpid(c->ranks[rank].pid, &status, 0),
                     c->ranks[rank].pid);
    c->ranks[rank].pid = 0;
    if (status != 0) fail_msg("rank %d ended with status %#x", rank, status);
}

/* *pid becomes 0 when the process is gone. */
static void signal_child(pid_t *pid, int sig)
{
    assert_true(*pid > 0);
    assert_int_equal(kill(*pid, sig), 0);
    if (sig == SIGSTOP) assert_int_equal(waitpid(*pid, NULL, WUNTRACED), *pid);
    if (sig != SIGKILL) return;
    assert_int_equal(waitpid(*pid, NULL, 0), *pid);
    *pid = 0;
}

void cluster_signal(struct cluster *c, int rank, int sig)
{
    signal_child(&c->ranks[rank].pid, sig);
}

void cluster_signal_master(struct cluster *c, int sig)
{
    signal_child(&c->master, sig);
}

static void reap(pid_t pid)
{
    if (pid <= 0) return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

void cluster_stop(struct cluster *c)
{
    for (int i = 0; i < c->count; i++) {
        reap(c->ranks[i].pid);
        close(c->ranks[i].report_fd);
        close(c->ranks[i].order_fd);
    }
    reap(c->master);
    *c = (struct cluster){0};
}
