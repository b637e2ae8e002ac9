/* test_spread.c - broadcasts and all-gathers through regions (rules D19, L7,
 * L8): the frames that pass over the connections, places that are used again,
 * members without a region, and what was overwritten. Three engines, whose
 * memory is one process's. */
#include "engines.h"

#include "../../../src/ring/algorithm.h"

#include "../../../include/pccl.h"

#include <signal.h>
#include <sys/mman.h>

enum { PIECE = 4096, COUNT = 20 * PIECE + 5, ROOT = 1, HOST = 2 };

static uint8_t own[WORLD][COUNT], out[WORLD][WORLD * COUNT];
static struct op *ops[WORLD];
static uint8_t *areas[WORLD];

static int setup_regions(void **state)
{
    if (setup(state)) return 1;
    for (uint32_t i = 0; i < WORLD; i++) {
        members[i].host = HOST;
        engines[i]->links.host = HOST;
        engines[i]->piece = PIECE;
        areas[i] = aligned_alloc(4096, REGION_SIZE);
        if (!areas[i]) return 1;
        memset(areas[i], 0, SINGLE_COPY_HEAD);
    }
    install_all(2);
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

static int teardown_regions(void **state)
{
    int failed = teardown(state);
    for (uint32_t i = 0; i < WORLD; i++) {
        members[i].host = 0;
        free(areas[i]);
    }
    return failed;
}

static uint8_t value(uint32_t i, uint32_t k)
{
    return (uint8_t)(i * 41 + k * 7 + k / PIECE + 1);
}

static void launch(enum plan_coll coll)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        memset(out[i], 0, sizeof out[i]);
        for (uint32_t k = 0; k < COUNT; k++) own[i][k] = value(i, k);
        if (i == ROOT) memcpy(out[i], own[i], COUNT);
        struct op_request r = {
            .call.tag = coll, .call.sendbuf = own[i], .call.recvbuf = out[i]};
        if (coll == COLL_BROADCAST) r.call.sendbuf = out[i];
        r.plan.coll = coll;
        r.plan.root = ROOT;
        r.plan.count = COUNT;
        r.plan.element = 1;
        r.call.count = COUNT;
        ops[i] = engine_launch(engines[i], &r, false);
        assert_non_null(ops[i]);
        assert_ptr_equal(ops[i]->plan.algorithm, &spread_single_copy);
        assert_int_equal(ops[i]->plan.segments, COUNT / PIECE + 1);
    }
}

static void check(enum plan_coll coll)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[i]->result, pcclSuccess);
        for (uint32_t k = 0; k < COUNT; k++) {
            if (coll == COLL_BROADCAST)
                assert_int_equal(out[i][k], value(ROOT, k));
            for (uint32_t a = 0; a < WORLD && coll == COLL_ALLGATHER; a++)
                assert_int_equal(out[i][a * COUNT + k], value(a, k));
        }
        for (uint32_t slot = 0; slot < SINGLE_COPY_SLOTS; slot++)
            assert_null(engines[i]->single_copy.users[slot]);
    }
}

static const enum plan_coll colls[] = {COLL_BROADCAST, COLL_ALLGATHER};

static void test_headers_only(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(colls); c++) {
        carried = 0;
        launch(colls[c]);
        settle();
        check(colls[c]);
        assert_true(carried < COUNT);
        assert_true(ops[0]->mapped_bytes >= COUNT);
    }
}

/* One has no region, one has not opened another's: their bytes go through the
 * queues, in between. */
static void test_some_do_not_lend(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(colls); c++) {
        engines[0]->links.region = NULL;
        engines[1]->links.conns[2]->region.taken = false;
        engines[2]->links.conns[1]->region.memory = NULL;
        launch(colls[c]);
        settle();
        check(colls[c]);
    }
}

/* However far one is behind another, nobody overwrites what it has not
 * taken. */
static void test_places_are_used_again(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 4 * WORLD * WORLD; turn++) {
        enum plan_coll coll = colls[turn % 2];
        uint32_t to = turn / 2 % WORLD, from = turn / 2 / WORLD % WORLD;
        launch(coll);
        settle_for(turn);
        deaf[to][from] = true;
        settle();
        mute[from][to] = true;
        deaf[to][from] = false;
        settle();
        mute[from][to] = false;
        settle();
        check(coll);
    }
}

/* The slot is another operation's from now on. */
static void give_slot_to_another(uint32_t slot)
{
    struct single_copy_head *heads =
        (struct single_copy_head *)(void *)areas[ROOT];
    atomic_store(&heads[slot].number, (uint64_t)99 << 32);
}

/* The root goes on in a view without the reader. */
static void test_what_was_overwritten_never_counts(void **state)
{
    (void)state;
    deaf[0][ROOT] = true;
    launch(COLL_BROADCAST);
    settle();
    uint32_t slot = single_copy_find_slot(ops[0], areas[ROOT]);
    assert_true(slot < SINGLE_COPY_SLOTS);
    give_slot_to_another(slot);
    deaf[0][ROOT] = false;
    settle();
    assert_int_equal(ops[0]->phase, PHASE_RUNNING);
    assert_int_equal(ops[0]->mapped_bytes, 0);
    assert_int_equal(ops[ROOT]->phase, PHASE_RUNNING);
}

enum { PAGE = 4096 };
static uint32_t read_slot;

static void on_read(int number)
{
    (void)number;
    (void)mprotect(areas[ROOT] + single_copy_slot_offset(read_slot), PAGE,
                   PROT_READ | PROT_WRITE);
    give_slot_to_another(read_slot);
}

/* It does so while the member reads: the first byte that is read stops it. */
static void test_what_is_overwritten_never_counts(void **state)
{
    (void)state;
    const struct sigaction stops = {.sa_handler = on_read};
    struct sigaction before;
    deaf[0][ROOT] = true;
    launch(COLL_BROADCAST);
    settle();
    read_slot = single_copy_find_slot(ops[0], areas[ROOT]);
    assert_true(read_slot < SINGLE_COPY_SLOTS);
    assert_int_equal(sigaction(SIGSEGV, &stops, &before), 0);
    assert_int_equal(mprotect(areas[ROOT] + single_copy_slot_offset(read_slot),
                              PAGE, PROT_NONE),
                     0);
    deaf[0][ROOT] = false;
    settle();
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(single_copy_find_slot(ops[0], areas[ROOT]),
                     SINGLE_COPY_SLOTS);
    assert_int_equal(ops[0]->phase, PHASE_RUNNING);
    assert_int_equal(ops[0]->mapped_bytes, 0);
}

#define TEST(f)                                                                \
    cmocka_unit_test_setup_teardown(f, setup_regions, teardown_regions)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_headers_only),
        TEST(test_some_do_not_lend),
        TEST(test_places_are_used_again),
        TEST(test_what_was_overwritten_never_counts),
        TEST(test_what_is_overwritten_never_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
