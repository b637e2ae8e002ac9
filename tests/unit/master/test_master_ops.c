/* test_master_ops.c - the master's tables of operations: scopes, many
 * operations, members whose lists lie, and members that disagree on a scope
 * (rules F4, F6, F8, V4). */
#include "founded.h"

#include "../../../src/base/scope.h"

static uint32_t closed;

/* Of many operations only their number. */
static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    bool shown = m->type == WIRE_QUERY || m->type == WIRE_VERDICT ||
                 m->type == WIRE_DONATE || m->type == WIRE_RESULT ||
                 m->type == WIRE_PROPOSE;
    for (uint32_t i = 0; i < count && shown; i++) {
        say("%u %s", links[i], wire_type_name(m->type));
        if (m->op_count > 4) say(" %u operations", m->op_count);
        for (uint32_t k = 0; k < m->op_count && m->op_count <= 4; k++)
            say(" %d:%u", (int)m->ops[k].tag, m->ops[k].state);
        say("\n");
    }
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    say("%u closed: %s\n", link, reason);
    closed++;
}

enum { PEERS = 5, DEADLINE_MS = 100 };

/* Links 0..4 are ids 1..5 and ranks 0..4, and link 4 dies. */
static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = on_close},
                              .deadline = DEADLINE_MS * PCCL_MS,
                              .quorum = PEERS};
    closed = 0;
    return found(&c);
}

static void lose_link_4(void)
{
    step(MASTER_CLOSED, 4, NULL);
}

static uint64_t number_of(uint8_t ranks)
{
    uint64_t ids[8];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 8; i++) {
        if (ranks >> i & 1) ids[count++] = i + 1;
    }
    return scope_number(ids, count);
}

/* FLUSHED with operations of at most one scope, which is a byte of ranks. */
static void flushed(uint32_t link, uint8_t ranks, const struct wire_op *ops,
                    uint32_t count)
{
    struct wire_msg m = {.type = WIRE_FLUSHED,
                         .round = master->round_last,
                         .ops = ops,
                         .op_count = count,
                         .sets = &ranks,
                         .set_size = 1,
                         .set_count = ranks != 0};
    step(MASTER_RECEIVED, link, &m);
}

static void idle(uint32_t link)
{
    flushed(link, 0, NULL, 0);
}

static void told(uint32_t link, const struct wire_op *ops, uint32_t count)
{
    struct wire_msg m = {.type = WIRE_REPLY,
                         .round = master->round_last,
                         .ops = ops,
                         .op_count = count};
    step(MASTER_RECEIVED, link, &m);
}

#define PROPOSED "0 PROPOSE\n1 PROPOSE\n2 PROPOSE\n3 PROPOSE\n"
static const char lie[] = "closed: sent a list of operations that cannot be\n";

static void expect_lie(uint32_t link)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%u %s", link, lie);
    expect(text);
    assert_int_equal(closed, 1);
}

/* Survivors are those of the scope; only they are asked and hear the verdict,
 * and the same tag in another scope is another operation. */
static void test_a_scope_is_judged_alone(void **state)
{
    (void)state;
    struct wire_op pair = {number_of(3), 7, 0, OP_COMPLETE, false};
    struct wire_op other = {number_of(12), 7, 0, OP_RUNNING, false};
    lose_link_4();
    flushed(0, 3, &pair, 1);
    flushed(1, 3, &pair, 1);
    flushed(2, 12, &other, 1);
    idle(3);
    expect("2 QUERY 7:1\n3 QUERY 7:1\n");
    told(2, &other, 1);
    other.state = OP_NOT_LAUNCHED;
    told(3, &other, 1);
    expect(PROPOSED);
    all_are_ready();
    expect("0 VERDICT 7:1\n1 VERDICT 7:1\n");
}

/* As many operations as members can list: nobody is evicted. Questions and
 * verdicts come in messages of WIRE_OPS_MAX. */
static void test_many_operations(void **state)
{
    (void)state;
    static struct wire_op ops[4][OPS_MAX];
    lose_link_4();
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < OPS_MAX; k++)
            ops[i][k] =
                (struct wire_op){0, i * 10000 + k, 0, OP_COMPLETE, false};
        flushed(i, 0, ops[i], OPS_MAX);
    }
    idle(3);
    assert_int_equal(closed, 0);
    expect("0 QUERY 4096 operations\n1 QUERY 4096 operations\n"
           "2 QUERY 4096 operations\n3 QUERY 4096 operations\n"
           "0 QUERY 4096 operations\n1 QUERY 4096 operations\n"
           "2 QUERY 4096 operations\n3 QUERY 4096 operations\n"
           "0 QUERY 4096 operations\n1 QUERY 4096 operations\n"
           "2 QUERY 4096 operations\n3 QUERY 4096 operations\n");
    for (uint32_t link = 0; link < 4; link++) {
        for (uint32_t i = 0; i < 3; i++) {
            for (uint32_t k = 0; k < OPS_MAX; k++)
                ops[i][k].state = link == i ? OP_COMPLETE : OP_RETURNED;
            told(link, ops[i], OPS_MAX);
        }
    }
    expect(PROPOSED);
    all_are_ready();
    assert_int_equal(closed, 0);
    assert_non_null(strstr(said, "0 VERDICT 4096 operations\n"));
    assert_non_null(strstr(said, "3 VERDICT 4096 operations\n"));
}

static void test_a_scope_without_the_sender(void **state)
{
    (void)state;
    struct wire_op op = {number_of(6), 7, 0, OP_RUNNING, false};
    lose_link_4();
    flushed(0, 6, &op, 1);
    expect_lie(0);
}

static void test_a_scope_of_strangers(void **state)
{
    (void)state;
    struct wire_op op = {number_of(65), 7, 0, OP_RUNNING, false};
    lose_link_4();
    flushed(0, 65, &op, 1);
    expect_lie(0);
}

static void test_an_operation_without_its_scope(void **state)
{
    (void)state;
    struct wire_op op = {number_of(5), 7, 0, OP_RUNNING, false};
    lose_link_4();
    flushed(0, 3, &op, 1);
    expect_lie(0);
}

/* It would count as two members. */
static void test_an_operation_listed_twice(void **state)
{
    (void)state;
    struct wire_op ops[2] = {{0, 7, 0, OP_COMPLETE, false},
                             {0, 7, 0, OP_COMPLETE, false}};
    lose_link_4();
    flushed(0, 0, ops, 2);
    expect_lie(0);
}

static void test_a_state_that_cannot_be(void **state)
{
    (void)state;
    struct wire_op op = {0, 7, 0, OP_RETURNED, false};
    lose_link_4();
    flushed(0, 0, &op, 1);
    expect_lie(0);
}

static void test_an_answer_to_no_question(void **state)
{
    (void)state;
    struct wire_op op = {0, 7, 0, OP_RUNNING, false};
    lose_link_4();
    flushed(0, 0, &op, 1);
    for (uint32_t i = 1; i < 4; i++) idle(i);
    said[0] = '\0';
    op.tag = 8;
    told(1, &op, 1);
    expect_lie(1);
}

static void test_more_answers_than_questions(void **state)
{
    (void)state;
    struct wire_op ops[2] = {{0, 7, 0, OP_COMPLETE, false},
                             {0, 7, 0, OP_COMPLETE, false}};
    lose_link_4();
    flushed(0, 0, ops, 1);
    for (uint32_t i = 1; i < 4; i++) idle(i);
    said[0] = '\0';
    told(1, ops, 2);
    expect_lie(1);
}

/* It has not returned, so nobody asks it for the result. */
static void test_a_donor_of_nothing(void **state)
{
    (void)state;
    struct wire_op op = {0, 7, 0, OP_RUNNING, false};
    lose_link_4();
    flushed(0, 0, &op, 1);
    for (uint32_t i = 1; i < 4; i++) idle(i);
    said[0] = '\0';
    op.donor = true;
    for (uint32_t i = 0; i < 3; i++) told(i, &op, 1);
    op.donor = false;
    op.state = OP_RETURNED;
    told(3, &op, 1);
    expect(PROPOSED);
    all_are_ready();
    expect(""); /* no commit */
}

static void complain(uint32_t link, uint64_t scope)
{
    struct wire_msg m = {
        .type = WIRE_REFRESH,
        .epoch = 1,
        .fault = {.cause = REFRESH_FAIL, .scope = scope, .tag = 7}};
    step(MASTER_RECEIVED, link, &m);
}

/* Member 2 has no part in the operation that it wants to fail. */
static void test_a_complaint_of_another_scope(void **state)
{
    (void)state;
    struct wire_op op = {number_of(3), 7, 0, OP_RUNNING, false};
    complain(2, number_of(3));
    flushed(0, 3, &op, 1);
    flushed(1, 3, &op, 1);
    for (uint32_t i = 2; i < PEERS; i++) idle(i);
    said[0] = '\0';
    all_are_ready();
    expect("");
    complain(1, number_of(3)); /* of an old epoch */
    expect("");
}

static void test_a_complaint_of_a_member(void **state)
{
    (void)state;
    struct wire_op op = {number_of(3), 7, 0, OP_RUNNING, false};
    complain(1, number_of(3));
    flushed(0, 3, &op, 1);
    flushed(1, 3, &op, 1);
    for (uint32_t i = 2; i < PEERS; i++) idle(i);
    said[0] = '\0';
    all_are_ready();
    expect("0 VERDICT 7:5\n1 VERDICT 7:5\n");
}

/* Rule V4: for so many deadlines `link` runs what stands before something. */
static void blocked(uint32_t link, uint32_t deadlines)
{
    struct wire_msg m = {.type = WIRE_BLOCKED,
                         .epoch = master->groups[0].epoch,
                         .blocked.age_ms = deadlines * DEADLINE_MS};
    now += DEADLINE_MS * PCCL_MS;
    step(MASTER_RECEIVED, link, &m);
}

static void runs(uint32_t link, uint8_t ranks)
{
    struct wire_op op = {number_of(ranks), 7, 0, OP_RUNNING, false};
    flushed(link, ranks, &op, 1);
}

/* All who were asked and did not list the operation have not launched it. */
static void tell_all(const uint8_t *scopes)
{
    for (uint32_t link = 0; link < PEERS; link++) {
        while (master->peers[link].state == PEER_MEMBER &&
               master->peers[link].asked != MASTER_NO_OP) {
            struct wire_op op =
                master->groups[0].table.ops[master->peers[link].asked].op;
            bool here = op.scope == number_of(scopes[link]);
            op.state = here ? OP_RUNNING : OP_NOT_LAUNCHED;
            told(link, &op, 1);
        }
    }
}

/* All flush: the operation of tag 7 in that scope, or none. Then the verdicts
 * go out. */
static void judged(const uint8_t *scopes, const char *verdicts)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        if (master->peers[i].state != PEER_MEMBER) continue;
        if (scopes[i])
            runs(i, scopes[i]);
        else
            idle(i);
    }
    tell_all(scopes);
    said[0] = '\0';
    all_are_ready();
    expect(verdicts);
}

static void test_scopes_that_wait_for_each_other(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {3, 7, 7, 0, 0};
    blocked(1, 1);
    assert_int_equal(master->round_last, 1); /* 1 is only slower */
    blocked(0, 1);
    assert_int_equal(master->round_last, 2);
    judged(scopes, "0 VERDICT 7:6\n1 VERDICT 7:6\n"
                   "0 VERDICT 7:6\n1 VERDICT 7:6\n2 VERDICT 7:6\n");
}

/* A loss closed the epoch before a report came. */
static void test_a_circle_that_nobody_reported(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {3, 7, 7, 0, 0};
    lose_link_4();
    judged(scopes, "0 VERDICT 7:6\n1 VERDICT 7:6\n"
                   "0 VERDICT 7:6\n1 VERDICT 7:6\n2 VERDICT 7:6\n");
}

/* Tags are judged one by one, whatever was reported. */
static void test_another_tag_than_the_reported(void **state)
{
    (void)state;
    blocked(1, 1);
    blocked(0, 1);
    assert_int_equal(master->round_last, 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t ranks = i ? 7 : 3;
        struct wire_op op = {number_of(ranks), 8, 0, OP_RUNNING, false};
        flushed(i, ranks, &op, 1);
    }
    for (uint32_t i = 2; i < PEERS; i++) idle(i);
    static const uint8_t scopes[PEERS] = {3, 7, 0, 0, 0};
    tell_all(scopes);
    said[0] = '\0';
    all_are_ready();
    expect("0 VERDICT 8:6\n1 VERDICT 8:6\n"
           "0 VERDICT 8:6\n1 VERDICT 8:6\n2 VERDICT 8:6\n");
}

/* Ranks 0, 1, 2 run {0, 1}, {1, 2}, {0, 2}. */
static void test_three_scopes_in_a_circle(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {3, 6, 5, 0, 0};
    blocked(1, 1);
    blocked(2, 1);
    assert_int_equal(master->round_last, 2);
    judged(scopes,
           "0 VERDICT 7:6\n1 VERDICT 7:6\n1 VERDICT 7:6\n2 VERDICT 7:6\n"
           "0 VERDICT 7:6\n2 VERDICT 7:6\n");
}

/* Ranks 0 to 4 run the scope of all but the next one. Two of them are known to
 * wait for each other; the lists show that all do. */
static void test_all_that_wait_for_each_other(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {0x1d, 0x1b, 0x17, 0x0f, 0x1e};
    blocked(0, 1);
    assert_int_equal(master->round_last, 1);
    blocked(2, 1);
    assert_int_equal(master->round_last, 2);
    for (uint32_t i = 0; i < 5; i++) runs(i, scopes[i]);
    tell_all(scopes);
    said[0] = '\0';
    all_are_ready();
    uint32_t verdicts = 0;
    for (const char *at = said; (at = strstr(at, "VERDICT 7:6\n")); at++)
        verdicts++;
    assert_int_equal(verdicts, 5 * 4);
}

/* Rank 2 waits for 1, which is in a circle, and nobody waits for 2: 1 may
 * launch the operation yet. */
static void test_one_that_waits_for_a_circle(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {3, 11, 6, 11, 0};
    blocked(1, 1);
    blocked(0, 1);
    assert_int_equal(master->round_last, 2);
    judged(scopes, "0 VERDICT 7:6\n1 VERDICT 7:6\n"
                   "0 VERDICT 7:6\n1 VERDICT 7:6\n3 VERDICT 7:6\n");
}

/* Rank 0 has returned the operation of {0, 1}, which 1 holds, and runs that of
 * {0, 1, 2}. The first one is committed, so 1 may launch the other one. */
static void test_a_circle_that_ends_by_a_commit(void **state)
{
    (void)state;
    struct wire_op pair = {number_of(3), 7, 0, OP_COMPLETE, false};
    struct wire_op all = {number_of(7), 7, 0, OP_RUNNING, false};
    lose_link_4();
    flushed(1, 3, &pair, 1);
    flushed(0, 7, &all, 1);
    flushed(2, 7, &all, 1);
    idle(3);
    struct wire_op answers[] = {pair, all};
    answers[0].state = OP_RETURNED;
    told(0, answers, 2);
    answers[0].state = OP_COMPLETE;
    answers[1].state = OP_NOT_LAUNCHED;
    told(1, answers, 2);
    told(2, &all, 1);
    said[0] = '\0';
    all_are_ready();
    expect("0 VERDICT 7:1\n1 VERDICT 7:1\n");
}

/* Rank 0 runs what 1 waits for, and cannot join another one in a vote: that
 * ends, and what waits for it alone goes on. */
static void test_a_circle_that_ends_by_a_vote(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {11, 3, 0, 0, 0};
    struct wire_msg vote = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = VOTE_UPDATE, .epoch = 1};
    step(MASTER_RECEIVED, 3, &vote);
    lose_link_4();
    judged(scopes, "0 VERDICT 7:3\n1 VERDICT 7:3\n3 VERDICT 7:3\n");
}

/* {0, 1} and {1, 0, 2} wait for each other, so do {3, 4} and {3, 4, 2}; rank 2
 * runs {2, 3}, for which the first ones wait, and which waits for the others.
 */
static void test_one_between_two_circles(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {3, 7, 12, 24, 28};
    blocked(1, 1);
    blocked(0, 1);
    judged(scopes,
           "0 VERDICT 7:6\n1 VERDICT 7:6\n"
           "0 VERDICT 7:6\n1 VERDICT 7:6\n2 VERDICT 7:6\n"
           "2 VERDICT 7:6\n3 VERDICT 7:6\n3 VERDICT 7:6\n4 VERDICT 7:6\n"
           "2 VERDICT 7:6\n3 VERDICT 7:6\n4 VERDICT 7:6\n");
}

/* Link 1 is only slower: a false report ends nothing. */
static void test_a_false_report(void **state)
{
    (void)state;
    static const uint8_t scopes[PEERS] = {3, 6, 6, 0, 0};
    blocked(1, 1);
    blocked(3, 1);
    assert_int_equal(master->round_last, 2);
    judged(scopes, "");
}

/* What one member cannot launch is no circle, however often it says so. */
static void test_one_that_is_slow(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 1000; i++) blocked(1, i);
    assert_int_equal(master->round_last, 1);
    struct wire_msg m = {.type = WIRE_BLOCKED,
                         .epoch = master->groups[0].epoch,
                         .blocked.age_ms = DEADLINE_MS / 2 - 1};
    step(MASTER_RECEIVED, 0, &m); /* not for half a deadline */
    assert_int_equal(master->round_last, 1);
}

/* All are slow, for a thousand deadlines: that costs an epoch where the wait
 * has doubled since the last one. */
static void test_all_are_slow(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 1000; i++) {
        uint32_t before = master->round_last;
        now -= DEADLINE_MS * PCCL_MS;
        blocked(0, i);
        blocked(1, i);
        if (master->round_last == before) continue;
        for (uint32_t k = 0; k < PEERS; k++) idle(k);
        all_are_ready();
    }
    assert_in_range(master->round_last - 1, 8, 11);
    blocked(0, 1);
    blocked(1, 1); /* that is news */
    assert_in_range(master->round_last - 1, 9, 12);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_scope_is_judged_alone),
        TEST(test_many_operations),
        TEST(test_a_scope_without_the_sender),
        TEST(test_a_scope_of_strangers),
        TEST(test_an_operation_without_its_scope),
        TEST(test_an_operation_listed_twice),
        TEST(test_a_state_that_cannot_be),
        TEST(test_an_answer_to_no_question),
        TEST(test_more_answers_than_questions),
        TEST(test_a_donor_of_nothing),
        TEST(test_a_complaint_of_another_scope),
        TEST(test_a_complaint_of_a_member),
        TEST(test_scopes_that_wait_for_each_other),
        TEST(test_a_circle_that_nobody_reported),
        TEST(test_another_tag_than_the_reported),
        TEST(test_three_scopes_in_a_circle),
        TEST(test_all_that_wait_for_each_other),
        TEST(test_one_that_waits_for_a_circle),
        TEST(test_a_circle_that_ends_by_a_commit),
        TEST(test_a_circle_that_ends_by_a_vote),
        TEST(test_one_between_two_circles),
        TEST(test_a_false_report),
        TEST(test_one_that_is_slow),
        TEST(test_all_are_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
