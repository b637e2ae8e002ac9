/* test_launch_detach.c - tests of jobs that outlive the terminal in which they
 * were started, and of processes that follow them. */
#include "run.h"

#include "../../patience.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[64], path[80];

static void file_remove(const char *suffix)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    (void)unlink(name);
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pccl-detach-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/state", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    file_remove("");
    file_remove(".out");
    file_remove(".err");
    return rmdir(folder);
}

/* Starts a job of its own; returns the launcher's process. */
static pid_t start(const char *const *args)
{
    struct run run;
    int pid = 0;
    run_start(&run, args);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_int_equal(
        sscanf(run.output, "pccl-master: the job runs as process %d;", &pid),
        1);
    assert_has(run.output, path);
    run_free(&run);
    return pid;
}
#define START(...)                                                             \
    start((const char *const[]){"--detach", "--state", path, __VA_ARGS__, NULL})

static int hold_process(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void test_output_and_status(void **state)
{
    (void)state;
    struct run run;
    (void)START("-n", "1", "sh", "-c",
                "echo out $PCCL_RANK; echo err $PCCL_RANK >&2; exit 7");
    for (int i = 0; i < 2; i++) { /* also when it is over */
        RUN(&run, "--attach", "--state", path);
        run_finish(&run);
        assert_int_equal(run.status, 7);
        assert_has(run.output, "out 0\n");
        assert_has(run.errors, "err ");
        run_free(&run);
    }
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

/* Who looks on is killed; the ranks do not notice. */
static void test_a_follower_is_killed(void **state)
{
    (void)state;
    struct run run;
    pid_t rank, launcher = START("-n", "1", run_helper, "trap", "12", "3");
    RUN(&run, "--attach", "--state", path);
    int first = run_process(&run, "trap", &rank);
    kill(run.pid, SIGKILL);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGKILL);
    run_free(&run);
    RUN(&run, "--attach", "--state", path);
    pid_t again;
    close(run_process(&run, "trap", &again));
    assert_int_equal(again, rank);
    kill(rank, 12);
    run_finish(&run);
    assert_int_equal(run.status, 3);
    assert_gone(first);
    assert_true(launcher > 0);
    run_free(&run);
}

/* A signal to the launcher is one to the job, as ever. */
static void test_the_launcher_is_signalled(void **state)
{
    (void)state;
    struct run run;
    pid_t launcher = START("-n", "1", run_helper, "hold", "up");
    RUN(&run, "--attach", "--state", path);
    int rank = run_process(&run, "up", NULL);
    kill(launcher, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGTERM);
    assert_gone(rank);
    run_free(&run);
}

static void test_the_launcher_is_killed(void **state)
{
    (void)state;
    struct run run;
    pid_t launcher = START("-n", "1", run_helper, "hold", "up");
    RUN(&run, "--attach", "--state", path);
    int rank = run_process(&run, "up", NULL);
    kill(launcher, SIGKILL);
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "was killed; its ranks ended with it");
    assert_gone(rank);
    run_free(&run);
}

static void refused(const char *why)
{
    struct run run;
    RUN(&run, "--attach", "--state", path);
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, why);
    run_free(&run);
}

static void test_what_is_no_state(void **state)
{
    (void)state;
    struct run run;
    static const char *const bad[] = {
        "",
        "x",
        "pccl-master state 1\n",
        "pccl-master state 2\nprocess 1 1 a\n",
        "pccl-master state 1\nprocess -4 1 a\n",
        "pccl-master state 1\nprocess 1 1 ", /* being written */
        "pccl-master state 1\nprocess 1 1 a\nended 4711\n"};
    refused("No such file or directory");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        fputs(bad[i], f);
        fclose(f);
        refused("is not the state of a job");
    }
    RUN(&run, "--detach", "--state", path, "-n", "1", "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "is there, and is not the state of a job");
    run_free(&run);
    assert_int_equal(chmod(path, 0666), 0);
    refused("is not a file that only this user can write");
    if (geteuid() != 0) return;
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chown(path, 1, 1), 0);
    refused("is not a file that only this user can write");
}

/* Another process has the number now; and the file is free for a new job. */
static void test_a_process_of_that_number(void **state)
{
    (void)state;
    struct run run;
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "pccl-master state 1\nprocess %d 1 abc\n", (int)getpid());
    fclose(f);
    refused("was killed; its ranks ended with it");
    pid_t launcher = START("-n", "1", run_helper, "hold", "up");
    int process = hold_process(launcher);
    RUN(&run, "--detach", "--state", path, "-n", "1", "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "that job runs, as process");
    run_free(&run);
    kill(launcher, SIGTERM);
    assert_gone(process);
}

/* Each has a line in the state file. */
static void test_many_launchers(void **state)
{
    (void)state;
    struct run run;
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs("pccl-master state 1\n", f);
    for (int i = 0; i < 2000; i++)
        fprintf(f, "process %d 1 abc\ncoordinator a:1\n", i + 1);
    fputs("ended 4\n", f);
    fclose(f);
    RUN(&run, "--attach", "--state", path);
    run_finish(&run);
    assert_int_equal(run.status, 4);
    run_free(&run);
}

static void test_usage(void **state)
{
    (void)state;
    static const char *const bad[][4] = {
        {"--detach", NULL},
        {"--attach", "true", NULL},
        {"--attach", "--detach", NULL},
        {"--state", "x", "true", NULL},
    };
    struct run run;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        run_start(&run, bad[i]);
        run_finish(&run);
        assert_int_equal(run.status, 2);
        run_free(&run);
    }
    unsetenv("XDG_RUNTIME_DIR");
    RUN(&run, "--detach", "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "--state FILE says where");
    run_free(&run);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    RUN(&run, "--attach");
    run_finish(&run);
    assert_has(run.errors, "0 jobs have a state in");
    run_free(&run);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_output_and_status),
        TEST(test_a_follower_is_killed),
        TEST(test_the_launcher_is_signalled),
        TEST(test_the_launcher_is_killed),
        TEST(test_what_is_no_state),
        TEST(test_a_process_of_that_number),
        TEST(test_many_launchers),
        TEST(test_usage),
    };
    run_arguments(argc, argv);
    alarm(PATIENCE_S);
    return cmocka_run_group_tests_name("launch/detach", tests, NULL, NULL);
}
