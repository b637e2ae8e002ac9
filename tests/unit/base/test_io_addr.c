/* test_io_addr.c - tests of address conversion: text <-> sockaddr <-> wire. */
#include "../../../src/base/address.h"
#include "../../../src/base/io_addr.h"
#include "../../../src/base/port_range.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_split(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        uint16_t port;
        bool ok;
    } cases[] = {
        {"1.2.3.4:80", "1.2.3.4", 80, true},
        {"[::1]:80", "::1", 80, true},
        {"[::1]", "::1", 7, true},
        {"::1", "::1", 7, true},
        {"name", "name", 7, true},
        {"name:65535", "name", 65535, true},
        {"4000", "", 4000, true},
        {":80", "", 80, true},
        {"*:80", "", 80, true},
        {"", "", 7, false},
        {"name:65536", "", 7, false},
        {"name:", "", 7, false},
        {"name:8x", "", 7, false},
        {"[::1", "", 7, false},
        {"[]:80", "", 7, false},
        {"[::1]80", "", 7, false},
        {"123456", "", 7, false},
        {"a b:80", "", 7, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct address a;
        bool ok = address_parse(cases[i].text, 7, &a);
        if (ok != cases[i].ok) fail_msg("%s", cases[i].text);
        if (!ok) continue;
        assert_string_equal(a.host, cases[i].host);
        assert_int_equal(a.port, cases[i].port);
    }
    struct address a;
    char large[2 * HOST_SIZE];
    memset(large, 'a', sizeof large);
    large[sizeof large - 1] = '\0';
    assert_false(address_parse(large, 7, &a));
}

static void test_list(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ",a", "a,,b", "a,", "a:1,b c:2"};
    const char *at = "node1,[::1]:5,:9";
    struct address a;
    assert_true(address_next(&at, 7, &a));
    assert_string_equal(a.host, "node1");
    assert_int_equal(a.port, 7);
    assert_true(address_next(&at, 7, &a));
    assert_string_equal(a.host, "::1");
    assert_int_equal(a.port, 5);
    assert_true(address_next(&at, 7, &a));
    assert_string_equal(a.host, "");
    assert_null(at);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        bool good = true;
        for (at = bad[i]; at && good;) good = address_next(&at, 7, &a);
        if (good) fail_msg("%s", bad[i]);
    }
}

static void check_round_trip(const char *host, uint8_t family, const char *text)
{
    struct io_addr a, back;
    char printed[IO_ADDR_TEXT_SIZE];
    assert_true(io_addr_numeric(host, 4711, false, &a));
    struct wire_addr w = io_addr_to_wire(&a);
    assert_int_equal(w.family, family);
    assert_int_equal(w.port, 4711);
    assert_string_equal(io_addr_print(&w, printed), text);
    assert_true(io_addr_from_wire(&w, &back));
    struct wire_addr again = io_addr_to_wire(&back);
    assert_memory_equal(again.ip, w.ip, sizeof w.ip);
    assert_int_equal(again.family, family);
    assert_int_equal(again.port, 4711);
}

static void test_wire(void **state)
{
    (void)state;
    check_round_trip("1.2.3.4", 4, "1.2.3.4:4711");
    check_round_trip("2001:db8::9", 6, "[2001:db8::9]:4711");
    check_round_trip("::ffff:9.8.7.6", 4, "9.8.7.6:4711");
    struct wire_addr unknown = {.family = 0};
    struct io_addr out;
    char text[IO_ADDR_TEXT_SIZE];
    assert_false(io_addr_from_wire(&unknown, &out));
    assert_string_equal(io_addr_print(&unknown, text), "?");
    assert_int_equal(io_addr_to_wire(&out).family, 0);
}

static void test_resolve(void **state)
{
    (void)state;
    struct io_addr found[4];
    const char *error = NULL;
    assert_int_equal(io_addr_resolve("127.0.0.9", 80, found, 4, &error), 1);
    assert_int_equal(io_addr_port(&found[0]), 80);
    assert_true(io_addr_resolve("", 81, found, 4, &error) >= 1);
    assert_int_equal(io_addr_port(&found[0]), 81);
    assert_int_equal(io_addr_resolve("bad host", 80, found, 4, &error), 0);
    assert_non_null(error);
    assert_false(io_addr_numeric("localhost", 1, false, &found[0]));
}

static void congestion(int fd, char name[16])
{
    socklen_t size = 16;
    memset(name, 0, 16);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size),
                     0);
}

static void tune_both(int fd, const struct io_addr *early,
                      const struct io_addr *peer, char name[16])
{
    if (fd >= 0) io_addr_tune_early(fd, early);
    io_addr_tune(fd, peer);
    congestion(fd, name);
    close(fd);
}

/* Loopback sockets never use a congestion control with pacing; others use the
 * system's. */
static void test_congestion(void **state)
{
    (void)state;
    struct io_addr near, high_rtt;
    char system[16], name[16];
    assert_true(io_addr_numeric("127.0.0.1", 1, false, &near));
    assert_true(io_addr_numeric("192.0.2.1", 1, false, &high_rtt));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    congestion(fd, system);
    bool had = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0;
    close(fd);
    const char *unpaced = had ? "reno" : system;
    tune_both(socket(AF_INET, SOCK_STREAM, 0), NULL, &near, name);
    assert_string_equal(name, unpaced);
    tune_both(socket(AF_INET, SOCK_STREAM, 0), &near, &near, name);
    assert_string_equal(name, unpaced);
    tune_both(socket(AF_INET, SOCK_STREAM, 0), NULL, &high_rtt, name);
    assert_string_equal(name, system);
    tune_both(socket(AF_INET, SOCK_STREAM, 0), &high_rtt, &high_rtt, name);
    assert_string_equal(name, system);
}

static void test_port_ranges(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "0",
                                      "-",
                                      "1-",
                                      "-1",
                                      "0-5",
                                      "5-4",
                                      "65536",
                                      "1-65536",
                                      "1 -2",
                                      "1-2-3",
                                      "1-2x",
                                      "99999999999999999999"};
    struct port_range r = {7, 7};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(port_range_parse(bad[i], &r));
    assert_true(r.first == 7 && r.last == 7);
    assert_true(port_range_parse("49148-49159", &r));
    assert_true(r.first == 49148 && r.last == 49159);
    assert_true(port_range_parse("65535", &r));
    assert_true(r.first == 65535 && r.last == 65535);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),       cmocka_unit_test(test_list),
        cmocka_unit_test(test_port_ranges), cmocka_unit_test(test_wire),
        cmocka_unit_test(test_resolve),     cmocka_unit_test(test_congestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
