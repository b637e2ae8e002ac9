/* test_launch_disk.c - output to files on a disk that hangs, is full, or
 * cannot be opened: the launcher's loop goes on, and nothing else is lost.
 * Links with --wrap=quiet_write_all. */
#include "../unit.h"

#include "../../../src/launch/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

int __real_quiet_write_all(int fd, const void *bytes, size_t size);
int __wrap_quiet_write_all(int fd, const void *bytes, size_t size);

static struct ev_loop *loop;
static pthread_t looping;
static atomic_bool hangs;
static bool on_loop;
static int failure;
static sem_t begun, go;
static struct sink shared;
static char folder[] = "/tmp/pccl_launch_disk_XXXXXX";
static char all[sizeof folder + 8], one[sizeof folder + 8];

int __wrap_quiet_write_all(int fd, const void *bytes, size_t size)
{
    if (pthread_equal(pthread_self(), looping)) on_loop = true;
    bool hang = hangs; /* read once: then the test goes on */
    if (hang) sem_post(&begun);
    if (hang && !on_loop) sem_wait(&go);
    return failure ? failure : __real_quiet_write_all(fd, bytes, size);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return 1;
    (void)snprintf(all, sizeof all, "%s/all", folder);
    (void)snprintf(one, sizeof one, "%s/one", folder);
    int fd = open(all, O_WRONLY | O_CREAT | O_APPEND, 0600);
    loop = ev_loop_new(0);
    looping = pthread_self();
    bool good = fd >= 0 && loop && sem_init(&begun, 0, 0) == 0 &&
                sem_init(&go, 0, 0) == 0 && sink_open(&shared, loop, fd);
    close(fd);
    return good ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    sink_close(&shared);
    ev_loop_destroy(loop);
    unlink(all);
    unlink(one);
    return rmdir(folder);
}

static void assert_content(const char *path, const char *text)
{
    char found[256] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, found, sizeof found - 1) >= 0);
    close(fd);
    assert_string_equal(found, text);
}

static void until_empty(void)
{
    while (!sink_is_empty(&shared)) ev_run(loop, EVRUN_ONCE);
    assert_false(on_loop);
}

static void test_a_disk_that_hangs(void **state)
{
    (void)state;
    assert_false(on_loop);
    hangs = true;
    sink_message(&shared, "one");
    sem_wait(&begun);
    /* The thread hangs. All this is done meanwhile. */
    sink_message(&shared, "two");
    ev_run(loop, EVRUN_NOWAIT);
    sink_message(&shared, "three");
    assert_false(sink_is_empty(&shared));
    assert_content(all, "");
    hangs = false;
    sem_post(&go);
    until_empty();
    assert_content(all, "one\ntwo\nthree\n");
}

/* A stream that ends before its file has all. More than there is room for waits
 * with the rank. */
static void test_a_file_that_hangs(void **state)
{
    (void)state;
    assert_false(on_loop);
    const struct stream_name name = {.label = "[0] ", .files = {one, one}};
    static struct stream stream;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    hangs = true;
    stream_open(&stream, &shared, ends[0], &name, false);
    assert_int_equal(write(ends[1], "a\n", 2), 2);
    while (stream.sink->begin == stream.sink->end) ev_run(loop, EVRUN_ONCE);
    sem_wait(&begun);
    assert_int_equal(write(ends[1], "b\nc", 3), 3);
    close(ends[1]);
    while (stream_is_open(&stream)) ev_run(loop, EVRUN_ONCE);
    assert_null(stream.sink);
    assert_false(sink_is_empty(&shared));
    hangs = false;
    sem_post(&go);
    until_empty();
    assert_content(one, "a\nb\nc");
}

static void test_room(void **state)
{
    (void)state;
    assert_false(on_loop);
    static char line[LINE_SIZE];
    const struct stream_name name = {.files = {one, one}};
    static struct stream stream;
    memset(line, 'x', sizeof line);
    hangs = true;
    assert_int_equal(truncate(one, 0), 0);
    stream_open(&stream, &shared, -1, &name, false);
    uint32_t lines = 0;
    while (stream_offer(&stream, line, sizeof line - 1)) lines++;
    assert_true(lines > 0 && lines < 10);
    sem_wait(&begun);
    hangs = false;
    sem_post(&go);
    until_empty();
    assert_true(stream_offer(&stream, line, sizeof line - 1));
    lines++;
    stream_close(&stream);
    until_empty();
    int fd = open(one, O_RDONLY);
    assert_int_equal(lseek(fd, 0, SEEK_END), lines * (sizeof line - 1));
    close(fd);
}

/* The last words of a rank find no room, and come when there is some. */
static void test_last_words(void **state)
{
    (void)state;
    assert_false(on_loop);
    static char line[LINE_SIZE];
    static struct stream filler, stream;
    int ends[2];
    memset(line, 'x', sizeof line);
    hangs = true;
    assert_int_equal(truncate(all, 0), 0);
    assert_int_equal(pipe(ends), 0);
    stream_open(&filler, &shared, -1, NULL, false);
    stream_open(&stream, &shared, ends[0], NULL, false);
    assert_true(stream_offer(&filler, "a\n", 2)); /* written first, alone */
    uint32_t lines = 0;
    while (stream_offer(&filler, line, sizeof line - 1)) lines++;
    sem_wait(&begun);
    assert_int_equal(write(ends[1], "end", 3), 3);
    close(ends[1]);
    while (!stream.waiter.waiting) ev_run(loop, EVRUN_ONCE);
    hangs = false;
    sem_post(&go);
    while (stream_is_open(&stream)) ev_run(loop, EVRUN_ONCE);
    assert_true(shared.file.busy);
    until_empty();
    stream_close(&filler);
    int fd = open(all, O_RDONLY);
    assert_int_equal(lseek(fd, 0, SEEK_END), 2 + lines * (sizeof line - 1) + 3);
    close(fd);
}

/* The rank is not told, and the job's status will be. */
static void test_a_full_disk(void **state)
{
    (void)state;
    assert_false(on_loop);
    const struct stream_name name = {.files = {one, one}};
    static struct stream stream;
    failure = ENOSPC;
    stream_open(&stream, &shared, -1, &name, true);
    assert_true(stream_offer(&stream, "a\n", 2));
    while (!shared.broken) ev_run(loop, EVRUN_ONCE);
    assert_int_equal(shared.error, ENOSPC);
    assert_false(sink_has_no_reader(&shared));
    for (int i = 0; i < 1000; i++)
        assert_true(stream_offer(&stream, "bbbbbbbbbbbbbbbbb\n", 18));
    stream_close(&stream);
    assert_int_equal(shared.files, 0);
    until_empty();
    failure = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_disk_that_hangs),
        cmocka_unit_test(test_a_file_that_hangs),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_a_full_disk),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
