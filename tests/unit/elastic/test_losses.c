/* test_losses.c - losses of which a call of some members tells (T2): several
 * between two calls, one that is not of its scope, and a member that comes
 * again. */
#include "joined.h"

#include "../../../include/pccl.h"

static const uint64_t with_12[] = {10, 12}, with_11[] = {10, 11};

static int setup(void **state)
{
    (void)state;
    return join(NULL, NULL, &welcome_10);
}

/* A round in which a member is lost, or one that adds one. */
static void change(uint32_t round, uint64_t lost,
                   const struct wire_member *newcomer)
{
    struct wire_msg m = {
        .type = WIRE_PROPOSE,
        .epoch = round - 1,
        .round = round,
        .ids = &lost,
        .id_count = newcomer ? 0 : 1,
        .members = newcomer,
        .member_count = newcomer ? 1 : 0,
        .view = {.ring = true, .mesh = true, .update = newcomer != NULL}};
    hear(&m);
    m.type = WIRE_INSTALL;
    hear(&m);
}

/* The call has one of these members that is lost, the second. */
static void loses(const uint64_t *pair, uint32_t epoch, uint32_t pending)
{
    bool lost[2];
    assert_true(session_take_loss(session, pair, 2, lost));
    assert_true(!lost[0] && lost[1]);
    assert_int_equal(session->notified.view->epoch, epoch);
    assert_int_equal(session->notified.loss_count, pending);
}

static void test_up_to_the_first_of_the_scope(void **state)
{
    (void)state;
    assert_false(session_take_loss(session, with_12, 2, NULL));
    change(2, 12, NULL);
    change(3, 11, NULL);
    assert_int_equal(session->notified.view->size, 3); /* T1 */
    loses(with_12, 2, 1);
    loses(with_12, 2, 1); /* and no further */
    loses(with_11, 3, 0);
    assert_ptr_equal(session->notified.view, session->view);
}

static void test_older_losses_are_told_with_it(void **state)
{
    (void)state;
    change(2, 12, NULL);
    change(3, 11, NULL);
    assert_false(session_take_loss(session, with_12, 1, NULL));
    loses(with_11, 3, 0);
    loses(with_12, 3, 0);
}

static void test_who_comes_again_is_another(void **state)
{
    (void)state;
    static const struct wire_member again = {.id = 14};
    static const uint64_t pair[] = {10, 14};
    bool lost[2];
    change(2, 12, NULL);
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclSuccess);
    change(3, 0, &again);
    assert_int_equal(session->state, SESSION_MEMBER);
    assert_int_equal(session->notified.loss_count, 0);
    assert_false(session_take_loss(session, pair, 2, lost));
    assert_true(!lost[0] && !lost[1]);
    loses(with_12, 3, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_up_to_the_first_of_the_scope),
        TEST(test_older_losses_are_told_with_it),
        TEST(test_who_comes_again_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
