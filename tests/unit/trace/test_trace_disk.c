/* test_trace_disk.c - a trace on a disk that is full at any byte: it ends
 * there, for good, and the program hears no signal. */
#include "../../../src/peer/timeline.h"
#include "../unit.h"

#include <fcntl.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_at_any_byte),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
