/* test_pulls.c - blocks that their receivers copy out of the memory of the
 * sender (rule D27): what goes so, and that nothing counts which a sender has
 * left. Three engines, whose memory is one process's. */
#include "engines.h"

#include "../../../src/base/host_id.h"
#include "../../../src/ring/pull.h"

#include "../../../include/pccl.h"

enum { BLOCK = 5000, SENDER = 1, READER = 0 };

static uint8_t own[WORLD][WORLD][BLOCK], out[WORLD][WORLD][BLOCK];
static struct op *ops[WORLD];
static uint8_t *areas[WORLD];
static uint32_t pulls, faults;
static bool works, lends;

static void on_broken(void *user, enum engine_fault fault, const struct op *op,
                      uint64_t peer)
{
    (void)user, (void)op, (void)peer;
    faults += fault == FAULT_BROKEN;
}

static bool cma_works(void *user, uint32_t conn,
                      const struct wire_member *member)
{
    (void)user, (void)conn, (void)member;
    return true;
}

static bool cma_lends(void *user, const void *bytes, size_t size)
{
    (void)user, (void)bytes, (void)size;
    return lends;
}

static bool cma_read(void *user, uint32_t conn,
                     const struct wire_member *member, uint64_t address,
                     void *to, size_t size)
{
    (void)conn, (void)member;
    if (self_of(user) == READER && !works) return false;
    memcpy(to, (const void *)(uintptr_t)address, size);
    pulls++;
    return true;
}

static int setup_pulls(void **state)
{
    if (setup(state)) return 1;
    works = lends = true;
    pulls = faults = 0;
    for (uint32_t i = 0; i < WORLD; i++) {
        struct links *n = &engines[i]->links;
        members[i].host = n->host = host_id_make(1, 64);
        n->driver.cma_works = cma_works;
        n->driver.cma_lends = cma_lends;
        n->driver.cma_read = cma_read;
        engines[i]->out.fault = on_broken;
        engines[i]->pull_least = 1;
        areas[i] = aligned_alloc(4096, REGION_SIZE);
        if (!areas[i]) return 1;
        memset(areas[i], 0, SINGLE_COPY_HEAD);
    }
    install_all(2);
    for (uint32_t a = 0; a < WORLD; a++) {
        engines[a]->links.region = areas[a];
        for (uint32_t b = 0; b < WORLD; b++) {
            if (a == b) continue;
            struct conn *c = engines[a]->links.conns[b];
            c->region.taken = c->region.pulls = true;
            c->region.memory = areas[b];
            link_know(c->link, &members[b]);
        }
    }
    carried = 0;
    return 0;
}

static int teardown_pulls(void **state)
{
    int failed = teardown(state);
    for (uint32_t i = 0; i < WORLD; i++) {
        members[i].host = 0;
        free(areas[i]);
    }
    return failed;
}

static uint8_t value(uint32_t from, uint32_t to)
{
    return (uint8_t)(1 + from * 16 + to);
}

static void launch(void)
{
    static size_t sizes[WORLD], displs[WORLD];
    for (uint32_t i = 0; i < WORLD; i++) {
        sizes[i] = BLOCK;
        displs[i] = (size_t)i * BLOCK;
    }
    memset(out, 0, sizeof out);
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint32_t k = 0; k < WORLD; k++)
            memset(own[i][k], value(i, k), BLOCK);
        struct op_request r = {.call.tag = 1,
                               .call.sendbuf = own[i],
                               .call.recvbuf = out[i],
                               .plan = {.coll = COLL_ALLTOALLV,
                                        .element = 1,
                                        .send_bytes = sizes,
                                        .send_displs = displs,
                                        .recv_bytes = sizes,
                                        .recv_displs = displs}};
        ops[i] = engine_launch(engines[i], &r, false);
        assert_non_null(ops[i]);
    }
}

static void check(void)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[i]->result, pcclSuccess);
        for (uint32_t k = 0; k < WORLD; k++) {
            assert_int_equal(out[i][k][0], value(k, i));
            assert_memory_equal(out[i][k], out[i][k] + 1, BLOCK - 1);
        }
        for (uint32_t slot = 0; slot < SINGLE_COPY_SLOTS; slot++)
            assert_null(engines[i]->single_copy.users[slot]);
    }
}

static void test_headers_only(void **state)
{
    (void)state;
    launch();
    settle();
    check();
    assert_int_equal(pulls, WORLD * (WORLD - 1));
    assert_true(carried < BLOCK);
    assert_int_equal(ops[READER]->mapped_bytes, 0); /* the driver counts it */
    assert_int_equal(faults, 0);
}

/* One cannot read another one, one has memory that nobody can read, one has no
 * processor for each: their blocks are sent. */
static void test_what_cannot_be_pulled_is_sent(void **state)
{
    (void)state;
    engines[SENDER]->links.conns[READER]->region.pulls = false;
    launch();
    settle();
    check();
    assert_int_equal(pulls, WORLD * (WORLD - 1) - 1);
    lends = false;
    launch();
    settle();
    check();
    lends = true;
    for (uint32_t i = 0; i < WORLD; i++) engines[i]->roomy = false;
    launch();
    settle();
    check();
    assert_int_equal(pulls, WORLD * (WORLD - 1) - 1);
}

/* The sender has ended the operation, by `ends` before it frees it, and its
 * program writes to the block. Its frame comes to the reader then (D27c). */
static void sender_leaves(void (*ends)(struct engine *))
{
    deaf[READER][SENDER] = true;
    launch();
    settle();
    uint32_t before = pulls;
    assert_true(single_copy_find_slot(ops[READER], areas[SENDER]) <
                SINGLE_COPY_SLOTS);
    if (ends) ends(engines[SENDER]);
    op_free_run(engines[SENDER], ops[SENDER]);
    memset(own[SENDER], 0xee, sizeof own[SENDER]);
    deaf[READER][SENDER] = false;
    mute[SENDER][READER] = true;
    settle();
    assert_int_equal(pulls, before);
    assert_int_equal(single_copy_find_slot(ops[READER], areas[SENDER]),
                     SINGLE_COPY_SLOTS);
    assert_int_equal(ops[READER]->phase, PHASE_RUNNING);
}

static void test_what_the_sender_has_left_never_counts(void **state)
{
    (void)state;
    sender_leaves(NULL);
}

/* ... because there is a new view, without the reader. */
static void test_what_a_view_has_ended_never_counts(void **state)
{
    (void)state;
    sender_leaves(single_copy_install);
}

/* Rule D27d. No REGION passes here: none of the connections shares memory. */
static void test_a_failed_pull_breaks_the_link(void **state)
{
    (void)state;
    works = false;
    for (uint32_t i = 0; i < WORLD; i++) mute[READER][i] = true;
    launch();
    settle();
    assert_int_equal(faults, WORLD - 1);
    assert_true(engines[READER]->links.conns[SENDER]->region.unreadable);
    assert_int_equal(ops[READER]->phase, PHASE_RUNNING);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_pulls, teardown_pulls)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_headers_only),
        TEST(test_what_cannot_be_pulled_is_sent),
        TEST(test_what_the_sender_has_left_never_counts),
        TEST(test_what_a_view_has_ended_never_counts),
        TEST(test_a_failed_pull_breaks_the_link),
    };
    return cmocka_run_group_tests_name("ring/pulls", tests, NULL, NULL);
}
