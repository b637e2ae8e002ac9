/* test_limits.c - who owes the master an answer, and sends heartbeats only: one
 * master, one deadline of 100 (rules R8, M3); and updates of two groups (R5).
 */
#include "founded.h"

enum { DEADLINE = 100, BEAT = DEADLINE / 10, LINKS = 7, ALL = 127 };

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    if (m->type == WIRE_HEARTBEAT || m->type == WIRE_SILENT ||
        m->type == WIRE_WELCOME || m->type == WIRE_EVICT)
        return;
    say("%s to", wire_type_name(m->type));
    for (uint32_t i = 0; i < count; i++) say(" %u", links[i]);
    say("\n");
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    say("%u %s\n", link, reason);
}

static uint32_t round_now(void)
{
    return master->groups[0].round;
}

static void send_as(uint32_t link, enum wire_type type)
{
    struct wire_msg m = {.type = type, .round = round_now()};
    step(MASTER_RECEIVED, link, &m);
}

static void join(uint32_t link, uint32_t group)
{
    struct wire_msg m = {.type = WIRE_HELLO,
                         .hello = {.join = link > 2, .group = group}};
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, &m);
}

/* Links 0..2, ids 1..3; INSTALL has gone out. */
static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = on_close},
                              .deadline = DEADLINE,
                              .quorum = 3};
    return found(&c);
}

/* A tick after a tenth of the deadline, in which the links of `beats` send. */
static void pass(uint32_t beats)
{
    now += BEAT;
    for (uint32_t i = 0; i < LINKS; i++) {
        enum master_peer_state s = master->peers[i].state;
        bool known = s == PEER_MEMBER || s == PEER_REGISTERED;
        if (known && beats & BIT(i)) send_as(i, WIRE_HEARTBEAT);
    }
    step(MASTER_TICK, 0, NULL);
}

/* Nothing happens before the deadline. */
static void wait(uint32_t beats)
{
    for (int i = 1; i < DEADLINE / BEAT; i++) pass(beats);
    expect("");
    pass(beats);
}

static void lose_0(void)
{
    step(MASTER_CLOSED, 0, NULL);
    expect("FLUSH to 1 2\n");
}

static void send_op(uint32_t link, enum wire_type type, enum op_state op)
{
    struct wire_op ops[] = {{.tag = 7, .state = (uint8_t)op}};
    if (op == OP_RETURNED) ops[0].donor = true;
    struct wire_msg m = {.type = type,
                         .round = round_now(),
                         .epoch = master->groups[0].epoch,
                         .ops = ops,
                         .op_count = 1};
    step(MASTER_RECEIVED, link, &m);
}

static void test_flush(void **state)
{
    (void)state;
    lose_0();
    send_as(1, WIRE_FLUSHED);
    wait(ALL);
    expect("2 did not answer FLUSH within the deadline\nFLUSH to 1\n");
    send_as(1, WIRE_FLUSHED);
    expect("PROPOSE to 1\n");
}

static void test_query(void **state)
{
    (void)state;
    lose_0();
    send_op(1, WIRE_FLUSHED, OP_RUNNING);
    pass(ALL); /* FLUSHED took its time, which does not count now */
    send_as(2, WIRE_FLUSHED);
    expect("QUERY to 1 2\n");
    send_op(1, WIRE_REPLY, OP_RUNNING);
    wait(ALL);
    expect("2 did not answer QUERY within the deadline\nFLUSH to 1\n");
}

static void test_donate(void **state)
{
    (void)state;
    lose_0();
    send_op(1, WIRE_FLUSHED, OP_RUNNING);
    send_as(2, WIRE_FLUSHED);
    send_op(1, WIRE_REPLY, OP_RUNNING);
    send_op(2, WIRE_REPLY, OP_RETURNED);
    expect("QUERY to 1 2\nDONATE to 2\n");
    wait(ALL);
    expect("2 did not answer DONATE within the deadline\nFLUSH to 1\n");
    /* No survivor has returned it: it ends as if nobody had. */
    send_op(1, WIRE_FLUSHED, OP_RUNNING);
    expect("PROPOSE to 1\n");
    send_as(1, WIRE_READY);
    expect("INSTALL to 1\n");
}

static void test_ready_of_a_member(void **state)
{
    (void)state;
    lose_0();
    send_as(1, WIRE_FLUSHED);
    send_as(2, WIRE_FLUSHED);
    send_as(1, WIRE_READY);
    expect("PROPOSE to 1 2\n");
    wait(ALL);
    expect("2 did not answer PROPOSE within the deadline\nFLUSH to 1\n");
}

static void vote(void)
{
    static uint32_t calls; /* a later one has a higher number (V1) */
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_msg m = {
            .type = WIRE_VOTE, .round = ++calls, .vote.kind = VOTE_UPDATE};
        step(MASTER_RECEIVED, i, &m);
    }
}

static void ready(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to; i++) send_as(i, WIRE_READY);
}

static void test_ready_of_a_newcomer(void **state)
{
    (void)state;
    join(3, 0);
    join(4, 0);
    vote();
    expect("PROPOSE to 3 4\nPROPOSE to 0 1 2\n");
    ready(0, 3);
    wait(ALL);
    expect("4 did not answer PROPOSE within the deadline\n"
           "PROPOSE to 3\nPROPOSE to 0 1 2\n");
    ready(0, 3);
    expect("INSTALL to 0 1 2 3\n");
}

/* The members of a group are ready, and wait for those of another one. */
static void test_an_update_of_two_groups(void **state)
{
    (void)state;
    join(3, 1);
    vote();
    said[0] = '\0';
    ready(0, 2);
    wait(ALL);
    expect("3 did not answer PROPOSE within the deadline\n"
           "INSTALL to 0 1 2\n");
}

/* It gets no CPU time; while it links with nobody, the others are not ready. */
/* R5: an update is in force in all groups or in none; the last READY of one
 * begins its round again. */
static void test_an_update_begins_again_in_one_group(void **state)
{
    (void)state;
    join(3, 1);
    join(4, 1);
    vote();
    ready(0, 2);
    said[0] = '\0';
    uint32_t round = master->groups[1].round;
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t failed = 5 - i; /* the other one's id */
        struct wire_msg m = {
            .type = WIRE_READY, .round = round, .ids = &failed, .id_count = 1};
        step(MASTER_RECEIVED, 3 + i, &m);
    }
    assert_true(master->groups[1].round > round);
    assert_null(strstr(said, "INSTALL"));
}

static void test_excused(void **state)
{
    (void)state;
    lose_0();
    send_as(1, WIRE_FLUSHED);
    send_as(2, WIRE_FLUSHED);
    said[0] = '\0';
    for (int i = 0; i < 4 * DEADLINE / BEAT; i++) {
        struct master_event e = {.type = MASTER_EVIDENCE,
                                 .now = now,
                                 .id = 3,
                                 .evidence = EVIDENCE_RUNNABLE};
        pass(ALL - BIT(2));
        e.now = now;
        master_step(master, &e);
    }
    expect("");
    wait(ALL);
    expect("1 did not answer PROPOSE within the deadline\n"
           "2 did not answer PROPOSE within the deadline\n");
}

/* Stopped for less than a deadline, and heard again. */
static void test_silent_for_a_while(void **state)
{
    (void)state;
    lose_0();
    send_as(1, WIRE_FLUSHED);
    send_as(2, WIRE_FLUSHED);
    said[0] = '\0';
    for (int i = 1; i < DEADLINE / 2 / BEAT; i++) pass(ALL - BIT(2));
    send_as(1, WIRE_READY);
    for (pccl_ns end = now + 3 * DEADLINE / 2; now < end;) pass(ALL);
    expect("");
    pass(ALL);
    expect("2 did not answer PROPOSE within the deadline\nFLUSH to 1\n");
}

/* The answers may be there, and not read yet. */
static void test_a_master_that_slept(void **state)
{
    (void)state;
    lose_0();
    now += 10 * DEADLINE;
    send_as(1, WIRE_HEARTBEAT);
    step(MASTER_TICK, 0, NULL);
    expect("");
    send_as(1, WIRE_FLUSHED);
    send_as(2, WIRE_FLUSHED);
    expect("PROPOSE to 1 2\n");
}

/* M3a: who registers during the update waits for the next one. */
static void test_later_newcomers_wait(void **state)
{
    (void)state;
    join(3, 0);
    vote();
    join(4, 0);
    said[0] = '\0';
    step(MASTER_CLOSED, 3, NULL);
    expect("PROPOSE to 0 1 2\n");
}

/* M3b: newcomers that vanish one after the other. */
static void test_an_update_ends(void **state)
{
    (void)state;
    for (uint32_t i = 3; i < 7; i++) join(i, 0);
    vote();
    for (int i = 0; i < 2; i++) {
        for (int k = 1; k < DEADLINE / BEAT; k++) pass(ALL);
        said[0] = '\0';
        step(MASTER_CLOSED, 3 + (uint32_t)i, NULL);
        ready(0, 2);
    }
    expect("PROPOSE to 5 6\nPROPOSE to 0 1 2\n");
    ready(6, 6); /* it waits for the next update */
    wait(ALL);
    expect("5 did not answer PROPOSE within the deadline\n"
           "PROPOSE to 0 1 2\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_flush),
        TEST(test_query),
        TEST(test_donate),
        TEST(test_ready_of_a_member),
        TEST(test_ready_of_a_newcomer),
        TEST(test_an_update_of_two_groups),
        TEST(test_an_update_begins_again_in_one_group),
        TEST(test_excused),
        TEST(test_silent_for_a_while),
        TEST(test_a_master_that_slept),
        TEST(test_later_newcomers_wait),
        TEST(test_an_update_ends),
    };
    return cmocka_run_group_tests_name("master/limits", tests, NULL, NULL);
}
