/* test_coverage_state.c - rounds of partial all-reduces that the state of a
 * member has, or has not, and for which of them it calls then: rule A14. */
#include "coverage_said.h"

/* A synchronization of all, in which member 2 gets the state of the others, and
 * with it the rounds that member 0 says. */
static void synchronize(uint64_t last)
{
    const uint64_t ids[] = {5, last};
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_msg m = {
            .type = WIRE_SYNC, .round = 1, .ids = ids, .id_count = 2};
        m.sync.content = i == 2 ? 8 : 7;
        step(MASTER_RECEIVED, i, &m);
    }
    struct wire_msg done = {.type = WIRE_SYNCED};
    done.sync.id = master->groups[0].sync_id;
    done.sync.role = SYNC_COMPLETE;
    step(MASTER_RECEIVED, 2, &done);
    assert_int_equal(master->groups[0].sync_id, 0);
}

static void test_a_round_of_the_state(void **state)
{
    (void)state;
    synchronize(77);
    expect("state of 0: tag 5 until 77\n"
           "state of 1: tag 5 until 77\n"
           "state of 2: tag 5 until 77\n");
}

static void test_a_contained_round_is_no_more(void **state)
{
    (void)state;
    two_average();
    two_average();
    lasts[2] = number();
    said[0] = '\0';
    call(2);
    expect("release 01\n"
           "release 01\n");
    call(0);
    call(1);
    expect("plan 0 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 1 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 2 0+4@0 4+4@1 8+4@2 called 012\n");
}

/* Rounds that are not kept any more, and that the state has, are not missed. */
static void test_no_lapse_of_what_is_contained(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) two_average();
    lasts[2] = number();
    said[0] = '\0';
    call(2);
    expect("release 01\n"
           "release 01\n");
}

/* The elected state lacks a round that this member had. */
static void test_back_before_a_round(void **state)
{
    (void)state;
    two_average();
    uint64_t first = number();
    call(2);
    holds_in(2, "01", first);
    two_average();
    lasts[1] = first;
    said[0] = '\0';
    call(1);
    expect("refuse 1 1\n");
    call(1);
    expect("");
}

/* Who was told while a round was undecided gets it, if its state has it not. */
static void test_brought_along_too_little(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) two_average();
    uint64_t third = number();
    call(0);
    call(2);
    said[0] = '\0';
    call(1);
    folded(0, 0, 3);
    folded(1, 1, 3);
    holds(0, "1");
    holds(1, "0");
    lasts[2] = third;
    said[0] = '\0';
    call(2);
    expect("fetch 2 0+6 at 01 6+6 at 01\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_round_of_the_state),
        TEST(test_a_contained_round_is_no_more),
        TEST(test_no_lapse_of_what_is_contained),
        TEST(test_back_before_a_round),
        TEST(test_brought_along_too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
