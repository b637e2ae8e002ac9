/* elect_etcd.c - see elect_etcd.h. */
#include "elect_etcd.h"

#include "elect_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = (ETCD_NAME_MAX + 2) / 3 * 4 + 1 };

static bool fits(int length)
{
    return length > 0 && length < ETCD_BODY_SIZE;
}

/* As a JSON string without quotes. False: no room. */
static bool escape(const char *from, char *to, size_t size)
{
    size_t length = 0;
    for (; *from; from++) {
        bool quote = *from == '"' || *from == '\\';
        if ((unsigned char)*from < ' ' || length + 3 > size) return false;
        if (quote) to[length++] = '\\';
        to[length++] = *from;
    }
    to[length] = '\0';
    return true;
}

bool etcd_ask_login(char *body, const char *user, const char *password)
{
    char name[ETCD_BODY_SIZE / 4], word[ETCD_BODY_SIZE / 4];
    return escape(user, name, sizeof name) &&
           escape(password, word, sizeof word) &&
           fits(snprintf(body, ETCD_BODY_SIZE,
                         "{\"name\":\"%s\",\"password\":\"%s\"}", name, word));
}

bool etcd_ask_grant(char *body, uint64_t ttl)
{
    return fits(
        snprintf(body, ETCD_BODY_SIZE, "{\"TTL\":\"%" PRIu64 "\"}", ttl));
}

bool etcd_ask_lease(char *body, uint64_t lease)
{
    return fits(
        snprintf(body, ETCD_BODY_SIZE, "{\"ID\":\"%" PRIu64 "\"}", lease));
}

bool etcd_ask_key(char *body, const char *key)
{
    char name[KEY_SIZE];
    return base64_write(key, name, sizeof name) &&
           fits(snprintf(body, ETCD_BODY_SIZE, "{\"key\":\"%s\"}", name));
}

bool etcd_ask_campaign(char *body, const char *key, const char *value,
                       uint64_t lease)
{
    char name[KEY_SIZE], text[ETCD_VALUE_SIZE * 2];
    return base64_write(key, name, sizeof name) &&
           base64_write(value, text, sizeof text) &&
           fits(snprintf(body, ETCD_BODY_SIZE,
                         "{\"compare\":[{\"key\":\"%s\",\"target\":\"CREATE\","
                         "\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
                         "\"success\":[{\"request_put\":{\"key\":\"%s\","
                         "\"value\":\"%s\",\"lease\":\"%" PRIu64 "\"}}],"
                         "\"failure\":[{\"request_range\":{\"key\":\"%s\"}}]}",
                         name, name, text, lease, name));
}

/* ------------------------------------------------------------------ answers */

void etcd_read_error(const char *text, size_t size,
                     char why[static ETCD_WHY_SIZE])
{
    struct json_value all = json_read(text, size);
    struct json_value error = json_member(all, "error");
    struct json_value message = json_member(all, "message");
    *why = '\0';
    /* Of a stream the error is an object. */
    if (error.at && *error.at == '{') message = json_member(error, "message");
    if (!message.at) message = error;
    (void)json_string(message, why, ETCD_WHY_SIZE);
}

static bool fail(char *why, const char *what)
{
    (void)snprintf(why, ETCD_WHY_SIZE, "the answer %s", what);
    return false;
}

static bool read_whole(const char *text, size_t size, struct json_value *all,
                       char *why)
{
    *all = json_read(text, size);
    if (!all->at || *all->at != '{')
        return fail(why, "is not an object of JSON");
    if (!json_member(*all, "error").at) return true;
    etcd_read_error(text, size, why);
    return *why ? false : fail(why, "is an error without a text");
}

/* Every good answer of etcd has one. */
static bool has_header(struct json_value object, char *why)
{
    struct json_value header = json_member(object, "header");
    if (header.at && *header.at == '{') return true;
    return fail(why, "is not one of etcd: it has no header");
}

bool etcd_read_login(const char *text, size_t size, struct etcd_said *said,
                     char why[static ETCD_WHY_SIZE])
{
    struct json_value all;
    if (!read_whole(text, size, &all, why)) return false;
    struct json_value token = json_member(all, "token");
    if (token.size < 3 || token.size > ETCD_TOKEN_SIZE ||
        !json_string(token, said->token, sizeof said->token) ||
        strpbrk(said->token, "? "))
        return fail(why, "has no token");
    return true;
}

/* etcd has it as a signed number of 64 bits. */
static bool lease_number(struct json_value number, struct etcd_said *said)
{
    if (json_number(number, &said->lease) && said->lease <= INT64_MAX)
        return true;
    said->lease = 0;
    return false;
}

static bool read_lease(struct json_value in, struct etcd_said *said, char *why)
{
    if (!lease_number(json_member(in, "ID"), said) || said->lease == 0)
        return fail(why, "has no number of a lease");
    return true;
}

bool etcd_read_grant(const char *text, size_t size, struct etcd_said *said,
                     char why[static ETCD_WHY_SIZE])
{
    struct json_value all;
    if (!read_whole(text, size, &all, why) || !has_header(all, why) ||
        !read_lease(all, said, why))
        return false;
    if (json_number(json_member(all, "TTL"), &said->ttl) && said->ttl >= 1 &&
        said->ttl <= ETCD_TTL_MAX * 2)
        return true;
    return fail(why, "has no time that a lease may have");
}

bool etcd_read_renew(const char *text, size_t size, struct etcd_said *said,
                     char why[static ETCD_WHY_SIZE])
{
    struct json_value all;
    if (!read_whole(text, size, &all, why)) return false;
    all = json_member(all, "result"); /* the first one of a stream */
    if (!all.at) return fail(why, "has no result");
    if (!has_header(all, why) || !read_lease(all, said, why)) return false;
    /* Numbers that are 0 are left out. */
    struct json_value ttl = json_member(all, "TTL");
    said->ttl = 0;
    if (!ttl.at ||
        (json_number(ttl, &said->ttl) && said->ttl <= ETCD_TTL_MAX * 2))
        return true;
    return fail(why, "has no time that a lease may have");
}

bool etcd_read_revoke(const char *text, size_t size, struct etcd_said *said,
                      char why[static ETCD_WHY_SIZE])
{
    struct json_value all;
    (void)said;
    return read_whole(text, size, &all, why) && has_header(all, why);
}

/* Of a range of one key. */
static bool read_range(struct json_value range, struct etcd_said *said,
                       char *why)
{
    struct json_value list = json_member(range, "kvs");
    struct json_value one = json_first(list);
    said->taken = one.at != NULL;
    said->lease = 0;
    *said->value = '\0';
    if (!said->taken)
        return !list.at || *list.at == '[' || fail(why, "has no list of keys");
    struct json_value lease = json_member(one, "lease");
    if (*one.at != '{' || (lease.at && !lease_number(lease, said)))
        return fail(why, "has a key that cannot be");
    /* Somebody else may have put anything there. */
    if (!base64_read(json_member(one, "value"), said->value,
                     sizeof said->value) ||
        *said->value == '\0')
        (void)snprintf(said->value, sizeof said->value, "something else");
    return true;
}

bool etcd_read_key(const char *text, size_t size, struct etcd_said *said,
                   char why[static ETCD_WHY_SIZE])
{
    struct json_value all;
    return read_whole(text, size, &all, why) && has_header(all, why) &&
           read_range(all, said, why);
}

bool etcd_read_campaign(const char *text, size_t size, struct etcd_said *said,
                        char why[static ETCD_WHY_SIZE])
{
    struct json_value all;
    if (!read_whole(text, size, &all, why) || !has_header(all, why))
        return false;
    said->won = json_is_true(json_member(all, "succeeded"));
    if (said->won) return true;
    struct json_value one = json_first(json_member(all, "responses"));
    struct json_value range = json_member(one, "response_range");
    if (range.at && *range.at == '{') return read_range(range, said, why);
    return fail(why, "does not say whose the key is");
}
