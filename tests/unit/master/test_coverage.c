/* test_coverage.c - the coordinator of partial all-reduces, rules A:
 * transcripts of rounds that are whole, gathered, cut short, late, lapsed,
 * refused; lies; evictions; and the sizes of parts. */
#include "coverage_said.h"

/* ------------------------------------------------------------------ rounds */

static void test_a_whole_round(void **state) /* A4, A7 */
{
    (void)state;
    call(0);
    call(1);
    expect("");
    call(2);
    expect("plan 0 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 1 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 2 0+4@0 4+4@1 8+4@2 called 012\n");
    holds(2, "0"); /* it was faster than FOLDED (A11) */
    folded(0, 0, 7);
    folded(1, 1, 7);
    folded(2, 2, 7);
    holds(2, "1");
    holds(0, "12");
    expect("");
    holds(1, "02");
    expect("end 0 0+4 of 012 (7) 4+4 of 012 (7) 8+4 of 012 (7) last\n"
           "end 1 0+4 of 012 (7) 4+4 of 012 (7) 8+4 of 012 (7) last\n"
           "end 2 0+4 of 012 (7) 4+4 of 012 (7) 8+4 of 012 (7) last\n");
}

/* The third member calls after the decision (A2, A8). */
static void test_a_late_call(void **state)
{
    (void)state;
    call(0);
    call(1);
    later(1);
    expect("");
    later(1);
    expect("plan 0 0+6@0 6+6@1 called 01\n"
           "plan 1 0+6@0 6+6@1 called 01\n");
    folded(0, 0, 3);
    folded(1, 1, 3);
    holds(0, "1");
    holds(1, "0");
    expect("end 0 0+6 of 01 (3) 6+6 of 01 (3)\n"
           "end 1 0+6 of 01 (3) 6+6 of 01 (3)\n");
    later(8);
    expect("");
    call(2);
    expect("fetch 2 0+6 at 01 6+6 at 01\n");
    holds(2, "0");
    expect("");
    holds(2, "1");
    expect("end 2 0+6 of 01 (3) 6+6 of 01 (3) late\n"
           "release 012\n");
}

/* A member that calls while data move contributes to what is not folded. */
static void test_a_call_amid(void **state) /* A1, A4 */
{
    (void)state;
    call(0);
    call(1);
    later(2);
    folded(0, 0, 3);
    said[0] = '\0';
    call(2);
    expect("plan 0 0+6@0 6+6@1 called 012\n"
           "plan 1 0+6@0 6+6@1 called 012\n"
           "plan 2 0+6@0 6+6@1 called 012\n");
    folded(1, 1, 7);
    holds(0, "1");
    holds(1, "0");
    expect("");
    holds(2, "01");
    expect("end 0 0+6 of 01 (3) 6+6 of 012 (7) last\n"
           "end 1 0+6 of 01 (3) 6+6 of 012 (7) last\n"
           "end 2 0+6 of 01 (3) 6+6 of 012 (7) last\n");
}

static void all_call(void)
{
    for (uint32_t i = 0; i < 3; i++) call(i);
    said[0] = '\0';
}

/* Orders by the clock; half of the callers decide (A6, A7, A8). */
static void test_the_deadline(void **state)
{
    (void)state;
    all_call();
    later(3);
    expect("");
    later(1);
    expect("fold 012\n");
    folded(0, 0, 7);
    folded(1, 1, 3);
    holds(1, "0");
    later(3);
    expect("report 012\n");
    holds(0, "");
    holds(1, "");
    expect("");
    later(1); /* the third one says nothing */
    /* Of three callers two have the first part, one has the second. */
    expect("end 0 0+4 of 012 (7) 4+4 missing 8+4 missing\n"
           "end 1 0+4 of 012 (7) 4+4 missing 8+4 missing\n"
           "fetch 2 0+4 at 01 4+4 8+4\n");
}

static void test_reports_decide(void **state) /* A7 */
{
    (void)state;
    all_call();
    later(4);
    folded(0, 0, 7);
    folded(2, 2, 7);
    holds(1, "02");
    holds(2, "0");
    later(3);
    said[0] = '\0';
    for (uint32_t i = 0; i < 2; i++) holds(i, "");
    expect("");
    holds(2, "");
    expect("fetch 0 0+4 at 012 4+4 8+4 at 12\n"
           "end 1 0+4 of 012 (7) 4+4 missing 8+4 of 012 (7)\n"
           "end 2 0+4 of 012 (7) 4+4 missing 8+4 of 012 (7)\n");
}

/* ------------------------------------------------------------------ losses */

static void test_an_owner_dies(void **state) /* A4, A7 */
{
    (void)state;
    all_call();
    folded(0, 0, 7);
    step(MASTER_CLOSED, 1, NULL);
    expect("plan 0 0+4@0 4+4@1 8+4@2 called 012 gone 1\n"
           "plan 2 0+4@0 4+4@1 8+4@2 called 012 gone 1\n");
    folded(2, 2, 7);
    holds(0, "2");
    holds(2, "0");
    expect("end 0 0+4 of 012 (7) 4+4 missing 8+4 of 012 (7) last\n"
           "end 2 0+4 of 012 (7) 4+4 missing 8+4 of 012 (7) last\n");
}

/* Nobody waits for a member whose call has failed (A12). */
static void test_a_call_fails(void **state)
{
    (void)state;
    all_call();
    uint64_t round = number();
    failed(1, round);
    expect("release 1\n"
           "plan 0 0+4@0 4+4@1 8+4@2 called 012 gone 1\n"
           "plan 2 0+4@0 4+4@1 8+4@2 called 012 gone 1\n");
    call(1);
    expect("refuse 1 1\n");
    failed(1, round + 1); /* of what is over */
    expect("release 1\n");
}

/* Both that had ended with a part die before the third one has it (A8). */
static void test_all_holders_go(void **state) /* A1, A8 */
{
    (void)state;
    two_average();
    call(2);
    said[0] = '\0';
    step(MASTER_CLOSED, 0, NULL);
    expect("fetch 2 0+6 at 1 6+6 at 1\n");
    step(MASTER_RECEIVED, 1, &(struct wire_msg){.type = WIRE_LEAVE});
    expect("end 2 0+6 missing 6+6 missing late last\n");
}

static void test_all_callers_die(void **state) /* A1 */
{
    (void)state;
    call(0);
    later(2);
    uint64_t first = number();
    step(MASTER_CLOSED, 0, NULL);
    assert_int_equal(number(), 0);
    said[0] = '\0';
    call(1);
    assert_true(number() > first);
    call(2);
    expect("plan 1 0+6@0 6+6@1 called 01\n"
           "plan 2 0+6@0 6+6@1 called 01\n");
}

/* --------------------------------------------------- too late; not there */

static void test_a_lapse(void **state) /* A9 */
{
    (void)state;
    two_average();
    two_average();
    said[0] = '\0';
    two_average();
    assert_non_null(strstr(said, "release 01\n")); /* of the first one */
    said[0] = '\0';
    call(2);
    expect("refuse 2 1\n" /* PARTIAL_LATE */
           "release 01\n"
           "release 01\n");
    call(0);
    call(1);
    expect("");
    call(2); /* in the round of the others again */
    expect("plan 0 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 1 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 2 0+4@0 4+4@1 8+4@2 called 012\n");
}

static void test_two_rounds_late(void **state) /* A2, A9 */
{
    (void)state;
    two_average();
    uint64_t first = number();
    two_average();
    uint64_t second = number();
    said[0] = '\0';
    call(2);
    holds_in(2, "01", first);
    call(2);
    holds_in(2, "01", second);
    expect("fetch 2 0+6 at 01 6+6 at 01\n"
           "end 2 0+6 of 01 (3) 6+6 of 01 (3) late\n"
           "release 012\n"
           "fetch 2 0+6 at 01 6+6 at 01\n"
           "end 2 0+6 of 01 (3) 6+6 of 01 (3) late\n"
           "release 012\n");
}

static void test_a_fetch_takes_too_long(void **state) /* A9 */
{
    (void)state;
    two_average();
    later(4);
    call(2);
    said[0] = '\0';
    later(7);
    expect("");
    later(1);
    expect("refuse 2 1\n"
           "release 012\n");
}

/* Member 2 waits in the first of two rounds that are decided. */
static void one_of_two_waits(void)
{
    two_average();
    uint64_t first = number();
    two_average();
    call(2);
    assert_true(number() > first);
    said[0] = '\0';
}

/* Whoever is told that it has missed a round synchronizes, and has by that what
 * the second round did: its next call is for another one (A13). */
static void test_refused_and_brought_along(void **state)
{
    (void)state;
    one_of_two_waits();
    later(8);
    expect("refuse 2 1\n"
           "release 012\n"
           "release 01\n");
    call(2);
    call(1);
    call(0);
    expect("plan 0 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 1 0+4@0 4+4@1 8+4@2 called 012\n"
           "plan 2 0+4@0 4+4@1 8+4@2 called 012\n");
}

static void test_failed_and_brought_along(void **state) /* A12, A13 */
{
    (void)state;
    one_of_two_waits();
    failed(2, number() - 1);
    expect("release 2\n"
           "release 01\n"
           "release 01\n");
    call(2);
    expect("");
}

/* Rules A3, A13: the arguments of its call are others than those of a round
 * that is decided. */
static void test_alone_and_brought_along(void **state)
{
    (void)state;
    two_average();
    two_average();
    said[0] = '\0';
    struct wire_msg other = call_of(5, 4);
    other.partial.count = 13;
    step(MASTER_RECEIVED, 2, &other);
    expect("refuse 2 0\n"
           "release 012\n"
           "release 01\n");
    call(2);
    expect("");
}

/* Rules A9, A13: it may call for the round that was undecided when it was told,
 * until that is decided without it. */
static void test_lapsed_and_brought_along(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) two_average();
    call(0);
    call(2);
    said[0] = '\0';
    call(1); /* nobody waits for 2 */
    folded(0, 0, 3);
    folded(1, 1, 3);
    holds(0, "1");
    holds(1, "0");
    assert_non_null(strstr(said, "end 0 0+6 of 01 (3) 6+6 of 01 (3) last\n"));
    said[0] = '\0';
    call(2);
    expect("");
}

static void evicting_call(uint32_t link)
{
    struct wire_msg m = call_of(5, 1);
    m.partial.evict_after = 2;
    step(MASTER_RECEIVED, link, &m);
}

static void test_absence(void **state) /* A10 */
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        evicting_call(0);
        evicting_call(1);
        later(2);
        said[0] = '\0';
        folded(0, 0, 3);
        folded(1, 1, 3);
        holds(0, "1");
        assert_null(strstr(said, "close"));
        holds(1, "0");
    }
    assert_non_null(strstr(said, "close 2: it contributed to no part"));
}

/* Its calls fail, and it has contributed to no part. */
static void test_absence_of_a_failed_one(void **state) /* A10, A12 */
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        evicting_call(0);
        evicting_call(1);
        later(2);
        evicting_call(2);
        failed(2, number());
        said[0] = '\0';
        folded(0, 0, 3);
        folded(1, 1, 3);
        holds(0, "1");
        assert_null(strstr(said, "close"));
        holds(1, "0");
    }
    assert_non_null(strstr(said, "close 2: it contributed to no part"));
}

/* Absent, there, absent again: never twice in a row. */
static void test_absence_now_and_then(void **state) /* A10 */
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        evicting_call(0);
        evicting_call(1);
        later(2);
        if (k % 2 == 1) evicting_call(2);
        uint8_t set = k % 2 == 1 ? 7 : 3;
        uint64_t round = number();
        folded(0, 0, set);
        folded(1, 1, set);
        holds(0, "1");
        holds(1, "0");
        holds(2, "01");
        said[0] = '\0';
        if (k % 2 == 0) evicting_call(2); /* its parts, late */
        holds_in(2, "01", round);
        assert_null(strstr(said, "close"));
    }
}

/* A round without any part proves nothing of anybody. */
static void test_absence_of_all(void **state) /* A10 */
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < 3; i++) evicting_call(i);
        later(7);
        said[0] = '\0';
        for (uint32_t i = 0; i < 3; i++) holds(i, "");
        expect("end 0 0+4 missing 4+4 missing 8+4 missing late last\n"
               "end 1 0+4 missing 4+4 missing 8+4 missing late last\n"
               "end 2 0+4 missing 4+4 missing 8+4 missing late last\n");
    }
}

/* A round without any part is no absence, and ends no row of absences. */
static void test_absence_around_nothing(void **state) /* A10 */
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        evicting_call(0);
        evicting_call(1);
        later(k % 2 == 0 ? 7 : 2);
        said[0] = '\0';
        if (k % 2 == 1) {
            folded(0, 0, 3);
            folded(1, 1, 3);
        }
        holds(0, k % 2 == 0 ? "" : "1");
        assert_null(strstr(said, "close"));
        holds(1, k % 2 == 0 ? "" : "0");
        assert_true((strstr(said, "close 2: it contributed") != NULL) ==
                    (k == 3));
    }
}

/* --------------------------------------------------- disagreement and lies */

static void test_disagreement(void **state) /* A3 */
{
    (void)state;
    call(0);
    call(1);
    struct wire_msg m = call_of(5, 1);
    m.partial.count = 13;
    step(MASTER_RECEIVED, 2, &m);
    expect("refuse 2 0\n"
           "refuse 0 0\n"
           "refuse 1 0\n");
    two_average();
    said[0] = '\0';
    m.partial.version = ++calls;
    step(MASTER_RECEIVED, 2, &m); /* the round is decided: it alone */
    expect("refuse 2 0\n"
           "release 012\n");
}

static void test_lies(void **state) /* A11 */
{
    (void)state;
    call(0);
    call(1);
    later(2);
    said[0] = '\0';
    folded(0, 1, 3); /* not its part */
    folded(0, 9, 3); /* no part */
    folded(0, 0, 7); /* with the third one, who has not called */
    folded(0, 0, 2); /* without itself */
    folded_by(0, 0, 3, 77);
    holds(1, "0");
    holds(1, "9");
    for (uint32_t i = 0; i < 2; i++)
        assert_false(master->groups[0].averages->parts[i].folded);
    folded(0, 0, 3);
    folded(0, 0, 1); /* once */
    struct coverage_part *p = &master->groups[0].averages->parts[0];
    assert_true(p->set[0] == 3 && p->holders[0] == 3);
    expect("");
    struct wire_msg twice = call_of(5, 1);
    twice.partial.version = calls = 1; /* it has come already */
    step(MASTER_RECEIVED, 0, &twice);
    expect("");
    calls = 1000;
    call(0);
    expect("close 0: called a partial all-reduce twice\n"
           "plan 1 0+6@0 6+6@1 called 01 gone 0\n");
}

static void test_wrong_hash(void **state) /* A11 */
{
    (void)state;
    all_call();
    uint64_t ids[] = {0, 999};
    struct wire_msg m = {.type = WIRE_PARTIAL, .ids = ids, .id_count = 2};
    m.partial.word = PARTIAL_HOLDS;
    m.partial.number = number();
    step(MASTER_RECEIVED, 1, &m); /* before FOLDED */
    folded(0, 0, 7);
    step(MASTER_RECEIVED, 2, &m); /* after it */
    assert_true(master->groups[0].averages->parts[0].holders[0] == 1);
}

/* ------------------------------------------------------------------- sizes */

static double slowest(const double *rates, const uint64_t *counts, uint32_t n,
                      double total)
{
    double worst = 0;
    for (uint32_t i = 0; i < n; i++) {
        double t = total * (1 + (n - 2) * (double)counts[i] / total) / rates[i];
        if (t > worst) worst = t;
    }
    return worst;
}

static void test_sizes(void **state) /* A4 */
{
    (void)state;
    const double unknown[] = {5, 0, 5};
    const double fast[] = {100, 100, 10, 100};
    uint64_t counts[4];
    coverage_sizes(10, unknown, 3, counts);
    assert_int_equal(counts[0] + counts[1] + counts[2], 10);
    assert_in_range(counts[1], 3, 4);
    coverage_sizes(1, fast, 4, counts);
    assert_int_equal(counts[0] + counts[1] + counts[2] + counts[3], 1);
    coverage_sizes(1000000, fast, 4, counts);
    assert_int_equal(counts[0] + counts[1] + counts[2] + counts[3], 1000000);
    assert_int_equal(counts[2], 0); /* it has enough to do with its vector */
    /* No exchange of elements makes the slowest faster. */
    const double mixed[] = {50, 80, 100, 120};
    coverage_sizes(1000000, mixed, 4, counts);
    double best = slowest(mixed, counts, 4, 1e6);
    for (uint32_t a = 0; a < 4; a++) {
        for (uint32_t b = 0; b < 4; b++) {
            if (a == b || counts[a] < 10000) continue;
            counts[a] -= 10000;
            counts[b] += 10000;
            assert_true(slowest(mixed, counts, 4, 1e6) >= best);
            counts[a] += 10000;
            counts[b] -= 10000;
        }
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_whole_round),
        TEST(test_a_late_call),
        TEST(test_a_call_amid),
        TEST(test_the_deadline),
        TEST(test_reports_decide),
        TEST(test_an_owner_dies),
        TEST(test_a_call_fails),
        TEST(test_all_holders_go),
        TEST(test_all_callers_die),
        TEST(test_a_lapse),
        TEST(test_two_rounds_late),
        TEST(test_a_fetch_takes_too_long),
        TEST(test_refused_and_brought_along),
        TEST(test_failed_and_brought_along),
        TEST(test_alone_and_brought_along),
        TEST(test_lapsed_and_brought_along),
        TEST(test_absence),
        TEST(test_absence_of_a_failed_one),
        TEST(test_absence_now_and_then),
        TEST(test_absence_of_all),
        TEST(test_absence_around_nothing),
        TEST(test_disagreement),
        TEST(test_lies),
        TEST(test_wrong_hash),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
