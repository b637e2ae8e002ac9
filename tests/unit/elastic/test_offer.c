/* test_offer.c - a member that offers its state, and the guest that downloads
 * it (rule S10): real links on one end, the guest's core on the other, and the
 * test between them. */
#include "../unit.h"

#include "../../../src/elastic/offer.h"
#include "../../../src/elastic/prefetch.h"
#include "../../../src/hash/hash.h"
#include "../../world/host/line.h"

enum { SELF = 7, BLOCKS = 5, TAIL = 100, GUESTS = OFFER_GUESTS_MAX + 1 };
#define DEADLINE PCCL_S
#define SIZE ((BLOCKS - 1) * HASH_BLOCK_SIZE + TAIL)

static struct links *links;
static struct offer offering;
static bool busy;
static uint32_t changes;
static pccl_ns now;
static const struct wire_key key = {{3, 4}};

/* The member's tensor, and its list. */
static uint8_t theirs[SIZE];
static struct state_list their_list;

static struct guest {
    struct prefetch core;
    struct state_list list;
    uint8_t bytes[SIZE];
    bool open; /* its connection, which has its number at the member */
    uint32_t attempt;
    uint64_t sent; /* bytes of the member to it */
} guests[GUESTS];

/* A tensor of a device: its addresses are none of the host's. */
static bool device_fails;

static uint8_t *inside(const uint8_t *data)
{
    return (uint8_t *)((uintptr_t)data - ((uintptr_t)1 << 62));
}

static bool device_read(void *user, uint8_t *host, const uint8_t *data,
                        uint64_t size)
{
    (void)user;
    memcpy(host, inside(data), size);
    return !device_fails;
}

static bool device_write(void *user, uint8_t *data, const uint8_t *host,
                         uint64_t size)
{
    (void)user;
    memcpy(inside(data), host, size);
    return true;
}

static uint8_t *device_take(void *user, uint64_t size)
{
    (void)user;
    return malloc(size);
}

static void device_give(void *user, uint8_t *host)
{
    (void)user;
    free(host);
}

static const struct state_device device = {
    NULL, NULL, device_read, device_write, device_take, device_give};

static void describe(struct state_list *l, uint8_t *bytes, const char *name,
                     const struct state_device *d)
{
    const struct state_tensor tensors[] = {
        {.name = "none"},
        {.name = name,
         .data =
             d ? (uint8_t *)((uintptr_t)bytes + ((uintptr_t)1 << 62)) : bytes,
         .device = d,
         .count = SIZE,
         .size = SIZE},
        {.name = "own", .data = bytes, .count = 9, .size = 9, .free = true}};
    state_list_free(l);
    assert_true(state_list_describe(l, tensors, 3));
}

/* ------------------------------------------------------------------ the member
 */

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user;
    (void)addr;
    return NO_CONN;
}

static void on_close(void *user, uint32_t conn)
{
    (void)user;
    guests[conn].open = false;
}

static bool is_busy(void *user)
{
    (void)user;
    return busy;
}

static void on_changed(void *user)
{
    (void)user;
    changes++;
}

static void offer_now(uint64_t revision, uint64_t rate, uint32_t share)
{
    const struct offer_terms terms = {revision, rate, share};
    offer_begin(&offering, &their_list, &terms);
}

static int begin(void **state)
{
    (void)state;
    const struct driver driver = {.dial = on_dial, .close = on_close};
    links = calloc(1, sizeof *links);
    const struct offer_config config = {
        .busy = is_busy, .changed = on_changed, .links = links};
    now = PCCL_S;
    if (!links || !links_init(links, &driver, 1, DEADLINE)) return 1;
    links_begin(links, now);
    links_set_self(links, SELF, &key);
    memset(&offering, 0, sizeof offering);
    offer_init(&offering, &config);
    busy = device_fails = false;
    changes = 0;
    for (size_t i = 0; i < SIZE; i++) theirs[i] = (uint8_t)(i * 31 >> 8);
    describe(&their_list, theirs, "t", NULL);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    offer_end(&offering);
    for (int i = 0; i < GUESTS; i++) {
        prefetch_free(&guests[i].core);
        state_list_free(&guests[i].list);
    }
    memset(guests, 0, sizeof guests);
    state_list_free(&their_list);
    links_close_all(links);
    links_free(links);
    links_free_pool(links);
    free(links);
    return 0;
}

/* ------------------------------------------------------------------- the guest
 */

static void answer_master(struct guest *g, uint32_t servers, uint64_t to)
{
    struct wire_member members[] = {{.id = to}, {.id = to}};
    struct wire_msg msg = {.type = WIRE_OFFERS, .members = members};
    msg.member_count = servers;
    msg.offer.group_size = 2;
    msg.offer.key = key;
    assert_int_equal(g->core.state, PREFETCH_ASKS);
    prefetch_servers(&g->core, &msg);
}

static void start_guest(uint32_t i, uint64_t max_stale, const char *name,
                        const struct state_device *d)
{
    struct guest *g = &guests[i];
    memset(g->bytes, 0xee, SIZE);
    describe(&g->list, g->bytes, name, d);
    assert_true(prefetch_init(&g->core, &g->list, max_stale, DEADLINE, now));
    answer_master(g, 1, SELF);
}

static void connect_guest(uint32_t i)
{
    struct guest *g = &guests[i];
    assert_int_equal(g->core.state, PREFETCH_DIALS);
    g->attempt = g->core.attempt;
    assert_true(conn_accepted(links, i));
    g->open = true;
    prefetch_dialed(&g->core, true);
}

/* The connection ends, as the other end sees it. */
static void cut(uint32_t i)
{
    if (!guests[i].open) return;
    guests[i].open = false;
    conn_closed(links, i);
}

/* Bytes of the guest to the member; false: there are none. */
static bool to_member(uint32_t i)
{
    struct guest *g = &guests[i];
    const uint8_t *from;
    size_t size = prefetch_tx_window(&g->core, &from);
    size = line_give(links, i, from, size);
    if (size > 0) prefetch_tx(&g->core, size);
    return size > 0;
}

static bool to_guest(uint32_t i)
{
    struct guest *g = &guests[i];
    struct conn_part parts[2];
    uint8_t *to;
    if (!conn_may_send(links, i)) return false;
    if (conn_tx_window(links, i, parts) == 0) {
        conn_clear_dirty(links, i);
        return false;
    }
    size_t size = prefetch_rx_window(&g->core, &to);
    if (size == 0) return false;
    if (size > parts[0].size) size = parts[0].size;
    memcpy(to, parts[0].from, size);
    conn_tx(links, i, size);
    prefetch_rx(&g->core, size);
    g->sent += size;
    return true;
}

static bool is_connected(const struct guest *g)
{
    return g->core.state == PREFETCH_RUNS && g->core.attempt == g->attempt;
}

/* Until nothing moves any more; time stands still. */
static void settle(uint32_t i)
{
    struct guest *g = &guests[i];
    bool moved = true;
    while (moved) {
        moved = g->open && is_connected(g) && to_member(i);
        if (g->open && is_connected(g)) moved |= to_guest(i);
    }
    if (!is_connected(g)) cut(i);
    if (!g->open) prefetch_closed(&g->core);
}

static void guest_comes(uint32_t i, const char *name,
                        const struct state_device *d)
{
    start_guest(i, 0, name, d);
    connect_guest(i);
    settle(i);
}

static void pass(uint32_t i, pccl_ns time)
{
    for (pccl_ns end = now + time; now < end;) {
        now += OFFER_TICK;
        links_tick(links, now);
        offer_tick(&offering);
        prefetch_tick(&guests[i].core, now);
        settle(i);
    }
}

static bool is_done(uint32_t i)
{
    return guests[i].core.state == PREFETCH_DONE;
}

/* -------------------------------------------------------------------- tests */

static void all_comes_and_nothing_twice(void **state)
{
    (void)state;
    offer_now(9, 0, 1000);
    start_guest(0, 0, "t", NULL);
    connect_guest(0);
    settle(0);
    assert_true(is_done(0));
    assert_memory_equal(guests[0].bytes, theirs, SIZE);
    assert_int_equal(guests[0].core.rx_bytes, SIZE);
    assert_int_equal(prefetch_oldest(&guests[0].core), 9);
    assert_int_equal(changes, 2); /* it came, and went */
    assert_int_equal(offering.guest_count, 0);
    /* It comes back, with one other block. */
    prefetch_free(&guests[0].core);
    theirs[HASH_BLOCK_SIZE + 1] ^= 1;
    offer_now(10, 0, 1000);
    assert_true(
        prefetch_init(&guests[0].core, &guests[0].list, 0, DEADLINE, now));
    answer_master(&guests[0], 1, SELF);
    connect_guest(0);
    settle(0);
    assert_true(is_done(0));
    assert_int_equal(guests[0].core.rx_bytes, HASH_BLOCK_SIZE);
    assert_memory_equal(guests[0].bytes, theirs, SIZE);
}

static void devices_are_read_and_written(void **state)
{
    (void)state;
    describe(&their_list, theirs, "t", &device);
    offer_now(9, 0, 1000);
    guest_comes(0, "t", &device);
    assert_memory_equal(guests[0].bytes, theirs, SIZE);
    device_fails = true;
    guest_comes(1, "t", NULL);
    assert_int_equal(guests[1].core.state, PREFETCH_WAITS);
    assert_int_equal(offering.guest_count, 0);
}

/* Rule S10d: nothing goes while the member does something else. */
static void a_busy_member_sends_nothing(void **state)
{
    (void)state;
    offer_now(9, 0, 1000);
    busy = true;
    guest_comes(0, "t", NULL);
    pass(0, 3 * DEADLINE); /* nobody takes the other for dead */
    assert_int_equal(guests[0].core.rx_bytes, 0);
    assert_int_equal(offering.guest_count, 1);
    busy = false;
    pass(0, OFFER_TICK);
    assert_true(is_done(0));
}

static void the_rate_is_kept(void **state)
{
    (void)state;
    const uint64_t rate = HASH_BLOCK_SIZE; /* a block each second */
    offer_now(9, rate, 1000);
    guest_comes(0, "t", NULL);
    pass(0, 2 * PCCL_S);
    uint64_t got = guests[0].core.rx_bytes;
    assert_in_range(got, HASH_BLOCK_SIZE, 3 * HASH_BLOCK_SIZE);
    pass(0, 4 * PCCL_S);
    assert_true(is_done(0));
}

/* In the first part of a round, by the last one. */
static void the_rest_of_a_round_is_quiet(void **state)
{
    (void)state;
    offer_now(9, 0, 100);
    now += 10 * PCCL_S;
    links_tick(links, now);
    offer_now(10, 0, 100);
    now += 2 * PCCL_S;
    links_tick(links, now);
    guest_comes(0, "t", NULL);
    pass(0, PCCL_S);
    assert_int_equal(guests[0].core.rx_bytes, 0);
    offer_now(11, 0, 100);
    pass(0, OFFER_TICK);
    assert_true(is_done(0));
    assert_int_equal(prefetch_oldest(&guests[0].core), 11);
}

/* Rule S10f: blocks that are too old are asked for again, others are not. */
static void blocks_may_be_max_stale_behind(void **state)
{
    (void)state;
    const uint64_t rate = HASH_BLOCK_SIZE;
    for (uint64_t max_stale = 0; max_stale < 2; max_stale++) {
        offer_now(20, rate, 1000);
        start_guest(0, max_stale, "t", NULL);
        connect_guest(0);
        pass(0, 2 * PCCL_S); /* some blocks */
        assert_false(is_done(0));
        memset(theirs, (int)max_stale, SIZE);
        offer_now(21, 0, 1000);
        settle(0);
        assert_true(is_done(0));
        assert_int_equal(prefetch_oldest(&guests[0].core), 21 - max_stale);
        bool equal = memcmp(guests[0].bytes, theirs, SIZE) == 0;
        assert_true(equal == (max_stale == 0));
        prefetch_free(&guests[0].core);
    }
}

/* Rule S10g: what it has stays. */
static void another_member_goes_on(void **state)
{
    (void)state;
    offer_now(9, HASH_BLOCK_SIZE, 1000);
    guest_comes(0, "t", NULL);
    pass(0, 2 * PCCL_S);
    uint64_t got = guests[0].core.rx_bytes;
    assert_true(got > 0 && got < SIZE);
    cut(0);
    prefetch_closed(&guests[0].core);
    assert_int_equal(offering.guest_count, 0);
    assert_int_equal(guests[0].core.state, PREFETCH_WAITS);
    prefetch_tick(&guests[0].core, now + DEADLINE);
    answer_master(&guests[0], 2, SELF);
    offer_now(9, 0, 1000);
    connect_guest(0);
    settle(0);
    assert_true(is_done(0));
    assert_int_equal(guests[0].core.rx_bytes, SIZE);
}

static void who_is_silent_is_left(void **state)
{
    (void)state;
    offer_now(9, 0, 1000);
    busy = true;
    guest_comes(0, "t", NULL);
    assert_int_equal(offering.guest_count, 1);
    for (int i = 0; i < 20; i++) links_tick(links, now += DEADLINE / 20);
    assert_int_equal(offering.guest_count, 0);
    prefetch_tick(&guests[0].core, now);
    assert_int_equal(guests[0].core.state, PREFETCH_WAITS);
}

static void few_are_served_at_a_time(void **state)
{
    (void)state;
    offer_now(9, 0, 1000);
    busy = true;
    for (uint32_t i = 0; i < GUESTS; i++) {
        guest_comes(i, "t", NULL);
        assert_int_equal(guests[i].open, i < OFFER_GUESTS_MAX);
    }
    assert_int_equal(offering.guest_count, 4); /* as pccl.h says */
    offer_end(&offering); /* nobody reads the tensors any more */
    assert_int_equal(offering.guest_count, 0);
    for (uint32_t i = 0; i < GUESTS; i++) assert_false(guests[i].open);
}

static void without_an_offer_nobody_is_served(void **state)
{
    (void)state;
    guest_comes(0, "t", NULL);
    assert_false(guests[0].open);
    assert_int_equal(guests[0].core.state, PREFETCH_WAITS);
}

static void other_tensors_are_noticed(void **state)
{
    (void)state;
    offer_now(9, 0, 1000);
    guest_comes(0, "other", NULL);
    assert_int_equal(guests[0].core.state, PREFETCH_UNLIKE);
    assert_int_equal(guests[0].bytes[0], 0xee);
    /* The member's tensors become others while a guest is there. */
    busy = true;
    guest_comes(1, "t", NULL);
    assert_true(guests[1].open);
    struct state_list old = their_list;
    memset(&their_list, 0, sizeof their_list);
    describe(&their_list, theirs, "new", NULL);
    offer_now(9, 0, 1000);
    state_list_free(&old);
    assert_false(guests[1].open);
}

/* A peer that says HELLO with these, and the question so many times; false:
 * closed. */
static size_t asked_times = 1;

static bool asks(struct frame_hello hello, uint8_t flags, const struct frame *q)
{
    enum { HELLO = 2 * FRAME_SIZE + FRAME_HELLO_SIZE + FRAME_FILL_SIZE };
    uint8_t bytes[HELLO + (OFFER_WINDOW + 1) * FRAME_SIZE] = {0};
    const size_t total = HELLO + asked_times * FRAME_SIZE;
    struct frame f = {
        .type = FRAME_HELLO, .flags = flags, .size = FRAME_HELLO_SIZE};
    struct frame fill = {.type = FRAME_FILL, .size = FRAME_FILL_SIZE};
    frame_encode(&f, bytes);
    frame_hello_encode(&hello, bytes + FRAME_SIZE);
    frame_encode(&fill, bytes + FRAME_SIZE + FRAME_HELLO_SIZE);
    for (size_t at = HELLO; at < total; at += FRAME_SIZE)
        frame_encode(q, bytes + at);
    assert_true(conn_accepted(links, 0));
    guests[0].open = true;
    (void)line_give(links, 0, bytes, total);
    bool open = guests[0].open && offering.guest_count == 1;
    if (guests[0].open) conn_close(links, 0);
    return open;
}

/* Rule S10c: who has not the key, or takes this for another member, is out; so
 * is who asks for what there is not. */
static void strangers_get_nothing(void **state)
{
    (void)state;
    const struct frame_hello right = {.key = {3, 4}, .to = SELF};
    const struct frame good = {.type = FRAME_BLOCK_GET,
                               .seq = 1,
                               .tag = HASH_BLOCK_SIZE,
                               .index = HASH_BLOCK_SIZE};
    busy = true;
    offer_now(9, 0, 1000);
    assert_true(asks(right, FLAG_GUEST, &good));
    struct frame_hello h = right;
    h.key[1]++;
    assert_false(asks(h, FLAG_GUEST, &good));
    h = right;
    h.to++;
    assert_false(asks(h, FLAG_GUEST, &good));
    const struct {
        uint32_t seq, size;
        uint64_t at;
    } bad[] = {{0, HASH_BLOCK_SIZE, 0},      {2, 9, 0},
               {3, HASH_BLOCK_SIZE, 0},      {UINT32_MAX, 1, 0},
               {1, HASH_BLOCK_SIZE, 1},      {1, HASH_BLOCK_SIZE - 1, 0},
               {1, HASH_BLOCK_SIZE, SIZE},   {1, TAIL + 1, SIZE - TAIL},
               {1, 0, HASH_BLOCK_SIZE},      {1, UINT32_MAX, 0},
               {1, TAIL, UINT64_MAX - 65535}};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct frame f = good;
        f.seq = bad[i].seq;
        f.index = bad[i].size;
        f.tag = bad[i].at;
        assert_false(asks(right, FLAG_GUEST, &f));
    }
    asked_times = OFFER_WINDOW + 1; /* more than a guest may leave open */
    assert_false(asks(right, FLAG_GUEST, &good));
    asked_times = 1;
    assert_false(asks(right, FLAG_GUEST, &(struct frame){.type = FRAME_READY}));
    assert_int_equal(offering.guest_count, 0);
}

/* What a member says is checked, too: the guest leaves it. */
static void a_member_that_lies_is_left(void **state)
{
    (void)state;
    const struct frame bad[] = {
        {.type = FRAME_BLOCK, .seq = 1, .index = HASH_BLOCK_SIZE, .size = 7},
        {.type = FRAME_BLOCK, .seq = 2, .index = 9, .flags = FLAG_ANSWER},
        {.type = FRAME_BLOCK, .seq = 1, .tag = 1, .index = HASH_BLOCK_SIZE},
        {.type = FRAME_BLOCK,
         .seq = 1,
         .index = HASH_BLOCK_SIZE,
         .flags = FLAG_ANSWER,
         .scope = UINT64_MAX},
        {.type = FRAME_OFFER, .scope = UINT64_MAX},
        {.type = FRAME_OFFER, .digest = 5},
        {.type = FRAME_HELLO, .size = FRAME_HELLO_SIZE},
        {.type = FRAME_PING}};
    offer_now(9, 0, 1000);
    busy = true;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        uint8_t bytes[FRAME_SIZE];
        uint8_t *to;
        guest_comes(0, "t", NULL);
        assert_int_equal(guests[0].core.state, PREFETCH_RUNS);
        frame_encode(&bad[i], bytes);
        assert_int_equal(prefetch_rx_window(&guests[0].core, &to), FRAME_SIZE);
        memcpy(to, bytes, FRAME_SIZE);
        prefetch_rx(&guests[0].core, FRAME_SIZE);
        assert_true(guests[0].core.state != PREFETCH_RUNS);
        assert_int_equal(guests[0].bytes[0], 0xee);
        cut(0);
        prefetch_free(&guests[0].core);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(all_comes_and_nothing_twice),
        TEST(devices_are_read_and_written),
        TEST(a_busy_member_sends_nothing),
        TEST(the_rate_is_kept),
        TEST(the_rest_of_a_round_is_quiet),
        TEST(blocks_may_be_max_stale_behind),
        TEST(another_member_goes_on),
        TEST(who_is_silent_is_left),
        TEST(few_are_served_at_a_time),
        TEST(without_an_offer_nobody_is_served),
        TEST(other_tensors_are_noticed),
        TEST(strangers_get_nothing),
        TEST(a_member_that_lies_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
