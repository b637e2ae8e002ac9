/* test_send_window.c - tests of the send window of a high-RTT connection, over
 * a simulated link. */
#include "../unit.h"

#include "../../../src/link/send_window.h"

/* The only bottleneck: bytes beyond its product of rate and delay queue up. */
struct link {
    pccl_ns distance;
    uint64_t rate; /* bytes per second */
};

static struct send_path pass(const struct link *l, uint32_t in_flight)
{
    struct send_path p = {.rtt_least = l->distance, .in_flight = in_flight};
    p.rtt = (pccl_ns)((uint64_t)in_flight * (uint64_t)PCCL_S / l->rate);
    if (p.rtt < l->distance) p.rtt = l->distance;
    return p;
}

static uint32_t after(const struct link *l, uint32_t rounds)
{
    struct send_window w = {.size = WINDOW_FIRST};
    for (uint32_t i = 0; i < rounds && w.size > 0; i++) {
        struct send_path p = pass(l, w.size);
        w.size = send_window_next(&w, &p);
    }
    return w.size;
}

/* Converges to the wanted queue length, from below and from above. */
static void test_fills_a_link_and_little_more(void **state)
{
    (void)state;
    static const struct link links[] = {{30 * PCCL_MS, 1000 * 1000},
                                        {8 * PCCL_MS, 2000 * 1000},
                                        {60 * PCCL_MS, 600 * 1000},
                                        {40 * PCCL_MS, 200 * 1000}};
    for (size_t i = 0; i < ARRAY_COUNT(links); i++) {
        const struct link *l = &links[i];
        uint64_t fills = l->rate * (uint64_t)l->distance / (uint64_t)PCCL_S;
        uint32_t size = after(l, 40);
        assert_in_range(size, fills + WINDOW_QUEUED / 2,
                        fills + 2 * WINDOW_QUEUED);
    }
}

/* A path with a larger bandwidth-delay product than the limit is soon left to
 * the kernel. */
static void test_leaves_fat_links_alone(void **state)
{
    (void)state;
    struct link l = {100 * PCCL_MS, 50 * 1000 * 1000};
    assert_int_equal(after(&l, 4), 0);
}

/* ... until it shows a queue. */
static void test_takes_over_when_there_is_a_queue(void **state)
{
    (void)state;
    struct send_window w = {.size = 0};
    struct send_path p = {.rtt = 20 * PCCL_MS,
                          .rtt_least = 20 * PCCL_MS,
                          .in_flight = 100 * 1024};
    assert_int_equal(send_window_next(&w, &p), 0);
    p.rtt = 80 * PCCL_MS;
    assert_in_range(send_window_next(&w, &p), 32 * 1024, 100 * 1024);
}

/* The connections of a link leave one queue together, not one each. */
static void test_shares_a_queue(void **state)
{
    (void)state;
    enum { SHARES = 4 };
    struct send_window w = {.size = WINDOW_LEAST, .shares = SHARES};
    struct send_path p = {.rtt = PCCL_S, .rtt_least = PCCL_MS};
    for (uint32_t i = 0; i < 20; i++) w.size = send_window_next(&w, &p);
    assert_in_range(SHARES * w.size, WINDOW_LEAST, 2 * WINDOW_QUEUED);
    w.shares = 1000;
    for (uint32_t i = 0; i < 20; i++) w.size = send_window_next(&w, &p);
    assert_in_range(w.size, WINDOW_SHARE_LEAST, 2 * WINDOW_SHARE_LEAST);
}

/* However long the queue of other traffic is, some bytes are sent. */
static void test_never_stops(void **state)
{
    (void)state;
    struct send_window w = {.size = WINDOW_LEAST};
    struct send_path p = {
        .rtt = PCCL_S, .rtt_least = PCCL_MS, .in_flight = WINDOW_LEAST};
    assert_in_range(send_window_next(&w, &p), WINDOW_LEAST, 2 * WINDOW_LEAST);
    p = (struct send_path){.rtt = 0};
    assert_int_equal(send_window_next(&w, &p),
                     WINDOW_LEAST); /* unknown so far */
}

static void test_knows_lossy_ways(void **state)
{
    (void)state;
    struct send_path p = {.rtt = 21 * PCCL_MS,
                          .rtt_least = 20 * PCCL_MS,
                          .sent = 1000,
                          .again = 10};
    assert_false(send_window_is_lossy(&p));
    p.again = 50;
    assert_true(send_window_is_lossy(&p));
    p.rtt = 60 * PCCL_MS; /* its own queue overflows */
    assert_false(send_window_is_lossy(&p));
    p.rtt = p.rtt_least;
    p.sent = 10; /* too few for a measurement */
    p.again = 2;
    assert_false(send_window_is_lossy(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fills_a_link_and_little_more),
        cmocka_unit_test(test_leaves_fat_links_alone),
        cmocka_unit_test(test_takes_over_when_there_is_a_queue),
        cmocka_unit_test(test_shares_a_queue),
        cmocka_unit_test(test_never_stops),
        cmocka_unit_test(test_knows_lossy_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
