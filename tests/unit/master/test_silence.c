/* test_silence.c - whom the master evicts for silence, and whom it waits for
 * (rules M8, M10, M11, M15): one master, three members, one deadline of 100. */
#include "founded.h"

#include "../../../src/master/server/own_clock.h"

enum { DEADLINE = 100, BEAT = DEADLINE / 10, LATE = 70 };

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user, (void)links, (void)count;
    if (m->type != WIRE_SILENT) return;
    say("silent");
    for (uint32_t i = 0; i < m->id_count; i++) say(" %u", (unsigned)m->ids[i]);
    say("\n");
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    say("%u lost: %s\n", (unsigned)master->peers[link].info.id, reason);
}

static void on_note(void *user, const struct master_note *n)
{
    (void)user;
    if (n->kind == NOTE_SILENT)
        say("%u waited for after %d: %s\n", (unsigned)n->peer->info.id,
            (int)n->took, n->reason);
    if (n->kind == NOTE_HEARD)
        say("%u heard after %d\n", (unsigned)n->peer->info.id, (int)n->took);
}

static void on_look(void *user, const struct wire_member *peer)
{
    (void)user;
    say("look %u\n", (unsigned)peer->id);
}

static void send_as(uint32_t link, enum wire_type type, uint32_t round)
{
    struct wire_msg m = {.type = type, .round = round};
    step(MASTER_RECEIVED, link, &m);
}

static void seen(uint64_t id, enum evidence evidence)
{
    struct master_event e = {
        .type = MASTER_EVIDENCE, .now = now, .id = id, .evidence = evidence};
    master_step(master, &e);
}

/* Links 0..2, ids 1..3. */
static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send,
                                      .close = on_close,
                                      .note = on_note,
                                      .look = on_look},
                              .deadline = DEADLINE,
                              .quorum = 3};
    return found(&c);
}

/* A tenth of the deadline, in which the links of `beats` (bits) send. */
static void pass(uint32_t beats)
{
    now += BEAT;
    for (uint32_t i = 0; i < 3; i++)
        if (beats & BIT(i)) send_as(i, WIRE_HEARTBEAT, 0);
    step(MASTER_TICK, 0, NULL);
}

#define OTHERS 6 /* all but link 0, which is id 1 */
#define ALL 7

/* Asks early enough to know, and tells the members whom it does not hear. */
static void asked(enum evidence answer)
{
    for (int at = BEAT; at <= LATE; at += BEAT) {
        bool look = at == 30 || at == 50 || at == 70;
        pass(OTHERS);
        expect(at < 30 ? "" : look ? "look 1\nsilent 1\n" : "silent 1\n");
    }
    seen(1, answer);
    expect("");
}

static void test_nothing_known(void **state)
{
    (void)state;
    asked(EVIDENCE_NONE);
    pass(OTHERS);
    expect("1 lost: was silent for 0.0 s (deadline 0.0 s)\n");
}

static void test_stopped(void **state)
{
    (void)state;
    asked(EVIDENCE_STOPPED);
    pass(OTHERS);
    expect("1 lost: was stopped by a signal for 0.0 s (deadline 0.0 s)\n");
}

static void test_without_cpu_time(void **state)
{
    (void)state;
    asked(EVIDENCE_RUNNABLE);
    pass(OTHERS);
    expect("1 waited for after 80: it gets no CPU time\nsilent 1\n");
    for (int round = 0; round < 40; round++) {
        assert_true(silence_is_excused(master, 0));
        pass(OTHERS);
        expect("look 1\nsilent 1\n");
        seen(1, EVIDENCE_RUNNABLE);
        pass(OTHERS);
        expect("silent 1\n");
    }
    send_as(0, WIRE_HEARTBEAT, 0);
    expect("1 heard after 880\n");
    assert_false(silence_is_excused(master, 0));
    pass(ALL);
    expect("");
}

static void test_in_a_debugger_then_stopped(void **state)
{
    (void)state;
    asked(EVIDENCE_TRACED);
    pass(OTHERS);
    expect("1 waited for after 80: a debugger holds it\nsilent 1\n");
    pass(OTHERS);
    expect("look 1\nsilent 1\n");
    seen(1, EVIDENCE_STOPPED);
    pass(OTHERS);
    expect("1 lost: was stopped by a signal for 0.0 s (deadline 0.0 s)\n");
}

/* The debugger lets go: the host sees nothing of note, and the heartbeat is
 * under way. If none comes, the next answer counts. */
static void test_let_go(void **state)
{
    (void)state;
    for (int beats = 1; beats >= 0; beats--) {
        asked(EVIDENCE_TRACED);
        pass(OTHERS);
        expect("1 waited for after 80: a debugger holds it\nsilent 1\n");
        pass(OTHERS);
        expect("look 1\nsilent 1\n");
        seen(1, EVIDENCE_NONE);
        pass(OTHERS);
        expect("silent 1\n");
        if (!beats) break;
        send_as(0, WIRE_HEARTBEAT, 0);
        expect("1 heard after 100\n");
        pass(ALL);
        expect("");
    }
    pass(OTHERS);
    expect("look 1\nsilent 1\n");
    seen(1, EVIDENCE_NONE);
    pass(OTHERS);
    expect("1 lost: was silent for 0.0 s (deadline 0.0 s)\n");
}

static void test_evidence_wears_out(void **state)
{
    (void)state;
    asked(EVIDENCE_RUNNABLE); /* no answer follows */
    for (int at = BEAT; at < DEADLINE; at += BEAT) pass(OTHERS);
    assert_null(strstr(said, "lost"));
    said[0] = '\0';
    pass(OTHERS);
    expect("look 1\n1 lost: was silent for 0.0 s (deadline 0.0 s)\n");
}

static void test_evidence_about_nobody(void **state)
{
    (void)state;
    pass(ALL);
    seen(1, EVIDENCE_RUNNABLE); /* not asked: it is heard */
    assert_false(silence_is_excused(master, 0));
    seen(77, EVIDENCE_RUNNABLE);
    expect("");
}

/* Stopped, or its network is down: the clock of everybody stands. */
static void test_a_master_that_hears_nobody(void **state)
{
    (void)state;
    pass(ALL);
    now += 10 * DEADLINE;
    step(MASTER_TICK, 0, NULL);
    assert_null(strstr(said, "lost"));
    said[0] = '\0';
    send_as(1, WIRE_HEARTBEAT, 0);
    send_as(2, WIRE_HEARTBEAT, 0);
    assert_false(silence_is_excused(master, 0));
    /* The third has half a deadline, and as long as the outage was. */
    for (int i = 0; i < 10 * DEADLINE / BEAT; i++) pass(OTHERS);
    assert_null(strstr(said, "lost"));
    said[0] = '\0';
    for (int i = 0; i < DEADLINE / 2 / BEAT; i++) pass(OTHERS);
    assert_non_null(
        strstr(said, "1 lost: was silent for 0.0 s (deadline 0.0 s)\n"));
}

/* What the driver left out of the time counts against nobody (M15): each has a
 * deadline, as good as new, and what TCP needs to try again. */
static void test_a_master_that_slept(void **state)
{
    (void)state;
    step(MASTER_CONNECTED, 3, NULL);
    for (int at = BEAT; at <= LATE; at += BEAT) pass(OTHERS);
    said[0] = '\0';
    struct master_event slept = {
        .type = MASTER_SLEPT, .now = now, .gap = 10 * DEADLINE};
    master_step(master, &slept);
    expect("");
    for (int i = 0; i < DEADLINE / BEAT; i++) pass(OTHERS);
    assert_null(strstr(said, "1 lost"));
    assert_non_null(strstr(said, "0 lost: did not say HELLO"));
    for (int i = 0; i < 9 * DEADLINE / BEAT; i++) pass(OTHERS);
    assert_null(strstr(said, "1 lost"));
    for (int i = 0; i < DEADLINE / 2 / BEAT; i++) pass(OTHERS);
    assert_non_null(strstr(said, "1 lost"));
}

static void test_a_stranger_of_a_master_that_slept(void **state)
{
    (void)state;
    step(MASTER_CONNECTED, 3, NULL);
    for (int at = BEAT; at < DEADLINE; at += BEAT) pass(ALL);
    struct master_event slept = {
        .type = MASTER_SLEPT, .now = now, .gap = DEADLINE};
    master_step(master, &slept);
    for (int at = BEAT; at < DEADLINE; at += BEAT) pass(ALL);
    expect("");
    pass(ALL);
    expect("0 lost: did not say HELLO within the deadline\n");
}

static void test_the_clock_leaves_sleep_out(void **state)
{
    (void)state;
    struct own_clock c = {.due = PCCL_NEVER};
    assert_int_equal(own_clock_at(&c, 500, BEAT), 500); /* nothing is due */
    c.due = 510;
    assert_int_equal(own_clock_at(&c, 520, BEAT), 520); /* late enough */
    assert_int_equal(own_clock_take(&c), 0);
    assert_int_equal(own_clock_at(&c, 521, BEAT), 520); /* and no later */
    assert_int_equal(own_clock_at(&c, 525, BEAT), 520);
    assert_int_equal(own_clock_take(&c), 5);
    assert_int_equal(own_clock_take(&c), 0);
    c.due = 530;
    assert_int_equal(own_clock_at(&c, 1000 + 541, BEAT), 530);
    assert_int_equal(own_clock_take(&c), 1006);
    assert_int_equal(c.slept, 1011);
}

/* Whatever the host's clock shows at a look, and wherever the next turn is due:
 * limits that had passed at one look have passed at the next one. */
static void test_the_clock_never_goes_back(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 500; seed++) {
        struct own_clock c = {.due = PCCL_NEVER};
        uint32_t drawn = seed;
        pccl_ns host = 0, last = 0;
        for (int i = 0; i < 200; i++) {
            drawn = drawn * 1664525 + 1013904223;
            host += drawn >> 16 & 7 ? drawn >> 20 & 7 : drawn >> 20 & 127;
            pccl_ns own = own_clock_at(&c, host, BEAT);
            assert_true(own >= last && own == host - c.slept);
            last = own;
            if (drawn >> 28 == 0) c.due = own + BEAT;
        }
    }
}

/* It could answer nobody: whoever dials it says nothing about the pair. */
static void test_dials_to_a_silent_one_do_not_count(void **state)
{
    (void)state;
    uint32_t group = master->peers[0].group;
    for (int i = 0; i < 3; i++) pass(OTHERS);
    assert_false(edges_failed(master, group, 1, 2));
    pass(ALL);
    assert_true(edges_failed(master, group, 1, 2));
}

static void test_a_stranger_has_one_deadline(void **state)
{
    (void)state;
    step(MASTER_CONNECTED, 3, NULL);
    for (int i = 0; i < DEADLINE / BEAT; i++) {
        expect("");
        pass(ALL);
    }
    expect("0 lost: did not say HELLO within the deadline\n");
}

/* A middlebox forgets a connection that is idle for a minute (rule M8). */
static void test_no_silence_of_a_minute(void **state)
{
    (void)state;
    master->deadline = 3600 * PCCL_S;
    assert_true(master_next_tick(master) <= now + 20 * PCCL_S);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_known),
        TEST(test_no_silence_of_a_minute),
        TEST(test_stopped),
        TEST(test_without_cpu_time),
        TEST(test_in_a_debugger_then_stopped),
        TEST(test_let_go),
        TEST(test_evidence_wears_out),
        TEST(test_evidence_about_nobody),
        TEST(test_a_master_that_hears_nobody),
        TEST(test_a_master_that_slept),
        TEST(test_a_stranger_of_a_master_that_slept),
        TEST(test_the_clock_leaves_sleep_out),
        TEST(test_the_clock_never_goes_back),
        TEST(test_dials_to_a_silent_one_do_not_count),
        TEST(test_a_stranger_has_one_deadline),
    };
    return cmocka_run_group_tests_name("master/silence", tests, NULL, NULL);
}
