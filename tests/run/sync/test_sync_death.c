/* test_sync_death.c - tests of processes killed in the middle of a transfer:
 * the others complete their synchronization with the elected bytes, in bounded
 * time.
 *
 * The first ranks hold 1s, the last one or two receive. The parent kills one of
 * them some milliseconds after all have called; the times only choose where. */
#include "../../../include/pccl.h"
#include "../../master_process.h"
#include "../../patience.h"

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
    int kind; /* 0: calls now, 1: success, 2: any other result */
    size_t sent, received;
    size_t grown; /* peak growth of memory during the call */
};

static int reports[2];
static uint16_t port;
static int receivers = 1;
static bool apart; /* send-only and receive-only strategies instead of
                      enforce-popular */

static void tell(int rank, int kind, const pcclSharedStateSyncInfo_t *info,
                 size_t grown)
{
    struct report r = {rank, kind, info->tx_bytes, info->rx_bytes, grown};
    if (write(reports[1], &r, sizeof r) != sizeof r) _exit(1);
}

static pcclComm_t *join(int ranks)
{
    pcclCommCreateParams_t params = {.master_address = loopback(port)};
    pcclComm_t *comm;
    int size = 1;
    if (pcclInit() != pcclSuccess ||
        pcclCreateCommunicator(&params, &comm) != pcclSuccess ||
        pcclConnect(comm) != pcclSuccess)
        _exit(1);
    (void)pcclGetView(comm, NULL, NULL, &size, NULL, 0);
    while (size < ranks) {
        if (pcclUpdateTopology(comm) != pcclSuccess) _exit(1);
        (void)pcclGetView(comm, NULL, NULL, &size, NULL, 0);
    }
    return comm;
}

/* Peak resident bytes of this process since the last reset. */
static size_t peak_memory(bool afresh)
{
    char line[128];
    size_t kib = 0;
    FILE *f = afresh ? fopen("/proc/self/clear_refs", "w") : NULL;
    if (f) {
        (void)fputs("5", f);
        (void)fclose(f);
    }
    f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtoul(line + 6, NULL, 10);
    if (f) (void)fclose(f);
    return kib << 10;
}

static void be_peer(int rank)
{
    uint8_t *bytes = malloc(SIZE);
    if (!bytes) _exit(1);
    bool receives = rank >= RANKS - receivers;
    memset(bytes, receives ? 9 : 1, SIZE);
    pcclComm_t *comm = join(RANKS);
    pcclTensorInfo_t tensor = {
        .name = "state", .data = bytes, .count = SIZE, .datatype = pcclUint8};
    pcclSharedState_t state = {0, 1, &tensor};
    pcclSharedStateSyncInfo_t info = {0, 0};
    pcclSharedStateSyncStrategy_t strategy =
        PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR;
    if (apart)
        strategy = receives ? PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY
                            : PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY;
    size_t before = peak_memory(true);
    tell(rank, 0, &info, 0);
    pcclResult_t rc = pcclSynchronizeSharedState(comm, &state, strategy, &info);
    size_t grown = peak_memory(false) - before;
    bool right = rc == pcclSuccess;
    char why[256] = "";
    (void)pcclGetLastError(comm, why, sizeof why);
    if (rc != pcclSuccess) fprintf(stderr, "rank %d: %d %s\n", rank, rc, why);
    for (size_t i = 0; i < SIZE; i++) right &= bytes[i] == 1;
    tell(rank, right ? 1 : 2, &info, grown);
    _exit(0);
}

static pid_t start(int rank)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE_S);
        be_peer(rank);
    }
    return pid;
}

static void die_after(int victim, int milliseconds)
{
    pid_t pids[RANKS];
    pid_t master = start_master(&port);
    assert_true(master > 0);
    assert_int_equal(pipe(reports), 0);
    for (int i = 0; i < RANKS; i++) pids[i] = start(i);
    close(reports[1]);
    int calling = 0;
    int ended = 0;
    bool killed = false;
    bool wrong = false;
    bool dead_too = false; /* it completed before it was killed */
    size_t received = 0;
    size_t sent = 0;
    size_t grown = 0;
    struct report r; /* the pipe ends when all ranks have ended */
    while (read(reports[0], &r, sizeof r) == sizeof r) {
        calling += r.kind == 0;
        if (r.kind != 0 && !(killed && r.rank == victim)) ended++;
        wrong |= r.kind == 2;
        if (r.kind == 1) received += r.received;
        if (r.kind == 1) sent += r.sent;
        dead_too |= r.kind != 0 && r.rank == victim;
        if (r.grown > grown) grown = r.grown;
        if (calling < RANKS || killed) continue;
        /* not a wait for an event: the moment of the kill is the input */
        struct timespec t = {0, milliseconds * 1000000L};
        (void)nanosleep(&t, NULL);
        (void)kill(pids[victim], SIGKILL);
        killed = true;
    }
    for (int i = 0; i < RANKS; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    stop_master(master);
    close(reports[0]);
    assert_false(wrong);
    assert_true(ended >= RANKS - 1);
    /* No process has copied the state, or half of it. */
    assert_in_range(grown, 1, SIZE / 4);
    /* Bytes sent to the dead count nowhere; bytes sent by the dead are lost. */
    size_t takers = (size_t)receivers;
    if (victim >= RANKS - receivers && !dead_too) takers--;
    assert_int_equal(received, takers * SIZE);
    /* It was complete, but was killed before it could report that. */
    bool unsaid = takers < (size_t)receivers && sent == received + SIZE;
    if (victim < RANKS - receivers && !dead_too)
        assert_true(sent <= received);
    else if (victim < RANKS - receivers || takers == 0 || apart || dead_too)
        assert_true(sent == received || unsaid);
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

/* Receivers do not forward: holders send what the other receiver has. */
static void test_one_of_two_receivers_dies(void **state)
{
    (void)state;
    receivers = 2;
    apart = true;
    for (int i = 0; i < 3; i++) die_after(RANKS - 1, 15 + 30 * i);
    apart = false;
    receivers = 1;
}

/* --- all are killed, and the run goes on --- */

static void go_on(uint64_t revision, uint8_t content, int ready)
{
    uint8_t bytes[1000];
    char why[256] = "";
    memset(bytes, content, sizeof bytes);
    pcclTensorInfo_t tensor = {.name = "state",
                               .data = bytes,
                               .count = sizeof bytes,
                               .datatype = pcclUint8};
    pcclSharedState_t state = {revision, 1, &tensor};
    pcclComm_t *comm = join(1);
    pcclResult_t rc = pcclSynchronizeSharedState(
        comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
    (void)pcclGetLastError(comm, why, sizeof why);
    struct report r = {.rank = (int)state.revision, .kind = (int)rc};
    r.received = strstr(why, "goes on only from the content") != NULL;
    r.sent = strstr(why, "revision 41 is expected, this peer has") != NULL;
    if (write(ready, &r, sizeof r) != sizeof r) _exit(1);
    pause(); /* to be killed */
    _exit(0);
}

/* A process that synchronizes alone and is then killed. */
static struct report alone(uint64_t revision, uint8_t content)
{
    struct report r = {0};
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE_S);
        go_on(revision, content, ready[1]);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &r, sizeof r), sizeof r);
    close(ready[0]);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return r;
}

static void test_all_die_and_the_run_goes_on(void **state)
{
    (void)state;
    pid_t master = start_master(&port);
    assert_true(master > 0);
    struct report first = alone(41, 7);
    struct report other = alone(41, 8); /* the wrong checkpoint */
    struct report older = alone(40, 7); /* an older one */
    struct report newer = alone(42, 7); /* a newer one from another run */
    struct report same = alone(41, 7);  /* the right one */
    struct report again = alone(41, 8); /* the wrong one again */
    stop_master(master);
    assert_int_equal(first.kind, pcclSuccess);
    assert_int_equal(first.rank, 41);
    assert_int_equal(other.kind, pcclInvalidUsage);
    assert_int_equal(other.received, 1);
    assert_int_equal(older.kind, pcclNoSharedStateAvailable);
    assert_int_equal(older.sent, 1);
    assert_int_equal(newer.kind, pcclInvalidUsage);
    assert_int_equal(newer.sent, 1);
    assert_int_equal(same.kind, pcclSuccess);
    assert_int_equal(same.rank, 41);
    assert_int_equal(again.kind, pcclInvalidUsage);
}

int main(void)
{
    (void)setenv("PCCL_DEADLINE", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_holder_dies),
        cmocka_unit_test(test_the_receiver_dies),
        cmocka_unit_test(test_one_of_two_receivers_dies),
        cmocka_unit_test(test_all_die_and_the_run_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
