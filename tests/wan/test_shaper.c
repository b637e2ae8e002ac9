/* test_shaper.c - tests of the queue discipline of an emulated link. */
#include "shaper.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>

enum { MBIT = 125000, PACKET = 1250 }; /* 0.1 ms at 100 Mbit/s */

static struct packet *make(uint64_t flow, uint32_t wire)
{
    struct packet *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->flow = flow;
    p->wire_size = wire;
    return p;
}

static uint64_t numbers;

static bool offer(struct shaper *p, const struct shaper_rule *r, wan_ns now,
                  uint64_t flow, uint32_t wire)
{
    struct packet *packet = make(flow, wire);
    packet->order = numbers++;
    struct packet *gone = shaper_offer(p, r, now, packet);
    bool taken = gone != packet;
    free(gone);
    return taken;
}

/* Serves until nothing is due before `until`; bytes of each flow. */
static wan_ns drain(struct shaper *p, const struct shaper_rule *r, wan_ns until,
                    uint64_t bytes[8])
{
    wan_ns last = 0;
    wan_ns due;
    while ((due = shaper_due(p)) < until) {
        wan_ns leaves;
        struct packet *packet = shaper_take(p, r, due, &leaves);
        assert_true(leaves >= last || r->flow_rate > 0);
        last = leaves;
        if (bytes) bytes[packet->flow] += packet->wire_size;
        free(packet);
    }
    return last;
}

static void the_rate_is_exact(void **state)
{
    (void)state;
    struct shaper p = {0};
    const struct shaper_rule r = {.rate = 100 * MBIT, .queue_ns = WAN_S};
    for (int i = 0; i < 1000; i++)
        assert_true(offer(&p, &r, 5 * WAN_MS, 0, PACKET));
    wan_ns last = drain(&p, &r, WAN_NEVER, NULL);
    assert_int_equal(last, 5 * WAN_MS + 1000 * (WAN_MS / 10));
    /* An idle link does not accumulate credit. */
    assert_true(offer(&p, &r, 900 * WAN_MS, 0, PACKET));
    last = drain(&p, &r, WAN_NEVER, NULL);
    assert_int_equal(last, 900 * WAN_MS + WAN_MS / 10);
    shaper_free(&p);
}

static void the_queue_is_bounded(void **state)
{
    (void)state;
    struct shaper p = {0};
    const struct shaper_rule time = {.rate = 100 * MBIT,
                                     .queue_ns = 10 * WAN_MS};
    const struct shaper_rule size = {.rate = 100 * MBIT, .queue = 20 * PACKET};
    int taken = 0;
    while (taken < 1000 && offer(&p, &time, 0, 0, PACKET)) taken++;
    assert_int_equal(taken, 100); /* the packets that 10 ms can send */
    (void)drain(&p, &time, WAN_NEVER, NULL);
    wan_ns later = WAN_S;
    taken = 0;
    while (taken < 1000 && offer(&p, &size, later, 0, PACKET)) taken++;
    assert_int_equal(taken, 20);
    /* Space for one packet is enough for the next. */
    (void)drain(&p, &size, later + 1, NULL);
    assert_true(offer(&p, &size, later + 1, 0, PACKET));
    assert_false(offer(&p, &size, later + 1, 0, PACKET));
    shaper_free(&p);
    /* A packet larger than the queue passes when the queue is empty. */
    const struct shaper_rule tiny = {.rate = MBIT, .queue = 100};
    assert_true(offer(&p, &tiny, 0, 0, PACKET));
    assert_false(offer(&p, &tiny, 0, 0, PACKET));
    shaper_free(&p);
}

static void first_come_first_served(void **state)
{
    (void)state;
    struct shaper p = {0};
    const struct shaper_rule r = {.rate = 100 * MBIT, .queue_ns = WAN_S};
    for (uint64_t i = 0; i < 8; i++)
        assert_true(offer(&p, &r, (wan_ns)i, i * 3 % 8, PACKET));
    for (uint64_t i = 0; i < 8; i++) {
        wan_ns leaves;
        struct packet *packet = shaper_take(&p, &r, shaper_due(&p), &leaves);
        assert_int_equal(packet->flow, i * 3 % 8);
        free(packet);
    }
    shaper_free(&p);
}

static void fair_flows_get_equal_bytes(void **state)
{
    (void)state;
    struct shaper p = {0};
    const struct shaper_rule r = {
        .rate = 100 * MBIT, .queue_ns = 50 * WAN_MS, .fair = true};
    /* One flow of large packets floods. Three small flows need less than their
     * share, two need more. */
    uint64_t bytes[8] = {0};
    for (wan_ns t = 0; t < WAN_S; t += WAN_MS) {
        (void)drain(&p, &r, t, bytes);
        for (int i = 0; i < 20; i++) (void)offer(&p, &r, t, 0, 2 * PACKET);
        for (uint64_t f = 1; f < 4; f++) assert_true(offer(&p, &r, t, f, 100));
        for (uint64_t f = 4; f < 6; f++) {
            for (int i = 0; i < 8; i++) (void)offer(&p, &r, t, f, PACKET);
        }
    }
    for (uint64_t f = 1; f < 4; f++) /* all but the packets still queued */
        assert_in_range(bytes[f], 97000, 100000);
    uint64_t share = (100 * MBIT - 300000) / 3;
    assert_in_range(bytes[0], share * 97 / 100, share * 103 / 100);
    assert_in_range(bytes[4], share * 97 / 100, share * 103 / 100);
    assert_in_range(bytes[5], share * 97 / 100, share * 103 / 100);
    shaper_free(&p);
}

static void a_flow_has_its_own_rate(void **state)
{
    (void)state;
    struct shaper p = {0};
    const struct shaper_rule r = {
        .rate = 100 * MBIT, .flow_rate = 10 * MBIT, .queue_ns = 10 * WAN_S};
    uint64_t bytes[8] = {0};
    for (int i = 0; i < 200; i++) {
        assert_true(offer(&p, &r, 0, 1, PACKET));
        assert_true(offer(&p, &r, 0, 2, PACKET));
    }
    wan_ns last = drain(&p, &r, WAN_NEVER, bytes);
    assert_int_equal(bytes[1], 200 * PACKET);
    assert_in_range(last, 200 * WAN_MS, 201 * WAN_MS); /* not 40 ms */
    /* Twenty flows together reach the link's own rate. */
    for (uint64_t i = 0; i < 4000; i++)
        assert_true(offer(&p, &r, WAN_S, 100 + i % 20, PACKET));
    last = drain(&p, &r, WAN_NEVER, NULL);
    assert_in_range(last, WAN_S + 400 * WAN_MS, WAN_S + 402 * WAN_MS);
    shaper_free(&p);
}

static void flows_come_and_go(void **state)
{
    (void)state;
    struct shaper p = {0};
    const struct shaper_rule r = {
        .rate = 100 * MBIT, .flow_rate = 50 * MBIT, .queue_ns = WAN_S};
    for (uint64_t i = 0; i < 10000; i++) {
        wan_ns now = (wan_ns)i * WAN_MS;
        assert_true(offer(&p, &r, now, i, PACKET));
        (void)drain(&p, &r, now + WAN_MS, NULL);
    }
    assert_true(p.flow_room <= 16);
    shaper_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_is_exact),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(fair_flows_get_equal_bytes),
        cmocka_unit_test(a_flow_has_its_own_rate),
        cmocka_unit_test(flows_come_and_go),
    };
    return cmocka_run_group_tests_name("wan pipe", tests, NULL, NULL);
}
