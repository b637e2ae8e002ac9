/* test_deadlock.c - some members wait in a vote and the others in operations:
 * when the epoch is closed for it (rule V4b), and how they are refused (F6). */
#include "founded.h"

enum { DEADLINE = 100 };

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user, (void)links;
    bool ends = m->type == WIRE_ANSWER || m->type == WIRE_STATE ||
                m->type == WIRE_VERDICT || m->type == WIRE_INSTALL;
    if (ends) say("%s to %u. ", wire_type_name(m->type), count);
}

static void begin(uint32_t members)
{
    struct master_config c = {
        .out = {.send = on_send}, .deadline = DEADLINE, .quorum = members};
    assert_int_equal(found(&c), 0);
}

static void vote(uint32_t link, enum vote_kind kind)
{
    struct wire_msg m = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = (uint8_t)kind};
    step(MASTER_RECEIVED, link, &m);
}

/* A frame is there of what it has not launched. */
static void report(uint32_t link)
{
    struct wire_msg m = {.type = WIRE_BLOCKED,
                         .epoch = master->groups[0].epoch,
                         .blocked.votes = true};
    step(MASTER_RECEIVED, link, &m);
}

static void test_a_vote_where_others_launch(void **state)
{
    begin(3);
    vote(0, VOTE_UPDATE);
    now += DEADLINE / 2 - 1;
    report(0);
    report(1); /* it waits in nothing */
    assert_int_equal(master->groups[0].phase, GROUP_OPEN);
    now++;
    report(1);
    assert_int_equal(master->groups[0].phase, GROUP_OPEN);
    report(0);
    assert_int_equal(master->groups[0].phase, GROUP_FLUSHING);
    (void)teardown(state);
}

/* A thread beside PENDING may launch operations: it gets more time, and none of
 * them ends. */
static void test_pending_where_others_launch(void **state)
{
    begin(3);
    vote(0, VOTE_PENDING);
    now += 2 * DEADLINE - 1;
    report(0);
    expect("");
    now++;
    report(1);
    expect("");
    report(0);
    expect("ANSWER to 1. ");
    assert_int_equal(master->groups[0].phase, GROUP_OPEN);
    (void)teardown(state);
}

/* Members that wait, and know nothing of what others run: nothing is asked. */
static void test_a_vote_costs_nothing(void **state)
{
    begin(3);
    vote(0, VOTE_UPDATE);
    now += DEADLINE - 1;
    struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &beat);
    step(MASTER_TICK, 0, NULL);
    expect("");
    assert_int_equal(master->groups[0].phase, GROUP_OPEN);
    (void)teardown(state);
}

/* All of the view; each runs operation 0, or nothing. */
static void flush(const bool *runs, uint32_t members)
{
    struct wire_op op = {.state = OP_RUNNING};
    struct wire_msg m = {.type = WIRE_FLUSHED,
                         .round = master->round_last,
                         .epoch = master->groups[0].epoch,
                         .ops = &op};
    for (uint32_t i = 0; i < members; i++) {
        m.op_count = runs[i];
        step(MASTER_RECEIVED, i, &m);
    }
    m.type = WIRE_REPLY;
    m.op_count = 1;
    for (uint32_t i = 0; i < members; i++) {
        op.state = runs[i] ? OP_RUNNING : OP_NOT_LAUNCHED;
        step(MASTER_RECEIVED, i, &m);
    }
}

/* The verdict and INSTALL are all that a member hears of it; who has voted
 * before it had them is refused as well. */
static void test_the_verdict_is_the_refusal(void **state)
{
    static const bool runs[] = {false, false, false, true};
    begin(4);
    vote(0, VOTE_UPDATE);
    struct wire_msg sync = {
        .type = WIRE_SYNC, .round = 1, .epoch = master->groups[0].epoch};
    step(MASTER_RECEIVED, 1, &sync);
    struct wire_msg suspect = {.type = WIRE_SUSPECT,
                               .epoch = master->groups[0].epoch};
    step(MASTER_RECEIVED, 3, &suspect);
    flush(runs, 4);
    said[0] = '\0';
    all_are_ready();
    expect("VERDICT to 4. INSTALL to 4. ");
    for (uint32_t i = 0; i < 3; i++)
        assert_false(master_waits(&master->peers[i]));
    struct wire_msg m = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = VOTE_UPDATE, .epoch = 1};
    step(MASTER_RECEIVED, 2, &m);
    assert_false(master_waits(&master->peers[2]));
    m.vote.kind = VOTE_PENDING;
    m.round = 2;
    step(MASTER_RECEIVED, 2, &m);
    assert_true(master->peers[2].voted[VOTE_PENDING]);
    m = (struct wire_msg){.type = WIRE_VOTE,
                          .round = 3,
                          .vote.kind = VOTE_UPDATE,
                          .epoch = master->groups[0].epoch};
    step(MASTER_RECEIVED, 2, &m);
    assert_true(master_waits(&master->peers[2]));
    (void)teardown(state);
}

/* What only members run that have launched it goes on: nobody waits for them.
 */
static void test_who_waits_has_returned_it(void **state)
{
    begin(2);
    vote(0, VOTE_UPDATE);
    struct wire_msg suspect = {.type = WIRE_SUSPECT,
                               .epoch = master->groups[0].epoch};
    step(MASTER_RECEIVED, 1, &suspect);
    struct wire_op op = {.state = OP_COMPLETE};
    struct wire_msg m = {.type = WIRE_FLUSHED,
                         .round = master->round_last,
                         .epoch = master->groups[0].epoch,
                         .ops = &op};
    step(MASTER_RECEIVED, 0, &m);
    m.op_count = 1;
    step(MASTER_RECEIVED, 1, &m);
    m.type = WIRE_REPLY;
    step(MASTER_RECEIVED, 1, &m);
    op.state = OP_RETURNED;
    step(MASTER_RECEIVED, 0, &m);
    all_are_ready();
    assert_true(master->peers[0].voted[VOTE_UPDATE]);
    (void)teardown(state);
}

/* Rule V5: members that vote for different things hear of it when the view is
 * in force. */
static void test_nobody_is_refused_amid_a_round(void **state)
{
    static const bool runs[] = {false, false};
    begin(2);
    vote(0, VOTE_UPDATE);
    struct wire_msg suspect = {.type = WIRE_SUSPECT,
                               .epoch = master->groups[0].epoch};
    step(MASTER_RECEIVED, 1, &suspect);
    struct wire_msg pending = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = VOTE_PENDING};
    step(MASTER_RECEIVED, 1, &pending);
    flush(runs, 2);
    expect("");
    all_are_ready();
    expect("INSTALL to 2. ANSWER to 1. ANSWER to 1. ");
    (void)teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_vote_where_others_launch),
        cmocka_unit_test(test_pending_where_others_launch),
        cmocka_unit_test(test_a_vote_costs_nothing),
        cmocka_unit_test(test_the_verdict_is_the_refusal),
        cmocka_unit_test(test_who_waits_has_returned_it),
        cmocka_unit_test(test_nobody_is_refused_amid_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
