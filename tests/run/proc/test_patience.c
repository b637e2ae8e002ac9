/* test_patience.c - tests of silence that is no death: a master that is
 * stopped, a rank in a debugger, ranks without CPU time (rules M10 to M13,
 * M15).
 */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, SPINNERS = 4 };
enum { READY = 1, STEPS, EVICTED, REFUSED };
enum { COUNT = 1, END };

/* Several deadlines of a second. */
enum { LONG_MS = 6000 };

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

/* ------------------------------------------------------------------- ranks */

static pcclResult_t smallest(pcclComm_t *comm, float say, float *all)
{
    pcclReduceDescriptor_t d = {
        .count = 1,
        .op = pcclMin,
        .tag = 8,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
    return pcclAllReduce(&say, all, &d, comm, NULL);
}

/* Reduces until all have the order to end, and then needs the master. */
static void reduce_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    struct pollfd orders = {.fd = seat->order_fd, .events = POLLIN};
    bool ends = false;
    float all = 0;
    seat_gather(seat, comm, RANKS);
    seat_report(seat, READY, 0);
    for (int64_t step = 1; all == 0; step++) {
        SEAT_EQUAL(seat, smallest(comm, ends, &all), pcclSuccess);
        if (ends || poll(&orders, 1, 0) == 0) continue;
        ends = seat_hear(seat) == END;
        if (!ends) seat_report(seat, STEPS, step);
    }
    SEAT_EQUAL(seat, world_size(comm), RANKS);
    SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
    SEAT_EQUAL(seat, smallest(comm, 1, &all), pcclSuccess);
    SEAT_EQUAL(seat, world_size(comm), RANKS);
    (void)seat_hear(seat); /* nobody leaves before the others are through */
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void begin(struct cluster *c, seat_body *body)
{
    cluster_start(c, "1");
    for (int i = 0; i < RANKS; i++) cluster_add(c, body, NULL);
    for (int i = 0; i < RANKS; i++) (void)cluster_await(c, i, READY);
}

static int64_t steps_of(struct cluster *c, int rank)
{
    cluster_order(c, rank, COUNT);
    return cluster_await(c, rank, STEPS);
}

static void end(struct cluster *c)
{
    for (int i = 0; i < RANKS; i++) cluster_order(c, i, END);
    for (int i = 0; i < RANKS; i++) cluster_order(c, i, END);
    for (int i = 0; i < RANKS; i++) cluster_finish(c, i);
}

/* ------------------------------------------------------------------- tests */

static void a_stopped_master_is_waited_for(void **state)
{
    struct cluster *c = *state;
    begin(c, reduce_body);
    cluster_signal_master(c, SIGSTOP);
    int64_t before = steps_of(c, 1);
    for (int i = 0; i < RANKS; i++)
        assert_false(cluster_has_report(c, i, LONG_MS / RANKS));
    assert_true(steps_of(c, 1) > before);
    cluster_signal_master(c, SIGCONT);
    end(c);
}

static void all_are_stopped_and_go_on(void **state)
{
    struct cluster *c = *state;
    begin(c, reduce_body);
    cluster_signal_master(c, SIGSTOP);
    for (int i = 0; i < RANKS; i++) cluster_signal(c, i, SIGSTOP);
    assert_false(cluster_has_report(c, 0, LONG_MS));
    for (int i = 0; i < RANKS; i++) cluster_signal(c, i, SIGCONT);
    cluster_signal_master(c, SIGCONT);
    end(c);
}

/* ------------------------------------------------- its own sleep (rule M15) */

/* A file that all processes log to. */
struct log {
    char folder[32], path[48];
};

static void log_begin(struct log *log)
{
    snprintf(log->folder, sizeof log->folder, "/tmp/pccl-patience-XXXXXX");
    assert_non_null(mkdtemp(log->folder));
    snprintf(log->path, sizeof log->path, "%s/log", log->folder);
    assert_int_equal(setenv("PCCL_LOG_FILE", log->path, 1), 0);
    assert_int_equal(setenv("PCCL_LOG_LEVEL", "INFO", 1), 0);
}

static void log_end(const struct log *log)
{
    unsetenv("PCCL_LOG_FILE");
    unsetenv("PCCL_LOG_LEVEL");
    (void)unlink(log->path);
    (void)rmdir(log->folder);
}

/* Returns the first of two texts that is in the log; waits for it. */
static const char *log_await(const struct log *log, const char *one,
                             const char *other)
{
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        char line[1024];
        const char *found = NULL;
        FILE *f = fopen(log->path, "re");
        while (f && !found && fgets(line, sizeof line, f))
            found = strstr(line, one) ? one : strstr(line, other) ? other : 0;
        if (f) (void)fclose(f);
        if (found) return found;
        (void)poll(NULL, 0, 10);
    }
    fail_msg("neither \"%s\" nor \"%s\" is in the log", one, other);
    return NULL;
}

static int call_master(const struct cluster *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(c->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Has no answer for a deadline: that is how long it takes. */
static void refused_body(struct seat *seat)
{
    pcclComm_t *comm = seat_create(seat);
    SEAT_EQUAL(seat, pcclConnect(comm), pcclMasterConnectionFailed);
    seat_report(seat, REFUSED, 0);
}

/* A caller that has not said HELLO when the master stops has a deadline when it
 * goes on, as if it had just called. */
static void a_master_leaves_its_own_sleep_out(void **state)
{
    static const char judged[] = "did not say HELLO";
    static const char slept[] = "the coordinator did not run for";
    struct cluster *c = *state;
    struct log log;
    log_begin(&log);
    begin(c, reduce_body);
    int caller = call_master(c);
    cluster_signal_master(c, SIGSTOP);
    struct pollfd ended = {.fd = caller, .events = POLLIN};
    bool early = poll(&ended, 1, 0) != 0; /* this machine is that slow */
    (void)log_await(&log, "the master has been silent", slept);
    int late = cluster_add(c, refused_body, NULL);
    (void)cluster_await(c, late, REFUSED);
    cluster_signal_master(c, SIGCONT);
    if (early)
        (void)log_await(&log, slept, slept);
    else
        assert_ptr_equal(log_await(&log, slept, judged), slept);
    end(c);
    close(caller);
    log_end(&log);
}

/* ------------------------------------------------------------ in a debugger */

/* Calls f for each thread of the process; false: f failed. */
static bool each_thread(pid_t pid, bool (*f)(pid_t thread))
{
    char path[64];
    bool good = true;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    assert_non_null(tasks);
    for (const struct dirent *d; (d = readdir(tasks));)
        if (d->d_name[0] != '.')
            good = f((pid_t)strtol(d->d_name, NULL, 10)) && good;
    closedir(tasks);
    return good;
}

static bool hold(pid_t thread)
{
    return ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0 &&
           ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0 &&
           waitpid(thread, NULL, __WALL) == thread;
}

static bool let_go(pid_t thread)
{
    return ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0;
}

static void a_rank_in_a_debugger_is_waited_for(void **state)
{
    struct cluster *c = *state;
    begin(c, reduce_body);
    if (!each_thread(c->ranks[0].pid, hold)) skip();
    for (int i = 0; i < RANKS; i++)
        assert_false(cluster_has_report(c, i, LONG_MS / RANKS));
    assert_true(each_thread(c->ranks[0].pid, let_go));
    end(c);
}

/* ------------------------------------------------------------- no CPU time */

static size_t first_processor(void)
{
    cpu_set_t set;
    size_t i = 0;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(i, &set)) i++;
    return i;
}

static void bind_to_first(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(first_processor(), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void bound_body(struct seat *seat)
{
    bind_to_first();
    reduce_body(seat);
}

static void spin_body(struct seat *seat)
{
    bind_to_first();
    seat_report(seat, READY, 0);
    for (volatile uint64_t i = 0;; i++) continue;
}

static bool as_idle(pid_t thread)
{
    struct sched_param none = {0};
    return sched_setscheduler(thread, SCHED_IDLE, &none) == 0;
}

static bool as_usual(pid_t thread)
{
    struct sched_param none = {0};
    return sched_setscheduler(thread, SCHED_OTHER, &none) == 0;
}

/* Others take the only processor of all ranks, which get a thousandth of it.
 * The time is that of the fault: the ranks have none in which to do
 * anything. */
static void ranks_without_cpu_time_are_waited_for(void **state)
{
    struct cluster *c = *state;
    begin(c, bound_body);
    for (int i = 0; i < RANKS; i++)
        if (!each_thread(c->ranks[i].pid, as_idle)) skip();
    for (int i = 0; i < SPINNERS; i++) {
        int spinner = cluster_add(c, spin_body, NULL);
        (void)cluster_await(c, spinner, READY);
    }
    for (int i = 0; i < RANKS; i++)
        assert_false(cluster_has_report(c, i, LONG_MS / RANKS));
    for (int i = 0; i < SPINNERS; i++) cluster_signal(c, RANKS + i, SIGKILL);
    for (int i = 0; i < RANKS; i++)
        if (!each_thread(c->ranks[i].pid, as_usual)) skip();
    end(c);
}

/* ------------------------------------------------------------------ stopped */

static void evicted_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    char why[256] = "";
    float all;
    seat_gather(seat, comm, RANKS);
    seat_report(seat, READY, 0);
    pcclResult_t rc;
    do rc = smallest(comm, 0, &all);
    while (rc == pcclSuccess);
    if (rc == pcclMasterConnectionFailed) {
        SEAT_EQUAL(seat, pcclGetLastError(comm, why, sizeof why), pcclSuccess);
        SEAT_CHECK(seat, strstr(why, "stopped by a signal"));
        seat_report(seat, EVICTED, 0);
    } else {
        SEAT_EQUAL(seat, rc, pcclRankConnectionLost);
        SEAT_EQUAL(seat, world_size(comm), RANKS - 1);
        SEAT_EQUAL(seat, smallest(comm, 0, &all), pcclSuccess);
    }
    (void)pcclDestroyCommunicator(comm);
}

static void a_stopped_rank_is_told_why(void **state)
{
    struct cluster *c = *state;
    begin(c, evicted_body);
    cluster_signal(c, 2, SIGSTOP);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
    cluster_signal(c, 2, SIGCONT);
    (void)cluster_await(c, 2, EVICTED);
    cluster_finish(c, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_master_is_waited_for),
        TEST(a_master_leaves_its_own_sleep_out),
        TEST(all_are_stopped_and_go_on),
        TEST(a_rank_in_a_debugger_is_waited_for),
        TEST(ranks_without_cpu_time_are_waited_for),
        TEST(a_stopped_rank_is_told_why),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    alarm(300);
    return cmocka_run_group_tests_name("proc/patience", tests, NULL, NULL);
}
