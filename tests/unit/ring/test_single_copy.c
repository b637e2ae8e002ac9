/* test_single_copy.c - large all-reduces of members of one host use regions
 * (rules D16, L7, L8): the frames that pass over the connections, regions that
 * were not accepted, more operations than slots, and frames that never count.
 * Three engines, whose memory is one process's. */
#include "engines.h"

#include "../../../src/ring/algorithm.h"
#include "../../../src/ring/pieces.h"

#include "../../../include/pccl.h"

enum { OPS = SINGLE_COPY_SLOTS + 1, COUNT = 40000, HOST = 2 };

static uint32_t in[OPS][WORLD][COUNT], out[OPS][WORLD][COUNT];
static struct op *ops[OPS][WORLD];
static uint8_t *areas[WORLD];

static void install(uint32_t epoch)
{
    for (uint32_t i = 0; i < WORLD; i++) engines[i]->links.host = HOST;
    install_all(epoch);
}

static int setup_lend(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++) {
        members[i].host = HOST;
        areas[i] = aligned_alloc(4096, REGION_SIZE);
        if (!areas[i]) return 1;
        memset(areas[i], 0, SINGLE_COPY_HEAD);
    }
    install(2);
    for (uint32_t a = 0; a < WORLD; a++) {
        engines[a]->links.region = areas[a];
        for (uint32_t b = 0; b < WORLD; b++) {
            if (a == b) continue;
            engines[a]->links.conns[b]->region.taken = true;
            engines[a]->links.conns[b]->region.memory = areas[b];
        }
    }
    carried = 0;
    return 0;
}

static int teardown_lend(void **state)
{
    int failed = teardown(state);
    for (uint32_t i = 0; i < WORLD; i++) {
        members[i].host = 0;
        free(areas[i]);
    }
    return failed;
}

static uint32_t value(uint32_t which, uint32_t i, uint32_t k)
{
    return (which + 3) * (i + 1) + k;
}

static uint32_t added_first(const struct op *op) /* of the own chunk */
{
    const struct pieces *s = op->state;
    return s->added[op->plan.r.rank * op->plan.segments];
}

static void launch(uint32_t which, uint32_t i, bool in_place)
{
    for (uint32_t k = 0; k < COUNT; k++) in[which][i][k] = value(which, i, k);
    struct op_request r = {.call.tag = which,
                           .call.dtype = DTYPE_U32,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = in[which][i],
                           .call.recvbuf =
                               in_place ? in[which][i] : out[which][i]};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = COUNT;
    r.plan.element = 4;
    ops[which][i] = engine_launch(engines[i], &r, false);
    assert_non_null(ops[which][i]);
    assert_ptr_equal(ops[which][i]->plan.algorithm, &allreduce_single_copy);
}

static void launch_all(uint32_t which, bool in_place)
{
    for (uint32_t i = 0; i < WORLD; i++) launch(which, i, in_place);
}

static void check_sums(uint32_t which)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        const struct op *op = ops[which][i];
        assert_int_equal(op->phase, PHASE_DONE);
        assert_int_equal(op->result, pcclSuccess);
        const uint32_t *sum = op->r.recvbuf;
        for (uint32_t k = 0; k < COUNT; k++) {
            uint32_t all = 0;
            for (uint32_t j = 0; j < WORLD; j++) all += value(which, j, k);
            assert_int_equal(sum[k], all);
        }
    }
}

static void all_rooms_are_free(void)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint32_t room = 0; room < SINGLE_COPY_SLOTS; room++)
            assert_null(engines[i]->single_copy.users[room]);
    }
}

/* Many segments, in place and not: only headers are carried. */
static void test_headers_only(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) engines[i]->piece = 8192;
    for (uint32_t in_place = 0; in_place < 2; in_place++) {
        launch_all(in_place, in_place);
        assert_true(ops[in_place][0]->plan.segments > 4);
        settle();
        check_sums(in_place);
        assert_true(ops[in_place][1]->rx_bytes >= COUNT);
    }
    assert_true(carried < COUNT);
    all_rooms_are_free();
}

/* The block of each member goes to the start of its vector, where another one's
 * is: nothing is written there before the end (rule D21d). */
static void scatter_all(uint32_t which)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint32_t k = 0; k < COUNT; k++)
            in[which][i][k] = value(which, i, k);
        struct op_request r = {.call.tag = which,
                               .call.dtype = DTYPE_U32,
                               .call.redop = REDOP_SUM,
                               .call.sendbuf = in[which][i],
                               .call.recvbuf = in[which][i]};
        r.plan.coll = COLL_REDUCE_SCATTER;
        r.plan.count = COUNT;
        r.plan.element = 4;
        ops[which][i] = engine_launch(engines[i], &r, false);
        assert_non_null(ops[which][i]);
        assert_ptr_equal(ops[which][i]->plan.algorithm,
                         &reduce_scatter_single_copy);
    }
}

static void check_blocks(uint32_t which)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < WORLD; i++) {
        uint32_t size = COUNT / WORLD + (i < COUNT % WORLD);
        assert_int_equal(ops[which][i]->result, pcclSuccess);
        for (uint32_t k = 0; k < COUNT; k++) {
            uint32_t all = 0;
            for (uint32_t j = 0; j < WORLD; j++)
                all += value(which, j, first + k);
            assert_int_equal(in[which][i][k],
                             k < size ? all : value(which, i, k));
        }
        first += size;
    }
}

static void test_blocks_only(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        engines[i]->piece = 8192;
        assert_true(engine_force(engines[i], "reduce_scatter:single_copy"));
    }
    scatter_all(0);
    assert_true(ops[0][0]->plan.segments > 4);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_int_equal(in[0][i][0], value(0, i, 0));
    settle();
    check_blocks(0);
    assert_true(carried < COUNT);
    all_rooms_are_free();
    engines[0]->links.region = NULL;
    engines[1]->links.conns[2]->region.taken = false;
    engines[2]->links.conns[1]->region.memory = NULL;
    scatter_all(1);
    settle();
    check_blocks(1);
    assert_true(carried > COUNT);
}

/* One engine has no region, and one could not open another's. */
static void test_some_do_not_lend(void **state)
{
    (void)state;
    engines[0]->links.region = NULL;
    engines[1]->links.conns[2]->region.taken = false;
    engines[2]->links.conns[1]->region.memory = NULL;
    launch_all(0, false);
    launch_all(1, true);
    settle();
    check_sums(0);
    check_sums(1);
    assert_true(carried > sizeof in[0][0]);
    all_rooms_are_free();
}

/* The launches have different orders at two engines; one finds no slot. */
static void test_more_than_rooms(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < OPS; which++) {
        launch(which, 0, false);
        launch(OPS - 1 - which, 1, false);
        launch((which + 2) % OPS, 2, false);
    }
    assert_int_equal(ops[OPS - 1][0]->slot, 0);
    assert_int_equal(ops[0][1]->slot, 0);
    settle();
    for (uint32_t which = 0; which < OPS; which++) check_sums(which);
    all_rooms_are_free();
}

/* The owner of a region goes on in a view without the reader. */
static void give_room_to_another(uint32_t lender, const struct op *op)
{
    struct single_copy_head *heads =
        (struct single_copy_head *)(void *)areas[lender];
    struct single_copy_head *head =
        &heads[single_copy_find_slot(op, areas[lender])];
    atomic_store(&head->number, (uint64_t)99 << 32);
}

static void test_what_was_overwritten_never_counts(void **state)
{
    (void)state;
    deaf[0][1] = deaf[0][2] = true;
    launch_all(0, true);
    settle();
    assert_true(single_copy_is_valid(ops[0][0], areas[2], 0));
    give_room_to_another(2, ops[0][0]);
    assert_false(single_copy_is_valid(ops[0][0], areas[2], 0));
    assert_int_equal(single_copy_find_slot(ops[0][0], areas[2]),
                     SINGLE_COPY_SLOTS);
    deaf[0][1] = deaf[0][2] = false;
    settle();
    for (uint32_t i = 0; i < WORLD; i++)
        assert_int_equal(ops[0][i]->phase, PHASE_RUNNING);
    assert_int_equal(added_first(ops[0][0]), 1); /* that of 1 */
    engine_finish(engines[0], ops[0][0], pcclRankConnectionLost);
    for (uint32_t k = 0; k < COUNT; k++)
        assert_int_equal(in[0][0][k], value(0, 0, k));
}

/* A result that another member gives does not stand either (rule F5). */
static void test_a_result_that_is_given(void **state)
{
    (void)state;
    engines[0]->input_large = 0;
    deaf[0][1] = deaf[0][2] = true;
    launch_all(0, true);
    settle();
    struct op *op = ops[0][0];
    engine_freeze(engines[0]);
    engine_accept_donation(engines[0], 0, op->r.tag, op->seq,
                           (uint8_t *)out[0][1], sizeof out[0][1]);
    assert_int_equal(op->phase, PHASE_COMPLETE);
    assert_memory_equal(in[0][0], out[0][1], sizeof out[0][1]);
    engine_finish(engines[0], op, pcclRankConnectionLost);
    for (uint32_t k = 0; k < COUNT; k++)
        assert_int_equal(in[0][0][k], value(0, 0, k));
    deaf[0][1] = deaf[0][2] = false;
}

/* The same while it waits for its turn. */
static void test_overwritten_while_it_waits(void **state)
{
    (void)state;
    deaf[0][1] = true;
    launch_all(0, true);
    settle();
    assert_int_equal(added_first(ops[0][0]), 0);
    give_room_to_another(2, ops[0][0]);
    deaf[0][1] = false;
    settle();
    assert_int_equal(added_first(ops[0][0]), 1);
    assert_int_equal(ops[0][0]->phase, PHASE_RUNNING);
    engine_finish(engines[0], ops[0][0], pcclRankConnectionLost);
    for (uint32_t k = 0; k < COUNT; k++)
        assert_int_equal(in[0][0][k], value(0, 0, k));
}

/* Wherever it is stopped, also where a member has put nothing into a region and
 * reads those of the others (contract C2). */
static void test_the_input_comes_back(void **state)
{
    uint32_t held = 0;
    for (uint32_t rounds = 0; rounds < 30; rounds++) {
        if (rounds % 2) engines[0]->links.region = NULL;
        for (uint32_t i = 0; i < WORLD && rounds / 2 % 2; i++) {
            engines[i]->input_large = 0;
            engines[i]->input_block = 100;
        }
        launch_all(0, true);
        settle_for(rounds);
        for (uint32_t i = 0; i < WORLD; i++) {
            engine_freeze(engines[i]);
            if (ops[0][i]->phase == PHASE_DONE) continue;
            held += ops[0][i]->phase == PHASE_COMPLETE;
            engine_finish(engines[i], ops[0][i], pcclRankConnectionLost);
            for (uint32_t k = 0; k < COUNT; k++)
                assert_int_equal(in[0][i][k], value(0, i, k));
        }
        (void)teardown_lend(state);
        assert_int_equal(setup_lend(state), 0);
    }
    assert_true(held > 0);
}

/* A slot belongs to its operation until all are known to have the result. A
 * new view frees all slots. */
static void test_room_until_all_are_done(void **state)
{
    (void)state;
    launch_all(0, false);
    deaf[2][0] = true; /* receives no sum of 0's chunk: cannot be done */
    settle();
    assert_int_equal(ops[0][0]->slot, 1);
    launch(1, 0, false);
    assert_int_equal(ops[1][0]->slot, 2);
    deaf[2][0] = false;
    launch(1, 1, false);
    launch(1, 2, false);
    settle();
    check_sums(0);
    check_sums(1);
    all_rooms_are_free();
    launch(2, 0, false);
    assert_ptr_equal(engines[0]->single_copy.users[0], ops[2][0]);
    install(3);
    all_rooms_are_free();
}

/* All members agree on the use of regions, whatever memory they have: the view
 * decides. */
static void test_by_the_view_alone(void **state)
{
    (void)state;
    engines[0]->links.region = NULL;
    engines[1]->links.driver.region_export = NULL;
    install(3);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(engines[i]->single_copy_on);
    for (uint32_t i = 0; i < WORLD; i++)
        engines[i]->single_copy_world = WORLD - 1;
    install(4);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_false(engines[i]->single_copy_on);
    for (uint32_t i = 0; i < WORLD; i++) engines[i]->single_copy_world = WORLD;
    members[1].host = HOST + 2;
    install(5);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_false(engines[i]->single_copy_on);
}

/* Engine 0 receives a frame of another one; false: it breaks the protocol. */
static bool hear(uint32_t from, const struct frame *f)
{
    uint8_t *to;
    assert_true(engine_rx_window(engines[0], from, &to) >= FRAME_SIZE);
    frame_encode(f, to);
    return engine_rx(engines[0], from, FRAME_SIZE);
}

static void let_close(void *user, uint32_t conn)
{
    (void)user;
    (void)conn;
}

static void let_fault(void *user, enum engine_fault fault, const struct op *op,
                      uint64_t peer)
{
    (void)user;
    (void)fault;
    (void)op;
    (void)peer;
}

static void test_words_out_of_place(void **state)
{
    (void)state;
    engines[0]->links.driver.close = let_close;
    engines[0]->out.fault = let_fault;
    engines[0]->links.conns[1]->region.memory = NULL;
    const struct frame lent = {
        .type = FRAME_DATA, .flags = FLAG_SINGLE_COPY, .epoch = 2};
    assert_false(hear(1, &lent)); /* it has exported nothing */
    const struct frame area = {.type = FRAME_REGION, .seq = REGION_SIZE};
    assert_false(hear(2, &area)); /* the connection shares no memory */
}

/* Invalid single-copy transfers, in a single-copy operation and in another
 * one. */
static void test_lies(void **state)
{
    (void)state;
    mute[1][0] = mute[2][0] = true;
    launch_all(0, false);
    settle();
    struct frame lent = {.type = FRAME_DATA,
                         .flags = FLAG_SINGLE_COPY,
                         .epoch = 2,
                         .index = ops[0][0]->eps[0].recvs,
                         .digest = ops[0][0]->r.digest};
    assert_true(hear(1, &lent));
    lent.index = UINT32_MAX;
    assert_true(hear(1, &lent));
    assert_int_equal(ops[0][0]->eps[0].received, 0);
    assert_int_equal(ops[0][0]->mapped_bytes, 0);

    static uint32_t one, sum;
    struct op_request r = {.call.tag = 1,
                           .call.dtype = DTYPE_U32,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = &one,
                           .call.recvbuf = &sum};
    r.plan.coll = COLL_ALLREDUCE;
    r.plan.count = 1;
    r.plan.element = 4;
    struct op *small = engine_launch(engines[0], &r, false);
    assert_non_null(small);
    assert_ptr_equal(small->plan.algorithm, &allreduce_flat);
    lent.index = 0;
    lent.tag = 1;
    lent.digest = small->r.digest;
    assert_true(hear(1, &lent));
    assert_int_equal(small->eps[0].received, 0);
    mute[1][0] = mute[2][0] = false;
    settle();
    check_sums(0);
}

enum { NONCE = 7 };
static uint32_t borrowed;

static const uint8_t *on_borrow(void *user, uint32_t conn,
                                const struct channel_offer *offer)
{
    (void)user;
    borrowed++;
    return offer->nonce == NONCE ? areas[conn] : NULL;
}

static uint8_t *on_lend(void *user, struct channel_offer *offer)
{
    (void)user;
    *offer = (struct channel_offer){.size = REGION_SIZE};
    return areas[0];
}

/* A region of another size is not opened, an open region is not opened again,
 * and no member has accepted a region without an offer. */
static void test_offers(void **state)
{
    (void)state;
    static struct channel_page page;
    static struct channel nothing;
    channel_init(&nothing, &page, NULL, CHANNEL_SIZE, 0);
    struct conn *c = engines[0]->links.conns[1];
    engines[0]->links.driver.region_attach = on_borrow;
    c->channel = &nothing;
    c->region = (struct conn_region){0};
    borrowed = 0;
    struct frame f = {
        .type = FRAME_REGION, .seq = REGION_SIZE - 1, .tag = NONCE};
    assert_true(hear(1, &f));
    assert_int_equal(borrowed, 0);
    f.seq = REGION_SIZE;
    f.tag = NONCE + 1;
    assert_true(hear(1, &f));
    assert_int_equal(borrowed, 1);
    assert_null(c->region.memory);
    assert_false(c->region.answers);
    f.tag = NONCE;
    f.scope = 5;
    assert_true(hear(1, &f));
    assert_ptr_equal(c->region.memory, areas[1]);
    assert_int_equal(nothing.taken, 5); /* posts before this one's (L11d) */
    assert_true(c->region.answers);
    assert_true(hear(1, &f));
    assert_int_equal(borrowed, 2);
    f.flags = FLAG_ANSWER;
    engines[0]->links.region = NULL;
    assert_true(hear(1, &f));
    assert_false(c->region.taken);
    engines[0]->links.region = areas[0];
    assert_true(hear(1, &f));
    assert_true(c->region.taken);
    /* A member that has been left out, and is back, hears of it anew. */
    uint64_t id = c->link->id;
    engines[0]->links.host = c->link->host;
    engines[0]->links.driver.region_export = on_lend;
    c->region.offers = false;
    region_offer(&engines[0]->links);
    assert_true(c->region.taken && !c->region.offers);
    c->link->id = 99;
    region_offer(&engines[0]->links);
    assert_true(!c->region.taken && !c->region.offers);
    c->link->id = id;
    region_offer(&engines[0]->links);
    assert_true(c->region.offers);
    c->channel = NULL;
}

/* Single copy: no more than two segments are under way. The input of the next
 * but one waits for all sums of a segment, a sum for the own one. */
static void test_order(void **state)
{
    (void)state;
    struct plan_request r = {.coll = COLL_ALLREDUCE,
                             .world = 4,
                             .rank = 1,
                             .mesh = true,
                             .one_host = true,
                             .shared_memory = true,
                             .single_copy_world = 16,
                             .count = 1 << 20,
                             .element = 4};
    struct plan p;
    plan_init(&p, &r);
    assert_ptr_equal(p.algorithm, &allreduce_single_copy);
    assert_true(p.algorithm->defers);
    assert_int_equal(p.segments, 4);
    static const int order[] = {0, 1, ~0, 2, ~1, 3, ~2, ~3};
    assert_int_equal(plan_sends(&p, 3), ARRAY_COUNT(order));
    for (uint32_t k = 0; k < ARRAY_COUNT(order); k++) {
        struct plan_xfer x;
        struct pieces_part part;
        bool sum = !p.algorithm->part(&p, 3, k, &part);
        uint32_t g = part.piece % p.segments, own = p.segments;
        assert_int_equal(sum ? ~(int)g : (int)g, order[k]);
        plan_recv(&p, 3, k, &x);
        assert_int_equal(x.action, sum ? ACTION_STORE : ACTION_REDUCE);
        plan_send(&p, 3, k, &x);
        uint32_t after = g < 2 ? PLAN_NOTHING : pieces_count(&p) + own + g - 2;
        assert_int_equal(x.after, sum ? own + g : after);
        assert_int_equal(x.space, sum ? SPACE_RECV : SPACE_SEND);
    }
    r.world = 16; /* of more members smaller ones, to some extent */
    plan_init(&p, &r);
    assert_int_equal(p.segment, 32 * 1024);
    r.single_copy_world = HOST_MESH_MAX;
    for (r.world = 33; r.world <= HOST_MESH_MAX; r.world++) {
        r.piece = r.world % 2 * 64 * 1024;
        plan_init(&p, &r); /* each of them has a place */
        assert_ptr_equal(p.algorithm, &allreduce_single_copy);
        assert_true(p.segment * r.world <= SINGLE_COPY_BUFFER);
        assert_true(p.segment >= 12 * 1024);
    }
    r.one_host = false;
    plan_init(&p, &r);
    assert_ptr_equal(p.algorithm, &allreduce_ring);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_lend, teardown_lend)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_headers_only),
        TEST(test_blocks_only),
        TEST(test_some_do_not_lend),
        TEST(test_more_than_rooms),
        TEST(test_what_was_overwritten_never_counts),
        TEST(test_overwritten_while_it_waits),
        TEST(test_a_result_that_is_given),
        TEST(test_the_input_comes_back),
        TEST(test_room_until_all_are_done),
        TEST(test_by_the_view_alone),
        TEST(test_words_out_of_place),
        TEST(test_lies),
        TEST(test_offers),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
