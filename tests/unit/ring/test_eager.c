/* test_eager.c - the data that are sent before the other end is known to have
 * launched (D2). Three engines, whose links the test moves. */
#include "engines.h"

#include "../../../src/ring/algorithm.h"

enum {
    COUNT = EAGER_MAX / 8,
    FILLING = EAGER_LINK_MAX / EAGER_MAX, /* operations that use up a link */
    COMMON = 100,                         /* the tag that both launch */
};

static uint64_t in[COUNT], out[2 * FILLING + 2][COUNT];
static uint32_t elements = COUNT; /* of the vectors that are launched */

static struct op *launch(uint32_t i, uint64_t tag, uint64_t *result)
{
    static const uint64_t scope[] = {10, 11};
    struct op_request r = {.call.tag = tag,
                           .call.dtype = DTYPE_U64,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = in,
                           .call.recvbuf = result,
                           .call.members = scope,
                           .call.member_count = 2};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = elements;
    r.plan.element = 8;
    struct op *op = engine_launch(engines[i], &r, false);
    assert_non_null(op);
    assert_ptr_equal(op->plan.algorithm, &allreduce_flat);
    return op;
}

/* Both engines begin as many operations as eager credit allows, and launch the
 * common one last. Neither launches the other's operations before the common
 * one is done. */
static void test_what_is_common_passes_what_is_not(void **state)
{
    (void)state;
    struct op *common[2];
    for (uint32_t i = 0; i < COUNT; i++) in[i] = i;
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < FILLING; k++)
            (void)launch(i, i * FILLING + k, out[i * FILLING + k]);
        common[i] = launch(i, COMMON, out[2 * FILLING + i]);
    }
    settle();
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(common[i]->phase, PHASE_DONE);
        for (uint32_t k = 0; k < COUNT; k++)
            assert_int_equal(out[2 * FILLING + i][k], 2 * k);
    }
}

/* The bytes that engine 0 has sent to engine 1 are in the link. Returns how
 * many of the first `part` bytes engine 1 takes. */
static size_t take_part(bool defers, size_t part)
{
    engines[1]->defers = defers;
    size_t size = flying[1][0].size;
    size_t used = engine_rx_from(engines[1], 0, flying[1][0].bytes, part);
    engines[1]->defers = false;
    memmove(flying[1][0].bytes, flying[1][0].bytes + used, size - used);
    flying[1][0].size -= used;
    return used;
}

static size_t take(bool defers)
{
    return take_part(defers, flying[1][0].size);
}

/* An engine that launches leaves the frames of operations that it has not
 * launched where they are, and takes them after their launch, unless they are
 * so large that a launch would take long. An engine that waits copies them,
 * because other frames may follow. */
static void leave_what_is_ahead(bool large)
{
    enum { OPS = 4 };
    elements = large ? LAUNCH_MAX / 8 + 1 : LAUNCH_MAX / 8;
    size_t frame = FRAME_SIZE + elements * 8;
    for (uint32_t i = 0; i < COUNT; i++) in[i] = i;
    deaf[1][0] = true;
    for (uint32_t k = 0; k < OPS; k++) (void)launch(0, k, out[k]);
    settle();
    assert_int_equal(flying[1][0].size, OPS * frame);
    const struct link *from = link_find(&engines[1]->links, ids[0], false);
    const struct op *ops[OPS];
    assert_int_equal(take(true), 0);
    ops[1] = launch(1, 1, out[OPS + 1]);
    assert_int_equal(take(true), 0); /* 0 is before it */
    ops[0] = launch(1, 0, out[OPS]);
    size_t taken = take(true);
    assert_int_equal(taken, large ? 0 : 2 * frame);
    assert_int_equal(from->unexpected_count, 0);
    assert_int_equal(take(false), OPS * frame - taken);
    assert_int_equal(from->unexpected_count, OPS - 2);
    for (uint32_t k = 2; k < OPS; k++) ops[k] = launch(1, k, out[OPS + k]);
    assert_int_equal(from->unexpected_count, 0);
    deaf[1][0] = false;
    settle();
    for (uint32_t k = 0; k < OPS; k++) {
        assert_int_equal(ops[k]->phase, PHASE_DONE);
        for (uint32_t i = 0; i < elements; i++)
            assert_int_equal(out[OPS + k][i], 2 * i);
    }
    elements = COUNT;
}

static void test_launches_leave_what_is_ahead(void **state)
{
    (void)state;
    leave_what_is_ahead(false);
}

static void test_launches_leave_large_data(void **state)
{
    (void)state;
    leave_what_is_ahead(true);
}

/* A caller that waits for one operation alone returns when it is done, and
 * leaves the frames of the next ones where they are: data, and the READY of the
 * last one, which has no credit left, goes first, and is followed by data. */
static void leave_what_comes_next(uint64_t more, uint32_t frames)
{
    deaf[1][0] = true;
    (void)launch(0, 0, out[0]);
    settle();
    for (uint64_t k = 1; k <= more; k++) (void)launch(0, k, out[k]);
    settle();
    const struct op *op = launch(1, 0, out[FILLING + 1]);
    settle(); /* it sends */
    const struct link *from = link_find(&engines[1]->links, ids[0], false);
    engine_set_goal(engines[1], op);
    assert_int_equal(take(false), FRAME_SIZE + COUNT * 8);
    assert_int_equal(op->phase, PHASE_DONE);
    assert_int_equal(take(false), 0);
    engine_set_goal(engines[1], NULL);
    (void)take(false);
    assert_int_equal(from->unexpected_count, frames);
}

static void test_waits_leave_data_that_come_next(void **state)
{
    (void)state;
    leave_what_comes_next(1, 1);
}

static void test_waits_leave_ready_that_comes_next(void **state)
{
    (void)state;
    leave_what_comes_next(FILLING, FILLING + 1);
}

/* A frame that has begun is continued, wherever it is cut, and whatever its
 * body contains. */
static void test_a_frame_that_has_begun_is_taken(void **state)
{
    (void)state;
    const struct frame f = {.type = FRAME_DATA, .epoch = 1, .tag = 99};
    deaf[1][0] = true;
    for (uint32_t k = 0; k < COUNT * 8 / FRAME_SIZE; k++)
        frame_encode(&f, (uint8_t *)in + (size_t)k * FRAME_SIZE);
    for (uint64_t k = 0; k < 2; k++) (void)launch(0, k, out[k]);
    settle();
    assert_int_equal(take_part(true, FRAME_SIZE - 1), FRAME_SIZE - 1);
    assert_int_equal(take_part(true, 1), 1);
    assert_int_equal(take(true), COUNT * 8);
    assert_int_equal(take(true), 0);
}

/* Of many operations in a row the results are not cached, although each was
 * done before the next was launched: the DONEs of the others confirm them
 * (D4). */
static void test_many_in_a_row_are_confirmed(void **state)
{
    (void)state;
    deaf[1][0] = true;
    for (uint64_t k = 0; k < 2 * MANY_OPS; k++) (void)launch(0, k, out[k]);
    settle();
    deaf[1][0] = false;
    settle(); /* unexpected */
    deaf[0][1] = true;
    for (uint64_t k = 0; k < 2 * MANY_OPS; k++) {
        const struct op *op = launch(1, k, out[2 * MANY_OPS + k]);
        assert_int_equal(op->confirm, k >= MANY_OPS);
        settle();
        assert_int_equal(op->phase, k < MANY_OPS ? PHASE_DONE : PHASE_COMPLETE);
    }
    deaf[0][1] = false;
    settle();
    assert_int_equal(engines[1]->active, 0);
}

/* All launches come before anything is sent. No more goes out than credit
 * allows, and the others announce themselves. */
static void test_announcements_have_their_credit(void **state)
{
    (void)state;
    enum { LAUNCHES = 2 * FILLING };
    const struct link *from = link_find(&engines[1]->links, ids[0], false);
    for (uint32_t i = 0; i < COUNT; i++) in[i] = i;
    for (uint64_t k = 0; k < LAUNCHES; k++) (void)launch(0, k, out[k]);
    settle();
    assert_true(from->unexpected_bytes <= EAGER_LINK_MAX);
    assert_int_equal(from->unexpected_count, LAUNCHES);
    for (uint64_t k = 0; k < LAUNCHES; k++) {
        const struct op *op = launch(1, k, out[LAUNCHES]);
        settle();
        assert_int_equal(op->phase, PHASE_DONE);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(out[LAUNCHES][i], 2 * i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_common_passes_what_is_not,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_launches_leave_what_is_ahead,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_launches_leave_large_data, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_waits_leave_data_that_come_next,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_waits_leave_ready_that_comes_next,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_frame_that_has_begun_is_taken,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_in_a_row_are_confirmed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_announcements_have_their_credit,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
