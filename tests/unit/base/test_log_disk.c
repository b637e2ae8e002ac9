/* test_log_disk.c - a log on a disk that fails at any write, in any way, that
 * takes a part, or that hangs: the program goes on, lines that are lost are
 * counted, and said. Each case is a child: the log is opened once. */
#include "../../../src/base/log.h"
#include "../unit.h"
#include "test_disk.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 5, HUNG = 400 /* more than wait for the disk */ };

static char folder[] = "/tmp/pccl_log_disk_XXXXXX";
static char path[sizeof folder + 8];
static char text[1 << 20];

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return 1;
    (void)snprintf(path, sizeof path, "%s/log", folder);
    (void)setenv("PCCL_LOG_LEVEL", "INFO", 1);
    return setenv("PCCL_LOG_FILE", path, 1);
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void write_some(void)
{
    for (int i = 0; i < LINES; i++) LOG(LOG_INFO, "line %d.", i);
}

/* `stream` gets what the child says on stderr, `text` the file. */
static void run(void (*lines)(void), char said[512])
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (dup2(ends[1], STDERR_FILENO) < 0) _exit(1);
        lines();
        exit(0);
    }
    close(ends[1]);
    ssize_t size, used = 0;
    while ((size = read(ends[0], said + used, 511 - (size_t)used)) > 0)
        used += size;
    said[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    size_t count = fread(text, 1, sizeof text - 1, in);
    text[count] = '\0';
    fclose(in);
    unlink(path);
}

static bool has_line(int number)
{
    char want[32];
    (void)snprintf(want, sizeof want, "INFO: line %d.\n", number);
    return strstr(text, want) != NULL;
}

static void fails_at(int number, int error)
{
    char said[512], want[128];
    test_disk.fails = number;
    test_disk.error = error;
    run(write_some, said);
    for (int i = 0; i < LINES; i++) assert_int_equal(has_line(i), i != number);
    (void)snprintf(want, sizeof want, "cannot be written to %s: %s\n", path,
                   strerror(error));
    assert_non_null(strstr(said, want));
    assert_ptr_equal(strchr(said, '\n') + 1, said + strlen(said)); /* once */
    if (number + 1 == LINES) return; /* no line comes after it */
    (void)snprintf(want, sizeof want,
                   "WARN: 1 lines of the log were lost before this one: %s\n",
                   strerror(error));
    const char *lost = strstr(text, want);
    assert_non_null(lost);
    (void)snprintf(want, sizeof want, "INFO: line %d.\n", number + 1);
    assert_non_null(strstr(lost, want));
}

static void test_fails_at_every_write(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EROFS, EDQUOT, ENOENT, ESTALE};
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        for (int i = 0; i < LINES; i++) {
            test_disk.part = 0;
            fails_at(i, errors[e]);
            test_disk.part = 20; /* a short write */
            fails_at(i, errors[e]);
        }
    }
    test_disk.fails = -1;
}

/* More lines than wait, while the disk hangs: nobody waits with them. The disk
 * answers when all have been put. */
static void write_hung(void)
{
    LOG(LOG_INFO, "line 0.");
    char more[900];
    memset(more, 'x', sizeof more - 1);
    more[sizeof more - 1] = '\0';
    for (int i = 1; i < HUNG; i++) LOG(LOG_INFO, "line %d.\n%s", i, more);
    test_disk_await_hang();
    pid_t child = fork(); /* which waits for no lock of ours */
    if (child == 0) {
        LOG(LOG_INFO, "line of the child.");
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(4);
    test_disk_let_go();
}

/* The mount is gone, and stays so. */
static void test_vanishes(void **state)
{
    (void)state;
    char said[512];
    test_disk.for_good = true;
    test_disk.part = 0;
    for (int i = 0; i < LINES; i++) {
        test_disk.fails = i;
        test_disk.error = ESTALE;
        run(write_some, said);
        for (int k = 0; k < LINES; k++) assert_int_equal(has_line(k), k < i);
        assert_ptr_equal(strchr(said, '\n') + 1, said + strlen(said));
    }
    test_disk.for_good = false;
    test_disk.fails = -1;
}

static void test_hangs(void **state)
{
    (void)state;
    char said[512];
    test_disk.hangs = 0;
    run(write_hung, said);
    test_disk.hangs = -1;
    assert_true(has_line(0));
    assert_non_null(strstr(text, "line 1."));
    assert_null(strstr(text, "line 399."));
    assert_non_null(strstr(text, "line of the child."));
    assert_non_null(strstr(said, ": the disk was too slow\n"));
    assert_non_null(strstr(text, "lines of the log were lost before"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fails_at_every_write),
        cmocka_unit_test(test_vanishes),
        cmocka_unit_test(test_hangs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
