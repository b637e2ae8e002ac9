/* test_fast_star.c - the fast path of gathers and scatters (rule D9e): three
 * engines with a channel between each two. What it returns, which copy is
 * there for the others afterwards, and when there is none to make room. */
#include "engines.h"

#include "../../../src/link/channel.h"

enum { FIRST, ROOT, OTHER, TAG = 3, ANOTHER, SIZE = 100, QUEUE = 16 * 1024 };

static struct channel_page pages[WORLD][WORLD];
static uint8_t queues[WORLD][WORLD][4 * QUEUE];
static struct channel channels[WORLD][WORLD]; /* [of][with] */
static uint8_t in[WORLD][WORLD * SIZE], out[WORLD][WORLD * SIZE];
static size_t bytes[WORLD][2][WORLD], displs[WORLD];
static struct op_request requests[WORLD];

static int setup_channels(void **state)
{
    if (setup(state)) return 1;
    memset(pages, 0, sizeof pages);
    for (uint32_t a = 0; a < WORLD; a++) {
        members[a].host = 2;
        for (uint32_t b = 0; b < WORLD; b++) {
            if (a == b) continue;
            uint32_t low = a < b ? a : b, high = a < b ? b : a;
            channel_init(&channels[a][b], &pages[low][high], queues[low][high],
                         QUEUE, a > b);
            engines[a]->links.conns[b]->channel = &channels[a][b];
        }
    }
    install_all(2);
    return 0;
}

static int teardown_channels(void **state)
{
    for (uint32_t i = 0; i < WORLD; i++) members[i].host = 0;
    return teardown(state);
}

static void make_requests(uint64_t tag, enum plan_flow flow)
{
    bool gathers = flow == FLOW_TO_ROOT;
    memset(out, 0, sizeof out);
    memset(bytes, 0, sizeof bytes);
    for (uint32_t i = 0; i < WORLD; i++) {
        displs[i] = i * SIZE;
        bytes[i][!gathers][ROOT] = bytes[ROOT][gathers][i] = SIZE;
        for (uint32_t k = 0; k < WORLD * SIZE; k++)
            in[i][k] = (uint8_t)(16 * (i + 1) + k / SIZE);
    }
    bytes[ROOT][0][ROOT] = bytes[ROOT][1][ROOT] = SIZE;
    for (uint32_t i = 0; i < WORLD; i++) {
        struct op_request *r = &requests[i];
        *r = (struct op_request){
            .call.tag = tag, .call.sendbuf = in[i], .call.recvbuf = out[i]};
        r->plan.coll = COLL_ALLTOALLV;
        r->plan.flow = flow;
        r->plan.root = ROOT;
        r->plan.send_bytes = bytes[i][0];
        r->plan.recv_bytes = bytes[i][1];
        r->plan.send_displs = r->plan.recv_displs = displs;
    }
}

/* As operations, through the connections. */
static void run_all(void)
{
    struct op *ops[WORLD];
    for (uint32_t i = 0; i < WORLD; i++) {
        ops[i] = engine_launch(engines[i], &requests[i], false);
        assert_non_null(ops[i]);
    }
    settle();
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        engine_release(engines[i], ops[i]);
    }
}

/* Afterwards each has a number of the tag, and the copy of a result. */
static void run_barrier(uint64_t tag)
{
    make_requests(tag, FLOW_ALL);
    for (uint32_t i = 0; i < WORLD; i++) requests[i].plan.coll = COLL_BARRIER;
    run_all();
}

static void run_fast(enum plan_flow flow)
{
    bool done[WORLD] = {false};
    uint32_t left = WORLD;
    make_requests(TAG, flow);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(fast_start(engines[i], &requests[i]));
    for (int turn = 0; turn < 8 && left > 0; turn++) {
        for (uint32_t i = 0; i < WORLD; i++) {
            if (done[i]) continue;
            enum look status = fast_poll(engines[i]);
            assert_int_not_equal(status, LOOK_ELSE);
            done[i] = status == LOOK_DONE;
            left -= done[i];
        }
    }
    assert_int_equal(left, 0);
}

static bool donor(uint32_t i, uint64_t tag, uint32_t seq)
{
    struct wire_op op = {.tag = tag, .seq = seq};
    engine_query(engines[i], &op);
    assert_int_equal(op.state, OP_RETURNED);
    return op.donor;
}

/* Nobody meets a frame that it did not expect: the root's launch is told to the
 * member that waits for that word, and to no other. */
static void test_results(void **state)
{
    (void)state;
    run_barrier(TAG);
    for (int again = 0; again < 3; again++) {
        run_fast(FLOW_TO_ROOT);
        for (uint32_t k = 0; k < WORLD * SIZE; k++)
            assert_int_equal(out[ROOT][k], 16 * (k / SIZE + 1) + ROOT);
        run_fast(FLOW_FROM_ROOT);
        for (uint32_t i = 0; i < WORLD; i++)
            for (uint32_t k = 0; k < SIZE; k++)
                assert_int_equal(out[i][ROOT * SIZE + k], 16 * (ROOT + 1) + i);
    }
}

/* The copy is of the gather that has returned, and no more of the one before
 * it: where a member lacks the word of the root, the others can say that they
 * have returned. */
static void test_each_has_the_copy(void **state)
{
    (void)state;
    run_barrier(TAG);
    for (uint32_t i = 0; i < WORLD; i++) assert_true(donor(i, TAG, 0));
    for (uint32_t seq = 1; seq < 3; seq++) {
        run_fast(FLOW_TO_ROOT);
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_true(donor(i, TAG, seq));
            assert_false(donor(i, TAG, seq - 1));
        }
    }
}

/* A scatter leaves no copy, whose room the next gather would take; that of
 * another tag stays. */
static void test_without_a_copy_there_is_no_room(void **state)
{
    (void)state;
    run_barrier(TAG);
    make_requests(ANOTHER, FLOW_FROM_ROOT);
    run_all();
    make_requests(ANOTHER, FLOW_TO_ROOT);
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_false(fast_start(engines[i], &requests[i]));
        assert_true(donor(i, TAG, 0));
    }
}

#define TEST(f)                                                                \
    cmocka_unit_test_setup_teardown(f, setup_channels, teardown_channels)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_results),
        TEST(test_each_has_the_copy),
        TEST(test_without_a_copy_there_is_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
