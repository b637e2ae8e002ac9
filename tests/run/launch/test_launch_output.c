/* test_launch_output.c - tests of input and output: lines, labels, stdin, slow
 * and dead readers, environment. */
#include "run.h"

#include "../../patience.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_streams(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "2", "sh", "-c", "echo out$PCCL_RANK; echo err$RANK >&2");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_int_equal(count_lines(run.output), 2);
    assert_int_equal(count_lines(run.errors), 2);
    assert_has(run.output, "out0\n");
    assert_has(run.output, "out1\n");
    assert_has(run.errors, "err0\n");
    assert_has(run.errors, "err1\n");
    run_free(&run);
}

/* Every line is complete, and the lines of a rank are in its order. */
static void check_lines(char *output, int ranks, int count, size_t size,
                        bool labels)
{
    int next[16] = {0};
    char *rest;
    for (char *line = strtok_r(output, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        int rank = -1, number = -1, label = -1;
        char *text = line;
        if (labels) {
            assert_int_equal(sscanf(line, "[%d] ", &label), 1);
            text = strchr(line, ' ') + 1;
        }
        assert_int_equal(sscanf(text, "%d:%d:", &rank, &number), 2);
        assert_true(rank >= 0 && rank < ranks);
        assert_int_equal(number, next[rank]++);
        assert_int_equal(strlen(text) + 1, size);
        if (labels) assert_int_equal(label, rank);
    }
    for (int i = 0; i < ranks; i++) assert_int_equal(next[i], count);
}

static void test_interleaved(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "4", run_helper, "lines", "500", "300");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    check_lines(run.output, 4, 500, 300, false);
    run_free(&run);
    RUN(&run, "-l", "-n", "3", run_helper, "lines", "200", "5000");
    run_finish(&run);
    check_lines(run.output, 3, 200, 5000, true);
    run_free(&run);
}

static void test_no_newline(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "2", "printf", "x");
    run_finish(&run);
    assert_string_equal(run.output, "xx");
    run_free(&run);
    RUN(&run, "-l", "-n", "2", "printf", "x");
    run_finish(&run);
    bool one = strcmp(run.output, "[0] x\n[1] x") == 0;
    assert_true(one || strcmp(run.output, "[1] x\n[0] x") == 0);
    run_free(&run);
}

/* Far above LINE_SIZE: split into pieces, every byte once, one label. */
static void test_long_line(void **state)
{
    (void)state;
    struct run run;
    const size_t count = 1000000;
    RUN(&run, "-l", "-n", "1", run_helper, "bytes", "1000000");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_int_equal(run.output_size, count + 4);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(run.output[i + 4], 'a' + (int)(i % 26));
    run_free(&run);
}

/* Peak memory of a process in KiB. */
static long peak_memory(pid_t pid)
{
    char path[64], line[256];
    long peak = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &peak) == 1) break;
    fclose(file);
    return peak;
}

/* 40 MB without a reader: the ranks must block, and our memory must not grow. A
 * rank that finishes would print a marker on stderr. */
static void test_slow_reader(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "2", "sh", "-c",
        "echo begun >&2; \"$HELPER\" lines 20000 1000; echo done >&2");
    char errors[64] = "";
    size_t used = 0;
    while (count_lines(errors) < 2) { /* from here on both ranks write */
        ssize_t size = read(run.err, errors + used, sizeof errors - 1 - used);
        assert_true(size > 0);
        used += (size_t)size;
    }
    char byte;
    for (int i = 0; i < 1000; i++) assert_int_equal(read(run.out, &byte, 1), 1);
    fcntl(run.err, F_SETFL, O_NONBLOCK);
    assert_int_equal(read(run.err, &byte, 1), -1);
    fcntl(run.err, F_SETFL, 0);
    long memory = peak_memory(run.pid);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_int_equal(run.output_size, 2 * 20000 * 1000 - 1000);
    assert_string_equal(run.errors, "done\ndone\n");
#if !defined(__SANITIZE_ADDRESS__)
    assert_in_range(memory, 1, 16 * 1024);
#endif
    (void)memory;
    run_free(&run);
}

/* As with `| head`: the ranks get the same errors as without the launcher. */
static void test_dead_reader(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "2", "yes");
    char line[16];
    run_line(&run, line, sizeof line);
    close(run.out);
    run.out = -1;
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGPIPE);
    assert_has(run.errors, "signal 13");
    run_free(&run);
}

static void test_input(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-l", "-n", "3", "cat");
    assert_int_equal(write(run.in, "one\ntwo\n", 8), 8);
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "[0] one\n[0] two\n");
    run_free(&run);
    /* rank 0 closes its input; the writer gets an error */
    RUN(&run, "-n", "2", "sh", "-c", "exec \"$HELPER\" hold up <&-");
    struct pollfd pollfd = {.fd = run.in, .events = 0};
    assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
    assert_true(pollfd.revents & POLLERR);
    kill(run.pid, SIGTERM);
    run_finish(&run);
    run_free(&run);
}

static void test_closed_files(void **state)
{
    (void)state;
    struct run run;
    const char *master = run_master;
    run_master = "/bin/sh";
    RUN(&run, "-c", "\"$LAUNCHER\" -n 2 sh -c 'echo line; cat' <&- 2>&-");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.output, "line\nline\n");
    run_free(&run);
    RUN(&run, "-c", "\"$LAUNCHER\" -n 2 echo line >/dev/full");
    run_finish(&run);
    run_master = master;
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "cannot write output: No space left on device");
    run_free(&run);
}

/* A disk that is full is no business of the ranks: none is killed by SIGPIPE,
 * they go on to their ends, and the status says that output was lost. */
static void test_full_disks(void **state)
{
    static const struct {
        const char *command, *output, *errors;
    } cases[] = {
        {"\"$LAUNCHER\" -n 2 sh -c 'for i in 1 2 3 4; do echo line; done; "
         "echo end >&2' >/dev/full",
         "", "end"},
        {"\"$LAUNCHER\" -n 2 sh -c 'for i in 1 2 3 4; do echo line >&2; done; "
         "echo end' 2>/dev/full",
         "end", ""},
        {"ulimit -f 0; \"$LAUNCHER\" -n 1 sh -c 'echo line; echo line; "
         "echo end >&2' >$(mktemp)",
         "", "File too large"},
        {"\"$LAUNCHER\" -n 2 -outfile-pattern /dev/full sh -c "
         "'echo line; echo line; echo end >&2'",
         "", "end"},
        {"\"$LAUNCHER\" --launcher fork -hosts localhost,far -n 2 sh -c "
         "'i=0; while [ $i -lt 20000 ]; do echo line; i=$((i + 1)); done; "
         "echo end of $RANK >&2' >/dev/full",
         "", "end of 1"},
    };
    (void)state;
    const char *master = run_master;
    run_master = "/bin/sh";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run run;
        RUN(&run, "-c", cases[i].command);
        run_finish(&run);
        assert_int_equal(run.status, 1);
        assert_has(run.output, cases[i].output);
        assert_has(run.errors, cases[i].errors);
        assert_null(strstr(run.errors, "signal"));
        run_free(&run);
    }
    run_master = master;
}

/* One file for both: lines of stderr do not split lines of stdout. */
static void test_same_file(void **state)
{
    (void)state;
    struct run run;
    const char *master = run_master;
    run_master = "/bin/sh";
    RUN(&run, "-c",
        "\"$LAUNCHER\" -n 4 sh -c 'case $RANK in [01]) exec >&2; esac; "
        "exec \"$HELPER\" lines 100 9999' 2>&1");
    run_finish(&run);
    run_master = master;
    assert_int_equal(run.status, 0);
    check_lines(run.output, 4, 100, 9999, false);
    run_free(&run);
}

/* A terminal's input is copied, to rank 0 only, up to its end of file. */
static void test_terminal(void **state)
{
    (void)state;
    int terminal;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(run_master, run_master, "-n", "2", "sh", "-c",
              "test -t 0 && echo bad; echo up; while read x; do echo $RANK:$x; "
              "done; echo end",
              (char *)NULL);
        _exit(98);
    }
    char text[1024] = "";
    size_t size = 0;
    bool typed = false;
    for (;;) {
        ssize_t got = read(terminal, text + size, sizeof text - 1 - size);
        if (got <= 0) break; /* EIO: the last process has closed it */
        size += (size_t)got;
        text[size] = '\0';
        if (!typed && strstr(text, "up"))
            typed = write(terminal, "hello\n\004", 7) == 7;
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_has(text, "0:hello");
    assert_has_not(text, "1:hello");
    assert_has_not(text, "bad");
    assert_has(strstr(text, "end") + 1, "end");
    close(terminal);
}

/* A prompt appears before its line is complete, also that of another host. */
static void test_prompt(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost", "far"};
    for (int i = 0; i < 2; i++) {
        int terminal;
        pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
        assert_true(pid >= 0);
        if (pid == 0) {
            execl(run_master, run_master, "--launcher", "fork", "-hosts",
                  hosts[i], "-n", "1", "sh", "-c",
                  "printf 'name? '; read x; echo hello $x", (char *)NULL);
            _exit(98);
        }
        char text[1024] = "";
        size_t size = 0;
        bool typed = false;
        for (;;) {
            ssize_t got = read(terminal, text + size, sizeof text - 1 - size);
            if (got <= 0) break;
            size += (size_t)got;
            text[size] = '\0';
            if (!typed && strstr(text, "name? "))
                typed = write(terminal, "you\n", 4) == 4;
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_has(text, "hello you");
        close(terminal);
    }
}

/* --timestamp-output: each line has a time, before its label. */
static void test_timestamps(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--timestamp-output", "-l", "-n", "1", "sh", "-c",
        "echo one; echo two; echo three >&2");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    int year, hour, milli, used = 0;
    assert_int_equal(sscanf(run.output, "%d-%*d-%*dT%d:%*d:%*d.%3d [0] one\n%n",
                            &year, &hour, &milli, &used),
                     3);
    assert_true(used > 0 && year > 2000);
    assert_has(run.output + used, " [0] two\n");
    assert_has(run.errors, " [0] three\n");
    assert_true(run.errors[0] == '2');
    run_free(&run);
}

static void test_programs(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-genv", "A", "g", "-n", "2", "-env", "A", "a", "-wdir", "/",
        "sh", "-c", "echo $RANK $A $PWD $WORLD_SIZE", ":", "-n", "1", "-path",
        "/nowhere:/bin", "sh", "-c", "echo $RANK $A $LOCAL_RANK");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "0 a / 3\n");
    assert_has(run.output, "1 a / 3\n");
    assert_has(run.output, "2 g 2\n");
    assert_int_equal(count_lines(run.output), 3);
    run_free(&run);
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),     cmocka_unit_test(test_interleaved),
        cmocka_unit_test(test_no_newline),  cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_slow_reader), cmocka_unit_test(test_dead_reader),
        cmocka_unit_test(test_input),       cmocka_unit_test(test_closed_files),
        cmocka_unit_test(test_full_disks),  cmocka_unit_test(test_same_file),
        cmocka_unit_test(test_terminal),    cmocka_unit_test(test_programs),
        cmocka_unit_test(test_prompt),      cmocka_unit_test(test_timestamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
