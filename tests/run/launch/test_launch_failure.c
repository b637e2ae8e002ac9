/* test_launch_failure.c - tests of the end of a job: status, message,
 * tolerance. */
#include "run.h"

#include <stdlib.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void test_status(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        int status;
        const char *message;
    } cases[] = {
        {"exit 0", 0, ""},
        {"[ $RANK = 1 ] && exit 3; exec sleep 100", 3,
         "exited with status 3; ending the job"},
        {"[ $RANK = 1 ] && kill -9 $$; exec sleep 100", 137,
         "was killed by signal 9 (Killed); ending the job"},
        {"[ $RANK = 1 ] && kill -11 $$; exec sleep 100", 139, "signal 11"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run;
        RUN(&run, "-n", "3", "sh", "-c", cases[i].command);
        run_finish(&run);
        assert_int_equal(run.status, cases[i].status);
        assert_has(run.errors, cases[i].message);
        assert_int_equal(count_lines(run.errors), i > 0);
        if (i > 0) assert_has(run.errors, "pccl-master: rank 1 (pid ");
        run_free(&run);
    }
}

/* The other ranks get SIGTERM. A rank that ignores it is killed after the grace
 * period. Children of rank scripts end too. */
static void test_rest_ends(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", "sh", "-c", "read x; exit 5", ":", "-n", "1", "sh",
        "-c", "trap 'echo heard; exit 0' TERM; \"$HELPER\" hold child & wait");
    int child = run_process(&run, "child", NULL);
    run_finish(&run);
    assert_int_equal(run.status, 5);
    assert_string_equal(run.output, "heard\n");
    assert_gone(child);
    run_free(&run);
    RUN(&run, "-n", "1", "sh", "-c", "read x; exit 5", ":", "-n", "1",
        run_helper, "ignore");
    int ignore = run_process(&run, "ignore", NULL);
    run_finish(&run);
    assert_int_equal(run.status, 5);
    assert_gone(ignore);
    run_free(&run);
}

/* The signals end both ranks in one turn of the launcher. */
static void end_both(struct run *run, int first, int second)
{
    int ranks[2];
    pid_t pids[2];
    for (int i = 0; i < 2; i++) ranks[i] = run_process(run, "trap", &pids[i]);
    kill(run->pid, SIGSTOP); /* so it notices both deaths together */
    kill(pids[0], first);
    kill(pids[1], second);
    for (int i = 0; i < 2; i++) assert_gone(ranks[i]);
    kill(run->pid, SIGCONT);
    run_finish(run);
}

/* One rank is killed and one exits in the same turn: the killed one is the
 * cause. Of two that exit it is the one that has not given up by a loss. */
static void test_culprit(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "2", run_helper, "trap", "15", "1");
    end_both(&run, SIGTERM, SIGKILL);
    assert_int_equal(run.status, 128 + SIGKILL);
    run_free(&run);
    RUN(&run, "-n", "1", run_helper, "trap", "15", "101", ":", "-n", "1",
        run_helper, "trap", "15", "3");
    end_both(&run, SIGTERM, SIGTERM);
    assert_int_equal(run.status, 3);
    run_free(&run);
}

static void test_cannot_execute(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        int status;
        const char *message;
    } cases[] = {
        {"./no-such", 127,
         "pccl-master: cannot execute ./no-such: No such file or directory\n"},
        {"no-such-anywhere", 127,
         "cannot execute no-such-anywhere: No such file or directory"},
        {"/etc/passwd", 126, "cannot execute /etc/passwd: Permission denied"},
        {"/tmp", 126, "cannot execute /tmp: Permission denied"},
        {"", 127, "cannot execute : No such file or directory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run;
        RUN(&run, "--elastic", "-n", "2", cases[i].program);
        run_finish(&run);
        assert_int_equal(run.status, cases[i].status);
        assert_has(run.errors, cases[i].message);
        run_free(&run);
    }
    struct run run;
    RUN(&run, "-n", "2", run_helper, "ignore", ":", "./no-such");
    run_finish(&run); /* all started processes are gone */
    assert_int_equal(run.status, 127);
    run_free(&run);
    RUN(&run, "-n", "2", "-wdir", "/no-such-dir", "true");
    run_finish(&run);
    assert_int_equal(run.status, 127);
    assert_has(run.errors, "cannot enter the directory /no-such-dir: No such");
    run_free(&run);
}

static void test_elastic(void **state)
{
    (void)state;
    static const struct {
        const char *option, *command;
        int status;
        const char *message;
    } cases[] = {
        {"--elastic", "[ $RANK = 1 ] && kill -9 $$; exit 0", 0, "signal 9"},
        {"--elastic", "[ $RANK = 2 ] || exit 4", 0, "exited with status 4"},
        {"--elastic", "exit 4", 4, "0 left of at least 1, ending the job"},
        {"--elastic=2", "[ $RANK = 0 ] && exec sleep 100; exit 6", 6,
         "1 left of at least 2, ending the job"},
        {"--elastic=2", "[ $RANK = 1 ] && exit 6; exit 0", 0, "2 left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run;
        RUN(&run, cases[i].option, "-n", "3", "sh", "-c", cases[i].command);
        run_finish(&run);
        assert_int_equal(run.status, cases[i].status);
        assert_has(run.errors, cases[i].message);
        run_free(&run);
    }
}

static void test_quorum(void **state)
{
    (void)state;
    struct run run;
    static const char *const ends[] = {
        "[ $RANK = 1 ] && exit 1; read x; exit 0",
        "[ $RANK = 0 ] && read x; exit 0"};
    for (int i = 0; i < 2; i++) {
        RUN(&run, "--elastic", "-n", "2", "sh", "-c", ends[i]);
        run_errors_await(&run, "pccl-master: quorum 1\n");
        run_finish(&run);
        assert_int_equal(run.status, 0);
        run_free(&run);
    }
    /* after the first view the coordinator handles losses */
    RUN(&run, "--elastic", "-n", "2", "sh", "-c",
        "[ $RANK = 1 ] || exec cat; \"$HELPER\" tell members 3; exit 1");
    run_errors_await(&run, "going on");
    run_finish(&run);
    assert_has_not(run.errors, "quorum");
    run_free(&run);
}

static void test_abort(void **state)
{
    (void)state;
    static const char *const options[] = {"--elastic", "-v"};
    for (int i = 0; i < 2; i++) {
        struct run run;
        RUN(&run, options[i], "-n", "3", "sh", "-c",
            "[ $RANK = 1 ] && \"$HELPER\" tell abort 7 1; exec sleep 100");
        run_finish(&run);
        assert_int_equal(run.status, 7);
        assert_has(run.errors, "\nAbort(7) on node 1 (rank 1 in comm 0): "
                               "process 1 ended the job\n");
        run_free(&run);
    }
}

/* A survivor reports a failure before the rank that caused it ends: that rank
 * is the cause. Without such a rank the survivor's status is the result. */
static void test_victim_first(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "\"$HELPER\" tell abort 101 0; echo told $$; exit 101",
        "echo told $$; exit 101"};
    for (int i = 0; i < 2; i++) {
        struct run run;
        pid_t pid = 0;
        RUN(&run, "-n", "1", run_helper, "hold", "up", ":", "-n", "1", "sh",
            "-c", ends[i]);
        int lost = -1, victim = -1;
        for (int k = 0; k < 2; k++) {
            char line[64];
            int number;
            run_line(&run, line, sizeof line);
            bool up = sscanf(line, "up %d", &number) == 1;
            if (!up) assert_int_equal(sscanf(line, "told %d", &number), 1);
            int fd = (int)syscall(SYS_pidfd_open, number, 0);
            if (up) pid = number;
            if (up)
                lost = fd;
            else
                victim = fd;
        }
        if (victim >= 0) assert_gone(victim);
        kill(pid, SIGKILL);
        assert_gone(lost);
        run_finish(&run);
        assert_int_equal(run.status, 128 + SIGKILL);
        assert_has(run.errors, "rank 0 (pid ");
        run_free(&run);
    }
    struct run run;
    RUN(&run, "-n", "1", "sh", "-c", "exit 101", ":", "-n", "1", run_helper,
        "ignore");
    run_finish(&run);
    assert_int_equal(run.status, 101);
    run_free(&run);
    /* Others end well before the launcher gives up to look for the cause. */
    RUN(&run, "-n", "1", "sh", "-c", "read line; exit 0", ":", "-n", "1", "sh",
        "-c", "echo told $$; exit 101");
    char line[64];
    int number;
    run_line(&run, line, sizeof line);
    assert_int_equal(sscanf(line, "told %d", &number), 1);
    int victim = (int)syscall(SYS_pidfd_open, number, 0);
    if (victim >= 0) assert_gone(victim);
    run_finish(&run);
    assert_int_equal(run.status, 101);
    run_free(&run);
}

/* The coordinator knows who was lost, and why. */
static void test_loss_is_told(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", "sh", "-c",
        "\"$HELPER\" tell loss rank 5 is lost: why; "
        "\"$HELPER\" tell abort 101 0; exit 101",
        ":", "-n", "1", run_helper, "ignore");
    run_finish(&run);
    assert_int_equal(run.status, 101);
    assert_has(run.errors, "rank 0 gave up because rank 5 is lost: why\n");
    run_free(&run);
}

/* The code of MPI_Abort wins even if the job is already ending. */
static void test_late_abort(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", "sh", "-c", "read x; exit 5", ":", "-n", "1", "sh",
        "-c",
        "trap '\"$HELPER\" tell abort 7 1; exit 0' TERM; "
        "\"$HELPER\" hold up & wait");
    close(run_process(&run, "up", NULL));
    run_finish(&run);
    assert_int_equal(run.status, 7);
    run_free(&run);
}

static void test_report(void **state)
{
    (void)state;
    static const char *const options[] = {"--elastic", "-v", "-ppn=1"};
    for (int i = 0; i < 3; i++) {
        struct run run;
        RUN(&run, options[i], "-n", "1", run_helper, "tell", "report", "hey");
        run_finish(&run);
        assert_int_equal(run.status, 0);
        if (i < 2) assert_has(run.errors, "pccl-master: hey\n");
        if (i < 2) assert_has(run.errors, "listening on 127.0.0.1:");
        if (i == 2) assert_string_equal(run.errors, "");
        run_free(&run);
    }
}

static void test_timeout(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--timeout", "0.2", "-n", "2", "sleep", "100");
    run_finish(&run);
    assert_int_equal(run.status, 124);
    assert_has(run.errors, "the job ran for 0.2 s (--timeout); ending it");
    run_free(&run);
}

static void test_respawn(void **state)
{
    (void)state;
    struct run run;
    char line[64];
    RUN(&run, "--respawn", "-n", "2", "sh", "-c",
        "if [ \"$PCCL_JOIN\" ]; then echo new ${PCCL_RANK-none}; exit 0; fi\n"
        "[ $RANK = 1 ] && exit 9; read x; exit 0");
    run_line(&run, line, sizeof line);
    assert_string_equal(line, "new none");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "exited with status 9; 1 left, a new one starts in "
                           "0.1 s");
    run_free(&run);
}

/* The program is missing when it is needed again: retried until it is back. */
/* The survivors have left the run, and their ends are not known yet. */
static void test_respawn_too_late(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--respawn", "-n", "2", "sh", "-c",
        "[ \"$PCCL_JOIN\" ] && { \"$HELPER\" tell ended; exit 15; }; "
        "[ $RANK = 1 ] && kill -9 $$; read x; exit 0");
    run_errors_await(&run, "exited with status 15; it came when the job had "
                           "ended\n");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has_not(run.errors, "starts in 0.2 s");
    run_free(&run);
}

static void test_respawn_missing(void **state)
{
    (void)state;
    struct run run;
    char folder[] = "/tmp/pccl-respawn-XXXXXX";
    char path[64], away[64], line[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/prog", folder);
    snprintf(away, sizeof away, "%s/away", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0755);
    assert_true(fd >= 0);
    dprintf(fd,
            "#!/bin/sh\n[ \"$PCCL_JOIN\" ] && { echo back; exit 0; }\n"
            "mv $0 %s; kill -9 $$\n",
            away);
    close(fd);
    RUN(&run, "--respawn", "-n", "1", "sh", "-c", "read x; exit 0", ":", "-n",
        "1", path);
    run_errors_await(&run,
                     "rank 1 could not be started again; next try in 0.4");
    assert_int_equal(rename(away, path), 0);
    run_line(&run, line, sizeof line);
    assert_string_equal(line, "back");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "No such file");
    run_free(&run);
    unlink(path);
    rmdir(folder);
}

static void test_join(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--join", "127.0.0.1:9", "-n", "2", "sh", "-c",
        "echo $PCCL_MASTER $PCCL_JOIN ${PCCL_RANK-none} $LOCAL_RANK; "
        "exit $LOCAL_RANK");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "127.0.0.1:9 1 none 0\n");
    assert_has(run.output, "127.0.0.1:9 1 none 1\n");
    assert_has(run.errors, "local rank 1 (pid ");
    run_free(&run);
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_rest_ends),
        cmocka_unit_test(test_culprit),
        cmocka_unit_test(test_cannot_execute),
        cmocka_unit_test(test_elastic),
        cmocka_unit_test(test_quorum),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_victim_first),
        cmocka_unit_test(test_loss_is_told),
        cmocka_unit_test(test_late_abort),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_respawn),
        cmocka_unit_test(test_respawn_too_late),
        cmocka_unit_test(test_respawn_missing),
        cmocka_unit_test(test_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
