/* test_wait_graph.c - what the reports of members prove about operations (rules
 * W2, W3). One master, members 1 to 4 of ranks 0 to 3 on links 0 to 3. */
#include "founded.h"

#include "../../../src/base/scope.h"
#include "../../../src/master/watch/stall.h"
#include "../../../src/master/watch/wait_graph.h"

enum { MEMBERS = 4, TAG = 7 };

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    fail_msg("link %u: %s", link, reason);
}

static int setup(void **state)
{
    (void)state;
    struct master_config c = {
        .out = {.close = on_close}, .deadline = 100, .quorum = MEMBERS};
    return found(&c);
}

/* The member waits in an operation of ranks 0 and 1, or (0) of all. */
static struct wire_wait waits_in(uint32_t link, uint8_t ranks)
{
    static const uint64_t pair[] = {1, 2};
    struct wire_wait w = {.kind = WAIT_COLLECTIVE,
                          .blocks = true,
                          .scope = ranks ? scope_number(pair, 2) : 0,
                          .tag = TAG};
    struct wire_msg m = {.type = WIRE_WAITING,
                         .epoch = master->groups[0].epoch,
                         .waits = &w,
                         .wait_count = 1,
                         .sets = &ranks,
                         .set_size = 1,
                         .set_count = ranks != 0};
    step(MASTER_RECEIVED, link, &m);
    return w;
}

/* The member's part in the operation. */
static enum wait_part part_of(uint32_t link, const struct wire_wait *w)
{
    struct wait_graph *g = wait_graph_new(master);
    assert_non_null(g);
    const struct wait_op *op = wait_graph_find(g, 0, w);
    assert_non_null(op);
    wait_graph_choose(g, op);
    enum wait_part part = wait_part(g, link);
    wait_graph_free(g);
    return part;
}

/* Who is not of the scope neither lacks the operation nor is asked. */
static void test_others_have_no_part_in_a_scope(void **state) /* W2 */
{
    (void)state;
    struct wire_wait w = waits_in(0, 3);
    assert_int_equal(part_of(0, &w), WAIT_PART_SAME);
    assert_int_equal(part_of(1, &w), WAIT_PART_UNKNOWN);
    assert_int_equal(part_of(2, &w), WAIT_PART_NONE);
    w = waits_in(0, 0);
    assert_int_equal(part_of(2, &w), WAIT_PART_UNKNOWN);
}

/* The operations of an old view are over, or begin anew under another name. */
static void test_a_report_ends_with_its_view(void **state) /* W2 */
{
    (void)state;
    (void)waits_in(0, 0);
    assert_non_null(wait_report(master, 0));
    assert_non_null(wait_blocked_in(master, 0));
    struct wire_msg flushed = {.type = WIRE_FLUSHED};
    step(MASTER_CLOSED, 3, NULL);
    flushed.round = master->round_last;
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &flushed);
    all_are_ready();
    assert_int_equal(master->groups[0].epoch, master->round_last);
    assert_null(wait_report(master, 0));
    assert_null(wait_blocked_in(master, 0));
    (void)waits_in(0, 0);
    assert_non_null(wait_report(master, 0));
}

static uint32_t operations_told(void)
{
    struct stall stalls[MEMBERS];
    uint32_t told = 0, count = stall_find(master, 0, stalls, MEMBERS);
    for (uint32_t i = 0; i < count; i++)
        told += stalls[i].object == STALL_OPERATION;
    return told;
}

/* An operation is judged once, by the first waiter that is heard. */
static void test_a_silent_waiter_judges_nothing(void **state) /* W4 */
{
    (void)state;
    for (uint32_t i = 0; i < MEMBERS; i++) (void)waits_in(i, 0);
    now += 1;
    assert_int_equal(operations_told(), 1);
    now += 2 * PCCL_TIME_TO_PING(master->deadline) + 1;
    struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    for (uint32_t i = 1; i < MEMBERS; i++) step(MASTER_RECEIVED, i, &beat);
    assert_true(wait_is_silent(master, 0));
    assert_false(wait_is_silent(master, 1));
    assert_int_equal(operations_told(), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_others_have_no_part_in_a_scope),
        TEST(test_a_report_ends_with_its_view),
        TEST(test_a_silent_waiter_judges_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
