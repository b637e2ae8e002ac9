/* test_launch_restart.c - tests of --restart: what starts a job again, what
 * does not, and what the next start finds. */
#include "run.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder for the files of one test; the scripts find it in FOLDER. */
static char folder[64];

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pccl-restart-XXXXXX");
    return !mkdtemp(folder) || setenv("FOLDER", folder, 1) != 0;
}

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *walk)
{
    (void)st;
    (void)flag;
    (void)walk;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Every rank counts to 5 and keeps its count in a file. At 3 of the first start
 * they wait, and one is killed. */
#define COUNTS                                                                 \
    "f=\"$FOLDER/$RANK\"; i=$(cat \"$f\" 2>/dev/null || echo 0); b=$i; "       \
    "while [ $i -lt 5 ]; do i=$((i + 1)); echo $i >\"$f.new\"; "               \
    "mv \"$f.new\" \"$f\"; "                                                   \
    "[ $i$PCCL_RESTART = 30 ] && exec \"$HELPER\" hold three; done; "          \
    "echo rank $RANK of start $PCCL_RESTART from $b to $i"

static void test_goes_on_from_a_checkpoint(void **state)
{
    (void)state;
    struct run run;
    int ranks[2];
    pid_t pids[2];
    RUN(&run, "--restart", "2,0", "-n", "2", "sh", "-c", COUNTS);
    for (int i = 0; i < 2; i++) ranks[i] = run_process(&run, "three", &pids[i]);
    kill(pids[1], SIGKILL);
    for (int i = 0; i < 2; i++) assert_gone(ranks[i]);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "rank 0 of start 1 from 3 to 5\n");
    assert_has(run.output, "rank 1 of start 1 from 3 to 5\n");
    assert_int_equal(count_lines(run.output), 2);
    assert_int_equal(count_lines(run.errors), 1);
    assert_has(run.errors, "was killed by signal 9 (Killed); starting the job "
                           "again, restart 1 of 2\n");
    run_free(&run);
}

/* Also without --restart, and with a value from outside. */
static void test_the_variable(void **state)
{
    (void)state;
    struct run run;
    setenv("PCCL_RESTART", "7", 1);
    RUN(&run, "sh", "-c", "echo $PCCL_RESTART");
    run_finish(&run);
    assert_string_equal(run.output, "0\n");
    run_free(&run);
    unsetenv("PCCL_RESTART");
    RUN(&run, "--launcher", "fork", "-hosts", "a,b", "--restart", "1,0", "sh",
        "-c", "echo $PCCL_RESTART; [ $PCCL_RESTART = 1 ]");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "0\n");
    assert_has(run.output, "1\n1\n");
    run_free(&run);
}

/* The last start decides about the status. Output keeps its order. */
static void test_as_often_as_allowed(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--restart", "2,0", "-n", "2", "sh", "-c",
        "[ $RANK = 0 ] && exec \"$HELPER\" hold x >/dev/null; "
        "echo start $PCCL_RESTART; exit $((PCCL_RESTART + 3))");
    run_finish(&run);
    assert_int_equal(run.status, 5);
    assert_string_equal(run.output, "start 0\nstart 1\nstart 2\n");
    assert_int_equal(count_lines(run.errors), 3);
    assert_has(run.errors, "exited with status 3; starting the job again, "
                           "restart 1 of 2\n");
    assert_has(run.errors, "exited with status 4; starting the job again, "
                           "restart 2 of 2\n");
    assert_has(run.errors,
               "exited with status 5; ending the job after 2 restarts\n");
    run_free(&run);
    RUN(&run, "--restart", "0", "-n", "1", "sh", "-c", "exit 3");
    run_finish(&run);
    assert_int_equal(run.status, 3);
    assert_has(run.errors, "exited with status 3; ending the job\n");
    run_free(&run);
}

/* A child that ignores SIGTERM is gone before the next start begins. */
static void test_former_processes_are_gone(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--restart", "1,0", "-s", "1", "-n", "2", "sh", "-c",
        "f=\"$FOLDER/pid\"; "
        "if [ $PCCL_RESTART = 1 ]; then "
        "kill -0 $(cat \"$f\") 2>/dev/null && echo alive; echo seen; exit 0; "
        "fi; [ $RANK = 1 ] && read x && exit 1; "
        "\"$HELPER\" ignore & echo $! >\"$f\"; wait");
    int child = run_process(&run, "ignore", NULL);
    assert_int_equal(write(run.in, "\n", 1), 1);
    assert_gone(child);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "seen\nseen\n");
    run_free(&run);
}

static void test_not_after_a_signal(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct run run;
        RUN(&run, "--restart", "3,0", "-n", "2", run_helper, "hold", "up");
        int ranks[2];
        for (int k = 0; k < 2; k++) ranks[k] = run_process(&run, "up", NULL);
        kill(run.pid, numbers[i]);
        for (int k = 0; k < 2; k++) assert_gone(ranks[k]);
        run_finish(&run);
        assert_int_equal(run.status, 128 + numbers[i]);
        assert_has_not(run.errors, "starting the job again");
        run_free(&run);
    }
}

/* The user changes his mind while the job ends, or before it starts again. */
static void test_a_signal_before_the_next_start(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--restart", "3,1000", "-n", "1", "sh", "-c", "exit 3");
    run_errors_await(&run, "starting the job again in 1e+03 s");
    kill(run.pid, SIGINT);
    run_finish(&run);
    assert_true(run.status == 128 + SIGINT || run.status == 3);
    run_free(&run);
    RUN(&run, "--restart", "3,0", "-n", "1", "sh", "-c", "read x; exit 3", ":",
        "-n", "1", run_helper, "ignore");
    int ignore = run_process(&run, "ignore", NULL);
    assert_int_equal(write(run.in, "\n", 1), 1);
    run_errors_await(&run, "starting the job again");
    kill(run.pid, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 3);
    assert_has(run.errors, "interrupted; the job does not start again");
    assert_gone(ignore);
    run_free(&run);
}

static void test_after_an_abort(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--restart", "1,0", "-n", "2", "sh", "-c",
        "[ $PCCL_RESTART = 1 ] && exit 0; "
        "[ $RANK = 1 ] && \"$HELPER\" tell abort 9 1; exec sleep 100");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "process 1 ended the job");
    assert_has(run.errors,
               "rank 1 aborted the job; starting the job again, restart 1");
    run_free(&run);
}

static void test_elastic_job_below_its_minimum(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--elastic", "2", "--restart", "1,0", "-n", "3", "sh", "-c",
        "[ $PCCL_RESTART = 1 ] && exit 0; "
        "[ $RANK = 0 ] && exec sleep 100; kill -9 $$");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "; 1 left of at least 2, starting the job again, "
                           "restart 1 of 1\n");
    run_free(&run);
}

/* A respawned rank belongs to the same start; a job that loses all is started
 * again, and its ranks may be respawned again. */
static void test_respawn_comes_first(void **state)
{
    (void)state;
    struct run run;
    char line[64];
    RUN(&run, "--respawn", "--restart", "1,0", "-n", "2", "sh", "-c",
        "if [ \"$RANK$PCCL_JOIN\" = 0 ]; then "
        "[ $PCCL_RESTART = 1 ] && exit 0; read x; exit 6; fi; "
        "echo one $PCCL_RESTART ${PCCL_JOIN-0}; "
        "[ $PCCL_RESTART = 1 ] && exit 0; "
        "[ \"$PCCL_JOIN\" ] && exec sleep 100; kill -9 $$");
    run_line(&run, line, sizeof line);
    assert_string_equal(line, "one 0 0");
    run_line(&run, line, sizeof line);
    assert_string_equal(line, "one 0 1");
    assert_has_not(run.errors, "starting the job again");
    kill(run.pid, SIGTERM);
    run_finish(&run);
    run_free(&run);
}

static void test_not_what_cannot_start(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--restart", "3,0", "-n", "2", "./no-such");
    run_finish(&run);
    assert_int_equal(run.status, 127);
    assert_has_not(run.errors, "starting the job again");
    run_free(&run);
}

/* --timeout is for all starts together. */
static void test_not_after_the_timeout(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--restart", "1000000,0.01", "--timeout", "0.5", "-n", "1", "sh",
        "-c", "exit 3");
    run_finish(&run);
    assert_int_equal(run.status, 124);
    assert_has(run.errors, "the job ran for 0.5 s (--timeout); ending it");
    run_free(&run);
}

/* Input that is read is not read again; files of output get what follows. */
static void test_input_and_files_go_on(void **state)
{
    (void)state;
    struct run run;
    char file[128];
    char text[64] = "";
    snprintf(file, sizeof file, "%s/out.%%r", folder);
    RUN(&run, "--restart", "1,0", "-outfile-pattern", file, "-n", "1", "sh",
        "-c", "read x; echo $PCCL_RESTART $x; [ $PCCL_RESTART = 1 ]");
    assert_int_equal(write(run.in, "a\nb\n", 4), 4);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    snprintf(file, sizeof file, "%s/out.0", folder);
    int fd = open(file, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof text - 1), 8);
    close(fd);
    assert_string_equal(text, "0 a\n1 b\n");
    run_free(&run);
}

/* ------------------------------------------------------------------- hosts */

/* HOST COMMAND; the host is dead when there is a file dead.HOST. */
static const char *fake_ssh(void)
{
    static char path[128];
    static const char text[] =
        "#!/bin/sh\n[ -e \"$FOLDER/dead.$1\" ] && exit 255\n"
        "echo $$ >\"$FOLDER/pid.$1\"\nexec sh -c \"$2\"\n";
    snprintf(path, sizeof path, "%s/ssh", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void host_kill(const char *host, bool for_good)
{
    char path[128];
    int pid = 0;
    snprintf(path, sizeof path, "%s/dead.%s", folder, host);
    if (for_good) close(open(path, O_WRONLY | O_CREAT, 0644));
    snprintf(path, sizeof path, "%s/pid.%s", folder, host);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    kill(pid, SIGKILL);
}

#define HOLD_OR_END                                                            \
    "[ $PCCL_RESTART = 0 ] && exec \"$HELPER\" hold up; "                      \
    "echo rank $RANK of $WORLD_SIZE"

/* All ranks start again: those of a host that is gone on the hosts that are
 * left, by the same rule. A host that answers again takes its ranks. */
static void test_a_lost_host(void **state)
{
    (void)state;
    static const struct {
        const char *hosts;
        bool for_good;
        const char *output[3]; /* in any order */
    } cases[] = {
        {"a,b",
         false,
         {"a rank 0 of 3\n", "b rank 1 of 3\n", "a rank 2 of 3\n"}},
        {"a,b",
         true,
         {"a rank 0 of 3\n", "a rank 1 of 3\n", "a rank 2 of 3\n"}},
        {"a,b:2,c",
         true,
         {"a rank 0 of 3\n", "c rank 1 of 3\n", "a rank 2 of 3\n"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run;
        char path[128];
        snprintf(path, sizeof path, "%s/dead.b", folder);
        unlink(path);
        RUN(&run, "--launcher-exec", fake_ssh(), "--restart", "1,0", "-hosts",
            cases[i].hosts, "-n", "3", "-prepend-pattern", "%h ", "sh", "-c",
            HOLD_OR_END);
        for (int k = 0; k < 3; k++) {
            char line[128];
            run_line(&run, line, sizeof line);
            assert_has(line, " up ");
        }
        host_kill("b", cases[i].for_good);
        run_finish(&run);
        assert_int_equal(run.status, 0);
        for (int k = 0; k < 3; k++) assert_has(run.output, cases[i].output[k]);
        assert_has(run.errors, "was lost with its host; starting the job "
                               "again, restart 1 of 1\n");
        if (cases[i].for_good)
            assert_has(run.errors, "host b is left out: the command that "
                                   "reaches it ended with status 255\n");
        run_free(&run);
    }
}

static void test_no_host_is_left(void **state)
{
    (void)state;
    struct run run;
    char line[64];
    RUN(&run, "--launcher-exec", fake_ssh(), "--restart", "5,0", "-hosts", "a",
        "-n", "1", "sh", "-c", HOLD_OR_END);
    run_line(&run, line, sizeof line);
    host_kill("a", true);
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "restart 1 of 5\n");
    assert_has(run.errors, "no host is left to start the job again\n");
    assert_has_not(run.errors, "restart 2 of 5\n");
    run_free(&run);
}

/* Without SECONDS the ranks of a lost host have time to notice and to end. */
static void test_a_lost_host_is_waited_for(void **state)
{
    (void)state;
    struct run run;
    char line[64];
    RUN(&run, "--launcher-exec", fake_ssh(), "--restart", "1", "-hosts", "a",
        "-n", "1", "sh", "-c", HOLD_OR_END);
    run_line(&run, line, sizeof line);
    host_kill("a", false);
    run_errors_await(&run, "starting the job again in 64 s, restart 1 of 1\n");
    kill(run.pid, SIGINT);
    run_finish(&run);
    run_free(&run);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(test_goes_on_from_a_checkpoint),
        TEST(test_the_variable),
        TEST(test_as_often_as_allowed),
        TEST(test_former_processes_are_gone),
        TEST(test_not_after_a_signal),
        TEST(test_a_signal_before_the_next_start),
        TEST(test_after_an_abort),
        TEST(test_elastic_job_below_its_minimum),
        TEST(test_respawn_comes_first),
        TEST(test_not_what_cannot_start),
        TEST(test_not_after_the_timeout),
        TEST(test_input_and_files_go_on),
        TEST(test_a_lost_host),
        TEST(test_no_host_is_left),
        TEST(test_a_lost_host_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
