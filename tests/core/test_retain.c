/* test_retain.c - how long a returned result is kept for others (D5..D7).
 *
 * Three engines; the test decides which of them hears whom. Engine 0 has
 * returned operation X, engine 1 still lacks engine 2's part of it: whatever
 * happens next, 0 must be able to donate X until 1 has it. */
#include "unit.h"

#include "../../src/ring/engine.h"

enum { WORLD = 3 };

static struct engine *engines[WORLD];
static struct wire_member members[WORLD];
static uint64_t ids[WORLD];
static bool deaf[WORLD][WORLD]; /* [to][from] */
static struct {
    uint8_t bytes[1024];
    size_t size;
} flying[WORLD][WORLD]; /* sent to the deaf */
static uint64_t in[WORLD], out[WORLD], text[WORLD];

static uint32_t self_of(const void *user)
{
    return (uint32_t)((const uint64_t *)user - ids);
}

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user;
    return addr->port; /* a connection is named by the other end */
}

static void on_close(void *user, uint32_t conn)
{
    (void)user;
    fail_msg("connection %u closed", conn);
}

static void on_fault(void *user, enum engine_fault fault, const struct op *op,
                     uint64_t peer)
{
    (void)op;
    fail_msg("engine %u: fault %d with %d", self_of(user), (int)fault,
             (int)peer);
}

static void on_finished(void *user, struct op *op)
{
    (void)user;
    (void)op;
}

/* Moves what can be moved from a to b; false if nothing. */
static bool carry(uint32_t a, uint32_t b)
{
    struct engine_part parts[2];
    uint8_t *to;
    size_t kept = flying[b][a].size;
    if (engine_tx_window(engines[a], b, parts) > 0) {
        assert_true(kept + parts[0].size <= sizeof flying[b][a].bytes);
        memcpy(flying[b][a].bytes + kept, parts[0].from, parts[0].size);
        flying[b][a].size += parts[0].size;
        engine_tx(engines[a], b, parts[0].size);
        return true;
    }
    size_t size = engine_rx_window(engines[b], a, &to);
    if (size > kept) size = kept;
    if (deaf[b][a] || size == 0) return false;
    memcpy(to, flying[b][a].bytes, size);
    memmove(flying[b][a].bytes, flying[b][a].bytes + size, kept - size);
    flying[b][a].size -= size;
    assert_true(engine_rx(engines[b], a, size));
    return true;
}

static void settle(void)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t a = 0; a < WORLD; a++) {
            for (uint32_t b = 0; b < WORLD; b++) moved |= a != b && carry(a, b);
        }
    }
}

static int setup(void **state)
{
    (void)state;
    memset(deaf, 0, sizeof deaf);
    memset(flying, 0, sizeof flying);
    for (uint32_t i = 0; i < WORLD; i++) {
        ids[i] = members[i].id = 10 + i;
        members[i].addr.port = (uint16_t)i;
        engines[i] = calloc(1, sizeof *engines[i]);
        struct engine_output o = {.user = &ids[i],
                                  .dial = on_dial,
                                  .close = on_close,
                                  .fault = on_fault,
                                  .finished = on_finished};
        if (!engines[i] || !engine_init(engines[i], &o, 1, PCCL_S)) return 1;
        engines[i]->self = ids[i];
        struct engine_view v = {.epoch = 1,
                                .world = WORLD,
                                .rank = i,
                                .members = members,
                                .ids = ids,
                                .ring = true,
                                .mesh = true};
        engine_install(engines[i], &v);
    }
    for (uint32_t a = 0; a < WORLD; a++) {
        for (uint32_t b = a + 1; b < WORLD; b++) {
            engine_want_link(engines[a], &members[b], 1);
            assert_true(engine_accepted(engines[b], a));
            engine_dialed(engines[a], b, true);
        }
    }
    settle();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        engine_free(engines[i]);
        free(engines[i]);
    }
    return 0;
}

static struct op *launch(uint32_t i, uint64_t tag, bool broadcast,
                         const uint64_t *scope, uint32_t scope_size)
{
    struct op_request r = {.tag = tag,
                           .dtype = DTYPE_U64,
                           .redop = REDOP_SUM,
                           .members = scope,
                           .member_count = scope_size};
    r.plan.coll = broadcast ? COLL_BROADCAST : COLL_ALLREDUCE;
    r.plan.count = broadcast ? 8 : 1;
    r.plan.element = broadcast ? 1 : 8;
    r.send = &in[i];
    r.recv = broadcast ? &text[i] : &out[i];
    return engine_launch(engines[i], &r, false);
}

/* Tag 1, sequence 0: is engine 0 able to give it away? */
static bool donor(void)
{
    struct wire_op op = {.tag = 1};
    engine_tell(engines[0], &op);
    assert_int_equal(op.state, OP_RETURNED);
    return op.donor;
}

static struct op *x[WORLD];

static void x_in_doubt(void)
{
    deaf[1][2] = true;
    for (uint32_t i = 0; i < WORLD; i++) {
        in[i] = 1u << i;
        x[i] = launch(i, 1, false, NULL, 0);
        assert_non_null(x[i]);
    }
    settle();
    assert_int_equal(x[0]->phase, PHASE_DONE);
    assert_int_equal(x[1]->phase, PHASE_RUNNING);
    assert_int_equal(x[2]->phase, PHASE_DONE);
    assert_int_equal(out[0], 7);
    engine_release(engines[0], x[0]);
    engine_release(engines[2], x[2]);
    assert_true(donor());
}

static void broadcast_from_0(uint64_t tag, const uint64_t *scope, uint32_t size)
{
    struct op *y[WORLD] = {0};
    for (uint32_t i = 0; i < WORLD; i++) {
        if (!scope || i != 1) y[i] = launch(i, tag, true, scope, size);
    }
    settle();
    assert_int_equal(y[0]->phase, PHASE_DONE); /* confirmed by all */
    for (uint32_t i = 0; i < WORLD; i++) {
        if (y[i] && y[i]->phase == PHASE_DONE) engine_release(engines[i], y[i]);
    }
}

static void test_kept_while_another_operation_ends(void **state)
{
    (void)state;
    x_in_doubt();
    broadcast_from_0(2, NULL, 0);
    assert_true(donor()); /* engine 1 said DONE, but not clean */
}

static void test_kept_though_a_scope_is_clean(void **state)
{
    (void)state;
    x_in_doubt();
    static const uint64_t scope[] = {10, 12};
    broadcast_from_0(3, scope, 2);
    assert_true(donor()); /* engine 2 was clean, but 1 was not asked */
}

/* Engine 1 was clean when it said DONE, and began X only then. */
static void test_kept_if_it_ended_after_the_launch(void **state)
{
    (void)state;
    struct op *y[WORLD];
    for (uint32_t i = 0; i < 2; i++) y[i] = launch(i, 2, true, NULL, 0);
    settle();
    x_in_doubt();
    y[2] = launch(2, 2, true, NULL, 0);
    settle();
    assert_int_equal(y[0]->phase, PHASE_DONE);
    assert_true(donor());
}

static void test_dropped_when_all_are_clean(void **state)
{
    (void)state;
    x_in_doubt();
    deaf[1][2] = false;
    settle();
    assert_int_equal(x[1]->phase, PHASE_DONE);
    assert_int_equal(out[1], 7);
    broadcast_from_0(2, NULL, 0);
    assert_false(donor());
}

static void test_dropped_by_the_next_of_its_tag(void **state)
{
    (void)state;
    x_in_doubt();
    deaf[1][2] = false;
    settle();
    engine_release(engines[1], x[1]);
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 5, false, NULL, 0);
    settle();
    assert_true(donor()); /* another tag says nothing */
    for (uint32_t i = 0; i < WORLD; i++) launch(i, 1, false, NULL, 0);
    settle();
    assert_false(donor());
}

static void test_a_donation_is_the_result(void **state)
{
    (void)state;
    x_in_doubt();
    uint32_t size = 0;
    const uint8_t *bytes = engine_donation(engines[0], 1, 0, &size);
    assert_non_null(bytes);
    assert_int_equal(size, 8);
    engine_freeze(engines[1]);
    engine_accept_donation(engines[1], 1, 0, bytes, size);
    assert_int_equal(x[1]->phase, PHASE_HELD);
    assert_int_equal(out[1], 7);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_kept_while_another_operation_ends),
        TEST(test_kept_though_a_scope_is_clean),
        TEST(test_kept_if_it_ended_after_the_launch),
        TEST(test_dropped_when_all_are_clean),
        TEST(test_dropped_by_the_next_of_its_tag),
        TEST(test_a_donation_is_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
