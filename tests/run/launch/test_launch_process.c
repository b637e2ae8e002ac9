/* test_launch_process.c - tests of signals, orphans, and the coordinator
 * without ranks. */
#include "run.h"

#include "../../patience.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_signals(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct run run;
        char number[16];
        snprintf(number, sizeof number, "%d", numbers[i]);
        RUN(&run, "-n", "2", run_helper, "trap", number, "0");
        int one = run_process(&run, "trap", NULL);
        int other = run_process(&run, "trap", NULL);
        kill(run.pid, numbers[i]);
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_gone(one);
        assert_gone(other);
        run_free(&run);
    }
    struct run run;
    RUN(&run, "-n", "2", run_helper, "hold", "up");
    close(run_process(&run, "up", NULL));
    close(run_process(&run, "up", NULL));
    kill(run.pid, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGTERM);
    run_free(&run);
}

/* SIGUSR1 prints the status; the ranks do not get it. */
static void test_status(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", run_helper, "hold", "up");
    int one = run_process(&run, "up", NULL);
    kill(run.pid, SIGUSR1);
    run_errors_await(&run, "status of 0 members");
    close(one);
    kill(run.pid, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGTERM);
    run_free(&run);
    RUN(&run, "--status", "127.0.0.1:7", "--json");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "JSON of 127.0.0.1:7");
    run_free(&run);
    RUN(&run, "--status", "127.0.0.1:1");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "nobody is there");
    run_free(&run);
}

/* The first signal is passed on; the second ends the job although the ranks
 * ignore signals. */
static void test_insist(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "2", run_helper, "ignore");
    int one = run_process(&run, "ignore", NULL);
    int other = run_process(&run, "ignore", NULL);
    kill(run.pid, SIGINT);
    struct pollfd pollfd = {.fd = one, .events = POLLIN};
    assert_int_equal(poll(&pollfd, 1, 100), 0); /* still running */
    kill(run.pid, SIGINT);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGINT);
    assert_has(run.errors, "interrupted again");
    assert_gone(one);
    assert_gone(other);
    run_free(&run);
}

static char process_state(pid_t pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return state;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
    fclose(file);
    return state;
}

static void await_state(pid_t pid, bool stopped)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        if ((process_state(pid) == 'T') == stopped) return;
        poll(NULL, 0, 1);
    }
    fail_msg("process %d is %c", (int)pid, process_state(pid));
}

static void test_stop_and_continue(void **state)
{
    (void)state;
    struct run run;
    pid_t pid;
    RUN(&run, "-n", "1", run_helper, "hold", "up");
    close(run_process(&run, "up", &pid));
    kill(run.pid, SIGTSTP);
    await_state(pid, true);
    await_state(run.pid, true);
    kill(run.pid, SIGCONT);
    await_state(run.pid, false);
    await_state(pid, false);
    kill(run.pid, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGTERM);
    run_free(&run);
}

/* The guard is the launcher's first child. */
static int find_guard(pid_t launcher, pid_t *guard)
{
    char path[96];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launcher,
             (int)launcher);
    FILE *children = fopen(path, "r");
    assert_non_null(children);
    assert_int_equal(fscanf(children, "%d", &pid), 1);
    fclose(children);
    *guard = pid;
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* After kill -9 of the launcher, ranks and children of their scripts end. */
static void test_launcher_killed(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", "sh", "-c", "\"$HELPER\" hold child & wait; exit 1",
        ":", "-n", "1", run_helper, "hold", "child");
    int one = run_process(&run, "child", NULL);
    int other = run_process(&run, "child", NULL);
    pid_t pid;
    int guard = find_guard(run.pid, &pid);
    kill(run.pid, SIGKILL);
    assert_gone(one);
    assert_gone(other);
    assert_gone(guard);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGKILL);
    run_free(&run);
}

/* Ranks end without the guard too. */
static void test_guard_killed(void **state)
{
    (void)state;
    struct run run;
    pid_t pid;
    RUN(&run, "-n", "1", run_helper, "hold", "up");
    int rank = run_process(&run, "up", NULL);
    int guard = find_guard(run.pid, &pid);
    kill(pid, SIGKILL);
    assert_gone(guard);
    kill(run.pid, SIGKILL);
    assert_gone(rank);
    run_finish(&run);
    run_free(&run);
}

/* A rank ends and leaves a child behind; the child ends even if it ignores
 * signals. */
static void test_leftovers(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", "sh", "-c", "\"$HELPER\" ignore & read x; exit 0");
    int child = run_process(&run, "ignore", NULL);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_gone(child);
    run_free(&run);
}

/* A child that left the process group is neither killed nor waited for. */
static void test_daemon(void **state)
{
    (void)state;
    struct run run;
    pid_t pid;
    RUN(&run, "-n", "1", "sh", "-c",
        "setsid \"$HELPER\" ignore & read x; exit 0");
    int child = run_process(&run, "ignore", &pid);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    struct pollfd pollfd = {.fd = child, .events = POLLIN};
    assert_int_equal(poll(&pollfd, 1, 0), 0);
    kill(pid, SIGKILL);
    assert_gone(child);
    run_free(&run);
}

static void test_coordinator(void **state)
{
    (void)state;
    struct run run;
    char line[128], address[64], taken[128];
    RUN(&run, "--listen", "localhost:0");
    run_line(&run, line, sizeof line);
    unsigned port = 0;
    assert_int_equal(sscanf(line, "pccl-master: listening on %63s", address),
                     1);
    assert_int_equal(sscanf(address, "127.0.0.1:%u", &port), 1);
    assert_true(port > 0);
    struct run second; /* the port is in use */
    RUN(&second, "--listen", address);
    run_finish(&second);
    assert_int_equal(second.status, 1);
    snprintf(taken, sizeof taken, "cannot listen on %s: Address already in use",
             address);
    assert_has(second.errors, taken);
    run_free(&second);
    kill(run.pid, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    run_free(&run);
}

/* Without ranks it raises its descriptor limit for a large world; ranks get the
 * original limit. */
static void test_descriptors(void **state)
{
    (void)state;
    struct rlimit old, now;
    struct run run;
    char line[128];
    getrlimit(RLIMIT_NOFILE, &old);
    struct rlimit low = {64, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    RUN(&run, "--listen", "127.0.0.1:0");
    run_line(&run, line, sizeof line);
    assert_int_equal(prlimit(run.pid, RLIMIT_NOFILE, NULL, &now), 0);
    assert_true(now.rlim_cur == old.rlim_max);
    kill(run.pid, SIGTERM);
    run_finish(&run);
    run_free(&run);
    RUN(&run, "-n", "1", "sh", "-c", "ulimit -Sn");
    run_finish(&run);
    assert_string_equal(run.output, "64\n");
    run_free(&run);
    setrlimit(RLIMIT_NOFILE, &old);
}

static void test_words(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--help");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "usage: pccl-master");
    run_free(&run);
    RUN(&run, "--version");
    run_finish(&run);
    assert_has(run.output, "pccl-master (PCCL/MPI) ");
    run_free(&run);
    RUN(&run, "--what");
    run_finish(&run);
    assert_int_equal(run.status, 2);
    assert_has(run.errors, "pccl-master: unknown option '--what'");
    run_free(&run);
    setenv("PCCL_DEADLIEN", "3", 1);
    RUN(&run, "-n", "1", "true");
    run_finish(&run);
    unsetenv("PCCL_DEADLIEN");
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "warning: the environment variable PCCL_DEADLIEN");
    run_free(&run);
}

/* As PID 1 of a namespace it reaps foreign children and ends cleanly. */
static void test_first_process(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    struct run run;
    const char *master = run_master;
    run_master = "/usr/bin/unshare";
    RUN(&run, "--pid", "--fork", "--mount-proc", master, "-n", "2", "sh", "-c",
        "(true & exit 0); echo $PPID; exit 0");
    run_finish(&run);
    run_master = master;
    if (strstr(run.errors, "unshare")) {
        run_free(&run);
        skip();
    }
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "1\n1\n");
    run_free(&run);
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_insist),
        cmocka_unit_test(test_stop_and_continue),
        cmocka_unit_test(test_launcher_killed),
        cmocka_unit_test(test_guard_killed),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_daemon),
        cmocka_unit_test(test_coordinator),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_first_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
