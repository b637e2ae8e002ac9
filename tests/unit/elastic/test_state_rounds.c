/* test_state_rounds.c - which rounds of partial all-reduces are in the state of
 * a member: what it says of them, and what becomes of results of theirs that it
 * has when it receives a state. Rule A14 of COVERAGE.md. */
#include "joined.h"

#include "../../../include/pccl.h"

#include <inttypes.h>

static void on_send(void *user, const struct wire_msg *m)
{
    (void)user;
    if (m->type == WIRE_PARTIAL && m->partial.word == PARTIAL_CALL)
        say("call after %" PRIu64 "\n", m->partial.number);
    if (m->type == WIRE_PARTIAL && m->partial.word == PARTIAL_FAILED)
        say("failed %" PRIu64 "\n", m->partial.number);
    if (m->type == WIRE_SYNC) say("sync\n");
    for (uint32_t i = 0; m->type == WIRE_SYNC && i < m->id_count; i += 2)
        say("tag %" PRIu64 " until %" PRIu64 "\n", m->ids[i], m->ids[i + 1]);
}

static int setup(void **state)
{
    (void)state;
    struct wire_msg welcome = {.type = WIRE_WELCOME,
                               .welcome = {.id = 10, .deadline_ms = 1000}};
    return join(on_send, NULL, &welcome);
}

static uint8_t vector[8];
static struct partial_call *round_call;

static void launch(void)
{
    struct partial_request r = {.tag = 5,
                                .count = 1,
                                .dtype = DTYPE_F64,
                                .weight = 1,
                                .deadline_ms = 1000,
                                .send = vector,
                                .recv = vector};
    assert_int_equal(session_partial(session, &r, &round_call), pcclSuccess);
}

/* A decided round without any part. */
static void ends(uint64_t number)
{
    static const uint64_t ids[] = {10};
    static const struct wire_part part = {.count = 1};
    static const uint8_t set[1];
    struct wire_msg m = {.type = WIRE_COVERAGE,
                         .ids = ids,
                         .id_count = 1,
                         .parts = &part,
                         .part_count = 1,
                         .sets = set,
                         .set_count = 1,
                         .set_size = 1};
    m.partial.word = PARTIAL_END;
    m.partial.tag = 5;
    m.partial.number = number;
    hear(&m);
}

static void order(enum partial_order word, uint64_t number, uint64_t missed)
{
    struct wire_msg m = {.type = WIRE_COVERAGE};
    m.partial.word = (uint8_t)word;
    m.partial.why = PARTIAL_LATE;
    m.partial.tag = 5;
    m.partial.number = number;
    m.partial.hash = missed;
    hear(&m);
}

static void taken(int expected)
{
    const char *text;
    assert_int_equal(round_call->phase, PARTIAL_DONE);
    int result = session_partial_result(session, round_call, &text);
    assert_int_equal(result, expected);
    session_partial_take(session, round_call);
}

/* Of a state whose last round of the tag is that one; nothing moves. */
static void synchronize(uint64_t last, bool receives)
{
    static uint64_t number;
    uint64_t ids[] = {5, last};
    struct state_list list;
    static uint8_t bytes[1];
    const struct state_tensor t = {
        .name = "t", .data = bytes, .count = 1, .size = 1};
    assert_true(state_list_make(&list, &t, 1, 1));
    assert_int_equal(session_sync(session, &list, SYNC_RECEIVE_ONLY, 0),
                     pcclSuccess);
    struct wire_msg m = {.type = WIRE_STATE, .ids = ids};
    m.sync.id = ++number;
    m.sync.role = SYNC_RECEIVE;
    if (receives) hear(&m);
    m.sync.role = SYNC_COMPLETE;
    m.id_count = 2;
    hear(&m);
    uint64_t revision, tx, rx;
    assert_int_equal(session_sync_take(session, &revision, &tx, &rx),
                     pcclSuccess);
    state_list_free(&list);
}

static void test_said(void **state)
{
    (void)state;
    launch();
    ends(7);
    synchronize(0, false); /* it has not taken it yet */
    taken(pcclSuccess);
    synchronize(0, false);
    launch();
    expect("call after 0\n"
           "sync\n"
           "sync\n"
           "tag 5 until 7\n"
           "call after 7\n");
}

static void test_received(void **state)
{
    (void)state;
    launch();
    ends(7);
    taken(pcclSuccess);
    synchronize(12, true);
    launch();
    ends(13);
    taken(pcclSuccess);
    synchronize(9, true); /* an older one */
    launch();
    expect("call after 0\n"
           "sync\n"
           "tag 5 until 7\n"
           "call after 12\n"
           "sync\n"
           "tag 5 until 13\n"
           "call after 9\n");
}

/* It was told what it has missed; its state is as before until it has another
 * one. */
static void test_told(void **state)
{
    (void)state;
    launch();
    ends(7);
    taken(pcclSuccess);
    launch();
    order(PARTIAL_REFUSE, 0, 11);
    taken(pcclInvalidUsage);
    synchronize(20, false);
    launch();
    expect("call after 0\n"
           "call after 7\n"
           "sync\n"
           "tag 5 until 7\n"
           "call after 11\n");
}

static void test_not_taken(void **state)
{
    (void)state;
    launch();
    ends(7);
    synchronize(7, true);
    taken(pcclInvalidUsage);
    launch();
    ends(8);
    synchronize(7, true); /* the state has it not */
    taken(pcclSuccess);
    expect("call after 0\n"
           "sync\n"
           "call after 7\n"
           "sync\n"
           "tag 5 until 7\n");
}

/* A round before it is missing in the state that has come. */
static void test_under_way_in_the_past(void **state)
{
    (void)state;
    launch();
    ends(7);
    taken(pcclSuccess);
    launch();
    synchronize(6, true);
    ends(8);
    taken(pcclInvalidUsage);
    launch();
    expect("call after 0\n"
           "call after 7\n"
           "sync\n"
           "tag 5 until 7\n"
           "call after 6\n");
}

/* It does not fetch the parts of what its state has. */
static void test_under_way(void **state)
{
    (void)state;
    launch();
    synchronize(7, true);
    order(PARTIAL_FETCH, 7, 0);
    order(PARTIAL_RELEASE, 7, 8);
    taken(pcclInvalidUsage);
    launch();
    expect("call after 0\n"
           "sync\n"
           "failed 7\n"
           "call after 8\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_said),      TEST(test_received),
        TEST(test_told),      TEST(test_not_taken),
        TEST(test_under_way), TEST(test_under_way_in_the_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
