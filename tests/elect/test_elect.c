/* test_elect.c - what etcd is asked and answers, where it is, and as whom: good
 * and bad texts, cut at every place. */
#include "../../src/launch/elect_etcd.h"
#include "../../src/launch/elect_json.h"
#include "../../src/launch/elect_place.h"
#include "../../src/launch/elect_right.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD "\"header\":{\"cluster_id\":\"1\",\"raft_term\":\"2\"}"

static char why[ETCD_WHY_SIZE];
static struct etcd_said said;

/* The text is in memory of its own size, so that a sanitizer sees what is read
 * behind it. */
static bool reads(etcd_reader *read, const char *text, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    *why = '\0';
    bool good = read(copy, size, &said, why);
    free(copy);
    return good;
}

/* No part of a good answer is one. */
static void assert_good(etcd_reader *read, const char *text)
{
    for (size_t i = 0; i < strlen(text); i++)
        if (reads(read, text, i)) fail_msg("%.*s", (int)i, text);
    if (!reads(read, text, strlen(text))) fail_msg("%s: %s", text, why);
}

static void assert_bad(etcd_reader *read, const char *text, const char *wanted)
{
    assert_false(reads(read, text, strlen(text)));
    if (!strstr(why, wanted)) fail_msg("%s: %s", text, why);
}

static void test_good_answers(void **state)
{
    (void)state;
    assert_good(etcd_read_grant, "{" HEAD ",\"ID\":\"77\",\"TTL\":\"10\"}");
    assert_int_equal(said.lease, 77);
    assert_int_equal(said.ttl, 10);
    assert_good(etcd_read_renew,
                "{\"result\":{" HEAD ",\"ID\":\"77\",\"TTL\":\"9\"}}");
    assert_int_equal(said.ttl, 9);
    assert_good(etcd_read_renew, "{\"result\":{" HEAD ",\"ID\":\"77\"}}");
    assert_int_equal(said.ttl, 0);
    assert_good(etcd_read_key, "{" HEAD "}");
    assert_false(said.taken);
    assert_good(etcd_read_key,
                "{" HEAD ",\"kvs\":[{\"key\":\"cnVu\",\"lease\":\"77\","
                "\"value\":\"MTI3LjAuMC4xOjE=\"}],\"count\":\"1\"}");
    assert_true(said.taken);
    assert_int_equal(said.lease, 77);
    assert_string_equal(said.value, "127.0.0.1:1");
    assert_good(etcd_read_key, "{" HEAD ",\"kvs\":[{\"key\":\"cnVu\"}]}");
    assert_true(said.taken);
    assert_int_equal(said.lease, 0);
    assert_string_equal(said.value, "something else");
    assert_good(etcd_read_campaign,
                "{" HEAD ",\"succeeded\":true,\"responses\":[{}]}");
    assert_true(said.won);
    assert_good(etcd_read_campaign,
                "{" HEAD ",\"responses\":[{\"response_range\":{\"kvs\":"
                "[{\"lease\":\"5\",\"value\":\"QQ==\"}]}}]}");
    assert_false(said.won);
    assert_int_equal(said.lease, 5);
    assert_string_equal(said.value, "A");
    assert_good(etcd_read_login, "{" HEAD ",\"token\":\"ab.12\"}");
    assert_string_equal(said.token, "ab.12");
    assert_good(etcd_read_revoke, " {" HEAD " , \"x\" : [ 1 , {} , [ ] ] }");
}

static void test_bad_answers(void **state)
{
    (void)state;
    static const struct {
        etcd_reader *read;
        const char *text, *wanted;
    } bad[] = {
        {etcd_read_grant, "", "is not an object of JSON"},
        {etcd_read_grant, "<html>", "is not an object of JSON"},
        {etcd_read_grant, "[]", "is not an object of JSON"},
        {etcd_read_grant, "{}", "it has no header"},
        {etcd_read_grant, "{" HEAD "}", "no number of a lease"},
        {etcd_read_grant, "{" HEAD ",\"ID\":\"0\"}", "no number of a lease"},
        {etcd_read_grant, "{" HEAD ",\"ID\":\"-1\"}", "no number of a lease"},
        {etcd_read_grant, "{" HEAD ",\"ID\":\"9223372036854775808\"}",
         "no number of a lease"},
        {etcd_read_grant, "{" HEAD ",\"ID\":\"9999999999999999999\"}",
         "no number of a lease"},
        {etcd_read_grant, "{" HEAD ",\"ID\":7}", "no time"},
        {etcd_read_grant, "{" HEAD ",\"ID\":7,\"TTL\":0}", "no time"},
        {etcd_read_grant, "{" HEAD ",\"ID\":7,\"TTL\":\"86400\"}", "no time"},
        {etcd_read_renew, "{" HEAD "}", "has no result"},
        {etcd_read_renew, "{\"result\":{" HEAD ",\"ID\":1,\"TTL\":-1}}",
         "no time"},
        {etcd_read_renew,
         "{\"error\":{\"grpc_code\":14,\"message\":\"no \\\"leader\\\"\"}}",
         "no ?leader?"},
        {etcd_read_key, "{\"error\":\"denied\",\"code\":7}", "denied"},
        {etcd_read_key, "{\"error\":{}}", "an error without a text"},
        {etcd_read_key, "{" HEAD ",\"kvs\":7}", "no list of keys"},
        {etcd_read_key, "{" HEAD ",\"kvs\":[7]}", "a key that cannot be"},
        {etcd_read_key, "{" HEAD ",\"kvs\":[{\"lease\":[]}]}",
         "a key that cannot be"},
        {etcd_read_campaign, "{" HEAD ",\"succeeded\":\"true\"}",
         "does not say whose"},
        {etcd_read_login, "{" HEAD ",\"token\":\"\"}", "has no token"},
        {etcd_read_login, "{" HEAD ",\"token\":\"a\\u000ab\"}", "has no token"},
        {etcd_read_key, "[[[[[[[[[[[[[[[[[[[[", "is not an object of JSON"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_bad(bad[i].read, bad[i].text, bad[i].wanted);
    etcd_read_error("{\"message\":\"x\",\"error\":\"y\"}", 27, why);
    assert_string_equal(why, "x");
    etcd_read_error("not found", 9, why);
    assert_string_equal(why, "");
}

/* All that may stand in a key, and one letter more. */
static void test_base64(void **state)
{
    (void)state;
    static const char *const texts[][2] = {{"", ""},
                                           {"A", "QQ=="},
                                           {"AB", "QUI="},
                                           {"ABC", "QUJD"},
                                           {"~?>~?>", "fj8+fj8+"}};
    char coded[16], quoted[24], back[16];
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        assert_true(base64_write(texts[i][0], coded, strlen(texts[i][1]) + 1));
        assert_string_equal(coded, texts[i][1]);
        assert_false(base64_write(texts[i][0], coded, strlen(texts[i][1])));
        int size = snprintf(quoted, sizeof quoted, "\"%s\"", texts[i][1]);
        struct json_value value = {quoted, (size_t)size};
        assert_true(base64_read(value, back, strlen(texts[i][0]) + 1));
        assert_string_equal(back, texts[i][0]);
        assert_false(*back && base64_read(value, back, strlen(texts[i][0])));
    }
    static const char *const bad[] = {"\"QQ=\"",  "\"Q\\==\"", "\"AA==\"",
                                      "\"====\"", "QQ==",      "\"Q===\""};
    for (size_t i = 0; i + 2 < ARRAY_COUNT(bad); i++) {
        struct json_value value = {bad[i], strlen(bad[i])};
        assert_false(base64_read(value, back, sizeof back));
    }
    struct json_value bare = {bad[4], strlen(bad[4])};
    assert_false(base64_read(bare, back, sizeof back));
}

static void test_bodies(void **state)
{
    (void)state;
    char body[ETCD_BODY_SIZE], name[ETCD_NAME_MAX + 4];
    memset(name, 'n', sizeof name);
    name[ETCD_NAME_MAX + 3] = '\0';
    assert_false(etcd_ask_key(body, name));
    name[ETCD_NAME_MAX] = '\0';
    assert_true(etcd_ask_key(body, name));
    assert_true(etcd_ask_campaign(body, name, "[::1]:48148", INT64_MAX));
    assert_non_null(json_read(body, strlen(body)).at);
    assert_true(etcd_ask_login(body, "me", "a\"b\\c"));
    assert_string_equal(body, "{\"name\":\"me\",\"password\":\"a\\\"b\\\\c\"}");
    assert_false(etcd_ask_login(body, "me", "a\nb"));
}

static void test_places(void **state)
{
    (void)state;
    struct elect_place place;
    assert_true(elect_place_parse("http://a:1,https://[::1]:2379/x/run-7",
                                  &place, why));
    assert_int_equal(place.count, 2);
    assert_string_equal(place.endpoints[0], "http://a:1");
    assert_string_equal(place.endpoints[1], "https://[::1]:2379");
    assert_string_equal(place.name, "x/run-7");
    static const char *const bad[][2] = {
        {"a:1/x", "'a:1/x' does not begin with http:// or https://"},
        {"http://a:1,b:2/x", "'b:2/x' does not begin"},
        {"http:///x", "has no host"},
        {"http://a b/x", "has no host"},
        {"http://a:1", "has to end with /NAME"},
        {"http://a:1/", "has to end with /NAME"},
        {"http://a:1/x?y", "has to end with /NAME"},
        {"http://a:1/x,http://b:2", "has to end with /NAME"},
        {"http://me:word@a:1/x", "--elect-auth"},
        {"http://1,http://2,http://3,http://4,http://5,http://6,http://7,"
         "http://8,http://9,http://10/x",
         "more than 9 places"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(elect_place_parse(bad[i][0], &place, why));
        if (!strstr(why, bad[i][1])) fail_msg("%s: %s", bad[i][0], why);
    }
}

static char path[] = "/tmp/pccl-elect-XXXXXX";

static bool account_of(const char *text, mode_t mode, struct elect_account *a)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return elect_account_read(path, a, why);
}

static void test_accounts(void **state)
{
    (void)state;
    struct elect_account a;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(elect_account_read(NULL, &a, why));
    elect_account_free(&a);
    assert_true(
        account_of("# of run7\nuser me\npassword a b\n\nca /ca\n", 0600, &a));
    assert_string_equal(a.user, "me");
    assert_string_equal(a.password, "a b");
    assert_string_equal(a.ca, "/ca");
    assert_null(a.token);
    elect_account_free(&a);
    static const char *const bad[][2] = {
        {"user me\n", "needs a password"},
        {"user me\npassword x\ntoken y\n", "not both"},
        {"users me\n", "line 1 is not user, password"},
        {"\ntoken", "line 2 is not"},
        {"token ", "line 1 is not"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(account_of(bad[i][0], 0600, &a));
        if (!strstr(why, bad[i][1])) fail_msg("%s: %s", bad[i][0], why);
        elect_account_free(&a);
    }
    assert_false(account_of("token x\n", 0640, &a));
    assert_non_null(strstr(why, "chmod 600"));
    elect_account_free(&a);
    assert_int_equal(unlink(path), 0);
    assert_false(elect_account_read(path, &a, why));
    assert_non_null(strstr(why, "No such file"));
    elect_account_free(&a);
}

/* Only what an elector made is taken for a right. */
static void test_rights(void **state)
{
    (void)state;
    int fd, null = open("/dev/null", O_RDWR);
    int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(null >= 0 && other >= 0);
    assert_false(right_take(null));
    assert_false(right_take(other));
    assert_int_equal(ftruncate(other, 4096), 0);
    assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_false(right_take(other));
    assert_false(right_take(12345));
    struct elect_right *right = right_make(&fd);
    assert_non_null(right);
    right_grant(right, INT64_MAX, PCCL_S);
    assert_false(right_has_begun(right));
    assert_true(right_take(fd));
    right_check(NULL);
    close(null);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_answers), cmocka_unit_test(test_bad_answers),
        cmocka_unit_test(test_base64),       cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_places),       cmocka_unit_test(test_accounts),
        cmocka_unit_test(test_rights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
