/* test_remembered.c - errors that a member has had, and verdicts that it keeps,
 * when members use a tag in scopes that wait for each other (rule V6g). The
 * coordinator's side: test_settled. */
#include "joined.h"

#include "../../../include/pccl.h"
#include "../../../src/base/scope.h"
#include "../../../src/ring/op.h"

static const uint64_t scope[] = {10, 11};

/* Of FLUSHED what has ended or is kept; BLOCKED in pairs. */
static void on_send(void *user, const struct wire_msg *m)
{
    (void)user;
    bool flushed = m->type == WIRE_FLUSHED;
    if (!flushed && m->type != WIRE_BLOCKED) return;
    for (uint32_t i = 0; i < m->op_count; i++) {
        const struct wire_op *o = &m->ops[i];
        if (flushed && o->state < OP_ENDED) continue;
        say("%s%d%s.%u", i % 2 == 0 || flushed ? " " : ">", (int)o->tag,
            o->scope == 0 ? "" : "s", o->seq);
        say("%s", o->state == OP_ENDED  ? " ended"
                  : o->state == OP_KEPT ? " kept"
                                        : "");
    }
}

static void on_close(void *user, uint32_t conn)
{
    (void)user, (void)conn;
}

static int setup(void **state)
{
    (void)state;
    return join(
        on_send, on_close,
        &(struct wire_msg){.type = WIRE_WELCOME, .welcome = {.id = 10}});
}

static struct op *launch(uint64_t tag, bool scoped)
{
    static uint64_t in, out;
    struct op_request r = {.tag = tag, .sendbuf = &in, .recvbuf = &out};
    struct op *op;
    if (scoped) r.members = scope;
    if (scoped) r.member_count = 2;
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    return op;
}

static void take(uint64_t tag, int result)
{
    uint32_t contributors;
    uint64_t tx, rx;
    struct op *op = engine_find(session->engine, tag);
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(session_take(session, op, &contributors, &tx, &rx),
                     result);
}

static struct wire_op verdict(bool scoped, uint32_t seq, uint8_t state)
{
    return (struct wire_op){.scope = scoped ? scope_number(scope, 2) : 0,
                            .tag = 7,
                            .seq = seq,
                            .state = state};
}

/* FLUSH, PROPOSE and the verdicts of a round: INSTALL is to follow. */
static void judge(uint32_t round, const struct wire_op *ops, uint32_t count)
{
    static const uint64_t none[1];
    struct wire_msg m = {.type = WIRE_FLUSH,
                         .epoch = round - 1,
                         .round = round,
                         .ids = none,
                         .ops = ops,
                         .op_count = count,
                         .view = {.ring = true, .mesh = true}};
    said[0] = '\0';
    hear(&m);
    m.type = WIRE_PROPOSE;
    hear(&m);
    m.type = WIRE_VERDICT;
    if (count > 0) hear(&m);
}

static void install(uint32_t round)
{
    hear(&(struct wire_msg){.type = WIRE_INSTALL,
                            .round = round,
                            .view = {.ring = true, .mesh = true}});
}

static void lists(uint32_t round, const char *text)
{
    judge(round, NULL, 0);
    assert_string_equal(said, text);
    install(round);
}

/* Tag 7 has failed in the scope, at the INSTALL of epoch 2: it had launched
 * it, */
static void fail_own(void)
{
    struct wire_op v = verdict(true, 0, VERDICT_FAILED);
    launch(7, true);
    judge(2, &v, 1);
    install(2);
    take(7, pcclOperationFailed);
}

/* ... or it had not. */
static void fail_elsewhere(void)
{
    struct wire_op v = verdict(true, 0, VERDICT_FAILED);
    judge(2, &v, 1);
    install(2);
}

static void test_an_error_is_remembered(void **state)
{
    (void)state;
    fail_own();
    lists(3, " 7s.2 ended");
    launch(8, false);
    lists(4, " 7s.2 ended");
    launch(7, false);
    lists(5, "");
}

/* By a launch that meets the verdict, too; and one that is over for another
 * reason is no use of the tag. */
static void test_a_verdict_that_is_met_is_remembered(void **state)
{
    (void)state;
    struct wire_op v = verdict(false, 0, VERDICT_INVALID);
    fail_elsewhere();
    judge(3, &v, 1);
    install(3);
    launch(7, true);
    take(7, pcclOperationFailed);
    launch(7, false);
    take(7, pcclInvalidArgument);
    lists(4, " 7s.2 ended 7.3 ended");
}

/* What began before a call of all cannot be meant after it. */
static void test_a_vote_ends_it(void **state)
{
    (void)state;
    fail_own();
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclSuccess);
    lists(3, " 7s.2 ended");
    hear(&(struct wire_msg){
        .type = WIRE_ANSWER, .round = 1, .vote = {VOTE_UPDATE, 1}});
    session->votes[VOTE_UPDATE] = VOTE_IDLE;
    lists(4, "");
}

/* The last ones of many. */
static void test_many_errors(void **state)
{
    (void)state;
    enum { COUNT = ENDED_MAX + 1 };
    struct wire_op v[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        launch(i, false);
        v[i] = (struct wire_op){.tag = i, .state = VERDICT_FAILED};
    }
    judge(2, v, COUNT);
    install(2);
    judge(3, NULL, 0);
    assert_null(strstr(said, " 0.2 ended"));
    assert_non_null(strstr(said, " 1.2 ended"));
    assert_non_null(strstr(said, " 64.2 ended"));
}

/* A verdict that is kept concerns others only while the tag runs in another
 * scope. */
static void test_what_is_kept_is_listed(void **state)
{
    (void)state;
    fail_elsewhere();
    lists(3, "");
    launch(8, false);
    lists(4, "");
    launch(7, false);
    lists(5, " 7s.2 kept");
    said[0] = '\0';
    session_tick(session, PCCL_S);
    assert_string_equal(said, " 7.0>7s.2 kept");
}

/* What it cannot launch waits for it, in another scope, though it runs
 * nothing. */
static void test_what_is_remembered_is_reported(void **state)
{
    (void)state;
    static struct unexpected came = {.frame = {.tag = 7, .epoch = 2}};
    struct links *n = session->links;
    fail_own();
    struct link *l = link_find(n, 11, true);
    l->unexpected = &came;
    n->unexpected_links = 1;
    said[0] = '\0';
    session_tick(session, PCCL_S);
    assert_string_equal(said, " 7s.2 ended>7.0");
    came.frame.scope = scope_number(scope, 2); /* the next one in its scope */
    said[0] = '\0';
    session_tick(session, 2 * PCCL_S);
    assert_string_equal(said, "");
    l->unexpected = NULL;
    n->unexpected_links = 0;
}

/* It had its error before the others crossed, and has no second one: neither at
 * a launch while the epoch was closed nor at a later one. */
static void test_who_remembers_has_had_its_error(void **state)
{
    (void)state;
    const struct wire_op v[] = {verdict(false, 0, VERDICT_CROSSED),
                                verdict(true, 2, VERDICT_SETTLED)};
    fail_own();
    judge(3, v, 2);
    launch(7, false);
    install(3);
    assert_int_equal(engine_find(session->engine, 7)->phase, PHASE_RUNNING);
    assert_int_equal(session->pending_abort_count, 0);
    lists(4, "");
}

/* Its error was another one. */
static void test_who_remembers_another_keeps_it(void **state)
{
    (void)state;
    const struct wire_op v[] = {verdict(false, 0, VERDICT_CROSSED),
                                verdict(true, 1, VERDICT_SETTLED)};
    fail_own();
    judge(3, v, 2);
    install(3);
    launch(7, false);
    take(7, pcclInvalidArgument);
}

/* It has the error of the circle, and that of the scope no more. */
static void test_who_keeps_has_one_error(void **state)
{
    (void)state;
    const struct wire_op v[] = {verdict(false, 0, VERDICT_CROSSED),
                                verdict(true, 2, VERDICT_SETTLED)};
    fail_elsewhere();
    launch(7, false);
    judge(3, v, 2);
    install(3);
    take(7, pcclInvalidArgument);
    assert_int_equal(session->pending_abort_count, 0);
}

static void test_who_keeps_and_has_not_launched(void **state)
{
    (void)state;
    const struct wire_op v[] = {verdict(false, 0, VERDICT_CROSSED),
                                verdict(true, 2, VERDICT_SETTLED)};
    fail_elsewhere();
    judge(3, v, 2);
    install(3);
    assert_int_equal(session->pending_abort_count, 1);
    launch(7, true);
    take(7, pcclInvalidArgument);
    assert_int_equal(launch(7, false)->phase, PHASE_RUNNING);
}

/* ... or launches what it means just then: that was its error. */
static void test_a_launch_before_install_meets_what_is_settled(void **state)
{
    (void)state;
    const struct wire_op v[] = {verdict(false, 0, VERDICT_CROSSED),
                                verdict(true, 2, VERDICT_SETTLED)};
    fail_elsewhere();
    judge(3, v, 2);
    launch(7, true);
    take(7, pcclOperationFailed);
    install(3);
    assert_int_equal(session->pending_abort_count, 0);
    lists(4, "");
}

/* Whoever launched it meets the loss as well. */
static void test_a_loss_comes_after_what_was_kept(void **state)
{
    (void)state;
    static const uint64_t dead = 12;
    struct wire_msg m = {.type = WIRE_PROPOSE,
                         .epoch = 2,
                         .round = 3,
                         .ids = &dead,
                         .id_count = 1,
                         .view = {.ring = true, .mesh = true}};
    fail_elsewhere();
    hear(&m);
    install(3);
    assert_int_equal(session->pending_abort_count, 1);
    launch(8, false);
    assert_int_equal(session->pending_abort_count, 1);
    launch(7, false);
    assert_int_equal(session->pending_abort_count, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_error_is_remembered),
        TEST(test_a_verdict_that_is_met_is_remembered),
        TEST(test_a_vote_ends_it),
        TEST(test_many_errors),
        TEST(test_what_is_kept_is_listed),
        TEST(test_what_is_remembered_is_reported),
        TEST(test_who_remembers_has_had_its_error),
        TEST(test_who_remembers_another_keeps_it),
        TEST(test_who_keeps_has_one_error),
        TEST(test_who_keeps_and_has_not_launched),
        TEST(test_a_launch_before_install_meets_what_is_settled),
        TEST(test_a_loss_comes_after_what_was_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
