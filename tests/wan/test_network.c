/* test_network.c - tests of a whole emulated network in virtual time, and of
 * its bounds. */
#include "bound.h"
#include "test_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MBIT = 125000, PACKET = 1250 };

static void send_one(struct net *n, wan_ns now, uint16_t from, uint16_t to,
                     bool syn)
{
    struct packet *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->from = from;
    p->to = to;
    p->wire_size = PACKET;
    p->syn = syn;
    network_offer(n->network, now, p);
}

/* Runs up to that time; returns how many packets arrived, and when the last one
 * did. */
static int arrived(struct net *n, wan_ns until, wan_ns *last)
{
    int count = 0;
    struct packet *p;
    network_run(n->network, until);
    while ((p = network_take(n->network)) != NULL) {
        if (last) {
            assert_true(p->at >= *last);
            *last = p->at;
        }
        count++;
        free(p);
    }
    return count;
}

static void a_packet_takes_the_delay_and_its_own_time(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a\npeer b\nrtt a b 30ms\npath 1 -> 2 rate 100mbit\n");
    send_one(&n, WAN_S, 1, 2, false);
    send_one(&n, WAN_S, 2, 1,
             false); /* no rate in this direction: only the delay */
    wan_ns at = 0;
    assert_int_equal(arrived(&n, WAN_S + 14 * WAN_MS, &at), 0);
    assert_int_equal(network_due(n.network), WAN_S + 15 * WAN_MS);
    assert_int_equal(arrived(&n, 2 * WAN_S, &at), 2);
    assert_int_equal(at, WAN_S + 15 * WAN_MS + WAN_MS / 10);
    assert_int_equal(network_due(n.network), WAN_NEVER);
    finish(&n);
}

/* A driver that sleeps for a second does not change the rate: packets that
 * became due meanwhile leave at their own times. */
static void lateness_changes_no_rate(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\npath * <-> * rate 8mbit queue 9MB\n");
    for (int i = 0; i < 1000; i++) send_one(&n, 0, 1, 2, false);
    wan_ns at = 0;
    assert_int_equal(arrived(&n, 1000 * WAN_MS, &at), 800);
    assert_int_equal(arrived(&n, 1250 * WAN_MS, &at), 200);
    assert_int_equal(at, 1250 * WAN_MS);
    finish(&n);
}

static void stages_and_shares(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\npeer b 2\nup 1 rate 20mbit queue 9MB\n"
              "down 3 rate 10mbit queue 9MB\n"
              "trunk a <-> b rate 40mbit queue 9MB\n");
    /* Peer 1 is limited by its uplink for any receiver. */
    for (int i = 0; i < 1000; i++) send_one(&n, 0, 1, i % 2 ? 2 : 4, false);
    wan_ns at = 0;
    assert_int_equal(arrived(&n, 10 * WAN_S, &at), 1000);
    assert_int_equal(at, 500 * WAN_MS);
    /* Peer 3 is limited by its downlink. */
    for (int i = 0; i < 1000; i++) send_one(&n, 20 * WAN_S, 2, 3, false);
    at = 0;
    assert_int_equal(arrived(&n, 30 * WAN_S, &at), 1000);
    assert_in_range(at, 21 * WAN_S, 21 * WAN_S + WAN_MS);
    /* Two pairs share the trunk; the reverse direction is separate. */
    for (int i = 0; i < 1000; i++) {
        send_one(&n, 40 * WAN_S, 2, 4, false);
        send_one(&n, 40 * WAN_S, 4, 2, false);
        send_one(&n, 40 * WAN_S, 2, 1, false); /* does not cross the trunk */
    }
    at = 0;
    assert_int_equal(arrived(&n, 50 * WAN_S, &at), 3000);
    assert_int_equal(at, 40 * WAN_S + 250 * WAN_MS);
    finish(&n);
}

static void loss_and_jitter(void **state)
{
    (void)state;
    struct net n;
    start(&n, "seed 3\npeer a\npeer b\n"
              "path 1 -> 2 loss 5% delay 10ms jitter 4ms\n");
    wan_ns at = 0;
    int count = 0;
    for (int i = 0; i < 20000; i++) {
        wan_ns now = i * (WAN_MS / 10);
        count += arrived(&n, now, &at); /* in order, in spite of jitter */
        assert_true(at == 0 || now - at <= 14 * WAN_MS + WAN_MS / 10);
        send_one(&n, now, 1, 2, false);
    }
    count += arrived(&n, 10 * WAN_S, &at);
    const struct tally *t = network_tally(n.network, 1, 2);
    assert_int_equal(t->lost + (uint64_t)count, 20000);
    assert_in_range(t->lost, 900, 1100); /* deterministic: fixed seed */
    assert_int_equal(t->delivered, (uint64_t)count * PACKET);
    assert_int_equal(t->offered, 20000 * PACKET);
    finish(&n);
}

static void walls_and_blocks(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 3\npath 1 -> 2 wall\nat 5s path 3 <-> * block\n"
              "at 7s path 3 <-> * open\n");
    send_one(&n, WAN_S, 1, 2, true);  /* a SYN, stopped */
    send_one(&n, WAN_S, 1, 2, false); /* a SYN+ACK, passes */
    send_one(&n, WAN_S, 2, 1, true);
    send_one(&n, WAN_S, 1, 3, true);
    assert_int_equal(arrived(&n, 2 * WAN_S, NULL), 3);
    send_one(&n, 6 * WAN_S, 1, 3, false);
    send_one(&n, 6 * WAN_S, 3, 0, false);
    send_one(&n, 6 * WAN_S, 1, 2, false);
    assert_int_equal(arrived(&n, 6 * WAN_S, NULL), 1);
    assert_int_equal(network_tally(n.network, 1, 3)->stopped, 1);
    assert_int_equal(network_due(n.network), 7 * WAN_S);
    send_one(&n, 7 * WAN_S, 3, 1, false);
    assert_int_equal(arrived(&n, 8 * WAN_S, NULL), 1);
    say(&n, "path 1 -> 3 block");
    send_one(&n, 9 * WAN_S, 1, 3, false);
    send_one(&n, 9 * WAN_S, 3, 1, false);
    assert_int_equal(arrived(&n, 9 * WAN_S, NULL), 1);
    finish(&n);
}

static void a_link_degrades(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\npath 1 -> 2 rate 80mbit queue 9MB\n"
              "at 100ms path 1 -> 2 rate 8mbit\n");
    for (int i = 0; i < 1000; i++) send_one(&n, 0, 1, 2, false);
    wan_ns at = 0;
    assert_int_equal(arrived(&n, 100 * WAN_MS, &at), 800);
    assert_int_equal(arrived(&n, 10 * WAN_S, &at), 200);
    assert_in_range(at, 348 * WAN_MS, 351 * WAN_MS); /* 200 at 1.25 ms */
    finish(&n);
}

/* --------------------------------------------------------------- bounds */

static uint64_t of_order(const struct network *f, const uint8_t *order,
                         uint32_t count)
{
    struct ring ring = {.count = count};
    memcpy(ring.node, order, count);
    return bound_of(f, &ring, 1);
}

/* The best bound over all orders that begin with peer 1. */
static uint64_t brute(const struct network *f, uint8_t *order, uint32_t at,
                      uint32_t count)
{
    if (at == count) return of_order(f, order, count);
    uint64_t best = 0;
    for (uint32_t i = at; i < count; i++) {
        uint8_t first = order[at];
        order[at] = order[i];
        order[i] = first;
        uint64_t one = brute(f, order, at + 1, count);
        if (one > best) best = one;
        order[i] = order[at];
        order[at] = first;
    }
    return best;
}

static void the_best_ring_is_the_best(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 60; round++) {
        struct net n;
        uint32_t count = 2 + (uint32_t)round % 6;
        char text[64];
        snprintf(text, sizeof text, "peer a %u\n", count);
        start(&n, text);
        for (uint32_t a = 1; a <= count; a++) {
            for (uint32_t b = 1; b <= count; b++) {
                if (a == b) continue;
                seed = seed * 1664525 + 1013904223;
                snprintf(text, sizeof text, "path %u -> %u rate %umbit %s", a,
                         b, 1 + (seed >> 16) % 40,
                         (seed >> 28) < 3 ? "block" : "");
                say(&n, text);
            }
        }
        uint8_t order[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        uint64_t want = brute(n.network, order, 1, count);
        struct ring best = bound_best(n.network, 1);
        assert_int_equal(bound_of(n.network, &best, 1), want);
        uint64_t seen = 0;
        for (uint32_t i = 0; i < best.count; i++)
            seen |= (uint64_t)1 << best.node[i];
        if (want > 0)
            assert_int_equal(seen, (2u << count) - 2);
        else
            assert_int_equal(best.count, 0);
        finish(&n);
    }
}

static void crossings_share_a_trunk(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\npeer b 2\npath * <-> * rate 50mbit flow 5mbit\n"
              "trunk a <-> b rate 40mbit\n");
    const uint8_t good[] = {1, 2, 3, 4};
    const uint8_t bad[] = {1, 3, 2, 4};
    struct ring ring = {.count = 4};
    memcpy(ring.node, bad, 4);
    assert_int_equal(bound_of(n.network, &ring, 64), 20 * MBIT);
    assert_int_equal(bound_of(n.network, &ring, 2), 10 * MBIT);
    memcpy(ring.node, good, 4);
    assert_int_equal(bound_of(n.network, &ring, 64), 40 * MBIT);
    struct ring best = bound_best(n.network, 64);
    assert_int_equal(bound_of(n.network, &best, 64), 40 * MBIT);
    finish(&n);
    /* Sites mixed in the order of the file. */
    start(&n, "peer a\npeer b\npeer a\npeer b\npeer a\npeer b\n"
              "path * <-> * rate 50mbit\ntrunk a <-> b rate 40mbit\n");
    best = bound_best(n.network, 1);
    assert_int_equal(bound_of(n.network, &best, 1), 40 * MBIT);
    finish(&n);
}

static void the_ring_shows_in_the_bytes(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 4\n");
    const uint16_t ring[] = {1, 3, 2, 4};
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 9; k++)
            send_one(&n, 0, ring[i], ring[(i + 1) % 4], false);
        send_one(&n, 0, ring[(i + 1) % 4], ring[i], false); /* acknowledged */
    }
    (void)arrived(&n, WAN_S, NULL);
    struct ring seen = bound_seen(n.network);
    assert_int_equal(seen.count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(seen.node[i], ring[i]);
    network_clear_tallies(n.network);
    assert_int_equal(bound_seen(n.network).count, 0);
    finish(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_takes_the_delay_and_its_own_time),
        cmocka_unit_test(lateness_changes_no_rate),
        cmocka_unit_test(stages_and_shares),
        cmocka_unit_test(loss_and_jitter),
        cmocka_unit_test(walls_and_blocks),
        cmocka_unit_test(a_link_degrades),
        cmocka_unit_test(the_best_ring_is_the_best),
        cmocka_unit_test(crossings_share_a_trunk),
        cmocka_unit_test(the_ring_shows_in_the_bytes),
    };
    return cmocka_run_group_tests_name("wan network", tests, NULL, NULL);
}
