/* issue.c - see issue.h. */
#include "issue.h"

#include "../base/secure_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int failed(const char *option, const char *why)
{
    complain("%s: %s", option, why);
    return EXIT_FAILURE;
}

int issue_make_issuer(const char *path)
{
    char error[MESSAGE_SIZE / 2];
    const char *missing;
    if (!secure_is_available(&missing)) return failed("--make-issuer", missing);
    if (!run_issuer_make(path, error, sizeof error))
        return failed("--make-issuer", error);
    return EXIT_SUCCESS;
}

/* A token is a secret: a file that the shell has made for it, too. */
static bool print(const struct run_key *key)
{
    char line[RUN_KEY_LINE];
    struct stat st;
    size_t size = run_key_line(key, line);
    bool file = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
    bool done = (!file || fchmod(STDOUT_FILENO, 0600) == 0) &&
                write(STDOUT_FILENO, line, size) == (ssize_t)size;
    run_key_forget(line, sizeof line);
    return done;
}

static bool read_keys(const struct options *o, struct run_key *key,
                      uint8_t seed[ISSUER_KEY_SIZE], char *error, size_t size)
{
    const char *missing;
    const char *file =
        o->token_file ? o->token_file : getenv("PCCL_TOKEN_FILE");
    if (!secure_is_available(&missing)) {
        snprintf(error, size, "%s", missing);
        return false;
    }
    if (!file || *file == '\0') {
        snprintf(error, size, "it needs the key of the run: --token-file FILE");
        return false;
    }
    if (!run_key_read(key, file, error, size) ||
        !run_issuer_read(o->issuer, true, seed, error, size))
        return false;
    if (!run_key_is_token(key)) return true;
    snprintf(error, size,
             "%s: it is a participant's token, and not the key of the run",
             file);
    return false;
}

static bool issue(const struct options *o, const struct run_key *key,
                  const uint8_t seed[ISSUER_KEY_SIZE], struct run_key *made)
{
    struct secure_psk psk = {0};
    struct token token = {.issued = (uint64_t)time(NULL)};
    snprintf(token.grant.name, sizeof token.grant.name, "%s", o->issue);
    token.grant.any_group = !o->has_group;
    token.grant.group = o->group;
    token.grant.rights = o->rights;
    token.expires = o->lifetime > 0 ? token.issued + o->lifetime : 0;
    bool done = token_issue(&token, seed, key->bytes, &psk);
    if (done) memcpy(made->identity, psk.identity, sizeof made->identity);
    if (done) memcpy(made->bytes, psk.key, sizeof made->bytes);
    run_key_forget(&psk, sizeof psk);
    return done;
}

int issue_token(struct options *options)
{
    char error[MESSAGE_SIZE / 2] = "OpenSSL signs nothing by Ed25519 here";
    struct run_key key = {0}, made = {0};
    uint8_t seed[ISSUER_KEY_SIZE] = {0};
    bool done = read_keys(options, &key, seed, error, sizeof error) &&
                issue(options, &key, seed, &made);
    if (done && !print(&made)) {
        snprintf(error, sizeof error, "%s", strerror(errno));
        done = false;
    }
    run_key_forget(&key, sizeof key);
    run_key_forget(&made, sizeof made);
    run_key_forget(seed, sizeof seed);
    return done ? EXIT_SUCCESS : failed("--issue", error);
}
