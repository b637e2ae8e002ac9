/* test_room.c - a newcomer joins no world for whose links its process lacks
 * descriptors or memory (rule R3j). */
#include "joined.h"

static uint64_t affordable, asked_for, memory_left = UINT64_MAX;

static uint64_t on_afford(void *user, uint64_t descriptors)
{
    (void)user;
    asked_for = descriptors;
    return affordable;
}

static uint64_t on_memory(void *user)
{
    (void)user;
    return memory_left;
}

/* Member 10 of 10 to 16 is proposed with all of them. */
static void join_with(uint64_t descriptors, bool mesh)
{
    const struct session_events events = {.afford = on_afford,
                                          .memory = on_memory};
    affordable = descriptors;
    assert_true(begin(&events, NULL, &welcome_10));
    first_view(MEMBERS, mesh, false);
}

static void test_enough_is_enough(void **state)
{
    (void)state;
    join_with(14, true);
    assert_int_equal(session->state, SESSION_JOINING);
    (void)teardown(NULL);
    join_with(6, false); /* two neighbours */
    assert_int_equal(asked_for, 6);
    assert_int_equal(session->state, SESSION_JOINING);
    (void)teardown(NULL);
}

static void test_one_too_few(void **state)
{
    (void)state;
    join_with(13, true);
    assert_int_equal(asked_for, 14);
    assert_int_equal(session->state, SESSION_GONE);
    assert_string_equal(session->reason,
                        "a world of 7 members needs 14 descriptors more in "
                        "this process, and there may be 13 (ulimit -n)");
    (void)teardown(NULL);
}

static void test_too_little_memory(void **state)
{
    (void)state;
    memory_left = 6 * 520 * 1024;
    join_with(14, true);
    assert_int_equal(session->state, SESSION_JOINING);
    (void)teardown(NULL);
    memory_left--;
    join_with(14, true);
    assert_int_equal(session->state, SESSION_GONE);
    assert_string_equal(session->reason,
                        "a world of 7 members needs 3120 KiB of memory more in "
                        "this process, and there are 3119 (ulimit -v, the "
                        "host, or its control group)");
    (void)teardown(NULL);
    memory_left = UINT64_MAX;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enough_is_enough),
        cmocka_unit_test(test_one_too_few),
        cmocka_unit_test(test_too_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
