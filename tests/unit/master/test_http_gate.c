/* test_http_gate.c - tests of who gets what from the web server. */
#include "../../../src/master/server/http_gate.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#define TOKEN "0123456789abcdef"

static int gate(const struct http_request *r, const char *token)
{
    enum http_route route;
    return http_gate(r, token, &route);
}

static void test_routes(void **state)
{
    (void)state;
    static const char *const paths[] = {"/", "/status.json", "/metrics",
                                        "/healthz"};
    for (int i = 0; i < HTTP_ROUTES; i++) {
        enum http_route route = HTTP_ROUTES;
        struct http_request r = {
            .method = "GET", .path = paths[i], .own = true};
        assert_int_equal(http_gate(&r, NULL, &route), 200);
        assert_int_equal(route, i);
        r.method = "HEAD";
        assert_int_equal(http_gate(&r, NULL, &route), 200);
        r.method = "POST";
        assert_int_equal(http_gate(&r, NULL, &route), 405);
    }
    static const char *const others[] = {"",          "//",         "/metrics/",
                                         "/METRICS",  "/../status", "*",
                                         "/healthz?", "metrics"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct http_request r = {
            .method = "GET", .path = others[i], .own = true};
        assert_int_equal(gate(&r, NULL), 404);
        r.method = "DELETE";
        assert_int_equal(gate(&r, NULL), 404);
    }
}

static void test_tokens(void **state)
{
    (void)state;
    struct http_request r = {.method = "GET", .path = "/status.json"};
    assert_int_equal(gate(&r, TOKEN), 401);
    static const char *const wrong[] = {
        "",          "0123456789abcde",   "0123456789abcdef0",
        "x" TOKEN,   "0123456789abcdeF",  "Bearer " TOKEN,
        TOKEN TOKEN, "1123456789abcdef0", " " TOKEN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        r.authorization = wrong[i];
        if (i != 5) assert_int_equal(gate(&r, TOKEN), 401);
        r.authorization = NULL;
    }
    r.authorization = "Bearer nonsense";
    assert_int_equal(gate(&r, TOKEN), 401);
    r.authorization = "Basic " TOKEN; /* is none of ours */
    assert_int_equal(gate(&r, TOKEN), 401);
    r.authorization = "bearer " TOKEN;
    assert_int_equal(gate(&r, TOKEN), 200);
    /* Strangers do not learn which paths and methods there are. */
    r.authorization = NULL;
    r.path = "/nothing";
    assert_int_equal(gate(&r, TOKEN), 401);
    r.method = "PUT";
    assert_int_equal(gate(&r, TOKEN), 401);
    r.path = "/healthz";
    assert_int_equal(gate(&r, TOKEN), 405);
    r.method = "GET";
    assert_int_equal(gate(&r, TOKEN), 200);
    r.path = "/"; /* which tells nothing by itself */
    assert_int_equal(gate(&r, TOKEN), 200);
}

/* Without a token all but /healthz is for the user who runs the job. */
static void test_users(void **state)
{
    (void)state;
    static const char *const paths[] = {"/", "/status.json", "/metrics",
                                        "/nothing"};
    struct http_request r = {.method = "GET", .host = "localhost"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        r.path = paths[i];
        assert_int_equal(gate(&r, NULL), 403);
    }
    r.path = "/status.json";
    r.authorization = "Bearer " TOKEN;
    assert_int_equal(gate(&r, NULL), 403);
    assert_int_equal(gate(&r, TOKEN), 200); /* whoever knows it */
    r.path = "/healthz";
    assert_int_equal(gate(&r, NULL), 200);
}

static void test_hosts(void **state)
{
    (void)state;
    static const char *const own[] = {"localhost", "localhost:80", "LOCALHOST",
                                      "127.0.0.1", "10.1.2.3:99",  "[::1]:80"};
    static const char *const others[] = {
        "",           "evil.example",      "localhost.evil.example",
        "127.0.0.1x", "1.2.3.4.example:1", ":80",
        "local"};
    struct http_request r = {.method = "GET", .path = "/", .own = true};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        r.host = own[i];
        assert_int_equal(gate(&r, NULL), 200);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        r.host = others[i];
        r.path = "/";
        r.authorization = NULL;
        assert_int_equal(gate(&r, NULL), 403);
        r.path = "/status.json";
        assert_int_equal(gate(&r, NULL), 403);
        /* Its knowledge proves more than a name. */
        r.authorization = "Bearer " TOKEN;
        assert_int_equal(gate(&r, TOKEN), 200);
        r.path = "/healthz";
        assert_int_equal(gate(&r, NULL), 200);
    }
}

static void test_tokens_of_users(void **state)
{
    (void)state;
    char longest[HTTP_TOKEN_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[HTTP_TOKEN_MAX + 1] = '\0';
    assert_non_null(http_token_fault(longest));
    longest[HTTP_TOKEN_MAX] = '\0';
    assert_null(http_token_fault(longest));
    assert_null(http_token_fault(TOKEN));
    assert_non_null(http_token_fault(&TOKEN[1]));
    assert_non_null(http_token_fault(""));
    assert_non_null(http_token_fault(TOKEN " "));
    assert_non_null(http_token_fault(TOKEN "\n"));
    assert_non_null(http_token_fault(TOKEN "&x"));
    assert_non_null(http_token_fault(TOKEN "%20"));
    assert_non_null(http_token_fault(TOKEN "\xc3\xa4"));
}

static void test_after(void **state)
{
    (void)state;
    uint64_t after = 1;
    assert_true(http_after(NULL, &after));
    assert_int_equal(after, 0);
    assert_true(http_after("0", &after));
    assert_int_equal(after, 0);
    assert_true(http_after("123456789012345678", &after));
    assert_true(after == 123456789012345678);
    assert_false(http_after("", &after));
    assert_false(http_after("-1", &after));
    assert_false(http_after("1x", &after));
    assert_false(http_after(" 1", &after));
    assert_false(http_after("1234567890123456789", &after));
}

/* What is left of a text with events 4, 5 and 6. */
static void assert_rest(uint64_t after, const char *rest)
{
    static const char json[] = "{\"events\":[\n{4},\n{5},\n{6}\n]}\n";
    size_t at = http_events_after(json, sizeof json - 1, 11, 6, after);
    assert_string_equal(json + at, rest);
}

static void test_events(void **state)
{
    (void)state;
    for (uint64_t i = 0; i <= 3; i++) assert_rest(i, "\n{4},\n{5},\n{6}\n]}\n");
    assert_rest(4, "\n{5},\n{6}\n]}\n");
    assert_rest(5, "\n{6}\n]}\n");
    assert_rest(6, "\n]}\n");
    assert_rest(7, "\n]}\n");
    assert_rest(UINT64_MAX, "\n]}\n");
    static const char none[] = "[\n]}\n";
    assert_int_equal(http_events_after(none, sizeof none - 1, 1, 0, 9), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),          cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_users),           cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_tokens_of_users), cmocka_unit_test(test_after),
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
