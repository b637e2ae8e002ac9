/* test_refused.c - a verdict on an operation that a member has not launched,
 * while it waits in a vote or in a synchronization (rule F6). The coordinator's
 * side: test_deadlock. */
#include "joined.h"

#include "../../../include/pccl.h"

static int setup(void **state)
{
    (void)state;
    return join(NULL, NULL, &welcome_10);
}

static bool is_refused(enum vote_kind kind)
{
    return session->votes[kind] == VOTE_ANSWERED &&
           session->answers[kind] == 0xff;
}

/* Rule F6: USAGE on what it has not launched is the answer to an update and to
 * an optimization. Beside PENDING the operation may still be launched. */
static void test_a_verdict_refuses_a_vote(void **state)
{
    (void)state;
    struct wire_op v = {.tag = 7, .state = VERDICT_USAGE};
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclSuccess);
    next_epoch(2, &v);
    assert_true(is_refused(VOTE_UPDATE));
    session->votes[VOTE_UPDATE] = VOTE_IDLE;
    assert_int_equal(session_vote(session, VOTE_OPTIMIZE), pcclSuccess);
    next_epoch(3, &v);
    assert_true(is_refused(VOTE_OPTIMIZE));
    session->votes[VOTE_OPTIMIZE] = VOTE_IDLE;
    assert_int_equal(session_vote(session, VOTE_PENDING), pcclSuccess);
    next_epoch(4, &v);
    assert_int_equal(session->votes[VOTE_PENDING], VOTE_WAITING);
    assert_int_equal(session->pending_abort_count, 1);
}

/* ... and ends a synchronization, unless that is decided: all have been in it,
 * so the operation comes after it. */
static void test_a_verdict_refuses_a_synchronization(void **state)
{
    (void)state;
    static struct state_list list;
    static const uint64_t ids[] = {10, 11};
    struct wire_op v = {.tag = 7, .state = VERDICT_USAGE};
    uint64_t revision, tx, rx;
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    next_epoch(2, &v);
    assert_int_equal(session->sync, SYNC_OVER);
    assert_int_equal(session_sync_take(session, &revision, &tx, &rx),
                     pcclInvalidUsage);
    assert_int_equal(session->pending_abort_count, 0);
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    struct wire_msg m = {.type = WIRE_STATE, .ids = ids, .id_count = 2};
    m.sync.id = 8;
    m.sync.role = SYNC_WAIT;
    m.sync.holders = m.sync.receivers = 1;
    hear(&m);
    next_epoch(3, &v);
    assert_int_equal(session->sync, SYNC_ASKED);
    assert_int_equal(session->pending_abort_count, 1);
    m.sync.role = SYNC_COMPLETE;
    hear(&m);
    assert_int_equal(session->sync, SYNC_OVER);
    assert_int_equal(session->pending_abort_count, 1);
}

/* Rule F6: all have come to the vote, and nobody launches that operation. */
static void test_a_verdict_is_over_with_the_next_vote(void **state)
{
    (void)state;
    struct wire_op v = {.tag = 7, .state = VERDICT_FAILED};
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclSuccess);
    next_epoch(2, &v);
    assert_int_equal(session->votes[VOTE_UPDATE], VOTE_WAITING);
    hear(&(struct wire_msg){
        .type = WIRE_ANSWER, .round = 1, .vote = {VOTE_UPDATE, 1}});
    session->votes[VOTE_UPDATE] = VOTE_IDLE;
    assert_int_equal(session->pending_abort_count, 0);
}

/* Rule F6: a verdict has no effect before its INSTALL. A launch between the two
 * waits, and so does the vote that follows it, which INSTALL would refuse too.
 */
static void test_a_launch_before_install_has_one_error(void **state)
{
    (void)state;
    static const uint64_t none[1];
    struct wire_op v = {.tag = 7, .state = VERDICT_USAGE};
    struct wire_msg m = {.type = WIRE_FLUSH,
                         .epoch = 1,
                         .round = 2,
                         .ids = none,
                         .ops = &v,
                         .op_count = 1,
                         .view = {.ring = true, .mesh = true}};
    hear(&m);
    m.type = WIRE_PROPOSE;
    hear(&m);
    m.type = WIRE_VERDICT;
    hear(&m);
    struct op_request r = {.call.tag = 7};
    struct op *op;
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    assert_int_equal(op_phase(op), PHASE_QUEUED);
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclPendingAsyncOps);
    m.type = WIRE_INSTALL;
    hear(&m);
    uint32_t contributors;
    uint64_t tx, rx;
    assert_true(op_is_done(op));
    assert_int_equal(session_take(session, op, &contributors, &tx, &rx),
                     pcclInvalidUsage);
    assert_int_equal(session->pending_abort_count, 0);
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclSuccess);
    assert_int_equal(session->votes[VOTE_UPDATE], VOTE_WAITING);
    next_epoch(3, NULL);
    assert_int_equal(session->votes[VOTE_UPDATE], VOTE_WAITING);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_verdict_refuses_a_vote),
        TEST(test_a_verdict_refuses_a_synchronization),
        TEST(test_a_verdict_is_over_with_the_next_vote),
        TEST(test_a_launch_before_install_has_one_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
