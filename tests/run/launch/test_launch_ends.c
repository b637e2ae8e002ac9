/* test_launch_ends.c - tests of jobs that would not end, or not soon, and of
 * who says why they end. */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rank 1 ends with 0, and the others wait for it in MPI_Init. */
static void test_end_before_init(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "3", "sh", "-c",
        "[ $RANK = 1 ] && exit 0; [ $RANK = 0 ] && \"$HELPER\" tell pending 2; "
        "exec sleep 1000");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "rank 1 (pid ");
    assert_has(run.errors, "ended with status 0 before MPI_Init, in which "
                           "others wait for it; ending the job\n");
    assert_int_equal(count_lines(run.errors), 1);
    run_free(&run);
}

/* Ranks that do not use MPI, or have been members, wait for nobody. */
static void test_end_without_init(void **state)
{
    (void)state;
    static const char *const first[] = {":", "\"$HELPER\" tell members 1",
                                        "\"$HELPER\" tell ended"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        struct run run;
        char command[256];
        snprintf(command, sizeof command,
                 "[ $RANK = 1 ] && exit 0; %s; [ %zu = 0 ] || \"$HELPER\" tell "
                 "pending 1; read x; exit 0",
                 first[i], i);
        RUN(&run, "-n", "2", "sh", "-c", command);
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_string_equal(run.errors, "");
        run_free(&run);
    }
}

/* What the rank has said is not said again. */
static void test_abort_once(void **state)
{
    (void)state;
    static const char *const said[] = {
        "Abort(7) on node 1 (rank 1 in comm 0): application called MPI_Abort",
        "Fatal error in MPI_Init: no"};
    for (int i = 0; i < 2; i++) {
        struct run run;
        RUN(&run, "-genv", "SAID", said[i], "-n", "2", "sh", "-c",
            "[ $RANK = 1 ] || exec sleep 1000; echo \"$SAID\" >&2; "
            "\"$HELPER\" tell abort 7 1; exit 7");
        run_finish(&run);
        assert_int_equal(run.status, 7);
        assert_has(run.errors, said[i]);
        assert_int_equal(count_lines(run.errors), 1);
        run_free(&run);
    }
}

/* The launcher's first child. */
static pid_t guard_find(pid_t launcher)
{
    char path[96];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launcher,
             (int)launcher);
    FILE *children = fopen(path, "r");
    assert_non_null(children);
    assert_int_equal(fscanf(children, "%d", &pid), 1);
    fclose(children);
    return pid;
}

/* A stopped guard does not keep a job that is over. */
static void test_stopped_guard(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", "sh", "-c", "echo up $$; read x; exit 0");
    close(run_process(&run, "up", NULL));
    pid_t guard = guard_find(run.pid);
    assert_true(guard > 0);
    kill(guard, SIGSTOP);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    run_free(&run);
}

/* The ranks of a host that does not answer are not waited for when the others
 * have ended: a minute passes before its agent counts as lost. */
static void test_silent_host(void **state)
{
    (void)state;
    char ssh[] = "/tmp/pccl-ends-XXXXXX";
    int fd = mkstemp(ssh);
    assert_true(fd >= 0);
    static const char script[] = "#!/bin/sh\nexec sh -c \"$2\"\n";
    assert_int_equal(write(fd, script, sizeof script - 1), sizeof script - 1);
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
    struct run run;
    RUN(&run, "--elastic", "--launcher-exec", ssh, "-hosts", "localhost,far",
        "-n", "2", "sh", "-c",
        "[ $RANK = 0 ] || { echo up $PPID; exec sleep 1000; }; "
        "read x; \"$HELPER\" tell ended; exit 0");
    pid_t agent;
    int fd_agent = run_process(&run, "up", &agent);
    kill(agent, SIGSTOP);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "host far is lost: it does not answer");
    assert_has_not(run.errors, "silent for too long");
    kill(agent, SIGKILL);
    close(fd_agent);
    unlink(ssh);
    run_free(&run);
}

/* --print-all-exitcodes, --report-bindings: one line for the same. */
static void test_told(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--elastic", "-print-all-exitcodes", "--report-bindings",
        "--map-by", "core", "--launcher", "fork", "-hosts", "localhost:3,far:2",
        "-n", "5", "sh", "-c",
        "[ $RANK != 3 ] || exit 3; [ $RANK != 4 ] || kill -9 $$; exit 0");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "pccl-master: ranks 0-2: status 0\n");
    assert_has(run.errors, "pccl-master: rank 3: status 3\n");
    assert_has(run.errors, "pccl-master: rank 4: signal 9\n");
    assert_has(run.errors, " is bound to processors ");
    assert_has(run.errors, "rank 4 on far is bound to processors ");
    run_free(&run);
}

/* MPIEXEC_TIMEOUT is --timeout, which comes before it. */
static void test_timeout_variable(void **state)
{
    (void)state;
    struct run run;
    setenv("MPIEXEC_TIMEOUT", "0.1", 1);
    RUN(&run, "-n", "1", "sleep", "1000");
    run_finish(&run);
    assert_int_equal(run.status, 124);
    run_free(&run);
    RUN(&run, "--timeout", "1000", "-n", "1", "true");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    run_free(&run);
    setenv("MPIEXEC_TIMEOUT", "soon", 1);
    RUN(&run, "-n", "1", "true");
    run_finish(&run);
    assert_int_equal(run.status, 2);
    assert_has(run.errors, "MPIEXEC_TIMEOUT needs a number of seconds");
    run_free(&run);
    unsetenv("MPIEXEC_TIMEOUT");
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_before_init),
        cmocka_unit_test(test_end_without_init),
        cmocka_unit_test(test_abort_once),
        cmocka_unit_test(test_stopped_guard),
        cmocka_unit_test(test_silent_host),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_timeout_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
