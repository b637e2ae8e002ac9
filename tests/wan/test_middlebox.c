/* test_middlebox.c - tests of middleboxes, and of packets that are late, twice
 * or too large, in virtual time. */
#include "packet.h"
#include "test_net.h"

#include <stdlib.h>
#include <string.h>

enum {
    VNET = 10,
    HEADERS = 40,
    FIRST = 0x0a630001,
    SYN = 2,
    RST = 4,
    ACK = 16,
    CLIENT = 40000,
    SERVER = 48148,
};

static void put(uint8_t *at, int size, uint32_t value)
{
    for (int i = size; i-- > 0; value >>= 8) at[i] = (uint8_t)value;
}

static uint32_t get(const uint8_t *at, int size)
{
    uint32_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | at[i];
    return value;
}

/* A segment of the connection from node 1 to node 2, or of its other
 * direction. */
static void segment(struct net *n, wan_ns now, bool back, uint8_t flags,
                    uint32_t payload)
{
    static uint8_t bytes[VNET + HEADERS + 9000];
    uint8_t *ip = bytes + VNET, *tcp = ip + 20;
    memset(bytes, 0, VNET + HEADERS);
    ip[0] = 0x45;
    ip[9] = 6;
    put(ip + 12, 4, FIRST + (back ? 2 : 1));
    put(ip + 16, 4, FIRST + (back ? 1 : 2));
    put(tcp, 2, back ? SERVER : CLIENT);
    put(tcp + 2, 2, back ? CLIENT : SERVER);
    put(tcp + 4, 4, 1000);
    put(tcp + 8, 4, 2000);
    tcp[12] = 5 << 4;
    tcp[13] = flags;
    struct packet *p = packet_make(bytes, VNET + HEADERS + payload,
                                   back ? 2 : 1, n->world.nodes, FIRST);
    assert_non_null(p);
    assert_int_equal(p->payload, payload);
    network_offer(n->network, now, p);
}

static int arrived(struct net *n, wan_ns until)
{
    int count = 0;
    struct packet *p;
    network_run(n->network, until);
    for (; (p = network_take(n->network)) != NULL; count++) free(p);
    return count;
}

static void an_idle_connection_is_forgotten(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\npath 1 <-> 2 forget 60s\n");
    segment(&n, 0, false, ACK, 1); /* no SYN has passed */
    assert_int_equal(arrived(&n, 0), 0);
    segment(&n, WAN_S, false, SYN, 0);
    segment(&n, 60 * WAN_S, true, ACK, 1); /* either direction keeps it */
    segment(&n, 120 * WAN_S, false, ACK, 1);
    assert_int_equal(arrived(&n, 120 * WAN_S), 3);
    segment(&n, 181 * WAN_S, false, ACK, 1);
    segment(&n, 181 * WAN_S, true, ACK, 1);
    assert_int_equal(arrived(&n, 181 * WAN_S), 0);
    assert_int_equal(network_tally(n.network, 1, 2)->stopped, 2);
    segment(&n, 200 * WAN_S, false, SYN, 0);
    segment(&n, 201 * WAN_S, true, ACK, 1);
    assert_int_equal(arrived(&n, 201 * WAN_S), 2);
    say(&n, "path 1 <-> 2 forget 60s"); /* it is restarted */
    segment(&n, 202 * WAN_S, true, ACK, 1);
    assert_int_equal(arrived(&n, 202 * WAN_S), 0);
    say(&n, "path 1 <-> 2 forget 0s"); /* it is taken away */
    segment(&n, 203 * WAN_S, true, ACK, 1);
    assert_int_equal(arrived(&n, 203 * WAN_S), 1);
    finish(&n);
}

/* RFC 1071: over what it covers and itself the sum is 0xffff. */
static uint32_t sum(const uint8_t *at, int size, uint32_t begin)
{
    for (int i = 0; i < size; i += 2) begin += get(at + i, 2);
    while (begin >> 16) begin = (begin & 0xffff) + (begin >> 16);
    return begin;
}

static void must_be_reset(struct net *n, wan_ns now, uint32_t sequence,
                          uint32_t ack, uint8_t flags)
{
    network_run(n->network, now);
    struct packet *p = network_take(n->network);
    assert_non_null(p);
    assert_int_equal(p->from, 2);
    assert_int_equal(p->to, 1);
    assert_int_equal(p->size, VNET + HEADERS);
    const uint8_t *ip = p->data + VNET, *tcp = ip + 20;
    assert_int_equal(get(ip + 12, 4), FIRST + 2);
    assert_int_equal(get(ip + 16, 4), FIRST + 1);
    assert_int_equal(get(tcp, 2), SERVER);
    assert_int_equal(get(tcp + 2, 2), CLIENT);
    assert_int_equal(get(tcp + 4, 4), sequence);
    assert_int_equal(get(tcp + 8, 4), ack);
    assert_int_equal(tcp[13], flags);
    assert_int_equal(sum(ip, 20, 0), 0xffff);
    assert_int_equal(sum(tcp, 20, sum(ip + 12, 8, 6 + 20)), 0xffff);
    free(p);
    assert_null(network_take(n->network));
}

static void a_forgotten_one_is_reset(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\nrtt 1 2 10ms\npath 1 <-> 2 reset 60s\n");
    segment(&n, WAN_S, false, ACK, 7);
    must_be_reset(&n, WAN_S, 2000, 0, RST);
    segment(&n, 2 * WAN_S, false, 0, 7);
    must_be_reset(&n, 2 * WAN_S, 0, 1007, RST | ACK);
    segment(&n, 3 * WAN_S, false, SYN, 0);
    segment(&n, 4 * WAN_S, false, ACK, 7);
    assert_int_equal(arrived(&n, 5 * WAN_S), 2);
    finish(&n);
}

static void the_first_bytes_pass(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\npath 1 -> 2 first 2kB\n");
    for (int i = 0; i < 5; i++) {
        segment(&n, WAN_S, false, ACK, 500);
        segment(&n, WAN_S, true, ACK, 500);
    }
    assert_int_equal(arrived(&n, WAN_S), 9); /* the other direction is whole */
    segment(&n, WAN_S, false, ACK, 0);
    assert_int_equal(arrived(&n, WAN_S), 1);
    segment(&n, WAN_S, false, SYN, 0); /* a new connection on these ports */
    segment(&n, WAN_S, false, ACK, 2000);
    segment(&n, WAN_S, false, ACK, 1);
    assert_int_equal(arrived(&n, WAN_S), 2);
    finish(&n);
}

static void large_packets_vanish(void **state)
{
    (void)state;
    struct net n;
    start(&n, "peer a 2\npath 1 -> 2 mtu 1000\n");
    segment(&n, WAN_S, false, ACK, 1000 - HEADERS);
    segment(&n, WAN_S, false, ACK, 1001 - HEADERS);
    segment(&n, WAN_S, true, ACK, 1460);
    assert_int_equal(arrived(&n, WAN_S), 2);
    assert_int_equal(network_tally(n.network, 1, 2)->stopped, 1);
    say(&n, "path 1 -> 2 mtu 0");
    segment(&n, WAN_S, false, ACK, 1460);
    assert_int_equal(arrived(&n, WAN_S), 1);
    finish(&n);
}

static void late_and_twice(void **state)
{
    (void)state;
    enum { PACKETS = 10000 };
    struct net n;
    int late = 0, count = 0;
    uint32_t newest = 0;
    start(&n, "seed 5\npeer a 2\npath 1 -> 2 delay 10ms reorder 5% "
              "duplicate 3%\n");
    for (uint32_t i = 1; i <= PACKETS; i++)
        segment(&n, i * WAN_MS, false, ACK, i % 1000);
    network_run(n.network, (PACKETS + 100) * WAN_MS);
    struct packet *p;
    for (; (p = network_take(n.network)) != NULL; free(p), count++) {
        wan_ns sent = p->at - 10 * WAN_MS; /* or a delay before that */
        uint32_t number = (uint32_t)(sent / WAN_MS);
        if (number % 1000 != p->payload) number -= 10;
        assert_int_equal(number % 1000, p->payload);
        late += number < newest;
        if (number > newest) newest = number;
    }
    assert_in_range(count, PACKETS + 240, PACKETS + 360); /* a fixed seed */
    assert_in_range(late, 400, 600);
    finish(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_connection_is_forgotten),
        cmocka_unit_test(a_forgotten_one_is_reset),
        cmocka_unit_test(the_first_bytes_pass),
        cmocka_unit_test(large_packets_vanish),
        cmocka_unit_test(late_and_twice),
    };
    return cmocka_run_group_tests_name("wan middlebox", tests, NULL, NULL);
}
