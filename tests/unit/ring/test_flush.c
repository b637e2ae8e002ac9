/* test_flush.c - a member that has frozen while others have not: nothing
 * begins there, the state of nothing changes (rule F1), and a frame that was
 * half sent goes on with its real bytes (rule F2), unless a donation takes
 * their place (rule F5). Three engines, one of which freezes first. */
#include "engines.h"

#include "../../../include/pccl.h"

static uint64_t in[WORLD][40960], out[WORLD][40960];
static struct op *ops[WORLD];

static void launch(uint64_t count, bool in_place)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint64_t k = 0; k < count; k++) in[i][k] = (i + 1) * (k + 1);
        struct op_request r = {.call.dtype = DTYPE_U64,
                               .call.redop = REDOP_SUM,
                               .call.sendbuf = in[i],
                               .call.recvbuf = in_place ? in[i] : out[i]};
        r.plan.coll = COLL_ALLREDUCE;
        r.plan.count = count;
        r.plan.element = 8;
        ops[i] = engine_launch(engines[i], &r, false);
        assert_non_null(ops[i]);
    }
}

static uint32_t in_flight(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WORLD; i++) {
        const struct conn *c = i > 0 ? engines[0]->links.conns[i] : NULL;
        count += c && c->tx_left > 0 && c->tx_owner;
    }
    return count;
}

/* The others continue when engine 0 freezes after so many rounds. True: the
 * operation was over by then. */
static bool freezes_after(uint32_t rounds, uint64_t count, uint32_t *half)
{
    settle_for(rounds);
    enum op_phase phase = ops[0]->phase;
    uint32_t open = in_flight();
    uint32_t sent = 0, left = 0;
    for (uint32_t i = 0; i < ops[0]->ep_count; i++) sent += ops[0]->eps[i].sent;
    engine_freeze(engines[0]);
    *half += open;
    settle();
    left = in_flight();
    assert_int_equal(left, 0); /* it went on... */
    assert_int_equal(ops[0]->phase, phase);
    for (uint32_t i = 0; i < ops[0]->ep_count; i++) sent -= ops[0]->eps[i].sent;
    assert_int_equal(sent, 0); /* ... and changed nothing here */
    for (uint32_t i = 0; i < WORLD; i++) {
        const uint64_t *sum = ops[i]->r.recvbuf;
        bool whole =
            ops[i]->phase == PHASE_DONE || ops[i]->phase == PHASE_COMPLETE;
        for (uint64_t k = 0; whole && k < count; k++)
            assert_int_equal(sum[k], 6 * (k + 1));
    }
    return phase == PHASE_DONE;
}

/* A flat all-reduce, of which the others may return, and a ring. */
static void test_half_sent_goes_on(void **state)
{
    static const uint64_t counts[] = {6000, 40960};
    for (uint32_t i = 0; i < 2 * ARRAY_COUNT(counts); i++) {
        uint32_t half = 0;
        bool over = false;
        for (uint32_t rounds = 0; !over; rounds++) {
            launch(counts[i / 2], i % 2);
            over = freezes_after(rounds, counts[i / 2], &half);
            (void)teardown(state);
            assert_int_equal(setup(state), 0);
        }
        assert_true(half > 0);
    }
}

/* Rule F5: the result comes into the buffer of which a frame is half sent, to a
 * member that has not frozen (it may be excluded, and not know). */
static void test_a_donation_cuts_what_is_half_sent(void **state)
{
    enum { COUNT = 6000 };
    static uint64_t sum[COUNT];
    for (uint64_t k = 0; k < COUNT; k++) sum[k] = 6 * (k + 1);
    for (uint32_t rounds = 0; in_flight() == 0; rounds++) {
        (void)teardown(state);
        assert_int_equal(setup(state), 0);
        launch(COUNT, true);
        settle_for(rounds);
        assert_int_not_equal(ops[0]->phase, PHASE_DONE);
    }
    engine_freeze(engines[0]);
    may_close = true;
    closed = 0;
    engine_accept_donation(engines[0], 0, 0, ops[0]->seq, (uint8_t *)sum,
                           sizeof sum);
    assert_int_equal(ops[0]->phase, PHASE_COMPLETE);
    assert_memory_equal(ops[0]->r.recvbuf, sum, sizeof sum);
    memset(deaf[0], 1, sizeof deaf[0]); /* connections that are closed */
    settle();
    for (uint32_t i = 1; i < WORLD; i++) {
        if (ops[i]->phase == PHASE_DONE || ops[i]->phase == PHASE_COMPLETE)
            assert_memory_equal(ops[i]->r.recvbuf, sum, sizeof sum);
    }
    assert_true(closed > 0);
    may_close = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_half_sent_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_donation_cuts_what_is_half_sent,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
