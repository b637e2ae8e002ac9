/* test_generation.c - a connection that its caller has given up carries nothing
 * any more, even if its end has not come to who was called (rule R3). */
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

static enum conn_state called(uint32_t conn)
{
    return engines[CALLED]->conns[conn]->state;
}

/* What the caller says first on a new connection. */
static size_t call(uint8_t *hello)
{
    uint32_t conn = dials;
    struct engine_part parts[2];
    engine_want_link(engines[CALLER], &members[CALLED], 1);
    assert_int_equal(dials, conn + 1);
    engine_dialed(engines[CALLER], conn, true);
    assert_int_equal(engine_tx_window(engines[CALLER], conn, parts), 1);
    memcpy(hello, parts[0].from, parts[0].size);
    engine_tx(engines[CALLER], conn, parts[0].size);
    return parts[0].size;
}

static bool hear(uint32_t conn, const uint8_t *bytes, size_t size)
{
    assert_true(engine_accepted(engines[CALLED], conn));
    while (size > 0) {
        uint8_t *to;
        size_t room = engine_rx_window(engines[CALLED], conn, &to);
        assert_true(room > 0);
        if (room > size) room = size;
        memcpy(to, bytes, room);
        if (!engine_rx(engines[CALLED], conn, room)) return false;
        bytes += room;
        size -= room;
    }
    return true;
}

static void test_a_later_call_ends_the_earlier(void **state)
{
    (void)state;
    uint8_t first[STAGE_SIZE], second[STAGE_SIZE];
    size_t size = call(first);
    assert_true(hear(0, first, size));
    assert_int_equal(called(0), CONN_OPEN);
    engine_closed(engines[CALLER], 0); /* the answer did not come in time */
    assert_true(hear(1, second, call(second)));
    assert_int_equal(called(1), CONN_OPEN);
    assert_int_equal(called(0), CONN_FREE);
    assert_int_equal(closed[CALLED], 1);
}

static void test_a_late_call_is_refused(void **state)
{
    (void)state;
    uint8_t first[STAGE_SIZE], second[STAGE_SIZE];
    size_t size = call(first);
    engine_closed(engines[CALLER], 0);
    assert_true(hear(0, second, call(second)));
    assert_false(hear(1, first, size));
    assert_int_equal(called(0), CONN_OPEN);
    assert_int_equal(closed[CALLED], 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_later_call_ends_the_earlier),
        TEST(test_a_late_call_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
