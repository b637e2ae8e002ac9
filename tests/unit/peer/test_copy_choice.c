/* test_copy_choice.c - the faster one of two ways to copy (copy_choice.h): it
 * is found and followed, whatever disturbs single stretches, and the trials of
 * the slower one cost little. */
#include "../unit.h"

#include "../../../src/peer/copy_choice.h"

enum { SIZE = 64 * 1024, PORTION = 8 * 1024 };

static pccl_ns clock_now;

static pccl_ns now(void)
{
    return clock_now;
}

/* What a portion takes. */
struct machine {
    pccl_ns first, second;
};

static enum copy_way move(struct copy_choice *c, const struct machine *m,
                          pccl_ns rest)
{
    enum copy_way way = copy_best(c, SIZE);
    bool trial = false;
    for (size_t left = SIZE; left > 0; left -= PORTION) {
        enum copy_way part = copy_choose(c, left, left == SIZE, now);
        if (left == SIZE) trial = part != way;
        if (left == SIZE) way = part;
        /* all of it goes one way, but for a trial that took too long */
        assert_true(part == way || trial);
        clock_now += part == COPY_FIRST ? m->first : m->second;
        copy_moved(c, PORTION, now);
    }
    clock_now += rest;
    copy_over(c, now());
    return way;
}

/* The share of the second way, in percent. */
static int share_of_second(struct copy_choice *c, const struct machine *m,
                           int stretches)
{
    int second = 0;
    for (int i = 0; i < stretches; i++)
        second += move(c, m, 200) == COPY_SECOND;
    return second * 100 / stretches;
}

static void test_faster_way_is_taken(void **state)
{
    (void)state;
    struct copy_choice c = {0};
    assert_int_equal(share_of_second(&c, &(struct machine){400, 200}, 8), 0);
    assert_true(share_of_second(&c, &(struct machine){400, 200}, 1000) > 90);
    struct copy_choice d = {0};
    assert_true(share_of_second(&d, &(struct machine){200, 400}, 1000) < 10);
    /* no better, no change */
    struct copy_choice e = {0};
    assert_true(share_of_second(&e, &(struct machine){200, 195}, 1000) < 10);
}

static void test_change_is_followed(void **state)
{
    (void)state;
    struct copy_choice c = {0};
    for (int i = 0; i < 3; i++) {
        (void)share_of_second(&c, &(struct machine){400, 200}, 2000);
        assert_true(share_of_second(&c, &(struct machine){400, 200}, 500) > 90);
        (void)share_of_second(&c, &(struct machine){400, 8000}, 2000);
        assert_true(share_of_second(&c, &(struct machine){400, 8000}, 500) < 3);
    }
}

/* A way that takes 40 times as long is given up within a stretch, and all
 * trials together take less than a tenth of the time. */
static void test_trials_are_cheap(void **state)
{
    (void)state;
    struct copy_choice c = {0};
    const struct machine m = {400, 16000};
    pccl_ns start = clock_now;
    enum { MANY = 10000 };
    for (int i = 0; i < MANY; i++) (void)move(&c, &m, 200);
    pccl_ns least = MANY * (SIZE / PORTION * m.first + 200);
    assert_true(clock_now - start < least + least / 10);
}

/* The way that was slower at first is tried again soon. */
static void test_first_trials(void **state)
{
    (void)state;
    struct copy_choice c = {0};
    (void)share_of_second(&c, &(struct machine){4000, 5000}, 32);
    assert_true(share_of_second(&c, &(struct machine){400, 200}, 200) > 70);
}

/* The program computes before it notices that all was read. */
static void test_disturbed_stretches(void **state)
{
    (void)state;
    struct copy_choice c = {0};
    const struct machine m = {400, 200};
    int second = 0;
    for (int i = 0; i < 3000; i++) {
        pccl_ns rest = i % 7 == 0 ? 5 * PCCL_MS : 200;
        second += move(&c, &m, rest) == COPY_SECOND;
    }
    assert_true(second > 2400);
}

/* Nothing is measured from the middle of a frame on, and a stretch without an
 * end is cut. */
static void test_stretch(void **state)
{
    (void)state;
    struct copy_choice c = {0};
    assert_int_equal(copy_choose(&c, SIZE, false, now), COPY_FIRST);
    assert_false(c.runs);
    copy_moved(&c, SIZE, now);
    copy_over(&c, now());
    assert_int_equal(copy_choose(&c, SIZE, true, now), COPY_FIRST);
    assert_true(c.runs);
    for (uint64_t done = 0; done < COPY_STRETCH_MAX; done += SIZE) {
        assert_true(c.runs);
        copy_moved(&c, SIZE, now);
    }
    assert_false(c.runs);
    /* sizes that no class is for */
    c.skip = 0;
    assert_int_equal(copy_choose(&c, 1, true, now), COPY_FIRST);
    copy_over(&c, now());
    assert_int_equal(copy_choose(&c, SIZE_MAX, true, now), COPY_FIRST);
    copy_moved(&c, SIZE_MAX / 2, now);
    assert_false(c.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faster_way_is_taken),
        cmocka_unit_test(test_change_is_followed),
        cmocka_unit_test(test_trials_are_cheap),
        cmocka_unit_test(test_first_trials),
        cmocka_unit_test(test_disturbed_stretches),
        cmocka_unit_test(test_stretch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
