/* test_relay.c - a member that relays the connections of others: who may come,
 * how much it holds, and how it ends (rules N11, N12). */
#include "../unit.h"

#include "../../world/host/line.h"

enum { DEADLINE = 1000, A = 5, B = 6, SELF = 7, NONE = 0 };

static struct links *links;
static bool closed[8];
static uint32_t dialed; /* the number of the next dial; NO_CONN: impossible */

static uint32_t dial(void *user, const struct wire_addr *addr)
{
    (void)user, (void)addr;
    uint32_t number = dialed;
    dialed = NO_CONN;
    return number;
}

static void hang_up(void *user, uint32_t number)
{
    (void)user;
    closed[number] = true;
}

static int setup(void **state)
{
    (void)state;
    const struct driver driver = {.dial = dial, .close = hang_up};
    const struct wire_key key = {{1, 2}};
    const struct relay_way way = {.a = A, .b = B, .relay = SELF};
    memset(closed, 0, sizeof closed);
    dialed = NO_CONN;
    links = calloc(1, sizeof *links);
    if (!links || !links_init(links, &driver, 1, DEADLINE)) return 1;
    links_set_now(links, 1000000);
    links_set_self(links, SELF, &key);
    links_set_ways(links, &way, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    links_close_all(links);
    links_free(links);
    assert_int_equal(links->pool.in_use, 0);
    links_free_pool(links);
    free(links);
    return 0;
}

struct said {
    uint64_t key, from, to, via;
    bool listens;
};

static void comes(uint32_t number, struct said said)
{
    uint8_t bytes[FRAME_SIZE + FRAME_HELLO_SIZE];
    struct frame f = {.type = FRAME_RELAY,
                      .flags = said.listens ? FLAG_LISTEN : 0,
                      .scope = said.via,
                      .size = FRAME_HELLO_SIZE};
    struct frame_hello ends = {
        .key = {1, said.key}, .from = said.from, .to = said.to};
    assert_true(conn_accepted(links, number));
    frame_encode(&f, bytes);
    frame_hello_encode(&ends, bytes + FRAME_SIZE);
    assert_int_equal(line_give(links, number, bytes, sizeof bytes),
                     sizeof bytes);
}

static const struct said dials = {2, A, B, SELF, false};
static const struct said listens = {2, B, A, SELF, true};

static uint32_t joined(void)
{
    uint64_t bytes;
    return links_relays(links, &bytes);
}

static void test_two_ends_are_joined(void **state)
{
    (void)state;
    uint8_t got[16] = "";
    comes(0, dials);
    assert_int_equal(line_give(links, 0, (const uint8_t *)"question", 8), 8);
    assert_int_equal(joined(), 0);
    comes(1, listens);
    assert_int_equal(joined(), 1);
    assert_int_equal(line_take(links, 1, got, sizeof got), 8);
    assert_memory_equal(got, "question", 8);
    assert_int_equal(line_give(links, 1, (const uint8_t *)"answer", 6), 6);
    assert_int_equal(line_take(links, 0, got, sizeof got), 6);
    assert_memory_equal(got, "answer", 6);
}

static void test_two_dials_are_not(void **state)
{
    (void)state;
    const struct said other = {2, B, A, SELF, false};
    comes(0, dials);
    comes(1, other);
    assert_int_equal(joined(), 0);
}

static void test_strangers(void **state)
{
    (void)state;
    const struct said key = {3, A, B, SELF, false};
    const struct said via = {2, A, B, 9, false};
    const struct said unnamed = {2, A, 8, SELF, false};
    comes(0, key);
    assert_true(closed[0]);
    comes(1, via);
    assert_true(closed[1]);
    comes(2, unnamed); /* it may be ahead of PROPOSE */
    assert_false(closed[2]);
    assert_true(conn_is_parked(links, 2));
    for (int i = 0; i < 11; i++) links_tick(links, links_now(links) + 50);
    assert_true(closed[2]);
    assert_null(links->relay.legs);
}

static void test_one_that_was_ahead(void **state)
{
    (void)state;
    const struct relay_way none = {.a = A, .b = B, .relay = 9};
    const struct relay_way way = {.a = A, .b = B, .relay = SELF};
    links_set_ways(links, &none, 1);
    comes(0, dials);
    comes(1, listens);
    assert_true(conn_is_parked(links, 0));
    links_set_ways(links, &way, 1);
    links_resume(links);
    assert_int_equal(joined(), 1);
}

static void test_it_holds_so_much(void **state)
{
    (void)state;
    static uint8_t many[3 * RELAY_PIPE], got[sizeof many];
    for (size_t i = 0; i < sizeof many; i++) many[i] = (uint8_t)(i * 7 / 3);
    comes(0, dials);
    comes(1, listens);
    assert_int_equal(line_give(links, 0, many, sizeof many), RELAY_PIPE);
    uint8_t *to;
    assert_int_equal(conn_rx_window(links, 0, &to), 0);
    size_t done = RELAY_PIPE, out = 0;
    while (out < sizeof many) {
        out += line_take(links, 1, got + out, 10007);
        done += line_give(links, 0, many + done, sizeof many - done);
        assert_true(done - out <= RELAY_PIPE);
    }
    assert_memory_equal(many, got, sizeof many);
}

/* ... and less where it is told to. */
static void test_it_holds_less(void **state)
{
    (void)state;
    static const uint8_t many[500];
    links->relay.pipe = 300;
    comes(0, dials);
    comes(1, listens);
    assert_int_equal(line_give(links, 0, many, sizeof many), 300);
}

static void test_the_last_bytes_go_out(void **state)
{
    (void)state;
    uint8_t got[16];
    comes(0, dials);
    comes(1, listens);
    assert_int_equal(line_give(links, 0, (const uint8_t *)"bye", 3), 3);
    conn_closed(links, 0);
    assert_false(closed[1]);
    assert_int_equal(line_give(links, 1, (const uint8_t *)"for nobody", 10),
                     10);
    assert_int_equal(line_take(links, 1, got, sizeof got), 3);
    assert_true(closed[1]);
    assert_null(links->relay.legs);
}

static void test_one_ends_the_other(void **state)
{
    (void)state;
    comes(0, dials);
    comes(1, listens);
    conn_closed(links, 1);
    assert_true(closed[0]);
    assert_null(links->relay.legs);
}

static void test_few_wait(void **state)
{
    (void)state;
    comes(0, listens);
    comes(1, listens); /* it takes the place */
    assert_true(closed[0] && !closed[1]);
    for (uint32_t i = 0; i < RELAY_DIALS_MAX + 1; i++) {
        const struct said dial = {2, B, A, SELF, false};
        comes(2 + i, dial);
        assert_false(closed[2 + i]);
    }
    assert_true(closed[2] && !closed[3]);
    for (int i = 0; i < 11; i++) links_tick(links, links_now(links) + 50);
    assert_true(closed[3] && !closed[1]);
    for (int i = 0; i < 11; i++) links_tick(links, links_now(links) + 50);
    assert_true(closed[1]);
}

static void test_who_listens_is_silent(void **state)
{
    (void)state;
    comes(0, listens);
    (void)line_give(links, 0, (const uint8_t *)"x", 1);
    assert_true(closed[0]);
}

static void test_a_new_view_ends_it(void **state)
{
    (void)state;
    comes(0, dials);
    comes(1, listens);
    links_set_ways(links, NULL, NONE);
    assert_false(closed[0] || closed[1]); /* until INSTALL */
    links_prune(links);
    assert_true(closed[0] && closed[1]);
}

/* Rule N11c. */
static void test_the_old_way_is_left(void **state)
{
    (void)state;
    const struct wire_member other = {.id = 9, .addr = {.family = 4}};
    const struct relay_way way = {.a = SELF, .b = 9, .relay = B};
    struct link *l = link_find(links, other.id, true);
    dialed = 5;
    link_know(l, &other);
    link_need(links, l);
    assert_int_equal(l->dialing, 1);
    links_set_ways(links, &way, 1);
    assert_true(closed[5]);
}

static void test_joined_ones_may_be_silent(void **state)
{
    (void)state;
    comes(0, dials);
    comes(1, listens);
    for (int i = 0; i < 100; i++) links_tick(links, links_now(links) + 50);
    assert_int_equal(joined(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_ends_are_joined),
        TEST(test_two_dials_are_not),
        TEST(test_strangers),
        TEST(test_one_that_was_ahead),
        TEST(test_it_holds_so_much),
        TEST(test_it_holds_less),
        TEST(test_the_last_bytes_go_out),
        TEST(test_one_ends_the_other),
        TEST(test_few_wait),
        TEST(test_who_listens_is_silent),
        TEST(test_a_new_view_ends_it),
        TEST(test_the_old_way_is_left),
        TEST(test_joined_ones_may_be_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
