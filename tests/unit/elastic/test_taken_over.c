/* test_taken_over.c - a member whose coordinator has died, and the next one
 * comes or does not (rules H1, H2, H6, H8), and the record that it keeps (H10,
 * H13). The coordinator's side: test_succession, test_fence.
 */
#include "joined.h"

#include "../../../include/pccl.h"
#include "../../../src/base/wire_resume.h"

static void on_send(void *user, const struct wire_msg *m)
{
    (void)user;
    switch (m->type) {
    case WIRE_RESUME:
        say("RESUME %u.%u.%u. ", (unsigned)m->resume.id,
            (unsigned)m->resume.secret.word[1], (unsigned)m->resume.term);
        if (m->resume.sync_over > 0)
            say("sync %u over, %u well. ", (unsigned)m->resume.sync_over,
                (unsigned)m->resume.sync_well);
        if (m->resume.claimed > 0)
            say("claimed %u. ", (unsigned)m->resume.claimed);
        return;
    case WIRE_VOTE:
        say("VOTE %u.%u. ", m->vote.kind, m->round);
        return;
    case WIRE_SYNC:
        say("SYNC%s. ", m->sync.again ? " again" : "");
        return;
    case WIRE_KEPT:
        say("KEPT %u.%u. ", (unsigned)m->keep.name.term,
            (unsigned)m->keep.name.seq);
        return;
    case WIRE_CLAIM:
        say("CLAIM %u. ", (unsigned)m->keep.name.term);
        return;
    case WIRE_KEEP:
        say("KEEP %u.%u %.*s. ", (unsigned)m->keep.name.term,
            (unsigned)m->keep.name.seq, (int)m->keep.size,
            (const char *)m->keep.bytes);
        return;
    case WIRE_HEARTBEAT:
        return;
    default:
        say("%s. ", wire_type_name(m->type));
    }
}

/* The grace is of 5 seconds, the term 4. */
static int setup(void **state)
{
    (void)state;
    struct wire_msg welcome = {
        .type = WIRE_WELCOME,
        .welcome = {
            .id = 10, .term = 4, .grace_ms = 5000, .secret = {{3, 77}}}};
    int failed = join(on_send, NULL, &welcome);
    said[0] = '\0';
    return failed;
}

static void resumed(uint64_t term)
{
    hear(&(struct wire_msg){
        .type = WIRE_RESUMED,
        .resume = {.id = 10, .term = term, .grace_ms = 5000}});
}

static void lose(void)
{
    session_master_gone(session, "it broke");
    assert_int_equal(session->state, SESSION_MEMBER);
    assert_true(session_may_resume(session));
}

static void test_what_waits_is_asked_again(void **state)
{
    (void)state;
    assert_int_equal(session_vote(session, VOTE_PENDING), pcclSuccess);
    expect("VOTE 1.1. ");
    lose();
    session_resume(session);
    assert_false(session_may_resume(session));
    expect("RESUME 10.77.4. ");
    resumed(5);
    expect("VOTE 1.1. RESUME 10.77.5. ");
    assert_false(session->master_lost);
    hear(&(struct wire_msg){.type = WIRE_ANSWER, .round = 1, .vote = {1, 1}});
    assert_int_equal(session->votes[VOTE_PENDING], VOTE_ANSWERED);
}

static const uint64_t none[1];

static void propose(struct wire_msg *view)
{
    *view = (struct wire_msg){.type = WIRE_PROPOSE,
                              .round = 2,
                              .epoch = 1,
                              .ids = none,
                              .view = {.ring = true, .mesh = true}};
    hear(view);
    assert_int_equal(session_vote(session, VOTE_PENDING), pcclSuccess);
}

/* The next coordinator is to install that view. */
static void resumed_to_install(struct wire_msg *view)
{
    lose();
    session_resume(session);
    hear(&(struct wire_msg){
        .type = WIRE_RESUMED,
        .resume = {.id = 10, .term = 5, .grace_ms = 5000, .installs = true}});
    view->type = WIRE_INSTALL;
}

/* The INSTALL of a will comes without the answers that went before it: a member
 * that waits for one still says that it lacks it. */
static void test_a_will_answers_no_vote(void **state)
{
    (void)state;
    static struct state_list list;
    struct wire_msg view;
    propose(&view);
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    resumed_to_install(&view);
    for (int i = 0; i < VOTE_KIND_COUNT; i++) view.view.answered[i] = 7;
    view.view.synced = 9;
    hear(&view);
    assert_int_equal(session->view->epoch, 2);
    assert_int_equal(session->answered[VOTE_PENDING], 0);
    assert_int_equal(session->answered[VOTE_UPDATE], 7);
    assert_true(session->sync_ended == 0);
    assert_true(session->sync_over == 9);
}

/* ... and it may be older than an answer that the member has taken: numbers do
 * not fall (universe 1513501 of kind masters). */
static void test_a_will_sets_no_number_back(void **state)
{
    (void)state;
    struct wire_msg view;
    propose(&view);
    hear(&(struct wire_msg){.type = WIRE_ANSWER, .round = 7, .vote = {1, 1}});
    session->votes[VOTE_PENDING] = VOTE_IDLE; /* the program has taken it */
    resumed_to_install(&view);
    view.view.answered[VOTE_PENDING] = 6;
    hear(&view);
    assert_int_equal(session->view->epoch, 2);
    assert_int_equal(session->answered[VOTE_PENDING], 7);
    assert_int_equal(session->answered_flag[VOTE_PENDING], 1);
}

/* A call that begins while there is no coordinator waits for the next one. */
static void test_what_begins_in_the_gap_waits(void **state)
{
    (void)state;
    static struct state_list list;
    lose();
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    expect("");
    session_resume(session);
    resumed(5);
    expect("RESUME 10.77.4. SYNC again. RESUME 10.77.5. ");
    session_leave(session);
    expect("LEAVE. ");
}

/* Member 10 is to receive from 11. */
static void begin_to_receive(void)
{
    static struct state_list list;
    static const uint64_t ids[] = {11, 10};
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    hear(&(struct wire_msg){.type = WIRE_STATE,
                            .ids = ids,
                            .id_count = 2,
                            .sync = {.id = 8,
                                     .content = 55,
                                     .role = SYNC_RECEIVE,
                                     .holders = 1,
                                     .receivers = 1}});
    assert_int_equal(session->sync_state.phase, STATE_MOVING);
    said[0] = '\0';
}

/* What it has is neither its own state nor the elected one until all is here:
 * it must not be elected. Where nobody gives the rest its call fails. */
static void test_a_receiver_asks_when_it_has_all(void **state)
{
    (void)state;
    begin_to_receive();
    session->sync_state.hashes_known = true;
    lose();
    session_resume(session);
    resumed(5);
    assert_null(strstr(said, "SYNC"));
    session_tick(session, 4 * PCCL_S);
    assert_int_equal(session->sync, SYNC_OVER);
    assert_int_equal(session->sync_result, pcclNoSharedStateAvailable);
    assert_null(strstr(said, "SYNC again"));
}

/* Who gives its state asks again meanwhile, and may be refused as anybody. */
static void test_who_gives_can_be_refused(void **state)
{
    (void)state;
    static struct state_list list;
    static const uint64_t ids[] = {10, 11};
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    struct wire_msg m = {.type = WIRE_STATE, .ids = ids, .id_count = 2};
    m.sync.id = 8;
    m.sync.role = SYNC_WAIT;
    m.sync.holders = m.sync.receivers = 1;
    hear(&m);
    lose();
    session_resume(session);
    resumed(5);
    assert_non_null(strstr(said, "SYNC again"));
    assert_int_equal(session->sync_state.phase, STATE_MOVING);
    hear(
        &(struct wire_msg){.type = WIRE_STATE, .sync = {.role = SYNC_CROSSED}});
    assert_int_equal(session->sync, SYNC_OVER);
    assert_int_equal(session->sync_result, pcclInvalidUsage);
}

/* ... and so it may be by a verdict (F6), until there are lists for it. */
static void test_who_gives_can_have_a_verdict(void **state)
{
    (void)state;
    static struct state_list list;
    static const uint64_t ids[] = {10, 11};
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    struct wire_msg m = {.type = WIRE_STATE, .ids = ids, .id_count = 2};
    m.sync.id = 8;
    m.sync.role = SYNC_WAIT;
    m.sync.holders = m.sync.receivers = 1;
    hear(&m);
    lose();
    session_resume(session);
    resumed(5);
    struct wire_op v = {.tag = 7, .state = VERDICT_USAGE};
    for (uint32_t round = 2; round < 4; round++) {
        m.sync.id++;
        if (round == 2) hear(&m); /* and asks the next coordinator */
        next_epoch(round, &v);
        assert_int_equal(session->sync, round == 2 ? SYNC_ASKED : SYNC_OVER);
        if (round == 3) break;
        lose();
        session_resume(session);
        resumed(6);
    }
    assert_int_equal(session->sync_result, pcclInvalidUsage);
}

static void answer_sync(uint64_t id, enum sync_role role)
{
    static struct state_list list;
    assert_int_equal(session_sync(session, &list, SYNC_ENFORCE_POPULAR, 1),
                     pcclSuccess);
    hear(&(struct wire_msg){.type = WIRE_STATE,
                            .sync = {.id = id, .role = (uint8_t)role}});
    assert_int_equal(session->sync, SYNC_OVER);
    uint64_t revision, tx, rx;
    session_sync_take(session, &revision, &tx, &rx);
}

/* A refusal ends its own call: the others may still be in that one, and the
 * state that it had from the last one is still the run's. */
static void test_a_refusal_ends_no_synchronization(void **state)
{
    (void)state;
    answer_sync(8, SYNC_COMPLETE);
    answer_sync(9, SYNC_MIXED);
    answer_sync(10, SYNC_AHEAD);
    lose();
    said[0] = '\0';
    session_resume(session);
    expect("RESUME 10.77.4. sync 8 over, 8 well. ");
    resumed(5);
    answer_sync(11, SYNC_NO_STATE);
    session_master_gone(session, "again");
    said[0] = '\0';
    session_resume(session);
    expect("RESUME 10.77.5. sync 11 over, 8 well. ");
}

/* The lists may have reached no holder, which would then never serve. */
static void test_who_has_received_nothing_asks_at_once(void **state)
{
    (void)state;
    begin_to_receive();
    lose();
    session_resume(session);
    resumed(5);
    assert_non_null(strstr(said, "SYNC again"));
    assert_int_equal(session->sync_state.phase, STATE_VOTED);
}

static void test_nobody_else_is_heard_in_the_gap(void **state)
{
    (void)state;
    lose();
    session_resume(session);
    said[0] = '\0';
    hear(&(struct wire_msg){.type = WIRE_FLUSH, .round = 2, .epoch = 1});
    expect("");
    resumed(5);
    said[0] = '\0';
    hear(&(struct wire_msg){.type = WIRE_FLUSH, .round = 2, .epoch = 1});
    expect("FLUSHED. ");
}

static void test_an_earlier_term_is_refused(void **state)
{
    (void)state;
    lose();
    session_resume(session);
    resumed(4);
    assert_int_equal(session->state, SESSION_GONE);
    assert_non_null(strstr(session->reason, "earlier term"));
}

/* A record of few bytes, in one part. */
static void keep(uint64_t term, uint64_t seq, const char *text)
{
    struct wire_msg msg;
    uint32_t size = (uint32_t)strlen(text);
    uint32_t next = wire_record_part(&msg, (struct wire_record_name){term, seq},
                                     (const uint8_t *)text, size, 0);
    assert_int_equal(next, size);
    hear(&msg);
}

static void test_the_latest_record_is_kept(void **state)
{
    (void)state;
    keep(20, 5, "later");
    expect("KEPT 20.5. ");
    keep(20, 4, "earlier");
    keep(4, 9, "of an earlier term");
    expect("");
    struct wire_msg get = {.type = WIRE_KEEP_GET};
    get.keep.name = (struct wire_record_name){20, 5};
    hear(&get);
    expect("KEEP 20.5 later. ");
    keep(20, 6, "latest");
    expect("KEPT 20.6. ");
    hear(&get);
    expect("KEEP 20.6 latest. ");
}

/* Whoever has reported may not come back; the next one knows none of them. */
static void test_what_was_told_of_samples_is_forgotten(void **state)
{
    (void)state;
    struct wire_msg m = {.type = WIRE_SAMPLES};
    m.samples.step = 2;
    m.samples.count = 55;
    m.samples.reached = true;
    hear(&m);
    assert_int_equal(sample_look(&session->samples).count, 55);
    lose();
    session_resume(session);
    assert_true(sample_look(&session->samples).known);
    resumed(5);
    assert_false(sample_look(&session->samples).known);
}

static void claim(uint64_t term)
{
    struct wire_msg msg = {.type = WIRE_CLAIM};
    msg.keep.name.term = term;
    hear(&msg);
}

/* Whoever has claimed this member may have taken others over since. */
static void test_a_claim_is_remembered(void **state)
{
    (void)state;
    lose();
    session_resume(session);
    said[0] = '\0';
    claim(20);
    claim(20);
    claim(19);
    expect("CLAIM 20. ");
    keep(19, 5, "of an earlier term");
    expect("");
    session_master_gone(session, "again");
    session_resume(session);
    expect("RESUME 10.77.4. claimed 20. ");
    resumed(19);
    assert_int_equal(session->state, SESSION_GONE);
}

/* So does its record, where the claim itself has not come. */
static void test_a_record_claims(void **state)
{
    (void)state;
    lose();
    session_resume(session);
    said[0] = '\0';
    keep(20, 5, "claimed");
    claim(20);
    expect("KEPT 20.5. ");
    resumed(19);
    assert_int_equal(session->state, SESSION_GONE);
}

static void test_the_grace_ends(void **state)
{
    (void)state;
    lose();
    session_tick(session, 4 * PCCL_S);
    assert_int_equal(session->state, SESSION_MEMBER);
    session_tick(session, 6 * PCCL_S);
    assert_int_equal(session->state, SESSION_GONE);
    assert_non_null(strstr(session->reason, "no coordinator has come"));
}

/* Losing the next one, too, before it has answered gives no more time. */
static void test_the_grace_begins_once(void **state)
{
    (void)state;
    lose();
    session_tick(session, 4 * PCCL_S);
    session_resume(session);
    session_master_gone(session, "it broke, too");
    assert_true(session_may_resume(session));
    session_tick(session, 6 * PCCL_S);
    assert_int_equal(session->state, SESSION_GONE);
}

static int partial(uint64_t tag, struct partial_call **call)
{
    static const float in[4];
    static float out[4];
    struct partial_request r = {.tag = tag,
                                .count = 4,
                                .dtype = DTYPE_F32,
                                .redop = REDOP_SUM,
                                .weight = 1,
                                .deadline_ms = 1000,
                                .send = (const uint8_t *)in,
                                .recv = (uint8_t *)out};
    return session_partial(session, &r, call);
}

/* Takes the call, which has ended. */
static int result_of(struct partial_call *call)
{
    const char *text;
    assert_int_equal(call->phase, PARTIAL_DONE);
    int result = session_partial_result(session, call, &text);
    if (result == pcclInvalidUsage)
        assert_non_null(strstr(text, "the coordinator was lost"));
    session_partial_take(session, call);
    return result;
}

/* A round may have ended well elsewhere: a member that cannot know it is told
 * so, once for each tag, be it in a call or not. */
static void test_averages_that_may_be_missed(void **state)
{
    (void)state;
    struct partial_call *one, *two, *three;
    assert_int_equal(partial(1, &one), pcclSuccess);
    expect("PARTIAL. ");
    lose();
    assert_int_equal(result_of(one), pcclInvalidUsage);
    assert_int_equal(partial(1, &two), pcclSuccess);   /* of the next one */
    assert_int_equal(partial(2, &three), pcclSuccess); /* never used before */
    session_resume(session);
    resumed(5);
    session_master_gone(session, "the next one broke, too");
    assert_int_equal(result_of(two), pcclInvalidUsage);
    assert_int_equal(result_of(three), pcclInvalidUsage);
    assert_int_equal(partial(1, &one), pcclSuccess);
    session_master_gone(session, "again");
    session_resume(session);
    resumed(6);
    session_master_gone(session, "and again");
    assert_int_equal(result_of(one), pcclInvalidUsage);
    assert_int_equal(partial(2, &two), pcclSuccess);
    assert_int_equal(result_of(two), pcclInvalidUsage); /* not in a call then */
    assert_int_equal(partial(2, &two), pcclSuccess);
    assert_int_equal(two->phase, PARTIAL_CALLED);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_what_waits_is_asked_again),
        CASE(test_a_will_answers_no_vote),
        CASE(test_a_will_sets_no_number_back),
        CASE(test_what_begins_in_the_gap_waits),
        CASE(test_a_receiver_asks_when_it_has_all),
        CASE(test_who_has_received_nothing_asks_at_once),
        CASE(test_who_gives_can_be_refused),
        CASE(test_who_gives_can_have_a_verdict),
        CASE(test_a_refusal_ends_no_synchronization),
        CASE(test_nobody_else_is_heard_in_the_gap),
        CASE(test_an_earlier_term_is_refused),
        CASE(test_the_latest_record_is_kept),
        CASE(test_what_was_told_of_samples_is_forgotten),
        CASE(test_a_claim_is_remembered),
        CASE(test_a_record_claims),
        CASE(test_the_grace_ends),
        CASE(test_the_grace_begins_once),
        CASE(test_averages_that_may_be_missed),
    };
    return cmocka_run_group_tests_name("elastic/taken_over", tests, NULL, NULL);
}
