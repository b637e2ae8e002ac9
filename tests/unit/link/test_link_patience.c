/* test_link_patience.c - time that does not count against other members, with a
 * driver that dials and hears nothing (rules M10c, M12, R3d), the end of a
 * link on which this end is not heard (R7a), silence through memory (R7b), and
 * many links that an operation needs (R3k, R3l). */
#include "../unit.h"

#include "../install_view.h"
#include "../../world/host/line.h"

enum { DEADLINE = 1000, TICK = DEADLINE / 20 };

static struct links *links;
static uint32_t dials, closed;

static uint32_t dial(void *user, const struct wire_addr *addr)
{
    (void)user, (void)addr;
    return dials++;
}

static void hang_up(void *user, uint32_t number)
{
    (void)user, (void)number;
    closed++;
}

static int setup(void **state)
{
    (void)state;
    const struct driver driver = {.dial = dial, .close = hang_up};
    const struct wire_key key = {{1, 2}};
    const struct wire_member member = {.id = 2};
    dials = closed = 0;
    links = calloc(1, sizeof *links);
    if (!links || !links_init(links, &driver, 1, DEADLINE)) return 1;
    links_set_now(links, 1000000);
    links_set_self(links, 1, &key);
    links_want(links, &member, 1); /* dials: no answer comes */
    return links_status(links, 2) == LINK_WAITS ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    links_close_all(links);
    links_free(links);
    links_free_pool(links);
    free(links);
    return 0;
}

static void ticks(uint32_t count)
{
    while (count-- > 0) links_tick(links, links_now(links) + TICK);
}

static void test_a_third_of_a_deadline(void **state)
{
    (void)state;
    ticks(6);
    assert_int_equal(links_status(links, 2), LINK_WAITS);
    ticks(1);
    assert_int_equal(links_status(links, 2), LINK_FAILED);
    assert_int_equal(closed, dials);
}

static void test_a_silent_one_is_waited_for(void **state)
{
    (void)state;
    const uint64_t silent[] = {7, 2};
    for (int i = 0; i < 10; i++) {
        ticks(6);
        links_excuse(links, silent, 2);
        assert_int_equal(links_status(links, 2), LINK_WAITS);
    }
    assert_int_equal(closed, 0);
    ticks(7);
    assert_int_equal(links_status(links, 2), LINK_FAILED);
}

static void test_another_one_is_judged(void **state)
{
    (void)state;
    const uint64_t silent[] = {7};
    ticks(6);
    links_excuse(links, silent, 1);
    ticks(1);
    assert_int_equal(links_status(links, 2), LINK_FAILED);
}

/* Stopped for ten deadlines: the answer may wait in the kernel. */
static void test_own_sleep_does_not_count(void **state)
{
    (void)state;
    ticks(4);
    links_tick(links, links_now(links) + 10 * DEADLINE);
    assert_int_equal(links_status(links, 2), LINK_WAITS);
    assert_int_equal(closed, 0);
    ticks(2);
    assert_int_equal(links_status(links, 2), LINK_FAILED);
    assert_int_equal(closed, dials);
}

/* Time without a tick adds up (R4f). */
static void test_late(void **state)
{
    (void)state;
    pccl_ns before = links_late(links);
    for (int i = 0; i < 20; i++)
        links_tick(links, links_now(links) + DEADLINE / 20);
    assert_int_equal(links_late(links), before);
    links_tick(links, links_now(links) + DEADLINE);
    assert_int_equal(links_late(links), before + DEADLINE - DEADLINE / 20);
}

/* Any call of the driver ends the sleep, not only a tick. */
static void test_a_message_may_end_the_sleep(void **state)
{
    (void)state;
    links_set_now(links, links_now(links) + 10 * DEADLINE);
    assert_int_equal(links_status(links, 2), LINK_WAITS);
    links_tick(links, links_now(links) + 1);
    assert_int_equal(closed, 0);
}

/* A connection that the other end has not shown to be alive yet. */
static struct link *half_open(uint32_t made, uint32_t asked)
{
    struct link *l = link_find(links, 2, false);
    struct conn *c = links->conns[0];
    l->dialing--;
    l->open++;
    c->state = CONN_OPEN;
    c->made = made;
    c->asked = asked;
    c->alive = l->attempt - 1;
    return l;
}

/* Rule R3d: of many connections some are open, and the others are made. */
static void test_a_link_in_the_making_is_not_closed(void **state)
{
    (void)state;
    uint32_t now = link_find(links, 2, false)->attempt;
    (void)half_open(now, now);
    ticks(6);
    assert_int_equal(closed, 0);
    ticks(1);
    assert_int_equal(links_status(links, 2), LINK_FAILED);
}

/* It was open before, and was asked now, or cannot even be asked. */
static void test_a_stale_link_is_dialed_anew(void **state)
{
    uint32_t now = link_find(links, 2, false)->attempt;
    for (uint32_t asked = 0; asked < 2; asked++) {
        (void)half_open(now - 1, now - 1 + asked);
        ticks(2);
        assert_int_equal(closed, 0);
        ticks(1);
        assert_int_equal(closed, 1);
        (void)teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

/* As an operation does. */
static struct link *need(uint64_t id)
{
    struct wire_member member = {.id = id};
    struct link *l = link_find(links, id, true);
    assert_non_null(l);
    link_know(l, &member);
    link_need(links, l);
    return l;
}

static uint32_t dial_the_number_just_closed(void *user,
                                            const struct wire_addr *addr)
{
    (void)user, (void)addr;
    dials++;
    return 0;
}

static void need_again(void *user, struct link *l, bool never)
{
    (void)user, (void)never;
    (void)need(l->id);
}

/* A partial all-reduce looks for the next holder of a part as soon as a link is
 * closed, and the view still has the member. */
static void test_a_removed_member_is_not_dialed(void **state)
{
    (void)state;
    uint32_t now = link_find(links, 2, false)->attempt, before = dials;
    (void)half_open(now, now);
    links->driver.dial = dial_the_number_just_closed;
    links->clients[CLIENT_LAST].closed = need_again;
    links_drop(links, 2);
    assert_int_equal(closed, 1);
    assert_int_equal(dials, before);
    assert_int_equal(links->conns[0]->state, CONN_FREE);
    assert_null(link_find(links, 2, false));
}

/* Rule R3k: once in an epoch, and not for a proposal. */
static void test_making_a_link_gives_the_others_time(void **state)
{
    (void)state;
    struct link *l = need(3), *made = need(4), *wanted = need(2);
    struct view *v = view_of(1, NULL, 0, 0);
    links_install(links, v);
    view_release(v);
    ticks(5);
    uint32_t turn = l->turn;
    link_made(links, made);
    assert_true(l->again);
    ticks(1);
    assert_int_equal(l->turn, turn); /* nor does it dial again meanwhile */
    link_made(links, wanted);
    ticks(2);
    assert_int_equal(links_status(links, 2), LINK_FAILED);
    assert_true(l->turn > turn);
    link_made(links, made);
    ticks(3);
    assert_true(l->sought);
    ticks(1);
    assert_false(l->sought);
    assert_int_equal(links_status(links, 3), LINK_FAILED);
}

static struct channel *share(void *user, uint32_t conn,
                             struct channel_offer *offer)
{
    (void)user, (void)conn, (void)offer;
    return NULL;
}

/* Rule R3l: within the host so many at a time. */
static void test_near_links_are_dialed_in_turn(void **state)
{
    (void)state;
    enum { MANY = NEAR_DIALS_MAX + 4 };
    links->driver.share = share;
    uint32_t before = dials; /* of one that a proposal wants */
    for (uint64_t id = 3; id < 3 + MANY; id++) (void)need(id);
    assert_int_equal(dials - before, NEAR_DIALS_MAX - 1);
    links_dial_next(links);
    assert_int_equal(dials - before, NEAR_DIALS_MAX - 1);
    for (uint64_t id = 3; id < 5; id++) {
        struct link *l = link_find(links, id, false);
        for (uint32_t i = 0; i < links->conn_end; i++)
            if (links->conns[i]->link == l) links->conns[i]->state = CONN_OPEN;
        l->open = 1;
        l->dialing = 0;
    }
    links_dial_next(links);
    assert_int_equal(dials - before, NEAR_DIALS_MAX + 1);
}

/* Whom nobody could dial, as others do not answer, is no bad pair. */
static void test_the_time_of_a_link_in_line_has_not_begun(void **state)
{
    (void)state;
    enum { LAST = NEAR_DIALS_MAX + 2 };
    links->driver.share = share;
    for (uint64_t id = 3; id <= LAST; id++) (void)need(id);
    ticks(7);
    assert_int_equal(links_status(links, 2), LINK_FAILED);
    ticks(2);
    assert_int_equal(links_status(links, 3), LINK_WAITS);
    assert_int_equal(link_find(links, LAST, false)->dialing, 0);
    ticks(1);
    assert_int_equal(links_status(links, 3), LINK_FAILED);
    assert_true(link_find(links, LAST, false)->sought);
    ticks(1);
    assert_true(link_find(links, LAST, false)->dialing > 0);
    ticks(7);
    assert_true(link_find(links, LAST, false)->sought);
    ticks(2);
    assert_int_equal(links_status(links, LAST), LINK_FAILED);
}

static bool used;

static bool uses(const void *user, const struct link *l)
{
    (void)user, (void)l;
    return used;
}

/* False: the connection was closed. */
static bool hears_ping(uint8_t flags)
{
    struct frame ping = {.type = FRAME_PING, .flags = flags};
    uint8_t bytes[FRAME_SIZE];
    frame_encode(&ping, bytes);
    assert_int_equal(line_give(links, 0, bytes, sizeof bytes), sizeof bytes);
    return !conn_is_free(links, 0);
}

/* Rule R7a: for two tenths of a deadline the other end hears nothing, and
 * somebody waits. */
static void test_a_link_that_is_not_heard_ends(void **state)
{
    (void)state;
    struct link *l = half_open(1, 1);
    l->sought = false;
    links->clients[CLIENT_LAST].uses = uses;
    used = true;
    assert_true(hears_ping(FLAG_DEAF));
    ticks(3);
    assert_true(hears_ping(0)); /* it hears again */
    ticks(1);
    assert_true(hears_ping(FLAG_DEAF));
    ticks(3);
    assert_true(hears_ping(FLAG_DEAF));
    ticks(1);
    used = false;
    assert_true(hears_ping(FLAG_DEAF));
    used = true;
    assert_false(hears_ping(FLAG_DEAF));
    assert_true(l->silent);
    assert_int_equal(closed, 1);
}

/* Rule R7b: through memory nothing fails but a process, which the master
 * judges. */
static void test_silence_of_memory_ends_nothing(void **state)
{
    (void)state;
    const struct wire_member member = {.id = 2};
    struct channel_page page = {0};
    struct channel channel;
    uint64_t quiet[4];
    struct link *l = half_open(1, 1);
    struct conn *c = links->conns[0];
    channel_init(&channel, &page, (uint8_t *)&page, CHANNEL_LINE, 0);
    l->sought = false;
    links->clients[CLIENT_LAST].uses = uses;
    used = true;
    ticks(7);
    assert_true(c->ping && conn_may_send(links, 0));
    assert_int_equal(links_quiet(links, quiet, 4), 2);
    c->channel = &channel;
    c->accepted = true; /* the other end has yet to show that it uses it */
    c->ping = false;
    conn_clear_dirty(links, 0);
    ticks(1);
    assert_true(c->ping);
    c->accepted = c->ping = false;
    conn_clear_dirty(links, 0);
    ticks(80);
    assert_int_equal(closed, 0);
    assert_false(c->ping || conn_may_send(links, 0));
    assert_int_equal(links_quiet(links, quiet, 4), 0);
    links_want(links, &member, 1);
    assert_int_equal(links_status(links, 2), LINK_OPEN);
    assert_false(c->ping);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_third_of_a_deadline),
        TEST(test_a_silent_one_is_waited_for),
        TEST(test_another_one_is_judged),
        TEST(test_own_sleep_does_not_count),
        TEST(test_late),
        TEST(test_a_message_may_end_the_sleep),
        TEST(test_a_link_in_the_making_is_not_closed),
        TEST(test_a_stale_link_is_dialed_anew),
        TEST(test_a_removed_member_is_not_dialed),
        TEST(test_making_a_link_gives_the_others_time),
        TEST(test_near_links_are_dialed_in_turn),
        TEST(test_the_time_of_a_link_in_line_has_not_begun),
        TEST(test_a_link_that_is_not_heard_ends),
        TEST(test_silence_of_memory_ends_nothing),
    };
    return cmocka_run_group_tests_name("link/link_patience", tests, NULL, NULL);
}
