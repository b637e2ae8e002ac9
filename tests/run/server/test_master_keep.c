/* test_master_keep.c - tests of a coordinator with a journal: a full disk, and
 * a new coordinator (rules J1, J3, J4). */
#include "fake_peer.h"

#include "../../../src/master/succession/memory.h"
#include "../../patience.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Ticks are short, and nobody is judged for a while. */
#define DEADLINE (10 * PCCL_S)

static char folder[32], path[64];

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pccl-keep-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/journal", folder);
    return 0;
}

static int teardown(void **state)
{
    char lock[80];
    (void)state;
    snprintf(lock, sizeof lock, "%s.lock", path);
    unlink(lock);
    unlink(path);
    return rmdir(folder); /* fails if anything else is there */
}

static void test_a_new_coordinator_goes_on(void **state)
{
    (void)state;
    struct bench b;
    struct peer p[2];
    uint64_t first = 0;
    for (uint32_t life = 0; life < 3; life++) {
        bench_open_journal(&b, path, 2, DEADLINE);
        peers_found(p, 2, &b);
        assert_true(p[0].id > first);
        assert_in_range(p[0].round, life * MEMORY_ROUNDS_SKIPPED + 1,
                        life * MEMORY_ROUNDS_SKIPPED + life + 1);
        first = p[1].id;
        for (int i = 0; i < 2; i++) peer_close(&p[i]);
        bench_close(&b);
    }
}

static void limit_files(rlim_t size)
{
    struct rlimit limit = {size, RLIM_INFINITY};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* No room for any file: no view, a line, and then the view. */
static void test_a_full_disk(void **state)
{
    (void)state;
    struct bench b;
    struct peer p;
    signal(SIGXFSZ, SIG_IGN);
    bench_open_journal(&b, path, 1, DEADLINE);
    peer_open(&p, &b);
    peer_hello(&p, 0, false);
    peer_expect(&p, WIRE_WELCOME);
    peer_expect(&p, WIRE_PROPOSE);
    limit_files(0);
    peer_say(&p, WIRE_READY);
    bench_expect_line(&b,
                      "members neither come nor go until it can be written");
    assert_non_null(strstr(b.lines[0], "cannot be written: File too large"));
    assert_int_equal(master_server_members(b.server), 0);
    limit_files(RLIM_INFINITY);
    bench_expect_line(&b, "is written again");
    peer_expect(&p, WIRE_INSTALL);
    assert_int_equal(master_server_members(b.server), 1);
    peer_close(&p);
    bench_close(&b);
}

/* A call to the disk that hangs until the test lets it go. */
static atomic_int hangs;
static int gate[2];

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    char byte;
    int armed = 1;
    if (atomic_compare_exchange_strong(&hangs, &armed, 0))
        (void)!read(gate[0], &byte, 1);
    return __real_fsync(fd);
}

/* The coordinator hears others meanwhile, and nothing follows from a record
 * that is not on the disk. */
static void test_a_disk_that_hangs(void **state)
{
    (void)state;
    struct bench b;
    struct peer p, other;
    assert_int_equal(pipe(gate), 0);
    bench_open_journal(&b, path, 1, DEADLINE);
    peer_open(&p, &b);
    peer_hello(&p, 0, false);
    peer_expect(&p, WIRE_WELCOME);
    peer_expect(&p, WIRE_PROPOSE);
    atomic_store(&hangs, 1);
    peer_say(&p, WIRE_READY);
    bench_expect_line(&b, "the disk does not answer; members neither come nor "
                          "go until it does");
    peer_open(&other, &b);
    peer_hello(&other, 0, false);
    peer_expect(&other, WIRE_WELCOME);
    assert_int_equal(master_server_members(b.server), 0);
    assert_int_equal(write(gate[1], "", 1), 1);
    bench_expect_line(&b, "is written again");
    peer_expect(&p, WIRE_INSTALL);
    peer_close(&other);
    peer_close(&p);
    bench_close(&b);
    close(gate[0]);
    close(gate[1]);
}

static void test_what_is_no_journal(void **state)
{
    (void)state;
    char error[512] = "";
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs("something else, of some length, and nothing to be overwritten\n", f);
    fclose(f);
    int before = open_descriptors();
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct master_server_options o = {
        .loop = loop, .host = "127.0.0.1", .journal = path};
    assert_null(master_server_open(&o, error, sizeof error));
    assert_string_equal(error,
                        "journal journal is not a journal of pccl-master");
    ev_loop_destroy(loop);
    assert_int_equal(open_descriptors(), before);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_new_coordinator_goes_on),
        TEST(test_a_full_disk),
        TEST(test_a_disk_that_hangs),
        TEST(test_what_is_no_journal),
    };
    return cmocka_run_group_tests_name("server/keep", tests, NULL, NULL);
}
