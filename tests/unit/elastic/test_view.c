/* test_view.c - a peer's view, and the losses that its program is notified of
 * (T1, T2). */
#include "../unit.h"

#include "../../../src/elastic/view.h"

static struct view *base, *next;
static struct notified *told;

static int setup(void **state)
{
    (void)state;
    base = calloc(1, sizeof *base);
    next = calloc(1, sizeof *next);
    told = calloc(1, sizeof *told);
    if (!base || !next || !told) return 1;
    told->loss_first = 1;
    base->size = 4;
    base->epoch = 5;
    for (uint32_t i = 0; i < 4; i++)
        base->members[i].id = base->ids[i] = 10 + i;
    base->rank = 2;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(base);
    free(next);
    free(told);
    return 0;
}

static const uint64_t gone[] = {11, 99};
static const struct wire_member fresh[] = {{.id = 20}, {.id = 21}};

static struct wire_msg change(void)
{
    return (struct wire_msg){.type = WIRE_PROPOSE,
                             .round = 6,
                             .epoch = 5,
                             .ids = gone,
                             .id_count = 2,
                             .members = fresh,
                             .member_count = 2,
                             .view = {.ring = true}};
}

static void test_propose_keeps_the_order(void **state)
{
    (void)state;
    struct wire_msg m = change();
    assert_true(view_propose(next, base, &m, 12));
    static const uint64_t want[] = {10, 12, 13, 20, 21};
    assert_int_equal(next->size, 5);
    assert_memory_equal(next->ids, want, sizeof want);
    assert_int_equal(next->rank, 1);
    assert_int_equal(next->epoch, 6);
    assert_true(next->ring && !next->mesh && !next->has_order);
    assert_int_equal(view_find(next, 99), next->size);
}

static void test_propose_from_nothing(void **state)
{
    (void)state;
    struct wire_msg m = change();
    m.epoch = 0; /* to a newcomer: all members are in the message */
    m.id_count = 0;
    base->size = base->epoch = 0;
    assert_true(view_propose(next, base, &m, 21));
    assert_int_equal(next->size, 2);
    assert_int_equal(next->rank, 1);
}

static void test_impossible_proposals(void **state)
{
    (void)state;
    struct wire_msg m = change();
    assert_false(view_propose(next, base, &m, 11)); /* without us */
    m.epoch = 0;
    assert_false(view_propose(next, base, &m, 21)); /* of another view */
    m.epoch = 5;
    m.round = 5;
    assert_false(view_propose(next, base, &m, 12)); /* an epoch that was */
    m.round = 6;
    static const uint16_t twice[] = {0, 1, 1, 2, 3};
    static const uint16_t high_rtt[] = {0, 1, 2, 3, 5};
    static const uint16_t good[] = {4, 3, 2, 1, 0};
    m.order = twice;
    m.order_count = 5;
    assert_false(view_propose(next, base, &m, 12));
    m.order = high_rtt;
    assert_false(view_propose(next, base, &m, 12));
    m.order = good;
    assert_true(view_propose(next, base, &m, 12));
    m.order_count = 4;
    assert_false(view_propose(next, base, &m, 12));
    m = change();
    m.sites = good;
    m.site_count = 4;
    assert_false(view_propose(next, base, &m, 12));
    m.site_count = 5;
    assert_true(view_propose(next, base, &m, 12));
    assert_true(next->has_sites && next->sites[0] == 4);
    m = change();
    struct wire_member *many = calloc(PEERS_MAX, sizeof *many);
    assert_non_null(many);
    m.members = many;
    m.member_count = PEERS_MAX;
    assert_false(view_propose(next, base, &m, 12));
    free(many);
}

static void push(uint32_t epoch, const uint64_t *ids, uint32_t count)
{
    struct view *v = calloc(1, sizeof *v);
    assert_non_null(v);
    v->epoch = epoch;
    v->world = 100 - epoch;
    assert_true(notified_push(told, v, ids, count, epoch % 4));
    free(v);
}

/* A faulty master: each loss takes a member, so there are no more. */
static void test_more_losses_than_members(void **state)
{
    (void)state;
    const uint64_t lost[] = {10};
    notified_all(told, base);
    for (uint32_t i = 0; i < PEERS_MAX; i++) push(6 + i % 50, lost, 1);
    assert_false(notified_push(told, base, lost, 1, 0));
    notified_all(told, base);
    push(6, lost, 1);
}

static void test_losses_are_told_in_order(void **state)
{
    (void)state;
    notified_all(told, base);
    push(6, (uint64_t[]){10}, 1);
    push(7, (uint64_t[]){13, 11}, 2);
    assert_int_equal(told->epoch, 5); /* T1: nothing until it is notified */
    assert_int_equal(told->size, 4);
    assert_int_equal(told->rank, 2);
    notified_advance(told, 1, 12);
    assert_int_equal(told->epoch, 6);
    assert_int_equal(told->traits, 2); /* T4: of this loss alone */
    assert_int_equal(told->size, 3);
    assert_int_equal(told->rank, 1);
    assert_int_equal(told->world, 94);
    notified_advance(told, 1, 12); /* T2: once */
    assert_int_equal(told->epoch, 6);
    assert_int_equal(told->traits, 2);
    notified_advance(told, 2, 12);
    assert_int_equal(told->traits, 3);
    assert_int_equal(told->size, 1);
    assert_int_equal(told->rank, 0);
    assert_int_equal(told->members[0].id, 12);
    assert_int_equal(told->loss_count, 0);
    assert_int_equal(told->loss_first, 3);
}

static void test_one_result_tells_several(void **state)
{
    (void)state;
    notified_all(told, base);
    push(5, (uint64_t[]){10}, 1);
    push(6, (uint64_t[]){11}, 1);
    push(7, (uint64_t[]){13}, 1);
    notified_advance(told, 2, 12);
    assert_int_equal(told->epoch, 6);
    assert_int_equal(told->traits, 5 % 4 | 6 % 4); /* T4 */
    assert_int_equal(told->loss_count, 1);
}

static void test_an_update_tells_everything(void **state)
{
    (void)state;
    notified_all(told, base);
    push(6, (uint64_t[]){10}, 1);
    struct wire_msg m = change();
    assert_true(view_propose(next, base, &m, 12));
    notified_all(told, next);
    assert_int_equal(told->size, 5);
    assert_int_equal(told->loss_count, 0);
    assert_int_equal(told->traits, 0);
    assert_int_equal(told->loss_first, 2);
    notified_advance(told, 1, 12); /* a result that is taken late */
    assert_int_equal(told->epoch, 6);
    assert_int_equal(told->size, 5);
    push(9, (uint64_t[]){20}, 1);
    notified_advance(told, 2, 12);
    assert_int_equal(told->size, 4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_propose_keeps_the_order),
        TEST(test_propose_from_nothing),
        TEST(test_impossible_proposals),
        TEST(test_losses_are_told_in_order),
        TEST(test_more_losses_than_members),
        TEST(test_one_result_tells_several),
        TEST(test_an_update_tells_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
