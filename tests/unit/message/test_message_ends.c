/* test_message_ends.c - tests of late and ending message connections: an
 * outdated dial is refused (rule P2P-3), and the last messages of a lost member
 * are read before its loss, which is reported once (rule P2P-7); and how much
 * waits for a member. Two engines; the test carries the bytes. */
#include "../link/two_ends.h"

#include "../../../include/pccl.h"
#include "../../../src/message/message.h"

enum { ALICE, BOB };

static struct messages messages[ENGINES];

static int setup(void **state)
{
    (void)state;
    if (open_ends(8) != 0) return 1;
    for (uint32_t i = 0; i < ENGINES; i++) {
        memset(&messages[i], 0, sizeof messages[i]);
        message_init(&messages[i], &engines[i]->links,
                     &(struct message_events){0});
        install_view(engines[i], 1, members, ENGINES, i);
        message_use(&messages[i]);
    }
    return 0;
}

static int teardown(void **state)
{
    for (uint32_t i = 0; i < ENGINES; i++) message_free(&messages[i]);
    return close_ends(state);
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

/* Alice's first bytes on a connection that she has dialed. */
static size_t call(uint32_t conn, uint8_t *hello)
{
    assert_int_equal(dials, conn + 1);
    return greet(ALICE, conn, hello);
}

static void post(void)
{
    assert_int_equal(
        message_post(&messages[ALICE], ids[BOB], "word", 4, NULL, 0),
        pcclSuccess);
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
    assert_true(heard(BOB, 1, second, later));
    assert_int_equal(state_at(BOB, 1), CONN_OPEN);
    assert_true(engine_accepted(engines[BOB], 0));
    assert_false(heard(BOB, 0, first, size));
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
    assert_true(heard(BOB, 0, hello, size));
    engine_closed(engines[ALICE], 0);
    for (uint32_t i = 1; i < 10 && dials == 1; i++)
        tick(ALICE, i * PCCL_S / 10);
    size = call(1, hello);
    assert_true(engine_accepted(engines[BOB], 1));
    assert_true(heard(BOB, 1, hello, size));
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
    assert_true(heard(BOB, 0, bytes, size));
    size = speak(BOB, 0, bytes);
    assert_true(heard(ALICE, 0, bytes, size));
    post();
    size = speak(ALICE, 0, bytes); /* two messages */
    assert_true(heard(BOB, 0, bytes, size - 1));
    message_lose(&messages[BOB], ids[ALICE]);
    assert_int_equal(next_event(), EVENT_MESSAGE);
    assert_int_equal(next_event(), -1); /* more may be in the socket */
    assert_true(heard(BOB, 0, bytes + size - 1, 1));
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
    assert_true(heard(BOB, 0, bytes, size));
    engine_rx_dry(engines[BOB], 0);
    assert_int_equal(closed[BOB], 0);
    assert_int_equal(next_event(), -1);
}

/* What the other one has not acknowledged: 1024 messages and 1 MiB, as pccl.h
 * says. */
static void test_many_messages_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 1024; i++) post();
    assert_int_equal(
        message_post(&messages[ALICE], ids[BOB], "word", 4, NULL, 0),
        pcclPendingAsyncOps);
}

static void test_large_messages_wait(void **state)
{
    (void)state;
    static const uint8_t body[60000];
    size_t posted = 0;
    while (message_post(&messages[ALICE], ids[BOB], NULL, 0, body,
                        sizeof body) == pcclSuccess)
        posted += sizeof body;
    assert_in_range(posted, (1 << 20) - 2 * sizeof body, 1 << 20);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_overtaken_call_is_refused),
        TEST(test_a_newer_call_replaces),
        TEST(test_last_words_before_the_loss),
        TEST(test_silence_is_no_end),
        TEST(test_many_messages_wait),
        TEST(test_large_messages_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
