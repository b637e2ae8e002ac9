/* test_view.c - counted views, and the losses that the program is notified of
 * (T1, T2, T4). */
#include "../unit.h"

#include "../../../src/elastic/notified.h"
#include "../install_view.h"

static const struct view *base;
static struct view *next;
static struct notified told;
static const char *why;
static const struct wire_member four[] = {
    {.id = 10}, {.id = 11}, {.id = 12}, {.id = 13}};

static int setup(void **state)
{
    (void)state;
    base = view_of(5, four, 4, 2);
    next = NULL;
    notified_init(&told);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    notified_free(&told);
    view_release(base);
    view_release(next);
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

static bool proposed(const struct wire_msg *m, uint64_t self)
{
    view_release(next);
    next = view_propose(base, m, self, &why);
    if (!next)
        assert_string_equal(why, "the master proposed a view that cannot be");
    return next;
}

static void test_propose_keeps_the_order(void **state)
{
    (void)state;
    struct wire_msg m = change();
    assert_true(proposed(&m, 12));
    static const uint64_t want[] = {10, 12, 13, 20, 21};
    assert_int_equal(next->size, 5);
    assert_memory_equal(next->ids, want, sizeof want);
    assert_int_equal(next->rank, 1);
    assert_int_equal(next->epoch, 6);
    assert_int_equal(next->added, 2);
    assert_memory_equal(next->removed, gone, sizeof gone);
    assert_true(next->ring && !next->mesh && !next->order);
    assert_int_equal(view_find(next, 99), next->size);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(view_find(next, want[i]), i);
    assert_false(view_has(next, 11)); /* who comes again has another id */
}

static void test_propose_from_nothing(void **state)
{
    (void)state;
    struct wire_msg m = change();
    m.epoch = 0; /* to a newcomer: all members are in the message */
    m.id_count = 0;
    view_release(base);
    base = view_none();
    assert_true(proposed(&m, 21));
    assert_int_equal(next->size, 2);
    assert_int_equal(next->rank, 1);
}

static void test_impossible_proposals(void **state)
{
    (void)state;
    struct wire_msg m = change();
    assert_false(proposed(&m, 11)); /* without us */
    m.epoch = 0;
    assert_false(proposed(&m, 21)); /* of another view */
    m.epoch = 5;
    m.round = 5;
    assert_false(proposed(&m, 12)); /* an epoch that was */
    m.round = 6;
    static const uint16_t twice[] = {0, 1, 1, 2, 3};
    static const uint16_t high_rtt[] = {0, 1, 2, 3, 5};
    static const uint16_t good[] = {4, 3, 2, 1, 0};
    m.order = twice;
    m.order_count = 5;
    assert_false(proposed(&m, 12));
    m.order = high_rtt;
    assert_false(proposed(&m, 12));
    m.order = good;
    assert_true(proposed(&m, 12));
    m.order_count = 4;
    assert_false(proposed(&m, 12));
    m = change();
    m.sites = good;
    m.site_count = 4;
    assert_false(proposed(&m, 12));
    m.site_count = 5;
    assert_true(proposed(&m, 12));
    assert_true(next->sites && next->sites[0] == 4);
    m = change();
    struct wire_member *many = calloc(PEERS_MAX, sizeof *many);
    assert_non_null(many);
    m.members = many;
    m.member_count = PEERS_MAX;
    assert_false(proposed(&m, 12));
    free(many);
}

/* As many as there can be, whose ids collide in the table. */
static void test_every_member_is_found(void **state)
{
    (void)state;
    struct wire_member *many = calloc(PEERS_MAX, sizeof *many);
    assert_non_null(many);
    for (uint32_t i = 0; i < PEERS_MAX; i++) {
        many[i].id = (uint64_t)(i + 1) << (i % 2 * 40);
        many[i].host = i < PEERS_MAX - 1 ? 2 : 4;
    }
    struct view *v = view_of(1, many, PEERS_MAX, 0);
    for (uint32_t i = 0; i < PEERS_MAX; i++)
        assert_int_equal(view_find(v, many[i].id), i);
    assert_false(view_has(v, 0) || view_has(v, UINT64_MAX));
    assert_int_equal(v->one_host, 0);
    view_release(v);
    v = view_of(1, many, PEERS_MAX - 1, 0);
    assert_int_equal(v->one_host, 2);
    view_release(v);
    many[1].id = many[0].id; /* of two the first */
    v = view_of(1, many, 3, 0);
    assert_int_equal(view_find(v, many[1].id), 0);
    view_release(v);
    free(many);
}

/* Whoever holds it has it as it was. */
static void test_a_view_is_counted(void **state)
{
    (void)state;
    assert_ptr_equal(view_retain(view_none()), view_none());
    view_release(view_none());
    view_release(view_none());
    assert_false(view_has(view_none(), 0));
    const struct view *mine = view_retain(base);
    notified_all(&told, base);
    assert_int_equal(base->references, 3);
    view_release(base);
    notified_all(&told, view_none());
    base = mine;
    assert_int_equal(base->references, 1);
    assert_int_equal(view_find(base, 13), 3);
}

/* The view after a loss of these members, by its PROPOSE and INSTALL. */
static const struct view *after(const struct view *v, uint32_t epoch,
                                const uint64_t *ids, uint32_t count)
{
    struct wire_msg m = {.type = WIRE_PROPOSE,
                         .round = epoch,
                         .epoch = v->epoch,
                         .ids = ids,
                         .id_count = count};
    struct view *now = view_propose(v, &m, 12, &why);
    assert_non_null(now);
    m.view.world = 100 - epoch;
    m.view.traits = epoch % 4;
    view_complete(now, &m);
    return now;
}

/* Losses of 10, then of 13 and 11, pend; 12 is left. */
static void lose_two(void)
{
    const struct view *one = after(base, 6, (uint64_t[]){10}, 1);
    const struct view *two = after(one, 7, (uint64_t[]){13, 11}, 2);
    assert_true(notified_push(&told, one) && notified_push(&told, two));
    view_release(one);
    view_release(two);
}

/* A faulty master: each loss takes a member, so there are no more. */
static void test_more_losses_than_members(void **state)
{
    (void)state;
    notified_all(&told, base);
    for (uint32_t i = 0; i < PEERS_MAX; i++)
        assert_true(notified_push(&told, base));
    assert_false(notified_push(&told, base));
    notified_all(&told, base);
    assert_true(notified_push(&told, base));
}

static void test_losses_are_told_in_order(void **state)
{
    (void)state;
    notified_all(&told, base);
    assert_int_equal(notified_oldest(&told), 0);
    lose_two();
    assert_int_equal(notified_oldest(&told), 6);
    assert_ptr_equal(told.view, base); /* T1: nothing until it is notified */
    notified_advance(&told, 6);
    assert_int_equal(told.view->epoch, 6);
    assert_int_equal(told.traits, 2); /* T4: of this loss alone */
    assert_int_equal(told.view->size, 3);
    assert_int_equal(told.view->rank, 1);
    assert_int_equal(told.view->world, 94);
    assert_int_equal(told.view->removed_count, 1);
    assert_int_equal(told.view->removed[0], 10);
    assert_int_equal(told.view->lost, 1);
    notified_advance(&told, 6); /* T2: once */
    assert_int_equal(told.view->epoch, 6);
    assert_int_equal(told.traits, 2);
    notified_advance(&told, 7);
    assert_int_equal(told.traits, 3);
    assert_int_equal(told.view->size, 1);
    assert_int_equal(told.view->rank, 0);
    assert_int_equal(told.view->ids[0], 12);
    assert_int_equal(told.view->lost, 3);
    assert_int_equal(told.loss_count, 0);
}

static void test_one_result_tells_several(void **state)
{
    (void)state;
    notified_all(&told, base);
    lose_two();
    const struct view *v = after(told.losses[1], 9, NULL, 0);
    assert_true(notified_push(&told, v));
    view_release(v);
    notified_advance(&told, 8);
    assert_int_equal(told.view->epoch, 7);
    assert_int_equal(told.traits, 6 % 4 | 7 % 4); /* T4 */
    assert_int_equal(told.loss_count, 1);
}

/* An operation of some members meets the loss of one of them, whatever else
 * pends. */
static void test_the_loss_of_a_scope(void **state)
{
    (void)state;
    static const uint64_t left[] = {12}, first[] = {12, 10}, both[] = {11, 10},
                          later[] = {12, 11};
    notified_all(&told, base);
    lose_two();
    assert_int_equal(notified_loss_of(&told, left, 1), 0);
    assert_int_equal(notified_loss_of(&told, first, 2), 6);
    assert_int_equal(notified_loss_of(&told, both, 2), 6);
    assert_int_equal(notified_loss_of(&told, later, 2), 7);
    notified_advance(&told, 6);
    assert_int_equal(notified_loss_of(&told, later, 2), 7);
    notified_advance(&told, 7);
    assert_int_equal(notified_loss_of(&told, left, 1), 0);
}

static void test_an_update_tells_everything(void **state)
{
    (void)state;
    notified_all(&told, base);
    const struct view *lost = after(base, 6, (uint64_t[]){10}, 1);
    assert_true(notified_push(&told, lost));
    struct wire_msg m = change();
    m.round = 8;
    assert_true(proposed(&m, 12));
    notified_all(&told, next);
    view_release(lost);
    assert_int_equal(told.view->size, 5);
    assert_int_equal(told.loss_count, 0);
    assert_int_equal(told.traits, 0);
    notified_advance(&told, 6); /* a result that is taken late */
    assert_int_equal(told.view->epoch, 8);
    assert_int_equal(told.view->size, 5);
    uint32_t before = told.view->lost;
    lost = after(next, 9, (uint64_t[]){20, 777}, 2); /* 777 is no member */
    assert_true(notified_push(&told, lost));
    view_release(lost);
    notified_advance(&told, 9);
    assert_int_equal(told.view->size, 4);
    assert_int_equal(told.view->lost, before + 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_propose_keeps_the_order),
        TEST(test_propose_from_nothing),
        TEST(test_impossible_proposals),
        TEST(test_every_member_is_found),
        TEST(test_a_view_is_counted),
        TEST(test_losses_are_told_in_order),
        TEST(test_more_losses_than_members),
        TEST(test_one_result_tells_several),
        TEST(test_the_loss_of_a_scope),
        TEST(test_an_update_tells_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
