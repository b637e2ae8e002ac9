/* test_master_job.c - how a run ends for the coordinator, and what becomes of
 * newcomers then. Rule numbers: see src/README.md. */
#include "founded.h"

#include "../../../src/master/admission.h"

static bool aborted;
static uint32_t answers, flags, told; /* to votes; notes that it waits */

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    (void)links;
    if (m->type != WIRE_ANSWER) return;
    answers += count;
    flags = m->vote.flag;
}

static void on_note(void *user, const struct master_note *note)
{
    (void)user;
    if (note->kind == NOTE_ABORTED) aborted = true;
    told += note->kind == NOTE_STALLED;
}

static void hello(uint32_t link, bool join)
{
    comes(link,
          &(struct wire_msg){.type = WIRE_HELLO, .hello = {.join = join}});
}

/* A view of three members on links 0..2, and a newcomer on link 3. */
static int setup(void **state)
{
    (void)state;
    aborted = false;
    answers = flags = told = 0;
    struct master_config c = {.out = {.send = on_send, .note = on_note},
                              .deadline = 100,
                              .quorum = 3};
    if (!serve(&c)) return 1;
    struct wire_msg ready = {.type = WIRE_READY, .round = 1};
    for (uint32_t i = 0; i < 3; i++) hello(i, false);
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &ready);
    assert_int_equal(master_count(master, PEER_MEMBER), 3);
    hello(3, true);
    assert_int_equal(master->peers[3].state, PEER_REGISTERED);
    return 0;
}

static void all_leave(void)
{
    for (uint32_t i = 0; i < 6; i++) {
        struct wire_msg msg = {.type = i < 3 ? WIRE_LEAVE : WIRE_FLUSHED,
                               .round = master->groups[0].round};
        step(MASTER_RECEIVED, i % 3, &msg);
    }
}

static void all_die(void)
{
    for (uint32_t i = 0; i < 3; i++) step(MASTER_CLOSED, i, NULL);
}

/* A replacement for a dead rank, which waits when the others end. */
static void test_a_job_that_has_ended_takes_nobody(void **state) /* M2b */
{
    (void)state;
    master->job = true;
    all_leave();
    assert_int_equal(master->peers[3].state, PEER_FREE);
    /* nor who comes later, but whoever begins another run */
    hello(3, true);
    assert_int_equal(master->peers[3].state, PEER_FREE);
    hello(4, false);
    assert_true(master->peers[4].proposed);
}

/* All die: a replacement does not begin the program anew. */
static void test_a_job_that_has_died_takes_nobody(void **state) /* M2b */
{
    (void)state;
    master->job = true;
    all_die();
    assert_int_equal(master->peers[3].state, PEER_FREE);
    hello(3, true);
    assert_int_equal(master->peers[3].state, PEER_FREE);
}

/* Without a launcher the run belongs to whoever is there. */
static void test_a_run_that_has_died_goes_on(void **state) /* M2a */
{
    (void)state;
    all_die();
    assert_int_equal(master->groups[0].phase, GROUP_PROPOSED);
    assert_true(master->peers[3].proposed);
}

/* Nobody starts ranks for a coordinator alone: who joins founds the run. */
static void test_who_joins_nobody_founds(void **state) /* M2d */
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .note = on_note},
                              .deadline = 100,
                              .alone = true,
                              .quorum = 3};
    struct wire_msg ready = {.type = WIRE_READY, .round = 1};
    (void)teardown(NULL);
    assert_true(serve(&c));
    hello(0, true);
    hello(1, false);
    assert_false(master->founded);
    hello(2, true);
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &ready);
    assert_int_equal(master_count(master, PEER_MEMBER), 3);
    hello(3, true);
    assert_int_equal(master->peers[3].state, PEER_REGISTERED);
}

/* The error of a newcomer that waits is its own. */
static void test_a_newcomer_fails_alone(void **state) /* M3 */
{
    (void)state;
    struct wire_msg msg = {.type = WIRE_ABORT, .abort = {.code = 5}};
    step(MASTER_RECEIVED, 3, &msg);
    assert_false(aborted);
    assert_int_equal(master->peers[3].state, PEER_FREE);
    assert_int_equal(master_count(master, PEER_MEMBER), 3);
    step(MASTER_RECEIVED, 0, &msg);
    assert_true(aborted);
    assert_int_equal(master_count(master, PEER_MEMBER), 0);
}

static void vote(uint32_t link, enum vote_kind kind)
{
    struct wire_msg m = {.type = WIRE_VOTE,
                         .round = master->peers[link].call + 1,
                         .vote.kind = (uint8_t)kind};
    step(MASTER_RECEIVED, link, &m);
}

static void ready(uint32_t link)
{
    struct wire_msg m = {.type = WIRE_READY, .round = master->groups[0].round};
    step(MASTER_RECEIVED, link, &m);
}

/* Three members need four; the newcomer of setup() ends the waiting. */
static void test_too_few_wait(void **state) /* M14a, M14d */
{
    (void)state;
    master->minimum = 5;
    for (uint32_t i = 0; i < 3; i++) vote(i, VOTE_PENDING);
    assert_int_equal(answers, 3);
    assert_int_equal(flags, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(told, 0);
        vote(i, VOTE_UPDATE);
    }
    assert_int_equal(told, 1);
    assert_int_equal(answers, 3);
    assert_int_equal(master->groups[0].phase, GROUP_OPEN);
    step(MASTER_TICK, 0, NULL);
    assert_int_equal(told, 1);
    hello(4, true);
    assert_int_equal(master->groups[0].phase, GROUP_PROPOSED);
    for (uint32_t i = 0; i < 5; i++) ready(i);
    assert_int_equal(master_count(master, PEER_MEMBER), 5);
    for (uint32_t i = 0; i < 5; i++) vote(i, VOTE_PENDING);
    assert_int_equal(flags, 0);
}

/* One that leaves makes up for nobody. */
static void test_leavers_are_too_few(void **state) /* M14a */
{
    (void)state;
    struct wire_msg leave = {.type = WIRE_LEAVE};
    uint32_t have;
    step(MASTER_CLOSED, 3, NULL); /* the newcomer */
    master->minimum = 3;
    assert_false(admission_lacks(master, &have));
    step(MASTER_RECEIVED, 2, &leave);
    assert_true(admission_lacks(master, &have));
    assert_int_equal(have, 2);
    for (uint32_t i = 0; i < 2; i++) vote(i, VOTE_PENDING);
    assert_int_equal(flags, 1); /* nobody waits, and yet */
}

/* A coordinator alone has nobody else who says how many it waits for. */
static void test_founders_are_the_minimum(void **state) /* M14c */
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .note = on_note},
                              .deadline = 100,
                              .alone = true,
                              .quorum = 1,
                              .minimum = 2};
    (void)teardown(NULL);
    assert_true(serve(&c));
    hello(0, false);
    assert_false(master->peers[0].proposed);
    hello(1, false);
    assert_true(master->peers[0].proposed);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_job_that_has_ended_takes_nobody),
        TEST(test_a_job_that_has_died_takes_nobody),
        TEST(test_a_run_that_has_died_goes_on),
        TEST(test_who_joins_nobody_founds),
        TEST(test_a_newcomer_fails_alone),
        TEST(test_too_few_wait),
        TEST(test_leavers_are_too_few),
        TEST(test_founders_are_the_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
