/* test_sync_death.c - real processes killed in the middle of a transfer: the
 * others end their synchronization with the elected bytes, in bounded time.
 *
 * Ranks 0, 1 and 2 hold 1s, rank 3 receives. The parent kills one of them some
 * milliseconds after the receiver has called; the times only choose where. */
#include "../../include/pccl.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, SIZE = 96 << 20 };

struct report {
    int rank;
    int kind; /* 0: calls now, 1: success, 2: anything else */
    size_t received;
};

static int reports[2];
static uint16_t port;

static ccoip_socket_address_t loopback(uint16_t number)
{
    ccoip_socket_address_t a = {.inet = {.protocol = inetIPv4}, .port = number};
    a.inet.ipv4.data[0] = 127;
    a.inet.ipv4.data[3] = 1;
    return a;
}

static void tell(int rank, int kind, size_t received)
{
    struct report r = {rank, kind, received};
    if (write(reports[1], &r, sizeof r) != sizeof r) _exit(1);
}

static void be_master(int out)
{
    pcclMasterInstance_t *m;
    uint16_t number;
    if (pcclCreateMaster(loopback(0), &m) != pcclSuccess ||
        pcclRunMaster(m) != pcclSuccess ||
        pcclGetMasterPort(m, &number) != pcclSuccess ||
        write(out, &number, sizeof number) != sizeof number)
        _exit(1);
    (void)pcclMasterAwaitTermination(m);
    _exit(0);
}

static pcclComm_t *join(void)
{
    pcclCommCreateParams_t params = {.master_address = loopback(port)};
    pcclComm_t *comm;
    int size = 1;
    if (pcclInit() != pcclSuccess ||
        pcclCreateCommunicator(&params, &comm) != pcclSuccess ||
        pcclConnect(comm) != pcclSuccess)
        _exit(1);
    (void)pcclGetView(comm, NULL, NULL, &size, NULL, 0);
    while (size < RANKS) {
        if (pcclUpdateTopology(comm) != pcclSuccess) _exit(1);
        (void)pcclGetView(comm, NULL, NULL, &size, NULL, 0);
    }
    return comm;
}

static void be_peer(int rank)
{
    uint8_t *bytes = malloc(SIZE);
    if (!bytes) _exit(1);
    memset(bytes, rank == RANKS - 1 ? 9 : 1, SIZE);
    pcclComm_t *comm = join();
    pcclTensorInfo_t tensor = {
        .name = "state", .data = bytes, .count = SIZE, .datatype = pcclUint8};
    pcclSharedState_t state = {0, 1, &tensor};
    pcclSharedStateSyncInfo_t info = {0, 0};
    tell(rank, 0, 0);
    pcclResult_t rc = pcclSynchronizeSharedState(
        comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &info);
    bool right = rc == pcclSuccess;
    for (size_t i = 0; i < SIZE; i++) right &= bytes[i] == 1;
    tell(rank, right ? 1 : 2, info.rx_bytes);
    _exit(0);
}

static pid_t start(int rank)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(40);
        be_peer(rank);
    }
    return pid;
}

static void die_after(int victim, int milliseconds)
{
    int numbers[2];
    pid_t pids[RANKS];
    assert_int_equal(pipe(reports), 0);
    assert_int_equal(pipe(numbers), 0);
    pid_t master = fork();
    assert_true(master >= 0);
    if (master == 0) be_master(numbers[1]);
    assert_int_equal(read(numbers[0], &port, sizeof port), sizeof port);
    for (int i = 0; i < RANKS; i++) pids[i] = start(i);
    close(reports[1]); /* the pipe ends when all ranks have */
    int calling = 0;
    int ended = 0;
    bool killed = false;
    bool wrong = false;
    size_t received = 0;
    while (ended < RANKS - killed) {
        struct report r;
        if (read(reports[0], &r, sizeof r) != sizeof r) break;
        calling += r.kind == 0;
        if (r.kind != 0 && !(killed && r.rank == victim)) ended++;
        wrong |= r.kind == 2;
        if (r.kind == 1) received += r.received;
        if (calling < RANKS || killed) continue;
        /* Not to wait for anything: the moment of the kill is the input. */
        struct timespec t = {0, milliseconds * 1000000L};
        (void)nanosleep(&t, NULL);
        (void)kill(pids[victim], SIGKILL);
        killed = true;
    }
    for (int i = 0; i < RANKS; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    (void)kill(master, SIGKILL);
    (void)waitpid(master, NULL, 0);
    close(reports[0]);
    close(numbers[0]);
    close(numbers[1]);
    assert_false(wrong);
    assert_true(ended >= RANKS - 1);
    if (victim != RANKS - 1) assert_int_equal(received, SIZE);
}

static void test_a_holder_dies(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) die_after(i % 3, 5 + 25 * i);
}

static void test_the_receiver_dies(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) die_after(RANKS - 1, 20 + 40 * i);
}

int main(void)
{
    (void)setenv("PCCL_DEADLINE", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_holder_dies),
        cmocka_unit_test(test_the_receiver_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
