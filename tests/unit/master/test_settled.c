/* test_settled.c - an operation that ended with an error at some members, while
 * others run another one of its tag: the coordinator finds that they wait for
 * each other (rule V6g). The members' side: test_remembered. */
#include "founded.h"

#include "../../../src/base/scope.h"

enum { PEERS = 4 };

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    for (uint32_t i = 0; i < count && m->type == WIRE_VERDICT; i++) {
        say("%u:", links[i]);
        for (uint32_t k = 0; k < m->op_count; k++)
            say(" %d.%u:%u", (int)m->ops[k].tag, m->ops[k].seq,
                m->ops[k].state);
        say("\n");
    }
}

static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = say_close},
                              .deadline = 100,
                              .quorum = PEERS};
    return found(&c);
}

/* The whole view, or ranks as bits. */
static uint64_t number_of(uint8_t ranks)
{
    uint64_t ids[PEERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < PEERS && ranks != 0; i++)
        if (ranks >> i & 1) ids[count++] = i + 1;
    return scope_number(count > 0 ? ids : NULL, count);
}

static struct wire_op op(uint8_t ranks, uint32_t seq, uint8_t state)
{
    return (struct wire_op){number_of(ranks), 7, seq, state, false};
}

static void blocked(uint32_t link, struct wire_op runs, struct wire_op lacks)
{
    const struct wire_op pair[] = {runs, lacks};
    step(MASTER_RECEIVED, link,
         &(struct wire_msg){
             .type = WIRE_BLOCKED, .epoch = 1, .ops = pair, .op_count = 2});
}

/* What link i lists; the first one, if it runs, in scope `ranks`. */
struct list {
    uint8_t ranks;
    uint32_t count;
    struct wire_op ops[3];
};

static void tell(const struct list *lists)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        const struct master_peer *p = &master->peers[i];
        while (master->groups[0].phase == GROUP_ASKING &&
               p->asked != MASTER_NO_OP) {
            struct wire_op o = master->groups[0].table.ops[p->asked].op;
            o.state = OP_NOT_LAUNCHED;
            for (uint32_t k = 0; k < lists[i].count; k++)
                if (wire_same_op(&o, &lists[i].ops[k]))
                    o.state = lists[i].ops[k].state;
            step(MASTER_RECEIVED, i,
                 &(struct wire_msg){.type = WIRE_REPLY,
                                    .round = master->round_last,
                                    .ops = &o,
                                    .op_count = 1});
        }
    }
}

/* All flush, and the verdicts go out. */
static void judged(const struct list *lists, const char *verdicts)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        if (master->peers[i].state != PEER_MEMBER) continue;
        struct wire_msg m = {.type = WIRE_FLUSHED,
                             .round = master->round_last,
                             .ops = lists[i].ops,
                             .op_count = lists[i].count,
                             .sets = &lists[i].ranks,
                             .set_size = 1,
                             .set_count = lists[i].ranks != 0};
        step(MASTER_RECEIVED, i, &m);
    }
    tell(lists);
    said[0] = '\0';
    all_are_ready();
    assert_string_equal(said, verdicts);
}

static void fails(uint32_t link)
{
    struct wire_msg m = {.type = WIRE_REFRESH, .epoch = 1};
    m.fault.cause = REFRESH_FAIL;
    m.fault.tag = 7;
    step(MASTER_RECEIVED, link, &m);
}

#define RUNS                                                                   \
    {                                                                          \
        0, 1,                                                                  \
        {                                                                      \
            op(0, 0, OP_RUNNING)                                               \
        }                                                                      \
    }
#define RUNS_AND_KEEPS(e)                                                      \
    {                                                                          \
        0, 2,                                                                  \
        {                                                                      \
            op(0, 0, OP_RUNNING), op(6, e, OP_KEPT)                            \
        }                                                                      \
    }
#define ENDED(e)                                                               \
    {                                                                          \
        0, 1,                                                                  \
        {                                                                      \
            op(6, e, OP_ENDED)                                                 \
        }                                                                      \
    }

/* Links 1 and 2 are the scope. Link 1 has had its error in epoch 5; the others
 * wait for it in the whole view. Link 3 is slow. */
static void test_reports_close_the_epoch(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {RUNS, ENDED(5), RUNS_AND_KEEPS(5), {0}};
    blocked(2, op(0, 0, 0), op(6, 5, OP_KEPT));
    blocked(1, op(6, 4, OP_ENDED), op(0, 0, 0)); /* another one */
    assert_int_equal(master->round_last, 1);
    blocked(1, op(6, 5, OP_ENDED), op(0, 0, 0));
    assert_int_equal(master->round_last, 2);
    judged(lists, "0: 7.0:6 7.5:8\n1: 7.0:6 7.5:8\n"
                  "2: 7.0:6 7.5:8\n3: 7.0:6 7.5:8\n");
}

/* What runs is not what has ended, whatever the numbers are. */
static void test_a_number_is_no_epoch(void **state)
{
    (void)state;
    blocked(2, op(0, 0, 0), op(6, 5, OP_KEPT));
    blocked(1, op(6, 5, 0), op(0, 0, 0));
    assert_int_equal(master->round_last, 1);
    blocked(2, op(0, 0, 0), op(9, 5, 0));
    blocked(1, op(6, 5, OP_ENDED), op(0, 0, 0));
    blocked(2, op(0, 0, 0), op(6, 5, 0));
    assert_int_equal(master->round_last, 1);
}

/* The lists alone show it, and it stands before another verdict. */
static void test_the_lists_show_it(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {RUNS, ENDED(5), RUNS_AND_KEEPS(5), {0}};
    fails(0);
    judged(lists, "0: 7.0:6 7.5:8\n1: 7.0:6 7.5:8\n"
                  "2: 7.0:6 7.5:8\n3: 7.0:6 7.5:8\n");
}

/* Nobody keeps the error that link 1 has had: all have had it. */
static void test_all_have_had_it(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {RUNS, ENDED(5), RUNS, {0}};
    fails(0);
    judged(lists, "0: 7.0:5\n1: 7.0:5\n2: 7.0:5\n3: 7.0:5\n");
}

/* Or another one than link 2 keeps. */
static void test_another_error(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {RUNS, ENDED(5), RUNS_AND_KEEPS(4), {0}};
    fails(0);
    judged(lists, "0: 7.0:5\n1: 7.0:5\n2: 7.0:5\n3: 7.0:5\n");
}

/* Link 1 runs what the others run, after its error. */
static void test_who_runs_it_lacks_nothing(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {
        RUNS,
        {0, 2, {op(0, 0, OP_RUNNING), op(6, 5, OP_ENDED)}},
        RUNS_AND_KEEPS(5),
        {0}};
    fails(0);
    judged(lists, "0: 7.0:5\n1: 7.0:5\n2: 7.0:5\n3: 7.0:5\n");
}

/* Link 1 has had its error, and has no part in what link 2 runs. */
static void test_who_has_no_part_is_not_awaited(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {
        {0},
        ENDED(5),
        {12, 2, {op(12, 0, OP_RUNNING), op(6, 5, OP_KEPT)}},
        {12, 1, {op(12, 0, OP_RUNNING)}}};
    fails(0);
    judged(lists, "");
}

/* Link 0 runs {0, 1}, whose other member has had its error in {1, 2}; link 2
 * keeps that, and runs {2, 3}; link 3 runs {0, 3}. */
static void test_a_circle_of_three(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {
        {3, 1, {op(3, 0, OP_RUNNING)}},
        ENDED(5),
        {12, 2, {op(12, 0, OP_RUNNING), op(6, 5, OP_KEPT)}},
        {9, 1, {op(9, 0, OP_RUNNING)}}};
    fails(3);
    judged(lists, "0: 7.0:6 7.5:8\n1: 7.0:6 7.5:8\n"
                  "2: 7.0:6 7.5:8\n3: 7.0:6 7.5:8\n"
                  "0: 7.0:6 7.5:8\n3: 7.0:6 7.5:8\n");
}

/* Two errors of a tag are of one circle, each of its own. */
static void test_two_errors(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {
        {0, 3, {op(0, 0, OP_RUNNING), op(6, 5, OP_KEPT), op(9, 6, OP_KEPT)}},
        {0, 2, {op(6, 4, OP_ENDED), op(6, 5, OP_ENDED)}},
        RUNS_AND_KEEPS(5),
        {0, 1, {op(9, 6, OP_ENDED)}}};
    fails(0);
    judged(lists, "0: 7.0:6 7.6:8 7.5:8\n1: 7.0:6 7.6:8 7.5:8\n"
                  "2: 7.0:6 7.6:8 7.5:8\n3: 7.0:6 7.6:8 7.5:8\n");
}

/* Links 0, 1 and 3 were the scope of link 0, and link 1 runs what it takes for
 * the same in {0, 1}. The loss of link 3 is not the error of the one, so that
 * the other would wait for it: the lists of that flush show that they cross. */
static void test_a_loss_in_one_of_the_scopes(void **state)
{
    (void)state;
    const struct list lists[PEERS] = {{11, 1, {op(11, 0, OP_RUNNING)}},
                                      {3, 1, {op(3, 0, OP_RUNNING)}},
                                      {0},
                                      {0}};
    step(MASTER_CLOSED, 3, NULL);
    judged(lists, "0: 7.0:6\n1: 7.0:6\n0: 7.0:6\n1: 7.0:6\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reports_close_the_epoch),
        TEST(test_a_number_is_no_epoch),
        TEST(test_the_lists_show_it),
        TEST(test_all_have_had_it),
        TEST(test_another_error),
        TEST(test_who_runs_it_lacks_nothing),
        TEST(test_who_has_no_part_is_not_awaited),
        TEST(test_a_circle_of_three),
        TEST(test_two_errors),
        TEST(test_a_loss_in_one_of_the_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
