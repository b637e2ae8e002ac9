/* test_token.c - rules K10 to K12 and K15: tokens of participants, everything
 * that somebody can do to one, and the lists and files that go with them. */
#include "../../../src/base/secure_token.c"

#include "../../../src/base/run_key.h"
#include "../../../src/master/server/master_open.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOW = 1800000000, DAY = 24 * 60 * 60 };

static uint8_t run[SECURE_KEY_SIZE], other_run[SECURE_KEY_SIZE];
static uint8_t seed[TOKEN_SEED_SIZE], other_seed[TOKEN_SEED_SIZE];
static uint8_t issuer[TOKEN_PUBLIC_SIZE], other_issuer[TOKEN_PUBLIC_SIZE];
static struct master_open open_run;

static const struct token alice = {
    .grant = {.name = "alice", .rights = GRANT_JOIN, .group = 3},
    .issued = NOW,
    .expires = NOW + DAY};

static int setup(void **state)
{
    (void)state;
    memset(run, 1, sizeof run);
    memset(other_run, 2, sizeof other_run);
    memset(seed, 3, sizeof seed);
    memset(other_seed, 4, sizeof other_seed);
    if (!token_public(seed, issuer) || !token_public(other_seed, other_issuer))
        return 1;
    static const uint64_t proof[2] = {5, 6};
    open_run.on = true;
    memcpy(open_run.key, run, sizeof run);
    memcpy(open_run.issuer, issuer, sizeof issuer);
    secure_psk_of_key(&open_run.own, run);
    token_link_key(&open_run.links, proof);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    open_free(&open_run);
    return 0;
}

static struct secure_psk psk_of(const struct token *token)
{
    struct secure_psk psk = {0};
    assert_true(token_issue(token, seed, run, &psk));
    return psk;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct token long_name = {
        .grant = {.rights = GRANT_JOIN | GRANT_OBSERVE, .any_group = true},
        .issued = NOW};
    memset(long_name.grant.name, 'z', GRANT_NAME_MAX);
    const struct token *all[] = {&alice, &long_name};
    for (size_t i = 0; i < 2; i++) {
        struct token read;
        uint8_t secret[SECURE_KEY_SIZE];
        struct secure_psk psk = psk_of(all[i]), again = psk_of(all[i]);
        assert_true(strlen(psk.identity) < SECURE_NAME_SIZE);
        assert_string_not_equal(psk.identity, again.identity);
        assert_memory_not_equal(psk.key, again.key, sizeof psk.key);
        assert_int_equal(token_open(psk.identity, run, issuer, &read),
                         TOKEN_FINE);
        assert_string_equal(read.grant.name, all[i]->grant.name);
        assert_int_equal(read.grant.rights, all[i]->grant.rights);
        assert_int_equal(read.grant.any_group, all[i]->grant.any_group);
        assert_int_equal(read.grant.group, all[i]->grant.group);
        assert_int_equal(read.issued, all[i]->issued);
        assert_int_equal(read.expires, all[i]->expires);
        assert_int_equal(token_secret(psk.identity, run, secret), TOKEN_FINE);
        assert_memory_equal(secret, psk.key, sizeof secret);
    }
}

static void test_what_is_no_token_is_not_issued(void **state)
{
    static const char *const names[] = {"",   ".x", "-n",       "a b", "a\tb",
                                        "a/", "\"", "\xc3\xa4", "a\n", "#a"};
    (void)state;
    struct secure_psk psk;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct token bad = alice;
        snprintf(bad.grant.name, sizeof bad.grant.name, "%s", names[i]);
        assert_false(token_issue(&bad, seed, run, &psk));
    }
    struct token bad = alice;
    bad.grant.rights = 0;
    assert_false(token_issue(&bad, seed, run, &psk));
    bad.grant.rights = GRANT_RELAY;
    assert_false(token_issue(&bad, seed, run, &psk));
    bad = alice;
    bad.expires = bad.issued;
    assert_false(token_issue(&bad, seed, run, &psk));
}

/* Nobody but the run's key opens it, and no digit may change. */
static void test_tampered(void **state)
{
    (void)state;
    struct token read;
    uint8_t secret[SECURE_KEY_SIZE];
    struct secure_psk psk = psk_of(&alice);
    size_t length = strlen(psk.identity);
    assert_int_equal(token_secret(psk.identity, other_run, secret),
                     TOKEN_FOREIGN);
    assert_int_equal(token_open(psk.identity, other_run, issuer, &read),
                     TOKEN_FOREIGN);
    for (size_t i = 0; i < length; i++) {
        char changed[SECURE_NAME_SIZE];
        memcpy(changed, psk.identity, length + 1);
        changed[i] = changed[i] == '0' ? '1' : '0';
        assert_int_equal(token_secret(changed, run, secret), TOKEN_FOREIGN);
        assert_int_equal(token_open(changed, run, issuer, &read),
                         TOKEN_FOREIGN);
        memcpy(changed, psk.identity, length + 1);
        changed[i] = '\0'; /* truncated */
        assert_int_equal(token_secret(changed, run, secret), TOKEN_FOREIGN);
    }
    char longer[2 * SECURE_NAME_SIZE];
    for (size_t more = 1; more < SECURE_NAME_SIZE; more++) {
        memcpy(longer, psk.identity, length);
        memset(longer + length, '0', more);
        longer[length + more] = '\0';
        assert_int_equal(token_secret(longer, run, secret), TOKEN_FOREIGN);
    }
}

/* Whoever has the run's key can seal, and cannot sign. */
static void seal_as(const uint8_t *plain, size_t size, char *identity)
{
    uint8_t sealed[SEALED_MOST];
    assert_true(seal(run, plain, size, sealed));
    memcpy(identity, prefix, sizeof prefix);
    hex_print(sealed, size + NONCE + TAG, identity + sizeof prefix - 1);
}

static void sign_for(const uint8_t key[SECURE_KEY_SIZE], uint8_t *plain,
                     size_t size)
{
    uint8_t text[DIGEST + PLAIN_MOST];
    size_t length = signed_text(key, plain, size, text);
    assert_true(sign(seed, text, length, plain + size));
}

static void test_forged(void **state)
{
    (void)state;
    uint8_t plain[PLAIN_MOST];
    char identity[SECURE_NAME_SIZE];
    struct token read;
    size_t size = put_plain(&alice, issuer, plain);
    sign_for(run, plain, size);
    seal_as(plain, size + SIGNATURE, identity);
    assert_int_equal(token_open(identity, run, issuer, &read), TOKEN_FINE);
    assert_int_equal(token_open(identity, run, other_issuer, &read),
                     TOKEN_OTHER_ISSUER);
    for (size_t i = 1 + ISSUER; i < size + SIGNATURE; i++) {
        plain[i] ^= 1;
        seal_as(plain, size + SIGNATURE, identity);
        assert_int_equal(token_open(identity, run, issuer, &read),
                         TOKEN_FORGED);
        plain[i] ^= 1;
    }
    sign_for(other_run, plain, size); /* a token of another run */
    seal_as(plain, size + SIGNATURE, identity);
    assert_int_equal(token_open(identity, run, issuer, &read), TOKEN_FORGED);
    struct secure_psk psk = {0};
    assert_true(token_issue(&alice, other_seed, run, &psk));
    assert_int_equal(token_open(psk.identity, run, issuer, &read),
                     TOKEN_OTHER_ISSUER);
}

/* Signed by the issuer of a later version, or of one with an error. */
static void test_broken(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{0, 2},                  /* version */
                   {1 + ISSUER, 2},         /* flags */
                   {1 + ISSUER + 5, 0},     /* no right */
                   {1 + ISSUER + 5, 4},     /* none of a token */
                   {1 + ISSUER + 5 + 9, 0}, /* expires before issued */
                   {FIXED - 1, 4},
                   {FIXED - 1, 6}, /* size of the name */
                   {FIXED, '-'},
                   {FIXED + 2, 0},
                   {FIXED + 2, ' '}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        uint8_t plain[PLAIN_MOST];
        char identity[SECURE_NAME_SIZE];
        struct token read;
        size_t size = put_plain(&alice, issuer, plain);
        bool time = changes[i].at == 1 + ISSUER + 5 + 9;
        plain[changes[i].at] = changes[i].value;
        if (time) memset(plain + changes[i].at, 0, 7); /* ends in 1970 */
        sign_for(run, plain, size);
        seal_as(plain, size + SIGNATURE, identity);
        assert_int_equal(token_open(identity, run, issuer, &read),
                         TOKEN_BROKEN);
    }
}

static void test_times(void **state)
{
    (void)state;
    struct token never = alice;
    never.expires = 0;
    assert_int_equal(token_at(&alice, NOW - TOKEN_CLOCK_SKEW - 1), TOKEN_EARLY);
    assert_int_equal(token_at(&alice, NOW - TOKEN_CLOCK_SKEW), TOKEN_FINE);
    assert_int_equal(token_at(&alice, NOW + DAY), TOKEN_FINE);
    assert_int_equal(token_at(&alice, NOW + DAY + TOKEN_CLOCK_SKEW - 1),
                     TOKEN_FINE);
    assert_int_equal(token_at(&alice, NOW + DAY + TOKEN_CLOCK_SKEW),
                     TOKEN_EXPIRED);
    assert_int_equal(token_at(&alice, UINT64_MAX), TOKEN_EXPIRED);
    assert_int_equal(token_at(&never, UINT64_MAX), TOKEN_FINE);
    assert_int_equal(token_at(&never, 0), TOKEN_EARLY);
}

static void expect_judged(const char *identity, uint64_t now, const char *why)
{
    struct token token;
    char text[240] = "";
    bool fine = open_judge(&open_run, identity, now, &token, text, sizeof text);
    assert_int_equal(fine, why == NULL);
    if (why) assert_string_equal(text, why);
}

static void put_list(const char *text, bool fine, const char *why)
{
    char path[] = "/tmp/pccl_revoked_XXXXXX", error[300] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(open_read_revoked(&open_run, path, error, sizeof error),
                     fine);
    if (why) assert_non_null(strstr(error, why));
    unlink(path);
}

static void test_judged(void **state)
{
    (void)state;
    struct secure_psk psk = psk_of(&alice);
    struct token token;
    char text[240];
    expect_judged(psk.identity, NOW, NULL);
    expect_judged(psk.identity, NOW + 2 * DAY,
                  "the token of alice expired at 2027-01-16 08:00:00 UTC: ask "
                  "for a new one");
    expect_judged(psk.identity, NOW - DAY,
                  "the token of alice is valid from 2027-01-15 08:00:00 UTC "
                  "on: is a clock wrong?");
    expect_judged(open_run.own.identity, NOW,
                  "this run takes tokens of participants, and not its key: "
                  "pccl-master --issue NAME makes one");
    struct secure_psk foreign = {0};
    assert_true(token_issue(&alice, other_seed, run, &foreign));
    expect_judged(foreign.identity, NOW,
                  "this token is of another issuer than this run believes");
    /* K14: it relays, and is nobody. */
    assert_true(open_judge(&open_run, open_run.links.identity, NOW, &token,
                           text, sizeof text));
    assert_int_equal(token.grant.rights, GRANT_RELAY);
    assert_string_equal(token.grant.name, "");
}

static void test_revoked(void **state)
{
    (void)state;
    struct secure_psk psk = psk_of(&alice);
    const char *revoked = "the token of alice is revoked";
    put_list("# nobody yet\n\nalic\nalices\nALICE\n", true, NULL);
    expect_judged(psk.identity, NOW, NULL);
    put_list("bob\n  alice \t# left the project\r\nzoe", true, NULL);
    expect_judged(psk.identity, NOW, revoked);
    /* What cannot be read changes nothing. */
    put_list("bob\nnot a name\n", false, "line 2 is no name");
    char line[400];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    put_list(line, false, "line 1 is too long");
    char error[300];
    assert_false(
        open_read_revoked(&open_run, "/nowhere/list", error, sizeof error));
    assert_non_null(strstr(error, "No such file"));
    expect_judged(psk.identity, NOW, revoked);
    put_list("", true, NULL);
    expect_judged(psk.identity, NOW, NULL);
}

/* ---------------------------------------------------------------- channels */

struct tape {
    uint8_t bytes[16384];
    size_t size;
};

/* Both ends until neither has more to send. */
static void greet(struct secure *ends[2], struct tape *tape)
{
    for (bool more = true; more;) {
        more = false;
        for (int from = 0; from < 2; from++) {
            const uint8_t *out;
            size_t room, size = secure_out(ends[from], &out);
            if (size == 0) continue;
            memcpy(tape->bytes + tape->size, out, size);
            tape->size += size;
            for (size_t done = 0; done < size;) {
                uint8_t *to = secure_room(ends[!from], &room);
                if (!to) break;
                if (room > size - done) room = size - done;
                memcpy(to, out + done, room);
                secure_received(ends[!from], room);
                (void)secure_read(ends[!from], NULL, 0);
                done += room;
            }
            (void)secure_sent(ends[from], size);
            more = true;
        }
    }
}

static void expect_greeting(const struct secure_psk *psk, enum secure_fault why,
                            struct tape *tape)
{
    struct secure_keys dialer = {.own = *psk};
    struct secure_keys acceptor = {
        .own = open_run.own, .find = open_find, .user = &open_run};
    struct secure *ends[] = {secure_open(&dialer, SECURE_DIALER),
                             secure_open(&acceptor, SECURE_ACCEPTOR)};
    assert_non_null(ends[0]);
    assert_non_null(ends[1]);
    tape->size = 0;
    greet(ends, tape);
    assert_int_equal(secure_fault(ends[1]), why);
    assert_int_equal(secure_state(ends[1]),
                     why == SECURE_FINE ? SECURE_OPEN : SECURE_BROKEN);
    if (why == SECURE_FINE)
        assert_string_equal(secure_identity(ends[1]), psk->identity);
    secure_close(ends[0]);
    secure_close(ends[1]);
}

static bool has(const struct tape *tape, const void *bytes, size_t size)
{
    for (size_t i = 0; i + size <= tape->size; i++)
        if (memcmp(tape->bytes + i, bytes, size) == 0) return true;
    return false;
}

static void test_channel(void **state)
{
    (void)state;
    static struct tape tape;
    struct secure_psk psk = psk_of(&alice), thief = psk;
    char hex[2 * SECURE_KEY_SIZE + 1];
    expect_greeting(&psk, SECURE_FINE, &tape);
    hex_print(psk.key, sizeof psk.key, hex);
    assert_true(has(&tape, psk.identity, strlen(psk.identity)));
    assert_false(has(&tape, psk.key, sizeof psk.key));
    assert_false(has(&tape, hex, sizeof hex - 1));
    assert_false(has(&tape, "alice", 5));
    /* Who has recorded the identity lacks the secret. */
    thief.key[0] ^= 1;
    expect_greeting(&thief, SECURE_WRONG_KEY, &tape);
    memcpy(thief.key, run, sizeof run);
    expect_greeting(&thief, SECURE_WRONG_KEY, &tape);
    struct secure_psk foreign = {0};
    assert_true(token_issue(&alice, seed, other_run, &foreign));
    expect_greeting(&foreign, SECURE_WRONG_KEY, &tape);
    thief = psk;
    thief.identity[strlen(thief.identity) - 2] = '\0'; /* truncated */
    expect_greeting(&thief, SECURE_WRONG_KEY, &tape);
    expect_greeting(&open_run.own, SECURE_FINE, &tape); /* to be told why not */
    expect_greeting(&open_run.links, SECURE_FINE, &tape);
}

static void test_link_keys(void **state)
{
    (void)state;
    static const uint64_t proofs[][2] = {{1, 2}, {2, 1}, {1, 3}};
    struct secure_psk keys[3];
    for (size_t i = 0; i < 3; i++) token_link_key(&keys[i], proofs[i]);
    for (size_t i = 0; i < 3; i++) {
        assert_string_not_equal(keys[i].identity, keys[(i + 1) % 3].identity);
        assert_memory_not_equal(keys[i].key, keys[(i + 1) % 3].key,
                                SECURE_KEY_SIZE);
    }
}

/* -------------------------------------------------------------------- files */

static void test_token_files(void **state)
{
    (void)state;
    char path[] = "/tmp/pccl_token_XXXXXX", error[300], text[RUN_KEY_TEXT];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    struct secure_psk psk = psk_of(&alice), dials;
    struct run_key key = {{0}, {0}}, read;
    memcpy(key.bytes, psk.key, sizeof key.bytes);
    memcpy(key.identity, psk.identity, sizeof key.identity);
    assert_true(run_key_write(&key, path, error, sizeof error));
    assert_true(run_key_read(&read, path, error, sizeof error));
    unlink(path);
    assert_memory_equal(&read, &key, sizeof key);
    assert_true(run_key_is_token(&read));
    run_key_psk(&read, &dials);
    assert_memory_equal(&dials, &psk, sizeof psk);
    run_key_print(&key, text);
    assert_true(run_key_parse(&read, text));
    assert_memory_equal(&read, &key, sizeof key);
    size_t length = strlen(text);
    for (size_t cut = 1; cut < length; cut++) { /* "KEY" alone is a key, too */
        char part[RUN_KEY_TEXT];
        snprintf(part, sizeof part, "%s", text + cut);
        bool fine = run_key_parse(&read, part);
        assert_true(!fine || cut <= strlen(key.identity) + 1);
        text[length - cut] = '\0';
        assert_false(run_key_parse(&read, text));
    }
    char lent[RUN_KEY_PATH];
    fd = run_key_lend(&key, lent);
    assert_true(fd >= 0);
    assert_true(run_key_read(&read, lent, error, sizeof error));
    assert_memory_equal(&read, &key, sizeof key);
    close(fd);
}

static void test_issuer_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/pccl_issuer_XXXXXX", path[64], public[80];
    char error[300];
    uint8_t read[ISSUER_KEY_SIZE], made[ISSUER_KEY_SIZE], of[ISSUER_KEY_SIZE];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/issuer", folder);
    snprintf(public, sizeof public, "%s.pub", path);
    assert_true(run_issuer_make(path, error, sizeof error));
    assert_false(run_issuer_make(path, error, sizeof error));
    assert_non_null(strstr(error, "File exists"));
    assert_true(run_issuer_read(path, true, made, error, sizeof error));
    assert_true(run_issuer_read(public, false, read, error, sizeof error));
    assert_true(token_public(made, of));
    assert_memory_equal(of, read, sizeof of);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_false(run_issuer_read(public, true, made, error, sizeof error));
    assert_non_null(strstr(error, "signs nothing"));
    assert_false(run_issuer_read(path, false, read, error, sizeof error));
    assert_non_null(strstr(error, "private key"));
    assert_int_equal(chmod(path, 0640), 0);
    assert_false(run_issuer_read(path, true, made, error, sizeof error));
    assert_non_null(strstr(error, "chmod 600"));
    assert_false(
        run_issuer_read("/dev/null", false, read, error, sizeof error));
    unlink(path);
    unlink(public);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_what_is_no_token_is_not_issued),
        cmocka_unit_test(test_tampered),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_judged),
        cmocka_unit_test(test_revoked),
        cmocka_unit_test(test_channel),
        cmocka_unit_test(test_link_keys),
        cmocka_unit_test(test_token_files),
        cmocka_unit_test(test_issuer_files),
    };
    const char *why;
    if (!secure_is_available(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
