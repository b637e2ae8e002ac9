/* test_master_relay.c - the coordinator relays connections: for whom, how much
 * it holds, and how they end (rules N10 to N12). The peers are buffers. */
#include "with_board.h"

enum { PEERS = BOARD_PEERS, A = 5, B = 6 };

static uint8_t sent[PEERS][4 * CONN_RELAY_MAX];
static size_t sizes[PEERS];

static uint64_t relay; /* of A and B; 0: the coordinator */

/* As a round leaves it that has found the pair bad. */
static void name_pair(void)
{
    struct master_group *g = &master->groups[0];
    master->group_count = 1;
    g->used = true;
    g->edge_count = 1;
    g->edges[0] = (struct master_edge){
        .a = A, .b = B, .bad = true, .relayed = true, .relay = relay};
}

static void keep(uint32_t peer, const uint8_t *bytes, size_t size)
{
    memcpy(sent[peer] + sizes[peer], bytes, size);
    sizes[peer] += size;
}

static int setup(void **state)
{
    (void)state;
    relay = 0;
    memset(sizes, 0, sizeof sizes);
    taken = keep;
    return open_board((struct master_config){.quorum = PEERS,
                                             .relays = true,
                                             .key = {{1, 2}}},
                      (struct switchboard_limits){0});
}

/* As many bytes as are read now. */
static size_t give(uint32_t peer, const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    while (done < size && conns[peer] && !conns[peer]->lost &&
           master_conn_reads(conns[peer])) {
        size_t part;
        uint8_t *to = master_conn_room(conns[peer], &part);
        assert_true(part > 0);
        if (part > size - done) part = size - done;
        memcpy(to, bytes + done, part);
        switchboard_received(board, conns[peer], part);
        switchboard_turn(board);
        done += part;
    }
    return done;
}

struct relayed {
    uint64_t key, from, to;
    bool listens;
};

/* What comes right behind RELAY is the other end's already. */
static void calls(uint32_t peer, struct relayed r, const char *behind)
{
    static const struct wire_addr addr = {.family = 4};
    uint8_t bytes[256];
    struct wire_msg m = {.type = WIRE_RELAY};
    m.relay.key.word[0] = 1;
    m.relay.key.word[1] = r.key;
    m.relay.from = r.from;
    m.relay.to = r.to;
    m.relay.listens = r.listens;
    size_t size = wire_encode(&m, bytes), more = strlen(behind);
    assert_int_equal(size, WIRE_RELAY_SIZE);
    memcpy(bytes + size, behind, more);
    conns[peer] = switchboard_accept(board, &addr, (void *)(uintptr_t)peer);
    assert_non_null(conns[peer]);
    name_pair();
    (void)give(peer, bytes, size + more);
}

static const struct relayed dials = {2, A, B, false};
static const struct relayed listens = {2, B, A, true};

static void lose(uint32_t peer)
{
    switchboard_lose(board, conns[peer], "closed by the peer");
    switchboard_turn(board);
}

static void test_two_ends_are_joined(void **state)
{
    (void)state;
    calls(0, dials, "question");
    assert_int_equal(master_count(master, PEER_CONNECTED), 0);
    calls(1, listens, "");
    assert_int_equal(sizes[1], 8);
    assert_memory_equal(sent[1], "question", 8);
    assert_int_equal(give(1, (const uint8_t *)"answer", 6), 6);
    assert_memory_equal(sent[0], "answer", 6);
    assert_true(board->relayed >= 14);
}

static void test_strangers(void **state)
{
    (void)state;
    const struct relayed key = {3, A, B, false}, pair = {2, A, 7, false};
    calls(0, key, "");
    calls(1, pair, "");
    relay = 9; /* a member does it */
    calls(2, dials, "");
    relay = 0;
    master->may_relay = false;
    calls(3, dials, "");
    assert_int_equal(board->leg_count, 0);
    for (uint32_t i = 0; i < 4; i++) assert_true(finished[i]);
}

static void test_it_holds_so_much(void **state)
{
    (void)state;
    static uint8_t many[3 * CONN_RELAY_MAX];
    for (size_t i = 0; i < sizeof many; i++) many[i] = (uint8_t)(i * 7 / 3);
    calls(0, dials, "");
    calls(1, listens, "");
    room[1] = 0;
    size_t done = give(0, many, sizeof many);
    assert_int_equal(done, CONN_RELAY_MAX);
    while (sizes[1] < sizeof many) {
        room[1] = 10007;
        switchboard_touch(board, conns[1]);
        switchboard_turn(board);
        done += give(0, many + done, sizeof many - done);
        assert_true(done - sizes[1] <= CONN_RELAY_MAX);
    }
    assert_memory_equal(many, sent[1], sizeof many);
}

static void test_the_last_bytes_go_out(void **state)
{
    (void)state;
    calls(0, dials, "");
    calls(1, listens, "");
    room[1] = 0;
    (void)give(0, (const uint8_t *)"bye", 3);
    lose(0);
    assert_false(finished[1]);
    assert_int_equal(give(1, (const uint8_t *)"for nobody", 10), 10);
    room[1] = 3;
    switchboard_touch(board, conns[1]);
    switchboard_turn(board);
    assert_memory_equal(sent[1], "bye", 3);
    assert_true(finished[1]);
    lose(1);
    assert_int_equal(board->conn_count, 0);
    assert_int_equal(board->leg_count, 0);
}

static void test_few_wait(void **state)
{
    (void)state;
    const struct relayed other = {2, B, A, false};
    calls(0, listens, "");
    calls(1, listens, ""); /* it takes the place */
    assert_null(conns[0]);
    for (uint32_t i = 0; i < SWITCHBOARD_DIALS_MAX + 1; i++)
        calls(2 + i, other, "");
    assert_null(conns[2]);
    assert_non_null(conns[3]);
    switchboard_linger(board, PCCL_TIME_TO_DETECT(PCCL_S));
    switchboard_turn(board);
    assert_null(conns[3]);
    assert_non_null(conns[1]);
    switchboard_linger(board, PCCL_S);
    switchboard_turn(board);
    assert_null(conns[1]);
}

static void test_who_listens_is_silent(void **state)
{
    (void)state;
    calls(0, listens, "x");
    switchboard_turn(board);
    assert_null(conns[0]);
}

static void test_joined_ones_may_be_silent(void **state)
{
    (void)state;
    calls(0, dials, "");
    calls(1, listens, "");
    switchboard_linger(board, 100 * PCCL_S);
    switchboard_turn(board);
    assert_non_null(conns[0]);
    assert_non_null(conns[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, close_board)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_ends_are_joined),
        TEST(test_strangers),
        TEST(test_it_holds_so_much),
        TEST(test_the_last_bytes_go_out),
        TEST(test_few_wait),
        TEST(test_who_listens_is_silent),
        TEST(test_joined_ones_may_be_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
