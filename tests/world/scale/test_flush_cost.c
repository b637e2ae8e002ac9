/* test_flush_cost.c - operations in scopes, ten and a hundred times as many:
 * what a closed epoch and the reports before it cost the coordinator and a
 * member grows no faster (rules F1, F4, V4), in executed blocks of their code.
 */
#include "../../unit/master/founded.h"

#include "../../../src/base/scope.h"
#include "../../../src/ring/op.h"
#include "scale.h"
#include "../../unit/install_view.h"

enum { WORLD = 64, OPS_FEW = 2, OPS_MANY = 20, OPS_MOST = 200 };

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user, (void)links, (void)count, (void)m;
}

/* Each member runs so many, each in the scope of itself and another member that
 * has not launched it. `circles`: since it runs one of the same tag with the
 * next one, all the way round. */
static void list(uint32_t link, uint32_t each, bool circles)
{
    static struct wire_op ops[OPS_MOST];
    static uint8_t sets[OPS_MOST * WORLD / 8];
    struct wire_msg m = {.type = WIRE_FLUSHED,
                         .round = master->round_last,
                         .ops = ops,
                         .sets = sets,
                         .set_size = WORLD / 8};
    memset(sets, 0, sizeof sets);
    for (uint32_t i = 0; i < each; i++) {
        uint32_t away = circles ? 1 : 1 + i % (WORLD - 1);
        uint32_t other = (link + away) % WORLD;
        uint64_t ids[] = {link + 1, other + 1};
        ops[m.op_count++] =
            (struct wire_op){.scope = scope_number(ids, 2),
                             .tag = circles ? i : i * WORLD + link,
                             .state = OP_RUNNING};
        if (m.set_count >= away) continue; /* it is named already */
        uint8_t *set = sets + (size_t)m.set_count++ * m.set_size;
        set[link / 8] |= (uint8_t)(1u << link % 8);
        set[other / 8] |= (uint8_t)(1u << other % 8);
    }
    step(MASTER_RECEIVED, link, &m);
}

static void answer(uint32_t link, bool circles)
{
    while (master->peers[link].asked != MASTER_NO_OP) {
        const struct master_table *t = &master->groups[0].table;
        struct wire_op op = t->ops[master->peers[link].asked].op;
        uint64_t runner = circles ? link : op.tag % WORLD;
        uint64_t ids[] = {link + 1, (link + 1) % WORLD + 1};
        bool here = circles ? op.scope == scope_number(ids, 2) : runner == link;
        op.state = here ? OP_RUNNING : OP_NOT_LAUNCHED;
        struct wire_msg m = {.type = WIRE_REPLY,
                             .round = master->round_last,
                             .ops = &op,
                             .op_count = 1};
        step(MASTER_RECEIVED, link, &m);
    }
}

/* The blocks of reports and of a round. */
static uint64_t coordinator(uint32_t each, bool circles)
{
    struct master_config c = {.out = {.send = on_send, .close = say_close},
                              .deadline = SCALE_DEADLINE,
                              .quorum = WORLD};
    assert_int_equal(found(&c), 0);
    struct wire_msg report = {
        .type = WIRE_BLOCKED, .epoch = 1, .blocked.age_ms = 10000};
    uint64_t before = scale_steps;
    now = SCALE_DEADLINE * 10;
    for (uint32_t i = 0; i < WORLD; i++) step(MASTER_RECEIVED, i, &report);
    assert_int_equal(master->groups[0].phase, GROUP_FLUSHING);
    for (uint32_t i = 0; i < WORLD; i++) list(i, each, circles);
    assert_int_equal(master->groups[0].phase, GROUP_ASKING);
    for (uint32_t i = 0; i < WORLD; i++) answer(i, circles);
    assert_int_equal(master->groups[0].table.op_count, WORLD * each);
    for (uint32_t i = 0; i < WORLD * each; i++)
        assert_int_equal(master->groups[0].table.ops[i].forced,
                         circles ? VERDICT_CROSSED : VERDICT_ABORT);
    all_are_ready();
    assert_int_equal(master->groups[0].phase, GROUP_OPEN);
    uint64_t steps = scale_steps - before;
    (void)teardown(NULL);
    return steps;
}

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user, (void)addr;
    return NO_CONN;
}

static void on_closed(void *user, uint32_t conn)
{
    (void)user, (void)conn;
}

static void on_fault(void *user, enum engine_fault fault, const struct op *op,
                     uint64_t peer)
{
    (void)user, (void)fault, (void)op, (void)peer;
}

static void on_finished(void *user, struct op *op)
{
    (void)user, (void)op;
}

/* The blocks of a list of operations, and of a look for what is blocked. */
static uint64_t member(uint32_t each, bool circles)
{
    static struct wire_member members[WORLD];
    static uint64_t ids[WORLD];
    (void)circles;
    struct driver driver = {.dial = on_dial, .close = on_closed};
    struct engine_events events = {.fault = on_fault, .finished = on_finished};
    struct engine *e = engine_new(&driver, &events, 1, PCCL_S);
    assert_non_null(e);
    const struct wire_key key = {{1, 2}};
    for (uint32_t i = 0; i < WORLD; i++) members[i].id = ids[i] = 10 + i;
    links_set_self(engine_links(e), ids[0], &key);
    engine_freeze(e);
    install_view(e, 1, members, WORLD, 0);
    for (uint32_t i = 0; i < each; i++) {
        uint64_t scope[] = {ids[0], ids[1 + i % 8], ids[9 + i / 8]};
        struct op_request r = {
            .call.tag = i, .call.members = scope, .call.member_count = 3};
        r.plan.coll = COLL_BARRIER;
        assert_non_null(engine_launch(e, &r, false));
    }
    static struct wire_op ops[OPS_MAX];
    struct wire_msg m = {.type = WIRE_FLUSHED};
    pccl_ns age;
    uint64_t before = scale_steps;
    assert_false(engine_blocked(e, PCCL_S, &age));
    assert_true(engine_list(e, &m, ops));
    uint64_t steps = scale_steps - before;
    assert_int_equal(m.set_count, each);
    engine_listed(e, &m);
    engine_delete(e);
    return steps;
}

static void grows(const char *what, uint64_t (*work)(uint32_t, bool),
                  bool circles)
{
    uint64_t few = work(OPS_FEW, circles), many = work(OPS_MANY, circles);
    uint64_t most = work(OPS_MOST, circles);
    printf("%s: %llu blocks, %llu, %llu\n", what, (unsigned long long)few,
           (unsigned long long)many, (unsigned long long)most);
    assert_true(few > 0 && many <= 10 * few && most <= 100 * few);
    assert_true(10 * most <= 105 * many);
}

static void test_a_closed_epoch(void **state)
{
    (void)state;
    grows("coordinator", coordinator, false);
}

static void test_circles(void **state)
{
    (void)state;
    grows("coordinator, circles", coordinator, true);
}

static void test_a_list(void **state)
{
    (void)state;
    grows("member", member, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_closed_epoch),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
