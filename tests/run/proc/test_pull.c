/* test_pull.c - tests blocks that their receivers copy out of the memory of the
 * sender (rule D27), of real processes that think they have a processor each.
 */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, BLOCK = 700 * 1000, ROUNDS = 24, ROOT = 1 };
enum { PULLED = 1, AFTERWARDS }; /* reports */

static bool refuses; /* to copy what is large */

/* The C library's, which this one replaces. ThreadSanitizer calls it before it
 * can be called itself. */
long __sysconf(int name);
__attribute__((visibility("default"), no_sanitize("thread"))) long
sysconf(int name)
{
    return name == _SC_NPROCESSORS_ONLN ? RANKS : __sysconf(name);
}

__attribute__((visibility("default"))) ssize_t
process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
                 const struct iovec *from, unsigned long from_count,
                 unsigned long flags)
{
    if (refuses && to[0].iov_len > 1) {
        errno = EFAULT;
        return -1;
    }
    return syscall(SYS_process_vm_readv, (long)pid, to, to_count, from,
                   from_count, flags);
}

/* Children of this process may read each other's memory. */
static bool may_read(void)
{
    int status = 1;
    char byte;
    pid_t other = fork();
    if (other == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) (void)pause();
    }
    pid_t reader = fork();
    if (reader == 0) {
        struct iovec here = {&byte, 1}, there = {NULL, 1};
        ssize_t n = process_vm_readv(other, &here, 1, &there, 1, 0);
        _exit(n < 0 && errno == EFAULT ? 0 : 1);
    }
    if (reader > 0) (void)waitpid(reader, &status, 0);
    if (other > 0) (void)kill(other, SIGKILL);
    if (other > 0) (void)waitpid(other, NULL, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char byte_of(int from, int to, int round)
{
    return (char)(from * 16 + to * 64 + round);
}

static uint64_t pulled(const struct seat *seat, const pcclComm_t *comm)
{
    pcclStatistics_t n = {.size = sizeof n};
    SEAT_EQUAL(seat, pcclGetStatistics(comm, &n), pcclSuccess);
    return n.cma_received_bytes;
}

/* Once, until it succeeds: a member that cannot read ends the attempt. */
static void exchange(const struct seat *seat, pcclComm_t *comm, pcclFlow_t flow,
                     int round)
{
    static char send[RANKS][BLOCK], recv[RANKS][BLOCK];
    size_t sends[RANKS], recvs[RANKS], displs[RANKS];
    int rank = -1, size = 0;
    pcclResult_t rc = pcclRankConnectionLost;
    for (int attempt = 0; attempt < 8 && rc != pcclSuccess; attempt++) {
        SEAT_EQUAL(seat, pcclGetView(comm, NULL, &rank, &size, NULL, 0),
                   pcclSuccess);
        SEAT_EQUAL(seat, size, RANKS);
        bool all = flow == pcclFlowAll;
        for (int i = 0; i < RANKS; i++) {
            memset(send[i], byte_of(rank, i, round), BLOCK);
            memset(recv[i], 0, BLOCK);
            sends[i] = all || rank == ROOT ? BLOCK : 0;
            recvs[i] = all || i == ROOT ? BLOCK : 0;
            displs[i] = (size_t)i * BLOCK;
        }
        pcclCollective_t op = {.size = sizeof op,
                               .kind = pcclKindAllToAllV,
                               .sendbuf = send,
                               .recvbuf = recv,
                               .send_bytes = sends,
                               .send_displs = displs,
                               .recv_bytes = recvs,
                               .recv_displs = displs,
                               .root = all ? 0 : ROOT,
                               .flow = flow};
        rc = pcclCollective(&op, comm, NULL);
        if (rc != pcclSuccess) SEAT_EQUAL(seat, rc, pcclRankConnectionLost);
    }
    SEAT_EQUAL(seat, rc, pcclSuccess);
    for (int i = 0; i < RANKS; i++) {
        char want = recvs[i] > 0 ? byte_of(i, rank, round) : 0;
        SEAT_EQUAL(seat, recv[i][0], want);
        SEAT_CHECK(seat, memcmp(recv[i], recv[i] + 1, BLOCK - 1) == 0);
    }
}

static void play(struct seat *seat)
{
    bool fails = seat->arg != NULL;
    setenv("PCCL_TRANSPORT", "shm", 1);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    for (int i = 0; i < ROUNDS; i++)
        exchange(seat, comm, i % 2 == 0 ? pcclFlowAll : pcclFlowFromRoot, i);
    uint64_t before = pulled(seat, comm);
    seat_report(seat, PULLED, before > 0);
    refuses = fails && seat->index == 2;
    for (int i = 0; i < 4; i++) exchange(seat, comm, pcclFlowAll, i);
    refuses = false;
    /* What one could not read is sent from then on. */
    uint64_t then = pulled(seat, comm);
    for (int i = 0; i < 4; i++) exchange(seat, comm, pcclFlowAll, i);
    seat_report(seat, AFTERWARDS, pulled(seat, comm) > then);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void run(struct cluster *c, const char *how)
{
    int ranks[RANKS];
    if (!may_read()) skip(); /* Yama, a sandbox */
    cluster_start(c, "20");
    for (int i = 0; i < RANKS; i++) ranks[i] = cluster_add(c, play, how);
    for (int i = 0; i < RANKS; i++) {
        assert_true(cluster_await(c, ranks[i], PULLED));
        int64_t pulls = cluster_await(c, ranks[i], AFTERWARDS);
        assert_int_equal(pulls, !how || i != 2);
    }
    for (int i = 0; i < RANKS; i++) cluster_finish(c, ranks[i]);
}

static void test_blocks_are_pulled(void **state)
{
    run(*state, NULL);
}

static void test_what_cannot_be_read_is_sent(void **state)
{
    run(*state, "fails");
}

static int start(void **state)
{
    *state = calloc(1, sizeof(struct cluster));
    return *state == NULL;
}

static int stop(void **state)
{
    cluster_stop(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_blocks_are_pulled, start, stop),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_read_is_sent, start,
                                        stop),
    };
    return cmocka_run_group_tests_name("proc/pull", tests, NULL, NULL);
}
