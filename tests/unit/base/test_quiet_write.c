/* test_quiet_write.c - a write to a pipe without a reader, or beyond a limit of
 * file sizes, fails and raises no signal; those of the program are as they
 * were. */
#include "../../../src/base/quiet_write.h"
#include "../unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void on_signal(int number)
{
    (void)number;
    came++;
}

/* A pipe that nobody reads. */
static int no_reader(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    return ends[1];
}

static int setup(void **state)
{
    (void)state;
    came = 0;
    signal(SIGPIPE, on_signal);
    signal(SIGXFSZ, on_signal);
    return 0;
}

static void test_no_reader(void **state)
{
    (void)state;
    int fd = no_reader();
    assert_int_equal(quiet_write(fd, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(quiet_write_all(fd, "xy", 2), EPIPE);
    assert_int_equal(came, 0);
    assert_int_equal(write(fd, "x", 1), -1); /* the program's own */
    assert_int_equal(came, 1);
    close(fd);
}

static void test_no_room(void **state)
{
    (void)state;
    int fd = memfd_create("file", 0);
    struct rlimit old, small;
    assert_true(fd >= 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){3, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(quiet_write_all(fd, "abcdef", 6), EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 3);
    assert_int_equal(quiet_write_all(fd, "def", 3), 0);
    assert_int_equal(came, 0);
    close(fd);
    assert_int_equal(quiet_write_all(fd, "x", 1), EBADF);
}

/* What the program has blocked stays blocked, and what is pending stays so. */
static void test_pending(void **state)
{
    (void)state;
    sigset_t pipe_only, mask;
    int fd = no_reader();
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipe_only, NULL), 0);
    assert_int_equal(quiet_write(fd, "x", 1), -1);
    assert_int_equal(sigpending(&mask), 0);
    assert_false(sigismember(&mask, SIGPIPE));
    assert_int_equal(raise(SIGPIPE), 0);
    assert_int_equal(quiet_write(fd, "x", 1), -1);
    assert_int_equal(sigpending(&mask), 0);
    assert_true(sigismember(&mask, SIGPIPE));
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &pipe_only, &mask), 0);
    assert_true(sigismember(&mask, SIGPIPE));
    assert_int_equal(came, 1);
    close(fd);
}

static void *reads_a_byte(void *fd)
{
    char byte;
    ssize_t n = read(*(int *)fd, &byte, 1);
    close(*(int *)fd);
    return (void *)(intptr_t)n;
}

/* Its reader goes in the middle: a part was written, and the signal comes. */
static void test_reader_leaves(void **state)
{
    (void)state;
    static char text[1 << 20]; /* more than a pipe holds */
    pthread_t reader;
    int ends[2];
    void *n;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pthread_create(&reader, NULL, reads_a_byte, ends), 0);
    ssize_t done = quiet_write(ends[1], text, sizeof text);
    assert_int_equal(pthread_join(reader, &n), 0);
    assert_int_equal((intptr_t)n, 1);
    assert_in_range(done, 1, sizeof text - 1);
    assert_int_equal(came, 0);
    close(ends[1]);
}

static void *writes(void *fd)
{
    for (int i = 0; i < 1000; i++) (void)quiet_write(*(int *)fd, "x", 1);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    int fd = no_reader();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, writes, &fd), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(came, 0);
    close(fd);
}

/* The text of the library, and what the program has printed before. */
static void test_print(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        int fd = no_reader();
        if (dup2(fd, STDERR_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
            _exit(1);
        printf("of the program");
        errno = EDOM;
        quiet_print("of the library %d\n", 1);
        if (errno != EDOM) _exit(2);
        quiet_flush();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_process(void **state)
{
    (void)state;
    int fd = no_reader();
    quiet_process();
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(came, 0);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(test_no_reader),     TEST(test_no_room), TEST(test_pending),
        TEST(test_reader_leaves), TEST(test_threads), TEST(test_print),
        TEST(test_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
