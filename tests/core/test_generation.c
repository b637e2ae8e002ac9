/* test_generation.c - a connection that its caller has given up carries nothing
 * any more, even if its end has not come to who was called; and the other end
 * calls where that works better (rule R3). */
#include "unit.h"

#include "../../src/ring/engine.h"

enum { CALLER, CALLED, ENGINES };

static struct engine *engines[ENGINES];
static struct wire_member members[ENGINES] = {{.id = 10}, {.id = 11}};
static uint64_t ids[ENGINES] = {10, 11};
static uint32_t dials;
static uint32_t closed[ENGINES]; /* bit set over connections */

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user;
    (void)addr;
    return dials++;
}

static void on_close(void *user, uint32_t conn)
{
    closed[user == &ids[CALLED]] |= 1u << conn;
}

static int setup(void **state)
{
    (void)state;
    dials = 0;
    for (uint32_t i = 0; i < ENGINES; i++) {
        closed[i] = 0;
        engines[i] = calloc(1, sizeof *engines[i]);
        struct engine_output o = {
            .user = &ids[i], .dial = on_dial, .close = on_close};
        if (!engines[i] || !engine_init(engines[i], &o, 1, PCCL_S)) return 1;
        engines[i]->self = ids[i];
        struct engine_view v = {.epoch = 1,
                                .world = ENGINES,
                                .rank = i,
                                .members = members,
                                .ids = ids,
                                .ring = true,
                                .mesh = true};
        engine_install(engines[i], &v);
        engine_freeze(engines[i]); /* between two views */
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ENGINES; i++) {
        engine_free(engines[i]);
        free(engines[i]);
    }
    return 0;
}

static enum conn_state state_at(uint32_t who, uint32_t conn)
{
    return engines[who]->conns[conn]->state;
}

/* What `who` says first on a new connection to the other. */
static size_t call(uint32_t who, uint8_t *hello)
{
    uint32_t conn = dials;
    struct engine_part parts[2];
    engine_want_link(engines[who], &members[!who], 1);
    assert_int_equal(dials, conn + 1);
    engine_dialed(engines[who], conn, true);
    assert_int_equal(engine_tx_window(engines[who], conn, parts), 1);
    memcpy(hello, parts[0].from, parts[0].size);
    engine_tx(engines[who], conn, parts[0].size);
    return parts[0].size;
}

static bool hear(uint32_t who, uint32_t conn, const uint8_t *bytes, size_t size)
{
    assert_true(engine_accepted(engines[who], conn));
    while (size > 0) {
        uint8_t *to;
        size_t room = engine_rx_window(engines[who], conn, &to);
        assert_true(room > 0);
        if (room > size) room = size;
        memcpy(to, bytes, room);
        if (!engine_rx(engines[who], conn, room)) return false;
        bytes += room;
        size -= room;
    }
    return true;
}

static void turn(uint32_t who, bool caller)
{
    engine_turn_link(engines[who], ids[!who], caller);
}

static void test_a_later_call_ends_the_earlier(void **state)
{
    (void)state;
    uint8_t first[STAGE_SIZE], second[STAGE_SIZE];
    size_t size = call(CALLER, first);
    assert_true(hear(CALLED, 0, first, size));
    assert_int_equal(state_at(CALLED, 0), CONN_OPEN);
    engine_closed(engines[CALLER], 0); /* the answer did not come in time */
    assert_true(hear(CALLED, 1, second, call(CALLER, second)));
    assert_int_equal(state_at(CALLED, 1), CONN_OPEN);
    assert_int_equal(state_at(CALLED, 0), CONN_FREE);
    assert_int_equal(closed[CALLED], 1);
}

static void test_a_late_call_is_refused(void **state)
{
    (void)state;
    uint8_t first[STAGE_SIZE], second[STAGE_SIZE];
    size_t size = call(CALLER, first);
    engine_closed(engines[CALLER], 0);
    assert_true(hear(CALLED, 0, second, call(CALLER, second)));
    assert_false(hear(CALLED, 1, first, size));
    assert_int_equal(state_at(CALLED, 0), CONN_OPEN);
    assert_int_equal(closed[CALLED], 2);
}

/* Where calls pass in the other direction alone. */
static void test_the_other_end_calls_back(void **state)
{
    (void)state;
    uint8_t hello[STAGE_SIZE];
    (void)call(CALLER, hello);
    engine_dialed(engines[CALLER], 0, false);
    assert_int_equal(engine_link_status(engines[CALLER], 11), LINK_FAILED);
    turn(CALLER, false);
    engine_want_link(engines[CALLER], &members[CALLED], 1);
    assert_int_equal(dials, 1); /* it waits, and does not call */
    assert_int_equal(engine_link_status(engines[CALLER], 11), LINK_WAITS);
    turn(CALLED, true);
    assert_true(hear(CALLER, 5, hello, call(CALLED, hello)));
    assert_int_equal(engine_link_status(engines[CALLER], 11), LINK_OPEN);
}

static void test_a_call_ahead_of_the_turn_waits(void **state)
{
    (void)state;
    uint8_t hello[STAGE_SIZE], *to;
    turn(CALLED, true);
    assert_true(hear(CALLER, 5, hello, call(CALLED, hello)));
    assert_int_equal(state_at(CALLER, 5), CONN_ACCEPTED);
    assert_int_equal(engine_rx_window(engines[CALLER], 5, &to), 0);
    turn(CALLER, false);
    assert_int_equal(state_at(CALLER, 5), CONN_OPEN);
}

static void test_an_unwelcome_call_ends_by_its_silence(void **state)
{
    (void)state;
    uint8_t hello[STAGE_SIZE];
    turn(CALLED, true);
    assert_true(hear(CALLER, 5, hello, call(CALLED, hello)));
    engine_tick(engines[CALLER], PCCL_S / 2 - 1);
    assert_int_equal(state_at(CALLER, 5), CONN_ACCEPTED);
    engine_tick(engines[CALLER], PCCL_S / 2);
    assert_int_equal(state_at(CALLER, 5), CONN_FREE);
    assert_int_equal(closed[CALLER], 1 << 5);
}

/* What was there is closed at both ends, and old numbers do not stand in the
 * way of the new caller's, nor the other way round. */
static void test_turning_begins_anew(void **state)
{
    (void)state;
    uint8_t hello[STAGE_SIZE];
    for (uint32_t i = 0; i < 3; i++) { /* the caller's numbers grow */
        (void)call(CALLER, hello);
        engine_closed(engines[CALLER], i);
    }
    assert_true(hear(CALLED, 0, hello, call(CALLER, hello)));
    turn(CALLER, false);
    assert_int_equal(state_at(CALLER, 3), CONN_FREE);
    turn(CALLED, true);
    assert_int_equal(state_at(CALLED, 0), CONN_FREE);
    assert_true(hear(CALLER, 0, hello, call(CALLED, hello)));
    assert_int_equal(state_at(CALLER, 0), CONN_OPEN);
    turn(CALLER, true);
    turn(CALLED, false);
    assert_true(hear(CALLED, 0, hello, call(CALLER, hello)));
    assert_int_equal(state_at(CALLED, 0), CONN_OPEN);
}

static void test_proposals_turn_all_links(void **state)
{
    (void)state;
    const struct wire_pair pairs[] = {{.caller = 11, .called = 10},
                                      {.caller = 99, .called = 98}};
    for (uint32_t i = 0; i < ENGINES; i++)
        engine_turn_links(engines[i], pairs, 2);
    assert_false(
        link_calls(engines[CALLER], link_find(engines[CALLER], 11, false)));
    assert_true(
        link_calls(engines[CALLED], link_find(engines[CALLED], 10, false)));
    for (uint32_t i = 0; i < ENGINES; i++)
        engine_turn_links(engines[i], NULL, 0);
    assert_true(
        link_calls(engines[CALLER], link_find(engines[CALLER], 11, false)));
    assert_false(
        link_calls(engines[CALLED], link_find(engines[CALLED], 10, false)));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_later_call_ends_the_earlier),
        TEST(test_a_late_call_is_refused),
        TEST(test_the_other_end_calls_back),
        TEST(test_a_call_ahead_of_the_turn_waits),
        TEST(test_an_unwelcome_call_ends_by_its_silence),
        TEST(test_turning_begins_anew),
        TEST(test_proposals_turn_all_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
