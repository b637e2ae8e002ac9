/* test_world.c - tests of the parser for network description files. */
#include "wan_world.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

#define PEERS "peer us 2\npeer eu\nmaster eu\n"

static struct world parsed(const char *text)
{
    struct world w;
    char error[WORLD_ERROR_SIZE];
    if (!world_parse(&w, "file", text, error)) fail_msg("%s", error);
    return w;
}

static void settings_and_peers(void **state)
{
    (void)state;
    struct world w = parsed("# a comment\n\n"
                            "title Three peers # in two regions\r\n"
                            "limit 1.5s\nseed 7\nmtu 9000\n"
                            "congestion cubic\noffload off\n" PEERS);
    assert_string_equal(w.title, "Three peers # in two regions");
    assert_int_equal(w.limit, 1500 * WAN_MS);
    assert_int_equal(w.seed, 7);
    assert_int_equal(w.mtu, 9000);
    assert_string_equal(w.congestion, "cubic");
    assert_int_equal(w.offload, OFFLOAD_OFF);
    assert_int_equal(w.nodes, 4);
    assert_int_equal(w.regions, 2);
    assert_int_equal(w.region_of[MASTER_NODE], 1);
    assert_int_equal(w.region_of[2], 0);
    assert_int_equal(w.region_of[3], 1);
    world_free(&w);
}

static void links(void **state)
{
    (void)state;
    struct world w =
        parsed(PEERS "at 2s path 1,3 -> master block\n" /* sorted to the end */
                     "rtt us eu 80ms\n"
                     "path us <-> eu rate 8mbit flow 800kbit queue 20ms fair\n"
                     "up * rate 1gbit queue 64kB\n"
                     "trunk us <-> eu rate 10mbit # shared\n"
                     "path 2 -> 1 loss 5% jitter 300us delay 1ms wall\n");
    assert_int_equal(w.statement_count, 6);
    const struct statement *s = w.statements;
    assert_int_equal(s[0].from, 6);
    assert_int_equal(s[0].to, 9); /* peer 3, and the master's own region */
    assert_true(s[0].both);
    assert_int_equal(s[0].link.delay, 40 * WAN_MS);
    assert_int_equal(s[1].link.rule.rate, 1000000);
    assert_int_equal(s[1].link.rule.flow_rate, 100000);
    assert_int_equal(s[1].link.rule.queue_ns, 20 * WAN_MS);
    assert_true(s[1].link.rule.fair);
    assert_int_equal(s[2].kind, STATEMENT_UP);
    assert_int_equal(s[2].from, 15);
    assert_int_equal(s[2].link.rule.queue, 64000);
    assert_int_equal(s[3].kind, STATEMENT_TRUNK);
    assert_false(s[4].both);
    assert_true(s[4].link.firewalled);
    assert_true(s[4].link.loss > .0499 && s[4].link.loss < .0501);
    assert_int_equal(s[4].link.jitter, 300000);
    assert_int_equal(s[5].at, 2 * WAN_S);
    assert_int_equal(s[5].from, 2 | 8);
    assert_int_equal(s[5].to, 1);
    assert_true(s[5].link.blocked);
    world_free(&w);
}

static void later_statements_change_what_they_say(void **state)
{
    (void)state;
    struct world w = parsed(PEERS);
    struct statement s;
    char error[WORLD_ERROR_SIZE];
    struct shaped_link link = {.delay = 5, .rule.rate = 9};
    assert_true(world_statement(&w, "path 1 -> 2 block", &s, error));
    shaped_link_apply(&link, &s);
    assert_true(link.blocked);
    assert_true(world_statement(&w, "path 1 -> 2 rate 1mbit wall", &s, error));
    shaped_link_apply(&link, &s);
    assert_true(link.blocked && link.firewalled && link.delay == 5);
    assert_int_equal(link.rule.rate, 125000);
    assert_true(world_statement(&w, "path 1 -> 2 open", &s, error));
    shaped_link_apply(&link, &s);
    assert_true(!link.blocked && !link.firewalled && link.delay == 5);
    world_free(&w);
}

static void errors_name_line_and_cause(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"peers 3\n", "file:1: 'peers' is no statement"},
        {PEERS "path us <-> mars rate 1mbit\n",
         "file:4: there is no region 'mars'"},
        {PEERS "path 1 <-> 4 rate 1mbit\n", "file:4: there is no peer '4'"},
        {PEERS "path 1 <-> 0 rate 1mbit\n", "file:4: there is no peer '0'"},
        {PEERS "\n\npath 1 = 2 rate 1mbit\n",
         "file:6: path: '=' stands where -> or <-> is needed"},
        {PEERS "path 1 -> 2 rate 1\n",
         "file:4: rate: '1' has not one of the units kbit mbit gbit"},
        {PEERS "path 1 -> 2 rate fast\n",
         "file:4: rate needs a number of 0 or more, not 'fast'"},
        {PEERS "path 1 -> 2 loss 101%\n", "file:4: loss is above 100%"},
        {PEERS "path 1 -> 2 speed 3\n",
         "file:4: 'speed' is no property of a link"},
        {PEERS "path 1 -> 2\n", "file:4: nothing is given about the link"},
        {PEERS "path 1 -> 2 block open\n",
         "file:4: 'open' is given twice, or against what was given"},
        {PEERS "up 1 delay 3ms\n", "file:4: 'delay' is a property of paths"},
        {PEERS "path 1 -> 2 queue 0ms\n", "file:4: queue must be more than 0"},
        {PEERS "rtt us 3ms\n", "file:4: there is no peer '3ms'"},
        {PEERS "up\n", "file:4: up: whose is missing"},
        {PEERS "at soon path 1 -> 2 block\n",
         "file:4: at needs a number of 0 or more, not 'soon'"},
        {"peer us 128\n",
         "file:1: peer needs a number from 1 to 127, not '128'"},
        {"peer us 127\npeer us\n", "file:2: more than 127 peers"},
        {"peer 3us\n", "file:1: peer: '3us' is no name"},
        {"peer us 1 2\n", "file:1: '2' is too much"},
        {PEERS "up * rate 1mbit\npeer eu\n",
         "file:5: peers must stand before the links"},
        {"mtu 100\n", "file:1: mtu needs a number from 576 to 65535"},
        {"offload maybe\n", "file:1: offload is on or off, not 'maybe'"},
        {"title nobody\n", "file: no peer in it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;
        char error[WORLD_ERROR_SIZE] = "";
        assert_false(world_parse(&w, "file", cases[i].text, error));
        if (!strstr(error, cases[i].error))
            fail_msg("'%s', not '%s'", error, cases[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_and_peers),
        cmocka_unit_test(links),
        cmocka_unit_test(later_statements_change_what_they_say),
        cmocka_unit_test(errors_name_line_and_cause),
    };
    return cmocka_run_group_tests_name("wan world", tests, NULL, NULL);
}
