/* test_launch_remote.c - tests of ranks on other hosts: agents started
 * directly, by a stand-in for ssh, by a real sshd, and in a network
 * namespace. */
#include "run.h"

#include "../../patience.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/pccl-remote-XXXXXX";
static char
    fake_ssh[128]; /* HOST COMMAND: runs the command and records its pid */

static void file_write(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(fake_ssh, sizeof fake_ssh, "%s/ssh", folder);
    char text[512];
    snprintf(text, sizeof text,
             "#!/bin/sh\necho welcome to $1\necho $$ >%s/pid.$1\n"
             "exec sh -c \"$2\"\n",
             folder);
    file_write(fake_ssh, text, 0755);
    return 0;
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

static int host_pid(const char *host)
{
    char path[128];
    int pid = 0;
    snprintf(path, sizeof path, "%s/pid.%s", folder, host);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

/* Every rank runs on its host and knows it; output of a host's login script
 * does no harm. */
static void test_places(void **state)
{
    (void)state;
    const char *const launchers[][2] = {{"--launcher", "fork"},
                                        {"--launcher-exec", fake_ssh}};
    for (int i = 0; i < 2; i++) {
        struct run run;
        RUN(&run, "-l", launchers[i][0], launchers[i][1], "-hosts",
            "a:2,localhost,b", "-wdir", "/", "-genv", "A", "x y", "-env", "B",
            "z", "-n", "5", "sh", "-c",
            "echo $RANK $LOCAL_RANK/$LOCAL_WORLD_SIZE $WORLD_SIZE $A $B $PWD; "
            "echo to stderr >&2");
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_has(run.output, "[0] 0 0/3 5 x y z /\n");
        assert_has(run.output, "[1] 1 1/3 5 x y z /\n");
        assert_has(run.output, "[2] 2 0/1 5 x y z /\n");
        assert_has(run.output, "[3] 3 0/1 5 x y z /\n");
        assert_has(run.output, "[4] 4 2/3 5 x y z /\n");
        assert_int_equal(count_lines(run.output), 5);
        assert_int_equal(count_lines(run.errors), 5);
        assert_has(run.errors, "[3] to stderr\n");
        run_free(&run);
    }
}

/* All bytes of input and output arrive; lines are whole, also a last one
 * without newline. */
static void test_streams(void **state)
{
    (void)state;
    struct run run;
    char command[1024], input[128];
    snprintf(input, sizeof input, "%s/input", folder);
    FILE *file = fopen(input, "w");
    assert_non_null(file);
    for (int i = 0; i < 300; i++) {
        for (int k = 0; k < 999; k++) putc('a' + i % 26, file);
        putc('\n', file);
    }
    fclose(file);
    const char *master = run_master;
    snprintf(command, sizeof command,
             "cat %s | \"$LAUNCHER\" -launcher fork -hosts a,b,c -l sh -c "
             "'[ $RANK = 0 ] && exec cat; exec \"$HELPER\" lines 200 3000'",
             input);
    run_master = "/bin/sh";
    RUN(&run, "-c", command);
    run_master = master;
    run_finish(&run);
    assert_int_equal(run.status, 0);
    size_t lines = 0;
    for (char *line = run.output, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end) break;
        *end = '\0';
        if (strncmp(line, "[0] ", 4) == 0) {
            assert_int_equal(strlen(line), 4 + 999);
        } else {
            assert_int_equal(strlen(line), 4 + 2999);
            assert_true(line[1] == line[4]); /* its own rank */
        }
        lines++;
    }
    assert_int_equal(lines, 300 + 400);
    run_free(&run);
    RUN(&run, "-launcher", "fork", "-hosts", "a", "printf", "a\\nb");
    run_finish(&run);
    assert_string_equal(run.output, "a\nb");
    run_free(&run);
    RUN(&run, "-launcher", "fork", "-hosts", "a,localhost,c", "-s", "all", "-l",
        "cat");
    assert_int_equal(write(run.in, "word\n", 5), 5);
    run_finish(&run);
    assert_has(run.output, "[0] word\n");
    assert_has(run.output, "[1] word\n");
    assert_has(run.output, "[2] word\n");
    run_free(&run);
    RUN(&run, "-launcher", "fork", "-hosts", "a,b", "-s", "1", "-l", "cat");
    assert_int_equal(write(run.in, "word\n", 5), 5);
    run_finish(&run);
    assert_string_equal(run.output, "[1] word\n");
    run_free(&run);
}

/* Remote ranks notice that the reader of our output is gone. */
static void test_dead_reader(void **state)
{
    (void)state;
    struct run run;
    char line[16];
    RUN(&run, "-launcher", "fork", "-hosts", "a,b", "yes");
    run_line(&run, line, sizeof line);
    close(run.out);
    run.out = -1;
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGPIPE);
    run_free(&run);
}

/* 40 MB without a reader block the remote ranks; no memory grows here. */
static void test_slow_reader(void **state)
{
    (void)state;
    struct run run;
    struct rusage usage;
    char byte[4096];
    RUN(&run, "-launcher", "fork", "-hosts", "a,b", "sh", "-c",
        "exec \"$HELPER\" lines 20000 1000");
    for (int i = 0; i < 100; i++) assert_true(read(run.out, byte, 1) == 1);
    poll(NULL, 0, 300); /* gives the memory time to grow */
    size_t rest = 2 * 20000 * 1000 - 100;
    for (ssize_t got; rest > 0 && (got = read(run.out, byte, sizeof byte)) > 0;)
        rest -= (size_t)got;
    assert_int_equal(rest, 0);
    close(run.in);
    int status;
    assert_int_equal(wait4(run.pid, &status, 0, &usage), run.pid);
    assert_int_equal(status, 0);
#if !defined(__SANITIZE_ADDRESS__)
    assert_in_range(usage.ru_maxrss, 1, 24 * 1024);
#endif
    close(run.out);
    close(run.err);
    run_free(&run);
}

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
         " on b) exited with status 3; ending the job"},
        {"[ $RANK = 1 ] && kill -9 $$; exec sleep 100", 137,
         " on b) was killed by signal 9 (Killed); ending the job"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run;
        RUN(&run, "--launcher", "fork", "-hosts", "a,b,c", "sh", "-c",
            cases[i].command);
        run_finish(&run);
        assert_int_equal(run.status, cases[i].status);
        assert_has(run.errors, cases[i].message);
        assert_int_equal(count_lines(run.errors), i > 0);
        run_free(&run);
    }
    struct run run;
    RUN(&run, "--launcher", "fork", "-hosts", "a,b", "./no-such");
    run_finish(&run);
    assert_int_equal(run.status, 127);
    assert_has(run.errors, "cannot execute ./no-such: No such file");
    run_free(&run);
    RUN(&run, "--launcher-exec", "sh -c false", "-hosts", "a", "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors,
               "host a is lost: the command that reaches it ended with status");
    run_free(&run);
    RUN(&run, "--launcher-exec", "/no/ssh", "-hosts", "a", "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "host a: cannot execute /no/ssh: No such file");
    run_free(&run);
    RUN(&run, "--launcher-exec", "echo", "-hosts", "a", "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    run_free(&run);
    /* the ranks' address of the coordinator does not answer */
    RUN(&run, "--launcher", "fork", "--join", "127.0.0.1:1", "-hosts", "a",
        "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "host a is lost: cannot reach the coordinator");
    run_free(&run);
}

static void start_three(struct run *run, int *ranks, const char *more)
{
    RUN(run, "--launcher-exec", fake_ssh, more, "-hosts", "a,b,localhost",
        run_helper, "hold", "up");
    for (int i = 0; i < 3; i++) ranks[i] = run_process(run, "up", NULL);
}

/* Signals reach all ranks; the ranks of a killed launcher end. */
static void test_signals(void **state)
{
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT, SIGKILL};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct run run;
        int ranks[3];
        start_three(&run, ranks, "-v");
        kill(run.pid, numbers[i]);
        for (int k = 0; k < 3; k++) assert_gone(ranks[k]);
        run_finish(&run);
        assert_int_equal(run.status, 128 + numbers[i]);
        run_free(&run);
    }
}

/* If the agent or its connection dies, its ranks end. */
static void test_agent_killed(void **state)
{
    (void)state;
    struct run run;
    int ranks[3];
    start_three(&run, ranks, "-v");
    kill(host_pid("a"), SIGKILL);
    for (int k = 0; k < 3; k++) assert_gone(ranks[k]);
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "host a is lost: its connection ended");
    assert_has(run.errors, "on a) was lost with its host; ending the job");
    run_free(&run);
}

/* A host that stopped answering does not delay the end of the job. */
static void test_silent_host(void **state)
{
    (void)state;
    struct run run;
    int ranks[3];
    start_three(&run, ranks, "-v");
    kill(host_pid("a"), SIGSTOP);
    kill(run.pid, SIGTERM);
    kill(run.pid, SIGINT); /* the second of two pending signals ends the job */
    run_finish(&run);
    assert_true(run.status == 128 + SIGTERM || run.status == 128 + SIGINT);
    for (int k = 0; k < 3; k++) assert_gone(ranks[k]);
    run_free(&run);
}

/* The job ends while hosts are still being connected. */
static void test_early_end(void **state)
{
    (void)state;
    struct run run;
    char script[128];
    snprintf(script, sizeof script, "%s/deaf", folder);
    file_write(script, "#!/bin/sh\nexec sleep 1000\n", 0755);
    RUN(&run, "--launcher-exec", script, "--timeout", "0.2", "-hosts", "a",
        "true");
    run_finish(&run);
    assert_int_equal(run.status, 124);
    run_free(&run);
}

/* Elastic: the other ranks go on, and the lost rank restarts on another
 * host. */
static void test_respawn_elsewhere(void **state)
{
    (void)state;
    struct run run;
    pid_t pid;
    RUN(&run, "--launcher-exec", fake_ssh, "--respawn", "-hosts", "a,b", "sh",
        "-c",
        "[ \"$PCCL_JOIN\" ] && { echo new; exit 0; }; echo up $$; "
        "[ $RANK = 1 ] && exec sleep 1000; exec cat");
    int first = run_process(&run, "up", &pid);
    int second = run_process(&run, "up", NULL);
    kill(host_pid("b"), SIGKILL);
    char line[64];
    run_line(&run, line, sizeof line);
    assert_string_equal(line, "new");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.errors, "host b is lost");
    assert_gone(first);
    assert_gone(second);
    run_free(&run);
}

static char state_of(const char *path)
{
    char stat;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &stat), 1);
    fclose(file);
    return stat;
}

/* As soon as its rank has stopped, pccl-master is told to go on: it may not
 * have stopped itself yet, and must not do so any more. */
static void test_stop_and_continue(void **state)
{
    (void)state;
    enum { ROUNDS = 50 };
    struct run run;
    pid_t pid;
    char path[64];
    RUN(&run, "--launcher", "fork", "-hosts", "a", run_helper, "hold", "up");
    close(run_process(&run, "up", &pid));
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        char wanted = round % 2 == 0 ? 'T' : 'S';
        time_t end = time(NULL) + PATIENCE_S;
        kill(run.pid, wanted == 'T' ? SIGTSTP : SIGCONT);
        while (state_of(path) != wanted && time(NULL) < end) sched_yield();
        assert_int_equal(state_of(path), wanted);
    }
    kill(run.pid, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGTERM);
    run_free(&run);
}

/* A spare waits for its release, replaces a dead rank, and is not counted as
 * missing. */
static void test_spares(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost:4", "a:2,b:2"};
    for (int i = 0; i < 2; i++) {
        struct run run;
        char line[64];
        RUN(&run, "--launcher", "fork", "-hosts", hosts[i], "--spares", "2",
            "-n", "2", "sh", "-c",
            "if [ \"$PCCL_SPARE\" ]; then read x; "
            "echo in $PCCL_JOIN ${RANK-none}; exit 0; fi;"
            "[ $RANK = 1 ] && kill -9 $$; read x; exit 0");
        run_line(&run, line, sizeof line);
        assert_string_equal(line, "in 1 none");
        run_finish(&run);
        assert_int_equal(run.status, 0);
        assert_has(run.errors, "1 left, spare 2 takes part");
        assert_has_not(run.errors, "spare 3");
        run_free(&run);
    }
}

static void test_files(void **state)
{
    (void)state;
    struct run run;
    char out[128], err[128], command[256], line[256] = "";
    snprintf(out, sizeof out, "%s/out.%%r.%%h", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    file_write(err, "old", 0644);
    RUN(&run, "--launcher", "fork", "-hosts", "a,b", "-outfile-pattern", out,
        "-errfile-pattern", err, "sh", "-c", "echo $RANK; echo e >&2");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "");
    assert_string_equal(run.errors, "");
    run_free(&run);
    snprintf(command, sizeof command, "cd %s; cat out.0.a out.1.b err", folder);
    FILE *file = popen(command, "r");
    assert_non_null(file);
    assert_int_equal(fread(line, 1, sizeof line - 1, file), 8);
    pclose(file);
    assert_string_equal(line, "0\n1\ne\ne\n");
}

static char *slurp(const char *name)
{
    static char text[256];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("no %s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Open MPI's folders, errors merged with output, user-defined labels. */
static void test_places_of_output(void **state)
{
    (void)state;
    struct run run;
    char out[128];
    snprintf(out, sizeof out, "%s/deep/er", folder);
    RUN(&run, "--launcher", "fork", "-hosts", "a,localhost",
        "--output-filename", out, "sh", "-c", "echo $RANK; echo e$RANK >&2");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "");
    run_free(&run);
    assert_string_equal(slurp("deep/er/1/rank.0/stdout"), "0\n");
    assert_string_equal(slurp("deep/er/1/rank.1/stderr"), "e1\n");
    RUN(&run, "--launcher", "fork", "-hosts", "a,localhost", "-prepend-pattern",
        "%r of %h%%: ", "-merge-stderr-to-stdout", "sh", "-c",
        "echo e$RANK >&2");
    run_finish(&run);
    assert_has(run.output, "0 of a%: e0\n");
    assert_has(run.output, "%: e1\n");
    assert_string_equal(run.errors, "");
    run_free(&run);
}

/* The agent has another path on the remote host, or is wrapped in a command. */
static void test_agent_elsewhere(void **state)
{
    (void)state;
    struct run run;
    char agent[512], bin[128], link[256];
    snprintf(agent, sizeof agent, "env WRAPPED='by us' '%s'", run_master);
    RUN(&run, "--launcher-exec", fake_ssh, "--launcher-agent", agent, "-hosts",
        "far", "sh", "-c", "echo $WRAPPED");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "by us\n");
    run_free(&run);
    snprintf(bin, sizeof bin, "%s/bin", folder);
    snprintf(link, sizeof link, "%s/pccl-master", bin);
    assert_int_equal(mkdir(bin, 0755), 0);
    char *real = realpath(run_master, NULL);
    assert_int_equal(symlink(real, link), 0);
    free(real);
    RUN(&run, "--launcher-exec", fake_ssh, "--prefix", folder, "-hosts", "far",
        "echo", "there");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "there\n");
    run_free(&run);
    RUN(&run, "--launcher-exec", fake_ssh, "--prefix", "/no/where", "-hosts",
        "far", "true");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "/no/where/bin/pccl-master");
    assert_has(run.errors,
               "host far is lost: the command that reaches it ended "
               "with status 127");
    run_free(&run);
}

/* Arguments reach a remote rank without any interpretation. */
static void test_quoting(void **state)
{
    (void)state;
    struct run run;
    static const char odd[] = "a b'c\"d$HOME\\`x`\n*?~ !#;|&<>()[]{}\t\xc3\xa4";
    RUN(&run, "--launcher-exec", fake_ssh, "-hosts", "far", "-genv", "ODD", odd,
        "sh", "-c", "printf '%s|%s|%s' \"$ODD\" \"$1\" \"$2\"", "sh", odd, "");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    char want[256];
    snprintf(want, sizeof want, "%s|%s|", odd, odd);
    assert_string_equal(run.output, want);
    run_free(&run);
}

/* A script stands in for srun: checks its arguments and the job. */
static void test_slurm(void **state)
{
    (void)state;
    struct run run;
    char script[128], path[4096];
    snprintf(script, sizeof script, "%s/srun", folder);
    file_write(script,
               "#!/bin/sh\nwhile [ \"$1\" != --nodelist ]; do shift; done\n"
               "echo called for $2 >&2; shift 2; exec \"$@\"\n",
               0755);
    snprintf(path, sizeof path, "%s:%s", folder, getenv("PATH"));
    char *old = strdup(getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
    setenv("SLURM_TASKS_PER_NODE", "2,1", 1);
    RUN(&run, "-l", "sh", "-c", "echo $RANK $LOCAL_RANK");
    run_finish(&run);
    unsetenv("SLURM_JOB_ID");
    setenv("PATH", old, 1);
    free(old);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "[0] 0 0\n");
    assert_has(run.output, "[1] 1 1\n");
    assert_has(run.output, "[2] 2 0\n");
    assert_has(run.errors, "called for n1\n");
    assert_has(run.errors, "called for n2\n");
    assert_int_equal(count_lines(run.output), 3);
    run_free(&run);
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_dead_reader),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_agent_killed),
        cmocka_unit_test(test_silent_host),
        cmocka_unit_test(test_early_end),
        cmocka_unit_test(test_respawn_elsewhere),
        cmocka_unit_test(test_stop_and_continue),
        cmocka_unit_test(test_spares),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_slurm),
        cmocka_unit_test(test_places_of_output),
        cmocka_unit_test(test_agent_elsewhere),
        cmocka_unit_test(test_quoting),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
