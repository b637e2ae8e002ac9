/* test_sync_mixed.c - members that call with different kinds of strategy: who
 * differs from the group is refused, and the others go on (rule S2a). */
#include "cast.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

enum {
    POPULAR = PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
    RECEIVE = PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY,
    SEND = PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY
};

static struct cast cast;
static float values[4];

static int setup(void **state)
{
    (void)state;
    cast_open(&cast, 20000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cast_close(&cast);
    return 0;
}

/* Actor i has value i, calls with its strategy, and shall get the result. */
static void run(int count, const int *strategies, const pcclResult_t *results,
                uint64_t revision)
{
    cast_clear(&cast);
    for (int i = 0; i < count; i++) {
        if (!cast.actors[i].comm) cast_join(&cast, i, 0);
        values[i] = (float)i;
        cast_tensor(&cast, i, "weights", &values[i], 1, pcclFloat);
        cast.actors[i].strategy = (pcclSharedStateSyncStrategy_t)strategies[i];
        cast.actors[i].state.revision = revision;
    }
    cast_run(&cast);
    for (int i = 0; i < count; i++)
        if (cast.actors[i].result != results[i])
            fail_msg("actor %d: %d, %s", i, cast.actors[i].result,
                     cast.actors[i].error);
}

/* Also of a call that succeeded, without the one that was refused. */
static void says(int i, const char *words)
{
    char text[256] = "";
    (void)pcclGetLastError(cast.actors[i].comm, text, sizeof text);
    if (!strstr(text, words)) fail_msg("actor %d: %s", i, text);
}

static void the_odd_one_is_refused(void **state)
{
    (void)state;
    run(3, (int[]){POPULAR, POPULAR, RECEIVE},
        (pcclResult_t[]){pcclSuccess, pcclSuccess, pcclInvalidArgument}, 0);
    assert_true(values[0] == 0 && values[1] == 0 && values[2] == 2);
    says(2, "another strategy than the group");
    says(0, "rank 2 called with another strategy than the group: receive-only");
    says(1, "rank 2 called with another strategy");
    run(3, (int[]){POPULAR, POPULAR, POPULAR},
        (pcclResult_t[]){pcclSuccess, pcclSuccess, pcclSuccess}, 1);
    run(3, (int[]){POPULAR, SEND, RECEIVE},
        (pcclResult_t[]){pcclInvalidArgument, pcclSuccess, pcclSuccess}, 2);
    assert_true(values[0] == 0 && values[1] == 1 && values[2] == 1);
    says(1, "rank 0 called with another strategy than the group: enforce");
}

static void the_lowest_rank_breaks_a_tie(void **state)
{
    (void)state;
    run(2, (int[]){POPULAR, SEND},
        (pcclResult_t[]){pcclSuccess, pcclInvalidArgument}, 0);
    run(2, (int[]){SEND, POPULAR},
        (pcclResult_t[]){pcclSuccess, pcclInvalidArgument}, 1);
}

/* They have no state yet; the run is not theirs to stop. */
static void newcomers_do_not_outvote(void **state)
{
    (void)state;
    run(1, (int[]){POPULAR}, (pcclResult_t[]){pcclSuccess}, 0);
    run(3, (int[]){POPULAR, RECEIVE, RECEIVE},
        (pcclResult_t[]){pcclSuccess, pcclInvalidArgument, pcclInvalidArgument},
        1);
    assert_true(values[1] == 1 && values[2] == 2);
    run(3, (int[]){POPULAR, POPULAR, POPULAR},
        (pcclResult_t[]){pcclSuccess, pcclSuccess, pcclSuccess}, 2);
    assert_true(values[1] == 0 && values[2] == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_odd_one_is_refused),
        TEST(the_lowest_rank_breaks_a_tie),
        TEST(newcomers_do_not_outvote),
    };
    return cmocka_run_group_tests_name("sync/mixed", tests, NULL, NULL);
}
