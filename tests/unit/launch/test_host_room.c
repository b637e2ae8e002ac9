/* test_host_room.c - a host starts no ranks for which it lacks descriptors or
 * memory, and says what they need and what there is. */
#include "../unit.h"

#include "../../../src/launch/host_room.h"

static char error[512];

static bool fits(uint64_t descriptors, uint64_t memory, uint32_t ranks,
                 uint32_t inputs)
{
    struct host_room room = {descriptors, memory};
    struct host_load load = {ranks, inputs};
    error[0] = '\0';
    return host_has_room(&room, &load, error, sizeof error);
}

static void test_room(void **state)
{
    (void)state;
    uint64_t all = UINT64_MAX;
    assert_true(fits(0, 0, 0, 0));
    assert_true(fits(2 * 10 + 3 + 8, 40ull << 20, 10, 3));
    assert_false(fits(2 * 10 + 3 + 7, all, 10, 3));
    assert_string_equal(
        error, "10 ranks need 31 descriptors more in the process that starts "
               "them, and there may be 30 (ulimit -n)");
    assert_false(fits(all, (40ull << 20) - 1, 10, 0));
    assert_string_equal(
        error, "10 ranks need 40 MiB of memory at the least, and the host or "
               "the control group has 39 MiB left");
    assert_true(fits(all, all, 4096, 4096));
}

/* This host has room for what the test does. */
static void test_here(void **state)
{
    (void)state;
    struct host_room here = host_room_here();
    assert_true(fits(here.descriptors, here.memory, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_room),
                                       cmocka_unit_test(test_here)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
