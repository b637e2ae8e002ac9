/* test_trace_clock.c - tests how pccl-trace finds the difference of clocks:
 * hosts whose clocks are seconds apart and drift, operations between them that
 * take as long as a network and slow members make them take. */
#include "../../../src/trace/trace_clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS = 3, OPERATIONS = 2000 };

#define MS INT64_C(1000000)

static uint64_t seed = 7;

static int64_t random_below(int64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % limit;
}

/* What the clock of a host shows: that of host 0 is true. */
static int64_t shown(int host, int64_t at)
{
    static const int64_t offsets[HOSTS] = {0, 7123 * MS, -98765 * MS};
    static const int64_t drifts[HOSTS] = {0, 40, -25}; /* in 10^-6 */
    return at + offsets[host] + at / 1000000 * drifts[host];
}

/* Members call up to 20 ms after each other; the result is everywhere 1 to 2 ms
 * after the last one has called. `spacing`: between two operations. */
static void run(struct clocks *c, const int *clocks, int64_t spacing)
{
    for (int i = 0; i < OPERATIONS; i++) {
        char name[32];
        int64_t begun[HOSTS], latest = 0;
        int size = snprintf(name, sizeof name, "0.1.0.5.%d", i);
        for (int h = 0; h < HOSTS; h++) {
            begun[h] = i * spacing + random_below(20 * MS);
            if (begun[h] > latest) latest = begun[h];
        }
        for (int h = 0; h < HOSTS; h++) {
            int64_t ended = latest + MS + random_below(MS);
            assert_true(clocks_tell(c, clocks[h], name, (size_t)size,
                                    shown(h, begun[h]), shown(h, ended)));
        }
    }
}

static void check(int64_t spacing, int64_t within)
{
    struct clocks *c = clocks_new();
    int clocks[HOSTS];
    for (int h = 0; h < HOSTS; h++) {
        char name[16];
        (void)snprintf(name, sizeof name, "boot %d", h);
        clocks[h] = clocks_add(c, name, random_below(1000 * MS));
        assert_int_equal(clocks[h], h);
        assert_int_equal(clocks_add(c, name, 0), h);
    }
    run(c, clocks, spacing);
    assert_true(clocks_align(c, clocks[0]));
    int64_t end = OPERATIONS * spacing;
    for (int64_t at = 0; at <= end; at += end / 100) {
        for (int h = 0; h < HOSTS; h++) {
            int64_t error = clocks_move(c, clocks[h], shown(h, at)) - at;
            if (error < -within || error > within)
                fail_msg("host %d at %lld ms is %lld us off", h,
                         (long long)(at / MS), (long long)(error / 1000));
        }
    }
    for (int h = 1; h < HOSTS; h++) {
        struct clock_report r = clocks_report(c, clocks[h]);
        assert_int_equal(r.operations, OPERATIONS);
        assert_true(r.within < within);
    }
    clocks_free(c);
}

/* The network needs 2 ms at most there and back. */
static void test_short(void **state)
{
    (void)state;
    check(25 * MS, 2 * MS);
}

/* An hour, in which the clocks drift apart by 144 ms and 90 ms. */
static void test_drift(void **state)
{
    (void)state;
    check(1800 * MS, 6 * MS);
}

static void test_no_operation(void **state)
{
    (void)state;
    struct clocks *c = clocks_new();
    int a = clocks_add(c, "a", 1000), b = clocks_add(c, "b", 400);
    assert_true(clocks_align(c, a));
    assert_int_equal(clocks_move(c, b, 5000), 5000 - 600);
    assert_int_equal(clocks_move(c, a, 5000), 5000);
    assert_int_equal(clocks_report(c, b).operations, 0);
    clocks_free(c);
}

/* c has operations with b only, and b with a. */
static void test_chain(void **state)
{
    (void)state;
    struct clocks *c = clocks_new();
    int a = clocks_add(c, "a", 0), x = clocks_add(c, "c", 0),
        b = clocks_add(c, "b", 0);
    assert_true(clocks_tell(c, a, "1", 1, 1000, 1100));
    assert_true(clocks_tell(c, b, "1", 1, 5000, 5100));
    assert_true(clocks_tell(c, b, "2", 1, 6000, 6100));
    assert_true(clocks_tell(c, x, "2", 1, 100, 200));
    assert_true(clocks_align(c, a));
    assert_int_equal(clocks_move(c, b, 5000), 1000);
    assert_int_equal(clocks_move(c, x, 100), 2000);
    clocks_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_no_operation),
        cmocka_unit_test(test_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
