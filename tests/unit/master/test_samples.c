/* test_samples.c - counting the samples of a step (rules G): the coordinator's
 * sum, when a step is reached and who is told; when a member reports; and the
 * step time of members of different speeds, by a simulated clock. */
#include "founded.h"

#include "../../../src/elastic/session.h"

#include <inttypes.h>

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m);

static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = say_close},
                              .deadline = 100 * PCCL_MS,
                              .quorum = 3};
    return found(&c);
}

static void report(uint32_t link, uint64_t number, uint64_t count,
                   uint64_t target)
{
    struct wire_msg m = {.type = WIRE_SAMPLES};
    m.samples.step = number;
    m.samples.count = count;
    m.samples.target = target;
    step(MASTER_RECEIVED, link, &m);
}

static void tick(void)
{
    step(MASTER_TICK, 0, NULL);
}

/* ------------------------------------------------------------- the master */

static void test_the_sum_is_told_at_ticks(void **state) /* G2, G4 */
{
    (void)state;
    report(0, 7, 3, 100);
    report(1, 7, 4, 100);
    report(0, 7, 5, 100); /* in place of its 3 */
    expect("");
    assert_true(master_next_tick(master) <= now + master->deadline / 10);
    tick();
    expect("step 7: 9 of 100 by 2 to 012\n");
    tick(); /* no news */
    expect("");
    report(2, 7, 0, 0);
    tick();
    expect("step 7: 9 of 100 by 3 to 012\n");
}

static void test_a_step_is_reached_at_once(void **state) /* G3, G4 */
{
    (void)state;
    report(0, 7, 60, 100);
    report(1, 7, 39, 100);
    expect("");
    report(2, 7, 1, 100);
    expect("step 7: 100 of 100 by 3 to 012 reached\n");
    /* It stays reached, and nobody is told again before the tick. */
    report(2, 7, 0, 100);
    expect("");
    tick();
    expect("step 7: 99 of 100 by 3 to 012 reached\n");
}

static void test_the_largest_target_counts(void **state) /* G3 */
{
    (void)state;
    report(0, 7, 50, 200);
    report(1, 7, 60, 100);
    expect("");
    report(1, 7, 150, 0);
    expect("step 7: 200 of 200 by 2 to 012 reached\n");
}

/* A member that has gone on ends the step of the others. */
static void test_a_higher_step_ends_the_lower(void **state) /* G2, G3 */
{
    (void)state;
    report(0, 7, 50, 100);
    report(1, 7, 20, 100);
    report(0, 8, 2, 100);
    expect("step 8: 2 of 100 by 1 to 012\n");
    report(1, 7, 30, 100); /* it counts for nothing */
    tick();
    expect("");
    report(1, 8, 5, 100);
    tick();
    expect("step 8: 7 of 100 by 2 to 012\n");
}

/* After a step that was reached the next one is no news for anybody. */
static void test_the_next_step_waits_for_the_tick(void **state) /* G4 */
{
    (void)state;
    report(0, 7, 100, 100);
    expect("step 7: 100 of 100 by 1 to 012 reached\n");
    report(0, 8, 2, 100);
    expect("");
    tick();
    expect("step 8: 2 of 100 by 1 to 012\n");
}

static void test_the_dead_take_their_samples_along(void **state) /* G2 */
{
    (void)state;
    report(0, 7, 50, 100);
    report(1, 7, 20, 100);
    tick();
    expect("step 7: 70 of 100 by 2 to 012\n");
    step(MASTER_CLOSED, 0, NULL);
    expect("step 7: 20 of 100 by 1 to 12\n");
}

static void test_a_reached_step_survives_deaths(void **state) /* G3 */
{
    (void)state;
    report(0, 7, 90, 100);
    report(1, 7, 20, 100);
    expect("step 7: 110 of 100 by 2 to 012 reached\n");
    step(MASTER_CLOSED, 0, NULL);
    expect("step 7: 20 of 100 by 1 to 12 reached\n");
}

/* The one that had gone on dies: the others are where they were, and their step
 * is over, as they have been told. So it is for who comes to it later: they
 * wait for it. */
static void test_the_group_falls_back(void **state) /* G2, G3 */
{
    (void)state;
    report(0, 7, 10, 100);
    report(1, 7, 20, 100);
    report(0, 8, 1, 100);
    expect("step 8: 1 of 100 by 1 to 012\n");
    step(MASTER_CLOSED, 0, NULL);
    expect("step 7: 20 of 100 by 1 to 12 reached\n");
    report(2, 7, 1, 100);
    tick();
    expect("step 7: 21 of 100 by 2 to 12 reached\n");
    step(MASTER_CLOSED, 1, NULL);
    expect("step 7: 1 of 100 by 1 to 2 reached\n");
}

/* So it is for one that was below it from the beginning. */
static void test_a_fall_to_who_came_late(void **state) /* G3 */
{
    (void)state;
    report(0, 7, 90, 100);
    report(1, 6, 1, 100);
    tick();
    expect("step 7: 90 of 100 by 1 to 012\n");
    step(MASTER_CLOSED, 0, NULL);
    expect("step 6: 1 of 100 by 1 to 12 reached\n");
}

/* A step that had its samples has them still after a fall. */
static void test_a_fall_to_a_reached_step(void **state) /* G3 */
{
    (void)state;
    report(0, 7, 90, 100);
    report(1, 7, 10, 100);
    expect("step 7: 100 of 100 by 2 to 012 reached\n");
    report(0, 8, 100, 100);
    expect("step 8: 100 of 100 by 1 to 012 reached\n");
    report(2, 6, 1, 100); /* over, when it comes to it */
    step(MASTER_CLOSED, 0, NULL);
    expect("step 7: 10 of 100 by 1 to 12 reached\n");
    step(MASTER_CLOSED, 1, NULL);
    expect("step 6: 1 of 100 by 1 to 2 reached\n");
}

/* One goes back, the other one waits in the collective of the step. */
static void test_one_goes_back_alone(void **state) /* G2 */
{
    (void)state;
    report(0, 7, 60, 100);
    report(1, 7, 60, 100);
    expect("step 7: 120 of 100 by 2 to 012 reached\n");
    report(0, 5, 1, 100);
    tick();
    expect("step 7: 60 of 100 by 1 to 012 reached\n");
    report(1, 5, 1, 100);
    tick();
    expect("step 5: 2 of 100 by 2 to 012\n"); /* all of it begins anew */
}

/* A member's last report is what it says. */
static void test_a_target_is_lowered(void **state) /* G1, G3 */
{
    (void)state;
    report(0, 7, 40, 200);
    report(1, 7, 60, 100);
    tick();
    expect("step 7: 100 of 200 by 2 to 012\n");
    report(0, 7, 40, 100);
    expect("step 7: 100 of 100 by 2 to 012 reached\n");
}

/* A member that comes after them begins a step, which is not below theirs. */
static void test_all_who_counted_die(void **state) /* G2 */
{
    (void)state;
    report(0, 7, 100, 100);
    expect("step 7: 100 of 100 by 1 to 012 reached\n");
    step(MASTER_CLOSED, 0, NULL);
    expect("step 0: 0 of 0 by 0 to 12\n");
    report(1, 3, 1, 100);
    tick();
    expect("step 3: 1 of 100 by 1 to 12\n");
}

static void test_a_leaver_does_not_count(void **state) /* G2 */
{
    (void)state;
    struct wire_msg leave = {.type = WIRE_LEAVE};
    report(0, 7, 50, 100);
    report(1, 7, 20, 100);
    step(MASTER_RECEIVED, 0, &leave);
    expect("step 7: 20 of 100 by 1 to 012\n");
    report(0, 7, 99, 100);
    tick();
    expect("");
}

/* The program has gone back to a checkpoint: its steps come again. */
static void test_steps_may_be_made_again(void **state) /* G2 */
{
    (void)state;
    report(0, 7, 60, 100);
    report(1, 7, 60, 100);
    expect("step 7: 120 of 100 by 2 to 012 reached\n");
    report(0, 5, 1, 100);
    report(1, 5, 1, 100);
    tick();
    expect("step 5: 2 of 100 by 2 to 012\n");
    report(0, 7, 1, 100);
    expect("step 7: 1 of 100 by 1 to 012\n");
}

static void test_a_newcomer_is_told(void **state) /* G4 */
{
    (void)state;
    struct wire_msg hello = {.type = WIRE_HELLO, .hello.join = true};
    struct wire_msg vote = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = VOTE_UPDATE};
    report(0, 7, 60, 100);
    tick();
    expect("step 7: 60 of 100 by 1 to 012\n");
    step(MASTER_CONNECTED, 3, NULL);
    step(MASTER_RECEIVED, 3, &hello);
    said[0] = '\0';
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &vote);
    all_are_ready();
    expect("step 7: 60 of 100 by 1 to 0123\n");
}

static void test_nonsense_is_refused(void **state) /* G1 */
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) report(i, UINT64_MAX, WIRE_SAMPLES_MAX, 0);
    tick();
    expect("step 18446744073709551615: 13510798882111485 of 0 by 3 to 012\n");
    report(1, UINT64_MAX, WIRE_SAMPLES_MAX + 1, 0);
    expect("close 1: reported more samples than can be counted\n"
           "step 18446744073709551615: 9007199254740990 of 0 by 2 to 02\n");
}

static void test_groups_count_apart(void **state)
{
    (void)state;
    struct wire_msg hello = {.type = WIRE_HELLO, .hello = {.group = 1}};
    struct wire_msg vote = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = VOTE_UPDATE};
    step(MASTER_CONNECTED, 3, NULL);
    step(MASTER_RECEIVED, 3, &hello);
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &vote);
    for (uint32_t i = 0; i < 4; i++) {
        struct wire_msg ready = {.type = WIRE_READY};
        ready.round = master->groups[master->peers[i].group].round;
        step(MASTER_RECEIVED, i, &ready);
    }
    expect("");
    report(0, 1, 5, 10);
    report(3, 2, 6, 10);
    tick();
    expect("step 1: 5 of 10 by 1 to 012\nstep 2: 6 of 10 by 1 to 3\n");
}

/* What --status shows. */
static void test_speed(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 40; i++) {
        report(0, i / 10, 5 * (i % 10), 0);
        now += PCCL_S / 10;
    }
    assert_int_equal(samples_rate(master, 0), 45); /* nine times five */
    now += 20 * PCCL_S;
    tick();
    assert_int_equal(samples_rate(master, 0), 0);
}

/* ------------------------------------------------------------- the member */

static void test_reports_have_a_rate(void **state) /* G5 */
{
    (void)state;
    struct sample_count c = {.interval = 10};
    struct sample_report r = {.step = 1, .count = 1, .target = 1000};
    assert_false(sample_due(&c, 0));
    sample_report(&c, &r);
    assert_true(sample_due(&c, 0)); /* the first one */
    sample_sent(&c, 0);
    sample_report(&c, &r);
    assert_false(sample_due(&c, 50)); /* no news */
    r.count = 2;
    sample_report(&c, &r);
    assert_false(sample_due(&c, 9));
    assert_true(sample_due(&c, 10));
}

static void test_what_may_complete_a_step_hurries(void **state) /* G5 */
{
    (void)state;
    struct sample_count c = {.interval = 10};
    struct sample_report r = {.step = 1, .count = 10, .target = 100};
    struct sample_sum told = {.step = 1, .count = 90, .members = 4};
    sample_report(&c, &r);
    sample_sent(&c, 0);
    sample_told(&c, &told); /* 80 of the others */
    r.count = 19;
    sample_report(&c, &r);
    assert_false(sample_due(&c, 1));
    r.count = 20;
    sample_report(&c, &r);
    assert_true(sample_due(&c, 1));
    sample_sent(&c, 1);
    r.count = 30; /* once */
    sample_report(&c, &r);
    assert_false(sample_due(&c, 2));
    assert_true(sample_due(&c, 11));
    /* In the next step again, which nobody has told of. */
    r.step = 2;
    r.count = 99;
    sample_report(&c, &r);
    assert_false(sample_due(&c, 3));
    r.count = 100;
    sample_report(&c, &r);
    assert_true(sample_due(&c, 3));
}

static void test_a_member_looks(void **state) /* G3 */
{
    (void)state;
    struct sample_count c = {.interval = 10};
    struct sample_report r = {.step = 1, .count = 10, .target = 100};
    struct sample_sum told = {.step = 4, .count = 90, .reached = true};
    assert_false(sample_look(&c).known);
    sample_told(&c, &told); /* a newcomer: step 4 is over */
    assert_true(sample_look(&c).reached);
    assert_int_equal(sample_look(&c).step, 4);
    sample_report(&c, &r);
    assert_true(sample_look(&c).reached); /* step 1 all the more */
    r.step = 5;
    sample_report(&c, &r);
    assert_false(sample_look(&c).reached);
    assert_int_equal(sample_look(&c).step, 5);
    assert_int_equal(sample_look(&c).count, 10);
    told = (struct sample_sum){.step = 5, .count = 110, .reached = true};
    sample_told(&c, &told);
    assert_true(sample_look(&c).reached);
    told.reached = false; /* it stays so */
    sample_told(&c, &told);
    assert_true(sample_look(&c).reached);
    assert_int_equal(sample_look(&c).count, 110);
}

/* --------------------------------------------- members of different speeds
 * Each has its own time for a sample. A step ends when all members have found
 * it reached; the others wait in its collective. Messages take LATENCY. */

enum { RACERS = 3, STEPS = 20, TARGET = 90, MAIL = 64 };
#define LATENCY PCCL_MS
#define SLOW (20 * PCCL_MS)

struct racer {
    struct sample_count count;
    uint64_t step, samples, all;
    pccl_ns per_sample, next;
    bool waits;
};

static struct racer racers[RACERS];
static bool racing;
static struct letter {
    pccl_ns at;
    uint32_t racer;
    bool up; /* to the coordinator */
    struct sample_sum sum;
} mail[MAIL];
static uint32_t mail_count;

static void post(uint32_t racer, bool up, struct sample_sum sum)
{
    assert_true(mail_count < MAIL);
    mail[mail_count++] = (struct letter){now + LATENCY, racer, up, sum};
}

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    if (m->type != WIRE_SAMPLES) return;
    struct sample_sum sum = {.step = m->samples.step,
                             .count = m->samples.count,
                             .target = m->samples.target,
                             .reached = m->samples.reached};
    for (uint32_t i = 0; racing && i < count; i++) post(links[i], false, sum);
    if (racing) return;
    say("step %" PRIu64 ": %" PRIu64 " of %" PRIu64 " by %u to ", sum.step,
        sum.count, sum.target, m->samples.members);
    for (uint32_t i = 0; i < count; i++) say("%u", links[i]);
    say("%s\n", sum.reached ? " reached" : "");
}

static void deliver(void)
{
    for (uint32_t i = 0; i < mail_count;) {
        struct letter l = mail[i];
        if (l.at > now) {
            i++;
            continue;
        }
        memmove(mail + i, mail + i + 1, (--mail_count - i) * sizeof *mail);
        if (l.up)
            report(l.racer, l.sum.step, l.sum.count, l.sum.target);
        else
            sample_told(&racers[l.racer].count, &l.sum);
    }
}

static void train(uint32_t i)
{
    struct racer *r = &racers[i];
    struct sample_count *c = &r->count;
    if (!r->waits && now >= r->next) {
        struct sample_report sample = {
            .step = r->step, .count = ++r->samples, .target = TARGET};
        sample_report(c, &sample);
        r->next = now + r->per_sample;
        r->waits = sample_look(c).reached; /* between two samples */
    }
    if (!sample_due(c, now)) return;
    sample_sent(c, now);
    post(i, true,
         (struct sample_sum){.step = c->sent.step,
                             .count = c->sent.count,
                             .target = c->sent.target});
}

/* All are in the collective: it ends. */
static bool all_average(uint64_t *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < RACERS; i++)
        if (!racers[i].waits) return false;
    for (uint32_t i = 0; i < RACERS; i++) {
        struct racer *r = &racers[i];
        *sum += r->samples;
        r->all += r->samples;
        r->samples = 0;
        r->step++;
        r->waits = false;
        r->next = now + r->per_sample;
    }
    return true;
}

/* Speeds of 1, 1 and 8: 90 samples take the time of 9 of a slow member. Each
 * ends the sample that it has begun, so a step takes one of those longer. */
static void test_unequal_speeds(void **state)
{
    (void)state;
    const pccl_ns ideal = 9 * SLOW, most = ideal + SLOW + 4 * LATENCY;
    pccl_ns began = now;
    racing = true;
    for (uint32_t i = 0; i < RACERS; i++)
        racers[i] = (struct racer){.per_sample = i < 2 ? SLOW : SLOW / 8,
                                   .next = now + (i < 2 ? SLOW : SLOW / 8),
                                   .count.interval = PCCL_MS};
    for (uint32_t done = 0; done < STEPS; now += PCCL_MS / 4) {
        uint64_t sum;
        deliver();
        if (now % (10 * PCCL_MS) == 1) tick();
        for (uint32_t i = 0; i < RACERS; i++) train(i);
        if (!all_average(&sum)) continue;
        pccl_ns took = now - began;
        assert_in_range(sum, TARGET, TARGET + 2 + 8 + 2);
        assert_in_range(took, ideal, most);
        began = now;
        done++;
    }
    /* Nobody waited until the slow ones had as many as the fast one. */
    assert_in_range(racers[0].all, 9 * STEPS, 10 * STEPS);
    assert_in_range(racers[2].all, 72 * STEPS, 82 * STEPS);
    racing = false;
    mail_count = 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_sum_is_told_at_ticks),
        TEST(test_a_step_is_reached_at_once),
        TEST(test_the_largest_target_counts),
        TEST(test_a_higher_step_ends_the_lower),
        TEST(test_the_next_step_waits_for_the_tick),
        TEST(test_the_dead_take_their_samples_along),
        TEST(test_a_reached_step_survives_deaths),
        TEST(test_the_group_falls_back),
        TEST(test_a_fall_to_who_came_late),
        TEST(test_a_fall_to_a_reached_step),
        TEST(test_one_goes_back_alone),
        TEST(test_a_target_is_lowered),
        TEST(test_all_who_counted_die),
        TEST(test_a_leaver_does_not_count),
        TEST(test_steps_may_be_made_again),
        TEST(test_a_newcomer_is_told),
        TEST(test_nonsense_is_refused),
        TEST(test_groups_count_apart),
        TEST(test_speed),
        TEST(test_unequal_speeds),
        cmocka_unit_test(test_reports_have_a_rate),
        cmocka_unit_test(test_what_may_complete_a_step_hurries),
        cmocka_unit_test(test_a_member_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
