/* test_unreachable.c - an operation between two members that nobody links, in a
 * world that has a ring all the same (rules R4c, N10). Of six members 0 reaches
 * 2 and 3, 1 reaches 4 and 5, and these reach each other: whoever reaches 0
 * does not reach 1, so nobody relays for the pair. */
#include "founded.h"

#include "../../../src/base/scope.h"

enum { PEERS = 6 };

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *msg)
{
    (void)user;
    if (msg->type != WIRE_VERDICT) return;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < msg->op_count; k++)
            say("%u %s\n", links[i],
                msg->ops[k].state == VERDICT_UNREACHABLE ? "unreachable"
                                                         : "else");
}

static void *edges;

static int setup(void **state)
{
    (void)state;
    edges = malloc(bandwidth_size(PEERS));
    if (!edges) return 1;
    struct master_config c = {
        .out = {.send = on_send, .close = say_close},
        .deadline = 1000 * PCCL_S,
        .quorum = PEERS,
        .edges = bandwidth_init(edges, bandwidth_size(PEERS), PEERS)};
    return found(&c);
}

static int end(void **state)
{
    (void)teardown(state);
    free(edges);
    return 0;
}

static struct bandwidth_edge look(uint32_t from, uint32_t to)
{
    const struct master_peer *p = master->peers;
    return bandwidth_look(master->edges, p[from].slot, p[to].slot);
}

static void cut(uint64_t a, uint64_t b)
{
    struct master_group *g = &master->groups[0];
    g->edges[g->edge_count++] =
        (struct master_edge){.a = a, .b = b, .bad = true};
}

/* Both members run the operation, and member 0 has no link for it. */
static void run_pair(void)
{
    const uint64_t ids[] = {1, 2};
    uint8_t ranks = 3; /* of a set: bits 0 and 1 */
    struct wire_op op = {scope_number(ids, 2), 7, 0, OP_RUNNING, false};
    struct wire_msg refresh = {.type = WIRE_REFRESH,
                               .epoch = master->groups[0].epoch};
    refresh.fault.cause = REFRESH_UNREACHABLE;
    refresh.fault.scope = op.scope;
    refresh.fault.tag = op.tag;
    refresh.fault.peer = 2;
    step(MASTER_RECEIVED, 0, &refresh);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct wire_msg m = {.type = WIRE_FLUSHED,
                             .round = master->round_last,
                             .ops = &op,
                             .op_count = i < 2,
                             .sets = &ranks,
                             .set_size = 1,
                             .set_count = i < 2};
        step(MASTER_RECEIVED, i, &m);
    }
    all_are_ready();
}

static void test_no_way_to_each_other(void **state)
{
    (void)state;
    cut(1, 5), cut(1, 6), cut(2, 3), cut(2, 4);
    run_pair();
    expect("0 unreachable\n1 unreachable\n");
    assert_int_equal(master_count(master, PEER_MEMBER), PEERS);
}

/* The same, but 2 reaches both. */
static void test_a_relay_saves_it(void **state)
{
    (void)state;
    cut(1, 5), cut(1, 6), cut(2, 4);
    run_pair();
    expect("");
    assert_int_equal(master_count(master, PEER_MEMBER), PEERS);
    /* Rule N10c: the search may take the pair, and nothing is slower. */
    assert_int_equal(look(0, 1).state, EDGE_MEASURED);
    assert_int_equal(look(1, 0).state, EDGE_MEASURED);
    assert_true(look(0, 1).rate <= 1 && look(1, 0).rate <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_way_to_each_other, setup, end),
        cmocka_unit_test_setup_teardown(test_a_relay_saves_it, setup, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
