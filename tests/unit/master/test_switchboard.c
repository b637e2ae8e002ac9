/* test_switchboard.c - whom the coordinator cuts off, and when: a slow reader,
 * half a message, an end in the midst of one, a crowd of strangers, and those
 * that linger. The peers are buffers; the test moves the bytes. */
#include "with_board.h"

enum { PEERS = 8 };

static int setup(void **state)
{
    (void)state;
    return open_board(
        (struct master_config){.quorum = PEERS},
        (struct switchboard_limits){.out_frames_max = 3, .conns_max = PEERS});
}

static void call(uint32_t peer)
{
    static const struct wire_addr addr = {.family = 4};
    assert_false(switchboard_is_full(board));
    conns[peer] = switchboard_accept(board, &addr, (void *)(uintptr_t)peer);
    assert_non_null(conns[peer]);
    switchboard_turn(board);
}

/* Bytes come from a peer, one after the other. */
static void come(uint32_t peer, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size && conns[peer] && !conns[peer]->lost; i++) {
        size_t left;
        *master_conn_room(conns[peer], &left) = bytes[i];
        assert_true(left > 0);
        switchboard_received(board, conns[peer], 1);
    }
    switchboard_turn(board);
}

static size_t hello(uint8_t *bytes)
{
    struct wire_msg m = {.type = WIRE_HELLO};
    m.hello.self.hint = -1;
    return wire_encode(&m, bytes);
}

/* What it does not read is queued, up to the limit; then it is lost, after the
 * step, and the others are served. */
static void test_a_slow_reader(void **state)
{
    (void)state;
    static const uint32_t both[] = {0, 1};
    struct wire_msg ping = {.type = WIRE_HEARTBEAT};
    call(0);
    call(1);
    room[0] = 5; /* a part of a frame */
    said[0] = '\0';
    for (uint32_t i = 0; i < 3; i++) switchboard_send(board, both, 2, &ping);
    switchboard_turn(board);
    assert_int_equal(conns[0]->out_count, 3);
    assert_int_equal(conns[0]->out_done, 5);
    assert_int_equal(conns[1]->out_count, 0);
    room[0] = conns[0]->out_size - 5; /* it reads, and may stay */
    switchboard_touch(board, conns[0]);
    switchboard_turn(board);
    assert_int_equal(conns[0]->out_count, 0);
    for (uint32_t i = 0; i < 4; i++) {
        switchboard_send(board, both, 2, &ping);
        assert_string_equal(said, "");
        if (i < 3) switchboard_turn(board);
    }
    switchboard_turn(board);
    assert_string_equal(said, "end 0: reads too slowly\nclosed 0\n");
    assert_null(board->links[0]);
    assert_int_equal(conns[1]->out_count, 0);
}

/* A message that comes byte by byte is one; half of one is none. */
static void test_half_a_message(void **state)
{
    (void)state;
    uint8_t bytes[CONN_IN_START];
    size_t size = hello(bytes);
    call(0);
    call(1);
    said[0] = '\0';
    come(0, bytes, size);
    come(1, bytes, size - 1);
    assert_string_equal(said, "0: HELLO\n");
    switchboard_lose(board, conns[1], "closed by the peer");
    switchboard_turn(board);
    assert_string_equal(said,
                        "0: HELLO\nend 1: closed by the peer\nclosed 1\n");
}

/* Several messages in one piece, the last one not whole. */
static void test_messages_in_one_piece(void **state)
{
    (void)state;
    uint8_t bytes[CONN_IN_START];
    size_t size = hello(bytes), left;
    struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    size_t one = wire_encode(&beat, bytes + size);
    (void)wire_encode(&beat, bytes + size + one);
    call(0);
    said[0] = '\0';
    memcpy(master_conn_room(conns[0], &left), bytes, size + 2 * one - 1);
    switchboard_received(board, conns[0], size + 2 * one - 1);
    switchboard_turn(board);
    assert_string_equal(said, "0: HELLO\n0: HEARTBEAT\n");
    come(0, bytes + size + 2 * one - 1, 1);
    assert_string_equal(said, "0: HELLO\n0: HEARTBEAT\n0: HEARTBEAT\n");
}

/* Before HELLO nobody makes the master keep more than a HELLO takes. */
static void test_a_stranger_announces_much(void **state)
{
    (void)state;
    static uint8_t bytes[WIRE_FRAME_MAX];
    static uint64_t ids[PEERS_MAX];
    struct wire_msg much = {
        .type = WIRE_READY, .ids = ids, .id_count = PEERS_MAX};
    size_t size = wire_encode(&much, bytes);
    assert_true(size > CONN_IN_START);
    call(0);
    said[0] = '\0';
    come(0, bytes, size);
    assert_string_equal(said,
                        "end 0: sent a frame that is too large\nclosed 0\n");
    call(1);
    memset(bytes, 0xff, 64);
    said[0] = '\0';
    come(1, bytes, 64);
    assert_string_equal(said, "end 1: sent bytes that are no frame of this "
                              "protocol\nclosed 0\n");
}

/* A closed link is free at once; its connection has a deadline to read what is
 * queued, and to end. What it says is not heard. */
static void test_who_lingers(void **state)
{
    (void)state;
    uint8_t bytes[CONN_IN_START];
    static const uint32_t first[] = {0};
    struct wire_msg ping = {.type = WIRE_HEARTBEAT};
    size_t size = hello(bytes);
    now = PCCL_S;
    call(0);
    room[0] = 0;
    switchboard_send(board, first, 1, &ping);
    switchboard_turn(board);
    said[0] = '\0';
    struct master_event tick = {.type = MASTER_TICK};
    now = 3 * PCCL_S; /* it never said HELLO */
    board_step(NULL, &tick);
    switchboard_turn(board);
    assert_null(board->links[0]);
    assert_memory_equal(said, "close 0: ", 9);
    said[0] = '\0';
    come(0, bytes, size);
    assert_string_equal(said, "");
    assert_int_equal(switchboard_next_linger(board), 4 * PCCL_S);
    room[0] = SIZE_MAX;
    switchboard_touch(board, conns[0]);
    switchboard_turn(board);
    assert_string_equal(said, "finish 0\n");
    switchboard_linger(board, 4 * PCCL_S - 1);
    switchboard_turn(board);
    assert_string_equal(said, "finish 0\n");
    switchboard_linger(board, 4 * PCCL_S);
    switchboard_turn(board);
    assert_string_equal(said, "finish 0\nend 0: lingered for too long\n");
    assert_int_equal(switchboard_next_linger(board), PCCL_NEVER);
    assert_int_equal(board->conn_count, 0);
}

/* Nobody else is accepted until one of them is gone, or thrown out. */
static void test_a_crowd_of_strangers(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PEERS; i++) call(i);
    assert_true(switchboard_is_full(board));
    switchboard_lose(board, conns[3], "closed by the peer");
    assert_true(switchboard_is_full(board));
    switchboard_turn(board);
    assert_false(switchboard_is_full(board));
    call(3);
    assert_true(switchboard_is_full(board));
    /* All at once, while others are sent to. */
    for (uint32_t i = 0; i < PEERS; i++)
        switchboard_lose(board, conns[i], "closed by the peer");
    switchboard_turn(board);
    assert_int_equal(board->conn_count, 0);
    for (uint32_t i = 0; i < PEERS; i++) assert_null(conns[i]);
    call(0);
}

/* Who has said HELLO is no stranger, nor is one whose HELLO waits; of the
 * others the oldest makes room. */
static void test_the_oldest_stranger(void **state)
{
    (void)state;
    uint8_t bytes[CONN_IN_START];
    size_t size = hello(bytes);
    assert_null(switchboard_stranger(board));
    for (uint32_t i = 0; i < PEERS; i++) call(i);
    come(0, bytes, size);
    come(1, bytes, size - 1);
    said[0] = '\0';
    for (uint32_t i = 1; i < PEERS; i++) {
        conns[i]->held = true;
        assert_ptr_equal(switchboard_stranger(board),
                         i + 1 < PEERS ? conns[i + 1] : NULL);
        conns[i]->held = false;
        assert_ptr_equal(switchboard_stranger(board), conns[i]);
        switchboard_lose(board, conns[i], "made room");
        if (i % 2) switchboard_turn(board);
    }
    assert_null(switchboard_stranger(board));
    assert_non_null(conns[0]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, close_board)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_slow_reader),         TEST(test_half_a_message),
        TEST(test_messages_in_one_piece), TEST(test_a_stranger_announces_much),
        TEST(test_who_lingers),           TEST(test_a_crowd_of_strangers),
        TEST(test_the_oldest_stranger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
