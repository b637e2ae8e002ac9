/* test_deadlock.c - what the coordinator asks while some members wait in an
 * update and the others in operations (rule V4a): how much, in large views. */
#include "founded.h"

enum { DEADLINE = 100, TAGS = 3 };

static uint32_t asked, questions; /* members, and about operations */

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user, (void)links;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions_grow_with_the_members),
        cmocka_unit_test(test_all_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
