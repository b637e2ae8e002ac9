/* test_hostile.c - tests in hostile environments: storms of signals, strangers
 * at a member's port, no descriptors, children that inherit sockets, no memory
 * files, a master that dies during every call. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { READY = 1, PORT, DONE, CHILD, CALLING };
enum { GO = 1, END };
enum { RANKS = 3, COUNT = 20000 };

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

static void reduce_some(struct seat *seat, pcclComm_t *comm, int steps)
{
    struct vector v;
    vector_open(&v, seat, comm, COUNT, true);
    for (int step = 0; step < steps; step++)
        SEAT_EQUAL(seat, vector_reduce(&v, step), pcclSuccess);
    vector_close(&v);
}

/* ----------------------------------------------------------------- signals */

static void on_alarm(int number)
{
    (void)number;
}

static void synchronize(struct seat *seat, pcclComm_t *comm)
{
    float x[1000] = {0};
    x[7] = (float)seat->index;
    pcclTensorInfo_t tensor = {.name = "x",
                               .data = x,
                               .count = 1000,
                               .datatype = pcclFloat,
                               .device_type = pcclDeviceCpu};
    pcclSharedState_t shared = {.revision = 1, .count = 1, .infos = &tensor};
    SEAT_EQUAL(seat,
               pcclSynchronizeSharedState(
                   comm, &shared,
                   PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL),
               pcclSuccess);
}

static void storm_body(struct seat *seat)
{
    struct sigaction act = {.sa_handler = on_alarm}; /* no SA_RESTART */
    struct itimerval often = {{0, 300}, {0, 300}};
    SEAT_EQUAL(seat, sigaction(SIGALRM, &act, NULL), 0);
    SEAT_EQUAL(seat, setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int round = 0; round < 10; round++) {
        pcclComm_t *comm = seat_join(seat);
        SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    }
    seat_report(seat, READY, 0);
    int32_t order;
    while (read(seat->order_fd, &order, sizeof order) < 0) continue;
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    reduce_some(seat, comm, 50);
    synchronize(seat, comm);
    SEAT_EQUAL(seat, pcclOptimizeTopology(comm), pcclSuccess);
    reduce_some(seat, comm, 20);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    memset(&often, 0, sizeof often);
    SEAT_EQUAL(seat, setitimer(ITIMER_REAL, &often, NULL), 0);
    seat_report(seat, DONE, 0);
}

static void signals_interrupt_nothing(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(c, storm_body, NULL);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(c, i, READY);
    for (int i = 0; i < RANKS; i++) cluster_order(c, i, GO);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(c, i, DONE);
    for (int i = 0; i < RANKS; i++) cluster_finish(c, i);
}

/* --------------------------------------------------------------- strangers */

/* The port at which this process accepts connections. */
static uint16_t listening_port(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in6 name;
        socklen_t size = sizeof name;
        int listens = 0;
        socklen_t flag = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag) != 0 ||
            !listens)
            continue;
        if (getsockname(fd, (struct sockaddr *)&name, &size) == 0)
            return ntohs(name.sin6_port); /* the same for IPv4 */
    }
    return 0;
}

static void visited_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    seat_report(seat, PORT, listening_port());
    int32_t order = seat_hear(seat);
    while (order == GO) {
        reduce_some(seat, comm, 20);
        seat_report(seat, DONE, 0);
        order = seat_hear(seat);
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static int call(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static bool is_closed(int fd, int patience_ms)
{
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, patience_ms) > 0 && recv(fd, &byte, 1, 0) <= 0;
}

static void work(struct cluster *c)
{
    for (int i = 0; i < 2; i++) cluster_order(c, i, GO);
    for (int i = 0; i < 2; i++) (void)cluster_await(c, i, DONE);
}

static void strangers_are_closed(void **state)
{
    struct cluster *c = *state;
    enum { MANY = 200 };
    static int fds[MANY];
    cluster_start(c, "2");
    for (int i = 0; i < 2; i++) cluster_add(c, visited_body, NULL);
    uint16_t port = (uint16_t)cluster_await(c, 0, PORT);
    (void)cluster_await(c, 1, PORT);
    assert_int_not_equal(port, 0);
    work(c);
    for (int i = 0; i < MANY; i++) {
        static const char web[] = "GET / HTTP/1.1\r\nHost: localhost\r\n"
                                  "Accept: text/html\r\n\r\n";
        fds[i] = call(port);
        if (i % 4 == 1) assert_true(send(fds[i], web, sizeof web, 0) > 0);
        if (i % 4 == 2) assert_true(send(fds[i], web, 7, 0) > 0);
        if (i % 4 == 3) close(fds[i]);
    }
    work(c);
    for (int i = 0; i < MANY; i++) {
        if (i % 4 == 3) continue;
        assert_true(is_closed(fds[i], PATIENCE_MS));
        close(fds[i]);
    }
    /* A peer that sends byte by byte has no more time either. */
    enum { HEADER = 40 }; /* is parsed as a whole */
    int slow = call(port);
    int said = 0;
    while (said < HEADER &&
           !is_closed(slow, said < HEADER - 1 ? 200 : PATIENCE_MS)) {
        if (send(slow, "", 1, MSG_NOSIGNAL) != 1) break;
        said++;
    }
    close(slow);
    assert_in_range(said, 0, HEADER - 1);
    work(c);
    for (int i = 0; i < 2; i++) cluster_order(c, i, END);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

/* Calls that say nothing, more than a rank may have descriptors: of this user
 * the first ones make room (R3i), of another one all are closed (L9). */
static void crowd(struct cluster *c, uid_t user)
{
    enum { MANY = 3000, KEPT = 128 };
    static int fds[MANY];
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    rlim_t before = r.rlim_cur;
    cluster_start(c, "2");
    for (int i = 0; i < 2; i++) cluster_add(c, visited_body, NULL);
    r.rlim_cur = r.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
    uint16_t port = (uint16_t)cluster_await(c, 0, PORT);
    (void)cluster_await(c, 1, PORT);
    int many = r.rlim_max > MANY + 100 ? MANY : (int)r.rlim_max / 2;
    for (int i = 0; i < many; i++) {
        (void)setfsuid(user); /* the kernel notes it for a new socket */
        fds[i] = call(port);
        (void)setfsuid(geteuid());
    }
    work(c);
    int ended = many - (user == geteuid() ? KEPT : 0);
    for (int i = 0; i < many; i++) {
        if (i < ended) assert_true(is_closed(fds[i], PATIENCE_MS));
        close(fds[i]);
    }
    work(c);
    r.rlim_cur = before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
    for (int i = 0; i < 2; i++) cluster_order(c, i, END);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

static void strangers_of_another_user(void **state)
{
    if (geteuid() != 0) skip();
    crowd(*state, 54321);
}

static void strangers_of_this_user(void **state)
{
    crowd(*state, geteuid());
}

/* ------------------------------------------------------------- descriptors */

static int descriptors_used(void)
{
    int used = 0;
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) used = fd + 1;
    return used;
}

/* A process that connects raises the limit as far as it may. */
static void allow_descriptors(struct seat *seat, int limit)
{
    struct rlimit r = {(rlim_t)limit, (rlim_t)limit};
    SEAT_EQUAL(seat, setrlimit(RLIMIT_NOFILE, &r), 0);
}

static void limit_descriptors(struct seat *seat, int limit)
{
    struct rlimit r;
    SEAT_EQUAL(seat, getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = (rlim_t)limit;
    if (r.rlim_cur > r.rlim_max) r.rlim_cur = r.rlim_max;
    SEAT_EQUAL(seat, setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* The limit works only if no descriptor below it is free: fills them and
 * returns the first. */
static int fill_holes(const struct seat *seat)
{
    int used = descriptors_used();
    int fd = 0;
    while (fd >= 0 && fd < used) fd = dup(seat->order_fd);
    if (fd >= 0) close(fd);
    return used;
}

static void few_body(struct seat *seat)
{
    enum { SPARE = 16 };
    bool success = false;
    int failures = 0, spare[SPARE]; /* for the search for leaks at the end */
    for (int i = 0; i < SPARE; i++) spare[i] = dup(seat->order_fd);
    int used = fill_holes(seat);
    for (int more = 15; more >= 0; more--) {
        char text[200] = "";
        pcclComm_t *comm = seat_create(seat);
        allow_descriptors(seat, used + more);
        pcclResult_t rc = pcclConnect(comm);
        bool well = rc == pcclSuccess;
        success |= well;
        failures += !well;
        SEAT_CHECK(seat, well || rc == pcclInternalError ||
                             rc == pcclMasterConnectionFailed);
        SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text),
                   pcclSuccess);
        SEAT_CHECK(seat, well || text[0] != '\0');
        SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
        SEAT_EQUAL(seat, descriptors_used(), used);
    }
    for (int i = 0; i < SPARE; i++) close(spare[i]);
    SEAT_CHECK(seat, success && failures >= 5);
    seat_report(seat, DONE, 0);
}

/* A master inside the program. */
static void few_master_body(struct seat *seat)
{
    ccoip_socket_address_t any = {.inet.protocol = inetIPv4};
    int failures = 0;
    pcclResult_t rc = pcclInternalError;
    int used = fill_holes(seat);
    for (int more = 0; more < 16; more++) {
        pcclMasterInstance_t *master = NULL;
        limit_descriptors(seat, used + more);
        rc = pcclCreateMaster(any, &master);
        if (rc == pcclSuccess) {
            rc = pcclRunMaster(master);
            SEAT_EQUAL(seat, pcclDestroyMaster(master), pcclSuccess);
        }
        failures += rc != pcclSuccess;
        limit_descriptors(seat, 1024);
        SEAT_EQUAL(seat, descriptors_used(), used);
    }
    SEAT_CHECK(seat, rc == pcclSuccess && failures >= 3);
    seat_report(seat, DONE, 0);
}

static void connecting_without_descriptors(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    cluster_add(c, few_body, NULL);
    cluster_add(c, few_master_body, NULL);
    for (int i = 0; i < 2; i++) (void)cluster_await(c, i, DONE);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

static int64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Rank 0 has no descriptors when strangers connect. */
static void full_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    uint16_t port = listening_port();
    reduce_some(seat, comm, 5);
    int taken[1024];
    int count = 0;
    limit_descriptors(seat, descriptors_used());
    for (int fd = 0; seat->index == 0 && fd >= 0;) {
        fd = dup(seat->order_fd);
        if (fd >= 0) taken[count++] = fd;
    }
    seat_report(seat, PORT, port);
    int64_t cpu = cpu_ms();
    int64_t begun = now_ms();
    (void)seat_hear(seat);
    int64_t idle = now_ms() - begun;
    SEAT_CHECK(seat, cpu_ms() - cpu <= 50 + idle / 3);
    while (count > 0) close(taken[--count]);
    limit_descriptors(seat, 1024);
    reduce_some(seat, comm, 5);
    seat_report(seat, DONE, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void callers_without_descriptors(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "2");
    for (int i = 0; i < 2; i++) cluster_add(c, full_body, NULL);
    uint16_t port = (uint16_t)cluster_await(c, 0, PORT);
    (void)cluster_await(c, 1, PORT);
    int first = call(port);
    int second = call(port);
    assert_false(cluster_has_report(c, 0, 1000)); /* idle */
    for (int i = 0; i < 2; i++) cluster_order(c, i, GO);
    for (int i = 0; i < 2; i++) (void)cluster_await(c, i, DONE);
    assert_true(is_closed(first, PATIENCE_MS));
    assert_true(is_closed(second, PATIENCE_MS));
    close(first);
    close(second);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

/* ---------------------------------------------------------------- children */

/* Rank 0 has a child that ends, and one that stays and holds its sockets. */
static void parent_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    reduce_some(seat, comm, 3);
    if (seat->index == 0) {
        pid_t child = fork();
        SEAT_CHECK(seat, child >= 0);
        if (child == 0) exit(0);
        reduce_some(seat, comm, 3);
        child = fork();
        SEAT_CHECK(seat, child >= 0);
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, 0);
            alarm(PATIENCE_S);
            for (;;) pause();
        }
        seat_report(seat, CHILD, child);
    } else {
        reduce_some(seat, comm, 3);
    }
    reduce_some(seat, comm, 3);
    seat_report(seat, READY, 0);
    struct vector v;
    pcclResult_t rc = pcclSuccess;
    vector_open(&v, seat, comm, COUNT, true);
    for (int step = 0; rc == pcclSuccess; step++) rc = vector_reduce(&v, step);
    SEAT_EQUAL(seat, rc, pcclRankConnectionLost);
    SEAT_EQUAL(seat, vector_reduce(&v, 0), pcclSuccess);
    vector_close(&v);
    seat_report(seat, DONE, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void children_keep_sockets(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "2");
    for (int i = 0; i < RANKS; i++) cluster_add(c, parent_body, NULL);
    pid_t child = (pid_t)cluster_await(c, 0, CHILD);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(c, i, READY);
    cluster_signal(c, 0, SIGKILL);
    for (int i = 1; i < RANKS; i++) (void)cluster_await(c, i, DONE);
    assert_int_equal(kill(child, SIGKILL), 0); /* was alive all the time */
    for (int i = 1; i < RANKS; i++) cluster_finish(c, i);
}

/* ------------------------------------------------------------ memory files */

static void forbid_memory_files(struct seat *seat)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = code};
    SEAT_EQUAL(seat, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    SEAT_EQUAL(seat, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void no_files_body(struct seat *seat)
{
    if (seat->index != 1) forbid_memory_files(seat);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    reduce_some(seat, comm, 20);
    seat_report(seat, DONE, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void no_memory_files(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(c, no_files_body, NULL);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(c, i, DONE);
    for (int i = 0; i < RANKS; i++) cluster_finish(c, i);
}

/* ------------------------------------------------------------- no master */

enum { CALL_UPDATE, CALL_PENDING, CALL_OPTIMIZE, CALL_SYNC, CALL_CONNECT };

/* Two members. Rank 0 makes the call, which waits for the other one. */
static void orphan_body(struct seat *seat)
{
    int kind = *(const int *)seat->arg;
    pcclComm_t *comm = seat_join(seat);
    bool pending;
    float x[4] = {(float)seat->index};
    pcclTensorInfo_t tensor = {.name = "x",
                               .data = x,
                               .count = 4,
                               .datatype = pcclFloat,
                               .device_type = pcclDeviceCpu};
    pcclSharedState_t shared = {.revision = 1, .count = 1, .infos = &tensor};
    if (kind != CALL_CONNECT) seat_gather(seat, comm, 2);
    reduce_some(seat, comm, kind != CALL_CONNECT);
    seat_report(seat, READY, 0);
    if (seat->index == 1) (void)seat_hear(seat);
    seat_report(seat, CALLING, 0);
    pcclResult_t rc = pcclSuccess;
    switch (kind) {
    case CALL_UPDATE:
        rc = pcclUpdateTopology(comm);
        SEAT_EQUAL(seat, rc, pcclUpdateTopologyFailed);
        break;
    case CALL_PENDING:
        SEAT_CHECK(seat, pcclArePeersPending(comm, &pending) != pcclSuccess);
        break;
    case CALL_OPTIMIZE:
        SEAT_CHECK(seat, pcclOptimizeTopology(comm) != pcclSuccess);
        break;
    default:
        rc = pcclSynchronizeSharedState(
            comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
            NULL);
        SEAT_EQUAL(seat, rc, pcclMasterConnectionFailed);
        break;
    }
    char text[200] = "";
    SEAT_EQUAL(seat, pcclGetLastError(comm, text, sizeof text), pcclSuccess);
    SEAT_CHECK(seat, strstr(text, "master") != NULL);
    SEAT_CHECK(seat, pcclConnect(comm) == pcclMasterConnectionFailed);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    seat_report(seat, DONE, 0);
}

static void master_dies_under_every_call(void **state)
{
    struct cluster *c = *state;
    for (int kind = CALL_UPDATE; kind < CALL_CONNECT; kind++) {
        cluster_start(c, "2");
        for (int i = 0; i < 2; i++) cluster_add(c, orphan_body, &kind);
        for (int i = 0; i < 2; i++) (void)cluster_await(c, i, READY);
        (void)cluster_await(c, 0, CALLING);
        (void)cluster_has_report(c, 0,
                                 30); /* it is in its call, or about to be */
        cluster_signal_master(c, SIGKILL);
        (void)cluster_await(c, 0, DONE);
        cluster_order(c, 1, GO); /* its call begins without a master */
        (void)cluster_await(c, 1, CALLING);
        (void)cluster_await(c, 1, DONE);
        for (int i = 0; i < 2; i++) cluster_finish(c, i);
        cluster_stop(c);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(signals_interrupt_nothing),      TEST(strangers_are_closed),
        TEST(strangers_of_another_user),      TEST(strangers_of_this_user),
        TEST(connecting_without_descriptors), TEST(callers_without_descriptors),
        TEST(children_keep_sockets),          TEST(no_memory_files),
        TEST(master_dies_under_every_call),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/hostile", tests, NULL, NULL);
}
