/* test_progress_home.c - where the ranks of a full host wait (progress_home.h):
 * which processor is whose, when a thread returns to it, and that nothing is
 * bound.
 */
#include "../unit.h"

#include "../../../src/peer/progress_home.h"

#include <stdlib.h>
#include <unistd.h>

static cpu_set_t processors_of(const int *numbers, size_t count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < count; i++) CPU_SET((size_t)numbers[i], &set);
    return set;
}

static void test_choose(void **state)
{
    (void)state;
    cpu_set_t three = processors_of((const int[]){1, 4, 9}, 3);
    cpu_set_t one = processors_of((const int[]){3}, 1);
    const int turns[] = {1, 4, 9, 1, 4, 9, 1};
    for (uint32_t i = 0; i < ARRAY_COUNT(turns); i++)
        assert_int_equal(home_choose(&three, i, 7), turns[i]);
    assert_int_equal(home_choose(&three, 2, 3), 9);
    assert_int_equal(home_choose(&three, 0, 2), -1);
    assert_int_equal(home_choose(&one, 0, 2), -1);
}

/* A rank that is bound to other processors takes nothing from this one's. */
static void test_share(void **state)
{
    (void)state;
    cpu_set_t four = processors_of((const int[]){0, 1, 2, 3}, 4);
    cpu_set_t two = processors_of((const int[]){2, 3}, 2);
    cpu_set_t other = processors_of((const int[]){4}, 1), none;
    CPU_ZERO(&none);
    assert_int_equal(home_share(&four, &four), 1000);
    assert_int_equal(home_share(&four, &two), 1000);
    assert_int_equal(home_share(&two, &four), 500);
    assert_int_equal(home_share(&two, &other), 0);
    assert_int_equal(home_share(&two, &none), 1000);
}

/* Somebody else wants that processor: each return comes later. */
static void test_gives_in(void **state)
{
    (void)state;
    struct home p = {.processor = 1, .pause = HOME_PAUSE_MIN};
    pccl_ns now = 0, second = 1000 * PCCL_MS;
    uint32_t returns = 0;
    for (; now < 60 * second; now += PCCL_MS) returns += home_due(&p, now, 0);
    assert_in_range(returns, 5, 60);
    assert_true(p.pause >= HOME_PAUSE_MAX);
    /* It is gone. */
    for (; now < 70 * second; now += PCCL_MS)
        assert_false(home_due(&p, now, 1));
    assert_true(p.pause <= HOME_PAUSE_MIN);
    now = p.next;
    assert_true(home_due(&p, now, 0));
}

static void test_not_too_often(void **state)
{
    (void)state;
    struct home p = {.processor = 1, .pause = HOME_PAUSE_MIN};
    assert_true(home_due(&p, 10 * PCCL_MS, 0));
    assert_false(home_due(&p, 10 * PCCL_MS + HOME_PAUSE_MIN, 0));
}

/* The thread is on its processor, and may leave it. */
static void test_nothing_is_bound(void **state)
{
    (void)state;
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    uint32_t online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (online < 2 || (uint32_t)CPU_COUNT(&before) != online) skip();
    for (uint32_t rank = 0; rank < 2 * online; rank++) {
        struct home p;
        home_begin(&p, rank, 2 * online);
        assert_int_equal(p.processor, home_choose(&before, rank, 2 * online));
        home_keep(&p, 1);
        assert_true(p.has_thread);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
}

static void test_bound_processes_stay(void **state)
{
    (void)state;
    cpu_set_t before, one;
    struct home p;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2 ||
        CPU_COUNT(&before) != sysconf(_SC_NPROCESSORS_ONLN))
        skip();
    home_begin(&p, 0, 1000);
    assert_int_not_equal(p.processor, -1);
    CPU_ZERO(&one);
    CPU_SET((size_t)home_choose(&before, 1, 1000), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    /* It is not where rank 0 would be, and stays all the same. */
    home_keep(&p, 1);
    assert_int_equal(p.processor, -1);
    home_begin(&p, 0, 1000);
    assert_int_equal(p.processor, -1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    setenv("PCCL_PLACE", "0", 1);
    home_begin(&p, 0, 1000);
    unsetenv("PCCL_PLACE");
    assert_int_equal(p.processor, -1);
}

static void *keep(void *home)
{
    home_keep(home, 1);
    return NULL;
}

static void test_one_thread_of_a_process(void **state)
{
    (void)state;
    struct home p;
    pthread_t other;
    home_begin(&p, 0, 1000);
    if (p.processor < 0) skip();
    home_keep(&p, 1);
    p.next = 0;
    assert_int_equal(pthread_create(&other, NULL, keep, &p), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(p.next, 0);
    home_keep(&p, 1);
    assert_int_not_equal(p.next, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_gives_in),
        cmocka_unit_test(test_not_too_often),
        cmocka_unit_test(test_nothing_is_bound),
        cmocka_unit_test(test_bound_processes_stay),
        cmocka_unit_test(test_one_thread_of_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
