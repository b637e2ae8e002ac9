/* test_fork.c - a forked child has no part in its parent's run: every call on
 * an inherited communicator or master is refused, giving them back touches
 * nothing but memory, its sockets are closed in the child, and descriptors end
 * at exec. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, COUNT = 100000, DONE = 1, CHILDREN = 3 };

static float in[COUNT], out[COUNT];

static pcclCollective_t sum(size_t count)
{
    return (pcclCollective_t){.size = sizeof(pcclCollective_t),
                              .kind = pcclKindAllReduce,
                              .tag = 7,
                              .sendbuf = in,
                              .recvbuf = out,
                              .count = count,
                              .datatype = pcclFloat,
                              .op = pcclSum};
}

static void reduce(const struct seat *seat, pcclComm_t *comm)
{
    static const size_t counts[] = {1, 1000, COUNT};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        pcclCollective_t c = sum(counts[i]);
        out[0] = 0;
        SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclSuccess);
        SEAT_EQUAL(seat, out[0], RANKS);
    }
    SEAT_EQUAL(seat, world_size(comm), RANKS);
}

#define MISUSED(call) SEAT_EQUAL(seat, (call), pcclInvalidUsage)

/* In the child: nothing blocks, nothing leaves the process. */
static void refused(const struct seat *seat, pcclComm_t *comm)
{
    pcclCollective_t c = sum(1000);
    pcclReduceDescriptor_t d = {.count = 1, .tag = 1};
    pcclSharedState_t state = {0};
    pcclAsyncReduceOp_t handle = {comm, 99};
    pcclCommOptions_t options = {.size = sizeof options};
    bool flag;
    int value;
    char text[64];
    MISUSED(pcclCollective(&c, comm, NULL));
    MISUSED(pcclCollectiveAsync(&c, comm, &handle));
    MISUSED(pcclAllReduce(in, out, &d, comm, NULL));
    handle.comm = comm;
    MISUSED(pcclAwaitAsyncReduce(&handle, NULL));
    MISUSED(pcclTestAsync(&handle, &flag));
    MISUSED(pcclUpdateTopology(comm));
    MISUSED(pcclOptimizeTopology(comm));
    MISUSED(pcclArePeersPending(comm, &flag));
    MISUSED(pcclSynchronizeSharedState(
        comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL));
    MISUSED(pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value));
    MISUSED(pcclGetLastError(comm, text, sizeof text));
    MISUSED(pcclSetOptions(comm, &options));
    MISUSED(pcclPostMessage(comm, 1, "x", 1, NULL, 0));
    MISUSED(pcclAbortRun(comm, 1));
    MISUSED(pcclConnect(comm));
}

/* The child is a program of its own that may have a run of its own. */
static void lives(const struct seat *seat)
{
    pcclMasterInstance_t *master = NULL;
    uint16_t port;
    SEAT_EQUAL(seat, pcclCreateMaster(cluster_address(0), &master),
               pcclSuccess);
    SEAT_EQUAL(seat, pcclRunMaster(master), pcclSuccess);
    SEAT_EQUAL(seat, pcclGetMasterPort(master, &port), pcclSuccess);
    pcclCommCreateParams_t params = {.master_address = cluster_address(port),
                                     .p2p_connection_pool_size = 1};
    pcclComm_t *comm = NULL;
    SEAT_EQUAL(seat, pcclCreateCommunicator(&params, &comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), 1);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyMaster(master), pcclSuccess);
}

static void child(const struct seat *seat, pcclComm_t *comm, int number)
{
    alarm(PATIENCE_S);
    refused(seat, comm);
    if (number > 0)
        SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    if (number > 1) lives(seat);
    exit(0); /* with exit handlers, as a program does */
}

static void body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    reduce(seat, comm);
    for (int i = 0; seat->index == 0 && i < CHILDREN; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) child(seat, comm, i);
        SEAT_EQUAL(seat, waitpid(pid, &status, 0), pid);
        SEAT_EQUAL(seat, status, 0);
    }
    reduce(seat, comm);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    reduce(seat, comm);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_children_take_no_part(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "5");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, NULL);
    for (int i = 0; i < RANKS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* Forks while the I/O threads work: a lock may be held, or a list in the middle
 * of a change. */
static void busy_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    for (int i = 0; i < 30; i++) {
        pcclAsyncReduceOp_t handle;
        pcclCollective_t c = sum(COUNT);
        pid_t pid = -1;
        SEAT_EQUAL(seat, pcclCollectiveAsync(&c, comm, &handle), pcclSuccess);
        if (seat->index == 0) pid = fork();
        if (pid == 0) {
            alarm(PATIENCE_S);
            MISUSED(pcclAwaitAsyncReduce(&handle, NULL));
            SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
            exit(0);
        }
        int status = 0;
        SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handle, NULL), pcclSuccess);
        if (pid > 0) SEAT_EQUAL(seat, waitpid(pid, &status, 0), pid);
        SEAT_EQUAL(seat, status, 0);
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_forks_of_a_busy_process(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "5");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, busy_body, NULL);
    for (int i = 0; i < RANKS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

static int count_inherited(const bool *before)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        int fd = (int)strtol(e->d_name, NULL, 10);
        if (*e->d_name == '.' || fd == dirfd(folder) || fd >= 1024) continue;
        bool inherited = (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
        count += inherited && !before[fd];
    }
    closedir(folder);
    return count;
}

/* What is open at exec in a member of a busy run. */
static void exec_body(struct seat *seat)
{
    bool before[1024] = {false};
    for (int fd = 0; fd < 1024; fd++) before[fd] = fcntl(fd, F_GETFD) >= 0;
    pcclMasterInstance_t *master = NULL;
    SEAT_EQUAL(seat, pcclCreateMaster(cluster_address(0), &master),
               pcclSuccess);
    SEAT_EQUAL(seat, pcclRunMaster(master), pcclSuccess);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    reduce(seat, comm);
    SEAT_EQUAL(seat, count_inherited(before), 0);
    reduce(seat, comm);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyMaster(master), pcclSuccess);
}

static void test_no_descriptor_survives_exec(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, "5");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, exec_body, NULL);
    for (int i = 0; i < RANKS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

/* A worker of a data loader, say: it outlives its parent, and holds what it was
 * born with. It ends by a signal of the test. It runs when this returns:
 * before, it may still hold what a child gives up. */
static pid_t start_worker(void)
{
    int ends[2];
    char here = 0;
    if (pipe(ends) != 0) return 0;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S);
        if (write(ends[1], &here, 1) != 1) _exit(1);
        for (;;) pause();
    }
    bool runs = pid > 0 && read(ends[0], &here, 1) == 1;
    (void)close(ends[0]);
    (void)close(ends[1]);
    return runs ? pid : 0;
}

static void parent_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 3);
    pid_t worker = seat->arg ? start_worker() : 0;
    pcclCollective_t c = sum(COUNT);
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclSuccess);
    seat_report(seat, DONE, worker);
    if (seat->arg) (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclRankConnectionLost);
    SEAT_EQUAL(seat, world_size(comm), 2);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* By the deadline it would be seen after the test has given up. */
static void test_a_death_is_seen_at_once(void **state)
{
    (void)state;
    static const char forks[] = "forks";
    struct cluster c;
    pid_t workers[3];
    cluster_start(&c, "3600");
    for (int i = 0; i < 3; i++)
        cluster_add(&c, parent_body, i == 1 ? forks : NULL);
    for (int i = 0; i < 3; i++) workers[i] = (pid_t)cluster_await(&c, i, DONE);
    cluster_signal(&c, 1, SIGKILL);
    cluster_finish(&c, 0);
    cluster_finish(&c, 2);
    cluster_stop(&c);
    assert_true(workers[1] > 0);
    assert_int_equal(kill(workers[1], SIGKILL), 0);
}

/* What a process with a coordinator of its own, and a worker, reports. */
struct ran {
    pid_t worker;
    uint16_t port;
};

static _Noreturn void run_master(int to)
{
    struct ran ran = {.port = 0};
    pcclMasterInstance_t *master = NULL;
    bool ok = pcclCreateMaster(cluster_address(0), &master) == pcclSuccess &&
              pcclRunMaster(master) == pcclSuccess &&
              pcclGetMasterPort(master, &ran.port) == pcclSuccess;
    ran.worker = ok ? start_worker() : 0;
    alarm(PATIENCE_S);
    if (write(to, &ran, sizeof ran) != sizeof ran) _exit(1);
    for (;;) pause();
}

/* A killed coordinator is gone for everybody: its port is free. */
static void test_a_killed_master_is_gone(void **state)
{
    (void)state;
    int ends[2];
    struct ran ran;
    pcclMasterInstance_t *master = NULL;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) run_master(ends[1]);
    assert_int_equal(read(ends[0], &ran, sizeof ran), sizeof ran);
    assert_true(ran.worker > 0);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(pcclCreateMaster(cluster_address(ran.port), &master), 0);
    assert_int_equal(pcclRunMaster(master), pcclSuccess);
    assert_int_equal(pcclDestroyMaster(master), pcclSuccess);
    assert_int_equal(kill(ran.worker, SIGKILL), 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A child that gives the coordinator back, or interrupts it, leaves its
 * parent's alone. */
static void test_inherited_master(void **state)
{
    (void)state;
    pcclMasterInstance_t *master = NULL;
    uint16_t port;
    assert_int_equal(pcclCreateMaster(cluster_address(0), &master), 0);
    assert_int_equal(pcclRunMaster(master), pcclSuccess);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S);
        bool ok = pcclInterruptMaster(master) == pcclInvalidUsage &&
                  pcclRunMaster(master) == pcclInvalidUsage &&
                  pcclMasterAwaitTermination(master) == pcclInvalidUsage &&
                  pcclGetMasterPort(master, &port) == pcclInvalidUsage &&
                  pcclDestroyMaster(master) == pcclSuccess;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(pcclGetMasterPort(master, &port), pcclSuccess);
    pcclCommCreateParams_t params = {.master_address = cluster_address(port),
                                     .p2p_connection_pool_size = 1};
    pcclComm_t *comm = NULL;
    assert_int_equal(pcclInit(), pcclSuccess);
    assert_int_equal(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    assert_int_equal(pcclConnect(comm), pcclSuccess);
    assert_int_equal(pcclDestroyCommunicator(comm), pcclSuccess);
    assert_int_equal(pcclDestroyMaster(master), pcclSuccess);
}

int main(void)
{
    for (size_t i = 0; i < COUNT; i++) in[i] = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_take_no_part),
        cmocka_unit_test(test_forks_of_a_busy_process),
        cmocka_unit_test(test_no_descriptor_survives_exec),
        cmocka_unit_test(test_a_death_is_seen_at_once),
        cmocka_unit_test(test_a_killed_master_is_gone),
        cmocka_unit_test(test_inherited_master),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
