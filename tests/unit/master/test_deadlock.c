/* test_deadlock.c - what the coordinator asks while some members wait in an
 * update and the others in operations (rule V4a): how much, in large views; and
 * how it refuses them (F6). */
#include "founded.h"

enum { DEADLINE = 100, TAGS = 3 };

static uint32_t asked, questions; /* members, and about operations */

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user, (void)links;
    bool ends = m->type == WIRE_ANSWER || m->type == WIRE_STATE ||
                m->type == WIRE_VERDICT || m->type == WIRE_INSTALL;
    if (ends) say("%s to %u. ", wire_type_name(m->type), count);
    if (m->type != WIRE_QUERY) return;
    asked += m->op_count == 0 ? count : 0;
    questions += m->op_count * count;
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user, (void)link, (void)reason;
}

static void begin(uint32_t members)
{
    struct master_config c = {.out = {.send = on_send, .close = on_close},
                              .deadline = DEADLINE,
                              .quorum = members};
    assert_int_equal(found(&c), 0);
    asked = questions = 0;
}

static void vote(uint32_t link)
{
    struct wire_msg m = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = VOTE_UPDATE};
    step(MASTER_RECEIVED, link, &m);
}

/* It runs, or has launched, each of the first tags; `odd` it alone. */
static void tell(uint32_t link, enum op_state state, bool odd)
{
    struct wire_op ops[TAGS];
    for (uint32_t i = 0; i < TAGS; i++)
        ops[i] = (struct wire_op){.tag = i + (odd ? 100 * (link + 1) : 0),
                                  .state = (uint8_t)state};
    struct wire_msg m = {.type = WIRE_REPLY,
                         .epoch = master->groups[0].epoch,
                         .ops = ops,
                         .op_count = TAGS};
    step(MASTER_RECEIVED, link, &m);
}

/* Half of them wait for the other half. */
static void half_wait(uint32_t members)
{
    begin(members);
    for (uint32_t i = 0; i < members / 2; i++) vote(i);
    now += DEADLINE / 2 + 1;
    step(MASTER_TICK, 0, NULL);
    assert_int_equal(asked, members / 2);
    for (uint32_t i = members / 2; i < members; i++) tell(i, OP_RUNNING, false);
}

/* Each waiting member is asked about each operation once. */
static void test_questions_grow_with_the_members(void **state)
{
    (void)state;
    for (uint32_t members = 4; members <= 1024; members *= 4) {
        half_wait(members);
        assert_int_equal(questions, members / 2 * TAGS);
        for (uint32_t i = 0; i < members / 2; i++) tell(i, OP_RETURNED, false);
        assert_int_equal(master->groups[0].phase, GROUP_OPEN);
        (void)teardown(state);
    }
}

/* ... and again at the next probe; what another one runs besides counts. */
static void test_all_is_asked(void **state)
{
    (void)state;
    half_wait(4);
    tell(0, OP_RETURNED, false);
    tell(1, OP_RETURNED, false);
    now += DEADLINE / 2 + 1;
    questions = 0;
    step(MASTER_TICK, 0, NULL);
    tell(2, OP_RUNNING, false);
    assert_int_equal(questions, 2 * TAGS);
    tell(3, OP_RUNNING, true);
    assert_int_equal(questions, 4 * TAGS);
    tell(0, OP_RETURNED, false);
    tell(0, OP_NOT_LAUNCHED, true);
    assert_int_equal(master->groups[0].phase, GROUP_FLUSHING);
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
    vote(0);
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
    vote(0);
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
    vote(0);
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
        cmocka_unit_test(test_questions_grow_with_the_members),
        cmocka_unit_test(test_all_is_asked),
        cmocka_unit_test(test_the_verdict_is_the_refusal),
        cmocka_unit_test(test_who_waits_has_returned_it),
        cmocka_unit_test(test_nobody_is_refused_amid_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
