/* test_master.c - the coordinator's rules as transcripts: the messages that
 * each member gets after each event. Rule numbers:
 * see src/README.md. */
#include "founded.h"

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    if (m->type == WIRE_HEARTBEAT || m->type == WIRE_SILENT) return;
    for (uint32_t i = 0; i < count; i++) {
        say("%u %s", links[i], wire_type_name(m->type));
        if (m->type == WIRE_WELCOME) say(" id=%d", (int)m->welcome.id);
        if (m->type == WIRE_DIAL_REQUEST) say(" from %d", (int)m->call.peer);
        if (m->type == WIRE_ANSWER) say(" %u=%u", m->vote.kind, m->vote.flag);
        if (m->type == WIRE_PROPOSE)
            say(" r%u -%u +%u", m->round, m->id_count, m->member_count);
        if (m->type == WIRE_INSTALL)
            say(" r%u world=%u", m->round, m->view.world);
        if (m->type == WIRE_INSTALL && m->view.traits)
            say(" traits=%u", m->view.traits);
        if (m->type == WIRE_FLUSH) say(" r%u dead=%u", m->round, m->id_count);
        for (uint32_t k = 0; k < m->op_count; k++)
            say(" %d.%u:%u", (int)m->ops[k].tag, m->ops[k].seq,
                m->ops[k].state);
        say("\n");
    }
}

static char closed_for[WIRE_TEXT_MAX];

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    (void)snprintf(closed_for, sizeof closed_for, "%s", reason);
    say("%u closed\n", link);
}

static uint32_t calls; /* rule V1: a later one has a higher number */

#define CONNECT(link) step(MASTER_CONNECTED, link, NULL)
#define CLOSED(link, text) (step(MASTER_CLOSED, link, NULL), expect(text))
#define TICK(text) (step(MASTER_TICK, 0, NULL), expect(text))
#define SEND(link, text, ...)                                                  \
    do {                                                                       \
        struct wire_msg msg_ = {__VA_ARGS__};                                  \
        step(MASTER_RECEIVED, link, &msg_);                                    \
        expect(text);                                                          \
    } while (0)
#define HELLO(link, text, ...)                                                 \
    SEND(link, text, .type = WIRE_HELLO, .hello = {__VA_ARGS__})
#define VOTE(link, k, text)                                                    \
    SEND(link, text, .type = WIRE_VOTE, .round = ++calls, .vote = {.kind = k})
#define READY(link, r, text) SEND(link, text, .type = WIRE_READY, .round = r)
#define OPS(t, link, r, text, ...)                                             \
    do {                                                                       \
        struct wire_op ops_[] = {__VA_ARGS__};                                 \
        SEND(link, text, .type = t, .round = r,                                \
             .epoch = master->groups[0].epoch, .ops = ops_,                    \
             .op_count = sizeof ops_ / sizeof ops_[0]);                        \
    } while (0)
#define FLUSHED(link, r, text, ...)                                            \
    OPS(WIRE_FLUSHED, link, r, text, __VA_ARGS__)
#define IDLE(link, r, text) SEND(link, text, .type = WIRE_FLUSHED, .round = r)

static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = on_close},
                              .deadline = 100,
                              .quorum = 3};
    return serve(&c) ? 0 : 1;
}

/* Links 0..2 are ids 1..3, ranks by hint: link 2 is rank 0. Epoch 1. */
static void three(void)
{
    for (uint32_t i = 0; i < 3; i++) CONNECT(i);
    HELLO(0, "0 WELCOME id=1\n", .self = {.hint = 2});
    HELLO(1, "1 WELCOME id=2\n", .self = {.hint = 1});
    HELLO(2,
          "2 WELCOME id=3\n2 PROPOSE r1 -0 +3\n1 PROPOSE r1 -0 +3\n"
          "0 PROPOSE r1 -0 +3\n",
          .self = {.hint = 0});
    READY(0, 1, "");
    READY(1, 1, "");
    READY(2, 1,
          "2 INSTALL r1 world=3\n1 INSTALL r1 world=3\n0 INSTALL r1 world=3\n");
}

static void test_quorum(void **state) /* M2 */
{
    (void)state;
    three();
    assert_int_equal(master->peers[2].rank, 0);
    assert_int_equal(master->peers[0].rank, 2);
}

/* A newcomer finds room again once somebody has left. */
static void test_no_more_than_there_is_room_for(void **state) /* M1 */
{
    (void)state;
    master->peers_max = 3;
    three();
    CONNECT(3);
    HELLO(3, "3 EVICT\n3 closed\n", .join = true);
    assert_string_equal(closed_for,
                        "the run is full: its coordinator has descriptors for "
                        "3 members (ulimit -n)");
    master->peers_max = 4;
    CONNECT(3);
    HELLO(3, "3 WELCOME id=4\n", .join = true);
}

/* Also not those of newcomers that nobody has admitted. */
static void test_ids_are_not_reused(void **state) /* M1 */
{
    (void)state;
    three();
    for (int id = 4; id < 8; id++) {
        char welcome[32];
        (void)snprintf(welcome, sizeof welcome, "3 WELCOME id=%d\n", id);
        CONNECT(3);
        HELLO(3, welcome, .join = true);
        CLOSED(3, "");
    }
}

static void test_joiner_does_not_count(void **state) /* M2 */
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) CONNECT(i);
    HELLO(0, "0 WELCOME id=1\n", .join = true);
    HELLO(1, "1 WELCOME id=2\n", .join = false);
    HELLO(2, "2 WELCOME id=3\n", .join = false);
    /* nor is it a founder, however early it came */
    CONNECT(3);
    HELLO(3,
          "3 WELCOME id=4\n1 PROPOSE r1 -0 +3\n2 PROPOSE r1 -0 +3\n"
          "3 PROPOSE r1 -0 +3\n",
          .join = false);
    READY(1, 1, "");
    READY(2, 1, "");
    READY(3, 1,
          "1 INSTALL r1 world=3\n2 INSTALL r1 world=3\n"
          "3 INSTALL r1 world=3\n");
    assert_int_equal(master->peers[0].state, PEER_REGISTERED);
    for (uint32_t i = 1; i < 3; i++) VOTE(i, VOTE_UPDATE, "");
    VOTE(3, VOTE_UPDATE,
         "0 PROPOSE r2 -0 +4\n1 PROPOSE r2 -0 +1\n2 PROPOSE r2 -0 +1\n"
         "3 PROPOSE r2 -0 +1\n");
}

/* Founders that all die before the first view leave it to other founders. */
static void test_founders_only(void **state) /* M2 */
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) CONNECT(i);
    HELLO(0, "0 WELCOME id=1\n", .join = true);
    master->quorum = 1;
    HELLO(1, "1 WELCOME id=2\n1 PROPOSE r1 -0 +1\n", .join = false);
    CLOSED(1, "");
    HELLO(2, "2 WELCOME id=3\n2 PROPOSE r3 -0 +1\n", .join = false);
}

/* Only groups with peers are visited, in the order of their places. */
static void test_groups_in_use(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {7, 3, 900, 3};
    for (uint32_t i = 0; i < 4; i++) {
        struct wire_msg hello = {.type = WIRE_HELLO};
        hello.hello.group = numbers[i];
        hello.hello.join = true;
        CONNECT(i);
        step(MASTER_RECEIVED, i, &hello);
    }
    said[0] = '\0';
    assert_int_equal(master->group_count, 3);
    assert_int_equal(master->peers[3].group, 1);
    CLOSED(0, "");
    assert_int_equal(master->group_count, 2);
    assert_int_equal(master->group_list[0], 1);
    CONNECT(0);
    HELLO(0, "0 WELCOME id=5\n", .group = 8, .join = true);
    assert_int_equal(master->group_count, 3);
    for (uint16_t i = 0; i < 3; i++) assert_int_equal(master->group_list[i], i);
    assert_int_equal(master->groups[0].number, 8);
    CLOSED(1, "");
    assert_int_equal(master->group_count, 3);
    CLOSED(3, "");
    assert_int_equal(master->group_count, 2);
}

/* V1: a vote that comes twice, before or after its answer, counts once. */
static void test_a_vote_that_comes_twice(void **state)
{
    (void)state;
    three();
    VOTE(0, VOTE_PENDING, "");
    calls--;
    VOTE(0, VOTE_PENDING, "");
    VOTE(1, VOTE_PENDING, "");
    VOTE(2, VOTE_PENDING, "0 ANSWER 1=0\n1 ANSWER 1=0\n2 ANSWER 1=0\n");
    calls--;
    VOTE(2, VOTE_PENDING, "");
    VOTE(0, VOTE_PENDING, "");
    VOTE(1, VOTE_PENDING, "");
    VOTE(2, VOTE_PENDING, "0 ANSWER 1=0\n1 ANSWER 1=0\n2 ANSWER 1=0\n");
}

/* An update of three members and a newcomer begins; the pair of ids 1 and 2 has
 * become bad before the first of them voted, or after that. */
static void update_with_bad_pair(bool before)
{
    three();
    for (uint32_t i = 0; i < 2; i++) {
        now += 10;
        TICK("");
        for (uint32_t k = 0; before == (i == 0) && k < 4; k++)
            edges_broken(master, 0, 1, 2, false);
        now++;
        if (i == 0) VOTE(0, VOTE_UPDATE, "");
    }
    CONNECT(3);
    HELLO(3, "3 WELCOME id=4\n", .join = true);
    VOTE(1, VOTE_UPDATE, "");
    struct wire_msg last = {
        .type = WIRE_VOTE, .round = ++calls, .vote = {.kind = VOTE_UPDATE}};
    assert_true(order_is_bad(&master->groups[0], 1, 2));
    step(MASTER_RECEIVED, 2, &last);
    assert_non_null(strstr(said, "3 PROPOSE"));
}

/* R3h: nobody waits for one fault twice. */
static void test_an_update_tries_a_pair_once(void **state)
{
    (void)state;
    update_with_bad_pair(false);
    assert_true(order_is_bad(&master->groups[0], 1, 2));
}

static void test_an_update_tries_what_was_bad_before(void **state)
{
    (void)state;
    update_with_bad_pair(true);
    assert_false(order_is_bad(&master->groups[0], 1, 2));
}

static void test_crossed_votes_are_refused(void **state) /* V5 */
{
    (void)state;
    three();
    VOTE(0, VOTE_UPDATE, "");
    VOTE(1, VOTE_PENDING, "");
    VOTE(2, VOTE_UPDATE, "0 ANSWER 0=255\n2 ANSWER 0=255\n1 ANSWER 1=255\n");
}

static void lose_link_0(void)
{
    CLOSED(0, "1 FLUSH r2 dead=1\n2 FLUSH r2 dead=1\n");
}

/* T4: of those that flushed in the round that is installed. */
static void test_traits(void **state)
{
    (void)state;
    const struct wire_msg a = {
        .type = WIRE_FLUSHED, .round = 2, .flushed.traits = 4};
    three();
    lose_link_0();
    step(MASTER_RECEIVED, 1, &a);
    SEND(2, "2 PROPOSE r2 -1 +0\n1 PROPOSE r2 -1 +0\n", .type = WIRE_FLUSHED,
         .round = 2, .flushed.traits = 1);
    READY(1, 2, "");
    READY(2, 2,
          "2 INSTALL r2 world=2 traits=5\n1 INSTALL r2 world=2 traits=5\n");
    CLOSED(1, "2 FLUSH r3 dead=1\n");
    IDLE(2, 3, "2 PROPOSE r3 -1 +0\n");
    READY(2, 3, "2 INSTALL r3 world=1\n");
}

#define PROPOSE3 "2 PROPOSE r2 -0 +0\n1 PROPOSE r2 -0 +0\n0 PROPOSE r2 -0 +0\n"
#define VERDICT3(op) "2 VERDICT " op "\n1 VERDICT " op "\n0 VERDICT " op "\n"
#define INSTALL3                                                               \
    "2 INSTALL r2 world=3\n1 INSTALL r2 world=3\n0 INSTALL r2 world=3\n"

static void test_a_dial_request(void **state) /* P2P-10 */
{
    (void)state;
    three();
    SEND(0, "1 DIAL_REQUEST from 1\n", .type = WIRE_DIAL_REQUEST,
         .call = {.peer = 2});
    SEND(0, "", .type = WIRE_DIAL_REQUEST, .call = {.peer = 77});
}

static void test_silence_is_a_loss(void **state) /* M8 */
{
    (void)state;
    three();
    for (int beat = 0; beat < 5; beat++) {
        now += 20;
        SEND(1, "", .type = WIRE_HEARTBEAT);
        SEND(2, "", .type = WIRE_HEARTBEAT);
    }
    TICK("0 EVICT\n0 closed\n1 FLUSH r2 dead=1\n2 FLUSH r2 dead=1\n");
}

static void test_not_allowed_in_its_state(void **state)
{
    (void)state;
    three();
    CONNECT(5);
    SEND(5, "5 EVICT\n5 closed\n", .type = WIRE_LEAVE);
    SEND(0, "0 EVICT\n0 closed\n1 FLUSH r2 dead=1\n2 FLUSH r2 dead=1\n",
         .type = WIRE_INSTALL);
}

/* F4: a member may have returned what another one complains about. */
static void test_a_commit_stands_before_a_complaint(void **state)
{
    (void)state;
    three();
    SEND(0, "0 FLUSH r2 dead=0\n1 FLUSH r2 dead=0\n2 FLUSH r2 dead=0\n",
         .type = WIRE_REFRESH, .epoch = 1,
         .fault = {.cause = REFRESH_MISMATCH, .tag = 9, .seq = 4});
    for (uint32_t i = 0; i < 2; i++)
        FLUSHED(i, 2, "", {.tag = 9, .seq = 4, .state = OP_COMPLETE});
    FLUSHED(2, 2, PROPOSE3, {.tag = 9, .seq = 4, .state = OP_COMPLETE});
    READY(0, 2, "");
    READY(1, 2, "");
    READY(2, 2, VERDICT3("9.4:1") INSTALL3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_quorum),
        TEST(test_no_more_than_there_is_room_for),
        TEST(test_ids_are_not_reused),
        TEST(test_joiner_does_not_count),
        TEST(test_founders_only),
        TEST(test_groups_in_use),
        TEST(test_a_vote_that_comes_twice),
        TEST(test_an_update_tries_a_pair_once),
        TEST(test_an_update_tries_what_was_bad_before),
        TEST(test_crossed_votes_are_refused),
        TEST(test_traits),
        TEST(test_a_commit_stands_before_a_complaint),
        TEST(test_a_dial_request),
        TEST(test_silence_is_a_loss),
        TEST(test_not_allowed_in_its_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
