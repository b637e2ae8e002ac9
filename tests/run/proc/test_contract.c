/* test_contract.c - tests of promises that no other test covers: effects on the
 * process around the library, the number and order of operations, and the
 * counts in attributes. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READY = 1, DONE, WORLD };
enum { GO = 1 };
enum { COUNT = 200000, IN_FLIGHT_MAX = 4096 };

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

static void await_all(struct cluster *c, int count, int kind)
{
    for (int i = 0; i < count; i++) (void)cluster_await(c, i, kind);
}

/* ---------------------------------------------------- the process around it */

static volatile sig_atomic_t pipe_signals;

static void on_pipe(int number)
{
    (void)number;
    pipe_signals++;
}

static void on_exit_of(int status, void *seat)
{
    (void)status;
    seat_report(seat, DONE, -1);
}

static off_t size_of_stdout(void)
{
    struct stat st = {.st_size = -1};
    (void)fstat(STDOUT_FILENO, &st);
    return st.st_size;
}

/* Members and then the master are killed, with all log lines enabled. */
static void polite_body(struct seat *seat)
{
    int file = memfd_create("stdout", 0);
    SEAT_CHECK(seat, file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
    signal(SIGPIPE, on_pipe);
    on_exit(on_exit_of, seat);
    setenv("PCCL_LOG_LEVEL", "TRACE", 1);
    /* The log of one has no reader any more, that of the other no room. */
    int ends[2];
    SEAT_CHECK(seat, pipe(ends) == 0);
    close(ends[0]);
    file = seat->index == 0 ? ends[1] : memfd_create("stderr", 0);
    SEAT_CHECK(seat, file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    struct rlimit none = {0, RLIM_INFINITY};
    signal(SIGXFSZ, on_pipe);
    if (seat->index > 0) SEAT_EQUAL(seat, setrlimit(RLIMIT_FSIZE, &none), 0);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 4);
    struct vector v;
    vector_open(&v, seat, comm, COUNT, seat->index % 2);
    pcclResult_t rc = pcclSuccess;
    seat_report(seat, READY, 0);
    for (int step = 0; rc == pcclSuccess || rc == pcclRankConnectionLost;
         step += rc == pcclSuccess) {
        rc = vector_reduce(&v, step);
        if (rc == pcclSuccess && world_size(comm) == 1) break;
    }
    SEAT_CHECK(seat, rc == pcclSuccess || rc == pcclMasterConnectionFailed);
    seat_report(seat, WORLD, rc);
    (void)seat_hear(seat);
    for (int i = 0; i < 3; i++) (void)pcclUpdateTopology(comm);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    SEAT_EQUAL(seat, pipe_signals, 0);
    SEAT_EQUAL(seat, size_of_stdout(), 0);
    seat_report(seat, DONE, 0);
    _exit(0);
}

static void no_signal_no_output_no_exit(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 4; i++) cluster_add(c, polite_body, NULL);
    await_all(c, 4, READY);
    for (int i = 3; i > 0; i--) cluster_signal(c, i, SIGKILL);
    assert_int_equal(cluster_await(c, 0, WORLD), pcclSuccess);
    cluster_signal_master(c, SIGKILL);
    cluster_order(c, 0, GO);
    assert_int_equal(cluster_await(c, 0, DONE), 0);
    cluster_finish(c, 0);
}

static void says(const struct seat *seat, const pcclComm_t *comm,
                 const char *part)
{
    char text[256] = "?";
    SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text), pcclSuccess);
    if (*part ? !strstr(text, part) : *text != '\0')
        seat_fail(seat, __FILE__, __LINE__, text, 0, 0);
}

/* ------------------------------------------------- breaking connections */

/* Replaces send() and sendmsg() of the library. The other end of a connection
 * may close at any moment. A close between two of our calls, which a send
 * notices first, cannot be arranged from outside; so these functions close the
 * connection themselves. */
enum { PATH_RING = 1, PATH_DATA = 2, PATH_MASTER = 4 };

static _Atomic uint16_t master_port; /* 0: calls are not counted */
static atomic_int to_break, broken;

static void may_break(int fd, int kind)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    if (master_port == 0 || getpeername(fd, (struct sockaddr *)&a, &size))
        return;
    uint16_t port = a.ss_family == AF_INET6
                        ? ((struct sockaddr_in6 *)&a)->sin6_port
                        : ((struct sockaddr_in *)&a)->sin_port;
    if (ntohs(port) == master_port) kind = PATH_MASTER;
    if (!(atomic_fetch_and(&to_break, ~kind) & kind)) return;
    (void)shutdown(fd, SHUT_WR);
    atomic_fetch_or(&broken, kind);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes,
                                                    size_t size, int flags)
{
    may_break(fd, PATH_RING);
    return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

__attribute__((visibility("default"))) ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    may_break(fd, PATH_DATA);
    return syscall(SYS_sendmsg, fd, message, flags);
}

/* Seat 0 has no further connection to break. */
static bool all_agree(const struct seat *seat, pcclComm_t *comm)
{
    int32_t left = seat->index == 0 && atomic_load(&to_break) != 0, any = 0;
    pcclReduceDescriptor_t d = {
        .count = 1, .op = pcclMax, .tag = 9, .src_descriptor = {pcclInt32, 0}};
    SEAT_EQUAL(seat, pcclAllReduce(&left, &any, &d, comm, NULL), pcclSuccess);
    return any == 0;
}

static bool is_asleep(pid_t pid)
{
    char path[64], state = '?';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    int got = fscanf(f, "%*d (%*[^)]) %c", &state);
    (void)fclose(f);
    return got == 1 && state == 'S';
}

/* Process ids of all, by seat. */
static void learn_pids(const struct seat *seat, pcclComm_t *comm, int32_t *pids)
{
    int32_t mine[3] = {0};
    mine[seat->index] = (int32_t)getpid();
    pcclReduceDescriptor_t d = {
        .count = 3, .op = pcclSum, .tag = 8, .src_descriptor = {pcclInt32, 0}};
    SEAT_EQUAL(seat, pcclAllReduce(mine, pids, &d, comm, NULL), pcclSuccess);
}

static void broken_body(struct seat *seat)
{
    enum { STEPS_MAX = 2000 };
    setenv("PCCL_TRANSPORT", seat->arg, 1);
    bool tcp = strcmp(seat->arg, "tcp") == 0;
    signal(SIGPIPE, on_pipe);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 3);
    struct vector v;
    vector_open(&v, seat, comm, COUNT, true);
    master_port = seat->port;
    if (seat->index == 0) atomic_store(&to_break, tcp ? PATH_DATA : PATH_RING);
    int32_t pids[3] = {0};
    learn_pids(seat, comm, pids);
    int step = 0;
    do {
        /* The late one finds the others asleep and has to wake them. */
        for (int i = 1; seat->index == 0 && i < 3; i++)
            while (!is_asleep(pids[i])) (void)sched_yield();
        SEAT_EQUAL(seat, vector_reduce(&v, step), pcclSuccess);
        SEAT_CHECK(seat, ++step < STEPS_MAX);
    } while (!all_agree(seat, comm));
    vector_close(&v);
    if (seat->index == 0) {
        atomic_store(&to_break, PATH_MASTER);
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclUpdateTopologyFailed);
        SEAT_EQUAL(seat, atomic_load(&broken),
                   PATH_MASTER | (tcp ? PATH_DATA : PATH_RING));
    } else {
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
        SEAT_EQUAL(seat, world_size(comm), 2);
    }
    SEAT_EQUAL(seat, pipe_signals, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void no_signal_of_a_broken_way(void **state)
{
    static const char *transports[] = {"tcp", "auto"};
    for (int t = 0; t < 2; t++) {
        struct cluster *c = *state;
        cluster_start(c, "20");
        for (int i = 0; i < 3; i++) cluster_add(c, broken_body, transports[t]);
        for (int i = 0; i < 3; i++) cluster_finish(c, i);
        if (t == 1) return;
        (void)stop(state);
        assert_int_equal(start(state), 0);
    }
}

/* -------------------------------------------------------- many, in any order
 */

static void many_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    static pcclAsyncReduceOp_t handles[IN_FLIGHT_MAX + 1];
    static float in[IN_FLIGHT_MAX + 1], out[IN_FLIGHT_MAX + 1];
    for (int k = 0; k <= IN_FLIGHT_MAX; k++) {
        /* ascending here and descending there; the last one has no slot */
        int tag = seat->index && k < IN_FLIGHT_MAX ? IN_FLIGHT_MAX - 1 - k : k;
        pcclReduceDescriptor_t d = {
            .count = 1, .tag = (uint64_t)tag, .src_descriptor = {pcclFloat, 0}};
        in[tag] = (float)(tag + seat->index);
        SEAT_EQUAL(
            seat,
            pcclAllReduceAsync(&in[tag], &out[tag], &d, comm, &handles[tag]),
            k < IN_FLIGHT_MAX ? pcclSuccess : pcclInternalError);
    }
    says(seat, comm, "4096 operations are in flight");
    for (int k = 0; k < IN_FLIGHT_MAX; k++) {
        int tag = seat->index ? k : IN_FLIGHT_MAX - 1 - k;
        SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handles[tag], NULL),
                   pcclSuccess);
        SEAT_EQUAL(seat, out[tag], 2 * tag + 1);
    }
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void as_many_as_there_is_room_for_in_any_order(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, many_body, NULL);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

/* -------------------------------------------------------------- error texts */

static void reasons_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    pcclMember_t me;
    float x = 1, y;
    SEAT_EQUAL(seat, pcclGetView(comm, NULL, NULL, NULL, &me, 1), pcclSuccess);
    const uint64_t ids[] = {me.id, me.id + 1, me.id};
    pcclCollective_t op = {.size = sizeof op,
                           .kind = pcclKindAllReduce,
                           .sendbuf = &x,
                           .recvbuf = &y,
                           .count = 1,
                           .datatype = pcclFloat,
                           .members = ids,
                           .member_count = 3};
    SEAT_EQUAL(seat, pcclCollective(&op, comm, NULL), pcclInvalidArgument);
    says(seat, comm, "names a member twice");
    op.members = ids + 1;
    op.member_count = 1;
    SEAT_EQUAL(seat, pcclCollective(&op, comm, NULL), pcclInvalidArgument);
    says(seat, comm, "does not contain this peer");
    /* A failure that explains itself does not show an older reason. */
    SEAT_EQUAL(seat, pcclOptimizeTopology(comm), pcclInvalidUsage);
    says(seat, comm, "");
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void failures_say_why(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    cluster_add(c, reasons_body, NULL);
    cluster_finish(c, 0);
}

/* ------------------------------------------------------ without further calls
 */

struct silence {
    const char *transport;
    int tests; /* number of pcclTestAsync calls before it stops calling */
};

/* Seat 0 launches and makes no further call until the other member has the
 * result, which requires seat 0's own contribution to arriving data. The
 * deadline is so long that no timer wakes the library meanwhile (it checks five
 * times per deadline). */
static void silent_body(struct seat *seat)
{
    enum { MUCH = 1 << 20 };
    const struct silence *s = seat->arg;
    setenv("PCCL_TRANSPORT", s->transport, 1);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    struct vector v;
    vector_open(&v, seat, comm, MUCH, false);
    if (seat->index == 0) {
        pcclAsyncReduceOp_t handle;
        bool over = false;
        SEAT_EQUAL(seat, vector_launch(&v, 0, &handle), pcclSuccess);
        for (int i = 0; i < s->tests && !over; i++)
            SEAT_EQUAL(seat, pcclTestAsync(&handle, &over), pcclSuccess);
        seat_report(seat, READY, over);
        (void)seat_hear(seat);
        SEAT_EQUAL(seat, vector_await(&v, 0, &handle), pcclSuccess);
    } else {
        SEAT_EQUAL(seat, seat_hear(seat), GO);
        SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclSuccess);
        seat_report(seat, DONE, 0);
    }
    vector_close(&v);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void what_is_launched_goes_on_by_itself(void **state)
{
    static const struct silence silences[] = {
        {"auto", 0}, {"auto", 1000}, {"tcp", 0}, {"tcp", 1000}};
    for (int i = 0; i < 4; i++) {
        struct cluster *c = *state;
        cluster_start(c, "600");
        for (int k = 0; k < 2; k++) cluster_add(c, silent_body, &silences[i]);
        assert_int_equal(cluster_await(c, 0, READY), 0); /* not complete */
        cluster_order(c, 1, GO);
        (void)cluster_await(c, 1, DONE);
        cluster_order(c, 0, GO);
        for (int k = 0; k < 2; k++) cluster_finish(c, k);
        (void)stop(state);
        assert_int_equal(start(state), 0);
    }
}

/* ----------------------------------------------------- only accepted peers */

static void member_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    seat_report(seat, READY, 0);
    (void)seat_hear(seat);
    bool pending = false;
    while (!pending)
        SEAT_EQUAL(seat, pcclArePeersPending(comm, &pending), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), 2);
    seat_report(seat, WORLD, 0);
    struct vector v;
    vector_open(&v, seat, comm, COUNT, true);
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclRankConnectionLost);
    SEAT_EQUAL(seat, world_size(comm), 1);
    vector_close(&v);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), 2);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void newcomer_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    SEAT_EQUAL(seat, world_size(comm), 2);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

/* A waiting newcomer is not counted, also after a loss. */
static void who_waits_is_not_counted(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, member_body, NULL);
    await_all(c, 2, READY);
    cluster_add(c, newcomer_body, NULL);
    for (int i = 0; i < 2; i++) cluster_order(c, i, GO);
    await_all(c, 2, WORLD);
    cluster_signal(c, 1, SIGKILL);
    cluster_order(c, 0, GO);
    cluster_finish(c, 0);
    cluster_finish(c, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(no_signal_no_output_no_exit),
        TEST(no_signal_of_a_broken_way),
        TEST(as_many_as_there_is_room_for_in_any_order),
        TEST(failures_say_why),
        TEST(what_is_launched_goes_on_by_itself),
        TEST(who_waits_is_not_counted),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/contract", tests, NULL, NULL);
}
