/* test_launch_evicted.c - tests that whoever is evicted is ended, replaced as
 * one that died, and told (rule M10g); and so is one that ends without leaving
 * the run (M10h). */
#include "run.h"

#include "../../patience.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both ranks here, and the second one by an agent. */
static const char *const places[] = {"localhost:4", "localhost,far"};

/* Rank 1 is the victim. Rank 0 tells what the next lines of the input say, and
 * ends with them. */
#define TELLS                                                                  \
    "while read what pid; do \"$HELPER\" tell $what $pid; done; exit 0"

static void say(const struct run *run, const char *what, pid_t pid)
{
    char line[64];
    int size = snprintf(line, sizeof line, "%s %d\n", what, (int)pid);
    assert_int_equal(write(run->in, line, (size_t)size), size);
}

/* It stands still, and does not mind SIGTERM. */
static void test_the_hung(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct run run;
        pid_t pid;
        RUN(&run, "--elastic", "--deadline", "1", "-print-all-exitcodes",
            "--launcher", "fork", "-hosts", places[i], "-n", "2", "sh", "-c",
            "[ $RANK = 0 ] || exec \"$HELPER\" ignore; " TELLS);
        int fd = run_process(&run, "ignore", &pid);
        kill(pid, SIGSTOP);
        say(&run, "evict", pid);
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_has(run.errors,
                   "was evicted, and was killed by signal 9 (Killed); 1 left");
        assert_has(run.errors, "rank 1: evicted\n");
        assert_gone(fd);
        run_free(&run);
    }
}

/* Continued it ends as it likes, which is no success; also where it is a child
 * of the rank. */
static void test_it_ends_by_itself(void **state)
{
    (void)state;
    static const char *const commands[] = {"exec \"$HELPER\" trap 15 0",
                                           "\"$HELPER\" trap 15 0; exit 0"};
    for (int i = 0; i < 4; i++) {
        struct run run;
        pid_t pid;
        char command[256];
        snprintf(command, sizeof command, "[ $RANK = 1 ] && { %s; }; " TELLS,
                 commands[i / 2]);
        RUN(&run, "--elastic", "--deadline", "1", "--launcher", "fork",
            "-hosts", places[i % 2], "-n", "2", "sh", "-c", command);
        int fd = run_process(&run, "trap", &pid);
        kill(pid, SIGSTOP);
        say(&run, "evict", pid);
        run_errors_await(&run, "was evicted, and ");
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_gone(fd);
        run_free(&run);
    }
}

static void test_replaced(void **state)
{
    (void)state;
    static const char *const options[][2] = {{"--respawn", "--elastic"},
                                             {"--spares", "1"}};
    static const char *const told[] = {"1 left, a new one starts in 0.1 s",
                                       "1 left, spare 2 takes part"};
    for (int i = 0; i < 4; i++) {
        struct run run;
        pid_t pid;
        char line[64];
        RUN(&run, options[i / 2][0], options[i / 2][1], "--deadline", "1",
            "--launcher", "fork", "-hosts",
            i % 2 ? "localhost,far:2" : "localhost:3", "-n", "2", "sh", "-c",
            "[ ! \"$PCCL_SPARE\" ] || read x; "
            "[ ! \"$PCCL_JOIN\" ] || { echo new; exit 0; }; "
            "[ $RANK = 0 ] || exec \"$HELPER\" hold up; " TELLS);
        int fd = run_process(&run, "up", &pid);
        kill(pid, SIGSTOP);
        say(&run, "evict", pid);
        run_line(&run, line, sizeof line);
        assert_string_equal(line, "new");
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_has(run.errors, told[i / 2]);
        assert_gone(fd);
        run_free(&run);
    }
}

/* A job that is not elastic ends with it. */
static void test_not_elastic(void **state)
{
    (void)state;
    struct run run;
    pid_t pid;
    RUN(&run, "--deadline", "1", "-n", "2", "sh", "-c",
        "[ $RANK = 0 ] || exec \"$HELPER\" hold up; read what pid; "
        "\"$HELPER\" tell $what $pid; exec sleep 1000");
    int fd = run_process(&run, "up", &pid);
    kill(pid, SIGSTOP);
    say(&run, "evict", pid);
    run_finish(&run);
    assert_int_equal(run.status, 101);
    assert_has(run.errors, "was evicted, and was killed by signal 15 "
                           "(Terminated); ending the job");
    assert_gone(fd);
    run_free(&run);
}

static void wait_gone(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&one, 1, PATIENCE_S * 1000), 1);
}

/* Rank 1 takes part, ends with status 0, and has not left the run, as far as
 * the coordinator has read then (`owes`); it says so before or after the
 * end. */
static void cut_one(struct run *run, bool before)
{
    pid_t pid;
    int fd = run_process(run, "trap", &pid);
    say(run, "came", pid);
    say(run, before ? "cut" : "owes", pid);
    say(run, "warn", 77); /* all that is read by now */
    run_errors_await(run, "pccl-master: 77\n");
    kill(pid, SIGTERM);
    wait_gone(fd);
    if (!before) say(run, "cut", pid);
    close(fd);
}

/* The others go on, and the job's status is not 0 (M10h). */
static void test_unfinished(void **state)
{
    (void)state;
    static const char *const commands[] = {"exec \"$HELPER\" trap 15 0",
                                           "\"$HELPER\" trap 15 0; exit 0"};
    for (int i = 0; i < 6; i++) {
        struct run run;
        char command[256];
        /* An agent knows its own child alone. */
        const char *child = commands[i < 2];
        snprintf(command, sizeof command, "[ $RANK = 1 ] && { %s; }; " TELLS,
                 child);
        RUN(&run, "--elastic", "--launcher", "fork", "-hosts", places[i / 4],
            "-n", "2", "sh", "-c", command);
        cut_one(&run, i % 2);
        run_errors_await(&run,
                         "exited with status 0, but without MPI_Finalize; 1 "
                         "left, going on");
        run_finish(&run);
        assert_int_equal(run.status, 1);
        assert_has(run.errors, "the job has ended; 1 of its ranks was lost");
        run_free(&run);
    }
}

/* One that has left is judged by its status alone. */
static void test_finished(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct run run;
        pid_t pid;
        RUN(&run, "--elastic", "--launcher", "fork", "-hosts", places[i], "-n",
            "2", "sh", "-c",
            "[ $RANK = 1 ] && exec \"$HELPER\" trap 15 0; " TELLS);
        int fd = run_process(&run, "trap", &pid);
        say(&run, "came", pid);
        say(&run, "owes", pid);
        kill(pid, SIGTERM);
        wait_gone(fd);
        close(fd);
        say(&run, "left", pid);
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_has_not(run.errors, "MPI_Finalize");
        assert_has_not(run.errors, "lost");
        run_free(&run);
    }
}

/* A job that is not elastic ends with it. */
static void test_unfinished_not_elastic(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct run run;
        RUN(&run, "-n", "2", "sh", "-c",
            "[ $RANK = 1 ] && exec \"$HELPER\" trap 15 0; "
            "while read what pid; do \"$HELPER\" tell $what $pid; done; "
            "exec sleep 1000");
        cut_one(&run, i);
        run_finish(&run);
        assert_int_equal(run.status, 1);
        assert_has(run.errors, "exited with status 0, but without "
                               "MPI_Finalize; ending the job");
        run_free(&run);
    }
}

/* Both write in any order. */
static void two_processes(struct run *run, pid_t *trap, pid_t *ignore)
{
    for (int i = 0; i < 2; i++) {
        char line[64], word[16];
        int pid = 0;
        run_line(run, line, sizeof line);
        assert_int_equal(sscanf(line, "%15s %d", word, &pid), 2);
        *(strcmp(word, "trap") == 0 ? trap : ignore) = pid;
    }
}

/* The process has come to the run again, so it is let be: another one, which
 * was evicted later, is ended before it would have been. */
static void test_back(void **state)
{
    (void)state;
    static const char *const three[] = {"localhost:4", "localhost,far:2"};
    for (int i = 0; i < 2; i++) {
        struct run run;
        pid_t pid, other;
        RUN(&run, "--elastic", "--deadline", "1", "--launcher", "fork",
            "-hosts", three[i], "-n", "3", "sh", "-c",
            "[ $RANK = 1 ] && exec \"$HELPER\" trap 10 0; "
            "[ $RANK = 2 ] && exec \"$HELPER\" ignore; " TELLS);
        two_processes(&run, &pid, &other);
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        kill(pid, SIGSTOP);
        say(&run, "came", pid);
        say(&run, "evict", 1); /* nobody here */
        say(&run, "evict", pid);
        say(&run, "came", pid);
        say(&run, "evict", other);
        run_errors_await(&run, "was evicted, and was killed by signal 9");
        kill(pid, SIGUSR1);
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_has(run.errors, "rank 2 (");
        assert_has_not(run.errors, "rank 1 (");
        assert_gone(fd);
        run_free(&run);
    }
}

/* Holds a process in its exit, where SIGKILL has no effect any more, as a disk
 * that does not answer does. */
static pid_t holder_start(pid_t victim)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool held = ptrace(PTRACE_SEIZE, victim, NULL, PTRACE_O_TRACEEXIT) == 0;
        ssize_t ignored = write(ends[1], held ? "1" : "0", 1);
        (void)ignored;
        close_range(3, ~0U, 0); /* the launcher's input, too */
        for (;;) pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    if (byte == '1') return pid;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}

/* In the kernel nothing ends it: nobody waits for it. */
static void test_in_the_kernel(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct run run;
        pid_t pid;
        RUN(&run, "--elastic", "--deadline", "1", "--launcher", "fork",
            "-hosts", places[i % 2], "-n", "2", "sh", "-c",
            "[ $RANK = 0 ] || exec \"$HELPER\" hold up; " TELLS);
        int fd = run_process(&run, "up", &pid);
        pid_t holder = holder_start(pid);
        if (holder == 0) {
            kill(run.pid, SIGTERM);
            run_finish(&run);
            run_free(&run);
            skip();
        }
        if (i < 2)
            say(&run, "evict", pid);
        else
            say(&run, "abort 5", 0); /* the same when a job ends */
        run_errors_await(&run, "does not end (it waits in the kernel), so it "
                               "is left");
        run_finish(&run);
        assert_int_equal(run.status, i < 2 ? 0 : 5);
        kill(holder, SIGKILL);
        waitpid(holder, NULL, 0);
        assert_gone(fd);
        run_free(&run);
    }
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_hung),
        cmocka_unit_test(test_it_ends_by_itself),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_finished),
        cmocka_unit_test(test_unfinished_not_elastic),
        cmocka_unit_test(test_not_elastic),
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_in_the_kernel),
    };
    return cmocka_run_group_tests_name("launch/evicted", tests, NULL, NULL);
}
