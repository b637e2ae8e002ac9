/* test_addresses.c - a member that announces an address, as the member that
 * dials it sees it (rule N2), with a driver that hears nothing of itself. */
#include "../unit.h"

#include "../../world/host/line.h"

enum { DEADLINE = 1200, TIME = DEADLINE / 3, TICK = DEADLINE / 20, MOST = 64 };

static struct links *links;
static uint16_t dialed[MOST]; /* ports */
static uint32_t dials;
static bool closed[MOST];

static uint32_t dial(void *user, const struct wire_addr *addr)
{
    (void)user;
    dialed[dials] = addr->port;
    return dials++;
}

static void hang_up(void *user, uint32_t number)
{
    (void)user;
    closed[number] = true;
}

enum { SEEN = 10, ANNOUNCED = 20 };

static void begin(uint32_t connections, bool announces)
{
    const struct driver driver = {.dial = dial, .close = hang_up};
    const struct wire_key key = {{1, 2}};
    struct wire_member member = {.id = 2, .addr = {4, {127}, SEEN}};
    if (announces)
        member.announced = (struct wire_addr){4, {9, 9, 9, 9}, ANNOUNCED};
    assert_true(links_init(links, &driver, 1, DEADLINE));
    links_set_now(links, 1000000);
    links_set_self(links, 1, &key);
    links_want(links, &member, connections);
}

static int setup(void **state)
{
    (void)state;
    dials = 0;
    memset(closed, 0, sizeof closed);
    links = calloc(1, sizeof *links);
    return links ? 0 : 1;
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

static void pass(pccl_ns time)
{
    for (pccl_ns end = links_now(links) + time; links_now(links) < end;)
        links_tick(links, links_now(links) + TICK);
}

static struct link *link_of(void)
{
    return link_find(links, 2, false);
}

/* The other end answers HELLO. */
static void opens(uint32_t number)
{
    struct frame_hello hello = {.key = {1, 2}, .from = 2, .to = 1};
    struct frame f = {.type = FRAME_HELLO, .size = FRAME_HELLO_SIZE};
    struct frame fill = {.type = FRAME_FILL, .size = links->fill_size};
    static uint8_t bytes[2 * FRAME_SIZE + FRAME_HELLO_SIZE + FRAME_FILL_SIZE];
    f.index = links->conns[number]->generation;
    frame_encode(&f, bytes);
    frame_hello_encode(&hello, bytes + FRAME_SIZE);
    frame_encode(&fill, bytes + FRAME_SIZE + FRAME_HELLO_SIZE);
    assert_int_equal(line_give(links, number, bytes, sizeof bytes),
                     sizeof bytes);
}

static void test_the_announced_one_comes_first(void **state)
{
    (void)state;
    begin(1, true);
    assert_int_equal(dials, 1);
    assert_int_equal(dialed[0], ANNOUNCED);
    pass(TIME / 4 + TICK);
    assert_int_equal(dials, 2);
    assert_int_equal(dialed[1], SEEN);
}

static void test_nothing_is_announced(void **state)
{
    (void)state;
    begin(1, false);
    pass(TIME);
    assert_true(dials >= 3);
    for (uint32_t i = 0; i < dials; i++) assert_int_equal(dialed[i], SEEN);
}

/* A refusal costs no time. */
static void test_a_refused_dial_goes_to_the_other_one(void **state)
{
    (void)state;
    begin(1, true);
    conn_dialed(links, 0, false);
    assert_int_equal(dials, 2);
    assert_int_equal(dialed[1], SEEN);
}

/* A dial that nobody takes leaves room for eight that are taken. */
static void test_lost_dials_do_not_count(void **state)
{
    (void)state;
    begin(8, true);
    assert_int_equal(dials, 1);
    assert_int_equal(dialed[0], ANNOUNCED);
    pass(TIME / 4 + TICK);
    assert_int_equal(dials, 2);
    conn_dialed(links, 1, true);
    opens(1);
    assert_int_equal(link_of()->open, 1);
    assert_true(closed[0]);
    assert_int_equal(link_of()->dialing, 7);
    assert_int_equal(dials, 9);
    for (uint32_t i = 1; i < dials; i++) assert_int_equal(dialed[i], SEEN);
}

/* Something takes the connection, and does not answer. */
static void test_a_silent_address_is_left(void **state)
{
    (void)state;
    begin(1, true);
    conn_dialed(links, 0, true);
    pass(TIME / 3 + TICK);
    assert_true(closed[0]);
    assert_int_equal(dialed[dials - 1], SEEN);
    conn_dialed(links, dials - 1, true);
    opens(dials - 1);
    assert_int_equal(links_status(links, 2), LINK_OPEN);
    assert_int_equal(link_of()->open, 1);
}

static void test_the_only_address_has_all_the_time(void **state)
{
    (void)state;
    begin(1, false);
    conn_dialed(links, 0, true);
    pass(TIME - TICK);
    assert_false(closed[0]);
}

/* The relay has dialed this member, so it is not known which of its addresses
 * leads to it: dials over it go to both in turn. */
static void test_a_relay_that_has_dialed(void **state)
{
    (void)state;
    const struct driver driver = {.dial = dial, .close = hang_up};
    const struct wire_key key = {{1, 2}};
    const struct wire_member member = {.id = 2, .addr = {4, {127}, 1}};
    const struct relay_way way = {
        .a = 1,
        .b = 2,
        .relay = 3,
        .member = {.id = 3,
                   .addr = {4, {127}, SEEN},
                   .announced = {4, {9, 9, 9, 9}, ANNOUNCED}}};
    assert_true(links_init(links, &driver, 1, DEADLINE));
    links_set_now(links, 1000000);
    links_set_self(links, 1, &key);
    link_find(links, 3, true)->open = 1; /* by a dial of the other end */
    links_set_ways(links, &way, 1);
    links_want(links, &member, 1);
    uint32_t to[2] = {0, 0};
    for (pccl_ns end = links_now(links) + TIME; links_now(links) < end;) {
        for (uint32_t i = 0; i < dials; i++) {
            if (!closed[i]) conn_dialed(links, i, false);
            closed[i] = true;
        }
        pass(TICK);
    }
    for (uint32_t i = 0; i < dials; i++) to[dialed[i] == ANNOUNCED]++;
    assert_true(to[0] > 0 && to[1] > 0);
    link_find(links, 3, false)->open = 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_relay_that_has_dialed),
        TEST(test_the_announced_one_comes_first),
        TEST(test_nothing_is_announced),
        TEST(test_a_refused_dial_goes_to_the_other_one),
        TEST(test_lost_dials_do_not_count),
        TEST(test_a_silent_address_is_left),
        TEST(test_the_only_address_has_all_the_time),
    };
    return cmocka_run_group_tests_name("link/addresses", tests, NULL, NULL);
}
