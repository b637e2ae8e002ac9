/* test_pace.c - all members have called: their data move as they did, slower,
 * or not at all (rule W4): one master, two members. */
#include "founded.h"

#include "../../../src/master/watch/stall.h"

#define DEADLINE (10 * PCCL_S)
#define BEAT PCCL_TIME_TO_PING(DEADLINE)

static void on_note(void *user, const struct master_note *n)
{
    (void)user, (void)n;
}

static int setup(void **state)
{
    (void)state;
    struct master_config c = {
        .out = {.note = on_note}, .deadline = DEADLINE, .quorum = 2};
    return found(&c);
}

/* Both wait in the same operation, after the time has passed. */
static void report(pccl_ns after, uint32_t seq, uint64_t moved)
{
    struct wire_wait wait = {.kind = WAIT_COLLECTIVE,
                             .blocks = true,
                             .seq = seq,
                             .moved = moved,
                             .age_ms = 5000};
    struct wire_msg m = {.type = WIRE_WAITING,
                         .epoch = master->groups[0].epoch,
                         .waits = &wait,
                         .wait_count = 1};
    now += after;
    for (uint32_t i = 0; i < 2; i++) step(MASTER_RECEIVED, i, &m);
}

static void expect_stall(enum stall_cause cause, uint64_t rate)
{
    struct stall s[4];
    assert_int_equal(stall_find(master, BEAT, s, 4), 1);
    assert_int_equal(s[0].object, STALL_OPERATION);
    assert_int_equal(s[0].cause, cause);
    assert_int_equal(s[0].rate, rate);
    assert_int_equal(s[0].waiter_count, 2);
}

static void test_pace(void **state)
{
    (void)state;
    const uint64_t much = 8000000;
    report(BEAT, 0, 0);
    report(BEAT, 0, much);
    expect_stall(CAUSE_MOVES, much);
    report(BEAT, 0, much + much / 2);
    expect_stall(CAUSE_MOVES, much / 2);
    report(BEAT, 0, much + much / 2 + much / 8);
    expect_stall(CAUSE_SLOW, much / 8);
    char text[STALL_TEXT_MAX];
    struct stall s[4];
    assert_int_equal(stall_find(master, BEAT, s, 4), 1);
    stall_print(master, &s[0], text);
    assert_non_null(strstr(text, "data move at 1.000 MB/s, slower than the "
                                 "8.000 MB/s that they did"));
    report(BEAT, 0, much + much / 2 + much / 8);
    expect_stall(CAUSE_NO_DATA, 0);
}

/* A rate outlives its operation. */
static void test_next_operation(void **state)
{
    (void)state;
    report(BEAT, 0, 0);
    report(BEAT, 0, 4000);
    report(BEAT, 1, 0);
    report(BEAT, 1, 999);
    expect_stall(CAUSE_SLOW, 999);
}

/* Reports that come close to each other are one. */
static void test_answer(void **state)
{
    (void)state;
    report(BEAT, 0, 0);
    report(BEAT, 0, 4000);
    report(1, 0, 4000);
    expect_stall(CAUSE_MOVES, 4000);
    report(BEAT / 4, 0, 4000);
    expect_stall(CAUSE_MOVES, 4000);
    report(BEAT - BEAT / 4 - 1, 0, 8000);
    expect_stall(CAUSE_MOVES, 4000);
}

/* What a report says may be anything. */
static void test_nonsense(void **state)
{
    (void)state;
    report(BEAT, 0, UINT64_MAX);
    report(BEAT, 0, 0);
    expect_stall(CAUSE_NO_DATA, 0);
    report(BEAT, 0, UINT64_MAX);
    expect_stall(CAUSE_MOVES, 1000000000000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_operation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
