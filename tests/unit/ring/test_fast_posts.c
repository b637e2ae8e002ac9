/* test_fast_posts.c - posts on the fast path and the work that members share
 * (rules D9a, D9f, L11): three engines of a host with room, with a channel
 * between each two, and a board each. */
#include "engines.h"

#include "../../../src/base/host_id.h"
#include "../../../src/link/channel.h"

enum { TAG = 3, COUNT = 3001, QUEUE = 64 * 1024 };

static struct channel_page pages[WORLD][WORLD];
static uint8_t queues[WORLD][WORLD][4 * QUEUE];
static struct channel channels[WORLD][WORLD]; /* [of][with] */
static uint8_t *boards[WORLD], *copies[WORLD][WORLD];
static int32_t in[WORLD][COUNT], out[WORLD][COUNT];
static struct op_request requests[WORLD];

static void link_two(uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    struct conn *c = engines[a]->links.conns[b];
    copies[a][b] = malloc(BOARD_POST_MAX);
    channel_init(&channels[a][b], &pages[low][high], queues[low][high], QUEUE,
                 a > b);
    channel_attach(&channels[a][b], boards[b], copies[a][b], 0);
    c->channel = &channels[a][b];
    c->region.taken = true;
}

static int setup_boards(void **state)
{
    if (setup(state)) return 1;
    memset(pages, 0, sizeof pages);
    for (uint32_t i = 0; i < WORLD; i++) {
        members[i].host = engines[i]->links.host = host_id_make(1, 4);
        boards[i] = aligned_alloc(4096, BOARD_SIZE);
        if (!boards[i]) return 1;
        memset(boards[i], 0, BOARD_SIZE);
        engines[i]->links.board.memory = boards[i];
    }
    for (uint32_t a = 0; a < WORLD; a++) {
        for (uint32_t b = 0; b < WORLD; b++) {
            if (a != b) link_two(a, b);
        }
    }
    install_all(2);
    return 0;
}

static int teardown_boards(void **state)
{
    int result = teardown(state);
    for (uint32_t a = 0; a < WORLD; a++) {
        members[a].host = 0;
        free(boards[a]);
        for (uint32_t b = 0; b < WORLD; b++) {
            if (a != b) free(copies[a][b]);
        }
    }
    return result;
}

static void make_requests(bool in_place)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        for (int k = 0; k < COUNT; k++) {
            in[i][k] = out[i][k] = (int32_t)(i + 1) * 1000 + k;
            if (!in_place) out[i][k] = -1;
        }
        requests[i] = (struct op_request){
            .call.tag = TAG,
            .call.dtype = DTYPE_I32,
            .call.redop = REDOP_SUM,
            .call.sendbuf = in_place ? out[i] : in[i],
            .call.recvbuf = out[i],
            .plan = {.coll = COLL_ALLREDUCE, .count = COUNT, .element = 4}};
    }
}

static void check_sum(uint32_t i)
{
    for (int k = 0; k < COUNT; k++) assert_int_equal(out[i][k], 6000 + 3 * k);
}

/* As an operation, through the connections: each has a copy that makes room. */
static void run_first(void)
{
    struct op *ops[WORLD];
    make_requests(false);
    for (uint32_t i = 0; i < WORLD; i++) {
        ops[i] = engine_launch(engines[i], &requests[i], false);
        assert_non_null(ops[i]);
    }
    settle();
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        engine_release(engines[i], ops[i]);
        check_sum(i);
    }
}

static void poll_until_done(uint32_t i, uint32_t most)
{
    enum look status;
    while ((status = fast_poll(engines[i])) == LOOK_IDLE && most > 0) most--;
    assert_int_equal(status, LOOK_DONE);
    check_sum(i);
}

static void start(uint32_t i, bool posts)
{
    assert_true(fast_start(engines[i], &requests[i]));
    assert_true(engines[i]->fast.posts == posts);
}

/* Posts, and then the bytes of the queues, go to the engine. */
static void receive(uint32_t i)
{
    const uint8_t *from;
    size_t size;
    for (uint32_t k = 0; k < WORLD; k++) {
        struct channel *c = &channels[i][k];
        while (k != i && (size = channel_ready(c, &from)) > 0)
            channel_read(c, engine_rx_from(engines[i], k, from, size));
    }
}

static void test_shared(void **state)
{
    (void)state;
    run_first();
    for (int again = 0; again < 20; again++) {
        make_requests(again % 2);
        for (uint32_t i = 0; i < WORLD; i++) start(i, true);
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_int_equal(fast_poll(engines[i]),
                             i + 1 < WORLD ? LOOK_IDLE : LOOK_DONE);
            assert_true(engines[i]->fast.sums);
        }
        check_sum(WORLD - 1);
        for (uint32_t i = 0; i + 1 < WORLD; i++) poll_until_done(i, 0);
    }
}

/* The parts are added in the order of ranks, which rounding shows: otherwise
 * the part of whoever is late would be another one for each member. */
static void test_order(void **state)
{
    (void)state;
    static const float values[WORLD] = {1e8f, 1, -1e8f};
    run_first();
    make_requests(false);
    for (uint32_t i = 0; i < WORLD; i++) {
        for (int k = 0; k < COUNT; k++)
            memcpy(&in[i][k], &values[i], sizeof values[i]);
        requests[i].call.dtype = DTYPE_F32;
        start(i, true);
    }
    uint32_t left = WORLD;
    for (int turn = 0; turn < 2 && left > 0; turn++) {
        left = 0;
        for (uint32_t i = 0; i < WORLD; i++) {
            if (turn == 0 || engines[i]->fast.r)
                left += fast_poll(engines[i]) == LOOK_IDLE;
        }
    }
    assert_int_equal(left, 0);
    for (uint32_t i = 0; i < WORLD; i++) {
        for (int k = 0; k < COUNT; k++) assert_int_equal(out[i][k], 0);
    }
}

/* The others wait for a late member, and then add up its part. */
static void test_late(void **state)
{
    (void)state;
    run_first();
    for (int again = 0; again < 6; again++) {
        uint32_t late = (uint32_t)again % WORLD;
        make_requests(again % 2);
        for (uint32_t i = 0; i < WORLD; i++) start(i, true);
        for (uint32_t i = 0; i < WORLD; i++) {
            if (i != late) assert_int_equal(fast_poll(engines[i]), LOOK_IDLE);
        }
        for (uint32_t i = 0; i < WORLD; i++) {
            if (i != late) poll_until_done(i, 2 * SUMS_LOOKS);
        }
        poll_until_done(late, 2);
    }
}

/* A call that turns into an operation amid its parts has its input, and needs
 * nobody: all vectors are there. Of the sum before it there is no copy any
 * more. */
static void test_turns(void **state)
{
    (void)state;
    run_first();
    make_requests(true);
    for (uint32_t i = 0; i < WORLD; i++) start(i, true);
    engines[0]->sums_looks = 1; /* it adds up parts of others */
    assert_int_equal(fast_poll(engines[0]), LOOK_IDLE);
    assert_memory_equal(out[0], in[0], sizeof in[0]);
    uint32_t seq = engines[0]->fast.frame.seq, size;
    assert_non_null(engine_donation(engines[0], 0, TAG, seq - 1, &size));
    /* Where many are under way an operation is confirmed and needs no copy. */
    engines[0]->many = 0;
    struct op *op = fast_convert(engines[0]);
    assert_non_null(op);
    assert_false(op->confirm);
    assert_true(op->reserved); /* or it would find no place for one */
    assert_null(engine_donation(engines[0], 0, TAG, seq - 1, &size));
    assert_memory_equal(out[0], in[0], sizeof in[0]);
    receive(0);
    assert_int_equal(op->phase, PHASE_DONE);
    check_sum(0);
    engine_release(engines[0], op);
    for (uint32_t i = 1; i < WORLD; i++) poll_until_done(i, 2 * SUMS_LOOKS);
    /* Hints that nobody has read are no part of the next one. */
    engines[0]->sums_looks = SUMS_LOOKS;
    make_requests(false);
    for (uint32_t i = 0; i < WORLD; i++) start(i, true);
    for (uint32_t i = 0; i < WORLD; i++) (void)fast_poll(engines[i]);
    for (uint32_t i = 0; i < WORLD; i++) check_sum(i < 2 ? 2 : i);
}

/* Frames that came before the call, as posts or through a channel. */
static void test_early(void **state)
{
    (void)state;
    run_first();
    make_requests(true);
    engines[2]->links.conns[0]->region.taken = false; /* it posts nothing */
    start(1, true);
    start(2, false);
    receive(0);
    struct links *n = &engines[0]->links;
    for (uint32_t k = 1; k < WORLD; k++)
        assert_int_equal(n->conns[k]->link->unexpected_count, 1);
    start(0, true);
    assert_int_equal(fast_poll(engines[0]), LOOK_IDLE);
    poll_until_done(1, 0);
    poll_until_done(0, 1);
    for (uint32_t k = 1; k < WORLD; k++)
        assert_int_equal(n->conns[k]->link->unexpected_count, 0);
    poll_until_done(2, 0);
}

/* ... and one that has to be confirmed is for an operation; so are two. */
static void test_early_for_an_operation(void **state)
{
    (void)state;
    run_first();
    make_requests(false);
    start(1, true);
    receive(0);
    struct link *l = engines[0]->links.conns[1]->link;
    l->unexpected->frame.flags = FLAG_CONFIRM;
    assert_false(fast_start(engines[0], &requests[0]));
    l->unexpected->frame.flags = 0;
    l->unexpected_count++;
    assert_false(fast_start(engines[0], &requests[0]));
    l->unexpected_count--;
    l->unexpected->frame.digest++;
    assert_false(fast_start(engines[0], &requests[0]));
    l->unexpected->frame.digest--;
    start(0, true);
}

static void post_more(uint32_t i)
{
    for (uint32_t k = 0; k < BOARD_SLOTS; k++) {
        memset(board_begin(&engines[i]->links.board), 7, 8);
        board_post(&engines[i]->links.board, 8);
    }
}

/* This member has been left out before it adds up its part: nobody is shown
 * a sum of what its neighbour has posted since. */
static void test_left_out_before(void **state)
{
    (void)state;
    run_first();
    make_requests(true);
    start(0, true);
    start(1, true);
    assert_int_equal(fast_poll(engines[0]), LOOK_IDLE);
    post_more(1);
    start(2, true);
    uint64_t posts = engines[0]->links.board.posts;
    assert_int_equal(fast_poll(engines[0]), LOOK_ELSE);
    assert_true(engines[0]->fast.sums && channels[0][1].broken);
    assert_int_equal(engines[0]->links.board.posts, posts);
    assert_non_null(fast_convert(engines[0]));
    assert_memory_equal(out[0], in[0], sizeof in[0]);
}

/* This member has been left out, and its neighbour goes on posting. */
static void test_left_out(void **state)
{
    (void)state;
    run_first();
    make_requests(true);
    for (uint32_t i = 0; i < WORLD; i++) start(i, true);
    assert_int_equal(fast_poll(engines[0]), LOOK_IDLE);
    post_more(1);
    assert_int_equal(fast_poll(engines[2]), LOOK_IDLE);
    enum look status;
    while ((status = fast_poll(engines[0])) == LOOK_IDLE) continue;
    assert_int_equal(status, LOOK_ELSE);
    struct op *op = fast_convert(engines[0]);
    assert_non_null(op);
    assert_memory_equal(out[0], in[0], sizeof in[0]);
    assert_true(channels[0][1].broken);
}

#define TEST(f)                                                                \
    cmocka_unit_test_setup_teardown(f, setup_boards, teardown_boards)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_shared),
        TEST(test_order),
        TEST(test_late),
        TEST(test_turns),
        TEST(test_early),
        TEST(test_early_for_an_operation),
        TEST(test_left_out_before),
        TEST(test_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
