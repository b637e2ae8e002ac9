/* test_coverage_state.c - which rounds of partial all-reduces a received state
 * has, and for which of them its receiver calls then (rule A14); and how many
 * tags and parts there are. */
#include "coverage_said.h"

enum { NOBODY = 3 };

/* A synchronization of all, in which member 2 gets the state of the others.
 * That one lists the tag, as it has not taken its result. */
static void synchronize(uint32_t first, uint32_t untaken)
{
    static uint32_t count;
    const uint64_t tag = 5;
    count++;
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_msg m = {.type = WIRE_SYNC, .round = count, .ids = &tag};
        m.id_count = i >= first && i <= untaken && untaken < NOBODY;
        m.sync.revision = master->records[0].revision + 1;
        m.sync.content = i == 2 ? 8 : 7;
        step(MASTER_RECEIVED, i, &m);
    }
    struct wire_msg done = {.type = WIRE_SYNCED};
    done.sync.id = master->groups[0].sync_id;
    done.sync.role = SYNC_COMPLETE;
    assert_true(done.sync.id > 0);
    step(MASTER_RECEIVED, 2, &done);
    assert_int_equal(master->groups[0].sync_id, 0);
}

static void test_a_round_of_the_state(void **state)
{
    (void)state;
    two_average();
    said[0] = '\0';
    synchronize(0, NOBODY);
    expect("release 01\n");
    call(2);
    expect("");
    call(0);
    call(1);
    expect("plan 0 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 1 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 2 0+4@0 4+4@1 8+4@2 called 012\n");
}

/* Those that are not kept any more are not missed either. */
static void test_rounds_that_have_lapsed(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) two_average();
    said[0] = '\0';
    synchronize(0, NOBODY);
    call(2);
    expect("release 01\n"
           "release 01\n");
}

/* The holders had not taken their results when they synchronized. */
static void test_untaken(void **state)
{
    (void)state;
    two_average();
    said[0] = '\0';
    synchronize(0, 1);
    call(2);
    expect("fetch 2 0+6 at 01 6+6 at 01\n");
    two_average(); /* of several rounds it is the last one */
    said[0] = '\0';
    synchronize(0, 1);
    expect("refuse 2 1\n"
           "release 012\n");
    call(2);
    expect("fetch 2 0+6 at 01 6+6 at 01\n");
}

/* Its call waits in a round that the state has. */
static void test_a_call_under_way(void **state)
{
    (void)state;
    two_average();
    call(2);
    said[0] = '\0';
    synchronize(2, 2);
    expect("refuse 2 1\n"
           "release 012\n");
    call(2);
    expect("");
}

static void votes(uint32_t i, uint32_t count, bool lists)
{
    const uint64_t tag = 5;
    struct wire_msg m = {.type = WIRE_SYNC, .round = count, .ids = &tag};
    m.id_count = lists;
    m.sync.revision = master->records[0].revision + 1;
    m.sync.content = i == 2 ? 8 : 7;
    step(MASTER_RECEIVED, i, &m);
}

/* The holders have given their states, and average beside it: the round comes
 * after the state. */
static void test_called_after_the_state(void **state)
{
    (void)state;
    votes(0, 1, false);
    votes(1, 1, false);
    two_average();
    said[0] = '\0';
    votes(2, 1, false);
    struct wire_msg done = {.type = WIRE_SYNCED};
    done.sync.id = master->groups[0].sync_id;
    done.sync.role = SYNC_COMPLETE;
    assert_true(done.sync.id > 0);
    step(MASTER_RECEIVED, 2, &done);
    call(2);
    expect("fetch 2 0+6 at 01 6+6 at 01\n");
}

/* 64 of them, as pccl.h says. */
static void test_tags(void **state)
{
    (void)state;
    for (uint64_t tag = 100; tag < 164; tag++) {
        struct wire_msg m = call_of(tag, 1);
        said[0] = '\0';
        step(MASTER_RECEIVED, 0, &m);
        expect("");
    }
    struct wire_msg m = call_of(99, 1);
    char text[32];
    (void)snprintf(text, sizeof text, "refuse 0 %u\n", PARTIAL_LIMIT);
    step(MASTER_RECEIVED, 0, &m);
    expect(text);
}

static int setup_many(void **state)
{
    (void)state;
    return found(&(struct master_config){.deadline = 1000 * PCCL_S,
                                         .quorum = WIRE_PARTS_MAX + 10});
}

static void test_parts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WIRE_PARTS_MAX + 10; i++) {
        struct wire_msg m = call_of(5, 1);
        m.partial.count = 1000000;
        step(MASTER_RECEIVED, i, &m);
    }
    const struct coverage_round *r = master->groups[0].averages;
    assert_int_equal(r->part_count, 256); /* as pccl.h says */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_round_of_the_state),
        TEST(test_rounds_that_have_lapsed),
        TEST(test_untaken),
        TEST(test_a_call_under_way),
        TEST(test_called_after_the_state),
        TEST(test_tags),
        cmocka_unit_test_setup_teardown(test_parts, setup_many, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
