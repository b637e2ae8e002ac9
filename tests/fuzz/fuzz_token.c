/* fuzz_token.c - any bytes as a token: as the identity that a dialer names, as
 * what somebody with the run's key has sealed, as what the issuer has signed,
 * as the line of a token file, and as a list of revoked names. Nothing is
 * believed that the issuer has not signed, and what is believed can be shown.
 */
#include "fuzz.h"

#include "../../src/base/secure_token.c"

#include "../../src/base/run_key.h"
#include "../../src/master/server/master_open.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t key[SECURE_KEY_SIZE] = {1, 2, 3};
static uint8_t seed[TOKEN_SEED_SIZE] = {4, 5, 6};
static uint8_t issuer[TOKEN_PUBLIC_SIZE];
static struct secure_psk genuine;

static bool prepare(void)
{
    static const struct token token = {
        .grant = {.name = "alice", .rights = GRANT_JOIN}, .issued = 1000};
    if (genuine.identity[0] != '\0') return true;
    return token_public(seed, issuer) &&
           token_issue(&token, seed, key, &genuine);
}

static void text_of(char *text, size_t room, const uint8_t *in, size_t size)
{
    if (size >= room) size = room - 1;
    memcpy(text, in, size);
    text[size] = '\0';
}

/* As the coordinator of an open run, which revokes alice: it admits whom the
 * token is for, while it holds, and whoever links members. */
static void judge(const char *identity, enum token_fault fault)
{
    static char revoked[1][GRANT_NAME_MAX + 1] = {"alice"};
    struct master_open run = {.on = true,
                              .own.identity = "own",
                              .links.identity = "links",
                              .revoked = revoked,
                              .revoked_count = 1};
    struct token token;
    uint8_t secret[SECURE_KEY_SIZE];
    char text[240] = "";
    memcpy(run.key, key, sizeof key);
    memcpy(run.issuer, issuer, sizeof issuer);
    bool links = strcmp(identity, "links") == 0;
    bool found = open_find(&run, identity, secret) == SECURE_FINE;
    bool good = open_judge(&run, identity, 2000, &token, text, sizeof text);
    assert(!good || found);
    assert(good || text[0] != '\0');
    if (links) assert(good && token.grant.rights == GRANT_RELAY);
    if (!links && fault != TOKEN_FINE) assert(!good);
    if (good && !links) assert(strcmp(token.grant.name, "alice") != 0);
}

static void check(const char *identity, bool may_be_fine)
{
    struct token token;
    uint8_t secret[SECURE_KEY_SIZE];
    char text[240];
    enum token_fault fault = token_open(identity, key, issuer, &token);
    assert(fault != TOKEN_FINE || may_be_fine);
    judge(identity, fault);
    if (fault != TOKEN_FINE) {
        token_fault_text(fault, NULL, text, sizeof text);
        return;
    }
    assert(token_name_is_valid(token.grant.name));
    assert(token.grant.rights != 0 && token.grant.rights < GRANT_RELAY);
    assert(token_secret(identity, key, secret) == TOKEN_FINE);
    for (int i = TOKEN_EARLY; i <= TOKEN_REVOKED; i++)
        token_fault_text((enum token_fault)i, &token, text, sizeof text);
}

static void as_identity(const uint8_t *in, size_t size)
{
    char text[2 * SECURE_NAME_SIZE];
    text_of(text, sizeof text, in, size);
    check(text, strcmp(text, genuine.identity) == 0);
    memcpy(text, genuine.identity, sizeof genuine.identity);
    size_t length = strlen(text);
    for (size_t i = 0; i + 1 < size; i += 2)
        text[(in[i] * 3u + in[i + 1] / 64u) % length] = (char)in[i + 1];
    check(text, strcmp(text, genuine.identity) == 0);
}

/* With a signature, or with bytes in its place. */
static void as_sealed(const uint8_t *in, size_t size, bool signs)
{
    uint8_t plain[PLAIN_MOST], sealed[SEALED_MOST];
    uint8_t text[DIGEST + PLAIN_MOST];
    char identity[SECURE_NAME_SIZE];
    size_t most = PLAIN_MOST - SIGNATURE;
    if (size > most) size = most;
    if (size < FIXED + 1) return;
    memset(plain, 0, sizeof plain);
    memcpy(plain, in, size);
    plain[0] = in[0] & 7 ? VERSION : in[0];
    if (in[1] & 7) memcpy(plain + 1, issuer, ISSUER);
    if (in[2] & 1) plain[FIXED - 1] = (uint8_t)(size - FIXED);
    size_t length = signed_text(key, plain, size, text);
    if (signs && !sign(seed, text, length, plain + size)) return;
    size += SIGNATURE;
    if (!seal(key, plain, size, sealed)) return;
    memcpy(identity, prefix, sizeof prefix);
    hex_print(sealed, size + NONCE + TAG, identity + sizeof prefix - 1);
    check(identity, signs);
}

static void as_line(const uint8_t *in, size_t size)
{
    struct run_key read = {{0}, {0}};
    struct secure_psk psk;
    char text[2 * RUN_KEY_TEXT], again[RUN_KEY_TEXT];
    text_of(text, sizeof text, in, size);
    if (!run_key_parse(&read, text)) return;
    run_key_print(&read, again);
    assert(strcmp(text, again) == 0);
    run_key_psk(&read, &psk);
}

static void as_list(const uint8_t *in, size_t size)
{
    static struct master_open list;
    static int fd = -1;
    char path[64], error[300] = "";
    if (fd < 0) fd = memfd_create("revoked", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) != 0) return;
    if (pwrite(fd, in, size, 0) != (ssize_t)size) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool done = open_read_revoked(&list, path, error, sizeof error);
    assert(done || error[0] != '\0');
    for (size_t i = 0; done && i < list.revoked_count; i++)
        assert(token_name_is_valid(list.revoked[i]));
    open_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    if (size < 2 || !prepare()) return 0;
    in++;
    size--;
    switch (in[-1] % 5) {
    case 0:
        as_identity(in, size);
        break;
    case 1:
        as_sealed(in, size, false);
        break;
    case 2:
        as_sealed(in, size, true);
        break;
    case 3:
        as_line(in, size);
        break;
    default:
        as_list(in, size);
        break;
    }
    return 0;
}
