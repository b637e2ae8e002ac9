/* test_session.c - a member's list of operations, and its answers about them
 * (rules F1, F4), the links that it closes when the ring is another
 * one (rule O7), its request that an operation fail, until the master has
 * received it (rule D10), a world that follows its votes (rule T1), and the
 * links that it tries in a survey (rule R4d). */
#include "joined.h"

#include "../../../include/pccl.h"
#include "../../../src/base/grid_shape.h"
#include "../../../src/base/scope.h"
#include "../../../src/base/tree.h"
#include "../../../src/ring/op.h"

static uint32_t beats;

static void on_send(void *user, const struct wire_msg *m)
{
    (void)user;
    beats += m->type == WIRE_HEARTBEAT;
    if (m->type == WIRE_REFRESH && m->fault.cause == REFRESH_FAIL)
        say("epoch %u: fail %d.%u\n", m->epoch, (int)m->fault.tag,
            m->fault.seq);
    if (m->type != WIRE_REPLY && m->type != WIRE_FLUSHED) return;
    if (m->type == WIRE_FLUSHED && m->set_count == 0) return;
    say("%s", wire_type_name(m->type));
    for (uint32_t i = 0; i < m->op_count; i++)
        say(" %d.%u:%u", (int)m->ops[i].tag, m->ops[i].seq, m->ops[i].state);
    for (uint32_t i = 0; i < m->set_count * m->set_size; i++)
        say(" %x", m->sets[i]);
    say("\n");
}

static void on_close(void *user, uint32_t conn)
{
    (void)user;
    say("close %u\n", conn);
}

static int setup(void **state)
{
    (void)state;
    return join(on_send, on_close, &welcome_10);
}

static void launch(uint64_t tag, const uint64_t *scope, uint32_t scope_size)
{
    static uint64_t in, out;
    struct op_request r = {.call.tag = tag,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = &in,
                           .call.recvbuf = &out,
                           .call.members = scope,
                           .call.member_count = scope_size};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = 1;
    r.plan.element = 8;
    struct op *op;
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    assert_int_equal(op->phase, PHASE_RUNNING);
}

/* A middlebox forgets a connection that is idle for a minute, whatever the
 * deadline is (rule M8). */
static void test_no_silence_of_a_minute(void **state)
{
    (void)state;
    links_set_deadline(session->links, 3600 * PCCL_S);
    session_tick(session, session->now + 20 * PCCL_S);
    beats = 0;
    session_tick(session, session->now + 20 * PCCL_S - 1);
    assert_int_equal(beats, 0);
    session_tick(session, session->now + 1);
    assert_int_equal(beats, 1);
}

/* The operations under way, and the members of each scope once, by rank. */
static void test_scopes_are_told_once(void **state)
{
    (void)state;
    static const uint64_t scope[] = {10, 12};
    static const uint64_t other[] = {11, 10};
    launch(7, NULL, 0);
    launch(8, scope, 2);
    launch(9, other, 2);
    launch(6, scope, 2);
    hear(&(struct wire_msg){.type = WIRE_FLUSH, .epoch = 1, .round = 2});
    assert_string_equal(said, "FLUSHED 7.0:1 8.0:1 9.0:1 6.0:1 5 3\n");
}

static void test_only_what_was_asked_for_is_told(void **state)
{
    (void)state;
    static const uint64_t scope[] = {10, 12};
    struct wire_op asked[] = {{.scope = scope_number(scope, 2), .tag = 8},
                              {.tag = 9}};
    launch(8, scope, 2);
    hear(&(struct wire_msg){
        .type = WIRE_QUERY, .epoch = 1, .ops = asked, .op_count = 2});
    assert_string_equal(said, "REPLY 8.0:1 9.0:0\n");
}

/* Member 13 joins 10, 11 and 12 without a mesh, in the order given. */
static void propose(uint32_t round, bool optimize, const uint16_t *order)
{
    static const uint64_t none[1];
    hear(&(struct wire_msg){.type = WIRE_PROPOSE,
                            .epoch = 1,
                            .round = round,
                            .ids = none,
                            .members = members + 3,
                            .member_count = 1,
                            .order = order,
                            .order_count = order ? 4 : 0,
                            .view = {.ring = true, .optimize = optimize}});
}

/* Rule O7. Otherwise the links that were dialed for the old ring or for probes
 * stay. */
static void test_an_optimization_closes_what_the_new_ring_lacks(void **state)
{
    (void)state;
    static const uint16_t order[] = {0, 2, 1, 3};
    propose(2, false, NULL);
    assert_string_equal(said, ""); /* 12 may be needed until INSTALL */
    propose(3, true, NULL);
    assert_string_equal(said, "close 2\n");
    said[0] = '\0';
    propose(4, true, order);
    assert_string_equal(said, "close 1\n");
}

/* Rule D17a: the links of the tree are made before its first operation. */
static void test_the_tree_is_linked(void **state)
{
    (void)state;
    static const uint64_t none[1];
    static struct wire_member more[9];
    for (uint32_t i = 0; i < 9; i++) more[i].id = 13 + i;
    hear(&(struct wire_msg){.type = WIRE_PROPOSE,
                            .epoch = 1,
                            .round = 2,
                            .ids = none,
                            .members = more,
                            .member_count = 9,
                            .view = {.ring = true, .tree = true}});
    struct tree_node root;
    uint32_t size, wanted = 0;
    tree_find(12, 0, 0, &root);
    for (uint32_t i = 0; i < root.children; i++) {
        uint64_t id = 10 + tree_child(&root, i, &size);
        const struct link *l = link_find(session->links, id, false);
        assert_true(l && l->wanted);
    }
    for (uint32_t i = 1; i < 12; i++) {
        const struct link *l = link_find(session->links, 10 + i, false);
        wanted += l && l->wanted;
    }
    /* The next one in the ring is the first child, the last one is none. */
    assert_int_equal(wanted, root.children + 1);
}

/* Rule D20a: likewise those of the grid, beside those of the tree and of the
 * ring. */
static void test_the_grid_is_linked(void **state)
{
    static struct wire_member more[9];
    bool expected[12] = {[1] = true, [11] = true};
    struct grid_node node;
    struct tree_node root;
    uint32_t size;
    (void)state;
    for (uint32_t i = 0; i < 9; i++) more[i].id = 13 + i;
    hear(
        &(struct wire_msg){.type = WIRE_PROPOSE,
                           .epoch = 1,
                           .round = 2,
                           .ids = (const uint64_t[]){0},
                           .members = more,
                           .member_count = 9,
                           .view = {.ring = true, .tree = true, .grid = true}});
    grid_find(12, 0, &node);
    tree_find(12, 0, 0, &root);
    for (uint32_t i = 0; i < grid_partners(&node); i++)
        expected[grid_partner(&node, i)] = true;
    for (uint32_t i = 0; i < root.children; i++)
        expected[tree_child(&root, i, &size)] = true;
    for (uint32_t i = 1; i < 12; i++) {
        const struct link *l = link_find(session->links, 10 + i, false);
        assert_int_equal(l && l->wanted, expected[i]);
    }
}

/* Rule T1: what the program did not vote for does not become its world. */
static void installed_without_a_vote(bool update, bool optimize)
{
    propose(2, false, NULL);
    hear(&(struct wire_msg){
        .type = WIRE_INSTALL,
        .round = 2,
        .view = {.ring = true, .update = update, .optimize = optimize}});
    assert_int_equal(session->state, SESSION_GONE);
    assert_int_equal(session->notified.view->size, 3);
    assert_string_equal(session->reason, "the master installed a view without "
                                         "this member's vote");
}

static void test_no_members_without_an_update(void **state)
{
    (void)state;
    installed_without_a_vote(false, false);
}

static void test_no_update_without_a_vote(void **state)
{
    (void)state;
    assert_int_equal(session_vote(session, VOTE_OPTIMIZE), pcclSuccess);
    installed_without_a_vote(true, false);
}

static void test_no_optimization_without_a_vote(void **state)
{
    (void)state;
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclSuccess);
    installed_without_a_vote(false, true);
}

/* Rule R4d. In a ring of seven, distances 1 and 2 leave out places 3 and 4. */
static void test_a_survey_tries_all_pairs(void **state)
{
    (void)state;
    static const struct wire_relay relay = {0, 3, 1};
    for (uint32_t k = 0; k < 2; k++) {
        hear(&(struct wire_msg){.type = WIRE_PROPOSE,
                                .epoch = 1,
                                .round = 2 + k,
                                .ids = (const uint64_t[]){0},
                                .members = members + 3,
                                .member_count = 4,
                                .relays = &relay,
                                .relay_count = 1,
                                .view = {.ring = true, .survey = k == 1}});
        for (uint32_t i = 1; i < 7; i++)
            assert_true(links_is_wanted(session->links, 10 + i) ==
                        (i == 1 || i == 6 || (k == 1 && i != 3)));
    }
}

static void test_an_update_with_a_vote(void **state)
{
    (void)state;
    assert_int_equal(session_vote(session, VOTE_UPDATE), pcclSuccess);
    propose(2, false, NULL);
    hear(&(struct wire_msg){.type = WIRE_INSTALL,
                            .round = 2,
                            .view = {.ring = true, .update = true}});
    assert_int_equal(session->state, SESSION_MEMBER);
    assert_int_equal(session->notified.view->size, 4);
}

/* Rule M10c: the master judges whom it does not hear; the link to another one
 * has its time. */
static void test_a_link_to_a_silent_one_has_time(void **state)
{
    (void)state;
    const uint64_t silent = 11;
    pccl_ns now = PCCL_S;
    session_tick(session, now);
    propose(2, false, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        session_tick(session, now += PCCL_S / 20);
        hear(&(struct wire_msg){
            .type = WIRE_SILENT, .ids = &silent, .id_count = 1});
    }
    assert_int_equal(links_status(session->links, 11), LINK_WAITS);
    assert_int_equal(links_status(session->links, 13), LINK_FAILED);
}

/* Arguments that were made for another view than the one that the program knows
 * are refused before anything is sent; a scope has members, not a view. */
static void test_arguments_of_another_view(void **state)
{
    (void)state;
    static const uint64_t scope[] = {10, 12};
    static uint64_t in, out;
    struct op_request r = {.call.tag = 5,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = &in,
                           .call.recvbuf = &out};
    struct op *op = NULL;
    r.plan.coll = COLL_BARRIER;
    uint64_t now = session->notified.view->epoch;
    assert_int_equal(session_launch(session, &r, now + 1, &op),
                     pcclRankConnectionLost);
    assert_null(op);
    assert_false(session_fast(session, &r, now + 1));
    assert_int_equal(session_launch(session, &r, now, &op), pcclSuccess);
    r.call.tag = 6;
    r.call.members = scope;
    r.call.member_count = 2;
    assert_int_equal(session_launch(session, &r, now + 1, &op), pcclSuccess);
}

/* Of the same members, with one verdict if there is any. */
/* Rule F8: another member has lied that it has the result of this operation, so
 * it cannot be committed here. It ends, and nothing else. */
static void test_a_commit_of_what_is_not_complete(void **state)
{
    (void)state;
    launch(7, NULL, 0);
    struct wire_op commit = {.tag = 7, .state = VERDICT_COMMIT};
    launch(8, NULL, 0);
    next_epoch(2, &commit);
    assert_int_equal(session->state, SESSION_MEMBER);
    const struct op *op = engine_find(session->engine, 7);
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(op->result, pcclInternalError);
    op = engine_find(session->engine, 8);
    assert_int_equal(op->phase, PHASE_RUNNING);
}

/* Rule D10: the report may cross a flush, and then its epoch is over. The
 * operation starts again, and so does the report, until the verdict comes.
 * Verdicts on other operations do not affect it. */
static void test_a_failure_is_reported_again(void **state)
{
    (void)state;
    launch(7, NULL, 0);
    launch(8, NULL, 0);
    assert_int_equal(session_fail(session, 7), pcclSuccess);
    assert_string_equal(said, "epoch 1: fail 7.0\n");
    for (uint32_t round = 2; round < 4; round++) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "epoch %u: fail 7.0\n",
                       round);
        said[0] = '\0';
        next_epoch(round, NULL);
        assert_string_equal(said, expected);
    }
    said[0] = '\0';
    next_epoch(4, &(struct wire_op){.tag = 7, .state = VERDICT_FAILED});
    assert_string_equal(said, "");
    const struct op *op = engine_find(session->engine, 7);
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(op->result, pcclOperationFailed);
    op = engine_find(session->engine, 8);
    assert_int_equal(op->phase, PHASE_RUNNING);
}

/* Rules F6, P1: scope {10, 11} disagreed on tag 7. This member has a part in
 * it, and in two other scopes that use the tag. */
static void test_a_verdict_belongs_to_its_scope(void **state)
{
    (void)state;
    static const uint64_t scope[] = {10, 11};
    static const uint64_t other[] = {10, 12};
    struct wire_op v = {
        .scope = scope_number(scope, 2), .tag = 7, .state = VERDICT_INVALID};
    launch(7, other, 2);
    next_epoch(2, &v);
    struct op *op = engine_find(session->engine, 7);
    assert_int_equal(op->phase, PHASE_RUNNING);
    engine_release(session->engine, op);
    launch(7, NULL, 0);
    engine_release(session->engine, engine_find(session->engine, 7));
    struct op_request r = {
        .call.tag = 7, .call.members = scope, .call.member_count = 2};
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(op->result, pcclInvalidArgument);
}

static void lose(uint32_t round, uint64_t id)
{
    struct wire_msg m = {.type = WIRE_PROPOSE,
                         .epoch = round - 1,
                         .round = round,
                         .ids = &id,
                         .id_count = 1,
                         .view = {.ring = true, .mesh = true}};
    hear(&m);
    m.type = WIRE_INSTALL;
    hear(&m);
}

/* Rule P1: the loss is older than the verdict, so the launch meets it first,
 * as it did where the operation was launched in time. */
static void test_an_older_loss_comes_first(void **state)
{
    (void)state;
    struct op_request r = {.call.tag = 7};
    struct wire_op v = {.tag = 7, .state = VERDICT_FAILED};
    lose(2, 12);
    next_epoch(3, &v);
    static const int results[] = {pcclRankConnectionLost, pcclOperationFailed};
    for (uint32_t i = 0; i < ARRAY_COUNT(results); i++) {
        struct op *op;
        uint32_t contributors;
        uint64_t tx, rx;
        assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
        assert_int_equal(session_take(session, op, &contributors, &tx, &rx),
                         results[i]);
    }
}

/* Rule F6b: once the program knows a loss, nobody launches what the others
 * launched before they knew it. */
static void test_a_verdict_is_over_with_a_loss(void **state)
{
    (void)state;
    static const uint64_t scope[] = {10, 11};
    struct op_request r = {.call.tag = 7}, other = {.call.tag = 8};
    struct wire_op v[] = {
        {.tag = 7, .state = VERDICT_FAILED},
        {scope_number(scope, 2), 7, 0, VERDICT_FAILED, false}};
    uint32_t contributors;
    uint64_t tx, rx;
    struct op *op;
    next_epoch(2, &v[0]);
    next_epoch(3, &v[1]);
    lose(4, 12);
    next_epoch(5, &v[0]);
    assert_int_equal(session_launch(session, &other, 0, &op), pcclSuccess);
    assert_int_equal(session->pending_abort_count, 3);
    assert_int_equal(session_take(session, op, &contributors, &tx, &rx),
                     pcclRankConnectionLost);
    assert_int_equal(session->pending_abort_count, 2);
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    assert_int_equal(op->result, pcclOperationFailed);
    assert_int_equal(session->pending_abort_count, 1);
}

/* Rule T2: up to the loss that the operation met, and no further. */
static void test_a_loss_is_that_of_its_operation(void **state)
{
    (void)state;
    uint32_t contributors;
    uint64_t tx, rx;
    launch(7, NULL, 0);
    lose(2, 12);
    lose(3, 11);
    assert_int_equal(session_take(session, engine_find(session->engine, 7),
                                  &contributors, &tx, &rx),
                     pcclRankConnectionLost);
    assert_int_equal(session->notified.view->size, 2);
    assert_int_equal(session->notified.loss_count, 1);
}

/* Rule F6: the round may begin again before INSTALL. */
static void test_a_verdict_waits_for_install(void **state)
{
    (void)state;
    static uint64_t in, out;
    struct wire_op v = {.tag = 7, .state = VERDICT_INVALID};
    struct op_request r = {
        .call.tag = 7, .call.sendbuf = &in, .call.recvbuf = &out};
    struct op *op;
    static const uint64_t none[1];
    struct wire_msg m = {.type = WIRE_PROPOSE,
                         .epoch = 1,
                         .round = 2,
                         .ids = none,
                         .ops = &v,
                         .op_count = 1,
                         .view = {.ring = true, .mesh = true}};
    hear(&m);
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    assert_int_equal(op->phase, PHASE_QUEUED);
    m.type = WIRE_VERDICT;
    hear(&m);
    assert_int_equal(op->phase, PHASE_QUEUED);
    m.type = WIRE_INSTALL;
    hear(&m);
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(op->result, pcclInvalidArgument);
}

/* Rule M9: nobody tells it that it is out, and it lacks its links. */
static void test_without_master_and_links(void **state)
{
    (void)state;
    pccl_ns now = PCCL_S;
    launch(7, NULL, 0);
    session_tick(session, now);
    session_master_gone(session, "cut");
    assert_int_equal(session->state, SESSION_MEMBER);
    for (uint32_t i = 0; i < 20; i++) session_tick(session, now += PCCL_S / 20);
    assert_int_equal(session->state, SESSION_GONE);
    assert_int_equal(engine_find(session->engine, 7)->result,
                     pcclMasterConnectionFailed);
}

/* ... or it waits for the round that it has asked for. */
static void test_without_master_after_a_fault(void **state)
{
    (void)state;
    launch(7, NULL, 0);
    assert_int_equal(session_fail(session, 7), pcclSuccess);
    session_master_gone(session, "cut");
    assert_int_equal(session->state, SESSION_GONE);
}

/* None is dropped, however many there are. */
static void test_many_verdicts_wait(void **state)
{
    (void)state;
    enum { VERDICTS = 1000 };
    struct op *op;
    for (uint32_t i = 0; i < VERDICTS; i++) {
        struct wire_op v = {.tag = i, .state = VERDICT_FAILED};
        next_epoch(2 + i, &v);
    }
    for (uint32_t i = 0; i < VERDICTS; i++) {
        struct op_request r = {.call.tag = i};
        assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
        assert_int_equal(op->result, pcclOperationFailed);
        engine_release(session->engine, op);
    }
    launch(0, NULL, 0);
    assert_int_equal(session->pending_abort_count, 0);
}

static void set_world(const struct view *v, uint32_t world)
{
    ((struct view *)(uintptr_t)v)->world = world;
}

/* By the world that the program knows, and not for scopes. */
static void test_too_few_members(void **state) /* M14b */
{
    (void)state;
    static const uint64_t scope[] = {10, 12};
    static uint64_t x;
    struct op_request r = {
        .call.tag = 9,
        .call.dtype = DTYPE_U64,
        .call.redop = REDOP_SUM,
        .call.sendbuf = &x,
        .call.recvbuf = &x,
        .plan = {.coll = COLL_ALLREDUCE, .count = 1, .element = 8}};
    struct op *op;
    uint64_t bytes;
    uint32_t count;
    session->minimum = 3;
    next_epoch(2, NULL); /* the program knows the view before */
    set_world(session->notified.view, 3);
    set_world(session->view, 2); /* another group has lost one */
    launch(7, NULL, 0);
    set_world(session->notified.view, 2);
    set_world(session->view, 3);
    launch(8, scope, 2);
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(session_take(session, op, &count, &bytes, &bytes),
                     pcclTooFewPeers);
    session->goes_on = true;
    launch(9, NULL, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_no_silence_of_a_minute),
        TEST(test_scopes_are_told_once),
        TEST(test_only_what_was_asked_for_is_told),
        TEST(test_an_optimization_closes_what_the_new_ring_lacks),
        TEST(test_a_survey_tries_all_pairs),
        TEST(test_the_tree_is_linked),
        TEST(test_the_grid_is_linked),
        TEST(test_no_members_without_an_update),
        TEST(test_no_update_without_a_vote),
        TEST(test_no_optimization_without_a_vote),
        TEST(test_a_link_to_a_silent_one_has_time),
        TEST(test_arguments_of_another_view),
        TEST(test_an_update_with_a_vote),
        TEST(test_a_failure_is_reported_again),
        TEST(test_a_commit_of_what_is_not_complete),
        TEST(test_a_verdict_belongs_to_its_scope),
        TEST(test_an_older_loss_comes_first),
        TEST(test_a_verdict_is_over_with_a_loss),
        TEST(test_a_loss_is_that_of_its_operation),
        TEST(test_a_verdict_waits_for_install),
        TEST(test_without_master_and_links),
        TEST(test_without_master_after_a_fault),
        TEST(test_many_verdicts_wait),
        TEST(test_too_few_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
