/* test_channel.c - queues in memory that two processes share, and the memory
 * itself: order and completeness across a real process, partners with false
 * indices, and offers with false descriptions. */
#include "../unit.h"

#include "../../../src/link/shared_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 16 * 1024, TOTAL = 3 * 1000 * 1000 };

static struct shared_memory maker, opener;

static int setup(void **state)
{
    struct channel_offer offer;
    (void)state;
    if (!shared_memory_make(&maker, SIZE, &offer)) return 1;
    return shared_memory_open(&opener, &offer) ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    shared_memory_free(&maker);
    shared_memory_free(&opener);
    return 0;
}

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at * 7 + at / 1000);
}

static size_t write_some(struct channel *c, size_t at, size_t most)
{
    uint8_t *to;
    size_t size = channel_room(c, &to);
    if (size > most) size = most;
    for (size_t i = 0; i < size; i++) to[i] = pattern(at + i);
    if (size > 0) channel_write(c, size);
    return size;
}

/* False: the bytes read are not the bytes written. */
static bool read_some(struct channel *c, size_t *at, size_t most)
{
    const uint8_t *from;
    size_t size = channel_ready(c, &from);
    if (size > most) size = most;
    for (size_t i = 0; i < size; i++) {
        if (from[i] != pattern(*at + i)) return false;
    }
    if (size > 0) channel_read(c, size);
    *at += size;
    return true;
}

/* Pieces of odd sizes cross the end of the queue. */
static void test_order(void **state)
{
    (void)state;
    size_t written = 0;
    size_t read = 0;
    while (read < TOTAL) {
        size_t left = TOTAL - written;
        written += write_some(&maker.channel, written,
                              left < 7001 ? left : 1 + written % 7001);
        assert_true(read_some(&opener.channel, &read, 1 + read % 9001));
        assert_true(read <= written);
    }
    assert_false(maker.channel.broken || opener.channel.broken);
}

/* The queue never takes more than fits, and the room comes back. */
static void test_full(void **state)
{
    (void)state;
    uint8_t *to;
    size_t read = 0;
    assert_int_equal(write_some(&opener.channel, 0, SIZE * 2), SIZE);
    assert_int_equal(channel_room(&opener.channel, &to), 0);
    assert_true(read_some(&maker.channel, &read, 100));
    assert_int_equal(read, 100);
    assert_int_equal(channel_room(&opener.channel, &to), 100);
}

/* Small portions stay at the start of the queue. While there are bytes to
 * read, writing goes on behind them. A partner's base cannot lead outside the
 * queue. */
static void test_begins_anew(void **state)
{
    (void)state;
    struct channel *c = &maker.channel;
    uint8_t *to = c->out;
    const uint8_t *from = NULL;
    size_t written = 0;
    size_t read = 0;
    while (written < TOTAL) {
        written += write_some(c, written, 1000);
        assert_true(read_some(&opener.channel, &read, SIZE));
        assert_true(read == written && channel_room(c, &to) > 0);
        assert_true(to < c->out + CHANNEL_REWIND);
    }
    while (to < c->out + CHANNEL_REWIND) {
        written += write_some(c, written, 1000);
        assert_true(channel_room(c, &to) > 0);
    }
    uint8_t *next = to;
    assert_true(channel_room(c, &to) < SIZE && to == next);
    assert_true(read_some(&opener.channel, &read, SIZE));
    assert_true(read == written);
    assert_int_equal(channel_room(c, &to), SIZE);
    assert_ptr_equal(to, c->out);
    (void)write_some(c, written, 1000);
    atomic_store(&c->own->base, UINT64_MAX / 3);
    assert_int_equal(channel_ready(&opener.channel, &from), 1000);
    assert_true(from >= opener.channel.in && from < opener.channel.in + SIZE);
}

static int child(const struct channel_offer *offer)
{
    struct shared_memory s;
    size_t done = 0;
    size_t read = 0;
    if (!shared_memory_open(&s, offer)) return 1;
    while (read < TOTAL || done < TOTAL) {
        if (!read_some(&s.channel, &read, SIZE)) return 2;
        done += write_some(&s.channel, done, TOTAL - done);
    }
    return 0;
}

static void test_across_processes(void **state)
{
    (void)state;
    struct shared_memory s;
    struct channel_offer offer;
    size_t done = 0;
    size_t read = 0;
    int status = -1;
    assert_true(shared_memory_make(&s, SIZE, &offer));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child(&offer));
    while (read < TOTAL || done < TOTAL) {
        done += write_some(&s.channel, done, TOTAL - done);
        assert_true(read_some(&s.channel, &read, SIZE));
        if (read < TOTAL) assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    shared_memory_free(&s);
}

/* A sleeping end is woken once, and only by the event that it sleeps for. */
static void test_sleep(void **state)
{
    (void)state;
    assert_false(channel_ring(&maker.channel, CHANNEL_WANTS_DATA));
    assert_false(channel_arm(&opener.channel, CHANNEL_WANTS_DATA));
    assert_false(channel_ring(&maker.channel, CHANNEL_WANTS_ROOM));
    assert_true(channel_ring(&maker.channel, CHANNEL_WANTS_DATA));
    assert_false(channel_ring(&maker.channel, CHANNEL_WANTS_DATA));
    assert_true(channel_arm(&opener.channel, CHANNEL_WANTS_ROOM));
    channel_disarm(&opener.channel);
    assert_false(channel_ring(&maker.channel, CHANNEL_WANTS_ROOM));
}

/* An end that arms its doorbell finds the bytes that are there already. */
static void test_arm_looks(void **state)
{
    (void)state;
    size_t read = 0;
    enum { BOTH = CHANNEL_WANTS_DATA | CHANNEL_WANTS_ROOM };
    assert_int_equal(write_some(&maker.channel, 0, SIZE), SIZE);
    assert_false(channel_arm(&maker.channel, BOTH));
    assert_true(channel_arm(&opener.channel, CHANNEL_WANTS_DATA));
    assert_true(read_some(&opener.channel, &read, 1));
    assert_true(channel_arm(&maker.channel, CHANNEL_WANTS_ROOM));
    assert_false(channel_arm(&maker.channel, CHANNEL_WANTS_DATA));
    assert_true(read_some(&opener.channel, &read, SIZE));
    assert_false(channel_arm(&opener.channel, CHANNEL_WANTS_DATA));
}

/* Impossible indices: nothing is read or written outside the queue. */
static void test_lies(void **state)
{
    (void)state;
    static const uint64_t lies[] = {SIZE + 1, 1 << 20, UINT64_MAX,
                                    (uint64_t)1 << 63, UINT64_MAX - 99};
    uint8_t *to;
    const uint8_t *from;
    for (size_t i = 0; i < ARRAY_COUNT(lies); i++) {
        assert_int_equal(setup(NULL), 0);
        atomic_store(&opener.channel.own->written, lies[i]);
        assert_int_equal(channel_ready(&maker.channel, &from), 0);
        assert_true(maker.channel.broken);
        assert_int_equal(write_some(&maker.channel, 0, SIZE), SIZE);
        atomic_store(&opener.channel.own->read, lies[i]);
        maker.channel.broken = false;
        assert_int_equal(channel_room(&maker.channel, &to), 0);
        assert_true(maker.channel.broken);
        (void)teardown(NULL);
    }
    /* Backwards. */
    assert_int_equal(setup(NULL), 0);
    size_t read = 0;
    assert_int_equal(write_some(&opener.channel, 0, 100), 100);
    assert_true(read_some(&maker.channel, &read, 100));
    atomic_store(&opener.channel.own->written, 50);
    assert_int_equal(channel_ready(&maker.channel, &from), 0);
    assert_true(maker.channel.broken);
}

static void test_offers(void **state)
{
    (void)state;
    struct shared_memory s, other;
    struct channel_offer offer;
    assert_true(shared_memory_make(&s, SIZE, &offer));
    struct channel_offer wrong = offer;
    wrong.nonce ^= 1;
    assert_false(shared_memory_open(&other, &wrong));
    wrong = offer;
    wrong.size = 2 * SIZE;
    assert_false(shared_memory_open(&other, &wrong));
    wrong.size = SIZE - 1;
    assert_false(shared_memory_open(&other, &wrong));
    wrong = offer;
    wrong.fd = 0xffffffff;
    assert_false(shared_memory_open(&other, &wrong));
    wrong = offer;
    wrong.pid = 0;
    assert_false(shared_memory_open(&other, &wrong));
    assert_int_equal(ftruncate(s.fd, 0), -1); /* sealed */
    /* The same size, but its owner could truncate it while it is mapped. */
    int fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, CHANNEL_PAGE + 2 * SIZE), 0);
    wrong = offer;
    wrong.fd = (uint32_t)fd;
    assert_false(shared_memory_open(&other, &wrong));
    close(fd);
    shared_memory_settle(&s);
    assert_false(shared_memory_open(&other, &offer));
    shared_memory_free(&s);
}

/* Root may open the memory of any user, and takes none but its own. */
static void test_memory_of_others(void **state)
{
    (void)state;
    enum { STRANGER = 54321, AREA = 64 * 1024 };
    struct shared_memory s, other;
    struct shared_region own, view;
    struct channel_offer offer;
    struct stat st;
    assert_true(shared_memory_make(&s, SIZE, &offer));
    assert_int_equal(fstat(s.fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_nlink, 0);
    shared_memory_free(&s);
    assert_true(shared_memory_is_own((uint32_t)getpid()));
    assert_false(shared_memory_is_own(0));
    if (geteuid() != 0) skip();
    (void)setfsuid(STRANGER); /* the kernel notes it for new memory */
    bool made = shared_memory_make(&s, SIZE, &offer);
    bool lent = shared_region_make(&own, AREA);
    (void)setfsuid(0);
    assert_true(made && lent);
    assert_false(shared_memory_open(&other, &offer));
    assert_false(shared_region_open(&view, &own.offer));
    shared_memory_free(&s);
    shared_region_free(&own);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (setuid(STRANGER) == 0) (void)kill(getpid(), SIGSTOP);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_false(shared_memory_is_own((uint32_t)pid)); /* /proc says root */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* A region: other members read it, and accept it only if it matches the
 * offer. */
static void test_area(void **state)
{
    (void)state;
    enum { AREA = 64 * 1024, AT = 5000 };
    struct shared_region own, other;
    assert_true(shared_region_make(&own, AREA));
    own.memory[AT] = 7;
    assert_true(shared_region_open(&other, &own.offer));
    assert_int_equal(other.memory[AT], 7);
    int status = -1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { /* it opens its own view, which it cannot write to */
        struct shared_region view;
        if (!shared_region_open(&view, &own.offer)) _exit(1);
        (void)signal(SIGSEGV, SIG_DFL);
        view.memory[AT] = 8;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(WIFEXITED(status));
    assert_int_equal(own.memory[AT], 7);
    shared_region_free(&other);
    assert_int_equal(ftruncate(own.fd, 0), -1); /* sealed */
    struct channel_offer wrong = own.offer;
    wrong.nonce ^= 1;
    assert_false(shared_region_open(&other, &wrong));
    wrong = own.offer;
    wrong.size = 2 * AREA;
    assert_false(shared_region_open(&other, &wrong));
    wrong.size = 0;
    assert_false(shared_region_open(&other, &wrong));
    wrong = own.offer;
    wrong.fd = 0xffffffff;
    assert_false(shared_region_open(&other, &wrong));
    /* The same size, but its owner could truncate it while it is mapped. */
    int fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, AREA), 0);
    wrong.fd = (uint32_t)fd;
    assert_false(shared_region_open(&other, &wrong));
    close(fd);
    shared_region_free(&own);
}

/* Bytes that a descriptor's memory has taken. */
static uint64_t taken(uint32_t fd)
{
    struct stat st;
    assert_int_equal(fstat((int)fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/* Memory is there before anybody touches it, or it is not made. */
static void test_reserved(void **state)
{
    enum { AREA = 64 * 1024 };
    (void)state;
    struct shared_region own;
    struct shared_memory s;
    struct channel_offer offer;
    assert_true(shared_memory_make(&s, SIZE, &offer));
    assert_true(taken(offer.fd) < 2 * SIZE);
    shared_memory_free(&s);
    shared_memory_reserve(true);
    assert_true(shared_memory_make(&s, SIZE, &offer));
    assert_true(taken(offer.fd) >= CHANNEL_PAGE + 2 * SIZE);
    assert_true(shared_region_make(&own, AREA));
    assert_true(taken(own.offer.fd) >= AREA);
    shared_memory_reserve(false);
    shared_region_free(&own);
    shared_memory_free(&s);
}

/* Under a limit of file sizes no shared memory is made, and no signal comes. */
static void test_limit(void **state)
{
    (void)state;
    int status = -1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        enum { LIMIT = 64 * 1024 };
        struct rlimit limit = {LIMIT, LIMIT};
        struct shared_region fits, larger;
        struct shared_memory queues;
        struct channel_offer offer;
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
        if (!shared_region_make(&fits, LIMIT)) _exit(2);
        if (shared_region_make(&larger, LIMIT + 4096)) _exit(3);
        if (shared_memory_make(&queues, LIMIT, &offer)) _exit(4);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_begins_anew, setup, teardown),
        cmocka_unit_test(test_across_processes),
        cmocka_unit_test_setup_teardown(test_sleep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arm_looks, setup, teardown),
        cmocka_unit_test_teardown(test_lies, teardown),
        cmocka_unit_test(test_offers),
        cmocka_unit_test(test_memory_of_others),
        cmocka_unit_test(test_area),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
