/* test_trace_disk.c - a trace on a disk that is full at any byte, or fails at
 * any write: it ends there, for good, says so once, and the program hears no
 * signal. While the disk hangs nobody waits for it, and events are lost. */
#include "../../../src/peer/timeline.h"
#include "../base/test_disk.h"
#include "../unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 20, LIMIT = 100 * 1000 * 1000 };

static char folder[] = "/tmp/pccl_trace_XXXXXX";
static char path[sizeof folder + 32];

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return 1;
    (void)snprintf(path, sizeof path, "%s/trace.%%r", folder);
    if (setenv("PCCL_TRACE", path, 1) != 0) return 1;
    (void)snprintf(path, sizeof path, "%s/trace.0", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static void limit(rlim_t size)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_FSIZE, &files) != 0) _exit(1);
    files.rlim_cur = size;
    if (setrlimit(RLIMIT_FSIZE, &files) != 0) _exit(2);
}

static void put_some(void)
{
    struct trace_event e = {.at = PCCL_S, .phase = 'i', .category = TRACE_VIEW};
    trace_set_name(&e, "an event");
    for (int i = 0; i < EVENTS && trace_is_on(); i++) (void)trace_put(&e);
    trace_flush();
}

static off_t size_now(void)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : -1;
}

/* The size of the file when there was room for so many bytes, and room again
 * later on. */
static off_t run(rlim_t room)
{
    int status;
    (void)unlink(path);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        limit(room);
        if (trace_open(0) != NULL) _exit(3);
        put_some();
        put_some();
        off_t then = size_now();
        limit(LIMIT);
        put_some();
        bool ended = !trace_is_on();
        if (ended && size_now() != then) _exit(4);
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return size_now();
}

static void test_full_at_any_byte(void **state)
{
    (void)state;
    off_t whole = run(LIMIT);
    assert_in_range(whole, 1000, LIMIT);
    for (rlim_t room = 0; (off_t)room < whole / 2; room += 37)
        assert_int_equal(run(room), room);
}

/* How a child ends, which is asked to put events. */
static void in_child(void (*body)(void))
{
    int status;
    (void)unlink(path);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        body();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void put_failing(void)
{
    char line[256];
    int said = 0;
    if (trace_open(0) != NULL) _exit(3);
    for (int i = 0; i < EVENTS; i++) {
        put_some();
        if (!trace_trouble(line, sizeof line)) continue;
        if (!strstr(line, "the trace ends here: ") ||
            !strstr(line, strerror(test_disk.error)))
            _exit(4);
        said++;
    }
    if (trace_is_on() || said != 1) _exit(5);
}

static void test_fails_at_every_write(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EROFS, EDQUOT, ENOENT, ESTALE};
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        test_disk.error = errors[e];
        for (int i = 0; i < 2 * EVENTS / 3; i++) {
            test_disk.fails = i;
            test_disk.part = (size_t)(i % 2) * 20; /* a short write */
            in_child(put_failing);
        }
    }
    test_disk.fails = -1;
}

/* Many more events than a ring has. */
static void put_hung(void)
{
    struct trace_event e = {.at = PCCL_S, .phase = 'i', .category = TRACE_VIEW};
    char line[256];
    trace_set_name(&e, "an event");
    if (trace_open(0) != NULL) _exit(3);
    put_some();
    test_disk_await_hang();
    for (int i = 0; i < 50000; i++) (void)trace_put(&e);
    if (!trace_is_on() || trace_trouble(line, sizeof line)) _exit(4);
    pid_t child = fork(); /* which waits for no lock of ours */
    if (child == 0) _exit(0);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(5);
    test_disk_let_go();
    test_disk.hangs = -1;
    trace_flush();
    if (!trace_trouble(line, sizeof line)) _exit(6);
    if (!strstr(line, " events are lost: the disk is slow")) _exit(7);
    if (trace_trouble(line, sizeof line)) _exit(8);
}

static void test_hangs(void **state)
{
    (void)state;
    char text[8];
    test_disk.hangs = 1;
    in_child(put_hung);
    test_disk.hangs = -1;
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    assert_int_equal(fseek(in, -2, SEEK_END), 0);
    assert_non_null(fgets(text, sizeof text, in));
    assert_string_equal(text, "]\n"); /* it is whole */
    (void)fclose(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_at_any_byte),
        cmocka_unit_test(test_fails_at_every_write),
        cmocka_unit_test(test_hangs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
