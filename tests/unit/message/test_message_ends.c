/* test_message_ends.c - tests of late and ending message connections: an
 * outdated dial is refused (rule P2P-3), and the last messages of a lost member
 * are read before its loss, which is reported once (rule P2P-7). Two engines;
 * the test carries the bytes. */
#include "../unit.h"

#include "../../../include/pccl.h"
#include "../../../src/message/message.h"
#include "../../../src/ring/op.h"
#include "../install_view.h"
#include "../../world/host/line.h"

enum { ALICE, BOB, ENGINES };

static struct engine *engines[ENGINES];
static struct messages messages[ENGINES];
static struct wire_member members[ENGINES] = {{.id = 10}, {.id = 11}};
static const uint64_t ids[ENGINES] = {10, 11};
static uint32_t dials;
static uint32_t closed[ENGINES]; /* bit set over connections */

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user, (void)addr;
    return dials++;
}

static void on_close(void *user, uint32_t conn)
{
    closed[user == &ids[BOB]] |= 1u << conn;
}

static int setup(void **state)
{
    (void)state;
    dials = 0;
    for (uint32_t i = 0; i < ENGINES; i++) {
        closed[i] = 0;
        memset(&messages[i], 0, sizeof messages[i]);
        engines[i] = calloc(1, sizeof *engines[i]);
        struct driver d = {.user = (void *)(uintptr_t)&ids[i],
                           .dial = on_dial,
                           .close = on_close};
        struct engine_events o = {.user = (void *)(uintptr_t)&ids[i]};
        if (!engines[i] || !engine_init(engines[i], &d, &o, 1, PCCL_S))
            return 1;
        message_init(&messages[i], &engines[i]->links,
                     &(struct message_events){0});
        engines[i]->links.self = ids[i];
        engines[i]->links.fill_size = 8;
        install_view(engines[i], 1, members, ENGINES, i);
        message_use(&messages[i]);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ENGINES; i++) {
        message_free(&messages[i]);
        engine_free(engines[i]);
        free(engines[i]);
    }
    return 0;
}

static void tick(uint32_t who, pccl_ns now)
{
    engine_tick(engines[who], now);
    message_progress(&messages[who]);
}

/* Writes all pending output to bytes; returns the size. */
static size_t speak(uint32_t who, uint32_t conn, uint8_t *bytes)
{
    return line_take(&engines[who]->links, conn, bytes, RX_BUFFER_SIZE);
}

/* False: a protocol violation; the connection was closed. */
static bool hear(uint32_t who, uint32_t conn, const uint8_t *bytes, size_t size)
{
    struct links *n = &engines[who]->links;
    return line_give(n, conn, bytes, size) == size && !conn_is_free(n, conn);
}

/* Alice's first bytes on a connection that she has dialed. */
static size_t call(uint32_t conn, uint8_t *hello)
{
    assert_int_equal(dials, conn + 1);
    engine_dialed(engines[ALICE], conn, true);
    return speak(ALICE, conn, hello);
}

static void post(void)
{
    assert_int_equal(
        message_post(&messages[ALICE], ids[BOB], "word", 4, NULL, 0),
        pcclSuccess);
}

static enum conn_state state_at(uint32_t who, uint32_t conn)
{
    return engines[who]->links.conns[conn]->state;
}

/* Kind of the next event at Bob; -1: none. */
static int next_event(void)
{
    struct message_event *event = message_take(&messages[BOB]);
    if (!event) return -1;
    int kind = (int)event->kind;
    message_release(&messages[BOB], event);
    return kind;
}

static void test_an_overtaken_call_is_refused(void **state)
{
    (void)state;
    uint8_t first[RX_BUFFER_SIZE], second[RX_BUFFER_SIZE];
    post();
    size_t size = call(0, first);
    engine_closed(engines[ALICE], 0); /* no reply: she dials again */
    for (uint32_t i = 1; i < 10 && dials == 1; i++)
        tick(ALICE, i * PCCL_S / 10);
    size_t later = call(1, second);
    assert_true(engine_accepted(engines[BOB], 1));
    assert_true(hear(BOB, 1, second, later));
    assert_int_equal(state_at(BOB, 1), CONN_OPEN);
    assert_true(engine_accepted(engines[BOB], 0));
    assert_false(hear(BOB, 0, first, size));
    assert_int_equal(closed[BOB], 1);
    assert_int_equal(state_at(BOB, 1), CONN_OPEN);
}

/* The newer connection replaces one that its dialer has lost. */
static void test_a_newer_call_replaces(void **state)
{
    (void)state;
    uint8_t hello[RX_BUFFER_SIZE];
    post();
    size_t size = call(0, hello);
    assert_true(engine_accepted(engines[BOB], 0));
    assert_true(hear(BOB, 0, hello, size));
    engine_closed(engines[ALICE], 0);
    for (uint32_t i = 1; i < 10 && dials == 1; i++)
        tick(ALICE, i * PCCL_S / 10);
    size = call(1, hello);
    assert_true(engine_accepted(engines[BOB], 1));
    assert_true(hear(BOB, 1, hello, size));
    assert_int_equal(closed[BOB], 1);
    assert_int_equal(state_at(BOB, 1), CONN_OPEN);
}

/* Alice has sent and is removed; Bob has not read all of it. */
static void test_last_words_before_the_loss(void **state)
{
    (void)state;
    uint8_t bytes[RX_BUFFER_SIZE];
    post();
    size_t size = call(0, bytes);
    assert_true(engine_accepted(engines[BOB], 0));
    assert_true(hear(BOB, 0, bytes, size));
    size = speak(BOB, 0, bytes);
    assert_true(hear(ALICE, 0, bytes, size));
    post();
    size = speak(ALICE, 0, bytes); /* two messages */
    assert_true(hear(BOB, 0, bytes, size - 1));
    message_lose(&messages[BOB], ids[ALICE]);
    assert_int_equal(next_event(), EVENT_MESSAGE);
    assert_int_equal(next_event(), -1); /* more may be in the socket */
    assert_true(hear(BOB, 0, bytes + size - 1, 1));
    engine_rx_dry(engines[BOB], 0); /* the socket is empty */
    assert_int_equal(closed[BOB], 1);
    assert_int_equal(next_event(), EVENT_MESSAGE);
    assert_int_equal(next_event(), EVENT_LOST);
    assert_int_equal(next_event(), -1);
}

/* While she is a member, an empty socket is no end. */
static void test_silence_is_no_end(void **state)
{
    (void)state;
    uint8_t bytes[RX_BUFFER_SIZE];
    post();
    size_t size = call(0, bytes);
    assert_true(engine_accepted(engines[BOB], 0));
    assert_true(hear(BOB, 0, bytes, size));
    engine_rx_dry(engines[BOB], 0);
    assert_int_equal(closed[BOB], 0);
    assert_int_equal(next_event(), -1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_overtaken_call_is_refused),
        TEST(test_a_newer_call_replaces),
        TEST(test_last_words_before_the_loss),
        TEST(test_silence_is_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
